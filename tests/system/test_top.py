# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""top as people see it, in a terminal and in a pipe; status, store and queries of what is kept.

The daemon is one that tells what the test wants (fake_daemon.py), so that every figure on the
screen is known; what a real one answers is tested where the daemon is.
"""
import json
import os
import re
import signal
import subprocess
import time

import top_frames
from fake_daemon import (BYTES, COUNT, FLAMEGRAPH, HOTSPOTS, NONE, NS, READY, STATUS, STORE,
                         FakeDaemon, columns, done, failure, provenance, rows)
from machine import (BAD_WORDS, Folder, compile_program, mperfctl, need_program, need_root,
                     refused)
from wire import fields

SECONDS = 11
WAITS = "frames of top"


def top(build, daemon, *arguments, **options):
    options.setdefault("env", {})["MPERF_SOCKET"] = str(daemon.path)
    return mperfctl(build, "top", *arguments, timeout=60, **options)


# --- frames as text ------------------------------------------------------------------------------

def test_frames_are_text_where_there_is_no_terminal(build):
    with FakeDaemon(top_frames.stream(lost=7)) as daemon:
        found = top(build, daemon, "--frames", "2", "-d", "100ms", "--limit", "5", "-F", "499")
        request = daemon.requests[0]
    assert not found.stderr, found.stderr
    assert found.stdout.count("99 Hz  198 samples/s  lost 7  98.7 % named\n") == 2, found.stdout
    assert found.stdout.count("hart  1 ") == 2 and "\x1b" not in found.stdout, found.stdout
    assert re.search(r"40\.00 %.*sqlite3VdbeExec +/usr/lib.*cc1plus", found.stdout), found.stdout
    assert r"\x1b[2J\x1b]0;owned\x07evil" in found.stdout, found.stdout
    assert r"\u{202e}" in found.stdout, found.stdout
    assert (request.first(1), request.first(2), request.text(3), request.first(5)) == \
        (100, 499, "function", 5), request.body


def test_json_has_an_object_per_frame_and_line(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        lines = top(build, daemon, "--json", "--frames", "3", "-d", "100ms").stdout.splitlines()
    assert len(lines) == 3, lines
    for frame in map(json.loads, lines):
        assert set(frame) == {"time", "by", "harts", "rows", "provenance"}, frame
        assert abs(frame["time"] - time.time()) < 60 and frame["by"] == "function", frame
        assert [h["hart"] for h in frame["harts"]] == [0, 1] and frame["harts"][0]["ipc"] is None
        assert frame["rows"][0]["function"] == "sqlite3VdbeExec", frame["rows"][0]
        assert frame["rows"][-1]["function"] is None, frame["rows"][-1]


def test_raw_frames_are_tables_in_tabs(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        found = top(build, daemon, "--raw", "--frames", "1", "--by", "process").stdout
    first, second = found.split("\n\n")
    assert first.splitlines()[0].split("\t")[:3] == ["load", "user", "kernel"], first
    assert second.splitlines()[0].split("\t")[-3:] == ["comm", "pid", "argv"], second


def test_filters_are_told_to_the_daemon(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        found = top(build, daemon, "--frames", "1", "--pid", "12,13", "--comm", "cc1", "--cpu", "0-1",
                    "--cgroup", "/a/")
        request = daemon.requests[0]
    asked = fields(request.first(4))
    assert [v for k, v in asked if k == 2] == [b"cc1"] and (3, b"/a/") in asked, asked
    target = request.first(8)
    assert target in (b"\x12\x02\x0c\x0d", b"\x10\x0c\x10\x0d"), target  # not all; packed or not
    assert "; process 12, 13; named cc1; in /a/; on hart 0,1\n" in found.stdout, found.stdout


def test_a_reader_that_leaves_ends_top(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        done_ = subprocess.run(["bash", "-c", '"$0" top -d 100ms | head -1; echo "${PIPESTATUS[0]}"',
                                build / "mperfctl"], env=daemon.environment, text=True,
                               capture_output=True, timeout=60)
    lines = done_.stdout.splitlines()
    assert "samples/s" in lines[0] and lines[1] == "141", done_
    assert not done_.stderr, done_.stderr


def test_the_first_frame_is_printed_before_the_second_comes(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        process = subprocess.Popen([build / "mperfctl", "top", "-d", "60s"], text=True,
                                   stdout=subprocess.PIPE, env=daemon.environment)
        assert "samples/s" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stdout.close()


def test_top_ends_after_its_time(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        begin = time.monotonic()
        top(build, daemon, "--for", "700ms", "-d", "60s")
        assert 0.6 < time.monotonic() - begin < 40


def test_a_full_disc_is_said(build):
    with FakeDaemon(top_frames.stream()) as daemon, open("/dev/full", "w") as full:
        process = subprocess.run([build / "mperfctl", "top", "--frames", "3"], stdout=full,
                                 stderr=subprocess.PIPE, text=True, env=daemon.environment,
                                 timeout=60)
    assert process.returncode == 1, process
    assert re.fullmatch(r"mperfctl: cannot write to stdout: No space left.*Free some space.*\n",
                        process.stderr), process.stderr


def test_a_daemon_that_refuses_is_told_with_the_remedy(build):
    def answer(daemon, connection, request):
        daemon.send(connection, request.number,
                    failure(2, "you may not see other users' processes", "Join the group mperf"))
    with FakeDaemon(answer) as daemon:
        refused(top(build, daemon, check=False), 1, "you may not see", "group mperf")


def test_frames_that_are_none_are_refused(build):
    figures = (0.5, 0.5, 0.25, 0.25)
    bad = {
        "rows before columns": [rows(figures)],
        "another table": [*top_frames.harts(), *top_frames.table("module"), provenance()],
        "no table at all": [provenance()],
        "rows that are too long": [columns("function", ("self", "Self", 4)), rows(figures)],
        "tables without end": [columns(f"t{i}", ("a", "A", 0)) for i in range(40)],
    }
    for name, sent in bad.items():
        def answer(daemon, connection, request, sent=sent):
            daemon.send(connection, request.number, READY, *sent)
            daemon.cancelled.wait(30)
        with FakeDaemon(answer) as daemon:
            found = top(build, daemon, check=False)
            assert "frames that top cannot show" in found.stderr, (name, found)
            refused(found, 1, "the same version")


def test_bad_usage_of_top_is_explained(build):
    for words, arguments in ((["100ms to 60s"], ["-d", "50ms"]),
                             (["100ms to 60s"], ["-d", "61s"]),
                             (["100ms to 60s"], ["-d", "often"]),
                             (["--frames takes"], ["--frames", "0"]),
                             (["cgroup or job, not 'line'"], ["--by", "line"]),
                             (["did you mean process"], ["--by", "proces"]),
                             (["two forms"], ["--json", "--raw"]),
                             (["no option '--since'"], ["--since", "-5m"]),
                             (["one argument too many"], ["sh"])):
        refused(mperfctl(build, "top", *arguments, check=False), 2, "help top",
                *(re.escape(word) for word in words))


def test_a_daemon_of_our_own_shows_what_runs(build):
    need_root()
    program = compile_program(build, "known.c")
    process = subprocess.Popen([program, "spin", "60000"], stdout=subprocess.DEVNULL)
    try:
        found = mperfctl(build, "top", "--json", "--frames", "3", "-d", "500ms", "--pid", process.pid,
                         env={"MPERF_SOCKET": ""}, timeout=60).stdout
        opened = mperfctl(build, "top", "--by", "process", "--frames", "2", "-d", "300ms", "-b",
                          env={"MPERF_SOCKET": ""}, timeout=60).stdout
    finally:
        process.kill()
        process.wait()
    frame = json.loads(found.splitlines()[-1])
    assert len(frame["harts"]) == os.cpu_count(), frame["harts"]
    assert frame["rows"] and {r["process"] for r in frame["rows"]} <= {"known", None}, frame["rows"]
    assert any("spin" in (r["function"] or "") for r in frame["rows"]), frame["rows"]
    assert 0.9 < sum(r["self"] for r in frame["rows"]) < 1.01, frame["rows"]
    assert re.search(rf"known +{process.pid} +\S*known spin 60000", opened), opened


# --- the screen ----------------------------------------------------------------------------------

class Terminal:
    """mperfctl top in a terminal of tmux, which nobody's configuration touches."""

    def __init__(self, build, daemon, *arguments, columns=80, lines=24, term="screen-256color",
                 **environment):
        need_program("tmux")
        self.folder = Folder()
        self.tmux = ["tmux", "-S", self.folder.name + "/tmux", "-f", "/dev/null"]
        command = " ".join([f"'{build / 'mperfctl'}'", "top", *arguments])
        settings = {"MPERF_SOCKET": str(daemon.path), "LC_ALL": "C.UTF-8", **environment}
        self.status = self.folder.path / "status"
        script = (f"trap : INT QUIT HUP; stty sane; stty -g > '{self.folder.name}/before'; "
                  f"TERM={term} {command}; echo $? > '{self.status}.new'; "
                  f"stty -g > '{self.folder.name}/after'; "
                  f"mv '{self.status}.new' '{self.status}'; exec sleep 600")
        words = [f"{key}={value}" for key, value in settings.items()]
        self.run("new-session", "-d", "-x", str(columns), "-y", str(lines), "env", "-u", "NO_COLOR",
                 *words, "sh", "-c", script)

    def run(self, *words):
        done_ = subprocess.run([*self.tmux, *words], capture_output=True, text=True, timeout=30,
                               env=dict(os.environ, LC_ALL="C.UTF-8"))
        assert done_.returncode == 0, (words, done_.stderr)
        return done_.stdout

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def screen(self, *options):
        return self.run("capture-pane", "-p", *options)

    def shows(self, *words, lacks=(), seconds=40):
        """Wait until all the patterns are on the screen, and none of `lacks`; the screen."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if all(re.search(w, screen) for w in words) and \
                    not any(re.search(w, screen) for w in lacks):
                return screen
            assert time.monotonic() < end, f"{words} without {lacks}:\n{screen}"
            time.sleep(0.05)

    def ended(self):
        """Wait for the end: mperfctl's exit status. The terminal is as it was before."""
        end = time.monotonic() + 40
        while not self.status.exists():
            assert time.monotonic() < end, self.screen()
            time.sleep(0.05)
        before, after = ((self.folder.path / name).read_text() for name in ("before", "after"))
        assert before == after, (before, after)
        assert self.run("display-message", "-p", "#{alternate_on} #{cursor_flag}") == "0 1\n"
        return int(self.status.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, timeout=30)
        self.folder.cleanup()


def test_the_screen_shows_harts_and_functions_and_q_gives_it_back(build):
    with FakeDaemon(top_frames.stream()) as daemon, Terminal(build, daemon, "-d 200ms") as t:
        screen = t.shows("sqlite3VdbeExec", "evil|owned", "(?m)^. help  / filter")
        lines = screen.splitlines()
        assert re.search(r"99 Hz  198 samples/s  lost 0  98\.7 % named", lines[0]), screen
        assert re.match(r"hart 0 \[█+▒+ +\] +\d+\.\d\d %  user .* kernel .* d 99 Hz", lines[1]), screen
        assert lines[3].startswith("functions by Self; every 200 ms"), screen
        assert re.match(r" +Self +Total +Samples +IPC +Function +Module +Process", lines[4]), screen
        assert r"\x1b[2J" in screen and "größe, 関" in screen, screen
        assert "? help" in lines[23], screen
        t.keys("q")
        assert t.ended() == 0
        assert not any(word in t.screen() for word in BAD_WORDS), t.screen()


def test_keys_switch_views_and_ask_the_daemon_anew(build):
    with FakeDaemon(top_frames.stream()) as daemon, Terminal(build, daemon) as t:
        t.shows("sqlite3VdbeExec")
        for key, says in (("p", "processes by.*cc1plus +4711"), ("t", "threads by.*worker"),
                          ("c", "control groups by.*build.service"), ("m", "modules by.*kernel"),
                          ("f", "functions by.*sqlite3VdbeExec")):
            t.keys(key)
            t.shows(f"(?s){says}")
        assert [r.text(3) for r in daemon.requests] == \
            ["function", "process", "thread", "cgroup", "module", "function"], daemon.requests
        t.keys("+")
        t.shows("every 2.00 s")
        end = time.monotonic() + 30
        while daemon.requests[-1].first(1) != 2000:
            assert time.monotonic() < end, daemon.requests[-1].body
            time.sleep(0.05)
        t.keys("q")
        assert t.ended() == 0


def test_help_filter_order_and_pause(build):
    with FakeDaemon(top_frames.stream()) as daemon, Terminal(build, daemon, "-d 100ms") as t:
        t.shows("sqlite3VdbeExec")
        t.keys("?")
        t.shows("Enter +open the row", "cpu-clock, rung d", "any key closes", lacks=["sqlite3"])
        t.keys("x")
        t.shows("sqlite3VdbeExec", lacks=["any key"])
        t.keys("/", "M", "A", "L")
        t.shows("with 'MAL'", "_int_malloc", "(?m)^/MAL_$", lacks=["sqlite3VdbeExec"])
        t.keys("Escape")
        t.shows("sqlite3VdbeExec", lacks=["with 'MAL'"])
        t.keys("H")
        screen = t.shows("History, up to", r"(?m)^hart 0 +[▃▄▅▆]{3,} ", r"(?m)sqlite3VdbeExec .*[▁-█]{3,}$", lacks=[r"\[█"])
        bars = re.search(r"^hart 0 +([▃▄▅▆]+)", screen, re.M)[1]
        assert len(set(bars)) > 1, screen  # the load changes from frame to frame
        t.keys("H")
        t.shows(r"hart 0 \[█", lacks=["History"])
        t.keys("r")
        screen = t.shows("by Self, reversed")
        assert screen.index("clear_page_erms") < screen.index("_int_malloc"), screen
        t.keys("s")
        t.shows("functions by Total; ")
        t.keys("Space")
        paused = t.shows("paused")
        time.sleep(0.5)
        assert t.screen() == paused
        t.keys("Space")
        t.shows("functions by Total", lacks=["paused"])
        t.keys("C-c")
        assert t.ended() == 0


def test_enter_opens_the_callers_and_escape_closes_them(build):
    with FakeDaemon(top_frames.stream()) as daemon, Terminal(build, daemon) as t:
        t.shows("sqlite3VdbeExec")
        t.keys("Down", "Down", "Enter")
        t.shows("callers of _int_malloc by Total", "main +/opt/app", r"\[no caller\]")
        assert daemon.requests[-1].text(6) == "_int_malloc", daemon.requests[-1].body
        assert daemon.requests[-1].text(7).endswith("libc.so.6"), daemon.requests[-1].body
        t.keys("End", "Enter")
        t.shows("callers of this row are not known")
        t.keys("BSpace")
        t.shows("functions by Self", "sqlite3VdbeExec")
        t.keys("p")
        t.shows("cc1plus +4711")
        t.keys("Enter")
        t.shows("functions of process 4711 by Self", "sqlite3VdbeExec")
        assert (1, 4711) in pids_of(daemon.requests[-1]), daemon.requests[-1].body
        t.keys("q")
        assert t.ended() == 0


def pids_of(request):
    """The filter's pids; repeated numbers may come packed."""
    found = []
    for key, value in fields(request.first(4, b"")):
        if key == 1 and isinstance(value, bytes):
            found += [(1, v) for _, v in fields(b"\x08" + value)] if value else []
        elif key == 1:
            found.append((1, value))
    return found


def test_the_screen_follows_the_terminals_size(build):
    with FakeDaemon(top_frames.stream(n_harts=64)) as daemon, Terminal(build, daemon) as t:
        t.shows(r"harts 7-63 \[", "sqlite3VdbeExec")
        t.run("resize-window", "-x", "120", "-y", "40")
        t.shows(r"harts 12-63 \[", "Instructions")
        t.run("resize-window", "-x", "40", "-y", "8")
        screen = t.shows(r"harts 1-63 \[", "Self +Total +Function")
        assert all(len(line) <= 40 for line in screen.splitlines()), screen
        t.run("resize-window", "-x", "30", "-y", "6")
        t.shows("needs 40 x 8")
        t.run("resize-window", "-x", "80", "-y", "24")
        t.shows(r"harts 7-63 \[", "sqlite3VdbeExec", lacks=["needs 40"])
        t.keys("q")
        assert t.ended() == 0


def test_a_plain_terminal_shows_ascii_without_colours(build):
    with FakeDaemon(top_frames.stream()) as daemon, \
            Terminal(build, daemon, term="vt100", LC_ALL="C") as t:
        screen = t.shows("sqlite3VdbeExec", r"hart 0 \[\|+#+ +\]", r"std::vector<gr\\u\{f6\}\\")
        assert screen.isascii(), screen
        assert not re.search(r"\x1b\[[\d;]*3[0-7]", t.screen("-e")), t.screen("-e")
        t.keys("q")
        assert t.ended() == 0
    for arguments in ("--no-color",):
        with FakeDaemon(top_frames.stream()) as daemon, Terminal(build, daemon, arguments) as t:
            t.shows("sqlite3VdbeExec")
            assert not re.search(r"\x1b\[[\d;]*3[0-7]m", t.screen("-e")), t.screen("-e")


def test_a_terminal_that_cannot_place_text_gets_frames(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        for term in ("dumb", "no-such-terminal"):
            with Terminal(build, daemon, "--frames 1 -n 3", columns=150, term=term) as t:
                t.shows("cannot move the cursor, so frames follow", "sqlite3VdbeExec")
                assert t.ended() == 0
        with Terminal(build, daemon, "-b --frames 1", columns=150) as t:
            t.shows("sqlite3VdbeExec", lacks=["cannot move"])
            assert t.ended() == 0


def test_the_terminal_is_given_back_on_signals_and_when_the_daemon_goes(build):
    with FakeDaemon(top_frames.stream()) as daemon:
        for number in ("TERM", "INT", "HUP", "QUIT"):
            with Terminal(build, daemon) as t:
                t.shows("sqlite3VdbeExec")
                leader = int(t.run("display-message", "-p", "#{pane_pid}"))
                child = subprocess.run(["pgrep", "-P", str(leader)], capture_output=True, text=True,
                                       check=True).stdout.split()[0]
                os.kill(int(child), getattr(signal, "SIG" + number))
                assert t.ended() == 0, number
        with Terminal(build, daemon) as t:
            t.shows("sqlite3VdbeExec")
            daemon.hang_up()
            assert t.ended() == 1
            assert re.search(r"mperfctl: mperfd hung up.*journalctl", t.screen().replace("\n", " "))


# --- several tables ------------------------------------------------------------------------------

def tables(case, *sent):
    def answer(daemon, connection, request):
        assert request.case == case, request.case
        daemon.send(connection, request.number, *sent, done())
    return answer


ACCOUNT = (columns("account", ("taken", "Taken", COUNT), ("stored", "Stored", COUNT),
                   ("lost", "Lost", COUNT), ("in_hand", "In hand", COUNT)),
           rows((123456, 123400, 6, 50)))
PROCESS = (columns("process", ("process", "Process", NONE), ("cpu", "CPU", NS),
                   ("memory", "Memory", BYTES)), rows(("mperfd", 15 * 10**8, 9 << 20),
                                                      ("mperf-\x1bnamer", None, 4 << 20)))
DISC = (columns("store", ("path", "Path", NONE), ("used", "Used", BYTES), ("since", "Since", NONE)),
        rows(("/var/lib/m\x07perf", 3 << 20, None)))
LOSS = (columns("loss", ("hart", "Hart", NONE), ("cause", "Cause", NONE),
                ("count", "Since the start", COUNT)),)


def ask(build, daemon, *arguments, **options):
    return mperfctl(build, *arguments, env={"MPERF_SOCKET": str(daemon.path)}, timeout=60, **options)


def test_status_prints_each_table_under_its_heading(build):
    with FakeDaemon(tables(STATUS, *ACCOUNT, *PROCESS, *LOSS, *DISC)) as daemon:
        text = ask(build, daemon, "status", "--all").stdout
        raw = ask(build, daemon, "status", "--raw").stdout
        found = json.loads(ask(build, daemon, "status", "--json").stdout)
    assert re.match(r"Samples\n +Taken +Stored +Lost +In hand\n123,456 +123,400 +6 +50\n", text), text
    assert re.search(r"\n\nProcesses of the daemon\n +CPU +Memory +Process\n", text), text
    assert re.search(r"1\.50 s +9\.00 MiB +mperfd\n +- +4\.00 MiB +mperf-\\x1bnamer\n", text), text
    assert "\n\nLost\n  none\n\n" in text, text
    assert text.endswith("Store\n  Path   /var/lib/m\\x07perf\n  Used   3.00 MiB\n  Since  -\n"), text
    assert "# account\ntaken\tstored\tlost\tin_hand\n123456\t123400\t6\t50\n\n# process\n" in raw, raw
    assert found["account"] == [{"taken": 123456, "stored": 123400, "lost": 6, "in_hand": 50}], found
    assert found["process"][1] == {"process": "mperf-\x1bnamer", "cpu": None, "memory": 4 << 20}
    assert found["loss"] == [], found


def test_store_shows_tables_also_of_later_versions(build):
    later = columns("later", ("what", "What", NONE)), rows(("new",))
    with FakeDaemon(tables(STORE, *later)) as daemon:
        assert ask(build, daemon, "store").stdout == "later\nWhat\nnew\n"


def test_status_and_store_need_the_service(build):
    for command in ("status", "store"):
        refused(mperfctl(build, command, check=False, env={"MPERF_SOCKET": ""}), 1,
                "no mperfd service answers", "MPERF_SOCKET")
    with FakeDaemon(tables(STATUS, rows((1, 2)))) as daemon:
        refused(ask(build, daemon, "status", check=False), 1, "do not match their columns")


# --- what the service keeps ----------------------------------------------------------------------

def kept(case, *sent):
    return FakeDaemon(tables(case, *sent, provenance()))


def since_of(request):
    """(since, until) in seconds of a query's filter."""
    asked = dict(fields(request.first(3 if request.case == HOTSPOTS else 2)))
    return asked.get(5, 0) / 1e9, asked.get(6, 0) / 1e9


def test_without_a_file_the_service_is_asked_for_the_last_hour(build):
    with kept(HOTSPOTS, *top_frames.table("function")) as daemon, Folder() as folder:
        found = ask(build, daemon, "hotspots", "--comm", "cc1", cwd=folder)
        request = daemon.requests[0]
    assert re.search("last hour of the service's store; .*--since", found.stderr), found.stderr
    assert "sqlite3VdbeExec" in found.stdout and request.text(1) == "", found
    assert abs(since_of(request)[0] - (time.time() - 3600)) < 60, since_of(request)
    assert (2, b"cc1") in fields(request.first(3)), request.body


def test_since_asks_the_service_even_where_a_file_lies(build):
    with kept(HOTSPOTS, *top_frames.table("function")) as daemon, Folder() as folder:
        (folder / "mperf.mprf").write_text("no recording")
        found = ask(build, daemon, "hotspots", "--since=-2h", "--pid", "4711", cwd=folder)
        ask(build, daemon, "hotspots", "--until=-2h", cwd=folder)
        first, second = daemon.requests
    assert not found.stderr and first.text(1) == "", found
    assert abs(since_of(first)[0] - (time.time() - 7200)) < 60, since_of(first)
    asked = fields(first.first(3))
    assert any(k == 1 for k, _ in asked), asked  # a filter here, not a target
    since, until = since_of(second)
    assert abs(until - since - 3600) < 1, (since, until)


def test_flamegraph_draws_what_the_service_keeps(build):
    tree = (columns("", ("node", "", 0), ("parent", "", 0), ("function", "", 0), ("module", "", 0),
                    ("kind", "", 0), ("value", "", NS)),
            rows((1, 0, "main", "/m", "user", 100)))
    with kept(FLAMEGRAPH, *tree) as daemon, Folder() as folder:
        ask(build, daemon, "flamegraph", "--since", "yesterday", cwd=folder)
        assert "Flame graph of the service&#39;s store" in (folder / "flame.html").read_text()
        assert daemon.requests[0].text(1) == "", daemon.requests[0].body


def test_without_file_and_service_the_ways_are_named(build):
    with Folder() as folder:
        refused(mperfctl(build, "hotspots", check=False, cwd=folder, env={"MPERF_SOCKET": ""}), 2,
                "nothing to read", "-i FILE", "systemctl start mperfd", "-- CMD")
        refused(mperfctl(build, "flamegraph", "--since=-5m", check=False, cwd=folder,
                         env={"MPERF_SOCKET": ""}), 1, "no mperfd service", "-i FILE")
