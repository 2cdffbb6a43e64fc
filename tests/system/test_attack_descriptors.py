# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A descriptor that an ordinary user sends along, and that takes long to close, stops nothing: neither where
the kernel refuses it (Linux 6.16), nor on older kernels, which a preloaded library stands for."""
import array
import contextlib
import os
import shutil
import signal
import socket
import struct
import threading
import time
from pathlib import Path

import feed_program as feed
from attacked import VICTOR, Stage, shared
from machine import compile_program
from service import wait_until
from test_attack_turns import as_mallory
from wire import DONE, FAILURE, STATUS, Client, field, frame

SECONDS = 30

LINGER_S = 40  # for so long the loop would stand
MANY = 5       # connections of one user
stages = {True: [], False: []}


class Old(Stage):
    """A service on a kernel that does not know SO_PASSRIGHTS."""

    def start(self, ready=True, **popen):
        library = self.folder / "no_passrights.so"
        shutil.copy(compile_program(self.build, "no_passrights.c", "-shared", "-fPIC"), library)
        library.chmod(0o755)
        return super().start(ready, env={"LD_PRELOAD": str(library)}, **popen)


def service_of(build, old):
    return shared(stages[old], lambda: (Old if old else Stage)(
        build, clients_per_user_max=str(MANY), programs_per_user_max=str(MANY)))


class Lingering:
    """A TCP socket that takes LINGER_S to close, since its peer, which stays open, does not read."""

    every = []

    def __init__(self):
        self.every.append(self)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        self.socket = socket.socket()
        self.socket.connect(listener.getsockname())
        self.peer, _ = listener.accept()
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.send(b"x" * 65536)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))

    def send_over(self, to, data):
        """With data; whether the kernel let it. Nobody but the receiver has it afterwards."""
        rights = array.array("i", [self.socket.fileno()])
        try:
            to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        finally:
            os.close(self.socket.detach())
        return True


def client_with(service):
    """A connected client that has sent a descriptor with a request; None: the kernel refused."""
    client = Client(service.socket)
    return client.socket if Lingering().send_over(
        client.socket, frame(field(2, field(1, 1) + field(STATUS, b"")))) else None


def program_with(service):
    program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program.connect(str(service.feed))
    program.send(feed.hello())
    return program if Lingering().send_over(program, feed.round_()) else None


def said_until_the_end(connection):
    said = b""
    connection.settimeout(LINGER_S)
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(1 << 16):
            said += more
    return said.decode(errors="replace")


def status_for_mallory(service):
    """What mperfd answers: a status, or why not."""
    with Client(service.socket) as client:
        with contextlib.suppress(BrokenPipeError):  # a connection too many is told so, and closed, unasked
            client.request(1, STATUS, b"")
        case, content = client.answer(DONE, FAILURE)
        return "" if case == DONE else content.decode(errors="replace")


def sent(service, *connect):
    """As Mallory, with each of these: what was said on each connection, None where the kernel refused, and
    what Mallory was then told. The daemon is stopped while they send, so that it is not they who close the
    descriptor last."""
    read_end, write_end = os.pipe()

    def send():
        connections = [c(service) for c in connect]
        os.write(write_end, b"x")
        began = time.monotonic()
        said = [c and said_until_the_end(c) for c in connections]
        told = status_for_mallory(service)
        assert time.monotonic() - began < LINGER_S / 2, "the loop stood still"
        return said, told

    def go_on():
        os.read(read_end, 1)
        service.process.send_signal(signal.SIGCONT)
    service.process.send_signal(signal.SIGSTOP)
    wait_until("mperfd is stopped", lambda: " T " in Path(f"/proc/{service.process.pid}/stat").read_text())
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        said, told = as_mallory(send)
    finally:
        os.close(write_end)
        thread.join()
        os.close(read_end)
    assert service.user(VICTOR, "status", timeout=LINGER_S).returncode == 0
    return said, told


def test_a_kernel_that_can_refuses_descriptors(build):
    said, told = sent(service_of(build, False), client_with, program_with)
    assert told == ""
    assert said == [None, None] or "sent descriptors" in said[0], said  # before Linux 6.16


def test_a_client_that_sends_a_descriptor_is_disconnected(build):
    said, told = sent(service_of(build, True), client_with)
    assert "sent descriptors" in said[0] and told == "", (said, told)


def test_a_program_that_sends_a_descriptor_is_disconnected(build):
    service = service_of(build, True)
    said, told = sent(service, program_with)
    assert said == [""] and told == "", (said, told)
    assert {row["cause"]: row["count"] for row in service.ask("status")["feed_fault"]}["sent descriptors"] == 1


def test_connections_that_take_long_to_close_are_their_users(build):
    """Until they are closed they count as connections, so there are no more of them."""
    said, told = sent(service_of(build, True), *[client_with] * (MANY + 2))
    assert sum("sent descriptors" in s for s in said) >= MANY, said
    assert sum("clients-per-user-max" in s for s in said) <= 2, said
    assert "clients-per-user-max" in told, told
