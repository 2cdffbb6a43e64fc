# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What top and status say of this machine: real programs through the real daemon."""
import json
import os
import select
import struct
import subprocess
import time

from machine import Folder, NOBODY, compile_program, everybodys, mperfctl, need_root, refused
from service import Service, wait_until
from wire import Client, DONE, FAILURE, READY, TOP, field, fields, frame

SECONDS = 14

COLUMNS, ROWS, PROVENANCE = 3, 4, 7
SPIN = ["sh", "-c", "while :; do :; done"]


class Busy:
    """A program that runs until the end of the block."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen([str(c) for c in command], **options)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def frames(build, *arguments, **options):
    done = mperfctl(build, "top", "--json", *arguments, timeout=120, **options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def share_of(frame_, key, name):
    return sum(row["self"] or 0 for row in frame_["rows"] if row[key] == name)


# --- a daemon of its own -------------------------------------------------------------------------

def test_top_shows_what_runs_and_whose_it_is(build):
    need_root()
    with Busy(*SPIN) as busy:
        found = frames(build, "--by", "process", "--frames", "2")
    for one in found:
        row = next(row for row in one["rows"] if row["pid"] == busy.pid)
        assert row["comm"] == "sh" and "while" in row["argv"], row
        assert one["provenance"]["samples"] > 50, one["provenance"]
    harts = found[1]["harts"]
    assert [h["hart"] for h in harts] == sorted(os.sched_getaffinity(0)), harts
    assert max(h["load"] for h in harts) > 0.5 and all(h["load"] <= 1.001 for h in harts), harts
    assert sum(h["samples"] for h in harts) == found[1]["provenance"]["samples"], found[1]


def test_functions_bear_the_process_that_spends_most_in_them(build):
    need_root()
    with Busy(*SPIN) as busy:
        one = frames(build, "--pid", busy.pid, "--frames", "2")[1]
    own = [row for row in one["rows"] if row["self"]]
    assert own and all(row["process"] == "sh" for row in own), one["rows"]


def test_top_ends_with_the_process_it_was_for(build):
    with Busy("sleep", "1.5") as busy:
        done = mperfctl(build, "top", "-b", "--pid", busy.pid, "-d", "200ms", timeout=60,
                        check=False)
    assert done.returncode == 0, done


def test_a_process_that_is_not_there_is_named(build):
    done = mperfctl(build, "top", "-b", "--pid", 2 ** 22 + 1, check=False)
    refused(done, 1, "4194305")


def test_without_a_service_there_is_no_status(build):
    environment = dict(os.environ, NO_COLOR="1")
    environment.pop("MPERF_SOCKET", None)
    if os.path.exists("/run/mperf"):  # this machine's own is out of sight in a namespace of mounts
        need_root()
        hidden = ["unshare", "-m", "sh", "-ec", 'mount -t tmpfs none /run; exec "$@"', "sh"]
    else:
        hidden = []
    done = subprocess.run([*hidden, build / "mperfctl", "status"], text=True, capture_output=True,
                          env=environment, timeout=60)
    refused(done, 1, "no mperfd", "systemctl start mperfd")


# --- through the service -------------------------------------------------------------------------

class Top:
    """A top by hand: what a client that is not ours may do."""

    def __init__(self, service, *extra, interval_ms=100):
        self.client = Client(service.socket)
        self.client.request(1, TOP, field(1, interval_ms) + b"".join(extra))
        self.client.answer(READY)

    def frame(self):
        """The tables of one frame: {name: [[values]]}."""
        tables, name = {}, None
        while True:
            case, body = self.client.answer(COLUMNS, ROWS, PROVENANCE, DONE, FAILURE)
            if case in (DONE, FAILURE):
                raise AssertionError((case, body))
            if case == PROVENANCE:
                return tables
            if case == COLUMNS:
                name = dict(fields(body)).get(2, b"").decode()
                tables[name] = []
            else:
                tables[name] += [[self.value(v) for n, v in fields(row)]
                                 for _, row in fields(body)]

    @staticmethod
    def value(body):
        """Text, a signed integer (zigzag), a double, or None."""
        for number, value in fields(body):
            return (value.decode() if number == 1 else (value >> 1) ^ -(value & 1)
                    if number == 2 else struct.unpack("<d", value)[0])
        return None


def test_the_rate_is_raised_for_top_and_goes_back(build):
    with Folder() as folder, Service(build, folder, keep="no", rate="50", top_rate="70") as service:
        # rates that no kernel refuses: it never lowers its limit below its tick rate
        def rate():
            return service.ask("status")["rate"][0]["hz"]
        assert rate() == 50
        one = Top(service)
        assert one.frame()["harts"] and rate() == 70
        two = Top(service, field(2, 90))
        assert two.frame()["harts"] and rate() == 90
        two.client.socket.close()
        wait_until("the rate is that of one top", lambda: rate() == 70)
        one.client.send(frame(field(2, field(1, 2) + field(8, field(1, 1)))))
        one.client.answer(DONE)
        wait_until("the rate is that of nobody", lambda: rate() == 50)


def test_who_does_not_read_gets_fewer_frames(build):
    with Folder() as folder, Service(build, folder, keep="no") as service:
        slow, quick = Top(service), Top(service)
        slow.frame()
        began, n = time.monotonic(), 0
        while time.monotonic() < began + 2:
            quick.frame()
            n += 1
        assert n >= 5, n
        late = 0
        while select.select([slow.client.socket], [], [], 0)[0] and late < n:
            slow.frame()
            late += 1
        # one that was sent, and what came while we looked; not all that it missed
        assert late <= 1 + n // 2, (late, n)
        assert slow.frame()["harts"]


def test_callers_of_a_function_share_its_time(build):
    program = compile_program(build, "depth.c", "-O0", "-fno-omit-frame-pointer")
    with Folder() as folder, Service(build, folder, keep="no", top_rate="2000") as service, \
            Busy(program, "5", stdout=subprocess.DEVNULL) as busy:
        top = Top(service, field(8, field(2, busy.pid)), interval_ms=500)
        def highest(of):  # by self in a table of functions, by total in one of callers: their fourth column
            rows = of.frame().get("function")
            return rows and max(rows, key=lambda row: row[3] or 0)[0], rows
        # at first its code has no names yet
        wait_until("the program's function", lambda: highest(top)[0] == "spin")
        callers = Top(service, field(6, b"spin"), field(8, field(2, busy.pid)), interval_ms=500)
        rows = wait_until("its caller", lambda: (lambda name, rows: name == "descend" and rows)(*highest(callers)))
        # function, module, self, total
        assert abs(sum(row[3] for row in rows) - 1) < 1e-6, rows
        assert all(0 <= row[2] <= row[3] + 1e-9 for row in rows), rows


def test_a_user_sees_his_own_alone(build):
    need_root()
    with Folder() as folder:
        environment = everybodys(build, folder)
        with Service(build, folder, keep="no") as service, Busy(*SPIN), \
                Busy(*NOBODY, "sh", "-c", "while :; do :; done") as own:
            def ask(*arguments):
                done = subprocess.run(
                    [*NOBODY, folder / "mperfctl", "top", "--json", "--frames", "2", *arguments],
                    env=dict(os.environ, MPERF_SOCKET=str(service.socket), **environment),
                    text=True, capture_output=True, timeout=60)
                assert done.returncode == 0, done
                return json.loads(done.stdout.splitlines()[-1])
            found = ask("--by", "process")
            assert own.pid in [row["pid"] for row in found["rows"]], found["rows"]
            for row in found["rows"]:
                assert row["pid"] == own.pid or row["comm"] in ("mperfctl", "setpriv", "sh"), row
            modules = {row["module"] for row in ask("--by", "module")["rows"]}
            assert not any(m.startswith("[") and m not in ("[kernel]", "[unknown]", "[vdso]",
                                                            "[anonymous]")
                           for m in modules), modules
            functions = ask()["rows"]
            assert all(row["function"] == "[kernel]" for row in functions
                       if row["module"] == "[kernel]"), functions
            done = subprocess.run(
                [*NOBODY, folder / "mperfctl", "top", "-b", "--pid", "1"], text=True,
                env=dict(os.environ, MPERF_SOCKET=str(service.socket), **environment),
                capture_output=True, timeout=60)
            refused(done, 1, "mperf")


def test_what_top_may_not_be_asked(build):
    with Folder() as folder, Service(build, folder, keep="no") as service:
        for body, word in ((field(3, b"line"), "line"), (field(3, b"colour"), "colour"),
                           (field(1, 1), "interval"), (field(2, 10 ** 6), "samples a second"),
                           (field(5, 10 ** 6), "rows"),
                           (field(4, field(7, b"no-such-event")), "no-such-event")):
            client = Client(service.socket)
            client.request(1, TOP, body)
            case, content = client.answer(FAILURE, DONE)
            assert case == FAILURE and word.encode() in content, (body, content)
        assert Top(service).frame()["harts"]


def test_samples_of_status_add_up(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service, Busy(*SPIN):
        def sums():
            found = service.ask("status")
            row = next(r for r in found["account"] if r["period"] == "since start")
            return row["stored"] > 0 and (row, found)
        row, found = wait_until("something is stored", sums)
        assert row["taken"] == row["stored"] + row["in_hand"] + row["lost"], row
        names = [p["what"] for p in found["process"]]
        assert names[:3] == ["daemon", "opener", "parser"] and names[-1] == "all", names
        for process in found["process"][:3]:
            assert process["cpu_ns"] > 0 and process["rss"] <= process["peak"], process
        assert found["store"][0]["bytes"] > 0, found["store"]
