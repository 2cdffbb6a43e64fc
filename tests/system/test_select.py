# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diff and gate of what the service's store has: jobs by their labels, and stretches of time."""
import functools
import json
import os
import sqlite3
import subprocess

from container import CGROUPS
from test_gate import ALONE, rounds as rounds_of
from machine import Folder, Skip, as_nobody, at_end_of_module, compile_program, everybodys, mperfctl, need_root, refused
from rates import rate_allowed
from service import Service, wait_until

SECONDS = 60
LEAVE_TO_PLAIN = "test_runs and test_filter select runs with sanitizers, test_pins compares them through the service"
SLOWER, UNDECIDED = 3, 4
RUNS = 6
PERCENT = 100


def work(build, percent=0, rounds=None):
    return [compile_program(build, "compared.c"), rounds or rounds_of(build), percent]


@functools.cache
def store(build):
    """A service whose store has runs of main and slow in turns, and of late after all of them, by root."""
    need_root()
    folder = Folder()
    root = folder.__enter__()
    service = Service(build, root, flush="1s", rate=rate_allowed(999))
    at_end_of_module(lambda: (service.__exit__(None, None, None), folder.__exit__(None, None, None)))
    service.__enter__()
    everybodys(build, root)
    for i in range(RUNS):
        for branch, percent in ("main", 0), ("slow", PERCENT):
            service.ctl("job", "run", "bench", "--label", f"branch={branch}", "--label", f"run={branch}-{i}", "--",
                        *work(build, percent))
    for i in range(RUNS):
        service.ctl("job", "run", "bench", "--label", "branch=late", "--label", f"run=late-{i}", "--", *work(build))
    return service


def compare(service, command, *arguments):
    done = service.ctl(command, *arguments, "--json", check=False)
    assert done.returncode in (0, SLOWER, UNDECIDED), (done.returncode, done.stderr)
    return done.returncode, json.loads(done.stdout)


def gate(service, baseline, candidate, *options):
    return compare(service, "gate", "--baseline", baseline, "--candidate", candidate, *options)


def test_jobs_in_turns_are_compared_and_what_got_slower_is_named(build):
    service = store(build)
    status, answer = gate(service, "branch=main,job=bench", "branch=slow")
    assert status == SLOWER, answer["total"]
    assert [r["function"] for r in answer["change"] if r["verdict"] == "slower"] == ["slowed"], answer["change"]
    total, = answer["total"]
    assert (total["baseline_runs"], total["candidate_runs"], total["not_in_turns"]) == (RUNS, RUNS, 0), total
    runs = answer["run"]
    assert [r["run"] for r in runs if r["side"] == "baseline"] == [f"branch=main, job=bench, run=main-{i}"
                                                                  for i in range(RUNS)], runs
    assert {r["uid"] for r in runs} == {os.getuid()} and {r["kept"] for r in runs} == {"window"}, runs
    assert any("6 runs of uid 0 with branch=main, job=bench" in n for n in answer["provenance"]["notes"]), answer
    text = service.ctl("diff", "branch=main", "branch=slow").stdout
    assert text.startswith("slower: +") and "Baseline: 6 runs of uid 0 with branch=main." in text, text


def test_the_time_of_a_run_is_that_of_the_recording_of_the_same_work(build):
    service = store(build)
    file = service.folder / "a=b"
    mperfctl(build, "record", "-f", "-F", rate_allowed(999), "-o", file, "--", *work(build), env=ALONE)
    run = subprocess.run([service.build / "mperfctl", "diff", "./a=b", file, "--json"], cwd=service.folder, check=True,
                         capture_output=True, text=True, env={**os.environ, **ALONE})
    alone = json.loads(run.stdout)["total"][0]["baseline_ns"]
    _, answer = gate(service, "branch=main", "branch=slow")
    assert 0.5 < answer["total"][0]["baseline_ns"] / alone < 2, (alone, answer["total"])


def test_sides_one_after_the_other_do_not_decide(build):
    service = store(build)
    status, answer = gate(service, "branch=slow", "branch=late")
    assert status == UNDECIDED and answer["total"][0]["not_in_turns"] == 1, answer["total"]


def test_the_last_runs_are_taken_and_few_do_not_decide(build):
    service = store(build)
    status, answer = gate(service, "branch=main,last=2", "branch=slow,last=9")
    assert status == UNDECIDED and answer["total"][0]["few_runs"] == 1, answer["total"]
    assert [r["run"][-6:] for r in answer["run"]][:2] == [f"main-{i}" for i in (RUNS - 2, RUNS - 1)], answer["run"]
    assert len(answer["run"]) == 2 + RUNS


def test_times_choose_runs_by_their_begin(build):
    service = store(build)
    _, answer = gate(service, "branch=main", "branch=slow")
    third = [r["begin"] for r in answer["run"] if r["side"] == "baseline"][2]
    _, answer = gate(service, f"branch=main,since={third[:19]}", "branch=slow")
    assert answer["total"][0]["baseline_runs"] in (RUNS - 2, RUNS - 1), (third, answer["run"])


def test_selections_of_a_side_add_up_and_each_run_counts_once(build):
    service = store(build)
    _, answer = compare(service, "gate", "--baseline", "run=main-0", "--baseline", "run=main-1", "--baseline",
                        "branch=main,last=5", "--candidate", "branch=slow")
    assert answer["total"][0]["baseline_runs"] == RUNS, answer["run"]


def test_a_stretch_of_time_is_one_run(build):
    service = store(build)
    _, answer = compare(service, "diff", "since=-1h,until=-1s", "since=-1h", "-n", "0")
    assert [r["uid"] for r in answer["run"]] == [None, None], answer["run"]
    assert answer["total"][0]["few_runs"] == 1
    assert "slowed" in {r["function"] for r in answer["change"]}
    assert any("as one run" in n for n in answer["provenance"]["notes"]), answer["provenance"]


def test_a_job_that_has_not_ended_is_left_out_and_named(build):
    service = store(build)
    lives = subprocess.Popen([service.build / "mperfctl", "job", "run", "bench", "--label", "branch=main-too", "--label",
                              "run=lives", "--", *map(str, work(build, rounds=1000000))],
                             env={**os.environ, "MPERF_SOCKET": str(service.socket)})
    try:
        wait_until("it has samples", lambda: service.ask("hotspots", "--since", "-1h", "--label", "run=lives")["rows"])
        _, answer = gate(service, "branch=main*", "branch=slow")
        assert answer["total"][0]["baseline_runs"] == RUNS, answer["run"]
        assert any("Left out" in n and "run=lives" in n for n in answer["provenance"]["notes"]), answer["provenance"]
        done = service.ctl("gate", "--baseline", "run=lives", "--candidate", "branch=slow", check=False)
        refused(done, 1, "no job of uid 0 with run=lives", "have not ended")
    finally:
        lives.terminate()
        lives.wait()


def test_a_job_that_ended_just_now_is_whole(build):
    service = store(build)
    for _ in range(3):
        service.ctl("job", "run", "now", "--", *work(build))
        _, answer = gate(service, "job=now,last=1", "branch=main,last=1")
        ns = [r["ns"] for r in answer["run"]]
        assert 0.4 < ns[0] / ns[1] < 2.5, answer["run"]


def in_unit(unit, invocation, *command):
    """Run a command in a control group such as systemd makes for the start of a unit."""
    groups = [place / f"mperf-test-{os.getpid()}" / unit for place in CGROUPS]
    for group in groups:
        group.mkdir(parents=True)

    def enter():
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        subprocess.run(list(map(str, command)), check=True, env={**os.environ, "INVOCATION_ID": invocation},
                       preexec_fn=enter, stdout=subprocess.DEVNULL)
    finally:
        for group in groups:
            group.rmdir()
            group.parent.rmdir()


def test_starts_of_a_unit_are_runs_where_each_is_a_job(build):
    need_root()
    if not CGROUPS:
        raise Skip("no hierarchy of control groups is mounted")
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(999),
                                     job_environment="run=INVOCATION_ID") as service:
        for i in range(2):
            for unit, percent in ("main.service", 0), ("slow.service", PERCENT):
                try:
                    in_unit(unit, f"{unit[:4]}{i}", *work(build, percent))
                except OSError as e:
                    raise Skip(f"no control group can be made here: {e}") from e
        _, answer = compare(service, "diff", "unit=main.service", "unit=slow.*")
        assert [(r["side"], r["run"]) for r in answer["run"]] == [
            ("baseline", "run=main0"), ("baseline", "run=main1"),
            ("candidate", "run=slow0"), ("candidate", "run=slow1")], answer["run"]
        assert all(r["samples"] > 0 for r in answer["run"]), answer["run"]
        _, answer = compare(service, "diff", "unit=main.service,last=1", "unit=slow.service,last=1")
        assert [r["run"] for r in answer["run"]] == ["run=main1", "run=slow1"], answer["run"]
        done = service.ctl("diff", "unit=none.service", "unit=slow.service", check=False)
        refused(done, 1, "no job of uid 0 with unit=none.service", "job-environment = run=INVOCATION_ID")


def test_a_user_compares_only_own_jobs(build):
    service = store(build)
    environment = {"MPERF_SOCKET": str(service.socket)}
    nobody = functools.partial(as_nobody, service.folder, environment)
    spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    for i in range(2):
        done = nobody("job", "run", "bench", "--label", "branch=main", "--label", f"run=main-{i}", "--", "sh", "-c", spin)
        assert done.returncode == 0, done.stderr
    done = nobody("gate", "--baseline", "branch=main", "--candidate", "branch=slow")
    refused(done, 1, "no job of uid 65534 with branch=slow")
    for whose in "user=root", "uid=0", "uid=65534,uid=0":
        done = nobody("gate", "--baseline", f"branch=main,{whose}", "--candidate", f"branch=slow,{whose}")
        refused(done, 1, "jobs of uid 0 are not yours")
    done = nobody("diff", "run=main-0", "run=main-1", "--json")
    answer = json.loads(done.stdout)
    assert {r["uid"] for r in answer["run"]} == {65534} and len(answer["run"]) == 2, answer["run"]
    assert "compared" not in {r["module"] for r in answer["change"]}, answer["change"]
    done = nobody("diff", "since=-1h,until=-1s", "since=-1h", "--json")
    assert "compared" not in done.stdout, "root's program is not shown"
    # root's own: the claims of nobody are not among them, and can be asked for
    _, answer = gate(service, "branch=main", "branch=slow")
    assert answer["total"][0]["baseline_runs"] == RUNS, answer["run"]
    _, answer = gate(service, "branch=main,user=nobody", "branch=slow")
    assert answer["total"][0]["baseline_runs"] == 2 and {r["uid"] for r in answer["run"]} == {0, 65534}, answer["run"]


def test_what_cannot_be_selected_is_named(build):
    service = store(build)
    for baseline, candidate, status, words in (
            ("branch=no", "branch=slow", 1, ["no job of uid 0 with branch=no", "hotspots"]),
            ("branch=main", "branch=main", 2, ["is on both sides"]),
            ("branch=*", "branch=slow", 2, ["is on both sides"]),
            ("branch=main,", "branch=slow", 2, ["an item is empty"]),
            ("branch=main,last=0", "branch=slow", 2, ["last= takes"]),
            ("branch=main,user=no such user", "branch=slow", 2, ["no such user"]),
            ("since=-1h,last=3", "branch=slow", 2, ["need a label"]),
            ("until=-1h", "branch=slow", 2, ["or since="]),
            ("since=-1h,until=-2h", "branch=slow", 2, ["until= must be later than since="]),
            ("branch=" + "x" * 100000, "branch=slow", 2, ["more than 256 bytes"]),
            (service.folder / "log", "branch=slow", 2, ["is a recording, and 'branch=slow' selects from the store"])):
        done = service.ctl("gate", "--baseline", baseline, "--candidate", candidate, check=False)
        refused(done, status, *words)
    done = service.ctl("gate", "--baseline", "branch=main", "--candidate", "branch=slow", "--comm", "none", check=False)
    refused(done, 1, "has no samples that match")
    done = mperfctl(build, "gate", "--baseline", "branch=main", "--candidate", "branch=slow", check=False,
                    env=ALONE)
    refused(done, 1, "no mperfd service answers")


def test_runs_whose_samples_are_only_in_roll_ups_are_compared_and_this_is_said(build):
    service = store(build)
    files = functools.partial(lambda tier: [p for p in (service.folder / "store" / tier).iterdir()
                                            if p.suffix == ".mprf"])
    before = gate(service, "branch=main", "branch=slow")[1]
    assert service.stop() == 0
    service.start()
    sealed = [p for p in files("window") if not p.with_name(p.name + "-wal").exists()]
    wait_until("they are rolled up", lambda: len(files("hour")) and all(
        service_has(p.name, files("hour")) and service_has(p.name, files("minute")) for p in sealed))
    assert service.stop() == 0
    for p in files("window"):
        p.unlink()
    service.start()
    status, answer = gate(service, "branch=main", "branch=slow", "--any-order")
    assert {r["kept"] for r in answer["run"]} == {"minute"}, answer["run"]
    assert any("sums of minutes" in n for n in answer["provenance"]["notes"]), answer["provenance"]
    assert [r["samples"] for r in answer["run"]] == [r["samples"] for r in before["run"]], answer["run"]
    assert status == SLOWER, answer["total"]


def service_has(name, files):
    """Is that window file summed up in one of these?"""
    for path in files:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            if db.execute("SELECT 1 FROM meta WHERE key = ?", (f"source:{name}",)).fetchone():
                return True
    return False
