# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samples in the formats of other tools: complete, with the sums of hotspots, and readable by those tools that
Debian has as small packages. tests/programs/test_export.py has the others."""
import csv
import gzip
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

from machine import Folder, Skip, compile_program, mperfctl, need_program, rows, seal, unseal
from rates import long_enough, rate_allowed
from recorded import answer, fails, recording, samples

# Of golang-github-google-pprof-dev: the published schema.
SCHEMA = Path("/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto")
TEXTS = ["csv", "firefox", "folded", "perf-script", "speedscope"]
NAME = "\\x1b[31mred<b>&\""  # of hostile.c, made harmless
SYMBOL = "\"<script>alert(1)</script>\""


def export(build, form, *arguments, path=None):
    """stdout, bytes."""
    with Folder() as folder:
        mperfctl(build, "export", "--as", form, "-i", path or recording(build).path, "-o", folder / "out",
                 *arguments)
        return (folder / "out").read_bytes()


def text(build, form, *arguments, path=None):
    return export(build, form, *arguments, path=path).decode("utf-8")


def weight_ns(build, *arguments):
    return sum(r["self_ns"] for r in answer(build, *arguments)["rows"])


# --- each format ----------------------------------------------------------------------------------

def csv_rows(written):
    assert written.count("\n") == written.count("\r\n")
    return list(csv.DictReader(io.StringIO(written, newline=""), strict=True))


def test_csv_has_the_samples_of_the_recording(build):
    found = csv_rows(text(build, "csv"))
    with sqlite3.connect(f"file:{recording(build).path}?immutable=1", uri=True) as db:
        n, = db.execute("SELECT sum(max(count, 1)) FROM sample s JOIN event e ON e.id = s.event "
                        "WHERE name = 'cpu-clock' AND (count > 0 OR weight_ns > 0)").fetchone()
        windows = list(db.execute("SELECT realtime_ns, realtime_ns + end_ns - start_ns FROM window"))
    assert len(found) == n, (len(found), n)
    assert all(any(begin <= int(r["time_ns"]) < end for begin, end in windows) for r in found)
    assert sum(int(r["samples"]) for r in found) == samples(answer(build))
    assert sum(int(r["cpu_ns"]) for r in found) == weight_ns(build)
    spin = [r for r in found if r["function"] == "spin" and r["process"] == "known"]
    assert sum(int(r["samples"]) for r in spin) == samples(answer(build, "--inlined", "--comm", "known"), function="spin")
    assert all(r["stack"].endswith(";spin") for r in spin), spin[0]
    assert all(int(r["offset"], 16) > 0 for r in spin)
    ids = {r["build_id"] for r in found}
    assert all(re.fullmatch("[0-9a-f]{8,40}", i) for i in ids - {""}) and len(ids) > 1, ids
    assert any(r["source"].endswith("known.c") and int(r["line"]) > 0 for r in spin)


def test_filters_apply_as_in_hotspots(build):
    for filters in (["--comm", "other"], ["--cpu", recording(build).harts[0]], ["--until", "2000-01-01"]):
        found = csv_rows(text(build, "csv", *filters))
        assert sum(int(r["samples"]) for r in found) == samples(answer(build, *filters)), filters
    pid = next(r["pid"] for r in answer(build, "--by", "process")["rows"] if r["comm"] == "other")
    found = csv_rows(text(build, "csv", "--pid", pid))
    assert found and {r["pid"] for r in found} == {str(pid)}, found[:2]


def test_values_are_those_of_the_requested_event(build):
    found = csv_rows(text(build, "csv", "--event", "page-faults"))
    assert sum(int(r["value"]) for r in found if r["function"] == "touch_pages") >= 3000, found[:3]


def test_folded_is_the_flame_graphs(build):
    assert text(build, "folded") == \
        mperfctl(build, "flamegraph", "--folded", "-i", recording(build).path).stdout


RECORD = re.compile(r"(?P<comm>\S.*?) +(?P<pid>\d+)/(?P<tid>\d+) +\[(?P<hart>\d+)\] +(?P<time>\d+\.\d{6}): +"
                    r"(?P<period>\d+) (?P<event>\S+):\n"
                    r"(?P<frames>(?:\t +[0-9a-f]+ .+ \(\S+\)\n)+)\n")


def records(written):
    found, at = [], 0
    while at < len(written):
        match = RECORD.match(written, at)
        assert match, written[at:at + 300]
        found.append(match)
        at = match.end()
    return found


def test_perf_script_has_a_record_for_each_sample(build):
    found = records(text(build, "perf-script"))
    assert len(found) == samples(answer(build))
    assert sum(int(m["period"]) for m in found) == weight_ns(build)
    times = [float(m["time"]) for m in found]
    assert times == sorted(times)
    leaves = [re.match(r"\t +[0-9a-f]+ (.+) \(", m["frames"])[1] for m in found]
    assert leaves.count("spin") == samples(answer(build, "--inlined"), function="spin")


def test_speedscope_adds_up_and_refers_to_frames_that_are_there(build):
    page = json.loads(export(build, "speedscope"))
    n = len(page["shared"]["frames"])
    total = 0
    for profile in page["profiles"]:
        assert profile["unit"] == "seconds" and len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < n for stack in profile["samples"] for frame in stack)
        assert abs(sum(profile["weights"]) - profile["endValue"]) < 1e-6, profile["name"]
        total += profile["endValue"]
    assert abs(total - weight_ns(build) / 1e9) < 1e-6, total
    name = page["profiles"][page["activeProfileIndex"]]["name"]
    assert re.fullmatch(r"known \d+/\d+", name), name


def check_table(table, name):
    for column, values in table.items():
        if isinstance(values, list):
            assert len(values) == table["length"], (name, column)


def test_firefox_has_whole_tables_and_adds_up(build):
    page = json.loads(export(build, "firefox"))
    shared = page["shared"]
    for name, table in shared.items():
        if isinstance(table, dict):
            check_table(table, name)
    stacks, frames, functions = (shared[t] for t in ("stackTable", "frameTable", "funcTable"))
    assert all(p is None or p < i for i, p in enumerate(stacks["prefix"]))
    assert all(0 <= f < frames["length"] for f in stacks["frame"])
    assert all(0 <= f < functions["length"] for f in frames["func"])
    assert all(-1 <= r < shared["resourceTable"]["length"] for r in functions["resource"])
    names = [shared["stringArray"][i] for i in functions["name"]]
    total_ms, spin_ms = 0, 0
    for thread in page["threads"]:
        check_table(thread["samples"], thread["name"])
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        total_ms += sum(thread["samples"]["weight"])
        spin_ms += sum(w for w, s in zip(thread["samples"]["weight"], thread["samples"]["stack"])
                       if names[frames["func"][stacks["frame"][s]]] == "spin")
    assert abs(total_ms - weight_ns(build) / 1e6) < 0.01
    spin = sum(r["self_ns"] for r in answer(build, "--inlined")["rows"] if r["function"] == "spin")
    assert abs(spin_ms - spin / 1e6) < 0.01, (spin_ms, spin)


# --- pprof, by its published schema ---------------------------------------------------------------

def decoded(packed):
    """The profile as protoc shows it, into lists and dicts."""
    if not SCHEMA.exists():
        raise Skip("needs the Debian package golang-github-google-pprof-dev")
    need_program("protoc")
    shown = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{SCHEMA.parent}", SCHEMA.name],
                           input=packed, capture_output=True, check=True, timeout=120).stdout.decode()
    open_ones = [{}]
    for line in shown.splitlines():
        line = line.strip()
        if line.endswith("{"):
            inner = {}
            open_ones[-1].setdefault(line.split()[0], []).append(inner)
            open_ones.append(inner)
        elif line == "}":
            open_ones.pop()
        else:
            key, value = line.split(": ", 1)
            assert not key.isdigit(), f"a field that the schema does not have: {line}"
            open_ones[-1].setdefault(key, []).append(value[1:-1] if value[0] == "\"" else value)
    return open_ones[0]


def test_pprof_decodes_by_the_published_schema(build):
    found = decoded(gzip.decompress(export(build, "pprof")))
    strings = found["string_table"]
    assert strings[0] == ""
    types = [(strings[int(t["type"][0])], strings[int(t["unit"][0])]) for t in found["sample_type"]]
    assert types[:2] == [("samples", "count"), ("cpu", "nanoseconds")], types
    values = [[int(v) for v in s["value"]] for s in found["sample"]]
    assert all(len(v) == len(types) for v in values)
    assert sum(v[0] for v in values) == samples(answer(build))
    assert sum(v[1] for v in values) == weight_ns(build)
    locations = {l["id"][0]: l for l in found["location"]}
    functions = {f["id"][0]: strings[int(f["name"][0])] for f in found["function"]}
    mappings = {m["id"][0]: m for m in found["mapping"]}
    assert len(locations) == len(found["location"]) and len(functions) == len(found["function"])
    spin = 0
    for sample in found["sample"]:
        leaf = locations[sample["location_id"][0]]
        assert all(l in locations for l in sample["location_id"])
        spin += int(sample["value"][1]) * (functions[leaf["line"][0]["function_id"][0]] == "spin"
                                           if "line" in leaf else 0)
    assert spin == sum(r["self_ns"] for r in answer(build, "--inlined")["rows"] if r["function"] == "spin"), spin
    first = found["mapping"][0]
    assert strings[int(first["filename"][0])].endswith("/known"), first
    ids = [strings[int(m["build_id"][0])] for m in found["mapping"] if "build_id" in m]
    assert ids and all(re.fullmatch("[0-9a-f]{8,40}", i) for i in ids), ids
    for location in locations.values():
        if "mapping_id" not in location:  # of samples without a stack
            assert location["id"] == [str(len(locations))], location
            continue
        mapping = mappings[location["mapping_id"][0]]
        assert int(location.get("address", ["0"])[0]) < int(mapping["memory_limit"][0]), location
    keys = {strings[int(label["key"][0])] for s in found["sample"] for label in s["label"]}
    assert {"pid", "thread id", "process", "thread", "hart"} <= keys, keys


def test_pprof_shows_a_requested_event(build):
    found = decoded(gzip.decompress(export(build, "pprof", "--event", "page-faults")))
    strings = found["string_table"]
    assert strings[int(found["default_sample_type"][0])] == "page-faults"
    assert "page-faults" in [strings[int(t["type"][0])] for t in found["sample_type"]]


# --- where it goes --------------------------------------------------------------------------------

def test_binary_is_not_written_to_a_terminal(build):
    master, slave = pty.openpty()
    try:
        done = subprocess.run([build / "mperfctl", "export", "--as", "pprof", "-i", recording(build).path],
                              stdout=slave, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(slave)
        os.close(master)
    assert done.returncode == 2 and "terminal" in done.stderr and "-o" in done.stderr, done


def test_stdout_is_the_default(build):
    path = recording(build).path
    done = subprocess.run([build / "mperfctl", "export", "--as", "pprof", "-i", path], capture_output=True,
                          timeout=60, check=True)
    assert done.stdout[:2] == b"\x1f\x8b" and gzip.decompress(done.stdout)
    assert done.stdout == export(build, "pprof")


def test_what_cannot_be_done_is_said(build):
    path = recording(build).path
    fails(build, 2, ["--as", "pprof", "csv"], "export", "-i", path)
    fails(build, 2, ["--as takes", "did you mean speedscope"], "export", "--as", "speedscop", "-i", path)
    fails(build, 1, ["no such file|cannot"], "export", "--as", "csv", "-i", f"{path}.none")
    fails(build, 1, ["no-such"], "export", "--as", "csv", "-i", path, "--event", "no-such")
    fails(build, 1, ["/absent/x"], "export", "--as", "csv", "-i", path, "-o", "/absent/x")
    for form in "csv", "perf-script", "speedscope", "firefox":
        done = mperfctl(build, "export", "--as", form, "-i", f"{path}.none", check=False)
        assert done.stdout == "", f"{form}: the head of a table of nothing"
    with Folder() as folder:
        fails(build, 1, ["no-such"], "export", "--as", "csv", "-i", path, "--event", "no-such", "-o",
              folder / "out")
        assert os.listdir(folder) == [], "a file that is not whole"
    if os.path.exists("/dev/full"):
        for form in TEXTS + ["pprof"]:
            fails(build, 1, ["full|space"], "export", "--as", form, "-i", path, "-o", "/dev/full")


def test_nothing_that_matches_is_an_empty_profile_and_a_note(build):
    for form in "csv", "speedscope", "firefox", "pprof", "perf-script":
        with Folder() as folder:
            done = mperfctl(build, "export", "--as", form, "-i", recording(build).path, "--comm", "nobody",
                            "-o", folder / "out")
            assert "no samples match" in done.stderr, done.stderr
            written = (folder / "out").read_bytes()
        if form in ("speedscope", "firefox"):
            json.loads(written)
        if form == "csv":
            assert len(written.splitlines()) == 1
        if form == "pprof":
            assert gzip.decompress(written)
        if form == "perf-script":
            assert written == b""


def test_a_reader_that_goes_away_ends_it(build):
    done = subprocess.run(["sh", "-c", '"$0" export --as perf-script -i "$1" | head -n 1', build / "mperfctl",
                           recording(build).path], capture_output=True, text=True, timeout=60)
    assert len(done.stdout.splitlines()) == 1
    assert "core dumped" not in done.stderr and "Sanitizer" not in done.stderr, done.stderr


# --- hostile names --------------------------------------------------------------------------------

def test_names_of_programs_break_no_format(build):
    with Folder() as folder:
        inner = folder / "a\nb;(c) \"d,\\"
        inner.mkdir()
        program = inner / "p\x1b[32m\u202e"
        shutil.copy(compile_program(build, "hostile.c"), program)
        path = folder / "r"
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", path, "--", program, long_enough(300))
        written = {form: text(build, form, path=path) for form in TEXTS}
        packed = gzip.decompress(export(build, "pprof", path=path))
        functions = rows(build, "hotspots", "-i", path, "--limit", "0")
    n = sum(r["samples"] for r in functions["rows"])
    for form, said in written.items():
        controls = set(re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", said))
        assert not controls, (form, controls)
        assert "alert(1)" in said, form
    assert b"\x1b[" not in packed and b"alert(1)" in packed
    found = csv_rows(written["csv"])
    assert sum(int(r["samples"]) for r in found) == n
    leaf = [r for r in found if "alert" in r["function"]]
    assert leaf and {r["function"] for r in leaf} == {SYMBOL.strip("\"")}, leaf[:2]
    assert {r["process"] for r in leaf} == {NAME} and leaf[0]["module"].endswith("p\\x1b[32m\\u{202e}"), leaf[0]
    assert len(records(written["perf-script"])) == n
    names = [f["name"] for f in json.loads(written["speedscope"])["shared"]["frames"]]
    assert SYMBOL.strip("\"") in names, names
    assert NAME in {t["processName"] for t in json.loads(written["firefox"])["threads"]}
    for line in written["folded"].splitlines():
        assert re.fullmatch(r".+ \d+", line), line


# --- recordings that are damaged -------------------------------------------------------------------

def test_a_damaged_recording_is_refused_and_leaves_no_file(build):
    with Folder() as folder:
        path = folder / "r.mprf"
        shutil.copy(recording(build).path, path)
        unseal(path)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE stack SET parent = id + 1 WHERE id = 1")
        db.close()
        seal(path)
        fails(build, 1, ["damaged"], "export", "--as", "csv", "-i", path, "-o", folder / "out")
        assert not (folder / "out").exists()
