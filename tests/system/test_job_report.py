# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""job report: the chain of processes that bounded a run, of graphs of sleeps whose critical path is known, and the
prediction for a program beside a run without that program."""
import json
import os
import shutil
import sqlite3
import subprocess
from functools import partial

from machine import Folder, as_nobody, compile_program, everybodys, late_at_times, leave_to_plain, mperfctl, refused
from recorded import known
from service import Service, wait_until

SECONDS = 60
WAITS = "programs that sleep"

SANITIZED = "test_forms_of_a_report", "test_mistakes_are_named", "test_an_ordinary_user_sees_only_his_own"
# By name, seconds of sleep. Sleeps and not spins, so that other load moves little.
PREPARE, COMPILE, SLOW, LINK = 1.0, 0.5, 2.0, 1.0
GRAPH = f"""./prepare {PREPARE}
./compile {COMPILE} &
sh -c './slow {SLOW}; :' &
./compile {COMPILE} &
wait
./link {LINK}
"""
# What processes take to start and end, and a busy machine to run them.
LATE_S = 0.5


def graph(folder, *without):
    """A script of programs that sleep, each under its name; those in `without` do nothing."""
    for name in ("prepare", "compile", "slow", "link"):
        if not (folder / name).exists():
            shutil.copy(shutil.which("sleep"), folder / name)
    text = GRAPH
    for name in without:
        text = text.replace(f"./{name} ", ": ")
    script = folder / ("graph" + "-".join(("", *without)))
    script.write_text("#!/bin/sh\n" + text)
    script.chmod(0o755)
    return script


def close(found_ns, seconds, late_s=LATE_S):
    assert seconds - 0.02 <= found_ns / 1e9 <= seconds + late_s, (found_ns / 1e9, seconds)


def check_graph(answer):
    """The chain is prepare, slow, link, and each took as long as it slept."""
    chain = {}
    at = 0
    for row in answer["chain"]:
        assert row["start_ns"] == at, answer["chain"]  # no gaps
        at += row["ns"]
        chain.setdefault(row["comm"], []).append(row)
    (run,) = answer["run"]
    assert at == run["ns"], (at, run)
    for name, seconds in ("prepare", PREPARE), ("slow", SLOW), ("link", LINK):
        (row,) = chain[name]
        close(row["ns"], seconds)
        assert row["argv"] == f"./{name} {seconds}" and row["pid"] > 0, row
    order = [row["comm"] for row in answer["chain"]]
    assert order.index("prepare") < order.index("slow") < order.index("link"), order
    assert "compile" not in chain, order
    close(run["ns"], PREPARE + SLOW + LINK, 2 * LATE_S)
    programs = {row["comm"]: row for row in answer["program"]}
    assert programs["compile"]["processes"] == 2 and programs["compile"]["chain_ns"] == 0, programs
    assert programs["compile"]["without_ns"] == run["ns"], programs
    assert sum(row["chain_ns"] for row in answer["program"]) == run["ns"], programs
    assert sum(row["processes"] for row in answer["program"]) == run["processes"], programs
    return programs


def check_predictions(programs, measure):
    """Each prediction is what it then takes without the program, as the run is recorded again."""
    for name, least_s in ("slow", PREPARE + COMPILE + LINK), ("prepare", SLOW + LINK), ("link", PREPARE + SLOW):
        predicted_s = programs[name]["without_ns"] / 1e9
        taken_s = measure(name)["run"][0]["ns"] / 1e9
        assert predicted_s >= least_s - 0.02, (name, predicted_s)
        assert abs(predicted_s - taken_s) <= LATE_S, (name, predicted_s, taken_s)


def report(build, recording, *options):
    return json.loads(mperfctl(build, "job", "report", "-i", recording, *options, "--json").stdout)


@late_at_times
def test_the_chain_and_its_predictions_are_true_of_a_recording(build):
    leave_to_plain(build, "sanitizers slow down what is timed; the next test reads the same with them")
    with Folder() as folder:
        def measure(*without):
            done = mperfctl(build, "record", "-f", "-o", folder / "r", "--", graph(folder, *without), cwd=folder)
            assert done.returncode == 0, done.stderr
            return report(build, folder / "r", "-n", 0)

        programs = check_graph(measure())
        check_predictions(programs, measure)


def test_forms_of_a_report(build):
    with Folder() as folder:
        script = folder / "script"
        script.write_text("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.1 & sleep 0.5; wait")
        mperfctl(build, "record", "-o", folder / "r", "--", "sh", script)
        (spin,) = [row for row in report(build, folder / "r")["chain"] if row["start_ns"] == 0]
        assert spin["comm"] == "sh" and 0.3 * spin["ns"] < spin["cpu_ns"] < 1.05 * spin["ns"], spin
        assert abs(spin["alone_ns"] - spin["cpu_ns"]) < 0.1 * spin["cpu_ns"], spin  # nothing else of it worked
        text = mperfctl(build, "job", "report", "-i", folder / "r").stdout
        assert text.startswith("the command in r: took ") and "What bounded it" in text and "By program" in text, text
        assert "sleep 0.5" in text and "sleep 0.1" not in text and "3 processes" in text, text
        page = mperfctl(build, "job", "report", "-i", folder / "r", "--markdown").stdout.splitlines()
        assert page[0] == "### `the command in r`" and page[2].startswith("took "), page
        heads = [line for line in page if line.startswith("| ")]
        assert any("| Process |" in line for line in heads) and any("`sleep 0.5`" in line for line in heads), page
        for line in page:  # the cells of a table are as many as in its head
            if line.startswith("|--"):
                n = line.count("|")
                assert page[page.index(line) - 1].count("|") == n, page
            elif line.startswith("| ") and "|--" not in page[page.index(line) + 1]:
                assert line.count("|") == n, (n, line)
        raw = mperfctl(build, "job", "report", "-i", folder / "r", "--raw").stdout
        assert raw.startswith("# run\n") and "\n# chain\n" in raw and "\n# program\n" in raw, raw
        few = report(build, folder / "r", "-n", 1)
        # the longest stretch is a row of its own, and what is before and behind it
        assert len(few["chain"]) in (2, 3) and len(few["program"]) == 1, few
        assert sum(row["ns"] for row in few["chain"]) == few["run"][0]["ns"], few


def test_mistakes_are_named(build):
    with Folder() as folder:
        refused(mperfctl(build, "job", "report", "-i", folder / "none", check=False), 1, "none")
        refused(mperfctl(build, "job", "report", "a", "b", check=False), 2, "one argument too many")
        refused(mperfctl(build, "job", "report", "job=a,last=3", check=False), 2, "one job")
        refused(mperfctl(build, "job", "run", "a", "--markdown", "--", "true", check=False), 2, "job report")
        refused(mperfctl(build, "job", "report", "-i", "x", "--since", "-1h", check=False), 2, "--since")
        refused(mperfctl(build, "job", "report", "--json", "--markdown", check=False), 2, "exclude each other")
        mperfctl(build, "record", "-a", "-o", folder / "all", "--for", "300ms")
        refused(mperfctl(build, "job", "report", "-i", folder / "all", check=False), 2, "whole system", "Name a job")
        refused(mperfctl(build, "job", "report", "nojob", "-i", folder / "all", check=False), 1, "nojob")


@late_at_times
def test_the_service_reports_on_the_latest_run_with_all_its_processes(build):
    leave_to_plain(build, "sanitizers slow down what is timed; a recording's report is made by the same code")
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        def measure(*without):
            service.ctl("job", "run", "build", "--", graph(folder, *without), cwd=folder)
            wait_until("it has ended", lambda: service.ask("job", "report", "build")["run"][0]["state"] == "ended")
            return service.ask("job", "report", "build", "-n", 0)

        answer = measure()
        assert "job=build, run=" in answer["run"][0]["job"] and answer["run"][0]["begin"], answer["run"]
        programs = check_graph(answer)
        assert programs["sh"]["processes"] + programs["graph"]["processes"] == 2, programs  # none of them was sampled
        check_predictions(programs, measure)
        # many short processes, most of them without a sample
        service.ctl("job", "run", "short", "--", "sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done")
        answer = wait_until("it has ended", lambda: [a for a in [service.ask("job", "report", "short")]
                                                     if a["run"][0]["state"] == "ended"])[0]
        assert {row["comm"]: row["processes"] for row in answer["program"]} == {"sh": 1, "true": 100}, answer
        # the latest of any job, and one by its labels
        assert "job=short" in service.ask("job", "report")["run"][0]["job"]
        assert "job=build" in service.ask("job", "report", "--label", "job=bu*")["run"][0]["job"]
        refused(service.ctl("job", "report", "nojob", check=False), 1, "job=nojob", "--by job")
        refused(service.ctl("job", "report", "build", "--since", "now", check=False), 1, "job=build")


def test_a_pinned_run_has_all_its_processes(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; for j in 1 2 3 4 5; do sh -c '/bin/true; :'; done"
        service.ctl("job", "run", "kept", "--pin", "--", "sh", "-c", script)
        wait_until("it is pinned", lambda: any((folder / "store" / "pinned").glob("*.mprf")))
        programs = {"sh": 6, "true": 5}

        def counts(*asked):
            answer = json.loads((service.ctl if asked[0] == "kept" else partial(mperfctl, build))(
                "job", "report", *asked, "-n", 0, "--json").stdout)
            return {row["comm"]: row["processes"] for row in answer["program"]}
        assert counts("kept") == programs, counts("kept")
        service.stop()
        (pinned,) = (folder / "store" / "pinned").glob("*.mprf")
        assert counts("-i", pinned, "kept") == programs, counts("-i", pinned, "kept")
        with sqlite3.connect(f"file:{pinned}?immutable=1", uri=True) as db:  # each but the first has its parent
            assert db.execute("SELECT count(*) FROM task WHERE process = id AND parent IS NULL").fetchone() == (1,)
            assert db.execute("SELECT count(DISTINCT pid) FROM task WHERE id NOT IN (SELECT task FROM sample)").fetchone()[0] > 0


def test_of_a_running_job_it_says_that_it_runs(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        spin = compile_program(build, "wall_work.c", "-pthread")
        job = subprocess.Popen([build / "mperfctl", "job", "run", "long", "--", "sh", "-c", f"{spin} 50; {known(build)} spin 600000; :"],
                               env={**os.environ, "MPERF_SOCKET": str(service.socket)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def spins():
                done = service.ctl("job", "report", "long", "--json", check=False)
                answer = json.loads(done.stdout) if done.returncode == 0 else {"chain": []}
                return answer if any(row["comm"] == "known" for row in answer["chain"]) else None
            answer = wait_until("its last process is seen", spins)
            assert answer["run"][0]["state"].startswith("has not ended"), answer
            assert any("has not ended" in note for note in answer["provenance"]["notes"]), answer["provenance"]
            assert "and has not ended" in service.ctl("job", "report", "long").stdout
        finally:
            for pid in subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True,
                                      check=False).stdout.split():
                for child in subprocess.run(["pgrep", "-P", pid], capture_output=True, text=True,
                                            check=False).stdout.split():
                    os.kill(int(child), 9)
            job.wait(60)


def test_an_ordinary_user_sees_only_his_own(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.1"
        service.ctl("job", "run", "roots", "--", "sh", "-c", work)
        done = as_nobody(folder, environment, "job", "run", "mine", "--", "sh", "-c", work)
        assert done.returncode == 0, done.stderr
        wait_until("root sees both", lambda: all(
            service.ctl("job", "report", job, check=False).returncode == 0 for job in ("roots", "job=mine,user=nobody")))
        for arguments in ("roots",), ("job=*,user=root",):
            done = as_nobody(folder, environment, "job", "report", *arguments)
            assert done.returncode == 1 and "roots" not in done.stdout, done.stdout
        answer = json.loads(as_nobody(folder, environment, "job", "report", "--json").stdout)
        assert "job=mine" in answer["run"][0]["job"], answer
        assert {row["comm"] for row in answer["program"]} == {"sh", "sleep"}, answer
        assert "roots" not in json.dumps(answer), answer
        # those of another user are asked for by the user
        refused(service.ctl("job", "report", "mine", check=False), 1, "user=NAME")
