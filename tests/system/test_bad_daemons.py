# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Daemons of another version, that make no sense, hang up or are not there."""
import os
import re
import shutil
import socket
import subprocess
import threading

from machine import Folder, refused
from recorded import fails
from wire import field, frame, hello


# --- daemons of another kind ---------------------------------------------------------------------

class FakeDaemon:
    """Answers the client's hello with one text and its request with another, then hangs up."""

    def __init__(self, folder, says):
        self.path = folder / "socket"
        self.says = says
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(4)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            peer, _ = self.listener.accept()
            with peer:
                peer.settimeout(5)
                for text in self.says:
                    peer.recv(65536)
                    peer.sendall(text)
        except OSError:
            pass

    def stop(self):
        self.listener.close()
        self.thread.join(10)
        self.path.unlink()


def meet(build, says, words, *command):
    with Folder() as folder:
        fake = FakeDaemon(folder, says)
        try:
            fails(build, 1, words, *(command or ["list"]), env={"MPERF_SOCKET": str(fake.path)},
                  timeout=60, cwd=folder)
        finally:
            fake.stop()
        assert os.listdir(folder) == [], os.listdir(folder)


def test_a_newer_or_older_daemon_is_named_with_its_version(build):
    meet(build, [hello(2, 3)], ["mperfd 9.9", r"2\.3", "Update mperfctl"])
    meet(build, [hello(0, 9, b"mperfd 0.0")], ["mperfd 0.0", r"0\.9", "Update mperfd"])
    meet(build, [hello(2, 3, b"\x1b[31mevil\x07")], [r"\\x1b\[31mevil\\x07", "Update mperfctl"],
         "record", "-o", "r", "--", "true")


def test_an_older_daemon_is_not_asked_what_it_does_not_know(build):
    for command, words in ((("hotspots", "--wall", "--since=-5m"), "wall time"),
                           (("timeline", "--since=-5m"), "a timeline"), (("job", "report", "a"), "a report on a job")):
        meet(build, [hello(1, 5, b"mperfd 0.0")], ["mperfd 0.0", "older than this mperfctl", words, "Update mperfd"], *command)


def test_a_daemon_that_makes_no_sense_is_told_as_such(build):
    foreign = ["protocol", "MPERF_SOCKET"]
    meet(build, [b"HTTP/1.1 200 OK\r\n\r\n" * 10], foreign)
    meet(build, [frame(b"\xff" * 40)], foreign)
    meet(build, [frame(field(3, field(1, 1)))], foreign)  # an answer before any hello
    meet(build, [frame(b"")], foreign)
    strange = ["protocol", "version"]
    meet(build, [hello(1), frame(b"\xff" * 40)], strange)
    meet(build, [hello(1), (1 << 30).to_bytes(4, "little")], strange)


def test_a_daemon_that_hangs_up_is_told_as_such(build):
    gone = ["hung up|gone|ended", "again|restart|journal"]
    meet(build, [], gone)
    meet(build, [hello(1)[:9]], gone)
    meet(build, [hello(1), b""], gone)
    # An answer that breaks off in the middle of a frame: Answer{id=1, columns}.
    half = frame(field(3, field(1, 1) + field(3, field(1, field(1, b"topic")))))
    meet(build, [hello(1), half[:-3]], gone)
    meet(build, [hello(1), half[:2]], gone)
    meet(build, [hello(1), b""], gone, "stat", "--", "true")
    meet(build, [hello(1), b""], gone, "record", "-o", "r", "--", "true")
    meet(build, [hello(1), b""], gone, "hotspots", "--since=-5m")


def test_rows_that_do_not_fit_their_columns_are_no_crash(build):
    # Columns with one column, then a row of two values, then a Done.
    columns = frame(field(3, field(1, 1) + field(3, field(1, field(1, b"topic")))))
    value = field(1, field(1, b"x"))
    row = frame(field(3, field(1, 1) + field(4, field(1, value + value))))
    none = frame(field(3, field(1, 1) + field(4, field(1, value))))  # before any columns
    done = frame(field(3, field(1, 1) + field(8, b"")))
    for says in columns + row + done, none + done:
        meet(build, [hello(1), says], ["mperfd sent", "version"])


def test_no_daemon_at_the_socket_is_told_with_its_path(build):
    with Folder() as folder:
        fails(build, 1, [re.escape(str(folder / "nothing")), "MPERF_SOCKET"], "list",
              env={"MPERF_SOCKET": str(folder / "nothing")})
        fails(build, 1, ["no-mperfd", r"\. \S"], "list", env={"MPERFD": str(folder / "no-mperfd")})
        shutil.copy(build / "mperfctl", folder / "mperfctl")
        shutil.copy(build / "mperfd", folder / "mperfd")  # but no namer
        done = subprocess.run([folder / "mperfctl", "record", "-o", folder / "r", "--", "true"],
                              text=True, capture_output=True, timeout=60,
                              env=dict(os.environ, TMPDIR=str(folder)))
        if not os.path.exists("/usr/local/libexec/mperf/mperf-namer"):
            refused(done, 1, "mperf-namer", r"\. \S")
        assert sorted(os.listdir(folder)) == ["mperfctl", "mperfd"], os.listdir(folder)
