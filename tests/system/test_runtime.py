# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime in programs that begin and end in all the ways programs do: modules laid out by hand
(tests/runtime), sums that must come out exactly, daemons that are slow, dead, or not there."""
import collections
import ctypes
import os
import signal
import struct
import subprocess

from feed import Daemon, Program, make, read_file
from machine import ROOT, BAD_WORDS, Folder, Skip, need_root

SOURCES = ROOT / "tests" / "runtime"
SANITIZE = {"asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]}
A, B, C = 4, 5, 6    # counters of program.c
TIMED, TIME = 2, 3   # of its nest
EARLY, LATE = 7, 8
LIBRARY_COUNTERS = 2000
CONSTRUCTED = 7      # what a static constructor counts


def runtime(build):
    return build / "libmperf-runtime.a"


def linked(build, name, *sources, flags=(), compiler="cc", with_runtime=True):
    """A program or library of tests/runtime, built anew where a source or the runtime is newer."""
    target = build / "tests" / "programs" / "runtime" / name
    inputs = [*SOURCES.iterdir(), *(ROOT / "runtime").iterdir(), runtime(build)]
    if target.exists() and target.stat().st_mtime > max(p.stat().st_mtime for p in inputs):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    archive = ["-Wl,-u,__mperf_region_begin", "-Wl,--export-dynamic-symbol=__mperf_*",
               runtime(build)] if with_runtime else []
    subprocess.run([compiler, "-g", "-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", f"-I{ROOT}",
                    *SANITIZE.get(build.name, []), "-o", target,
                    *(s if s[0] == "/" or s[-2:] == ".o" else SOURCES / s for s in map(str, sources)),
                    *flags, *archive, "-pthread", "-ldl"], check=True)
    return target


def program(build):
    return linked(build, "program", "program.c")


def library(build, **options):
    return linked(build, "library.so", "library.c", flags=["-shared", "-fPIC"],
                  with_runtime=False, **options)


def environment(**changes):
    """The runtime's own variables are only those that a test gives."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MPERF_")}
    clean["ASAN_OPTIONS"] = "detect_leaks=0"  # areas are kept on purpose
    return dict(clean, **{k: str(v) for k, v in changes.items()})


def ran(path, *arguments, status=0, **variables):
    """Run it to its end: it says nothing on standard error, and exits with that status."""
    done = subprocess.run([path, *map(str, arguments)], text=True, capture_output=True, timeout=120,
                          env=environment(**variables))
    everything = f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, everything
    assert not done.stderr and not any(word in everything for word in BAD_WORDS), everything
    return done


def output(path, *arguments, **options):
    """What it told its file."""
    with Folder() as folder:
        ran(path, *arguments, MPERF_OUTPUT=folder / "out", **options)
        told = Program(read_file(folder / "out"))
    assert told.last and told.threads_lost == 0, (told.last, told.threads_lost)
    return told


def outputs(path, *arguments, **options):
    """What each of its processes told a file of its own."""
    with Folder() as folder:
        ran(path, *arguments, MPERF_OUTPUT=folder / "out.%p", **options)
        return [Program(read_file(file)) for file in sorted(folder.iterdir())]


class Told:
    """A program that talks with us over its standard streams, and with a daemon of ours."""

    def __init__(self, folder, path, *arguments, period=20, feed=None, **variables):
        variables.setdefault("MPERF_FEED", feed or folder / "feed")
        self.process = subprocess.Popen(
            [path, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(MPERF_PERIOD=period, **variables))

    def ready(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", (line, self.process.poll(), self.process.stderr.read())

    def go_on(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()

    def ends(self, status=0):
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == status and not errors, (self.process.returncode, errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


# --- threads --------------------------------------------------------------------------------------

def test_each_thread_is_told_apart_and_nothing_is_lost(build):
    told = output(program(build), "threads", 200, MPERF_PERIOD=10)
    assert told.sum(A) == 200 * 1000, told.sum(A)
    assert told.sum(B) == sum(range(200)), told.sum(B)
    per_thread = sorted(told.sum(B, thread=t) for t in told.threads if told.sum(A, thread=t))
    assert per_thread == list(range(200)), per_thread
    assert len({t.tid for t in told.threads.values()}) > 1


def test_threads_that_never_end_are_counted(build):
    told = output(program(build), "workers", 8)
    assert (told.sum(A), told.sum(B), told.gone) == (8000, sum(range(8)), set())


def test_threads_that_end_are_said_to_be_gone(build):
    told = output(program(build), "threads", 3)
    assert len({i for kind, i in told.gone if kind == "thread"}) == 3, told.gone


def test_threads_that_come_and_go_use_the_same_memory(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "churn", 3000, period=10) as told:
        connection = daemon.accept()
        connection.read_all()
        told.ends()
    got = connection.program
    assert (got.sum(A), got.sum(B)) == (3000 * 1000, 3000), (got.sum(A), got.sum(B))
    assert got.threads_lost == 0 and len(got.threads) == 3001, len(got.threads)


def test_a_cancelled_thread_is_counted(build):
    told = output(program(build), "cancelled")
    assert (told.sum(A), told.sum(B)) == (1000, 1)


def test_main_may_end_before_its_threads(build):
    told = output(program(build), "main-exits", 4)
    assert (told.sum(A), told.sum(B)) == (1004, 1)


def test_constructors_and_destructors_are_counted(build):
    told = output(program(build), "ends")
    assert (told.sum(EARLY), told.sum(LATE)) == (7, 8)


def test_one_thread_is_added_and_it_takes_no_signal(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1) as told:
        told.ready()
        connection = daemon.accept()
        connection.read_until(lambda p: p.rounds)
        tasks = os.listdir(f"/proc/{told.process.pid}/task")
        assert len(tasks) == 2, tasks
        other = next(t for t in tasks if int(t) != told.process.pid)
        with open(f"/proc/{told.process.pid}/task/{other}/status", encoding="ascii") as status:
            blocked = int(next(line for line in status if line.startswith("SigBlk")).split()[1], 16)
        # All but KILL and STOP, which cannot be, and the two that the C library keeps for itself.
        missing = {n for n in range(1, 65) if not blocked >> (n - 1) & 1}
        assert missing <= {signal.SIGKILL, signal.SIGSTOP, 32, 33, 34}, missing


# --- the ends of a program ------------------------------------------------------------------------

def test_quick_exit_loses_nothing(build):
    told = output(program(build), "quick_exit", 12)
    assert told.sum(A) == 12


def test_what_a_program_that_is_killed_loses_is_its_last_period(build):
    for how in ("_exit", "kill"):
        with Folder() as folder, Daemon(folder / "feed") as daemon, \
                Told(folder, program(build), "_exit", 1000) as told:
            connection = daemon.accept()
            told.ready()
            connection.read_until(lambda p: p.sum(A) == 1000)
            if how == "kill":
                told.process.kill()
                told.ends(-signal.SIGKILL)
            else:
                told.go_on()
                told.ends()
            connection.read_all()
        assert connection.program.sum(A) in range(1000, 1006), connection.program.sum(A)
        assert not connection.program.last


def test_an_ordinary_exit_tells_what_came_after_the_last_period(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=60000) as told:
        connection = daemon.accept()
        told.ready()
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()
        connection.read_all()
    assert connection.program.sum(A) == 1005 and connection.program.last


# --- processes ------------------------------------------------------------------------------------

def test_a_forks_child_tells_its_own_counts_alone(build):
    told = outputs(program(build), "forks")
    assert sorted(t.sum(A) for t in told) == [3, 11], [t.sum(A) for t in told]
    assert sorted(t.sum(EARLY) for t in told) == [0, 7]
    assert all(t.last for t in told)


def test_a_forks_child_is_a_connection_of_its_own(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "forks") as told:
        one, other = daemon.accept(), daemon.accept()
        sums = sorted(c.read_all().sum(A) for c in (one, other))
        told.ends()
    assert sums == [3, 11], sums


def test_a_forks_child_is_heard_of_while_it_runs(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "fork-stays") as told:
        one, other = daemon.accept(), daemon.accept()
        told.ready()
        for connection in one, other:
            connection.read_until(lambda p: p.sum(A))
        assert sorted(c.program.sum(A) for c in (one, other)) == [3, 10]
        told.go_on()
        told.ends()


def test_a_region_that_is_open_at_a_fork_ends_in_both(build):
    told = outputs(program(build), "forks-in-region")
    assert sorted(t.sum(A, region="around") for t in told) == [3, 10]
    parent, child = sorted(told, key=lambda t: t.hello.begin_ns)
    assert child.in_region("around")["time_ns"] <= parent.in_region("around")["time_ns"]


def test_children_without_a_file_of_their_own_write_none(build):
    told = output(program(build), "forks")
    assert told.sum(A) == 11, told.sum(A)


def test_many_forks_disturb_neither_counts_nor_program(build):
    told = output(program(build), "fork-storm", 200)
    assert told.sum(A) == 200, told.sum(A)


def test_a_program_that_is_executed_begins_anew(build):
    told = outputs(program(build), "executes")
    assert sorted(t.sum(A) for t in told) == [10, 1000], [t.sum(A) for t in told]


# --- signals --------------------------------------------------------------------------------------

def test_signal_handlers_count_and_enter_regions(build):
    with Folder() as folder:
        rounds = int(ran(program(build), "signals", MPERF_OUTPUT=folder / "out",
                         MPERF_PERIOD=10).stdout)
        told = Program(read_file(folder / "out"))
    handled = told.in_region("handler")["entries"] + told.in_region("loop/handler")["entries"]
    assert handled > 0 and told.sum(C) == 2 * handled, (told.sum(C), handled)
    assert told.sum(A) == rounds == told.sum(A, region="loop"), (told.sum(A), rounds)
    assert told.sum(B) == rounds == told.sum(B, region=""), (told.sum(B), rounds)
    assert told.in_region("loop")["entries"] == rounds


def test_a_handler_may_be_the_first_that_counts(build):
    told = output(program(build), "signal-first")
    assert told.sum(C) == 2 and told.sum(C, region="handler") == 1


def test_errno_stays(build):
    ran(program(build), "errno")


# --- regions --------------------------------------------------------------------------------------

def test_regions_count_what_is_called_in_them(build):
    told = output(program(build), "regions")
    sums = {path: told.sum(A, region=path) for path in ("", "outer", "outer/inner", "inner")}
    assert sums == {"": 6, "outer": 30, "outer/inner": 30, "inner": 4}, sums
    entries = {path: told.in_region(path)["entries"] for path in told.regions.values()}
    assert entries == {"outer": 10, "outer/inner": 10, "inner": 1}, entries
    assert told.in_region("outer")["time_ns"] >= told.in_region("outer/inner")["time_ns"]


def test_regions_are_each_threads_own(build):
    told = output(program(build), "region-threads", MPERF_PERIOD=10)
    for path, n in {"": 6, "outer": 30, "outer/inner": 30, "inner": 4}.items():
        assert told.sum(A, region=path) == 8 * 500 * n, (path, told.sum(A, region=path))
    assert told.in_region("outer")["entries"] == 8 * 500 * 10


def test_a_region_in_itself_is_one(build):
    for depth in 5, 100:
        told = output(program(build), "recursion", depth)
        assert list(told.regions.values()) == ["again"], told.regions
        assert told.sum(A, region="again") == depth


def test_regions_left_by_longjmp_end_at_the_next_marker(build):
    told = output(program(build), "jumped")
    sums = {path: told.sum(A, region=path) for path in told.regions.values()}
    assert sums == {"outer": 1 + 4, "outer/left": 2, "outer/next": 3, "after": 5, "no end": 100,
                    "no end/after": 5}, sums
    assert told.in_region("no end")["entries"] == 100


def test_regions_left_by_an_exception_end(build):
    made = linked(build, "throws_count.o", "throws_count.c", flags=["-c"], with_runtime=False)
    told = output(linked(build, "throws", "throws.cc", made, compiler="c++"))
    sums = {path: told.sum(A, region=path) for path in told.regions.values()}
    assert sums == {"all": 100, "all/guarded": 4, "all/paired": 10, "all/next": 1000}, sums


def test_without_the_runtime_markers_do_nothing(build):
    ran(linked(build, "plain", "plain.c", with_runtime=False))


def test_without_counters_regions_are_timed(build):
    told = output(linked(build, "markers", "plain.c"))
    spent = told.in_region("solve")
    assert spent["entries"] == 10 and not told.counts and not told.objects, spent


PERF_TYPE_SOFTWARE, PAGE_FAULTS, PERF_EVENT_OPEN = 1, 2, {"x86_64": 298}.get(os.uname().machine, 241)


def page_faults_of(tid):
    """A descriptor that counts a thread's page faults; perf_event_open(2) has no name in Python."""
    attributes = bytearray(128)
    struct.pack_into("<IIQ", attributes, 0, PERF_TYPE_SOFTWARE, 128, PAGE_FAULTS)
    buffer = (ctypes.c_char * 128).from_buffer(attributes)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, buffer, tid, -1, -1, 8)
    if fd < 0:
        raise Skip(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return fd


def test_granted_counters_are_read_in_regions(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "faults", 1000) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.threads and p.rounds)
        thread, = connection.program.threads.values()
        event = page_faults_of(thread.tid)
        connection.grant(thread.thread, [event, event])
        os.close(event)
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 2)
        told.go_on()
        told.ready()
        connection.read_until(lambda p: p.in_region("faults")["entries"] == 2)
        spent = connection.program.in_region("faults")
        assert spent["granted"] in range(1000, 1010) and spent["granted_2"] == 0, spent
        assert spent["granted_1"] in range(1000, 1010), spent
        # Others take their place; those before are closed.
        descriptors = len(os.listdir(f"/proc/{told.process.pid}/fd"))
        connection.grant(thread.thread, [])
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 2)
        assert len(os.listdir(f"/proc/{told.process.pid}/fd")) == descriptors - 2
        told.go_on()
        told.ends()


# --- libraries ------------------------------------------------------------------------------------

def library_sums(told, n):
    """The counters of the libraries, which are those objects that have so many."""
    objects = [o for o, m in told.objects.items() if m.n_counters == LIBRARY_COUNTERS]
    assert len(objects) == n, told.objects
    sums = {o: collections.Counter() for o in objects}
    for (_, o, _, counter), value in told.counts.items():
        if o in sums:
            sums[o][counter] += value
    return list(sums.values())


def test_a_library_of_2000_counters_is_opened_and_closed(build):
    told = output(program(build), "library", library(build), 20)
    for sums in library_sums(told, 20):
        assert set(sums[c] for c in range(4, LIBRARY_COUNTERS)) == {2}, sums
    assert {i for kind, i in told.gone if kind == "object"} >= {
        o for o, m in told.objects.items() if m.n_counters == LIBRARY_COUNTERS}
    assert told.in_region("closing")["entries"] == told.in_region("closed")["entries"] == 20
    assert len({m.build_id for m in told.objects.values()}) == 2


def test_libraries_are_closed_while_others_switch_regions(build):
    told = output(program(build), "libraries-and-threads", library(build), 50, MPERF_PERIOD=10)
    assert len(library_sums(told, 50)) == 50
    assert told.sum(A, region="switching") == told.in_region("switching")["entries"]


def test_a_library_may_bring_the_runtime_into_a_program_that_has_none(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's runtime must be in the program")
    own = linked(build, "own.so", "library.c", flags=["-shared", "-fPIC"])
    plain = linked(build, "plain", "plain.c", with_runtime=False)
    told = output(plain, own, 1)
    assert library_sums(told, 1)[0][LIBRARY_COUNTERS - 1] == 1
    # Opened anew each time, it takes its thread and its file along each time.
    assert library_sums(output(plain, own, 20), 1)[0][LIBRARY_COUNTERS - 1] == 1


# --- nests ----------------------------------------------------------------------------------------

def test_short_nests_are_timed_by_sample(build):
    told = output(program(build), "nests", 1_000_000)
    assert told.sum(A) == 1_000_000
    assert 500 < told.sum(TIMED) < 500_000, told.sum(TIMED)


def test_time_that_still_runs_is_told(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "nest-open") as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.sum(TIME) > 100_000_000)
        assert connection.program.sum(TIMED) == 0
        told.go_on()
        told.ends()
        connection.read_all()
    assert connection.program.sum(TIMED) == 1 and connection.program.sum(TIME) < 2**40


# --- daemons --------------------------------------------------------------------------------------

def test_without_a_daemon_nothing_happens(build):
    with Folder() as folder:
        ran(program(build), "threads", 20, MPERF_FEED=folder / "nobody")
        assert not list(folder.iterdir())
        ran(program(build), "threads", 20, MPERF_FEED="/nowhere/" + "x" * 200)
        (folder / "file").write_text("no socket")
        ran(program(build), "threads", 20, MPERF_FEED=folder / "file")
        assert (folder / "file").read_text() == "no socket"


def test_an_empty_name_switches_it_off(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1, MPERF_FEED="") as told:
        told.ready()
        assert threads_of(told.process.pid) == 1
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()


def test_a_daemon_that_comes_later_hears_all(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1000) as told:
        told.ready()
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            connection.read_until(lambda p: p.sum(A) == 1000)
            assert connection.program.sum(EARLY) == CONSTRUCTED


def test_a_daemon_that_dies_and_returns_hears_the_rest(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1000) as told:
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            told.ready()
            connection.read_until(lambda p: p.sum(A) == 1000 and p.sum(EARLY) and p.rounds)
            connection.close()
        os.unlink(folder / "feed")
        told.go_on()
        told.ready()
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            connection.read_until(lambda p: p.sum(A))
            assert connection.program.sum(A) == 5 and connection.program.sum(EARLY) == 0
            told.go_on()
            told.ends()
            assert connection.read_all().last


def test_a_daemon_that_does_not_read_holds_nobody_up(build):
    """Libraries that come and go fill the socket many times over."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "library", library(build), 40, period=10) as told:
        connection = daemon.accept()
        connection.read_until(lambda p: p.hello)
        told.process.wait(60)  # without one more message read
        told.ends()
        connection.read_all()
    # What was taken is sound, and no more than the socket held.
    assert 0 < len(connection.program.objects) < 40, len(connection.program.objects)
    assert not connection.program.last


def test_a_daemon_that_was_behind_hears_all(build):
    """40 periods of 32 KB each are more than the socket holds: they come as fewer, and are all there."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "floods", library(build), 40, period=10) as told:
        connection = daemon.accept()
        connection.read_until(lambda p: p.hello)
        told.ready()
        full = lambda p: all(set(sums.values()) == {40} and len(sums) == LIBRARY_COUNTERS - 4
                             for sums in library_sums(p, 1))
        while not (connection.read() and connection.messages[-1].type == "ROUND"
                   and full(connection.program)):
            pass
        rounds = sum(m.type == "DELTAS" and m.n > 100 for m in connection.messages)
        assert rounds < 30, rounds
        told.go_on()
        told.ends()


def test_a_slow_daemon_hears_all(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, linked(build, "waits-library", "program.c"), "waits", 1000, period=10) as told:
        connection = daemon.accept()
        told.ready()
        told.go_on()
        told.ready()
        while connection.program.sum(A) < 1005:  # one message, then many periods of silence
            assert connection.read()
            try:
                told.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        assert connection.program.sum(A) == 1005
        told.go_on()
        told.ends()


def test_the_daemon_asks_for_rounds(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=60000) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        assert connection.program.hello.period_ms == 60000
        connection.ask(now=1)
        connection.read_until(lambda p: p.sum(A) == 1000)
        connection.ask(period_ms=10)
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 5)


def test_a_daemon_that_talks_nonsense_is_not_listened_to(build):
    good = make("ASK", period_ms=10)
    nonsense = [b"", b"x", good[:-1], good + b"x", b"\0" * 16, make("ASK", period_ms=1),
                make("ASK", period_ms=2**32 - 1), make("ASK", now=2), make("GRANT", n=5),
                make("GRANT", thread=99, n=1), make("SELECT", globs_bytes=7), make("HELLO"),
                make("SELECT", rest=b"x" * 8000, globs_bytes=8000), os.urandom(5000)]
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=100) as told:
        connection = daemon.accept()
        told.ready()
        descriptors = lambda: len(os.listdir(f"/proc/{told.process.pid}/fd"))
        connection.read_until(lambda p: p.rounds)
        before = descriptors()
        for message in nonsense[1:]:
            connection.socket.send(message)
            rounds = connection.program.rounds
            connection.read_until(lambda p, n=rounds: p.rounds > n + 1)
        connection.grant(99, [0, 1, 2])
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 2)
        assert descriptors() == before
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()
        assert connection.read_all().sum(A) == 1005


def test_descriptors_that_a_program_takes_for_itself_are_left_alone(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "takes-descriptors", period=10) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        told.go_on()
        told.ready()
        # It finds its socket gone, comes again, and its own file stays empty.
        again = daemon.accept()
        again.read_until(lambda p: p.rounds > 3)
        told.go_on()
        told.ends()


def test_descriptors_are_closed_at_exec(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        flags = {}
        for fd in os.listdir(f"/proc/{told.process.pid}/fd"):
            with open(f"/proc/{told.process.pid}/fdinfo/{fd}", encoding="ascii") as info:
                flags[int(fd)] = int(next(x for x in info if x.startswith("flags")).split()[1], 8)
        ours = {fd: f for fd, f in flags.items() if fd > 2}
        assert ours and all(f & os.O_CLOEXEC for f in ours.values()), ours


# --- files ----------------------------------------------------------------------------------------

def test_a_file_that_cannot_be_written_changes_nothing(build):
    with Folder() as folder:
        for bad in (folder, folder / "no" / "folder", "/dev/null", "/dev/full", "/proc/self/mem"):
            ran(program(build), "threads", 3, MPERF_OUTPUT=bad)
        assert not list(folder.iterdir())


def test_a_full_disc_leaves_whole_messages(build):
    """A limit of the file's size is the disc's end that anybody can have."""
    with Folder() as folder:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", program(build), "library", library(build), "3"],
            env=environment(MPERF_OUTPUT=folder / "out"), capture_output=True, timeout=60)
        assert done.returncode == 0, done
        assert (folder / "out").stat().st_size <= 1024
        assert Program(read_file(folder / "out")).hello


def test_a_setuid_program_does_not_listen_to_its_environment(build):
    need_root()
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer does not work in a setuid program")
    with Folder() as folder:
        copy = folder / "program"
        copy.write_bytes(program(build).read_bytes())
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o6755)
        os.chmod(folder, 0o777)
        done = subprocess.run([copy, "threads", "1"], capture_output=True, timeout=60,
                              env=environment(MPERF_OUTPUT=folder / "out"))
        assert done.returncode == 0 and not (folder / "out").exists(), done
