"""The servers that ./servers runs: how each is started, queried and reloaded, and which packages contain it.

A function decorated with `server` writes a server's configuration into `here.folder` and returns the command of a server that listens at `here.port`.
Servers stay in the foreground. Workers run as the user nobody if the server allows it.
"""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path
from typing import Callable

PARTS = Path(__file__).resolve().parent
BACKEND = 8090
FRONT = 8091


@dataclasses.dataclass
class Server:
    name: str
    client: str
    packages: tuple
    command: Callable[["Here"], list]
    version: str
    # How to reload: a signal to the first process, or a command.
    reload: str | Callable[["Here"], list] | None = None
    # Packages that conflict with those of other servers. They are unpacked instead of installed.
    unpacked: tuple = ()
    # Number of concurrent clients.
    clients: int = 8
    stop: str = "TERM"
    # Clients connect to nginx at FRONT, which connects to this server.
    front: str = ""
    # The server connects to nginx at BACKEND.
    backend: bool = False
    # Maximum time to start.
    seconds: int = 60


SERVERS: list[Server] = []


def server(client: str, packages: str, version: str, **more):
    def add(function):
        SERVERS.append(Server(function.__name__, client, tuple(packages.split()), function, version, **more))
        return function

    return add


@dataclasses.dataclass
class Here:
    """The folder and the port of a server. The subfolder `site` contains the files that it serves."""

    folder: Path
    port: int
    unpacked: Path

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def place(self, name: str, user: str | None = "nobody") -> Path:
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        if user is not None:
            shutil.chown(path, user)
        return path

    @property
    def site(self) -> Path:
        return self.folder / "site"


def run(*command, **named):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **named).stdout


# --- web servers ---


def nginx_file(here: Here, name: str, listen: int, settings: str, workers: int = 1) -> list:
    spaces = "".join(f"{kind}_temp_path {here.folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = f"""daemon off; pid {here.folder}/{name}.pid; user nobody nogroup; worker_processes {workers}; error_log stderr warn;
        events {{ worker_connections 1000; }}
        http {{ access_log off; sendfile on; {spaces} server {{ listen {listen}; root {here.site}; {settings} }} }}"""
    return ["nginx", "-c", here.write(f"{name}.conf", text)]


@server("web", "nginx-light", "nginx -v", reload="HUP")
def nginx(here):
    return nginx_file(here, "nginx", here.port, "", workers=2)


def apache(here: Here, kind: str) -> list:
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in (f"mpm_{kind}", "authz_core", "dir", "mime")
    )
    text = f"""{modules}
        ServerName localhost
        ServerRoot {here.folder}
        DefaultRuntimeDir {here.folder}
        PidFile {here.folder}/pid
        Mutex file:{here.folder}
        TypesConfig /etc/mime.types
        User nobody
        Group nogroup
        Listen {here.port}
        ErrorLog /dev/stderr
        DocumentRoot {here.site}
        <Directory {here.site}>
            Require all granted
        </Directory>"""
    return ["apache2", "-f", here.write("apache.conf", text), "-DFOREGROUND"]


@server("web", "apache2", "apache2 -v", reload="USR1")
def apache_prefork(here):
    return apache(here, "prefork")


@server("web", "apache2", "apache2 -v", reload="USR1")
def apache_event(here):
    return apache(here, "event")


@server("web", "lighttpd", "lighttpd -v", reload="USR1")
def lighttpd(here):
    text = f'server.document-root="{here.site}"\nserver.port={here.port}\nserver.username="nobody"\nserver.groupname="nogroup"\n'
    return ["lighttpd", "-D", "-f", here.write("lighttpd.conf", text)]


@server("web", "h2o", "h2o -v")
def h2o(here):
    text = f'user: nobody\nhosts:\n  default:\n    listen: {here.port}\n    paths:\n      /:\n        file.dir: {here.site}\n'
    return ["h2o", "-c", here.write("h2o.conf", text)]


@server("web", "caddy", "caddy version", reload=lambda here: ["caddy", "reload", "--address", "127.0.0.1:2019", "--config", here.folder / "Caddyfile", "--force"])
def caddy(here):
    text = f":{here.port} {{\n    root * {here.site}\n    file_server\n}}\n"
    return ["caddy", "run", "--config", here.write("Caddyfile", text)]


@server("web_one_each", "busybox-static", "busybox httpd --help")
def busybox(here):
    return ["busybox", "httpd", "-f", "-p", here.port, "-h", here.site]


@server("web", "jetty9", "dpkg-query -W -f ${Version} jetty9", clients=4)
def jetty(here):
    base = here.folder / "jetty"
    shutil.copytree(here.site, base / "webapps/ROOT", dirs_exist_ok=True)
    modules = "--module=http,deploy,webapp"
    return ["java", "-Xmx256m", "-jar", "/usr/share/jetty9/start.jar", f"jetty.base={base}", "jetty.home=/usr/share/jetty9", f"jetty.http.port={here.port}", modules]


@server("web_one_each", "php-cli", "php -v")
def php(here):
    return ["php", "-S", f"0.0.0.0:{here.port}", "-t", here.site]


@server("web", "php-fpm nginx-light", "php-fpm8.2 -v", reload="USR2", front="fastcgi_pass 127.0.0.1:{port}; include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME {folder}/file.php;")
def php_fpm(here):
    here.write("file.php", "<?php readfile($_SERVER['DOCUMENT_ROOT'] . $_SERVER['REQUEST_URI']);")
    pool = f"[www]\nuser=nobody\ngroup=nogroup\nlisten=127.0.0.1:{here.port}\npm=static\npm.max_children=4\n"
    text = f"[global]\nerror_log=/dev/stderr\ndaemonize=no\npid={here.folder}/fpm.pid\nprocess_control_timeout=5\n{pool}"
    return ["php-fpm8.2", "-n", "-y", here.write("fpm.conf", text)]


@server("application", "nodejs", "node --version")
def node(here):
    return ["node", PARTS / "application.js", here.port, here.site]


@server("application", "gunicorn", "gunicorn --version", reload="HUP")
def gunicorn(here):
    return ["gunicorn", "-w", "3", "-b", f"0.0.0.0:{here.port}", "--chdir", PARTS, "-e", f"SITE={here.site}", "applications:wsgi"]


@server("application", "uwsgi-core uwsgi-plugin-python3", "uwsgi --version", reload="HUP", stop="INT")
def uwsgi(here):
    command = ["uwsgi", "--plugin", "python3", "--master", "--processes", "2", "--threads", "2", "--enable-threads", "--post-buffering", "65536"]
    return [*command, "--http11-socket", f"0.0.0.0:{here.port}", "--chdir", PARTS, "--env", f"SITE={here.site}", "--module", "applications:wsgi"]


@server("application", "uvicorn python3-uvicorn", "uvicorn --version")
def uvicorn(here):
    return ["env", f"SITE={here.site}", "uvicorn", "--app-dir", PARTS, "--host", "0.0.0.0", "--port", here.port, "--log-level", "warning", "applications:asgi"]


@server("application", "python3-aiohttp", "dpkg-query -W -f ${Version} python3-aiohttp")
def aiohttp(here):
    return ["env", f"SITE={here.site}", "/usr/bin/python3", PARTS / "applications.py", "aiohttp", here.port]


@server("application", "python3-tornado", "dpkg-query -W -f ${Version} python3-tornado")
def tornado(here):
    return ["env", f"SITE={here.site}", "/usr/bin/python3", PARTS / "applications.py", "tornado", here.port]


@server("application", "python3-twisted", "dpkg-query -W -f ${Version} python3-twisted")
def twisted(here):
    return ["env", f"SITE={here.site}", "/usr/bin/python3", PARTS / "applications.py", "twisted", here.port]


@server("application", "puma", "puma --version", reload="USR2")
def puma(here):
    return ["env", f"SITE={here.site}", "puma", "-e", "production", "-w", "2", "-t", "2:4", "-b", f"tcp://0.0.0.0:{here.port}", "--dir", PARTS, PARTS / "config.ru"]


@server("application", "unicorn", "unicorn --version", reload="HUP")
def unicorn(here):
    text = f'listen {here.port}\nworker_processes 3\nworking_directory "{PARTS}"\n'
    return ["env", f"SITE={here.site}", "unicorn", "-E", "none", "-c", here.write("unicorn.rb", text), PARTS / "config.ru"]


# --- proxies ---


@server("web", "haproxy", "haproxy -v", reload="USR2", backend=True)
def haproxy(here):
    lines = ["global", "user nobody", "group nogroup", "defaults", "mode http", "timeout connect 5s", "timeout client 30s", "timeout server 30s"]
    lines += ["frontend all", f"bind :{here.port}", "default_backend one", "backend one", f"server one 127.0.0.1:{BACKEND}"]
    return ["haproxy", "-W", "-db", "-f", here.write("haproxy.cfg", "\n".join(lines) + "\n")]


def varnish_reload(here):
    name = f"again{len(list(here.folder.iterdir()))}{os.urandom(2).hex()}"
    admin = f"varnishadm -n {here.folder}/varnish"
    return ["sh", "-ec", f"{admin} vcl.load {name} {here.folder}/default.vcl; {admin} vcl.use {name}"]


@server("web", "varnish", "varnishd -V", reload=varnish_reload, backend=True)
def varnish(here):
    here.write("default.vcl", f'vcl 4.1;\nbackend default {{ .host = "127.0.0.1"; .port = "{BACKEND}"; }}\n')
    return ["varnishd", "-F", "-j", "none", "-a", f":{here.port}", "-f", here.folder / "default.vcl", "-n", here.folder / "varnish", "-s", "malloc,20m"]


@server("proxy_and_tunnel", "squid", "squid -v", reload="HUP", backend=True, seconds=90)
def squid(here):
    lines = [f"http_port {here.port}", "http_access allow all", f"pid_filename {here.folder}/pid", "cache_log /dev/null", "access_log none", "cache deny all"]
    lines += ["cache_effective_user nobody", "shutdown_lifetime 1 seconds", "logfile_rotate 0", "netdb_filename none", "pinger_enable off", "cache_mem 8 MB"]
    lines += [f"coredump_dir {here.place('squid')}", "visible_hostname localhost"]
    return ["squid", "-N", "-f", here.write("squid.conf", "\n".join(lines) + "\n")]


@server("proxy_one_each", "tinyproxy", "tinyproxy -v", reload="USR1", backend=True)
def tinyproxy(here):
    text = f"User nobody\nGroup nogroup\nPort {here.port}\nTimeout 30\nMaxClients 100\nLogLevel Error\nAllow 127.0.0.1\n"
    return ["tinyproxy", "-d", "-c", here.write("tinyproxy.conf", text)]


@server("proxy_and_tunnel", "privoxy", "privoxy --version", reload="HUP", backend=True)
def privoxy(here):
    text = f"listen-address 127.0.0.1:{here.port}\nconfdir /etc/privoxy\nlogdir {here.place('logs')}\nkeep-alive-timeout 5\ntoggle 0\n"
    return ["privoxy", "--no-daemon", "--user", "nobody.nogroup", here.write("privoxy.conf", text)]


@server("tls", "stunnel4", "stunnel4 -version", reload="HUP", backend=True)
def stunnel(here):
    pem = here.folder / "tls.pem"
    if not pem.exists():
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "9", "-keyout", here.folder / "key", "-out", pem)
        pem.write_text(pem.read_text() + (here.folder / "key").read_text())
    text = f"foreground = yes\npid =\n[all]\naccept = {here.port}\nconnect = 127.0.0.1:{BACKEND}\ncert = {pem}\n"
    return ["stunnel4", here.write("stunnel.conf", text)]


# --- files and mail ---


@server("ftp", "vsftpd", "dpkg-query -W -f ${Version} vsftpd", reload="HUP")
def vsftpd(here):
    lines = ["listen=YES", f"listen_port={here.port}", "anonymous_enable=YES", "local_enable=NO", f"anon_root={here.site}", "background=NO"]
    lines += ["pasv_enable=YES", "seccomp_sandbox=NO", f"secure_chroot_dir={here.place('empty', None)}", "no_anon_password=YES"]
    return ["vsftpd", here.write("vsftpd.conf", "\n".join(lines) + "\n", 0o600)]


@server("ftp_upload", "libhiredis0.14 libmemcached11 libmemcachedutil2", "{unpacked}/proftpd-core/usr/sbin/proftpd -v", unpacked=("proftpd-core",), reload="HUP")
def proftpd(here):
    lines = [f"Port {here.port}", "ServerType standalone", "User nobody", "Group nogroup", f"PidFile {here.folder}/pid", f"ScoreboardFile {here.place('proftpd', None)}/scores"]
    lines += ["AuthPAM off", "UseReverseDNS off", "WtmpLog off", "TransferLog NONE", "SystemLog NONE", f"DelayTable {here.folder}/delays"]
    lines += [f"<Anonymous {here.site}>", "User nobody", "Group nogroup", "UserAlias anonymous nobody", "RequireValidShell off", "UseFtpUsers off", "<Directory *>", "AllowOverwrite on", "</Directory>", "</Anonymous>"]
    return [here.unpacked / "proftpd-core/usr/sbin/proftpd", "-n", "-c", here.write("proftpd.conf", "\n".join(lines) + "\n")]


@server("ftp_as_user", "libsodium23", "{unpacked}/pure-ftpd/usr/sbin/pure-ftpd --help", unpacked=("pure-ftpd",))
def pure_ftpd(here):
    place, users = here.unpacked / "pure-ftpd/usr", here.folder / "users"
    if not users.exists():
        run(place / "bin/pure-pw", "useradd", "reader", "-u", "nobody", "-d", here.site, "-f", users, "-F", f"{users}.pdb", "-m", input="secret\nsecret\n")
    return [place / "sbin/pure-ftpd", "-l", f"puredb:{users}.pdb", "-E", "-H", "-S", f"127.0.0.1,{here.port}", "-C", "100", "-g", here.folder / "pid"]


@server("smtp", "exim4-daemon-light", "exim4 -bV", reload="HUP")
def exim(here):
    """A copy without setuid, with a configuration that needs no other privileges."""
    program = here.folder / "exim"
    if not program.exists():
        shutil.copyfile("/usr/sbin/exim4", program)
        program.chmod(0o755)
    spool, mail = here.place("spool", "Debian-exim"), here.place("mail", "Debian-exim")
    text = f"""primary_hostname = mail.example
        domainlist local_domains = mail.example
        spool_directory = {spool}
        log_file_path = {here.folder}/exim-%s.log
        pid_file_path = {here.folder}/exim.pid
        daemon_smtp_ports = {here.port}
        local_interfaces = 127.0.0.1
        deliver_drop_privilege = true
        smtp_accept_max = 100
        smtp_accept_max_per_host = 100
        smtp_accept_reserve = 0
        acl_smtp_rcpt = accept
        acl_smtp_data = accept
        queue_run_max = 5
        begin acl
        begin routers
        all:
          driver = accept
          transport = folder
        begin transports
        folder:
          driver = appendfile
          directory = {mail}
          maildir_format
          user = Debian-exim
        begin retry
        * * F,2h,1s
        """
    return ["env", "-u", "LOGNAME", program, "-C", here.write("exim.conf", text), "-bdf", "-q1m"]


def dovecot(here: Here, protocol: str) -> list:
    here.place("mail", "dovecot")
    here.write("users", "reader:{PLAIN}secret::::::\n")
    text = f"""protocols = {protocol}
        listen = 127.0.0.1
        base_dir = {here.folder}/dovecot
        ssl = no
        disable_plaintext_auth = no
        log_path = /dev/stderr
        default_internal_user = dovecot
        default_login_user = nobody
        first_valid_uid = 1
        mail_uid = dovecot
        mail_gid = dovecot
        mail_max_userip_connections = 100
        mail_location = maildir:{here.folder}/mail/%u
        passdb {{
            driver = passwd-file
            args = {here.folder}/users
        }}
        userdb {{
            driver = static
            args = uid=dovecot gid=dovecot home={here.folder}/mail/%u
        }}
        service stats {{
            unix_listener stats-writer {{
                mode = 0666
            }}
        }}
        service {protocol}-login {{
            inet_listener {protocol} {{
                port = {here.port}
            }}
            inet_listener {protocol}s {{
                port = 0
            }}
        }}"""
    return ["dovecot", "-F", "-c", here.write("dovecot.conf", text)]


@server("imap", "dovecot-imapd", "dovecot --version", reload="HUP")
def dovecot_imap(here):
    return dovecot(here, "imap")


@server("pop3", "dovecot-pop3d", "dovecot --version", reload="HUP")
def dovecot_pop3(here):
    message = here.write("message", "Subject: one\n\n" + "".join(f"line {number}\n" for number in range(5_000)))
    box = here.folder / "mail/reader"
    for name in ("cur", "new", "tmp"):
        (box / name).mkdir(parents=True, exist_ok=True)
    if not any((box / "cur").iterdir()):
        shutil.copy(message, box / "new/1.1.localhost")
    run("chown", "-R", "dovecot:dovecot", here.folder / "mail")
    return dovecot(here, "pop3")


@server("rsync", "rsync", "rsync --version")
def rsync(here):
    text = f"pid file = {here.folder}/rsync.pid\nuse chroot = no\nuid = nobody\ngid = nogroup\n[site]\npath = {here.site}\nread only = yes\n"
    (here.folder / "rsync.pid").unlink(missing_ok=True)
    return ["rsync", "--daemon", "--no-detach", "--port", here.port, "--config", here.write("rsyncd.conf", text)]


@server("ssh", "openssh-server", "sshd -V", reload="HUP", clients=4)
def openssh(here):
    for name in ("host_key", "client_key"):
        if not (here.folder / name).exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", here.folder / name)
    shutil.copy(here.folder / "client_key.pub", here.folder / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)
    lines = [f"Port {here.port}", "ListenAddress 127.0.0.1", f"HostKey {here.folder}/host_key", f"AuthorizedKeysFile {here.folder}/authorized", "StrictModes no"]
    lines += ["PermitRootLogin yes", "PidFile none", "UsePAM no", "PasswordAuthentication no", "MaxStartups 100"]
    return ["/usr/sbin/sshd", "-D", "-e", "-f", here.write("sshd.conf", "\n".join(lines) + "\n")]


@server("subversion", "subversion", "svnserve --version --quiet", clients=4)
def subversion(here):
    repository = here.folder / "svn/repository"
    if not repository.exists():
        run("svnadmin", "create", here.place("svn", None) / "repository")
        run("svn", "import", "-q", "-m", "one", here.site, f"file://{repository}")
    return ["svnserve", "-d", "--foreground", "--listen-port", here.port, "-r", here.folder / "svn"]


@server("git", "git", "git --version", clients=4)
def git(here):
    repository = here.folder / "git/repository"
    if not repository.exists():
        shutil.copytree(here.site, repository)
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=one", "-c", "user.email=one@localhost", "commit", "-qm", "one"]):
            run("git", "-C", repository, *command)
    return ["git", "daemon", "--export-all", "--reuseaddr", f"--base-path={here.folder}/git", f"--port={here.port}", "--listen=127.0.0.1"]


# --- data and messages ---


@server("redis", "redis-server", "redis-server --version")
def redis(here):
    return ["redis-server", "--port", here.port, "--save", "", "--dir", here.folder, "--loglevel", "warning"]


@server("memcached", "memcached", "memcached -V")
def memcached(here):
    return ["memcached", "-u", "nobody", "-p", here.port, "-U", "0", "-t", "4", "-l", "127.0.0.1"]


@server("beanstalkd", "beanstalkd", "beanstalkd -v")
def beanstalkd(here):
    return ["beanstalkd", "-l", "127.0.0.1", "-p", here.port, "-u", "nobody"]


@server("nats", "nats-server", "nats-server --version", reload="HUP")
def nats(here):
    return ["nats-server", "-c", here.write("nats.conf", f"port: {here.port}\n")]


@server("mqtt", "mosquitto mosquitto-clients", "mosquitto -h", reload="HUP")
def mosquitto(here):
    return ["mosquitto", "-c", here.write("mosquitto.conf", f"listener {here.port} 127.0.0.1\nallow_anonymous true\nuser nobody\n")]


@server("irc", "ngircd", "ngircd --version", reload="HUP", clients=4)
def ngircd(here):
    lines = ["[Global]", "Name = irc.example", "Info = one", "ServerUID = nobody", "ServerGID = nogroup", f"Ports = {here.port}", "Listen = 127.0.0.1"]
    lines += ["[Limits]", "MaxConnectionsIP = 0", "MaxNickLength = 20", "MaxJoins = 0", "MaxPenaltyTime = 0", "[Options]", "DNS = no", "Ident = no", "PAM = no", "SyslogFacility = local0"]
    return ["ngircd", "-n", "-f", here.write("ngircd.conf", "\n".join(lines) + "\n")]


@server("xmpp", "prosody", "dpkg-query -W -f ${Version} prosody", reload="HUP")
def prosody(here):
    account = here.place("prosody", "prosody") / "localhost/accounts"
    account.mkdir(parents=True, exist_ok=True)
    (account / "reader.dat").write_text('return { ["password"] = "secret" };\n')
    run("chown", "-R", "prosody", here.folder / "prosody")
    text = f"""daemonize = false; run_as_root = false; prosody_user = "prosody"; pidfile = "{here.folder}/prosody/pid"; data_path = "{here.folder}/prosody"
        modules_enabled = {{ "saslauth", "private", "ping" }}; modules_disabled = {{ "s2s", "tls", "offline" }}; authentication = "internal_plain"
        allow_unencrypted_plain_auth = true; c2s_require_encryption = false; interfaces = {{ "127.0.0.1" }}; c2s_ports = {{ {here.port} }}
        log = {{ warn = "*console" }}
        VirtualHost "localhost"
        """
    here.write("prosody.cfg.lua", text)
    return ["setpriv", "--reuid=prosody", "--regid=prosody", "--clear-groups", "prosody", "--config", here.folder / "prosody.cfg.lua", "-F"]


@server("postgresql", "postgresql", "dpkg-query -W -f ${Version} postgresql-15", reload="HUP", stop="INT", clients=6)
def postgresql(here):
    data, programs = here.place("data", "postgres"), "/usr/lib/postgresql/15/bin"
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    if not any(data.iterdir()):
        run(*as_user, f"{programs}/initdb", "-D", data, "-A", "trust", "-N", cwd="/")
    return [*as_user, f"{programs}/postgres", "-D", data, "-p", here.port, "-k", data, "-h", "127.0.0.1", "-c", "fsync=off"]


@server("mariadb", "mariadb-server mariadb-client", "mariadbd --version", reload="HUP", clients=6, seconds=90)
def mariadb(here):
    data = here.place("data", "mysql")
    if not any(data.iterdir()):
        run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db")
    start = here.write("start.sql", "create database if not exists test;\ncreate or replace user reader@'127.0.0.1' identified by 'secret';\ngrant all on test.* to reader@'127.0.0.1';\n")
    options = [f"--datadir={data}", "--user=mysql", f"--port={here.port}", f"--socket={data}/socket", "--bind-address=127.0.0.1", "--skip-name-resolve"]
    return ["mariadbd", "--no-defaults", *options, f"--init-file={start}", "--innodb-buffer-pool-size=16M"]


@server("ldap", "slapd ldap-utils", "slapd -VV", stop="INT", clients=4)
def openldap(here):
    data = here.place("ldap", "openldap")
    text = f"""include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {data}/pid
database mdb
maxsize 100000000
suffix "dc=example"
rootdn "cn=admin,dc=example"
rootpw secret
dbnosync
directory {data}
"""
    here.write("slapd.conf", text)
    if not (data / "data.mdb").exists():
        entry = here.write("first.ldif", "dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: example\n")
        run("slapadd", "-f", here.folder / "slapd.conf", "-l", entry)
        run("chown", "-R", "openldap", data)
    return ["slapd", "-d", "0", "-u", "openldap", "-f", here.folder / "slapd.conf", "-h", f"ldap://127.0.0.1:{here.port}"]


@server("etcd", "etcd-server", "etcd --version")
def etcd(here):
    peers = f"http://127.0.0.1:{here.port + 1}"
    urls = ["--listen-client-urls", f"http://127.0.0.1:{here.port}", "--advertise-client-urls", f"http://127.0.0.1:{here.port}", "--listen-peer-urls", peers]
    return ["etcd", "--data-dir", here.folder / "etcd", *urls, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}", "--log-level", "error"]


# --- names ---

HOSTS = "".join(f"10.0.0.{number} host{number}.example.test\n" for number in range(5))
ZONE = "$TTL 60\n@ SOA ns.example.test. one.example.test. 1 60 60 60 60\n@ NS ns\nns A 10.0.0.9\n" + "".join(f"host{number} A 10.0.0.{number}\n" for number in range(5))


@server("dns", "dnsmasq-base", "dnsmasq --version", reload="HUP")
def dnsmasq(here):
    hosts = here.write("hosts", HOSTS)
    return ["dnsmasq", "-k", "-C", "/dev/null", "-p", here.port, "-u", "nobody", "-R", "-h", "-H", hosts, "--listen-address=127.0.0.1", "--bind-interfaces"]


@server("dns", "unbound", "unbound -V", reload="HUP")
def unbound(here):
    names = "".join(f'local-data: "host{number}.example.test. A 10.0.0.{number}"\n' for number in range(5))
    text = f"""server:
        interface: 127.0.0.1
        port: {here.port}
        username: nobody
        chroot: ""
        directory: {here.folder}
        pidfile: ""
        do-daemonize: no
        use-syslog: no
        incoming-num-tcp: 100
        num-threads: 2
        local-zone: "example.test." static
        {names}"""
    return ["unbound", "-d", "-c", here.write("unbound.conf", text)]


@server("dns", "bind9", "named -v", reload="HUP")
def bind(here):
    here.write("zone", ZONE)
    text = f"""options {{ directory "{here.place('named', 'bind')}"; listen-on port {here.port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no; pid-file none;
        session-keyfile "{here.folder}/named/session.key"; }};
        controls {{ }};
        zone "example.test" {{ type primary; file "{here.folder}/zone"; }};"""
    return ["named", "-f", "-u", "bind", "-c", here.write("named.conf", text)]


@server("dns", "knot", "knotd --version", reload="HUP")
def knot(here):
    here.write("knot/example.test.zone", ZONE)
    shutil.chown(here.place("knot", "knot") / "example.test.zone", "knot")
    here.place("knotrun", "knot")
    text = f"""server:
    rundir: {here.folder}/knotrun
    user: knot:knot
    listen: 127.0.0.1@{here.port}
log:
  - target: stderr
    any: error
database:
    storage: {here.folder}/knot
template:
  - id: default
    storage: {here.folder}/knot
    file: "%s.zone"
zone:
  - domain: example.test
"""
    return ["knotd", "-c", here.write("knot.conf", text)]


# --- others ---


@server("iperf3", "iperf3", "iperf3 --version", clients=1)
def iperf3(here):
    return ["iperf3", "-s", "-p", here.port]


@server("echo", "socat", "socat -V")
def socat(here):
    return ["socat", f"TCP-LISTEN:{here.port},fork,reuseaddr,backlog=50", "EXEC:cat"]


@server("echo", "xinetd", "xinetd -version", reload="HUP")
def xinetd(here):
    text = f"""service one
{{
    type = UNLISTED
    socket_type = stream
    protocol = tcp
    port = {here.port}
    bind = 127.0.0.1
    wait = no
    user = nobody
    server = /bin/cat
    instances = UNLIMITED
    per_source = UNLIMITED
    cps = 1000 1
}}
"""
    return ["xinetd", "-dontfork", "-f", here.write("xinetd.conf", text), "-pidfile", here.folder / "pid"]


@server("web", "icecast2", "icecast2 -v", reload="HUP")
def icecast(here):
    paths = "".join(f"<{name}>{here.folder if name != 'webroot' else here.site}</{name}>" for name in ("basedir", "logdir", "webroot", "adminroot"))
    text = f"""<icecast><limits><clients>100</clients><sources>2</sources></limits><hostname>localhost</hostname><fileserve>1</fileserve>
        <authentication><source-password>secret</source-password><admin-user>admin</admin-user><admin-password>secret</admin-password></authentication>
        <listen-socket><port>{here.port}</port><bind-address>127.0.0.1</bind-address></listen-socket><paths>{paths}</paths>
        <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>1</loglevel></logging>
        <security><chroot>0</chroot><changeowner><user>nobody</user><group>nogroup</group></changeowner></security></icecast>"""
    return ["icecast2", "-c", here.write("icecast.xml", text)]
