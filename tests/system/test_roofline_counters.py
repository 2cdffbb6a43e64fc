# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl roofline --from counters: marks by operations and bytes from memory that the hardware counted.

No machine of ours counts both, so its owner describes a core whose operations are page faults and whose lines
are page faults too: these are counted everywhere, by the same way from the metric to the picture."""
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

from fake_daemon import COUNT, NONE, NS, RATIO, READY, SHARE, FakeDaemon, columns, done, failure, provenance, rows
from machine import BAD_WORDS, NOBODY, Folder, Skip, mperfctl, refused
from test_platforms import ask, metric, tried_core, try_platforms, with_platforms, write
from test_plot import SVG, drawing_of

SECONDS = 30
SANITIZED = ("test_a_program_has_a_row_of_what_was_counted",
             "test_regions_whose_misses_were_counted_have_a_second_mark")
STAT, ROOFLINE = 5, 13  # Request.body
MISSING = 3             # FailureKind
COUNTERS = "roofline", "--from", "counters"
# 30,000 faults, of 15.6 operations a byte
FAULTS = [sys.executable, "-c", "import mmap\nfor _ in range(100): mmap.mmap(-1, 300 * 4096).write(b'x' * 300 * 4096)"]
FORKS = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done"]  # whom an ordinary user may run
OWN_METRICS = [
    metric("fp_ops", r"1000 * page\-faults", group="Roofline_counts"),
    metric("dram_bytes", r"64 * page\-faults", group="Roofline_counts"),
    metric("fp_gflops", r"fp_ops / task\-clock", "1GFLOP/s", "Roofline"),
    metric("dram_gbytes", r"dram_bytes / task\-clock", "1GB/s", "Roofline"),
    metric("fp_per_dram_byte", "fp_ops / dram_bytes", "1FLOP/byte", "Roofline")]


def counting_core(*more, without=()):
    core = tried_core()
    core["metrics"] = [dict(m) for m in [*OWN_METRICS, *more] if m["MetricName"] not in without]
    return core


def ask_with_state(build, folder, *arguments, check=True):
    """As ask, with the measured roofs below the folder."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", XDG_STATE_HOME=str(folder / "state"))
    environment.pop("MPERF_SOCKET", None)
    done = subprocess.run(with_platforms(folder, build / "mperfctl", *arguments), env=environment,
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert not any(word in done.stdout + done.stderr for word in BAD_WORDS), done.stderr
    assert not check or done.returncode == 0, done.stderr
    return done


def keep_roofs_of_this_machine(build, folder, disturbed=""):
    """DRAM gives 1 GB/s, the peak is 0.25 GFLOP/s: at 15.6 operations a byte, the peak bounds."""
    for seconds in 1, 4, 16, 60:  # what is measured is not used: whose roofs they are is
        mperfctl(build, "roofs", "measure", "--quick", "--for", f"{seconds}s", check=False,
                 env={"XDG_STATE_HOME": str(folder / "state")})
        if (folder / "state" / "mperf" / "roofs").exists():
            break
    kept, = (folder / "state" / "mperf" / "roofs").iterdir()
    measured = json.loads(kept.read_text())
    common = {"kind": measured["machine"]["kinds"][0]["id"], "scope": "hart", "harts": 1, "lmul": 0, "hz": 0,
              "repeats": 9, "note": "", "unit": "scalar"}
    memory = {**common, "limit": "memory", "pattern": "load", "bytes": 4096}
    measured["disturbed"] = disturbed
    measured["roofs"] = [
        {**memory, "level": "DRAM", "value": 1e9, "low": 9e8, "high": 1.1e9},
        {**memory, "level": "L1", "value": 1e11, "low": 9e10, "high": 1.1e11},
        {**common, "limit": "compute", "precision": "f64", "operation": "fma", "value": 2.5e8, "low": 2e8,
         "high": 3e8},
        {**common, "limit": "compute", "precision": "f32", "operation": "fma", "value": 5e8, "low": 4e8,
         "high": 6e8}]
    kept.write_text(json.dumps(measured))


def near(value, wanted):
    assert abs(value - wanted) <= 1e-9 * abs(wanted), (value, wanted)


def test_a_program_has_a_row_of_what_was_counted(build):
    with Folder() as folder:
        write(folder, "tried.json", counting_core())
        try_platforms(folder)
        answer = json.loads(ask(build, folder, *COUNTERS, "--json", "--", *FAULTS).stdout)
        row, = answer["rows"]
        text = ask(build, folder, *COUNTERS, "--", *FAULTS).stdout
        status = ask(build, folder, *COUNTERS, "--", "sh", "-c", "exit 7").returncode
    assert row["program"].startswith(sys.executable) and row["from"] == "counters", row
    assert 1e-4 < row["gops"] < 10, row
    near(row["gops"] / row["dram_gbytes"], row["ops_per_dram_byte"])
    near(row["ops_per_dram_byte"], 1000 / 64)
    assert row["counted"] == 1 and "ops_per_byte" not in row, row
    notes = answer["provenance"]["notes"]
    assert any("are a model" in note for note in notes), notes
    assert any("compared with double-precision roofs" in note for note in notes), notes
    assert re.search(r"^Program +GFLOP/s +± +DRAM GB/s +± +FLOP/DRAM B", text, re.M), text
    assert status == 7


def test_processes_and_functions_have_what_rode_on_their_samples(build):
    with Folder() as folder:
        write(folder, "tried.json", counting_core())
        try_platforms(folder)
        for grouping, key in ((["--per-process"], "comm"), (["--by", "function"], "function"),
                              (["--by", "thread"], "tid")):
            rows = json.loads(ask(build, folder, *COUNTERS, *grouping, "-F", 499, "--json", "--", *FAULTS)
                              .stdout)["rows"]
            assert rows and all(row[key] is not None for row in rows), rows
            counted = [row for row in rows if row["gops"]]
            assert counted, rows
            for row in counted:
                near(row["ops_per_dram_byte"], 1000 / 64)
            assert sum(row["share"] for row in rows) <= 1 + 1e-9, rows


def test_its_mark_is_drawn_under_the_roofs_of_its_kind(build):
    with Folder() as folder:
        write(folder, "tried.json", counting_core())
        try_platforms(folder)
        keep_roofs_of_this_machine(build, folder)
        row, = json.loads(ask_with_state(build, folder, *COUNTERS, "--json", "--", *FAULTS).stdout)["rows"]
        page = ask_with_state(build, folder, *COUNTERS, "-o", "-", "--", *FAULTS).stdout
        text = ask_with_state(build, folder, *COUNTERS, "--plot", "--", *FAULTS).stdout
        ask_with_state(build, folder, *COUNTERS, "-o", folder / "plot.svg", "--", *FAULTS)
        xml.fromstring((folder / "plot.svg").read_text(encoding="utf-8"))
    near(row["of_dram_roof"], row["gops"] / 0.25)
    assert row["dram_bound_by"] == ("compute" if row["of_dram_roof"] >= 0.5 else None), row
    assert row.get("of_roof") is None, row
    root = drawing_of(page)
    marks = [g for g in root.iter(SVG + "g") if g.get("class", "").startswith("dram ")]
    assert len(marks) == 1 and "FLOP/byte from memory" in marks[0].find(SVG + "title").text, page[-3000:]
    assert not list(root.iter(SVG + "circle")), "nothing says which bytes it asked for"
    assert "DRAM 1 GB/s" in page and "L1 100 GB/s" not in page, page
    assert "Counted. DRAM bytes are a model" in page, page[:3000]
    assert "Diamonds: bytes that came from memory" in page and "Memory bounds below 0.25" in page, page
    assert re.search(r"^ *\d.*1$|[^\d]1[^\d]", text) and "Diamonds" in text, text


def test_roofs_are_those_of_the_precision_that_was_counted(build):
    single = metric("fp_dp_share", r"page\-faults / (4 * page\-faults)", "100%", "Roofline")
    with Folder() as folder:
        write(folder, "tried.json", counting_core(single))
        try_platforms(folder)
        keep_roofs_of_this_machine(build, folder)
        row, = json.loads(ask_with_state(build, folder, *COUNTERS, "--json", "--", *FAULTS).stdout)["rows"]
    near(row["dp_share"], 0.25)
    near(row["of_dram_roof"], row["gops"] / 0.5)


def test_what_a_core_cannot_count_is_named(build):
    origin = {"source": "a test", "verified": "no"}
    with Folder() as folder:
        core = counting_core(without=("dram_bytes", "dram_gbytes", "fp_per_dram_byte"))
        core["quirks"].append({"quirk": "missing", "metrics": ["dram_gbytes", "fp_per_dram_byte"],
                               "says": "no event counts lines from memory", **origin})
        write(folder, "tried.json", core)
        try_platforms(folder)
        for grouping in [], ["--per-process"]:
            refused(ask(build, folder, *COUNTERS, *grouping, "--", "touch", folder / "ran"), 1,
                    "Tried Core has no dram_gbytes: no event counts lines from memory", "--from code", "mperf-cc")
        refused(ask(build, folder, *COUNTERS, "--ops", "dp", "--", "touch", folder / "ran"), 1, "dp_gflops",
                "--from code")
        assert not (folder / "ran").exists(), "nothing runs in vain"
        # an event of the core that nothing here counts
        core = counting_core()
        core["metrics"][0]["MetricExpr"] = "tried_event"
        core["events"][0]["code"] = "0xfffff"
        write(folder, "tried.json", core)
        done = ask(build, folder, *COUNTERS, "--", "touch", folder / "ran")
        if done.returncode:  # else this machine counts that code
            refused(done, 1, "--from code", "mperf-cc")
            assert "tried_event" in done.stderr, done.stderr


def test_half_of_the_events_is_refused_before_anything_runs(build):
    """Operations count here, lines from memory do not: a row would have no place on a roofline."""
    with Folder() as folder:
        core = counting_core()
        core["metrics"][1]["MetricExpr"] = "64 * tried_event"
        core["events"][0]["code"] = "0xfffff"
        write(folder, "tried.json", core)
        try_platforms(folder)
        for grouping in [], ["--per-process"], ["--by", "function"]:
            done = ask(build, folder, *COUNTERS, *grouping, "--", "touch", folder / "ran")
            if not done.returncode:
                raise Skip("this machine counts the code 0xfffff")
            refused(done, 1, "fp_per_dram_byte needs tried_event, which cannot be counted", "--from code", "mperf-cc")
            assert not (folder / "ran").exists(), (grouping, done.stderr)
        # what stat was not asked to need is counted, and the rest says why it is not
        rows = json.loads(ask(build, folder, "stat", "-M", "fp_gflops,dram_gbytes", "--json", "--", "true").stderr)
    values = {row["event"]: (row["scaled"], row["reason"]) for row in rows["rows"]}
    assert values["fp_gflops"][0] is not None and values["dram_gbytes"][0] is None, values


def test_an_ordinary_user_measures_their_own(build):
    with Folder() as folder:
        folder.chmod(0o755)
        write(folder, "tried.json", counting_core())
        try_platforms(folder)
        environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", XDG_STATE_HOME="/nowhere", HOME="/nowhere")
        environment.pop("MPERF_SOCKET", None)
        done = subprocess.run(with_platforms(folder, *NOBODY, build / "mperfctl", *COUNTERS, "--json", "--", *FORKS),
                              env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if "perf_event_paranoid" in done.stderr:
            raise Skip("kernel.perf_event_paranoid lets no ordinary user count here")
        assert done.returncode == 0, done.stderr
        row, = json.loads(done.stdout)["rows"]
        near(row["ops_per_dram_byte"], 1000 / 64)
        for whom in ["--pid", os.getpid()], ["-a"]:  # and nobody else's
            done = subprocess.run(with_platforms(folder, *NOBODY, build / "mperfctl", *COUNTERS, "--for", "1ms", *whom),
                                  env=environment, capture_output=True, text=True, timeout=120,
                                  stdin=subprocess.DEVNULL)
            refused(done, 1)
            assert not done.stdout, done


def with_roofs(build, folder, daemon, disturbed=""):
    keep_roofs_of_this_machine(build, folder, disturbed)
    return dict(daemon.environment, XDG_STATE_HOME=str(folder / "state"))


def test_two_kinds_of_core_have_rows_with_intervals(build):
    """As a machine with counters answers: two kinds of cores, of which one had to let events take turns."""
    def metric_row(name, value, error, running, harts):
        return name, None, value, None, None, running, None, None, "a / b", error, "1", harts

    def answer(daemon, connection, request):
        if request.case != STAT:  # roofs that the service may have
            return daemon.send(connection, request.number, failure(MISSING, "there are none", ""))
        assert request.all(5) == [b"fp_gflops", b"dram_gbytes", b"fp_per_dram_byte", b"Roofline"], request.body
        return daemon.send(connection, request.number, READY,
                    columns("", *[(name, name, NONE) for name in (
                        "event", "value", "scaled", "enabled_ns", "running_ns", "running_share", "reason", "unit",
                        "formula", "error", "passes", "harts")]),
                    rows(metric_row("fp_gflops", 0.125, 0.0125, 0.5, "0-3"),
                         metric_row("dram_gbytes", 0.25, 0.05, 1.0, "0-3"),
                         metric_row("fp_per_dram_byte", 0.5, 0.1, 0.5, "0-3"),
                         metric_row("fp_dp_share", 99.0, 0.1, 0.5, "0-3"),
                         metric_row("fp_gflops", 0.0625, None, 1.0, "4-7"),
                         metric_row("dram_gbytes", 0.5, None, 1.0, "4-7"),
                         metric_row("fp_per_dram_byte", 0.125, None, 1.0, "4-7")),
                    provenance(samples=0, hz=0, event=""), done())

    with Folder() as folder, FakeDaemon(answer) as daemon:
        environment = with_roofs(build, folder, daemon)
        ask_it = [*COUNTERS, "--pid", "1", "--for", "1ms"]
        big, little = json.loads(mperfctl(build, *ask_it, "--json", env=environment).stdout)["rows"]
        text = mperfctl(build, *ask_it, env=environment).stdout
        page = mperfctl(build, *ask_it, "-o", "-", env=environment).stdout
    assert big["harts"] == "0-3" and big["gops_error"] == 0.0125 and big["counted"] == 0.5, big
    near(big["of_dram_roof"], 0.5)          # of 0.25 GFLOP/s, at which the peak and DRAM meet
    near(little["of_dram_roof"], 0.0625 / 0.125)
    assert little["dram_bound_by"] == "memory" and little["gops_error"] is None, little
    assert re.search(r"^process 1 +0-3 +0\.1[23] +0\.01 +0\.25 +0\.05 +0\.50 +0\.10 +50\.00 %", text, re.M), text
    marks = [g.find(SVG + "title").text for g in drawing_of(page).iter(SVG + "g")
             if g.get("class", "").startswith("dram ")]
    assert len(marks) == 2 and any("error 10.00 %" in m and "50 % of the DRAM roof" in m for m in marks), marks


def test_regions_whose_misses_were_counted_have_a_second_mark(build):
    named = [("region", NONE), ("source", NONE), ("entries", COUNT), ("time_ns", NS), ("share", SHARE),
             ("gops", RATIO), ("gbytes", RATIO), ("ops_per_byte", RATIO), ("fp64_ops", COUNT),
             ("dram_gbytes", RATIO), ("ops_per_dram_byte", RATIO)]

    def answer(daemon, connection, request):
        if request.case != ROOFLINE:
            return daemon.send(connection, request.number, failure(MISSING, "there are none", ""))
        return daemon.send(connection, request.number, columns("", *[(name, name, unit) for name, unit in named]),
                    rows(("solve", "a.c:3", 2, 5000, 0.5, 0.0625, 0.5, 0.125, 9, 0.125, 0.5),
                         ("step", "a.c:9", 2, 5000, 0.5, 0.0625, 0.5, 0.125, 9, None, None)),
                    provenance(), done())

    with Folder() as folder, FakeDaemon(answer) as daemon:
        environment = with_roofs(build, folder, daemon, "other programs used 1.30 of 2 harts meanwhile")
        ask_it = ["roofline", "--by", "region", "--since", "-1m"]
        answered = json.loads(mperfctl(build, *ask_it, "--json", env=environment).stdout)
        roofs = mperfctl(build, "roofs", env=environment).stdout
        solve, step = json.loads(mperfctl(build, *ask_it, "--json", env=environment).stdout)["rows"]
        text = mperfctl(build, *ask_it, env=environment).stdout
        page = mperfctl(build, *ask_it, "-o", "-", env=environment).stdout
        drawn = mperfctl(build, *ask_it, "--plot", env=environment).stdout
    assert "other programs used 1.30 of 2 harts" in answered["provenance"]["notes"][0], answered
    for said in text, page, drawn:
        assert "other programs used 1.30 of 2 harts" in " ".join(said.split()), said
    assert roofs.splitlines()[1].startswith("Disturbed: other programs used 1.30 of 2 harts"), roofs
    near(solve["of_dram_roof"], 0.0625 / 0.25)
    assert solve["dram_bound_by"] is None, "a quarter of what DRAM allows is far below"
    assert solve["bound_by"] == "both", solve
    assert step["of_dram_roof"] is None and step["dram_bound_by"] is None, step
    assert re.search(r"^step .* - +- +-$", text, re.M), text
    root = drawing_of(page)
    (mark,) = [g for g in root.iter(SVG + "g") if g.get("class", "").startswith("dram ")]
    assert mark.find(SVG + "title").text.startswith("solve\na.c:3\n0.0625 GFLOP/s · 0.5 FLOP/byte from memory")
    (joined,) = [line for line in mark.iter(SVG + "line") if line.get("class") == "join"]
    assert joined.get("y1") == joined.get("y2"), "the same rate"
    assert len(list(root.iter(SVG + "circle"))) == 2 and "joined to the bytes asked for" in page
    assert drawn.count("◇") == 1, drawn


def test_what_makes_no_sense_with_counters_is_refused(build):
    for arguments, word in ((["--by", "loop", "--", "true"], "--by function"),
                            (["--ops", "int", "--", "true"], "--ops"), (["-i", "x"], "-i"),
                            (["--since", "-1m", "--", "true"], "--since"), (["--live", "--", "true"], "--live"),
                            (["--symfs", "x", "--", "true"], "--symfs"), ([], "nothing to measure"),
                            (["-F", "99", "--", "true"], "--per-process"),
                            (["--by", "function", "--per-process", "--", "true"], "--by"),
                            (["-a", "--pid", "1"], "-a")):
        refused(mperfctl(build, *COUNTERS, *arguments, check=False), 2, word)
    for arguments in ["-a"], ["--per-process", "--", "true"]:
        refused(mperfctl(build, "roofline", *arguments, check=False), 2, "--from counters")
