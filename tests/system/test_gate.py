# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl diff and gate: recordings of a program of which one function does more work on one side."""
import functools
import json
import os
import re
import subprocess
import xml.etree.ElementTree

from machine import Folder, compile_program, leave_to_plain, mperfctl, once_in_a_run, plain_build, refused
from rates import rate_allowed

SECONDS = 25
SANITIZED = "test_what_got_slower_is_named_and_nothing_else", "test_reports_for_ci_systems_can_be_read"
ALONE = {"MPERF_SOCKET": ""}  # no service
SLOWER, UNDECIDED = 3, 4
RUNS = 8
SAMPLES = 150  # of a function in a run, at the rate that is allowed
PERCENT = 100  # more work; far above what any machine's noise makes of so many samples


@functools.cache
def rounds(build):
    """How many make a run long enough."""
    path, n = compile_program(build, "compared.c"), 500
    begin = os.times().children_user
    subprocess.run([path, str(n)], check=True, stdout=subprocess.DEVNULL)
    return max(1, round(n * 3 * SAMPLES / rate_allowed(999) / max(os.times().children_user - begin, 0.01)))


def record(build, path, percent=0, *options):
    mperfctl(build, "record", "-f", "-F", rate_allowed(999), "-o", path, *options, "--",
             compile_program(build, "compared.c"), rounds(build), percent, env=ALONE)


@functools.cache
def sides(build):
    """A folder with runs in turns: main/ and same/ of the same work, slow/ of a function that does twice
    as much. gcc makes copies of two functions ("steady.constprop.0"), which are named as these. The plain
    programs record them for all kinds of build: what is tested reads them."""
    plain = plain_build(build)
    rounds(plain)

    def make(root):
        for side in "main", "same", "slow":
            (root / side).mkdir()
        for i in range(RUNS):
            for side, percent in ("main", 0), ("slow", PERCENT), ("same", 0):
                record(plain, root / side / f"{i}.mprf", percent)
    return once_in_a_run(build, "sides", make)


def gate(build, baseline, candidate, *options):
    done = mperfctl(build, "gate", "--baseline", baseline, "--candidate", candidate, *options, check=False,
                    env=ALONE)
    assert done.returncode in (0, SLOWER, UNDECIDED), (done.returncode, done.stderr)
    return done


def of_function(answer, name):
    found = [r for r in answer["change"] if r["function"] == name and r["module"] == "compared"]
    assert len(found) == 1, (name, answer["change"])
    return found[0]


def test_what_got_slower_is_named_and_nothing_else(build):
    root = sides(build)
    done = gate(build, root / "main", root / "slow", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == SLOWER and answer["total"][0]["verdict"] == "slower", answer
    row = of_function(answer, "slowed")
    assert row["verdict"] == "slower" and 0.5 < row["change"] < 1.8, row
    assert row["low"] < row["change"] < row["high"], row
    assert [r["function"] for r in answer["change"] if r["verdict"] == "slower"] == ["slowed"], answer
    assert abs(row["adds"] / row["share"] - row["change"]) < 1e-6, row
    line = gate(build, root / "main", root / "slow").stdout.splitlines()[0]
    assert line.startswith("slower: +") and "; slowed in compared: +" in line, line


def test_rows_that_were_not_tested_are_shown_if_asked_for(build):
    root = sides(build)
    untested = [r for r in json.loads(gate(build, root / "main", root / "slow", "--json").stdout)["change"]
                if r["verdict"] == "untested"]
    short = gate(build, root / "main", root / "slow").stdout
    whole = gate(build, root / "main", root / "slow", "--all").stdout
    assert untested and "Rows that were not tested are left out; --all -n 0 shows them" in short, short
    rows = [sum(" untested " in line for line in text.splitlines()[2:] if "left out" not in line) for text in (short, whole)]
    assert rows == [0, len(untested)] and " slower " in short, (rows, short)


def test_the_same_work_is_not_slower(build):
    root = sides(build)
    done = gate(build, root / "main", root / "same", "--json", "--max-regression", "20%")
    answer = json.loads(done.stdout)
    assert done.returncode != SLOWER, answer
    assert {of_function(answer, f)["verdict"] for f in ("steady", "even", "slowed")} <= {"same", "undecided"}, answer


def test_what_got_faster_is_named_by_diff_and_is_no_matter_for_the_gate(build):
    root = sides(build)
    # at the usual margin of 2 % chance alone calls a row slower in one comparison of fifty
    answer = json.loads(mperfctl(build, "diff", root / "slow", root / "main", "--margin", "20%", "--json", env=ALONE).stdout)
    assert of_function(answer, "slowed")["verdict"] == "faster", answer
    assert not [r for r in answer["change"] if r["verdict"] == "slower"], answer
    assert gate(build, root / "slow", root / "main", "--max-regression", "20%").returncode != SLOWER


def test_the_same_recordings_give_the_same_answer(build):
    root = sides(build)
    assert gate(build, root / "main", root / "slow").stdout == gate(build, root / "main", root / "slow").stdout


def test_two_recordings_are_shown_with_the_error_of_sampling(build):
    root = sides(build)
    done = mperfctl(build, "diff", root / "main" / "0.mprf", root / "slow" / "0.mprf", env=ALONE)
    assert done.stdout.startswith("not enough to tell: "), done.stdout
    assert "needs at least 5 runs" in done.stdout and "untested" in done.stdout
    done = gate(build, root / "main" / "0.mprf", root / "slow" / "0.mprf", "--json")
    assert done.returncode == UNDECIDED
    row = of_function(json.loads(done.stdout), "slowed")
    assert row["low"] < row["change"] < row["high"] and 0.2 < row["change"] < 4 and row["p"] is None, row


def test_sides_one_after_the_other_do_not_decide(build):
    leave_to_plain(build, "their verdict is of figures alone, and that of the others is made with sanitizers")
    root = sides(build)
    with Folder() as folder:
        for i in range(RUNS):
            record(build, folder / f"{i}.mprf", PERCENT)
        assert gate(build, root / "main", folder).returncode == UNDECIDED
        said = gate(build, root / "main", folder, "--any-order")
    assert said.returncode == SLOWER and "did not alternate" in said.stdout, said.stdout


def test_reports_for_ci_systems_can_be_read(build):
    root = sides(build)
    with Folder() as folder:
        done = gate(build, root / "main", f"{root}/sl*/*.mprf", "--junit", folder / "gate.xml", "--markdown")
        suite = xml.etree.ElementTree.parse(folder / "gate.xml").getroot()
    assert suite.tag == "testsuite" and suite.get("failures") == "2", suite.attrib
    assert [c.get("name") for c in suite] == ["total", "slowed in compared"]
    assert all(c.find("failure") is not None for c in suite)
    assert done.stdout.startswith("**slower: ") and "\n| **`slowed in compared`** | +" in done.stdout


def test_rows_may_be_of_modules_or_processes(build):
    root = sides(build)
    for by, name in ("module", "module"), ("process", "comm"):
        answer = json.loads(gate(build, root / "main", root / "slow", "--by", by, "--json").stdout)
        assert "compared" in [r[name] for r in answer["change"]], answer


def test_what_cannot_be_compared_is_named(build):
    root = sides(build)
    run = functools.partial(mperfctl, build, check=False, env=ALONE)
    some = root / "main" / "0.mprf"
    with Folder() as folder:
        refused(run("diff", some, folder / "nothing"), 2, "there is no recording")
        refused(run("diff", some, folder), 2, re.escape(f"the folder '{folder}' has no recording (*.mprf)"))
        refused(run("diff", folder, some), 2, re.escape(f"the folder '{folder}' has no recording (*.mprf)"))
        refused(run("diff", some, f"{folder}/*.mprf"), 2, "no file matches '")
        refused(run("diff", some), 2, "give BASELINE and CANDIDATE")
        refused(run("gate", "--baseline", some), 2, "--candidate")
        refused(run("diff", some, some, some), 2, "one argument too many")
        refused(run("diff", some, some, "--by", "thread"), 2, "--by takes")
        refused(run("gate", "--baseline", some, "--candidate", some, "--looks", "0"), 2, "--looks")
        refused(run("gate", "--baseline", some, "--candidate", some, "--max-regression", "2"), 2, "share")
        refused(run("diff", some, some, "--json", "--markdown"), 2, "exclude each other")
        refused(run("diff", some, some, "--comm", "nobody"), 1, "has no samples that match")
        refused(run("gate", "--baseline", root / "main", "--candidate", some), 2, "0.mprf' is on both sides")
        (folder / "again.mprf").symlink_to(some)
        done = run("gate", "--baseline", root / "main", "--baseline", folder, "--candidate", root / "same")
        assert "1 recording was given twice: it counts once" in done.stderr, done
        (folder / "again.mprf").unlink()
        (folder / "text.mprf").write_text("no recording\n")
        refused(run("diff", some, folder / "text.mprf"), 1, "text.mprf")
        (folder / "cut.mprf").write_bytes(some.read_bytes()[:20000])
        refused(run("diff", some, folder / "cut.mprf"), 1, "cut.mprf")
        record(build, folder / "faults.mprf", 0, "-e", "task-clock")
        refused(run("diff", some, folder / "faults.mprf"), 2, "mean different things")
        done = run("gate", "--baseline", root / "main", "--candidate", root / "same", "--layout-allowance",
                   "50%")
        refused(done, 2, "layout allowance")


def test_side_by_side_is_for_any_two_sides(build):
    root = sides(build)
    run = functools.partial(mperfctl, build, check=False, env=ALONE)
    done = run("diff", root / "main", root / "slow", "--side-by-side", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and "total" not in answer, answer.keys()
    assert [(s["side"], s["runs"]) for s in answer["side"]] == [("baseline", RUNS), ("candidate", RUNS)]
    row = next(r for r in answer["beside"] if r["function"] == "slowed" and r["module"] == "compared")
    assert row["share_b"] > 1.2 * row["share_a"] and 1.2 < row["ratio"] < 3.5, row
    assert sum(r["share_a"] for r in answer["beside"]) < 1.001
    text = run("diff", root / "main", root / "slow", "--side-by-side").stdout
    assert text.startswith("A: ") and "\nB: " in text and "no change is tested" in text, text
    report = run("diff", root / "main", root / "slow", "--side-by-side", "--markdown").stdout
    assert "| Function |" in report and "slowed" in report, report
    raw = run("diff", root / "main", root / "slow", "--side-by-side", "--raw").stdout.splitlines()
    assert {"function", "share_a", "share_b", "ipc_b", "became"} <= set(raw[0].split("\t")), raw[:2]
    by_line = json.loads(run("diff", root / "main", root / "slow", "--side-by-side", "--by", "line",
                             "--json").stdout)
    assert any(r["source"] and r["source"].endswith("compared.c") for r in by_line["beside"])
    refused(run("diff", root / "main", root / "slow", "--side-by-side", "--margin", "5%"), 2, "--margin")
    refused(run("gate", "--baseline", root / "main", "--candidate", root / "slow", "--side-by-side"), 2,
            "--side-by-side")


def test_recordings_of_other_events_are_compared_by_share_alone(build):
    root = sides(build)
    some = root / "main" / "0.mprf"
    with Folder() as folder:
        record(build, folder / "task.mprf", 0, "-e", "task-clock")
        run = functools.partial(mperfctl, build, check=False, env=ALONE)
        refused(run("diff", some, folder / "task.mprf"), 2, "task-clock", "--side-by-side")
        refused(run("gate", "--baseline", some, "--candidate", folder / "task.mprf"), 2, "task-clock", "-e")
        answer = json.loads(run("diff", some, folder / "task.mprf", "--side-by-side", "--json").stdout)
    assert [s["event"] for s in answer["side"]] == ["cpu-clock", "task-clock"], answer["side"]
    row = next(r for r in answer["beside"] if r["function"] == "even" and r["module"] == "compared")
    assert abs(row["share_a"] - row["share_b"]) < 0.15, row


def test_recordings_of_another_rate_are_compared_in_time(build):
    """Half the samples of the same work are no change."""
    leave_to_plain(build, "their verdict is of figures alone, and that of the others is made with sanitizers")
    root = sides(build)
    with Folder() as folder:
        for i in range(5):
            mperfctl(build, "record", "-f", "-F", max(1, rate_allowed(999) // 2), "-o", folder / f"{i}.mprf", "--",
                     compile_program(build, "compared.c"), rounds(build), 0, env=ALONE)
        done = gate(build, root / "main", folder, "--json", "--any-order", "--max-regression", "30%")
        one = json.loads(mperfctl(build, "diff", root / "main" / "0.mprf", folder / "0.mprf", "--json", env=ALONE).stdout)
    answer = json.loads(done.stdout)
    assert {of_function(answer, f)["verdict"] for f in ("steady", "even", "slowed")} <= {"same", "undecided"}, answer
    for function in "steady", "even", "slowed":
        row = of_function(answer, function)
        assert 0.6 < row["candidate_ns"] / row["baseline_ns"] < 1.6, row
    # also of one run a side, where changes are of samples alone
    for function in "steady", "even", "slowed":
        row = of_function(one, function)
        assert row["verdict"] == "untested" and -0.4 < row["change"] < 0.6, row


def test_what_became_of_a_function_is_said(build):
    """One is renamed, one moves into its caller, one stays."""
    source = """
        #include <stdlib.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) void OLD(long n) { for (long i = 0; i < n; i++) sink += i; }
        HOW void helper(long n) { for (long i = 0; i < n; i++) sink ^= i; }
        __attribute__((noinline)) void steady(long n) { for (long i = 0; i < n; i++) sink -= i; }
        __attribute__((noinline)) void work(long n) { OLD(n); helper(n); steady(2 * n); sink++; }
        int main(int c, char **v) { (void)c; for (long i = atol(v[1]); i > 0; i--) work(1000000); return 0; }
        """
    with Folder() as folder:
        (folder / "p.c").write_text(source)
        for side, flags in ("a", ["-DOLD=old_name", "-DHOW=__attribute__((noinline))"]), \
                ("b", ["-DOLD=new_name", "-DHOW=static inline __attribute__((always_inline))"]):
            (folder / side).mkdir()
            subprocess.run(["cc", "-O1", "-g", *flags, "-o", folder / side / "p", folder / "p.c"], check=True)
            mperfctl(build, "record", "-g", "dwarf", "-F", rate_allowed(999), "-o", folder / f"{side}.mprf", "--",
                     folder / side / "p", 600, env=ALONE)
        answer = json.loads(mperfctl(build, "diff", folder / "a.mprf", folder / "b.mprf", "--json", env=ALONE).stdout)
        became = {r["function"]: r["became"] for r in answer["change"] if r["module"] == "p"}
        beside = json.loads(mperfctl(build, "diff", folder / "a.mprf", folder / "b.mprf", "--side-by-side", "--json",
                                     env=ALONE).stdout)["beside"]
    assert became["old_name"] == "renamed to new_name (same callers)", became
    assert became["new_name"] == "renamed from old_name (same callers)", became
    assert became["helper"] == "inlined in the candidate" and became["steady"] is None, became
    row, = [r for r in beside if r["function"] in ("old_name", "new_name")]
    assert row["function"] == "new_name" and row["share_a"] > 0.1 and row["share_b"] > 0.1, row
