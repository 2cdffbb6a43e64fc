# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in two bodies: what they count is chosen when they start or while they run, and what a
run without counting and one with it come to together."""
import json
import os
import subprocess

from machine import NOBODY, ROOT, Folder, Skip, mperfctl
from service import Service, wait_until

ALONE = {"MPERF_SOCKET": ""}  # no service
OPS = 1000                    # of one entry


def program(build, name="choices", mode="clone"):
    """tests/system/choices.c by mperf-cc, in one body or two."""
    if not (build / "mperf-cc").exists():
        raise Skip("shown by the plain run; the pass is built without sanitizers")
    target = build / "tests" / "programs" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([build / "mperf-cc", "-O2", "-o", target, ROOT / "tests" / "system" / "choices.c"],
                          env={"PATH": os.environ["PATH"], "MPERF_PASS": f"mode={mode}"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def loop_of(answer, function):
    found = [r for r in answer["rows"] if r["function"] == function]
    assert len(found) == 1, (function, answer["rows"])
    return found[0]


def told_by_file(build, path, folder, *options, **variables):
    output = folder / "told"
    output.unlink(missing_ok=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MPERF_")}
    subprocess.run([path, "runs"], check=True, env=dict(clean, MPERF_OUTPUT=str(output), **variables))
    return json.loads(mperfctl(build, "roofline", "--json", *options, "-i", output, env=ALONE).stdout)


def test_all_entries_count_unless_something_is_chosen(build):
    path = program(build)
    with Folder() as folder:
        answer = told_by_file(build, path, folder)
    for function, entries in (("summed", 500), ("multiplied", 10)):
        row = loop_of(answer, function)
        assert row["entries"] == row["counted_entries"] == entries and row["sampling_error"] == 0
        assert row["iterations"] > 0 and row["iterations"] % entries == 0  # it is unrolled
    assert loop_of(answer, "summed")["fp64_ops"] == 500 * OPS
    assert loop_of(answer, "multiplied")["fp64_ops"] == 20 * OPS


def test_one_in_n_stands_for_all_and_says_how_well(build):
    path = program(build)
    with Folder() as folder:
        answer = told_by_file(build, path, folder, MPERF_SAMPLE="50")
    row = loop_of(answer, "summed")
    assert row["entries"] == 500 and row["counted_entries"] == 10
    assert row["fp64_ops"] == row["ops"] == 500 * OPS and row["iterations"] % 500 == 0
    assert abs(row["sampling_error"] - (0.98 / 10) ** 0.5) < 1e-9
    assert any("Not all entries counted" in note for note in answer["provenance"]["notes"]), answer["provenance"]


def test_what_was_entered_fewer_times_than_one_in_n_is_marked(build):
    path = program(build)
    with Folder() as folder:
        answer = told_by_file(build, path, folder, MPERF_SAMPLE="10000")
    row = loop_of(answer, "multiplied")
    if row["counted_entries"] == 0:  # but for one run in 1,000
        assert row["ops"] is None and row["gops"] is None and row["bytes_loaded"] is None, row
        assert row["iterations"] is None
    assert "of 10 entries counted" in row["unseen"], row
    assert row["time_ns"] is not None
    assert any("fewer times than 1 in N" in note for note in answer["provenance"]["notes"])


def test_a_region_whose_functions_ran_fewer_times_than_one_in_n_is_marked(build):
    path = program(build)
    with Folder() as folder:
        marked = told_by_file(build, path, folder, "--by", "region", MPERF_SAMPLE="10000")
        whole = told_by_file(build, path, folder, "--by", "region")
    row, = [r for r in marked["rows"] if r["region"] == "few"]
    assert row["entries"] == 1 and "functions counted once or never: 1" in row["unseen"], row
    row, = [r for r in whole["rows"] if r["region"] == "few"]
    assert "functions" not in (row["unseen"] or "") and row["fp64_ops"] == 20 * OPS + 10, row  # and the sums


def test_functions_are_chosen_by_name_when_the_program_starts(build):
    path = program(build)
    with Folder() as folder:
        answer = told_by_file(build, path, folder, MPERF_LOOPS="nothing,mult*")
    assert loop_of(answer, "multiplied")["counted_entries"] == 10
    assert loop_of(answer, "multiplied")["fp64_ops"] == 20 * OPS
    assert loop_of(answer, "summed")["entries"] == 500
    assert loop_of(answer, "summed")["counted_entries"] == 0


def test_a_command_is_told_what_to_count(build):
    path = program(build)
    said = mperfctl(build, "roofline", "--json", "--loops", "summed", "--sample", "5", "--", path, "runs",
                    env=ALONE).stdout
    answer = json.loads(said)
    assert loop_of(answer, "summed")["counted_entries"] == 100
    assert loop_of(answer, "summed")["fp64_ops"] == 500 * OPS
    assert loop_of(answer, "multiplied")["counted_entries"] == 0


def test_two_phases_are_combined_where_they_did_the_same(build):
    path = program(build)
    said = mperfctl(build, "roofline", "--two-phase", "--json", "--", path, "runs", env=ALONE)
    answer = json.loads(said.stdout)
    for function, entries, ops in (("summed", 500, 500 * OPS), ("multiplied", 10, 20 * OPS)):
        row = loop_of(answer, function)
        assert row["refused"] is None and row["entries"] == entries and row["ops"] == ops
        assert abs(row["gops"] * row["time_ns"] - ops) <= 1e-6 * ops
        assert abs(row["time_counting_ns"] / row["time_ns"] - 1 - row["cost_measured"]) < 1e-6
        assert row["cost"] > 0
        error = abs(row["time_ns"] - row["time_again_ns"]) / 2**0.5 / row["time_ns"]
        assert abs(row["error"] - error) < 1e-9, row
        slower = row["time_counting_ns"] / row["time_ns"]
        assert abs(row["cost_measured_error"] - 2**0.5 * error * slower) < 1e-9, row


def test_what_ran_differently_is_refused_with_the_reason(build):
    path = program(build)
    said = mperfctl(build, "roofline", "--two-phase", "--json", "--", path, "differs", env=ALONE, check=False)
    assert said.returncode == 3, said
    row = loop_of(json.loads(said.stdout), "multiplied")
    assert row["refused"] == "entered 10 times, then 12" and row["gops"] is None and row["gbytes"] is None
    assert loop_of(json.loads(said.stdout), "summed")["refused"] is None


def test_a_program_in_one_body_is_told_how_to_be_built(build):
    path = program(build, "choices-tree", "tree")
    said = mperfctl(build, "roofline", "--two-phase", "--", path, "runs", env=ALONE, check=False)
    assert said.returncode == 1 and "MPERF_PASS=mode=clone" in said.stderr, said
    assert "first run" in said.stderr and "second run" not in said.stderr, said.stderr


def test_what_makes_no_sense_with_choices_is_refused(build):
    for arguments in (("--two-phase",), ("--two-phase", "--pid", "1"), ("--two-phase", "-i", "x"),
                      ("--two-phase", "--by", "thread", "--", "true"),
                      ("--two-phase", "--by", "region", "--", "true"),
                      ("--two-phase", "--sample", "5", "--", "true"),
                      ("--loops", "x"), ("--loops", "x", "-i", "x"), ("--loops", ",", "--", "true"),
                      ("--sample", "5", "--pid", "1,2"), ("--sample", "-1", "--", "true"),
                      ("--sample", "many", "--", "true"), ("--sample", "10001", "--", "true")):
        said = mperfctl(build, "roofline", *arguments, env=ALONE, check=False)
        assert said.returncode == 2 and said.stderr.startswith("mperfctl: "), (arguments, said)


def test_a_running_program_is_told_what_to_count(build):
    path = program(build)
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MPERF_")}
        with subprocess.Popen([path, "goes-on"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=dict(clean, MPERF_SAMPLE="0", MPERF_FEED=str(service.feed))) as running:
            assert running.stdout.readline() == "ready\n"
            pid = str(running.pid)
            wait_until("it has told of itself", lambda: any(
                r["function"] == "summed" for r in service.ask("roofline", "--pid", pid)["rows"]))
            before = service.ask("roofline", "--pid", pid, "--loops", "summed", "--sample", "2")
            assert loop_of(before, "multiplied")["counted_entries"] == 0

            def counts():
                row = loop_of(service.ask("roofline", "--pid", pid), "summed")
                return row["counted_entries"] > 2 and row
            row = wait_until("it counts what was chosen", counts)
            assert row["counted_entries"] < row["entries"]
            assert loop_of(service.ask("roofline", "--pid", pid), "multiplied")["counted_entries"] == 0
            running.stdin.close()
        assert running.returncode == 0


def test_who_does_not_own_a_program_does_not_choose_what_it_counts(build):
    path = program(build)
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MPERF_")}
        with subprocess.Popen([path, "goes-on"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=dict(clean, MPERF_FEED=str(service.feed))) as running:
            assert running.stdout.readline() == "ready\n"
            pid = str(running.pid)
            service.hears(pid)
            said = subprocess.run([*NOBODY, build / "mperfctl", "roofline", "--pid", pid, "--sample", "0"],
                                  capture_output=True, text=True,
                                  env=dict(clean, MPERF_SOCKET=str(service.socket)))
            assert said.returncode == 1 and "another user" in said.stderr, said
            running.stdin.close()


def test_a_process_that_tells_nothing_cannot_be_told(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        said = mperfctl(build, "roofline", "--pid", str(os.getpid()), "--sample", "1", check=False,
                        env={"MPERF_SOCKET": str(service.socket)})
        assert said.returncode == 1 and "MPERF_PASS=mode=clone" in said.stderr, said
