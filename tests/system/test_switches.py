# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts belong to who ran: two programs that share a hart, and what cuts between them.

tests/system/turns.c knows what it counted from the kernel's own accounts of the process. What mperf
charges to it comes from counters of the hart, which run on when another takes its turn. So the two
agree only where the counts are cut at each switch.
"""
import json
import os
import shutil
import sqlite3
import subprocess

from machine import (ROOT, Folder, Skip, compile_program, mperfctl, need_counting_hart, need_program,
                     need_root, rows)
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
    if switches == "bpf" and provenance["switches"] == "none":
        raise Skip("BPF is not to be had: " + bpf_finding(build)["finding"])
    assert provenance["switches"] == switches, provenance
    assert not wrong(event, told, charged), (wrong(event, told, charged), told)
    # far enough apart for a mistake to show, and often enough cut
    assert told["many"]["switches"] >= ROUNDS / 2, told
    if event == "page-faults":
        assert told["many"][event] > 10 * told["few"][event], told


def without_the_cut(build, event):
    with Folder() as folder:
        told, charged, provenance = record(build, folder, event, "none")
    assert provenance["switches"] == "none", provenance
    assert wrong(event, told, charged), (told, charged)


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
def test_without_the_cut_page_faults_go_to_the_wrong_program(build):
    without_the_cut(build, "page-faults")


@allowing()
def test_each_program_gets_its_own_instructions_and_does_not_without_the_cut(build):
    need_counting_hart(build)  # page faults show the same
    each_gets_its_own(build, "instructions", "sibling")
    each_gets_its_own(build, "instructions", "bpf")
    without_the_cut(build, "instructions")


def test_doctor_lets_both_run_and_finds_that_they_agree(build):
    need_root()
    found = bpf_finding(build)
    if "not available" in found["finding"]:
        raise Skip("BPF is not to be had: " + found["finding"])
    assert found["state"] == "ok" and "BPF says the same" in found["finding"], found


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
    assert "costs nothing here" in bpf[0]["finding"] and bpf[0]["remedy"], bpf
    program = compile_program(build, "known.c")
    with Folder() as folder:
        for switches, told in ("best", "sibling"), ("bpf", "none"):
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
