# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A daemon that answers what a test tells it to: the client's other end, without measuring."""
import os
import socket
import struct
import threading
from pathlib import Path

from machine import Folder
from wire import field, fields, frame, hello

NONE, COUNT, NS, BYTES, SHARE, RATIO, HZ, TIME = range(8)  # Unit
TOP, STATUS, STORE, HOTSPOTS, FLAMEGRAPH, CANCEL = 10, 11, 12, 3, 4, 9  # Request.body


def text(value):
    return value if isinstance(value, bytes) else value.encode()


def value(v):
    """A Value: None is not measured."""
    if v is None:
        return b""
    if isinstance(v, float):
        return bytes([3 << 3 | 1]) + struct.pack("<d", v)
    if isinstance(v, int):
        return field(2, v << 1 if v >= 0 else (-v << 1) - 1)
    return field(1, text(v))


def columns(table, *named):
    """Columns of a table: (name, title, unit) each."""
    body = b"".join(field(1, field(1, text(n)) + field(2, text(t)) + field(3, u))
                    for n, t, u in named)
    return field(3, body + field(2, text(table)))


def rows(*each):
    return field(4, b"".join(field(1, b"".join(field(1, value(v)) for v in row)) for row in each))


def provenance(samples=198, hz=99, lost=0, seconds=1.0, event="cpu-clock"):
    def real(number, v):
        return bytes([number << 3 | 1]) + struct.pack("<d", v)
    body = field(1, text(event)) + field(2, b"d: cpu-clock alone") + field(3, hz)
    body += field(4, samples)
    if lost:
        body += field(5, field(1, b"ring overrun") + field(2, lost) + field(3, 1))
    return field(7, body + real(6, 0.987) + real(7, seconds))


def done(status=0):
    return field(8, field(1, status))


def failure(kind, what, remedy):
    return field(9, field(1, kind) + field(2, text(what)) + field(3, text(remedy)))


CANCELLED = 6
READY = field(2, field(1, b""))


class Request:
    """One request as it came: its number, its case and the fields of its body."""

    def __init__(self, raw):
        self.number = self.case = None
        self.body = []
        for key, content in fields(raw):
            if key == 1:
                self.number = content
            else:
                self.case, self.body = key, fields(content)

    def first(self, key, default=None):
        return next((v for k, v in self.body if k == key), default)

    def all(self, key):
        return [v for k, v in self.body if k == key]

    def text(self, key):
        return self.first(key, b"").decode()


class FakeDaemon:
    """Listens at self.path; answer(daemon, connection, request) runs in a thread per connection
    for each request that is no Cancel, and may send and return. `requests` is what came."""

    def __init__(self, answer):
        self.folder = Folder()
        self.path = Path(self.folder.name) / "socket"
        self.requests = []
        self.answer = answer
        self.cancelled = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        os.chmod(self.path, 0o666)
        self.listener.listen(8)
        self.connections, self.threads = [], []
        self.start(self.accept)

    def start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self.start(self.serve, connection)

    def serve(self, connection):
        buffer = b""
        try:
            connection.sendall(hello(1, 6))
            while True:
                more = connection.recv(1 << 16)
                if not more:
                    return
                buffer += more
                while len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4], "little"):
                    n = int.from_bytes(buffer[:4], "little")
                    message, buffer = buffer[4:4 + n], buffer[4 + n:]
                    for key, content in fields(message):
                        if key == 2:
                            self.take(connection, Request(content))
        except OSError:
            pass

    def take(self, connection, request):
        if request.case == CANCEL:
            self.cancelled.set()
            self.send(connection, request.first(1), failure(CANCELLED, "cancelled", ""))
            return
        self.requests.append(request)
        self.cancelled.clear()
        self.start(self.run, connection, request)

    def run(self, connection, request):
        try:
            self.answer(self, connection, request)
        except OSError:
            pass  # the client has gone, as clients may

    def send(self, connection, number, *answers):
        connection.sendall(b"".join(frame(field(3, field(1, number) + a)) for a in answers))

    def hang_up(self):
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other end was faster

    @property
    def environment(self):
        return dict(os.environ, MPERF_SOCKET=str(self.path), NO_COLOR="1", LC_ALL="C.UTF-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Nothing is closed under a thread that may still use it: the number would be another
        # socket's soon, and the thread that one's.
        self.cancelled.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join()
        self.hang_up()
        for thread in list(self.threads):
            thread.join(30)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.folder.cleanup()
