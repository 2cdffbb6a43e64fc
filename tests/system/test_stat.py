# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `stat` counts is what the kernel counts, in each of its forms."""
import json
import os
import re
import subprocess
import time
from pathlib import Path

from machine import Folder, mperfctl, need_counting_hart, need_program, need_root
from recorded import known


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


def test_stat_counts_instructions_as_perf_does(build):
    """Of one program that does the same each time; a hart may bring nonsense once, of either."""
    need_counting_hart(build)
    need_program("perf")
    command = known(build), "pages", "20000"
    ours, theirs = [], []
    for _ in range(5):
        ours.append(counts(build, "-e", "instructions:u", "--", *command)[0]["instructions:u"]["value"])
        done = subprocess.run(["perf", "stat", "-x", ",", "-e", "instructions:u", "--", *command],
                              capture_output=True, text=True, check=True, timeout=60)
        theirs.append(int(re.search(r"^(\d+),", done.stderr, re.M)[1]))
    mine, perfs = sorted(ours)[2], sorted(theirs)[2]
    assert perfs > 20000 and abs(mine - perfs) < 0.02 * perfs, (ours, theirs)


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
    done = mperfctl(build, "stat", "-r", "3", "-U", "-e", "task-clock,page-faults", "--", known(build),
                    "spin", "60")
    assert done.stderr.count("user space only") == 1, done.stderr
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


def ran_ns(pid):
    """Time that a process of one thread has had of processors, by the scheduler's own account."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def test_stat_writes_to_a_file_and_counts_a_pid_and_everything(build):
    need_root()
    with Folder() as folder:
        done = mperfctl(build, "stat", "-o", folder / "s", "--", "true")
        assert done.stderr == "" and "task-clock" in (folder / "s").read_text(), done.stderr
    process = subprocess.Popen([known(build), "spin", "20000"], stdout=subprocess.DEVNULL)
    try:
        begin, ran = time.monotonic_ns(), ran_ns(process.pid)
        found, _ = counts(build, "-e", "task-clock", "--pid", process.pid, "--for", "300ms")
        ran, took = ran_ns(process.pid) - ran, time.monotonic_ns() - begin
        # as much as the kernel says, but for what it ran before and after the 300 ms
        assert ran - (took - 300e6) <= found["task-clock"]["value"] <= ran, (found, ran, took)
        found, _ = counts(build, "-e", "cpu-clock", "-a", "--for", "300ms")
        harts = os.cpu_count()
        assert 0.25e9 * harts < found["cpu-clock"]["value"] < 5e9 * harts, found
    finally:
        process.kill()
        process.wait()


def test_a_command_is_counted_from_its_exec_on(build):
    """Not the fork of mperfctl before it: as many page faults as where a shell's exec is counted by perf."""
    need_program("perf")
    ours = mperfctl(build, "stat", "-x", ",", "-r", "5", "-e", "page-faults", "--", "/bin/true").stderr
    theirs = subprocess.run(["perf", "stat", "-x", ",", "-r", "5", "-e", "page-faults", "/bin/true"], text=True,
                            capture_output=True, check=True).stderr
    mine, other = (float(re.search(r"^([\d.]+),,page-faults", text, re.M)[1]) for text in (ours, theirs))
    assert abs(mine - other) <= 3, (ours, theirs)
