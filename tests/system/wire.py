# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The control protocol by hand, for peers that are not ours: proto/mperf.proto, proto/frame.h."""
import socket
import subprocess


def field(number, value):
    """One protobuf field: a varint or length-delimited bytes. Source: protobuf's encoding guide."""
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes(out) + bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def frame(message):
    return len(message).to_bytes(4, "little") + message


def hello(major, minor=0, software=b"mperfd 9.9"):
    return frame(field(1, field(1, major) + field(2, minor) + field(3, software) + field(4, 1 << 20)))


def fields(message):
    """(number, value) of each field of a protobuf message that has varints and bytes alone."""
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    found = []
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        elif key & 7 == 2:
            n = varint()
            found.append((key >> 3, message[at:at + n]))
            at += n
        else:
            size = {1: 8, 5: 4}[key & 7]
            found.append((key >> 3, message[at:at + size]))
            at += size
    return found


# Cases of Answer.body and of Request.body.
READY, BYTES, DONE, FAILURE = 2, 5, 8, 9
RECORD, LIST, FINISH, CANCEL = 2, 6, 8, 9


class Private:
    """An mperfd of our own at the other end of a socket pair."""

    def __init__(self, build, **environment):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(60)
        self.process = subprocess.Popen([build / "mperfd", f"--private={theirs.fileno()}"],
                                        pass_fds=[theirs.fileno()], stderr=subprocess.PIPE,
                                        **environment)
        theirs.close()
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def request(self, number, case, body):
        self.send(frame(field(2, field(1, number) + field(case, body))))

    def message(self):
        """The next message's fields; None when mperfd hung up."""
        while True:
            if len(self.buffer) >= 4:
                n = int.from_bytes(self.buffer[:4], "little")
                if len(self.buffer) >= 4 + n:
                    whole, self.buffer = self.buffer[4:4 + n], self.buffer[4 + n:]
                    return fields(whole)
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            self.buffer += more

    def answer(self, *cases):
        """Skip to an answer of one of the cases: (case, its content)."""
        while True:
            got = self.message()
            assert got is not None, "mperfd hung up"
            for number, value in got:
                for case, content in fields(value) if number == 3 else []:
                    if case in cases:
                        return case, content

    def end(self):
        """Hang up; (exit status, what it said on stderr)."""
        self.socket.close()
        said = self.process.communicate(timeout=30)[1].decode(errors="replace")
        return self.process.returncode, said
