# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl roofline and blocks, of a program whose answers are known: its tables are made by hand."""
import csv
import io
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time

import feed_program as feed
from machine import NOBODY, ROOT, Folder, mperfctl, need_program, refused, rows, seal
from running import on_a_terminal
from service import Service, wait_until

SECONDS = 19

PROGRAM = [sys.executable, ROOT / "tests" / "system" / "feed_program.py"]
ALONE = {"MPERF_SOCKET": ""}  # no service


def row_of(answer, **wanted):
    found = [r for r in answer["rows"] if all(r[k] == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, answer["rows"])
    return found[0]


def near(value, wanted):
    assert abs(value - wanted) <= 1e-9 * abs(wanted), (value, wanted)


def check_triad(answer, calls, passes, time_ns):
    """The figures that so much of feed_program.triad() comes to."""
    outer, inner = row_of(answer, nest="1"), row_of(answer, nest="1.1")
    assert outer["function"] == "triad" and outer["source"] == "kernels/triad.c:12"
    assert outer["entries"] == calls and outer["iterations"] == passes
    assert outer["clock"] == "measured" and outer["time_ns"] == time_ns
    assert outer["fp64_ops"] == outer["ops"] == passes * 2000 and outer["ops_self"] == 0
    assert outer["bytes_loaded"] == passes * 16000 and outer["bytes_stored"] == passes * 8000
    near(outer["gops"], passes * 2000 / time_ns)
    near(outer["gbytes"], passes * 24000 / time_ns)
    near(outer["ops_per_byte"], 1 / 12)
    near(outer["lanes"], 0.75)
    instructions, updates, accesses = passes * 6003, passes, passes * 3000
    before = accesses / instructions
    after = (2 * updates + accesses) / (2 * updates + instructions)
    factor = (instructions + updates * after / before) / instructions
    near(outer["gbytes_corrected"], outer["gbytes"] * factor)
    assert inner["entries"] == passes and inner["iterations"] == passes * 1000
    assert inner["ops_self"] == inner["ops"] and inner["copies"] == "vectorised"


def test_a_command_without_a_service_tells_its_loops(build):
    said = mperfctl(build, "roofline", "--json", "--", *PROGRAM, 3, 30, 7_500_000, env=ALONE).stdout
    check_triad(json.loads(said), 3, 30, 7_500_000)


def test_a_running_program_is_asked_before_it_is_told_of(build):
    with Folder() as folder, Service(build, folder, flush="5s") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            c.send(feed.round_())
            wait_until("it is known", lambda: service.ask("status")["feed"][0]["programs"] == 1)

            def answer_when_asked():
                while not c.asked(60)[1]:
                    pass
                feed.count_triad(c, 2, 20, 5_000_000)
                c.send(feed.round_())
            teller = threading.Thread(target=answer_when_asked)
            teller.start()
            answer = service.ask("roofline", "--pid", os.getpid())
            teller.join()
            check_triad(answer, 2, 20, 5_000_000)


def test_others_loops_are_not_shown(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            feed.count_triad(c, 1, 10, 1_000_000)
            c.send(feed.round_())
            wait_until("it is stored", lambda: service.ask("roofline", "--since", "-1h")["rows"])
            seen = subprocess.run([*NOBODY, build / "mperfctl", "roofline", "--since", "-1h", "--json"],
                                  env=dict(os.environ, MPERF_SOCKET=str(service.socket)),
                                  capture_output=True, text=True, timeout=60)
        assert seen.returncode == 0, seen
        assert not json.loads(seen.stdout)["rows"], seen.stdout


def test_regions_have_what_ran_in_them(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            c.send(feed.region(1, "solve", "main.c", 7), feed.region(2, "inner", "main.c", 9, 1))
            feed.count_triad(c, 1, 10, 1_000_000, region_=1)
            feed.count_triad(c, 1, 5, 500_000, region_=2)
            feed.count_triad(c, 1, 2, 100_000)
            c.send(feed.spent(1, 4_000_000), feed.spent(2, 1_000_000, entries=4, counted=2),
                   feed.round_())
            wait_until("it is stored", lambda: service.ask("roofline", "--since", "-1h")["rows"])
            answer = service.ask("roofline", "--by", "region", "--pid", os.getpid())
        solve, inner = row_of(answer, region="solve"), row_of(answer, region="inner")
        none = row_of(answer, region="[no region]")
        assert solve["source"] == "main.c:7" and inner["around"] == "solve"
        # one in two entries of the inner one was counted, which its own row makes up for
        assert inner["time_ns"] == 1_000_000 and inner["fp64_ops"] == 2 * 5 * 2000
        assert solve["time_ns"] == 4_000_000 and solve["fp64_ops"] == 15 * 2000
        assert none["fp64_ops"] == 2 * 2000
        near(solve["gops"], 15 * 2000 / 4_000_000)
        # of a thread the time of its regions is not another time; they said they began at 0
        thread, = service.ask("roofline", "--by", "thread", "--pid", os.getpid())["rows"]
        assert thread["fp64_ops"] == 17 * 2000 and thread["time_ns"] < 60e9, thread


def test_threads_are_told_apart(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            begin_ns = feed.now_ns()
            feed.announce(c, feed.triad(), begin_ns=begin_ns)
            alive, told = threading.Event(), threading.Event()

            def second():
                c.send(feed.thread(1, begin_ns=begin_ns))
                alive.set()
                told.wait(60)
            other = threading.Thread(target=second)
            other.start()
            alive.wait(60)
            feed.count_triad(c, 1, 10, 1_000_000)
            feed.count_triad(c, 1, 40, 1_000_000, thread_=1)
            c.send(feed.round_(until_ns=begin_ns + 10**9))
            wait_until("it is stored", lambda: service.ask("roofline", "--since", "-1h")["rows"])
            told.set()
            other.join()
            answer = service.ask("roofline", "--by", "thread", "--pid", os.getpid())
        counted = sorted((r["fp64_ops"], r["tid"]) for r in answer["rows"])
        assert [n for n, _ in counted] == [10 * 2000, 40 * 2000], counted
        assert counted[0][1] != counted[1][1] and counted[1][1] == other.native_id, counted


def messages_of_triad(calls, passes, time_ns, last=1):
    table = feed.triad()
    return b"".join([feed.hello(), feed.object_(n_counters=len(table.counters)),
                     *feed.tables(table), feed.thread(),
                     feed.deltas({0: calls, 1: passes, 2: calls, 3: time_ns}),
                     feed.round_(last=last)])


def test_a_file_that_a_program_wrote_tells_the_same(build):
    with Folder() as folder:
        path = folder / "run.out"
        path.write_bytes(messages_of_triad(3, 30, 7_500_000))
        check_triad(rows(build, "roofline", "-i", path), 3, 30, 7_500_000)
        thread, = rows(build, "roofline", "-i", path, "--by", "thread")["rows"]
        assert thread["pid"] is None and thread["tid"] > 0, thread
        function, = rows(build, "roofline", "-i", path, "--by", "function")["rows"]
        assert function["time_ns"] == 7_500_000 and function["clock"] == "measured", function
        refused(mperfctl(build, "hotspots", "-i", path, check=False), 1, "roofline")
        # it is of one program, and knows neither its pid, nor its labels, nor the date
        for which in (("--pid", "1"), ("--comm", "triad"), ("--label", "branch=main"), ("--since", "-1m"),
                      ("--until", "-1m")):
            for command in "roofline", "blocks":
                refused(mperfctl(build, command, "-i", path, *which, check=False), 2, "one program",
                        which[0])
        # cut anywhere, it tells what came before or says what it is
        whole = path.read_bytes()
        path.write_bytes(whole[:-30])
        answer = rows(build, "roofline", "-i", path)
        assert not answer["rows"] and any("had not ended" in n for n in answer["provenance"]["notes"])
        path.write_bytes(whole[:33] + b"\xff" * 40)
        refused(mperfctl(build, "roofline", "-i", path, check=False), 1, "damaged", "wrong length")


TEMPLATE = "_ZN12accumulationI" + "St6vectorIdSaIdEE" * 6 + "E3sumEv"


def nest_of_templates():
    """A loop of a function with a long name, and two in it, the second of which has all operations."""
    table = feed.Table()
    function = table.scope(feed.FUNCTION, TEMPLATE, "include/accumulation.h", 10, 40)
    outer = table.scope(feed.LOOP, TEMPLATE, "include/accumulation.h", 12, 30, parent=function, nest="1")
    first = table.scope(feed.LOOP, TEMPLATE, "include/accumulation.h", 14, 16, parent=outer, nest="1.1")
    second = table.scope(feed.LOOP, TEMPLATE, "include/accumulation.h", 18, 20, parent=outer, nest="1.2")
    table.counter((outer, "entries", 1), (outer, "timed_entries", 1), (outer, "time_ns", 1_000_000),
                  (outer, "instructions", 10))
    table.counter((first, "entries", 1), (first, "instructions", 100), (first, "external_calls", 3))
    table.counter((second, "entries", 1), (second, "instructions", 890), (second, "fp64_ops", 5_000_000),
                  (second, "bytes_loaded", 20_000_000))
    return table


def write_output(path, table, n_counters):
    path.write_bytes(b"".join([feed.hello(), feed.object_(n_counters=n_counters), *feed.tables(table),
                               feed.thread(), feed.deltas({c: 1 for c in range(n_counters)}),
                               feed.round_(last=1)]))


def test_the_table_fits_a_terminal_and_keeps_names_and_lines(build):
    with Folder() as folder:
        path = folder / "run.out"
        write_output(path, nest_of_templates(), 3)
        for columns in 80, 100:
            lines = on_a_terminal(build, (50, columns), "roofline", "-i", path, env={
                "NO_COLOR": "1", "XDG_STATE_HOME": str(folder / "no-roofs")}).splitlines()
            assert all(len(line) <= columns for line in lines[:lines.index("")]), lines
            head, outer, first, second = lines[:4]
            assert head.split() == ["Function", "Source", "Share", "GFLOP/s", "GB/s", "FLOP/B"], head
            for row, line in ((outer, 12), (first, 14), (second, 18)):
                assert re.match(r" *accumu.*….*sum +\S*\.h:%d " % line, row), row
            assert not outer.startswith(" ") and first.startswith("  a") and second.startswith("  a"), lines
            # 890 of 1000 instructions of a millisecond: 5 MFLOP and 20 MB in 890 µs
            assert re.search(r" 5\.62 +22\.47 +0\.25$", second), second
            assert len(lines) - 4 <= 3 and "not counted" in lines[5], lines  # an empty one, and two


def test_columns_and_notes_are_chosen(build):
    with Folder() as folder:
        path = folder / "run.out"
        write_output(path, nest_of_templates(), 3)
        said = mperfctl(build, "roofline", "-i", path, "--columns", "time_self_ns,gops")
        assert re.match(r"Function +Source +Own time +GFLOP/s\n", said.stdout), said
        refused(mperfctl(build, "roofline", "-i", path, "--columns", "time_self_ns,nothing", check=False), 2,
                "no column 'nothing'")
        every = mperfctl(build, "roofline", "-i", path, "--columns", "all", "--notes").stdout
        assert all(name in every for name in ("Instructions", "Own bytes", "Not seen")), every
        assert "Bandwidth is what" in every, every
        inclusive = mperfctl(build, "roofline", "-i", path, "--inclusive").stdout.splitlines()
        assert re.search(r"h:12 .*5\.00 +20\.00 +0\.25", inclusive[1]), inclusive
        raw = mperfctl(build, "roofline", "-i", path, "--raw", "--columns", "depth,share_self").stdout
        assert [line.split("\t")[2:] for line in raw.splitlines()] == [
            ["depth", "share_self"], ["0", "0.01"], ["1", "0.10000000000000001"],
            ["1", "0.89000000000000001"]], raw
        refused(mperfctl(build, "roofline", "--columns", ",", "-i", path, check=False), 2, "--columns")


def test_a_file_of_a_program_that_executed_another_tells_of_both(build):
    with Folder() as folder:
        path = folder / "run.out"
        path.write_bytes(messages_of_triad(3, 30, 7_500_000, last=0) + messages_of_triad(2, 20, 500_000))
        answer = rows(build, "roofline", "-i", path)
        check_triad(answer, 5, 50, 8_000_000)
        assert any("executed another" in n for n in answer["provenance"]["notes"]), answer["provenance"]


def test_a_file_with_more_scopes_and_counts_than_a_turn_takes_is_read_whole(build):
    n = 5000  # more than PROGRAM_SLICE_SCOPES and PROGRAM_SLICE_ROWS of the daemon
    table = feed.Table()
    for i in range(n):
        scope = table.scope(feed.FUNCTION, f"f{i}", "f.c", i + 1, i + 1)
        table.counter((scope, "entries", 1), (scope, "fp64_ops", 1))
    counts = [feed.deltas({c: 1 for c in range(at, min(at + 1000, n))}) for at in range(0, n, 1000)]
    with Folder() as folder:
        path = folder / "run.out"
        path.write_bytes(b"".join([feed.hello(), feed.object_(n_counters=n), *feed.tables(table),
                                   feed.thread(), *counts, feed.round_(last=1)]))
        answer = rows(build, "roofline", "-i", path, "--by", "function", "-n", n)
        assert len(answer["rows"]) == n and all(r["ops"] == 1 for r in answer["rows"]), len(answer["rows"])


def test_a_table_above_the_limit_is_said_to_be_missing_from_a_file(build):
    too_large = b"\x01" + bytes(9 << 20)
    with Folder() as folder:
        path = folder / "run.out"
        pieces = feed.tables(too_large, module=1, first=4, n_counters=1)
        table = feed.triad()
        path.write_bytes(b"".join([feed.hello(), feed.object_(n_counters=5, n_modules=2),
                                   *feed.tables(table), *pieces, feed.thread(),
                                   feed.deltas({0: 3, 1: 30, 2: 3, 3: 7_500_000, 4: 1}),
                                   feed.round_(last=1)]))
        answer = rows(build, "roofline", "-i", path)
        check_triad(answer, 3, 30, 7_500_000)
        assert any("table above its limits" in n for n in answer["provenance"]["notes"]), answer


def test_a_table_above_the_limit_is_said_to_be_missing_from_the_store(build):
    too_large = feed.tables(b"\x01" + bytes(9 << 20), module=1, first=4, n_counters=1)[:1]
    with Folder() as folder, Service(build, folder, flush="1s") as service, \
            feed.Connection(service.feed) as c:
        c.send(feed.hello(), feed.object_(n_counters=5, n_modules=2), *feed.tables(feed.triad()),
               *too_large, feed.thread())
        feed.count_triad(c, 3, 30, 7_500_000)
        c.send(feed.round_())
        wait_until("it is noted", lambda: "Loops of 1 compilation unit are missing" in
                   service.ctl("roofline", "--since", "-1h").stdout)


def test_a_recording_keeps_loops(build):
    """blocks --every cuts time into stretches that add up to all of it."""
    done = mperfctl(build, "blocks", "--csv", "--every", "100", "--", *PROGRAM, 3, 30, 7_500_000,
                    env=ALONE)
    # what the program says of itself stands before the table or after it
    table = "".join(line + "\n" for line in done.stdout.splitlines() if not line.startswith("{"))
    found = list(csv.DictReader(io.StringIO(table)))
    inner = [r for r in found if r["nest"] == "1.1"]
    assert sum(int(r["fp64_ops"]) for r in inner) == 30 * 2000, (done.stdout, done.stderr)
    assert all(float(r["time"] or 0) > 1.6e9 for r in found), (done.stdout, done.stderr)
    assert all(r["kind"] in ("loop", "function", "region") for r in found), done.stdout


def test_sums_of_minutes_and_hours_tell_the_same(build):
    """The service rolls up what it kept when it is started again an hour later; here by hand."""
    need_program("sqlite3")
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            feed.count_triad(c, 3, 30, 7_500_000)
            c.send(feed.round_())
            wait_until("it is stored", lambda: service.ask("roofline", "--since", "-1h")["rows"])
        service.stop()
        service.start()
        wait_until("it is rolled up", lambda: list((service.store / "hour").glob("*.mprf")))
        for tier in "minute", "hour":
            path, = (service.store / tier).glob("*.mprf")
            copy = folder / f"{tier}.mprf"
            subprocess.run(["sqlite3", path, f".backup {copy}",], check=True)
            subprocess.run(["sqlite3", copy, "UPDATE meta SET value = 1 WHERE key = 'sealed'"], check=True)
            seal(copy)
            check_triad(rows(build, "roofline", "-i", copy), 3, 30, 7_500_000)
            span = rows(build, "roofline", "--by", "region", "-i", copy)
            assert row_of(span, region="[no region]")["fp64_ops"] == 30 * 2000


def test_a_recording_without_counts_says_how_to_get_them(build):
    with Folder() as folder:
        path = folder / "run.mprf"
        mperfctl(build, "record", "-o", path, "--", sys.executable, "-c", "sum(range(10**6))", env=ALONE)
        said = mperfctl(build, "roofline", "-i", path).stderr
        assert "mperf-cc" in said and "record -- CMD" in said, said


def test_record_alone_keeps_the_counts_of_its_command(build):
    """Unless the user says where they go. The folder of the socket is removed."""
    with Folder() as folder:
        path, other, place = folder / "run.mprf", folder / "other.mprf", folder / "place"
        place.mkdir()
        mperfctl(build, "record", "-o", path, "--", *PROGRAM, 3, 30, 7_500_000,
                 env={**ALONE, "TMPDIR": place})
        check_triad(rows(build, "roofline", "-i", path), 3, 30, 7_500_000)
        assert not list(place.iterdir())
        mperfctl(build, "record", "-o", other, "--", "sh", "-c", 'test "$MPERF_FEED" = chosen',
                 env={**ALONE, "MPERF_FEED": "chosen"})


def test_what_makes_no_sense_is_refused(build):
    refused(mperfctl(build, "roofline", "--by", "lopo", check=False), 2, "loop", "lopo")
    refused(mperfctl(build, "roofline", "--ops", "quad", check=False), 2, "fp, int, sp or dp")
    refused(mperfctl(build, "roofline", "--csv", "--json", check=False), 2, "--csv")
    refused(mperfctl(build, "blocks", "--every", "5", check=False), 2, "100")
    refused(mperfctl(build, "blocks", "--live", "--every", "500", check=False), 2, "1s or more")
    refused(mperfctl(build, "blocks", "--live", "--csv", check=False), 2, "--csv")
    refused(mperfctl(build, "blocks", "--frames", "2", check=False), 2, "--live")
    refused(mperfctl(build, "blocks", "--live", "-F", "99", "--", "true", check=False), 2, "-F")
    refused(mperfctl(build, "roofline", "--live", "--two-phase", "--", "true", check=False), 2, "--two-phase")
    refused(mperfctl(build, "roofline", "--pid", "1", check=False, env=ALONE), 1, "service")
    refused(mperfctl(build, "roofline", "--pid", "1", "--", "true", check=False), 2, "--pid")
    refused(mperfctl(build, "roofline", "-i", "/nowhere", check=False), 1, "/nowhere")


def test_live_tells_what_came_since_the_last_time(build):
    """A program that tells ten passes each time it is asked: frames add up to what it told."""
    with Folder() as folder, Service(build, folder, flush="5s", period="1min") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            c.send(feed.round_())
            stop, told = threading.Event(), []

            def answer():
                c.socket.settimeout(0.2)
                while not stop.is_set():
                    try:
                        now = struct.unpack("<HHIII", c.socket.recv(64))[4]
                    except TimeoutError:
                        continue
                    if now:
                        feed.count_triad(c, 1, 10, 1_000_000)
                        c.send(feed.round_())
                        told.append(10)
            teller = threading.Thread(target=answer)
            teller.start()
            said = service.ctl("roofline", "--live", "--frames", "3", "--pid", os.getpid(),
                               "--json").stdout
            n_told = len(told)
            drawn = service.ctl("roofline", "--live", "--plot", "--frames", "1", "--pid", os.getpid(),
                                env={"LC_ALL": "C.UTF-8"}).stdout
            stop.set()
            teller.join()
        frames, decoder = [], json.JSONDecoder()
        while said.strip():
            frame, end = decoder.raw_decode(said.lstrip())
            frames.append(frame)
            said = said.lstrip()[end:]
        assert len(frames) == 3 and n_told == 4, (len(frames), told)
        passes = [sum(r["iterations"] for r in f["rows"] if r["nest"] == "1") for f in frames]
        assert passes == [10, 10, 10], passes
        assert drawn.count("GFLOP/s\n") == 1 and "└" in drawn, drawn
        assert re.search(r"^ *triad +\S+:13 +1 ", drawn, re.M), drawn


def test_bandwidth_of_threads_is_drawn_again_and_again(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            feed.announce(c, feed.triad())
            feed.count_triad(c, 1, 1000, 1_000_000)
            c.send(feed.round_())
            wait_until("it is stored", lambda: service.ask("roofline", "--since", "-1h")["rows"])
            said = service.ctl("blocks", "--live", "--frames", "2", "--pid", os.getpid(),
                               env={"LC_ALL": "C"}).stdout
        lines = [line for line in said.splitlines() if re.match(r"\S+\s+%d\s" % os.getpid(), line)]
        assert len(lines) == 2 and re.search(r" read .*@ *$", lines[0]), said
        assert len(re.findall(r"^ +written .*[=+] *$", said, re.M)) == 2, said  # half of that
        assert said.count("One column is") == 2, said
        # lines for each thread and the sums that it is made of
        table = rows(build, "blocks", "--every", "1000", "--pid", os.getpid(),
                     env={"MPERF_SOCKET": str(service.socket)})["rows"]
        assert sum(r["bytes_loaded"] + r["bytes_stored"] for r in table
                   if r["nest"] == "1.1") == 1000 * 24000, table
