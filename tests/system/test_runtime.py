# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime in programs that begin and end in all the ways programs do: modules laid out by hand
(tests/runtime), sums that must come out exactly."""
import ctypes
import os
import platform
import re
import signal
import struct
import subprocess
import time

from counted import (A, B, C, EARLY, LATE, LIBRARY_COUNTERS, SANITIZE, TIME, TIMED, Told, edges,
                     environment, library, library_sums, linked, output, outputs, program, ran)
from feed import Daemon, Program, make, read_file
from machine import ROOT, Folder, Skip, leave_to_plain, need_program
from service import wait_until


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


def churn(build):
    """What 3000 threads, one after the other, told of their counts."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "churn", 3000, period=10) as told:
        connection = daemon.accept()
        connection.read_all()
        told.ends()
    return connection.program


def test_threads_that_come_and_go_use_the_same_memory(build):
    """A reader that gets no CPU time does not keep the program from ending: it waits a second in all
    (runtime/round.h, MPERF_WAIT_TOTAL_MS), and what was not read by then is missing. So beside busy
    programs it may take more than one try."""
    for _ in range(4):
        got = churn(build)
        assert got.threads_lost == 0 and got.sum(A) == 1000 * got.sum(B), (got.sum(A), got.sum(B))
        if got.sum(B) == 3000:
            break
    assert (got.sum(A), got.sum(B)) == (3000 * 1000, 3000), (got.sum(A), got.sum(B))
    assert len(got.threads) == 3001, len(got.threads)


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
    leave_to_plain(build, "at a fork the sanitizer's own allocator may be locked, and stays so in the child")
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


def programs_of(path):
    """What each of the programs told that one file holds."""
    found = []
    for message in read_file(path):
        if message.type == "HELLO":
            found.append(Program())
        found[-1].take(message)
    return found


def file_of_executed(build, folder, name):
    """The file of a process that counts 1000 and executes a program which counts 3000."""
    with Told(folder, edges(build), "becomes", period=10, MPERF_OUTPUT=folder / name) as told:
        told.ready()
        path = folder / name.replace("%p", str(told.process.pid))
        wait_until("its counts are in the file",
                   lambda: path.exists() and programs_of(path) and programs_of(path)[0].sum(A) == 1000)
        told.go_on()
        told.ends()
    return path


def test_a_program_that_executes_another_keeps_what_it_told(build):
    with Folder() as folder:
        for name in "out", "out.%p":
            first, second = programs_of(file_of_executed(build, folder, name))
            assert (first.sum(A), second.sum(A)) == (1000, 3000), (first.sum(A), second.sum(A))
            assert not first.last and second.last


def test_a_file_of_an_earlier_run_is_overwritten(build):
    with Folder() as folder:
        file_of_executed(build, folder, "out")
        ran(program(build), "threads", 2, MPERF_OUTPUT=folder / "out")
        told, = programs_of(folder / "out")
        assert told.sum(A) == 2000


def test_a_file_of_another_process_with_the_same_pid_is_overwritten(build):
    """It began before the process, or, in another boot, after now; and any pid may be its first thread's."""
    threads = b"".join(make("THREAD", thread=i, tid=os.getpid() + i) for i in range(5000))
    for begin_ns in 0, time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 3600 * 10**9:
        hello = make("HELLO", magic=0x4652504D, version=1, begin_ns=begin_ns)
        with Folder() as folder:
            (folder / "out").write_bytes(hello + threads)
            ran(program(build), "threads", 2, MPERF_OUTPUT=folder / "out")
            told, = programs_of(folder / "out")
            assert told.sum(A) == 2000 and len(told.threads) < 5, told.threads


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
        connection.read_newer_rounds()
        told.go_on()
        told.ready()
        connection.read_newer_rounds()  # one that fell into the region has its time, not yet its counts
        spent = connection.program.in_region("faults")
        assert spent["entries"] == 2, spent
        pages = range(1000, 1200)  # a sanitizer's shadow is an eighth more
        assert spent["granted"] in pages and spent["granted_1"] in pages, spent
        assert spent["granted_2"] == 0, spent
        # Others take their place; those before are closed.
        descriptors = len(os.listdir(f"/proc/{told.process.pid}/fd"))
        connection.grant(thread.thread, [])
        connection.read_newer_rounds()
        assert len(os.listdir(f"/proc/{told.process.pid}/fd")) == descriptors - 2
        told.go_on()
        told.ends()


# --- libraries ------------------------------------------------------------------------------------

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


def test_of_two_runtimes_in_a_process_one_serves(build):
    own = linked(build, "own.so", "library.c", flags=["-shared", "-fPIC"])
    told = output(program(build), "library", own, 20)
    for sums in library_sums(told, 20):
        assert set(sums[c] for c in range(4, LIBRARY_COUNTERS)) == {2}, sums
    assert told.in_region("closing")["entries"] == told.sum(A, region="closed") == 20


def test_a_library_may_bring_the_runtime_into_a_program_that_has_none(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's runtime must be in the program")
    own = linked(build, "own.so", "library.c", flags=["-shared", "-fPIC"])
    plain = linked(build, "plain", "plain.c", with_runtime=False)
    told = output(plain, own, 1)
    assert library_sums(told, 1)[0][LIBRARY_COUNTERS - 1] == 1


def test_a_library_with_the_runtime_takes_all_of_it_along_when_it_is_closed(build):
    """Its descriptors and its memory, its handlers of exits, and not what it counted."""
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's runtime must be in the program")
    own = linked(build, "own.so", "library.c", flags=["-shared", "-fPIC"])
    plain = linked(build, "plain", "plain.c", with_runtime=False)
    n = 40
    for how in "main", "threads":
        with Folder() as folder:
            file = ran(plain, "again", own, n, how, MPERF_OUTPUT=folder / "out")
            programs = programs_of(folder / "out")
            assert len(programs) == n and all(p.last for p in programs), (how, len(programs))
            for told in programs:
                assert library_sums(told, 1)[0][LIBRARY_COUNTERS - 1] == 1, how
            silent = ran(plain, "again", own, n, how, MPERF_FEED="")
            with Daemon(folder / "feed"):
                fed = ran(plain, "again", own, n, how, MPERF_FEED=folder / "feed")
        for done in file, silent, fed:
            descriptors, pages = map(int, done.stdout.split())
            assert descriptors == 0 and pages < 2 * n, (how, done.stdout)


# --- cost -----------------------------------------------------------------------------------------

def instructions_of_pairs(build, n):
    """Of a program with so many entries into a region, of which 1 in 10,000 is measured."""
    with Folder() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind", edges(build), "pairs",
             str(n)], text=True, capture_output=True, timeout=120,
            env=environment(MPERF_OUTPUT=folder / "out", MPERF_REGION_SAMPLE=10000, MPERF_PERIOD=60000))
        told = Program(read_file(folder / "out"))
    assert done.returncode == 0 and told.in_region("pair")["entries"] == n, done.stderr
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def test_an_entry_into_a_region_that_is_not_measured_is_cheap(build):
    leave_to_plain(build, "valgrind does not run a program with sanitizers")
    need_program("valgrind")
    each = (instructions_of_pairs(build, 220000) - instructions_of_pairs(build, 20000)) / 200000
    print(f"  {each:.1f} instructions, with the loop around")
    assert each < (40 if platform.machine() == "x86_64" else 80), each


# --- races ----------------------------------------------------------------------------------------

def test_threads_do_not_race(build):
    """Built and run with the thread sanitizer. What it cannot know is that a thread which the kernel
    no longer knows writes no more: its record and areas are cleared without a lock."""
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; it is a build of its own")
    flags = "-fsanitize=thread -Wno-tsan -g -O1"
    folder = build / "tsan"
    subprocess.run(["make", "-s", f"BUILD={folder}", "CC=gcc", "CFLAGS=-g -O1 -Wno-tsan", "WERROR=",
                    "SANITIZE=-fsanitize=thread", folder / "libmperf-runtime.a"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    made = linked(folder, "program", "program.c", flags=flags.split(), compiler="gcc")
    opened = linked(folder, "library.so", "library.c", flags=["-shared", "-fPIC", *flags.split()],
                    compiler="gcc", with_runtime=False)
    with Folder() as scratch:
        (scratch / "known").write_text("race:mperf_thread_forget\nrace:mperf_area_clear\n")
        options = f"suppressions={scratch / 'known'} report_thread_leaks=0"
        for arguments in (["threads", 50], ["churn", 200], ["workers", 4], ["region-threads"],
                          ["signals"], ["library", opened, 5], ["libraries-and-threads", opened, 20],
                          ["forks"]):
            ran(made, *arguments, MPERF_OUTPUT=scratch / "out", MPERF_PERIOD=10,
                TSAN_OPTIONS=options)


# --- nests ----------------------------------------------------------------------------------------

def test_short_nests_are_timed_by_sample(build):
    told = output(program(build), "nests", 1_000_000)
    assert told.sum(A) == 1_000_000
    assert 500 < told.sum(TIMED) < 500_000, told.sum(TIMED)


def test_a_nest_inside_itself_is_timed_once(build):
    """By recursion through other functions: 11 entries, one inside the other, in each of 20 rounds."""
    with Folder() as folder:
        whole_ns = int(ran(edges(build), "recursion", 20, MPERF_OUTPUT=folder / "out").stdout)
        told = Program(read_file(folder / "out"))
    assert 20 * 20_000_000 * 0.99 < told.sum(TIME) <= whole_ns, (told.sum(TIME), whole_ns)
    assert told.sum(TIMED) == 20, told.sum(TIMED)


def test_time_of_a_nest_is_not_that_of_the_nest_that_called_it(build):
    """Also while the caller runs: what a round has sent is never taken back."""
    n, slept_ns = 10, 20_000_000
    with Folder() as folder:
        whole_ns = int(ran(edges(build), "inside", n, library(build), MPERF_OUTPUT=folder / "out",
                           MPERF_PERIOD=15).stdout)
        told = Program(read_file(folder / "out"))
    inner, = [o for o, m in told.objects.items() if m.n_counters == LIBRARY_COUNTERS]
    outer, = [o for o in told.objects if o != inner]
    inside_ns, outside_ns = told.sum(TIME, object=inner), told.sum(TIME, object=outer)
    assert inside_ns >= n * slept_ns, (inside_ns, whole_ns)
    assert slept_ns <= outside_ns and inside_ns + outside_ns <= whole_ns, (inside_ns, outside_ns, whole_ns)


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


# --- other ways to link ---------------------------------------------------------------------------

def test_a_static_program_counts(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; sanitizers do not link statically")
    flags = ["-static", "-Wl,--no-warnings"]  # dlopen is not called
    static = linked(build, "static", "program.c", flags=flags)
    told = output(static, "threads", 10)
    assert (told.sum(A), told.sum(B)) == (10000, 45)
    assert [m.build_id_bytes for m in told.objects.values()] == [20]
    assert sorted(t.sum(A) for t in outputs(static, "forks")) == [3, 11]
