#!/usr/bin/env python3
"""Clients of the servers under test. They use the kernel's sockets and compare every received byte.

    clients.py PROTOCOL PORT FOLDER THREADS SESSIONS|SECONDSs      prints the number of correct sessions and the errors of the others as JSON

A session is a function of the port and of a folder, whose subfolder `site` contains the server's files. It raises an exception if anything is wrong.
"""

import base64
import collections
import contextlib
import ftplib
import hashlib
import http.client
import imaplib
import itertools
import json
import os
import poplib
import random
import smtplib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HOST = "127.0.0.1"
SECONDS = 20
FILES = ("small", "medium", "bulk")
numbers = itertools.count(1)


def same(got, expected, what):
    if got != expected:
        shown = f"{len(got)} bytes for {len(expected)}" if isinstance(got, bytes) and len(got) > 60 else repr(got)
        raise ValueError(f"{what}: wrong answer, {shown}")


def content(folder, name):
    return (folder / "site" / name).read_bytes()


def ran(*command, **named):
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, **named)
    if done.returncode != 0:
        raise ValueError(f"{command[0]}: {done.stderr.decode(errors='replace').strip()[-200:]}")
    return done.stdout


class Lines:
    """A connection of a line-based protocol."""

    def __init__(self, port):
        self.end = socket.create_connection((HOST, port), SECONDS)
        self.stream = self.end.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.end.close()

    def send(self, data):
        self.end.sendall(data if isinstance(data, bytes) else data.encode() + b"\r\n")

    def line(self):
        line = self.stream.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection ended within a line" if line else "the connection ended")
        return line.rstrip(b"\r\n").decode(errors="replace")

    def until(self, *words):
        """Returns the first line that contains one of these words."""
        while not any(word in (line := self.line()) for word in words):
            pass
        return line

    def expect(self, start):
        line = self.line()
        if not line.startswith(start):
            raise ValueError(f"expected {start}, got {line}")
        return line

    def read(self, count):
        data = self.stream.read(count)
        if len(data) < count:
            raise ConnectionError(f"the connection ended after {len(data)} of {count} bytes")
        return data


# --- the web ---


def get(connection, folder, name, prefix="/"):
    connection.request("GET", prefix + name)
    answer = connection.getresponse()
    body = answer.read()
    same(answer.status, 200, name)
    same(body, content(folder, name), name)


def http_on(connection, folder, prefix="/"):
    for name in (*FILES, "small"):
        get(connection, folder, name, prefix)
    connection.close()


def web(port, folder):
    """Fetches files over one connection, and one over its own connection, which the server closes."""
    http_on(http.client.HTTPConnection(HOST, port, timeout=SECONDS), folder)
    with Lines(port) as one:
        one.send("GET /medium HTTP/1.0\r\n")
        one.until("HTTP/1")
        one.end.settimeout(SECONDS)
        same(one.stream.read().split(b"\r\n\r\n", 1)[-1], content(folder, "medium"), "content up to the end of the connection")


def web_one_each(port, folder):
    """The same for servers that close each connection after a request."""
    for name in FILES:
        connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
        get(connection, folder, name)
        connection.close()


def application(port, folder):
    """Fetches files, and checks that posted data is echoed."""
    web_one_each(port, folder)
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    for size in (1, 5_000, 300_000):
        data = os.urandom(size)
        connection.request("POST", "/", data)
        same(connection.getresponse().read(), data, "echo")
    connection.close()


def proxy(port, folder):
    """Fetches files through a proxy from the server at port 8090."""
    http_on(http.client.HTTPConnection(HOST, port, timeout=SECONDS), folder, f"http://{HOST}:8090/")


def proxy_one_each(port, folder):
    for name in FILES:
        connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
        get(connection, folder, name, f"http://{HOST}:8090/")
        connection.close()


def proxy_and_tunnel(port, folder):
    proxy(port, folder)
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    connection.set_tunnel(HOST, 8090)
    http_on(connection, folder)


def tls(port, folder):
    context = ssl.create_default_context(cafile=folder / "tls.pem")
    context.check_hostname = False
    http_on(http.client.HTTPSConnection(HOST, port, timeout=SECONDS, context=context), folder)


def etcd(port, folder):
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    key, value = (base64.b64encode(os.urandom(size)).decode() for size in (9, 20_000))
    for path, body in (("put", {"key": key, "value": value}), ("range", {"key": key})):
        connection.request("POST", f"/v3/kv/{path}", json.dumps(body))
        answer = json.loads(connection.getresponse().read())
    same(answer["kvs"][0]["value"], value, "value")


# --- files and mail ---


def ftp(port, folder, *login):
    with ftplib.FTP() as one:
        one.connect(HOST, port, SECONDS)
        one.login(*login)
        for name in FILES:
            parts = []
            one.retrbinary(f"RETR {name}", parts.append)
            same(b"".join(parts), content(folder, name), name)
        same("small" in one.nlst(), True, "list")


def ftp_as_user(port, folder):
    ftp(port, folder, "reader", "secret")


def ftp_upload(port, folder):
    ftp(port, folder)
    with ftplib.FTP() as one:
        one.connect(HOST, port, SECONDS)
        one.login()
        name = f"upload/{os.getpid()}-{next(numbers)}"
        with (folder / "site/medium").open("rb") as data:
            one.storbinary(f"STOR {name}", data)
        same((folder / "site" / name).read_bytes(), content(folder, "medium"), "upload")


def smtp(port, folder):
    """Sends two messages, and checks that they are delivered."""
    tokens = []
    with smtplib.SMTP(HOST, port, "client.example", SECONDS) as one:
        for size in (10, 2_000):
            tokens.append(f"{os.getpid()}.{next(numbers)}.{random.random()}")
            text = f"Subject: {tokens[-1]}\n\n" + "".join(f"{number} of {tokens[-1]}\n" for number in range(size))
            one.sendmail("someone@client.example", ["reader@mail.example"], text)
            tokens[-1] = text.split("\n\n", 1)[1].encode()
    end = time.monotonic() + SECONDS
    while tokens and time.monotonic() < end:
        delivered = b"".join(path.read_bytes() for path in sorted((folder / "mail").rglob("*")) if path.is_file())
        tokens = [token for token in tokens if token not in delivered]
        time.sleep(0.1)
    same(len(tokens), 0, "messages that were not delivered")


def imap(port, folder):
    with imaplib.IMAP4(HOST, port, SECONDS) as one:
        one.login("reader", "secret")
        one.select()
        token = f"{os.getpid()}.{next(numbers)}.{random.random()}"
        message = f"Subject: {token}\r\n\r\n".encode() + b"".join(b"line %d\r\n" % number for number in range(5_000))
        same(one.append("INBOX", None, None, message)[0], "OK", "append")
        one.noop()
        found = one.search(None, "SUBJECT", token)[1][0].split()
        # The server reports changes by other clients in between.
        parts = [part for part in one.fetch(found[0], "(RFC822)")[1] if isinstance(part, tuple)]
        same(parts[0][1], message, "message")


def pop3(port, folder):
    one = poplib.POP3(HOST, port, SECONDS)
    one.user("reader")
    one.pass_("secret")
    same(b"\n".join(one.retr(1)[1]), (folder / "message").read_bytes().rstrip(b"\n"), "message")
    one.quit()


def compared(folder, place):
    for name in FILES:
        same((Path(place) / name).read_bytes(), content(folder, name), name)


def rsync(port, folder):
    with tempfile.TemporaryDirectory() as place:
        ran("rsync", "-r", f"rsync://{HOST}:{port}/site/", place)
        compared(folder, place)


def ssh(port, folder):
    options = ["-q", "-F", "none", "-i", folder / "client_key", "-p", str(port), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    for name in FILES:
        same(ran("ssh", *options, HOST, f"cat {folder}/site/{name}"), content(folder, name), name)
    data = os.urandom(200_000)
    same(ran("ssh", *options, HOST, "cat", input=data), data, "echo")


def subversion(port, folder):
    with tempfile.TemporaryDirectory() as place:
        ran("svn", "checkout", "-q", "--config-dir", f"{place}/config", f"svn://{HOST}:{port}/repository", f"{place}/it")
        compared(folder, f"{place}/it")


def git(port, folder):
    with tempfile.TemporaryDirectory() as place:
        ran("git", "clone", "-q", f"git://{HOST}:{port}/repository", f"{place}/it")
        compared(folder, f"{place}/it")


# --- data and messages ---


def redis(port, folder):
    with Lines(port) as one:
        for size in (1, 5_000, 300_000):
            key, value = f"{os.getpid()}.{next(numbers)}", os.urandom(size)
            one.send(f"*3\r\n$3\r\nSET\r\n${len(key)}\r\n{key}\r\n${size}\r\n".encode() + value + b"\r\n")
            one.expect("+OK")
            one.send(f"*2\r\n$3\r\nGET\r\n${len(key)}\r\n{key}\r\n".encode())
            one.expect(f"${size}")
            same(one.read(size + 2)[:-2], value, "value")


def memcached(port, folder):
    with Lines(port) as one:
        for size in (1, 5_000, 300_000):
            key, value = f"{os.getpid()}.{next(numbers)}", os.urandom(size)
            one.send(f"set {key} 0 0 {size}\r\n".encode() + value + b"\r\n")
            one.expect("STORED")
            one.send(f"get {key}")
            one.expect("VALUE")
            same(one.read(size + 2)[:-2], value, "value")
            one.expect("END")


def beanstalkd(port, folder):
    with Lines(port) as one:
        tube = f"{os.getpid()}.{next(numbers)}"
        for command in (f"use {tube}", f"watch {tube}", "ignore default"):
            one.send(command)
            one.line()
        for size in (1, 5_000, 60_000):
            job = os.urandom(size)
            one.send(f"put 0 0 60 {size}\r\n".encode() + job + b"\r\n")
            number = one.expect("INSERTED").split()[1]
            one.send("reserve")
            one.expect(f"RESERVED {number} {size}")
            same(one.read(size + 2)[:-2], job, "job")
            one.send(f"delete {number}")
            one.expect("DELETED")


def nats(port, folder):
    with Lines(port) as one:
        one.expect("INFO")
        subject = f"subject.{os.getpid()}.{next(numbers)}"
        one.send('CONNECT {"verbose":false}')
        one.send(f"SUB {subject} 1")
        for size in (1, 5_000, 300_000):
            data = os.urandom(size)
            one.send(f"PUB {subject} {size}\r\n".encode() + data + b"\r\n")
            one.until("MSG")
            same(one.read(size + 2)[:-2], data, "message")


def mqtt(port, folder):
    topic, data = f"topic/{os.getpid()}/{next(numbers)}", os.urandom(50_000)
    address = ["-h", HOST, "-p", str(port), "-q", "1", "-t", topic]
    ran("mosquitto_pub", *address, "-r", "-s", input=data)
    same(ran("mosquitto_sub", *address, "-C", "1", "-N"), data, "message")


def irc(port, folder):
    """Two users exchange messages in a channel."""
    channel = f"#c{os.getpid()}x{next(numbers)}"
    with Lines(port) as one, Lines(port) as other:
        for end in (one, other):
            end.send(f"NICK u{os.getpid() % 10_000}x{next(numbers)}")
            end.send("USER user 0 * :user")
            while not (line := end.line()).split(" ")[1].startswith("001"):
                if line.startswith("PING"):
                    end.send("PONG " + line.split(" ", 1)[1])
            end.send(f"JOIN {channel}")
            end.until(" 366 ")
        for number in range(20):
            one.send(f"PRIVMSG {channel} :message {number} {'x' * 300}")
            same(other.until("PRIVMSG").split(" :", 1)[1], f"message {number} {'x' * 300}", "message")


def xmpp(port, folder):
    def ask(end, text, word):
        end.sendall(text.encode())
        got = b""
        while word not in got:
            if not (more := end.recv(65536)):
                raise ConnectionError("the connection ended")
            got += more
        return got

    opening = "<stream:stream to='localhost' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
    with socket.create_connection((HOST, port), SECONDS) as end:
        ask(end, opening, b"</stream:features>")
        secret = base64.b64encode(b"\0reader\0secret").decode()
        ask(end, f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{secret}</auth>", b"<success")
        ask(end, opening, b"</stream:features>")
        ask(end, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", b"</iq>")
        for number in range(10):
            text = f"{number} {random.random()} " + "x" * 2000
            jid = "<iq type='set' id='q%d'><query xmlns='jabber:iq:private'><notes xmlns='notes'>%s</notes></query></iq>" % (number, text)
            same(f"id='q{number}'".encode() in ask(end, jid, b"/>").replace(b'"', b"'"), True, "answer")


def postgresql(port, folder):
    """Queries a table of numbers, which the server computes, and compares it."""
    sql = "select i, md5(i::text) from generate_series(1, 5000) i"
    got = ran("psql", "-h", HOST, "-p", str(port), "-U", "postgres", "-XAtc", sql, "postgres")
    same(got, b"".join(b"%d|%s\n" % (i, hashlib.md5(b"%d" % i).hexdigest().encode()) for i in range(1, 5001)), "rows")


def mariadb(port, folder):
    sql = "select seq, md5(seq) from seq_1_to_5000"
    got = ran("mariadb", "--no-defaults", "-h", HOST, "-P", str(port), "--protocol=tcp", "-u", "reader", "-psecret", "-N", "-B", "-e", sql, "test")
    same(got, b"".join(b"%d\t%s\n" % (i, hashlib.md5(b"%d" % i).hexdigest().encode()) for i in range(1, 5001)), "rows")


def ldap(port, folder):
    address = ["-x", "-H", f"ldap://{HOST}:{port}", "-D", "cn=admin,dc=example", "-w", "secret"]
    name, text = f"cn={os.getpid()}.{next(numbers)},dc=example", "x" * 20_000
    ran("ldapadd", *address, input=f"dn: {name}\nobjectClass: device\ndescription: {text}\n".encode())
    got = ran("ldapsearch", *address, "-LLL", "-o", "ldif-wrap=no", "-b", name, "description").decode()
    same(f"description: {text}\n" in got, True, "entry")


def dns(port, folder):
    """Sends twenty queries over one connection."""
    with Lines(port) as one:
        for number in range(20):
            host = f"host{number % 5}"
            name = b"".join(bytes([len(part)]) + part.encode() for part in (host, "example", "test")) + b"\0"
            question = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
            one.send(struct.pack(">H", len(question)) + question)
            answer = one.read(struct.unpack(">H", one.read(2))[0])
            same(answer[:2], question[:2], "number")
            same(bytes([10, 0, 0, number % 5]) in answer, True, host)


def send_to_whom_reads(one, data):
    with contextlib.suppress(OSError):
        one.send(data)


def echo(port, folder):
    with Lines(port) as one:
        for size in (1, 100, 5_000, 200_000):
            data = os.urandom(size)
            thread = threading.Thread(target=send_to_whom_reads, args=(one, data))
            thread.start()
            same(one.read(size), data, "echo")
            thread.join()


def iperf3(port, folder):
    for extra in ([], ["-R"]):
        for _ in range(50):
            got = json.loads(ran("iperf3", "-c", HOST, "-p", str(port), "-n", "8M", "-P", "2", "--json", *extra))
            # The server is still busy with the end of the previous test.
            if "busy" not in got.get("error", ""):
                break
            time.sleep(0.1)
        same(got.get("error"), None, f"iperf3 {' '.join(extra)}")
        same(got["end"]["sum_sent"]["bytes"] >= 8 << 20 and got["end"]["sum_received"]["bytes"] > 0, True, "bytes")


# --- running them ---


def main():
    protocol, port, folder, threads, amount = sys.argv[1:]
    session, port, folder = globals()[protocol], int(port), Path(folder)
    right, wrong, lock = [0], collections.Counter(), threading.Lock()
    end = time.monotonic() + float(amount[:-1]) if amount.endswith("s") else None

    def run():
        done = 0
        while time.monotonic() < end if end else done < int(amount):
            done += 1
            try:
                session(port, folder)
            except Exception as error:
                with lock:
                    wrong[f"{type(error).__name__}: {error}"[:300]] += 1
                # A client that is refused must not try a thousand times.
                time.sleep(0.1)
            else:
                with lock:
                    right[0] += 1

    all_threads = [threading.Thread(target=run) for _ in range(int(threads))]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    print(json.dumps({"right": right[0], "wrong": wrong}))


if __name__ == "__main__":
    main()
