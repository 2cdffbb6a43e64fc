# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hotspots: by what they are grouped, filtered and shared out, and as raw rows."""
import json
import os
import re
import subprocess

from machine import Folder, Skip, mperfctl, need_root, rows
from rates import rate_allowed, samples_of
from recorded import Recording, answer, fails, known, recording, samples

GROUPINGS = {
    "function": {"function", "module"},
    "module": {"module", "named", "unnamed", "out_of_symbol"},
    "process": {"comm", "pid", "argv"},
    "thread": {"comm", "pid", "tid"},
    "cgroup": {"cgroup"},
    "line": {"function", "source", "line", "module"},
    "hart": {"hart"},
    "address": {"function", "offset", "source", "line", "module", "build_id"},
}


# --- hotspots ------------------------------------------------------------------------------------

def test_hotspots_shows_a_table_with_its_provenance(build):
    out = mperfctl(build, "hotspots", "-i", recording(build).path).stdout
    lines = out.splitlines()
    assert re.match(r"\s*Self\s+Total\s+Samples\s+Function\s+Module", lines[0]), out
    assert re.search(r"^\s*\d+\.\d\d %\s+\d+\.\d\d %\s+[\d,]+\s+spin\s+/\S+", out, re.M), out
    hz = recording(build).hz
    assert re.search(rf"cpu-clock.*{hz} Hz; [\d,]+ samples in .*; lost: .*; \d+\.\d % named",
                     lines[-1]), out
    assert "\x1b" not in out


def test_hotspots_groups_by_each_of_eight_keys(build):
    whole = answer(build)["provenance"]["samples"]
    spun_s = (Recording.SPIN_MS + Recording.OTHER_MS) / 1e3
    assert whole > samples_of(spun_s, recording(build).hz), whole
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
    # what was sampled before its exec is of the program before it
    of_pid = [r for r in processes if r["pid"] == other[0]["pid"]]
    for arguments, rows_ in ((["--comm", "other"], other), (["--pid", other[0]["pid"]], of_pid)):
        found = answer(build, "--by", "process", *arguments)
        assert [(r["comm"], r["samples"]) for r in found["rows"]] == [(r["comm"], r["samples"]) for r in rows_], \
            (arguments, found["rows"])
        assert abs(sum(r["self"] for r in found["rows"]) - 1) < 1e-9, found["rows"]
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
    enough = samples_of(Recording.OTHER_MS / 1e3, recording(build).hz)
    assert there >= 0.95 * anywhere - 1 and anywhere > enough, (there, anywhere, enough)
    assert answer(build, "--cpu", "4000")["rows"] == []


def test_hotspots_filters_by_time(build):
    r = recording(build)
    whole = samples(answer(build))
    assert samples(answer(build, "--since", f"@{r.begin_s - 5:.0f}")) == whole
    assert samples(answer(build, "--since=-1h", "--until", "now")) == whole
    assert answer(build, "--until", f"@{r.begin_s - 5:.0f}")["rows"] == []
    assert answer(build, "--since", f"@{r.begin_s + r.seconds + 5:.0f}")["rows"] == []
    # What a window has that the limit cuts through belongs to both sides; windows last a second.
    first, second = r.windows[0], r.windows[1]
    before = samples(answer(build, "--until", f"@{first + 0.1:.3f}"))
    after = samples(answer(build, "--since", f"@{first + 0.1:.3f}"))
    later = samples(answer(build, "--since", f"@{second + 0.1:.3f}"))
    assert 0 < before < whole and after == whole and 0 < later < whole, (before, after, later, whole)
    assert before + later == whole, (before, later, whole)


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
        found = json.loads(mperfctl(build, "hotspots", "-F", rate_allowed(999), "--json", "--limit",
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
            found = rows(build, "hotspots", "-F", rate_allowed(499), *whom, "--for", "800ms", "--by",
                         "process", "--limit", "0")
            assert samples(found, pid=process.pid) > 4, (whom, found["rows"][:4])
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
