# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `record` writes, of whom, for how long, and how it ends."""
import csv
import os
import re
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import BAD_WORDS, Folder, leave_to_plain, mperfctl, need_root, rows
from rates import allowing, rate_allowed, samples_of
from recorded import fails, known, recording, samples
from running import children, command_line, wait_until


# --- record --------------------------------------------------------------------------------------

def test_record_writes_a_file_and_says_what_is_in_it(build):
    r = recording(build)
    assert r.path.stat().st_size > 4096
    line = r.done.stderr.splitlines()[-1]
    assert re.search(rf"wrote .*known\.mprf .*cpu-clock.*{r.hz} Hz; [\d,]+ samples.*lost: .*% named",
                     line), r.done.stderr
    assert os.listdir(r.path.parent).count("known.mprf") == 1
    assert not [f for f in os.listdir(r.path.parent) if f.startswith(".")], os.listdir(r.path.parent)


FIGURES = "it compares figures, and the other recordings here are made with sanitizers"


@allowing()
def test_record_samples_at_the_rate_that_was_asked_for(build):
    leave_to_plain(build, FIGURES)
    with Folder() as folder:
        done = mperfctl(build, "record", "-F", "499", "-e", "cpu-clock", "-o", folder / "r", "--",
                        known(build), "spin", "800")
        spent = int(re.search(r"cpu_us (\d+)", done.stdout).group(1)) / 1e6
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
    wanted, got = spent * 499, samples(found, comm="known")
    assert abs(got - wanted) < 0.06 * wanted + 3, f"{got} samples, wanted {wanted:.0f}"
    ns = sum(row["self_ns"] for row in found["rows"] if row["comm"] == "known")
    assert abs(ns / 1e9 - spent) < 0.06 * spent, (ns, spent)
    assert found["provenance"]["hz"] == 499, found["provenance"]


@allowing()
def test_a_short_program_has_samples_enough_without_a_rate(build):
    """At the service's 99 Hz, 0.4 s had some 40 samples. The whole machine keeps that rate."""
    leave_to_plain(build, FIGURES)
    hz = rate_allowed(999)
    with Folder() as folder:
        done = mperfctl(build, "record", "-o", folder / "r", "--", known(build), "spin", "400")
        spent = int(re.search(r"cpu_us (\d+)", done.stdout).group(1)) / 1e6
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
        assert found["provenance"]["hz"] == hz, found["provenance"]
        assert samples(found, comm="known") >= samples_of(spent, hz), (spent, found)
        said = mperfctl(build, "export", "--as", "csv", "--", known(build), "spin", "400").stdout
        taken = sum(int(row["samples"]) for row in csv.DictReader(said.splitlines()))
        assert taken >= samples_of(0.2, hz), said[-2000:]
        need_root()
        mperfctl(build, "record", "-a", "--for", "300ms", "-o", folder / "r")
        assert rows(build, "hotspots", "-i", folder / "r")["provenance"]["hz"] == 99


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
        process = subprocess.Popen([known(build), "spin", "1400"], stdout=subprocess.DEVNULL)
        hz = rate_allowed(999)
        try:
            mperfctl(build, "record", "-F", hz, "--pid", process.pid, "-o", folder / "r",
                     timeout=60)
        finally:
            process.kill()
            process.wait()
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process")
    assert samples(found, pid=process.pid) > samples_of(0.3, hz), found["rows"]


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


def ran_ns(pids):
    """Time that the longest of them has had of processors, by the scheduler's own account."""
    return max((int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids), default=0)


def test_a_command_that_is_killed_by_the_user_is_still_recorded(build):
    with Folder() as folder:
        client = subprocess.Popen([build / "mperfctl", "record", "-o", folder / "r", "--",
                                   known(build), "spin", "20000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        wait_until(lambda: ran_ns([pid for pid in children(client.pid) if "spin" in command_line(pid)])
                   > 700e6, 60, "the program has run")
        client.terminate()
        _, said = client.communicate(timeout=60)
        assert client.returncode == 143, (client.returncode, said)
        assert samples(rows(build, "hotspots", "-i", folder / "r", "--by", "process")) > 20, said


# --- a budget of its own ----------------------------------------------------------------------------

def test_a_recording_without_a_service_is_held_to_its_budget(build):
    leave_to_plain(build, "budgets are of time, and unit tests take the same code through sanitizers")
    need_root()
    with Folder() as folder:
        mperfctl(build, "record", "-F", "299", "--overhead", "0.0001%", "-o", folder / "r", "--",
                 known(build), "spin", "12000")
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process")["provenance"]
    assert any("to keep overhead within 0.0001 %, " in note and "one in 8 samples" in note
               for note in answer["notes"]), answer
    assert 0 < answer["cost_share"] < 1, answer


def test_what_cannot_be_priced_cannot_have_a_budget(build):
    with Folder() as folder:
        fails(build, 2, ["the cost of events that you choose is not measured"], "record",
              "--overhead", "5%", "-e", "cpu-clock", "-o", folder / "r", "--", "true")
