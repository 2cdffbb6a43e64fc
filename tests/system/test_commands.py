# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the user types: every command with good arguments and with bad ones."""
import functools
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
import xml.etree.ElementTree as xml

from machine import (BAD_WORDS, Folder, Skip, as_nobody, compile_program, everybodys, mperfctl,
                     need_program, need_root, refused, rows)
from wire import field, frame, hello

GROUPINGS = {
    "function": {"function", "module"},
    "module": {"module", "named", "unnamed", "out_of_symbol"},
    "process": {"comm", "pid", "argv"},
    "thread": {"comm", "pid", "tid"},
    "cgroup": {"cgroup"},
    "line": {"function", "source", "line", "module"},
    "hart": {"hart"},
}
SVG = "{http://www.w3.org/2000/svg}"


# --- what the tests share ------------------------------------------------------------------------

def known(build):
    return compile_program(build, "known.c")


class Recording:
    """One recording that many tests read: two processes of known shares, on known harts."""

    def __init__(self, build):
        self.folder = Folder()
        self.path = self.folder.path / "known.mprf"
        harts = sorted(os.sched_getaffinity(0))
        self.harts = harts[0], harts[-1]
        program = known(build)
        other = self.folder.path / "other"
        shutil.copy(program, other)
        script = (f"{program} spin 1300 {self.harts[0]} & {other} spin 400 {self.harts[1]} & wait; "
                  f"{program} pages 3000 100")
        self.done = mperfctl(build, "record", "-F", "999", "-e", "cpu-clock", "-e", "page-faults",
                             "-o", self.path, "--", "sh", "-c", script)
        with sqlite3.connect(f"file:{self.path}?immutable=1", uri=True) as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
        self.begin_s = meta["realtime_ns"] / 1e9
        self.seconds = (meta["end_ns"] - meta["monotonic_ns"]) / 1e9


@functools.lru_cache(maxsize=None)
def recording(build):
    return Recording(build)


def answer(build, *arguments):
    return rows(build, "hotspots", "-i", recording(build).path, "--limit", "0", *arguments)


def samples(found, **wanted):
    return sum(r["samples"] for r in found["rows"]
               if all(r[key] == value for key, value in wanted.items()))


def fails(build, status, words, *arguments, **options):
    done = mperfctl(build, *arguments, check=False, **options)
    refused(done, status, *words)
    return done


# --- record --------------------------------------------------------------------------------------

def test_record_writes_a_file_and_says_what_is_in_it(build):
    r = recording(build)
    assert r.path.stat().st_size > 4096
    line = r.done.stderr.splitlines()[-1]
    assert re.search(r"wrote .*known\.mprf .*cpu-clock.*999 Hz; [\d,]+ samples.*lost: .*% named",
                     line), r.done.stderr
    assert os.listdir(r.path.parent).count("known.mprf") == 1
    assert not [f for f in os.listdir(r.path.parent) if f.startswith(".")], os.listdir(r.path.parent)


def test_record_samples_at_the_rate_that_was_asked_for(build):
    with Folder() as folder:
        done = mperfctl(build, "record", "-F", "499", "-o", folder / "r", "--", known(build), "spin",
                        "800")
        spent = int(re.search(r"cpu_us (\d+)", done.stdout).group(1)) / 1e6
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
    wanted, got = spent * 499, samples(found, comm="known")
    assert abs(got - wanted) < 0.06 * wanted + 3, f"{got} samples, wanted {wanted:.0f}"
    ns = sum(row["self_ns"] for row in found["rows"] if row["comm"] == "known")
    assert abs(ns / 1e9 - spent) < 0.06 * spent, (ns, spent)
    assert found["provenance"]["hz"] == 499, found["provenance"]


def test_record_takes_a_command_and_its_options_with_and_without_dashes(build):
    with Folder() as folder:
        for arguments in (["-o", "r", "--"], ["-or"], ["--output=r", "--freq=99", "--"]):
            mperfctl(build, "record", *arguments, "sh", "-c", "exit 0", cwd=folder)
            assert (folder / "r").exists(), arguments
        mperfctl(build, "record", "--", "true", cwd=folder)
        assert (folder / "mperf.mprf").exists()
        mperfctl(build, "hotspots", cwd=folder)  # reads what record wrote when nothing is named


def test_record_of_a_pid_ends_by_itself_when_the_process_does(build):
    with Folder() as folder:
        process = subprocess.Popen([known(build), "spin", "700"], stdout=subprocess.DEVNULL)
        try:
            mperfctl(build, "record", "-F", "999", "--pid", process.pid, "-o", folder / "r",
                     timeout=60)
        finally:
            process.kill()
            process.wait()
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process")
    assert samples(found, pid=process.pid) > 200, found["rows"]


def test_record_of_the_whole_system_lasts_for_the_time_that_was_asked_for(build):
    need_root()
    with Folder() as folder:
        begin = time.monotonic()
        mperfctl(build, "record", "-a", "--for", "600ms", "-o", folder / "r")
        assert 0.6 <= time.monotonic() - begin < 30
        provenance = rows(build, "hotspots", "-i", folder / "r")["provenance"]
    assert 0.5 < provenance["seconds"] < 5, provenance


def test_record_and_stat_end_with_the_status_of_the_command(build):
    program = known(build)
    with Folder() as folder:
        for how in (["record", "-o", folder / "r"], ["stat"]):
            for what, n, status in (("exit", 0, 0), ("exit", 7, 7), ("exit", 255, 255),
                                    ("signal", 15, 143), ("signal", 9, 137), ("signal", 2, 130)):
                done = mperfctl(build, *how, "--", program, what, n, check=False)
                assert done.returncode == status, (how, what, n, done)
            assert not any(w in done.stderr for w in BAD_WORDS), done.stderr


def test_a_command_that_cannot_run_gives_127_or_126(build):
    with Folder() as folder:
        (folder / "plain").write_text("#!/bin/sh\n")
        for how in (["record", "-o", folder / "r"], ["stat"], ["hotspots"], ["flamegraph"]):
            fails(build, 127, ["no-such-command", r"\. .*(PATH|name|spell|path)"], *how, "--",
                  "no-such-command")
            fails(build, 126, [str(folder / "plain"), r"\. .*(chmod|execut|permission|name)"], *how,
                  "--", folder / "plain")
            assert os.listdir(folder) == ["plain"], os.listdir(folder)


def test_an_output_that_is_not_ours_is_not_overwritten(build):
    with Folder() as folder:
        ours = folder / "main.c"
        ours.write_text("int main(void) {}\n")
        fails(build, 1, ["main.c", "-o|--force"], "record", "-o", ours, "--", "true")
        assert ours.read_text() == "int main(void) {}\n"
        with sqlite3.connect(folder / "foreign.db") as db:
            db.execute("CREATE TABLE precious (x)")
        before = (folder / "foreign.db").read_bytes()
        fails(build, 1, ["foreign.db", "-o|--force"], "record", "-o", folder / "foreign.db", "--",
              "true")
        assert (folder / "foreign.db").read_bytes() == before
        mperfctl(build, "record", "-f", "-o", ours, "--", "true")
        mperfctl(build, "record", "-o", ours, "--", "true")  # a recording may be replaced
        mperfctl(build, "hotspots", "-i", ours)
        fails(build, 1, [str(folder), "-o"], "record", "-o", folder, "--", "true")
        fails(build, 1, ["absent/r", "-o"], "record", "-o", folder / "absent" / "r", "--", "true")
        assert sorted(os.listdir(folder)) == ["foreign.db", "main.c"], os.listdir(folder)


def test_a_command_that_is_killed_by_the_user_is_still_recorded(build):
    with Folder() as folder:
        client = subprocess.Popen([build / "mperfctl", "record", "-o", folder / "r", "--",
                                   known(build), "spin", "20000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        client.terminate()
        _, said = client.communicate(timeout=60)
        assert client.returncode == 143, (client.returncode, said)
        assert samples(rows(build, "hotspots", "-i", folder / "r", "--by", "process")) > 20, said


# --- hotspots ------------------------------------------------------------------------------------

def test_hotspots_shows_a_table_with_its_provenance(build):
    out = mperfctl(build, "hotspots", "-i", recording(build).path).stdout
    lines = out.splitlines()
    assert re.match(r"\s*Self\s+Total\s+Samples\s+Function\s+Module", lines[0]), out
    assert re.search(r"^\s*\d+\.\d\d %\s+\d+\.\d\d %\s+[\d,]+\s+spin\s+/\S+", out, re.M), out
    assert re.search(r"cpu-clock.*999 Hz; [\d,]+ samples in .*; lost: .*; \d+\.\d % named",
                     lines[-1]), out
    assert "\x1b" not in out


def test_hotspots_groups_by_each_of_seven_keys(build):
    whole = answer(build)["provenance"]["samples"]
    assert whole > 1000
    for by, keys in GROUPINGS.items():
        found = answer(build, "--by", by)
        names = {column["name"] for column in found["columns"]}
        assert keys | {"self", "total", "samples", "self_ns"} <= names, (by, names)
        assert abs(sum(r["self"] for r in found["rows"]) - 1) < 1e-6, by
        assert samples(found) == whole, (by, samples(found), whole)
        assert all(0 <= r["self"] <= r["total"] + 1e-9 <= 1 + 2e-9 for r in found["rows"]), by
        assert [r["self"] for r in found["rows"]] == \
            sorted((r["self"] for r in found["rows"]), reverse=True), by
        text = mperfctl(build, "hotspots", "-i", recording(build).path, "--by", by).stdout
        assert len(text.splitlines()) > 3, (by, text)
    by_line = answer(build, "--by", "line")["rows"]
    assert any((r["source"] or "").endswith("known.c") and r["line"] for r in by_line), by_line[:5]
    by_process = answer(build, "--by", "process")["rows"]
    assert any("spin" in (r["argv"] or "") and "1300" in r["argv"] for r in by_process), by_process


def test_hotspots_filters_by_process(build):
    processes = answer(build, "--by", "process")["rows"]
    other = [r for r in processes if r["comm"] == "other"]
    assert len(other) == 1, processes
    for arguments in (["--comm", "other"], ["--pid", other[0]["pid"]]):
        found = answer(build, "--by", "process", *arguments)
        assert [r["comm"] for r in found["rows"]] == ["other"], (arguments, found["rows"])
        assert abs(found["rows"][0]["self"] - 1) < 1e-9, found["rows"]
        assert samples(found) == other[0]["samples"], (arguments, found["rows"])
    both = answer(build, "--by", "process", "--comm", "other", "--comm", "known")
    assert {r["comm"] for r in both["rows"]} == {"other", "known"}, both["rows"]
    nobody = answer(build, "--comm", "no-such-name")
    assert nobody["rows"] == [] and nobody["provenance"]["samples"] == 0, nobody


def test_hotspots_filters_by_cgroup(build):
    groups = answer(build, "--by", "cgroup")["rows"]
    path = groups[0]["cgroup"]
    if not path:
        raise Skip("this kernel tells no cgroups")
    assert samples(answer(build, "--cgroup", path)) == groups[0]["samples"]
    assert samples(answer(build, "--cgroup", "/")) == sum(r["samples"] for r in groups)
    assert answer(build, "--cgroup", path + "-not")["rows"] == []


def test_hotspots_filters_by_hart(build):
    first, last = recording(build).harts
    if first == last:
        raise Skip("needs two harts")
    whole = answer(build, "--by", "hart")
    for hart in first, last:
        found = answer(build, "--by", "hart", "--cpu", hart)
        assert [r["hart"] for r in found["rows"]] == [hart], found["rows"]
        assert samples(found) == samples(whole, hart=hart)
    assert samples(answer(build, "--by", "hart", "--cpu", f"{first}-{last}")) == samples(whole)
    # It starts anywhere and then stays on the last.
    there = samples(answer(build, "--by", "process", "--cpu", last, "--comm", "other"))
    anywhere = samples(answer(build, "--by", "process", "--comm", "other"))
    assert there >= 0.95 * anywhere > 100, (there, anywhere)
    assert answer(build, "--cpu", "4000")["rows"] == []


def test_hotspots_filters_by_time(build):
    r = recording(build)
    whole = samples(answer(build))
    assert samples(answer(build, "--since", f"@{r.begin_s - 5:.0f}")) == whole
    assert samples(answer(build, "--since=-1h", "--until", "now")) == whole
    assert answer(build, "--until", f"@{r.begin_s - 5:.0f}")["rows"] == []
    assert answer(build, "--since", f"@{r.begin_s + r.seconds + 5:.0f}")["rows"] == []
    # What a window has that the limit cuts through belongs to both sides; windows last a second.
    before = samples(answer(build, "--until", f"@{r.begin_s + 0.5:.3f}"))
    after = samples(answer(build, "--since", f"@{r.begin_s + 0.5:.3f}"))
    later = samples(answer(build, "--since", f"@{r.begin_s + 1.2:.3f}"))
    assert 0 < before < whole and after == whole and 0 < later < whole, (before, after, later, whole)
    assert before + later == whole or r.seconds > 2, (before, later, whole)


def test_hotspots_limits_its_rows(build):
    whole = answer(build)["rows"]
    path = recording(build).path
    for n in 1, 3:
        found = rows(build, "hotspots", "-i", path, "--limit", n)
        assert found["rows"] == whole[:n], found["rows"]
        assert found["provenance"]["samples"] == samples({"rows": whole})
    assert len(rows(build, "hotspots", "-i", path, "-n", "0")["rows"]) == len(whole)
    assert len(rows(build, "hotspots", "-i", path)["rows"]) == min(30, len(whole))


def test_hotspots_shares_out_another_event(build):
    found = answer(build, "--event", "page-faults", "--comm", "known")
    by_name = {r["function"]: r for r in found["rows"]}
    assert "page-faults" in found["provenance"]["event"], found["provenance"]
    assert by_name["touch_pages"]["self"] > 0.8, found["rows"][:4]
    assert by_name.get("spin", {"self": 0})["self"] < 0.05, found["rows"][:4]
    fails(build, 1, ["context-switches", "cpu-clock"], "hotspots", "-i", recording(build).path,
          "--event", "context-switches")


def test_hotspots_of_a_command_keeps_no_file(build):
    with Folder() as folder:
        found = json.loads(mperfctl(build, "hotspots", "-F", "999", "--json", "--limit",
                                    "0", "--", "sh", "-c",
                                    f"{known(build)} spin 300 >/dev/null", cwd=folder,
                                    env={"TMPDIR": str(folder)}).stdout)
        assert os.listdir(folder) == [], os.listdir(folder)
    assert any(r["function"] == "spin" and r["self"] > 0.5 for r in found["rows"]), found["rows"][:4]


def test_hotspots_of_a_pid_and_of_everything_take_a_time(build):
    need_root()
    process = subprocess.Popen([known(build), "spin", "20000"], stdout=subprocess.DEVNULL)
    try:
        for whom in (["--pid", process.pid], ["-a"]):
            found = rows(build, "hotspots", "-F", "499", *whom, "--for", "400ms", "--by", "process",
                         "--limit", "0")
            assert samples(found, pid=process.pid) > 20, (whom, found["rows"][:4])
    finally:
        process.kill()
        process.wait()


def test_raw_rows_are_plain_numbers_between_tabs(build):
    out = mperfctl(build, "hotspots", "-i", recording(build).path, "--raw").stdout.splitlines()
    head = out[0].split("\t")
    assert {"self", "samples", "function"} <= set(head), head
    for line in out[1:]:
        cells = dict(zip(head, line.split("\t")))
        assert len(line.split("\t")) == len(head), line
        assert 0 <= float(cells["self"]) <= 1 and int(cells["samples"]) >= 0, line


# --- flamegraph ----------------------------------------------------------------------------------

def boxes(root):
    """(title lines, x, width, y) of every box of an SVG."""
    found = []
    for group in root.iter(SVG + "g"):
        title, rect = group.find(SVG + "title"), group.find(SVG + "rect")
        if title is not None and rect is not None:
            found.append((title.text.split("\n"), float(rect.get("x")), float(rect.get("width")),
                          float(rect.get("y"))))
    return found


def check_drawing(root):
    assert root.tag == SVG + "svg"
    found = boxes(root)
    width = float(root.get("viewBox").split()[2])
    assert len(found) > 5 and max(b[2] for b in found) == width, found[:3]
    assert any(b[0][0].startswith("spin") and b[2] > 0.5 * width for b in found), found[:8]
    for title, x, w, _ in found:
        assert -0.01 <= x and x + w <= width + 0.01, (title, x, w)
    # Boxes of one row never overlap.
    for y in {b[3] for b in found}:
        row = sorted((b[1], b[2]) for b in found if b[3] == y)
        assert all(a[0] + a[1] <= b[0] + 0.01 for a, b in zip(row, row[1:])), (y, row)


def test_flamegraph_is_a_well_formed_page_that_loads_nothing(build):
    with Folder() as folder:
        page = folder / "flame.html"
        mperfctl(build, "flamegraph", "-i", recording(build).path, cwd=folder)
        text = page.read_text(encoding="utf-8")
        assert os.listdir(folder) == ["flame.html"]
    drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", text, re.S)
    assert drawing, text[:500]
    check_drawing(xml.fromstring(drawing.group(0)))
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    for outside in re.findall(r"(?:src|href)\s*=\s*[\"']?([^\"'\s>]+)", text) + \
            re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import[^;]*", text):
        assert outside.startswith("#"), outside
    for word in "search", "Reset", "cpu-clock", "samples":
        assert word in text, word


def test_flamegraph_is_plain_svg_where_the_name_says_so(build):
    with Folder() as folder:
        mperfctl(build, "flamegraph", "-i", recording(build).path, "-o", folder / "x.svg")
        text = (folder / "x.svg").read_text(encoding="utf-8")
    check_drawing(xml.fromstring(text))
    assert "<script" not in text and "cpu-clock" in text


def test_folded_stacks_sum_up_to_the_samples_weight(build):
    path = recording(build).path
    folded = mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
    weights = {}
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        assert stack and stack not in weights, line
        weights[stack] = int(weight)
    ns = sum(r["self_ns"] for r in answer(build)["rows"])
    assert sum(weights.values()) == ns, (sum(weights.values()), ns)
    assert any(";main;spin" in stack for stack in weights), folded[:1000]
    alone = mperfctl(build, "flamegraph", "-i", path, "--folded", "--comm", "other").stdout
    assert all(line.startswith("other;") for line in alone.splitlines()), alone[:500]
    faults = mperfctl(build, "flamegraph", "-i", path, "--folded", "--event", "page-faults").stdout
    def counted(name):
        return sum(int(line.rpartition(" ")[2]) for line in faults.splitlines() if name in line)
    assert 0.9 * 3000 < counted("touch_pages") < 1.1 * 3000, (counted("touch_pages"), faults[:1000])
    assert counted("other;") < 300, (counted("other;"), faults[:1000])  # it starts, no more


def test_flamegraph_of_a_command_and_to_stdout(build):
    with Folder() as folder:
        out = mperfctl(build, "flamegraph", "-F", "999", "-o", "-", "--", "sh", "-c",
                       f"{known(build)} spin 300 >/dev/null", cwd=folder,
                       env={"TMPDIR": str(folder)}).stdout
        assert os.listdir(folder) == [], os.listdir(folder)
    drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", out, re.S)
    check_drawing(xml.fromstring(drawing.group(0)))
    with Folder() as folder:
        fails(build, 1, ["absent/x.html", "-o"], "flamegraph", "-i", recording(build).path, "-o",
              folder / "absent" / "x.html")


# --- stat ----------------------------------------------------------------------------------------

def counts(build, *arguments):
    done = mperfctl(build, "stat", "--json", *arguments)
    found = json.loads(done.stderr)
    return {r["event"]: r for r in found["rows"]}, done.stdout


def usage(stdout):
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", stdout, re.M)}


def test_stat_counts_what_the_kernel_counts(build):
    program = known(build)
    found, out = counts(build, "-e", "task-clock,page-faults,context-switches", "--", program, "spin",
                        "500")
    spent = usage(out)["cpu_us"]
    assert abs(found["task-clock"]["value"] / 1e3 - spent) < 0.05 * spent, (found, out)
    none, _ = counts(build, "-e", "page-faults", "--", program, "pages", "0")
    many, _ = counts(build, "-e", "page-faults", "--", program, "pages", "5000")
    grown = many["page-faults"]["value"] - none["page-faults"]["value"]
    assert abs(grown - 5000) <= 30, (grown, none, many)  # page tables and libraries differ a little
    found, out = counts(build, "-e", "context-switches", "--", program, "switches", "200")
    # A sleep that is over at once makes no switch; the program's own account also has those before
    # its exec.
    told = usage(out)["switches"]
    assert told > 100 and abs(found["context-switches"]["value"] - told) <= 20, (found, out)
    assert found["context-switches"]["running_share"] == 1, found


def test_stat_counts_children_too(build):
    alone, _ = counts(build, "-e", "page-faults", "--", known(build), "pages", "2000")
    inside, _ = counts(build, "-e", "page-faults", "--", "sh", "-c",
                       f"{known(build)} pages 2000; {known(build)} pages 2000; true")
    assert inside["page-faults"]["value"] > 2 * alone["page-faults"]["value"] - 100, (alone, inside)


def test_stat_prints_times_and_what_was_not_measured(build):
    done = mperfctl(build, "stat", "--", known(build), "spin", "300")
    assert re.search(r"^\s+[\d.]+ msec\s+task-clock", done.stderr, re.M), done.stderr
    user = re.search(r"([\d.]+) seconds user", done.stderr)
    system = re.search(r"([\d.]+) seconds sys", done.stderr)
    elapsed = re.search(r"([\d.]+) seconds elapsed", done.stderr)
    spent = float(user.group(1)) + float(system.group(1))
    assert abs(spent - usage(done.stdout)["cpu_us"] / 1e6) < 0.05, done.stderr
    assert float(elapsed.group(1)) > 0.29, done.stderr
    for line in done.stderr.splitlines():
        if "<not measured>" in line:
            assert re.search(r"#\s+\S.{10,}", line), line  # and why


def test_stat_repeats_with_a_spread(build):
    done = mperfctl(build, "stat", "-r", "3", "-e", "task-clock,page-faults", "--", known(build),
                    "spin", "60")
    assert done.stdout.count("cpu_us") == 3, done.stdout
    assert "3 runs" in done.stderr, done.stderr
    for name in "task-clock", "page-faults", "seconds elapsed":
        assert re.search(rf"{name}.*± +[\d.]+ %", done.stderr), (name, done.stderr)
    mean = float(re.search(r"([\d.]+) msec", done.stderr).group(1))
    spent = [int(n) / 1e3 for n in re.findall(r"cpu_us (\d+)", done.stdout)]
    assert abs(mean - sum(spent) / 3) < 0.05 * mean + 1, (mean, spent)


def test_stat_prints_intervals_that_sum_up(build):
    done = mperfctl(build, "stat", "-I", "100", "-e", "task-clock", "--", known(build), "spin", "550")
    lines = re.findall(r"^\s*([\d.]+)\s+([\d.]+) msec\s+task-clock", done.stderr, re.M)
    times = [float(at) for at, _ in lines]
    assert len(lines) >= 4 and times == sorted(times), done.stderr
    assert all(b - a < 0.5 for a, b in zip(times, times[1:])), done.stderr
    whole = sum(float(ms) for _, ms in lines)
    spent = usage(done.stdout)["cpu_us"] / 1e3
    assert abs(whole - spent) < 0.06 * spent + 1, (whole, spent, done.stderr)


def test_stat_writes_to_a_file_and_counts_a_pid_and_everything(build):
    need_root()
    with Folder() as folder:
        done = mperfctl(build, "stat", "-o", folder / "s", "--", "true")
        assert done.stderr == "" and "task-clock" in (folder / "s").read_text(), done.stderr
    process = subprocess.Popen([known(build), "spin", "20000"], stdout=subprocess.DEVNULL)
    try:
        found, _ = counts(build, "-e", "task-clock", "--pid", process.pid, "--for", "300ms")
        assert 100e6 < found["task-clock"]["value"] < 5e9, found
        found, _ = counts(build, "-e", "cpu-clock", "-a", "--for", "300ms")
        harts = os.cpu_count()
        assert 0.25e9 * harts < found["cpu-clock"]["value"] < 5e9 * harts, found
    finally:
        process.kill()
        process.wait()


# --- list and doctor -----------------------------------------------------------------------------

def test_list_shows_by_topic_what_counts_here(build):
    found = rows(build, "list")["rows"]
    clock = [r for r in found if r["event"] == "cpu-clock"]
    assert clock and clock[0]["counts"] == "yes", clock
    assert len({r["topic"] for r in found}) >= 2
    assert all(r["reason"] for r in found if r["counts"] != "yes"), found
    assert all(r["says"] for r in found), [r for r in found if not r["says"]]
    some = rows(build, "list", "software")["rows"]
    assert some and {r["topic"] for r in some} == {"software"}
    text = mperfctl(build, "list", "software").stdout
    assert "cpu-clock" in text and "\x1b" not in text, text
    fails(build, 2, ["no-such-topic", "software|list"], "list", "no-such-topic")


def test_doctor_says_what_this_machine_can_do(build):
    found = rows(build, "doctor")["rows"]
    harts = {r["hart"] for r in found if r["topic"] == "sampling" and r["state"] == "ok"}
    assert len(harts) == len(os.sched_getaffinity(0)), found
    text = json.dumps(found)
    for word in "perf_event_paranoid", "rung", "namer", "BPF", "debug":
        assert word in text, word
    for row in found:
        assert row["state"] in ("ok", "info", "warn", "fail"), row
        if row["state"] in ("warn", "fail"):
            assert row["remedy"], row
    table = mperfctl(build, "doctor").stdout
    assert re.search(r"^ok\s+sampling, hart", table, re.M) and "\x1b" not in table, table
    about = mperfctl(build, "doctor", "-i", recording(build).path).stdout
    assert "sampling" in about, about


def test_nothing_is_coloured_that_is_not_on_a_terminal(build):
    for color in ({"NO_COLOR": ""}, {"NO_COLOR": "1"}):
        for command in (["hotspots", "-i", recording(build).path], ["list", "software"], ["doctor"]):
            done = mperfctl(build, *command, env=dict(color, TERM="xterm-256color"))
            assert "\x1b" not in done.stdout + done.stderr, (color, command)


def on_terminal(build, *arguments, **environment):
    """What the command prints on a terminal."""
    import pty
    leader, follower = pty.openpty()
    surroundings = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8")
    surroundings.pop("NO_COLOR", None)
    process = subprocess.Popen([build / "mperfctl", *map(str, arguments)], stdin=follower,
                               stdout=follower, stderr=follower, env=dict(surroundings, **environment))
    os.close(follower)
    printed = b""
    try:
        while chunk := os.read(leader, 65536):
            printed += chunk
    except OSError:
        pass  # Linux says EIO when the other end is closed
    os.close(leader)
    assert process.wait(timeout=60) == 0, printed
    return printed.decode(errors="replace")


def test_colours_on_a_terminal_can_be_switched_off(build):
    command = ["hotspots", "-i", recording(build).path]
    assert "\x1b[" in on_terminal(build, *command)
    assert "\x1b[" not in on_terminal(build, *command, NO_COLOR="1")
    assert "\x1b[" not in on_terminal(build, *command, "--no-color")
    assert "\x1b[" not in on_terminal(build, *command, TERM="dumb")


# --- wrong usage ---------------------------------------------------------------------------------

def test_wrong_usage_is_told_in_one_sentence_with_status_2(build):
    for words, arguments in (
            (["command", "--help"], []),
            (["hotspot", r"mperfctl hotspots"], ["hotspot"]),
            (["recrod", r"mperfctl record"], ["recrod", "--", "true"]),
            (["--bogus", "help"], ["--bogus"]),
            (["--outptu", "--output"], ["record", "--outptu", "x", "--", "true"]),
            (["-x", "help record"], ["record", "-x", "--", "true"]),
            (["-o", "value|name"], ["record", "-o"]),
            (["nothing to measure", "--pid"], ["record"]),
            (["nothing to measure", "--pid"], ["stat"]),
            (["-F", "fast"], ["record", "-F", "fast", "--", "true"]),
            (["-F", "'0'"], ["record", "-F", "0", "--", "true"]),
            (["-F|samples", "-F|less"], ["record", "-F", "900000", "--", "true"]),
            (["-g", "magic"], ["record", "-gmagic", "--", "true"]),
            (["dwarf", "7"], ["record", "-g", "dwarf,7", "--", "true"]),
            (["--pid", "abc"], ["record", "--pid", "abc"]),
            (["-a", "--pid"], ["record", "-a", "--pid", "1"]),
            (["--for", "soon"], ["record", "-a", "--for", "soon"]),
            (["--by", "functoin", "function"], ["hotspots", "--by", "functoin"]),
            (["--cpu", "a-b"], ["hotspots", "--cpu", "a-b"]),
            (["--cpu", "3-1"], ["hotspots", "--cpu", "3-1"]),
            (["--since", "whenever"], ["hotspots", "--since", "whenever"]),
            (["--until", "--since"], ["hotspots", "--since", "now", "--until=-1h"]),
            (["--limit", "-3|many"], ["hotspots", "--limit", "many"]),
            (["--json", "--raw"], ["hotspots", "--json", "--raw"]),
            (["-i", "-a"], ["hotspots", "-i", "x", "-a"]),
            (["x.mprf", "-i"], ["hotspots", "x.mprf"]),
            (["-r", "0"], ["stat", "-r", "0", "--", "true"]),
            (["-r", "-I"], ["stat", "-r", "3", "-I", "100", "--", "true"]),
            (["too many", "help list"], ["list", "software", "hardware"]),
            (["too many", "help doctor"], ["doctor", "me"]),
            (["--folded", "help hotspots"], ["hotspots", "--folded"])):
        with Folder() as folder:
            fails(build, 2, words, *arguments, cwd=folder)
            assert os.listdir(folder) == [], (arguments, os.listdir(folder))


def test_help_and_version_are_no_mistakes(build):
    for arguments in (["--help"], ["-h"], ["help"], ["--version"], ["help", "record"],
                      ["record", "--help"], ["hotspots", "-h"], ["help", "doctor"]):
        done = mperfctl(build, *arguments)
        assert done.stdout and not done.stderr, (arguments, done)
    assert "--by" in mperfctl(build, "help", "hotspots").stdout
    fails(build, 2, ["recrod", "record"], "help", "recrod")


def test_events_that_are_unknown_or_malformed_are_named(build):
    with Folder() as folder:
        for words, event in (
                (["cpu-clok", "cpu-clock"], "cpu-clok"),
                (["page-fautls", "page-faults"], "cpu-clock,page-fautls"),
                (["instructoins", "instructions"], "instructoins"),
                ([r"\{", "list"], "{cpu-clock"),
                ([r"\}", "list"], "cpu-clock}"),
                (["group", "list"], "{}"),
                (["missing", "list"], "cpu-clock,,page-faults"),
                (["missing", "list"], ","),
                (["modifier", "list"], "cpu-clock:"),
                (["'z'|cpu-clock", "list"], "cpu-clock:z"),
                (["/", "list"], "cpu/cycles"),
                (["nopmu", "list"], "nopmu/x=1/"),
                (["blank", "list"], "cpu clock"),
                ([r"rzz", "list"], "rzz"),
                (["127|bytes|long", "list"], "a" * 500)):
            for how in (["record", "-o", folder / "r"], ["stat"]):
                fails(build, 2, words, *how, "-e", event, "--", "true")
        fails(build, 2, ["empty", "help"], "record", "-e", "", "-o", folder / "r", "--", "true")
        fails(build, 2, ["nosuch|tracefs|tracing"], "record", "-e", "nosuch:nothing", "-o",
              folder / "r", "--", "true")
        assert os.listdir(folder) == [], os.listdir(folder)


def gone_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_pid_that_does_not_exist_is_named(build):
    with Folder() as folder:
        for how in (["record", "-o", folder / "r"], ["stat"], ["hotspots"], ["flamegraph"]):
            pid = gone_pid()
            fails(build, 1, [str(pid), "ps|pid"], *how, "--pid", pid, "--for", "1s",
                  env={"TMPDIR": str(folder)}, cwd=folder)
            assert os.listdir(folder) == [], (how, os.listdir(folder))


def test_a_pid_of_somebody_else_is_refused_by_name(build):
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        process = subprocess.Popen(["sleep", "60"])
        try:
            for how in (["record", "-o", "r"], ["stat"], ["hotspots"]):
                done = as_nobody(folder, environment, *how, "--pid", process.pid, "--for", "1s")
                refused(done, 1, str(process.pid), "not yours|another user|owner|root",
                        "CAP_PERFMON|CAP_SYS_PTRACE|root|perf_event_paranoid")
        finally:
            process.kill()
            process.wait()
        assert os.listdir(folder / "tmp") == [], os.listdir(folder / "tmp")


# --- files that are no recordings ----------------------------------------------------------------

def bad_file(build, path, words, status=1):
    """All commands that read files refuse it, and leave it as it is."""
    before = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else None
    listed = sorted(os.listdir(path.parent))
    for how in (["hotspots"], ["flamegraph", "--folded"], ["doctor"]):
        done = fails(build, status, [re.escape(path.name), *words], *how, "-i", path)
        assert done.stdout == "", (how, done.stdout)
    assert before is None or path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == listed, os.listdir(path.parent)


REMEDY = r"(?i)\. .*(name|record|copy|wait|read|mperfctl)"


def test_files_that_are_no_recordings_are_refused(build):
    with Folder() as folder:
        bad_file(build, folder / "absent", ["no such file|No such file", REMEDY])
        (folder / "empty").write_bytes(b"")
        bad_file(build, folder / "empty", ["empty|no mperf recording", REMEDY])
        (folder / "text").write_text("hello\n" * 1000)
        bad_file(build, folder / "text", ["no mperf recording", REMEDY])
        (folder / "short").write_bytes(b"SQLite format 3\0")
        bad_file(build, folder / "short", ["cut off|short|damaged|no mperf recording", REMEDY])
        (folder / "a folder").mkdir()
        bad_file(build, folder / "a folder", ["folder|director|regular|no mperf", REMEDY])
        os.mkfifo(folder / "fifo")
        bad_file(build, folder / "fifo", ["regular|FIFO|pipe|no mperf|no file", REMEDY])
        with sqlite3.connect(folder / "foreign.db") as db:
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
        bad_file(build, folder / "foreign.db", ["no mperf recording", REMEDY])
        os.symlink("loop", folder / "loop")
        bad_file(build, folder / "loop", [r"\. \S"])


def patched(build, path, offset, data):
    """A copy of the good recording with bytes replaced."""
    content = bytearray(recording(build).path.read_bytes())
    content[offset:offset + len(data)] = data
    path.write_bytes(content)
    return path


def test_a_recording_of_a_newer_version_is_refused(build):
    with Folder() as folder:
        # user_version is the big-endian word at 60. Source: SQLite's file format, "the header".
        newer = patched(build, folder / "newer", 60, (2).to_bytes(4, "big"))
        bad_file(build, newer, ["newer", "version 2", REMEDY])
        alien = patched(build, folder / "alien", 68, b"alie")
        bad_file(build, alien, ["another program|no mperf recording", REMEDY])


def test_a_truncated_recording_is_refused(build):
    content = recording(build).path.read_bytes()
    with Folder() as folder:
        for n in (1, 15, 99, 100, 511, 4095, 4096, 4097, 8192, len(content) // 2, len(content) - 4096,
                  len(content) - 1):
            (folder / "cut").write_bytes(content[:n])
            bad_file(build, folder / "cut", ["damaged|cut off|no mperf recording", REMEDY])


def test_a_recording_with_flipped_bytes_does_no_harm(build):
    """Either the damage is seen and told, or it hit what nobody reads: never a crash."""
    content = recording(build).path.read_bytes()
    told = 0
    with Folder() as folder:
        path = folder / "flipped"
        for i in range(24):
            at = 100 + (len(content) - 300) * i // 24
            damaged = bytearray(content)
            for k in range(at, at + 200):
                damaged[k] ^= 0x5a
            path.write_bytes(damaged)
            done = mperfctl(build, "hotspots", "-i", path, "--json", check=False)
            assert not any(w in done.stdout + done.stderr for w in BAD_WORDS), done.stderr
            if done.returncode == 0:
                json.loads(done.stdout)
            else:
                refused(done, 1, "flipped", "damaged|no mperf recording", REMEDY)
                told += 1
        assert told >= 3, told


def test_a_recording_that_is_still_being_written_is_refused(build):
    with Folder() as folder:
        (folder / "tmp").mkdir()
        client = subprocess.Popen([build / "mperfctl", "record", "-o", folder / "r", "-F", "999", "--",
                                   known(build), "spin", "30000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, TMPDIR=str(folder / "tmp")))
        try:
            for _ in range(200):
                found = list((folder / "tmp").glob("mperf-*/segment.mprf-wal"))
                if found and found[0].stat().st_size > 0:
                    break
                time.sleep(0.05)
            time.sleep(1.5)  # into the second window
            source = found[0].with_name("segment.mprf")
            shutil.copy(source, folder / "alone")
            (folder / "both").mkdir()
            shutil.copy(source, folder / "both" / "r")
            shutil.copy(found[0], folder / "both" / "r-wal")
            live = mperfctl(build, "hotspots", "-i", source, check=False)
        finally:
            client.terminate()
            client.wait(timeout=60)
        refused(live, 1, "segment.mprf", "unfinished", REMEDY)
        bad_file(build, folder / "alone", ["unfinished", REMEDY])
        bad_file(build, folder / "both" / "r", ["unfinished", REMEDY])
        assert os.listdir(folder / "tmp") == [], os.listdir(folder / "tmp")
        mperfctl(build, "hotspots", "-i", folder / "r")  # what came of it in the end is well


def test_a_file_that_may_not_be_read_is_refused(build):
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        shutil.copy(recording(build).path, folder / "private")
        os.chmod(folder / "private", 0o600)
        for how in "hotspots", "doctor":
            done = as_nobody(folder, environment, how, "-i", folder / "private")
            refused(done, 1, "private", "ermission", r"\. \S")
        os.chmod(folder / "private", 0o644)
        assert as_nobody(folder, environment, "hotspots", "-i", folder / "private").returncode == 0
        done = as_nobody(folder, environment, "record", "-o", folder / "r", "--", "true")
        refused(done, 1, re.escape(str(folder / "r")), "ermission", "-o")


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
