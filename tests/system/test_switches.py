# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts belong to who ran: two programs that share a hart, and what cuts between them.

tests/system/turns.c knows what it counted from the kernel's own accounts of the process. What mperf
charges to it comes from counters of the hart, which run on when another takes its turn. So the two
agree only where the counts are cut at each switch. Where switches are only counted, a program gets
what it counted between two samples without a switch: never another's counts, but not all of its own.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import (ROOT, Folder, Skip, compile_program, leave_to_plain, mperfctl, need_counting_hart,
                     need_program, need_root, rows)
from rates import allowing

# What mperf may charge a program with too much or too little: 1 % of the count; besides, for what it
# does before it has its name and after its last account, and for the switches, as mperfd(8) says.
SHARE = 0.01
BESIDES = {"page-faults": lambda told: 50, "instructions": lambda told: 500000 + 5000 * told["switches"]}
ROUNDS, STEPS = 300, 600000
# Pages in each round: the counts of the two are far apart.
PROGRAMS = {"many": (200, STEPS), "few": (10, 3 * STEPS)}


def record(build, folder, event, switches):
    """The two programs together on one hart, recorded in a group with event; what they told, what mperf
    charged them with, and the provenance."""
    need_root()
    program = compile_program(build, "turns.c")
    hart = max(os.sched_getaffinity(0))
    commands = []
    for name, (pages, steps) in PROGRAMS.items():
        shutil.copy(program, folder / name)
        commands.append(f"{folder}/{name} {hart} {pages} {steps} {ROUNDS} > {folder}/{name}.told &")
    path = folder / f"{event}-{switches}.mprf"
    mperfctl(build, "record", "-a", "-F", "99", "-o", path, "-e", f"{{cpu-clock,{event}}}", "--",
             "sh", "-c", " ".join(commands) + " wait", env={"MPERF_SWITCHES": switches})
    told = {}
    for name in PROGRAMS:
        lines = (folder / f"{name}.told").read_text().split("\n")
        told[name] = {key: int(value) for key, _, value in
                      (line.partition(" ") for line in lines if line)}
    with sqlite3.connect(f"file:{path}?immutable=1&mode=ro", uri=True) as db:
        charged = {name: db.execute(
            "SELECT COALESCE(SUM(reading.value), 0) FROM reading JOIN sample ON sample.id = "
            "reading.sample JOIN event ON event.id = reading.event JOIN task ON task.id = "
            "sample.task WHERE event.name = ? AND task.comm = ?", (event, name)).fetchone()[0]
            for name in PROGRAMS}
    provenance = rows(build, "hotspots", "-i", path)["provenance"]
    assert not provenance["lost"].get("ring overrun"), provenance
    return told, charged, provenance


def wrong(event, told, charged):
    """What was charged and should not have been, as sentences."""
    found = []
    for name in PROGRAMS:
        own, got = told[name][event], charged[name]
        allowed = SHARE * own + BESIDES[event](told[name])
        if abs(got - own) > allowed:
            found.append(f"{name}: {got} {event} charged, {own} its own, {allowed:.0f} allowed")
    return found


def each_gets_its_own(build, event, switches):
    with Folder() as folder:
        told, charged, provenance = record(build, folder, event, switches)
    if switches in ("bpf", "sums") and provenance["switches"] == "counted":
        raise Skip("BPF is not to be had: " + bpf_finding(build)["finding"])
    assert provenance["switches"] == ("bpf" if switches == "sums" else switches), provenance
    assert not wrong(event, told, charged), (wrong(event, told, charged), told)
    # far enough apart for a mistake to show, and often enough cut
    assert told["many"]["switches"] >= ROUNDS / 2, told
    if event == "page-faults":
        assert told["many"][event] > 10 * told["few"][event], told


def without_the_cut(build, event):
    """Nobody gets another's counts, and the answer says that not all were charged."""
    with Folder() as folder:
        told, charged, provenance = record(build, folder, event, "none")
    assert provenance["switches"] == "counted", provenance
    assert any("counts cover" in note for note in provenance["notes"]), provenance
    for name in PROGRAMS:
        own = told[name][event]
        assert charged[name] <= (1 + SHARE) * own + BESIDES[event](told[name]), (told, charged)
    # "many" takes a few ms for a turn: most of its samples come after a switch
    assert charged["many"] < 0.9 * told["many"][event], (told, charged)


def bpf_finding(build, **options):
    found = [r for r in rows(build, "doctor", check=False, **options)["rows"] if r["topic"] == "bpf"]
    assert len(found) == 1, found
    return found[0]


@allowing()
def test_each_program_gets_its_own_page_faults_by_the_sibling(build):
    each_gets_its_own(build, "page-faults", "sibling")


@allowing()
def test_each_program_gets_its_own_page_faults_by_bpf(build):
    each_gets_its_own(build, "page-faults", "bpf")


@allowing()
def test_each_program_gets_its_own_page_faults_by_sums(build):
    each_gets_its_own(build, "page-faults", "sums")


@allowing()
def test_without_the_cut_nobody_gets_page_faults_of_the_other(build):
    without_the_cut(build, "page-faults")


HZ = 99
TURNS_MS = 2, 20, 100
UNEVEN_MS = 19  # two turns and 2.4 ms are four periods, so samples come everywhere in a turn
RELAY_MS = 1500  # of each program
# Switches for each turn at which the hart had others to run too, much or too much for anything to be
# seen, and tries to find it with less to do.
DISTURBED, OVERRUN, TRIES = 2.5, 6, 4


# Why not with sanitizers too: others of these tests take the same ways with them.
RATES_ALONE = "rates are of the programs, and all else runs alone meanwhile"


def relay(build, folder, switches, turn_ms, how):
    """Two programs that take turns of turn_ms. {program: what it told and what was recorded of it}."""
    program = compile_program(build, "relay.c")
    hart = max(os.sched_getaffinity(0))
    path = folder / f"{switches}-{turn_ms}-{how}.mprf"
    turns = RELAY_MS // turn_ms
    told = mperfctl(build, "record", "-a", "-F", HZ, "-o", path, "-e", "{cpu-clock,page-faults}", "--",
                    "sh", "-c", f"{program} {hart} {turn_ms * 1000} {turns} {how} > {folder}/told",
                    env={"MPERF_SWITCHES": switches})
    assert told.returncode == 0, told
    found = {}
    with sqlite3.connect(f"file:{path}?immutable=1&mode=ro", uri=True) as db:
        for line in (folder / "told").read_text().splitlines():
            name, faults, ran_ns, switched = line.split()
            samples, uncounted = db.execute(
                "SELECT total(count), total(uncounted) FROM sample JOIN task ON task.id = sample.task "
                "WHERE comm = ?", (name,)).fetchone()
            value, enabled_ns = db.execute(
                "SELECT total(value), total(enabled_ns) FROM reading JOIN event ON event.id = "
                "reading.event JOIN sample ON sample.id = reading.sample JOIN task ON task.id = "
                "sample.task WHERE name = 'page-faults' AND comm = ?", (name,)).fetchone()
            truth = int(faults) / int(ran_ns)
            found[name] = {"share": 1 - uncounted / max(samples, 1), "samples": samples,
                           "value": value, "own": int(faults), "switches": int(switched),
                           "truth": truth, "rate": value / enabled_ns if enabled_ns else None}
    say(turn_ms, how, switches, found)
    by_process = rows(build, "hotspots", "-i", path, "--event", "page-faults", "--by", "process")
    by_function = rows(build, "hotspots", "-i", path, "--event", "page-faults", "--comm", "many")["rows"]
    return found, by_process, {row["function"]: row for row in by_function}


def is_disturbed(found, turn_ms, limit=DISTURBED):
    return any(p["switches"] > limit * RELAY_MS / turn_ms for p in found.values())


def relay_alone(build, folder, switches, turn_ms, how):
    """The same where others had little of the hart."""
    for _ in range(TRIES):
        done = relay(build, folder, switches, turn_ms, how)
        if not is_disturbed(done[0], turn_ms, OVERRUN):
            return done
    raise Skip("others keep the hart busy")


def off(program):
    return program["rate"] / program["truth"] - 1


def say(turn_ms, how, switches, found):
    for name, p in found.items():
        rate = f"rate {100 * off(p):+.1f} %" if p["rate"] else "no rate"
        print(f"    turns of {turn_ms} ms, {how}, {switches}: {name} {p['switches']} switches, "
              f"{100 * p['share']:.0f} % of {p['samples']:.0f} samples counted, {rate}")


@allowing()
def test_rates_hold_where_a_program_counts_evenly_at_any_rate_of_switches(build):
    """A sample has counts where no switch came since the one before: none in turns shorter than a
    sample's period, most in long ones. What was counted is the program's own, at its own rate."""
    need_root()
    leave_to_plain(build, RATES_ALONE)
    with Folder() as folder:
        for turn_ms in TURNS_MS:
            cut, answer, _ = relay(build, folder, "sibling", turn_ms, "even")
            assert answer["provenance"]["switches"] == "sibling", answer
            assert not any("counted" in row for row in answer["rows"]), answer["rows"][0]
            for name, p in cut.items():
                assert p["share"] == 1 and abs(off(p)) < 0.1, (turn_ms, name, p)

            found, answer, _ = relay(build, folder, "none", turn_ms, "even")
            assert answer["provenance"]["switches"] == "counted", answer
            shown = {row["comm"]: row for row in answer["rows"]}
            for name, p in found.items():
                assert p["value"] <= 1.01 * p["own"] + 50, (turn_ms, name, p)
                expected = max(0, 1 - 1000 / HZ / turn_ms)
                assert p["share"] < expected + 0.15, (turn_ms, name, p)
                if not is_disturbed(found, turn_ms):
                    assert p["share"] > expected - 0.25, (turn_ms, name, p)
                if p["share"] * p["samples"] >= 30:
                    assert abs(off(p)) < 0.15, (turn_ms, name, p)
                    assert abs(shown[name]["counted"] - p["share"]) < 0.001, (shown[name], p)


@allowing()
def test_rates_hold_where_counts_are_summed_up(build):
    """Each sample has what its task counted, whenever it did, and the samples stand for the time that
    the tasks ran."""
    need_root()
    leave_to_plain(build, RATES_ALONE)
    if "not available" in bpf_finding(build)["finding"]:
        raise Skip("BPF is not to be had")
    with Folder() as folder:
        for turn_ms, how in (2, "even"), (20, "first"):
            found, answer, _ = relay(build, folder, "sums", turn_ms, how)
            assert answer["provenance"]["switches"] == "bpf", answer
            for name, p in found.items():
                assert p["share"] == 1 and abs(off(p)) < 0.1, (turn_ms, name, p)
                assert p["value"] > 0.9 * p["own"], (turn_ms, name, p)
            lost = answer["provenance"]["lost"]
            assert not lost.get("late record"), lost


@allowing()
def test_what_comes_after_a_switch_is_missed_and_its_rows_say_so(build):
    """All page faults come in the first quarter of a turn of nearly two periods: counts that are not cut
    see half of them, and the rows of the functions that make them say that they have hardly any.

    Nearly: where two turns are a multiple of the period, samples come at the same few places of a turn, and
    what they see is between 34 and 58 % less."""
    need_root()
    leave_to_plain(build, RATES_ALONE)
    with Folder() as folder:
        cut, _, functions = relay(build, folder, "sibling", UNEVEN_MS, "first")
        assert abs(off(cut["many"])) < 0.1 and "counted" not in functions["run_loop"], cut
        found, _, functions = relay_alone(build, folder, "none", UNEVEN_MS, "first")
        assert off(found["many"]) < -0.3, found
        assert abs(off(found["few"])) < 0.15, found
        touching = [row for name, row in functions.items() if name != "run_loop" and row["samples"]]
        samples = sum(row["samples"] for row in touching)
        counted = sum(row["counted"] * row["samples"] for row in touching)
        print(f"    functions that fault: {100 * counted / max(samples, 1):.0f} % of {samples} samples "
              f"counted; run_loop: {100 * functions['run_loop']['counted']:.0f} %")
        assert samples >= 10 and counted / samples < 0.6 * functions["run_loop"]["counted"], functions


@allowing()
def test_each_program_gets_its_own_instructions_and_does_not_without_the_cut(build):
    need_counting_hart(build)  # page faults show the same
    each_gets_its_own(build, "instructions", "sibling")
    each_gets_its_own(build, "instructions", "bpf")
    each_gets_its_own(build, "instructions", "sums")
    without_the_cut(build, "instructions")


def test_doctor_lets_both_run_and_finds_that_they_agree(build):
    need_root()
    found = bpf_finding(build)
    if "not available" in found["finding"]:
        raise Skip("BPF is not to be had: " + found["finding"])
    assert found["state"] == "ok" and "BPF agrees" in found["finding"], found


def test_a_kernel_that_does_not_describe_its_types_is_read_all_the_same(build):
    need_root()
    need_program("unshare")
    found = bpf_finding(build)
    if found["state"] != "ok":
        raise Skip("BPF is not to be had: " + found["finding"])
    program = compile_program(build, "known.c")
    with Folder() as folder:
        path = folder / "plain.mprf"
        hidden = ("mount --bind /dev/null /sys/kernel/btf/vmlinux && exec \"$@\"")
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", hidden, "sh", build / "mperfctl", "record", "-a", "-e",
             "{cpu-clock,page-faults}", "-o", path, "--", program, "pages", "2000", "200"], text=True,
            capture_output=True, timeout=120, env=dict(os.environ, MPERF_SWITCHES="bpf"))
        if "mount:" in done.stderr:
            raise Skip("the kernel describes no types, or they cannot be hidden: " + done.stderr)
        assert done.returncode == 0, done.stderr
        assert rows(build, "hotspots", "-i", path)["provenance"]["switches"] == "bpf"


def test_without_the_right_to_bpf_all_goes_on_and_doctor_says_so(build):
    need_root()
    need_program("setpriv")
    # Not CAP_SYS_ADMIN either, which would stand in for it.
    without = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-all"]
    def run(*arguments, **environment):
        done = subprocess.run([*without, build / "mperfctl", *map(str, arguments)], text=True,
                              capture_output=True, timeout=120,
                              env=dict(os.environ, NO_COLOR="1", **environment))
        assert "Sanitizer" not in done.stderr, done.stderr
        return done
    said = json.loads(run("doctor", "--json").stdout)["rows"]
    bpf = [r for r in said if r["topic"] == "bpf"]
    assert len(bpf) == 1 and bpf[0]["state"] == "info", bpf
    assert "cuts counts at switches, but --event waiting" in bpf[0]["finding"] and bpf[0]["remedy"], bpf
    program = compile_program(build, "known.c")
    with Folder() as folder:
        for switches, told in ("best", "sibling"), ("bpf", "counted"):
            path = folder / f"{switches}.mprf"
            done = run("record", "-a", "-e", "{cpu-clock,page-faults}", "-o", path, "--", program,
                       "pages", 2000, 200, MPERF_SWITCHES=switches)
            assert done.returncode == 0, done.stderr
            assert rows(build, "hotspots", "-i", path)["provenance"]["switches"] == told


def test_answers_say_what_cut_their_counts_where_there_are_any(build):
    need_root()
    program = compile_program(build, "known.c")
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "group", "-e", "{cpu-clock,page-faults}", "--",
                 program, "spin", 200)
        mperfctl(build, "record", "-o", folder / "alone", "-e", "cpu-clock", "--", program, "spin",
                 200)
        assert "switches: sibling" in mperfctl(build, "hotspots", "-i", folder / "group").stdout
        assert "switches:" not in mperfctl(build, "hotspots", "-i", folder / "alone").stdout
        assert rows(build, "hotspots", "-i", folder / "alone")["provenance"]["switches"] is None


def test_an_unknown_way_is_refused(build):
    for text in "both", "BPF", "":
        done = subprocess.run([build / "mperfd", "--foreground"], text=True, capture_output=True,
                              timeout=60, env=dict(os.environ, MPERF_SWITCHES=text))
        assert done.returncode == 2 and "MPERF_SWITCHES" in done.stderr, done


def test_without_bpf_nothing_of_it_is_built(build):
    if subprocess.run(["pkg-config", "--exists", "libbpf"]).returncode != 0:
        raise Skip("libbpf-dev is not installed")
    said = {how: subprocess.run(["make", "-n", f"BUILD={build}/none", f"BPF={how}", "all"], cwd=ROOT,
                                text=True, capture_output=True, check=True).stdout
            for how in ("yes", "no")}
    for word in "-target bpf", "gen skeleton", "-DMPERF_BPF", "-lbpf", "switch_bpf.o":
        assert word in said["yes"] and word not in said["no"], word


def memory_kb(build, folder, switches):
    """Of a private daemon that cuts counts so: the most that it had, what it had last, and how it cut."""
    path, last = folder / f"{switches}.mprf", None
    command = [build / "mperfctl", "record", "-a", "-F", "99", "-o", path, "-e",
               "{cpu-clock,page-faults}", "--", "sleep", "2"]
    environment = {**os.environ, "MPERF_SWITCHES": switches}
    environment.pop("MPERF_SOCKET", None)
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as client:
        while client.poll() is None:
            for pid in children(client.pid):
                last = daemon_memory_kb(pid) or last
            time.sleep(0.02)
    assert client.returncode == 0
    assert last
    return *last, rows(build, "hotspots", "-i", path)["provenance"]["switches"]


def children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def daemon_memory_kb(pid):
    """The most and the present; None of other programs, and of one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [re.search(rf"^{key}:\s+(\d+)", status, re.M) for key in ("VmHWM", "VmRSS")]
    return [int(f[1]) for f in found] if all(found) and status.startswith("Name:\tmperfd\n") else None


def test_the_daemon_takes_no_memory_to_load_the_programs(build):
    """libbpf reads all types of the kernel, some 9 MB that are free again afterwards: in a child."""
    leave_to_plain(build, "memory of sanitizers is their own")
    need_root()
    with Folder() as folder:
        for switches in "bpf", "sums":
            most, last, is_cut = memory_kb(build, folder, switches)
            if is_cut != "bpf":
                raise Skip("BPF is not to be had: " + bpf_finding(build)["finding"])
            print(f"    {switches}: {most} KB at most, {last} at last")
            assert most < last + 5000, (switches, most, last)
