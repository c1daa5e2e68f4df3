"""Make a figure from an access log: would a data cache on the NIC help this traffic?

Open this notebook with `marimo edit log_to_figure.py`, or run it as a script. It writes cache.svg.
"""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt

    import baton

    return baton, mo, plt


@app.cell
def _(mo):
    mo.md(
        """
        # Would a data cache on the NIC help?

        The log is generated; replace it by the path of your own. The first curve shows the share of its content that caches of all
        sizes would keep off the bus, computed from the log's references alone. The second one shows the same for a simulated server, on
        which requests are delayed, lost, repeated and handled in parallel.
        """
    )
    return


@app.cell
def _(baton):
    generated = baton.generate_log("demo", requests=10_000)
    generated.write("access.log")
    log = baton.read_log("access.log")
    log
    return (log,)


@app.cell
def _(baton, log):
    curves = baton.locality(log, ["lru", "sieve", "bound"]).to_polars()
    curves
    return (curves,)


@app.cell
def _(baton):
    sizes_kib = [256, 1024, 4096]
    study = {
        "name": "cache",
        "profile": "dcache-2002",
        "workload": {"kind": "log", "path": "access.log"},
        "host.kernel.nic_cache": {"enabled": True},
        "run": {"warmup_packets": 20_000, "measured_packets": 40_000},
        "sweep": {"nic.firmware.cache.kib": sizes_kib},
    }
    table = baton.sweep(study, out="results").table().to_polars()
    table.select("config.nic.firmware.cache.kib", "content_kept_off_bus_percent", "request_rate_per_s")
    return sizes_kib, table


@app.cell
def _(curves, plt, sizes_kib, table):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for (_policy,), _curve in curves.group_by("policy", maintain_order=True):
        left.plot(_curve["cache_bytes"] / 2**20, 100 * _curve["hit_share"], label=_policy)
    left.set(xscale="log", xlabel="cache, MiB", ylabel="content kept off the bus, %", title="by the log's references")
    left.legend()
    right.plot([_kib / 1024 for _kib in sizes_kib], table["content_kept_off_bus_percent"], "o-")
    right.set(xscale="log", xlabel="cache, MiB", ylabel="content kept off the bus, %", title="simulated server")
    figure.tight_layout()
    figure.savefig("cache.svg")
    figure
    return (figure,)


if __name__ == "__main__":
    app.run()
