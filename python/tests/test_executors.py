"""Studies on those clusters that are installed give the same tables as in one process, even if workers are killed."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import baton
from conftest import STUDY
from test_study import SLOW, expected, tables, times_of_runs  # noqa: F401


def test_dask(study_file, expected, tmp_path):  # noqa: F811
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            done = baton.sweep(study_file, out=tmp_path / "out", executor=client.get_executor())
    assert done.computed == 12 and tables(tmp_path / "out") == expected


def test_dask_does_again_what_a_killed_worker_had(tmp_path):
    distributed = pytest.importorskip("distributed")
    out, whole = tmp_path / "out", tmp_path / "whole"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            killer = _kill_later(pids[0], out)
            done = baton.sweep(SLOW, out=out, executor=client.get_executor())
            killer.join()
    assert (len(done), done.failed) == (12, 0) and killer.killed
    baton.sweep(SLOW, out=whole)
    assert tables(out) == tables(whole)


def _kill_later(pid, out):
    import threading

    class Killer(threading.Thread):
        killed = False

        def run(self):
            deadline = time.monotonic() + 60
            while not times_of_runs(out) and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(pid, signal.SIGKILL)
            self.killed = True

    killer = Killer()
    killer.start()
    return killer


def test_ray(study_file, expected, tmp_path, monkeypatch):  # noqa: F811
    ray = pytest.importorskip("ray")
    # Otherwise Ray writes a token to the home directory.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    path = os.pathsep.join([str(Path(baton.__file__).parents[1]), str(Path(__file__).parent)])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    try:
        done = baton.sweep(study_file, out=tmp_path / "out", executor=baton.RayExecutor(num_cpus=1), batch=3)
        assert done.computed == 12 and tables(tmp_path / "out") == expected
        killed = tmp_path / "killed"
        pid = ray.get(ray.remote(lambda: os.getpid()).remote())
        killer = _kill_later(pid, killed)
        assert baton.sweep(SLOW, out=killed, executor=baton.RayExecutor(num_cpus=1)).failed == 0
        killer.join()
    finally:
        ray.shutdown()
    baton.sweep(SLOW, out=tmp_path / "whole")
    assert tables(killed) == tables(tmp_path / "whole")


SLURM = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={port_of_node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=short Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Slurm with this machine as its only node."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name)]
    if missing or os.getuid() != 0:
        pytest.skip(f"needs Slurm (Debian's slurm-wlm) and root: {', '.join(missing) or 'not root'}")
    folder = Path("/run", f"baton-slurm-{os.getpid()}")
    folder.mkdir(mode=0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = os.uname().nodename.split(".")[0]
    conf = folder / "slurm.conf"
    ports = {"port": 16817, "port_of_node": 16818}
    conf.write_text(SLURM.format(host=host, folder=folder, cpus=os.cpu_count(), **ports))
    monkeypatch.setenv("SLURM_CONF", str(conf))
    munge = ["munged", "-F", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munge += [f"--{what}-file={folder}/munge.{what}" for what in ("pid", "log", "seed")]
    commands = [munge, ["slurmctld", "-D", "-f", str(conf)], ["slurmd", "-D", "-f", str(conf), "-N", host]]
    daemons = []
    with open(folder / "said", "wb") as said:
        try:
            for command in commands:
                daemons.append(subprocess.Popen(command, stdout=said, stderr=said))
                time.sleep(0.5)
            _wait_for_idle(folder)
            yield
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(20)
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for_idle(folder):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        said = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True)
        if "idle" in said.stdout:
            return
        time.sleep(0.5)
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.iterdir() if path.suffix == ".log")
    pytest.fail(f"Slurm does not start: {said.stdout}{said.stderr}\n{logs}\n{(folder / 'said').read_text(errors='replace')}")


def test_slurm(slurm, study_file, expected, command, tmp_path):  # noqa: F811
    out = tmp_path / "out"
    done = baton.sweep(study_file, out=out, executor=baton.Slurm(tasks=3, options=["--partition=short"], command=command))
    assert (done.computed, tables(out)) == (12, expected)
    logs = sorted((out / "slurm").glob("*.log"))
    assert len(logs) == 3 and all("runs done" in log.read_text() for log in logs)
    before = times_of_runs(out)
    baton.sweep(study_file, out=out, executor=baton.Slurm(tasks=3, command=command))
    assert times_of_runs(out) == before
    with pytest.raises(baton.InputError, match="is not a file"):
        baton.sweep(STUDY, out=tmp_path / "other", executor=baton.Slurm(tasks=3, command=command))
    with pytest.raises(baton.RunError, match="of the same version"):
        baton.sweep(study_file, out=tmp_path / "other", executor=baton.Slurm(tasks=1, command="/bin/true"))
