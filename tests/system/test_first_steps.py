# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What somebody meets who has just started the service: the commands of the README work with it as
they do without, and what he does not see he is told of."""
import fcntl
import json
import os
import re
import struct
import subprocess
import termios
from contextlib import contextmanager

from fake_daemon import BYTES, NONE, TIME, FakeDaemon, columns, done, rows
from machine import (Folder, as_nobody, compile_program, everybodys, mperfctl, need_root,
                     refused)
from rates import rate_allowed
from service import Service, wait_until

ONLY_OWN = "only your own processes"
NO_GROUP = "mperf-not-there"


@contextmanager
def scene(build, **keys):
    """A service, and what mperfctl is run with as a user without rights."""
    need_root()
    with Folder() as folder:
        environment = everybodys(build, folder)
        with Service(build, folder, **keys) as service:
            yield service, dict(environment, MPERF_SOCKET=str(service.socket))


def nobody(service, environment, *arguments):
    return as_nobody(service.folder, environment, *arguments)


def spinning(program):
    """A command that spends half a second in that program's spin(), and says nothing."""
    return ["sh", "-c", f"{program} spin 500 > /dev/null"]


def top_function(text):
    return json.loads(text)["rows"][0]["function"]


def test_a_command_is_measured_through_the_service_and_its_file_read(build):
    with scene(build, keep="no") as (service, _):
        there, known = service.folder / "tmp", compile_program(build, "known.c")
        hz = rate_allowed(999)
        found = service.ctl("hotspots", "-F", hz, "--json", "--", *spinning(known), cwd=there)
        assert "spin" in top_function(found.stdout), found.stdout
        service.ctl("record", "-F", hz, "-o", "run.mprf", "--", *spinning(known), cwd=there)
        for arguments in (["-i", "run.mprf"], ["-i", there / "run.mprf"]):
            found = service.ctl("hotspots", "--json", *arguments, cwd=there)
            assert "spin" in top_function(found.stdout), found.stdout
        service.ctl("flamegraph", "-i", "run.mprf", "-o", "run.html", cwd=there)
        assert "spin" in (there / "run.html").read_text()
        assert "run.mprf" not in service.ctl("doctor", "-i", "run.mprf", cwd=there).stderr


def rights(text):
    return [line for line in text.splitlines() if " rights: " in line]


def test_doctor_says_the_same_of_rights_with_and_without_a_recording(build):
    with scene(build, keep="no") as (service, environment):
        there, known = service.folder / "tmp", compile_program(build, "known.c")
        service.ctl("record", "-F", rate_allowed(99), "-o", "run.mprf", "--", *spinning(known), cwd=there)
        (there / "run.mprf").chmod(0o644)
        plain, with_file = (nobody(service, environment, "doctor", *more).stdout
                            for more in ([], ["-i", there / "run.mprf"]))
        assert rights(plain) and rights(plain) == rights(with_file), (plain, with_file)


def test_a_user_without_rights_measures_through_the_service(build):
    with scene(build, keep="no") as (service, environment):
        # a copy: the build folder may be nobody else's to enter
        program = service.folder / "tmp" / "known"
        program.write_bytes(compile_program(build, "known.c").read_bytes())
        program.chmod(0o755)
        done = nobody(service, environment, "hotspots", "-F", rate_allowed(999), "-e", "cpu-clock",
                      "--json", "--", *spinning(program))
        assert done.returncode == 0 and "spin" in top_function(done.stdout), done
        done = nobody(service, environment, "hotspots", "-i", "/etc/shadow")
        refused(done, 1, "/etc/shadow")


def test_who_sees_his_own_alone_is_told_so(build):
    with scene(build, flush="1s") as (service, environment):
        def kept():
            done = service.ctl("hotspots", "--since=-1h", "--json", check=False)
            return done.returncode == 0 and json.loads(done.stdout)
        found = wait_until("something is kept", kept)
        assert not any(ONLY_OWN in note for note in found["provenance"]["notes"]), found
        done = nobody(service, environment, "hotspots", "--since=-1h", "--json")
        assert any(ONLY_OWN in note and "the group mperf" in note
                   for note in json.loads(done.stdout)["provenance"]["notes"]), done
        done = nobody(service, environment, "top", "--frames", "1")
        assert f"{ONLY_OWN} (the group mperf sees all)" in done.stdout, done
        done = nobody(service, environment, "flamegraph", "--since=-1h", "-o", "flame.html")
        assert ONLY_OWN in done.stderr, done
        done = nobody(service, environment, "hotspots", "--since=-1h", "--comm", "nobody-s")
        assert done.returncode == 0 and re.search("no samples match; .*--since", done.stderr), done


def test_a_group_that_is_not_there_is_told(build):
    with scene(build, keep="no", group=NO_GROUP) as (service, environment):
        assert re.search(f"no group '{NO_GROUP}'.*groupadd", service.said()), service.said()
        refused(nobody(service, environment, "record", "-a", "--for", "1s"), 1, "whole system",
                f"groupadd --system {NO_GROUP}")


def test_a_file_needs_no_service(build):
    with FakeDaemon(None) as daemon, Folder() as folder:
        (folder / "mperf.mprf").write_text("no recording")
        done = mperfctl(build, "hotspots", check=False, cwd=folder,
                        env={"MPERF_SOCKET": str(daemon.path)})
        assert done.returncode == 1, done
        assert re.search(r"reading \./mperf\.mprf\.\n.*mperf\.mprf is not an mperf recording",
                         done.stderr), done.stderr
        assert daemon.requests == [], daemon.requests


def on_terminal(environment, width, *command):
    """What a command prints on a terminal of that width."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    ended = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=theirs,
                          timeout=60, env=dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8",
                                               TERM="xterm", COLUMNS="", **environment))
    os.close(theirs)
    assert ended.returncode == 0, ended
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return text.replace("\r\n", "\n")


def test_store_fits_a_narrow_terminal_and_tells_all_on_a_wide_one(build):
    name, since, until = ("window/20261121T155928Z-9b4f0e2f.mprf", "2026-11-21T15:59:28+00:00",
                          "2026-11-21T16:59:28+00:00")
    sent = (columns("file", ("tier", "Tier", NONE), ("file", "File", NONE), ("since", "Since", TIME),
                    ("until", "Until", TIME), ("bytes", "Size", BYTES), ("state", "State", NONE)),
            rows(("window", name, since, until, 4 << 20, "sealed")))

    def answer(daemon, connection, request):
        daemon.send(connection, request.number, *sent, done())
    with FakeDaemon(answer) as daemon:
        def shown(width):
            return on_terminal({"MPERF_SOCKET": str(daemon.path)}, width, build / "mperfctl",
                               "store")
        narrow, wide = shown(80), shown(140)
    assert all(len(line) <= 80 for line in narrow.splitlines()), narrow
    assert "…" not in narrow and name in narrow and "2026-11-21 15:59:28  sealed" in narrow, narrow
    assert "2026-11-21 16:59:28" in wide and "Tier" in wide, wide


def test_slips_of_the_first_minute_are_answered(build):
    assert mperfctl(build, "help", "help").stdout == mperfctl(build, "--help").stdout
    refused(mperfctl(build, "version", check=False), 2, "Did you mean `mperfctl --version`")
    refused(mperfctl(build, "halp", check=False), 2, "Did you mean `mperfctl help`")
    refused(mperfctl(build, "frobnicate", check=False), 2, "`mperfctl --help`")
