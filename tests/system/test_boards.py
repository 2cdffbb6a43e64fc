# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RISC-V boards that nobody has at hand: a real kernel, firmware and PMU driver below our programs.

A test says what must come out of a configuration of QEMU; tests of one configuration share its boot. With icount=1 a hart takes 2 ns
for each instruction whatever the host does, so that cycles come at 1 GHz and IPC is 0.5 everywhere.
There is one such clock for all harts, so what must be exact runs on one of them.
"""
import functools
import json
import os
import re
import subprocess
import sys

from machine import ROOT, Skip, leave_to_plain, need_program
from package import ELF_MACHINE, elf, is_right
from test_depth import boards_script, boards_stacks_are

sys.path.insert(0, str(ROOT / "tests" / "boards"))
from guest import DEB_SECONDS, Guest, compile_counted, need_what_makes_boards, package  # noqa: E402
from system import System, WithDisc  # noqa: E402

FILLS = "a board with icount has a clock of its own, and another is a test that runs by itself"
SECONDS = 600  # it gives way to all others, so it begins first

U74 = "mvendorid=0x489,marchid=0x8000000000000007,mimpid=0x4210427"
X60 = "mvendorid=0x710,marchid=0x8000000058000001,mimpid=0x1000000049772200,v=true,vlen=256"
# These say something of a stack, a switch or of throttled time; no sample is missing from the figures.
NO_SAMPLE_LOST = {"truncated stack", "not unwound", "stack deeper than its copy", "throttled", "late record",
                  "switch without counts", "busy second with few samples"}



def on_a_board(test):
    """The programs of a board are built once, without sanitizers."""
    @functools.wraps(test)
    def run(build):
        leave_to_plain(build, "boards get programs without sanitizers")
        if os.environ.get("MPERF_BOARDS") == "0":
            raise Skip("left out, as MPERF_BOARDS=0 asks for")
        need_what_makes_boards()
        test(build)
    return run


def booted_once(boot):
    """boot(build) runs once in a process, for all tests that look at what the board said; so does its error."""
    @functools.cache
    def attempt(build):
        try:
            return boot(build), None
        except Exception as error:
            return None, error

    @functools.wraps(boot)
    def said(build):
        found, error = attempt(build)
        if error:
            raise error
        return found
    return said


def answer(section):
    """The JSON that a command of mperfctl printed; stat leaves standard output to its program."""
    assert section.status == 0, section
    return json.loads(section.text.strip() or section.errors)


def functions(said, wanted="loop_of_four"):
    """{function: its row} of a hotspots answer, which has the one that is wanted."""
    found = {row["function"]: row for row in said["rows"]}
    assert wanted in found, said
    return found


def sampled(section, rung):
    """A hotspots answer by that rung, of which no sample was lost."""
    said = answer(section)
    assert said["provenance"]["rung"].startswith(rung + ":"), said["provenance"]
    assert set(said["provenance"]["lost"]) <= NO_SAMPLE_LOST, said["provenance"]
    return said


def count_of(section):
    """What stat counted of its one event, never scaled."""
    row = answer(section)["rows"][0]
    assert row["value"] and row["running_share"] == 1.0, row
    return row["value"]


def refused_rung(section, words):
    """The doctor says why hardware cycles do not lead."""
    found = [row["finding"] for row in answer(section)["rows"] if row["topic"] == "sampling"]
    assert any("rung a not taken" in f and words in f for f in found), found


def are_built_for(build, arch):
    """The package with gcc, for what a Debian 13 there has; and all of it with clang too, which is what
    make CROSS takes: it is looked at and linked, and need not be fast."""
    is_right(package(build, arch).parent, arch, build / "boards" / f"{arch}.dpkg")
    done = subprocess.run(["make", "-j2", f"BUILD={build}/clang", f"SYSROOTS={build}/boards", f"CROSS={arch}",
                           "CFLAGS=-O0", "WERROR=-Werror"], cwd=ROOT, text=True, capture_output=True,
                          timeout=DEB_SECONDS)
    assert done.returncode == 0, f"make CROSS={arch}:\n{done.stdout[-1000:]}{done.stderr[-3000:]}"
    for name in "mperfd", "mperf-namer", "mperfctl", "mperf-platform-check":
        assert elf(build / "clang" / arch / name)[0] == ELF_MACHINE[arch], name


@on_a_board
def test_programs_and_package_are_built_for_another_architecture(build):
    are_built_for(build, "riscv64")


@booted_once
def u74(build):
    """Without BPF the system call answers ENOSYS, as on a kernel that was built without it."""
    return Guest(build, cpu=f"rv64,sscofpmf=false,{U74}", harts=1).run_each(
        ipc="""
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 999 -g fp --json -- board spin 2000""",
        no_bpf="""
        section doctor board nobpf mperfctl doctor --json
        section hotspots board nobpf mperfctl hotspots -F 499 --json -- board spin 500""")


@on_a_board
def test_u74_that_cannot_interrupt_has_its_ipc_by_function(build):
    said = u74(build)["ipc"]
    refused_rung(said["doctor"], "counters have no overflow interrupt")
    hotspots = sampled(said["hotspots"], "c")
    for row in hotspots["rows"]:
        assert not row["cycles"] or abs(row["ipc"] - 0.5) < 0.01, row
    loop = functions(hotspots)["loop_of_four"]
    assert loop["self"] > 0.95 and loop["instructions"] > 0.95e9, loop
    # 999 a second for the 2 s that the program ran; ticks that fall into one long stretch without
    # interrupts are one.
    assert 1900 <= hotspots["provenance"]["samples"] <= 2060, hotspots["provenance"]
    assert hotspots["provenance"]["hz"] == 999, hotspots["provenance"]


@on_a_board
def test_without_bpf_all_but_bpf_works(build):
    said = u74(build)["no_bpf"]
    found = [row for row in answer(said["doctor"])["rows"] if row["topic"] == "bpf"]
    assert [row["state"] for row in found] == ["info"] and found[0]["remedy"], found
    loop = functions(sampled(said["hotspots"], "c"))["loop_of_four"]
    assert abs(loop["ipc"] - 0.5) < 0.01 and loop["samples"] > 200, loop


EXACT = """
    section one mperfctl stat --json -e instructions:u -- board loop 1000000
    section two mperfctl stat --json -e instructions:u -- board loop 2000000
    section hotspots mperfctl hotspots -F 999 --json -- board two 10000000
"""


def counts_exactly(said):
    """A turn of the loop is four instructions, and fast() makes a tenth of the turns of slow()."""
    once, twice = count_of(said["one"]), count_of(said["two"])
    # What start-up takes differs by some hundreds, as addresses are random.
    assert abs(twice - once - 4_000_000) <= 2000, (once, twice)
    found = functions(sampled(said["hotspots"], "a"), "slow")
    # The kernel's own instructions at each tick and sample are among them: some percent.
    for name, truth in ("fast", 40e6), ("slow", 400e6):
        counted = found[name]["instructions"]
        assert truth * 0.95 < counted < truth * 1.05, (name, truth, found[name])


def regions_have_counters(section):
    """Hardware's counters are given and read; their PMU knows no such caches, of which nothing is
    said. QEMU counts an event by one counter at a time, and the one of instructions is what samples
    have, so how many there were is not asked."""
    row, = [r for r in answer(section)["rows"] if r["region"] == "solve"]
    assert row["entries"] == 60 and row["time_ns"] >= 60 * 8_000_000, row
    assert 0 < row["granted_ns"] <= row["time_ns"] and row["event_instructions"] is not None, row
    assert not [name for name in row if "misses" in name], row


# A program reads a counter by itself, as the runtime does, and the runtime maps those it was granted.
DIRECT = """
    sysctl -w kernel.perf_user_access=1 >/dev/null 2>&1
    section direct direct
    sysctl -w kernel.perf_user_access=0 >/dev/null 2>&1
    section forbidden direct
    sysctl -w kernel.perf_user_access=1 >/dev/null 2>&1
    mkdir -p /etc/mperf /var/lib/mperf
    mount -t tmpfs store /var/lib/mperf
    printf '[sampling]\\noverhead = none\\n[store]\\nmin-free = 0\\n[feed]\\nregion-events = instructions\\n' >/etc/mperf/mperf.conf
    mperfd --foreground >/tmp/log 2>&1 &
    until mperfctl status >/dev/null 2>&1; do sleep 0.02; done
    MPERF_PERIOD=100 regions 100 &
    pid=$!
    until grep -q perf_event /proc/$pid/maps; do
        [ -d /proc/$pid ] || break
        sleep 0.1
    done
    section mapped grep perf_event /proc/$pid/maps
    wait $pid
    sleep 1
    section regions mperfctl roofline --by region --json --pid $pid
    section log cat /tmp/log
"""


def counters_are_read_directly(said, counts):
    """Both ways count the turns; the second also what the first read took, some hundred
    instructions. Where it is forbidden, it is by read(2) alone. counts: the event of regions counts
    beside samples, too."""
    words = dict(line.split(" ", 1) for line in said["direct"].text.splitlines())
    assert abs(int(words["call"]) - 4_000_000) < 2000, said["direct"]
    assert abs(int(words["direct"]) - 4_000_000) < 300, said["direct"]
    assert "not allowed" in said["forbidden"].text, said["forbidden"]
    assert "perf_event" in said["mapped"].text, (said["mapped"], said["log"])
    row, = [r for r in answer(said["regions"])["rows"] if r["region"] == "solve"]
    assert row["entries"] == 100 and row["granted_ns"] > 0, row
    if not counts:
        return
    counted = row["event_instructions"] / (row["granted_ns"] / row["time_ns"] * row["entries"])
    assert 3_900_000 < counted < 4_100_000, row


@booted_once
def unknown(build):
    """A board that mperf has never heard of, and whose cycles interrupt."""
    return Guest(build, cpu="rv64,sscofpmf=true,mvendorid=0x7ff,marchid=0x8000000000000abc,mimpid=0x1", harts=1,
                 sources=("board.c", "regions.c", "direct.c", "depth.c")).run_each(
        depths=boards_script(),
        offered="""
        section identity cat /proc/cpuinfo
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000""",
        exact=EXACT + """
        section regions mperfctl roofline --by region --json -- regions 60""",
        direct=DIRECT)  # its service runs on


@on_a_board
def test_stacks_of_known_depth_are_complete_or_cut_where_they_must_be(build):
    boards_stacks_are(unknown(build)["depths"], "riscv64")


@on_a_board
def test_an_unknown_identity_gets_what_its_kernel_offers(build):
    said = unknown(build)["offered"]
    assert "0x8000000000000abc" in said["identity"].text, said["identity"]
    answer(said["doctor"])
    loop = functions(sampled(said["hotspots"], "a"))["loop_of_four"]
    assert loop["samples"] >= 200 and loop["instructions"], loop


@on_a_board
def test_instructions_are_exact_on_one_hart(build):
    said = unknown(build)["exact"]
    counts_exactly(said)
    regions_have_counters(said["regions"])


@on_a_board
def test_programs_read_their_counters_without_system_calls(build):
    # Samples have QEMU's one counter of instructions.
    counters_are_read_directly(unknown(build)["direct"], counts=False)


def x60(build, *more):
    """An X60 by its device tree: the fixed counters of cycles and instructions cannot interrupt."""
    need_program("fdtput")
    board = Guest(build, cpu=f"rv64,sscofpmf=true,{X60}", harts=1)
    tree = board.own_device_tree()
    fixed = ["riscv,event-to-mhpmcounters", "1", "1", "1", "2", "2", "4",
             "10019", "1001b", "7fff8", "10021", "10021", "7fff8"]
    for cells in fixed, *more:
        subprocess.run(["fdtput", "-t", "x", tree, "/pmu", *cells], check=True)
    return board


# A program that counts itself streams to the service, is asked about, and goes when it is told to.
COUNTED = """
    mkdir -p /etc/mperf /var/lib/mperf
    mount -t tmpfs store /var/lib/mperf
    printf '[sampling]\\noverhead = none\\n[store]\\nmin-free = 0\\n' >/etc/mperf/mperf.conf
    mperfd --foreground >/tmp/log 2>&1 &
    until mperfctl status >/dev/null 2>&1; do sleep 0.02; done
    mkfifo /tmp/in
    clocked 5 </tmp/in >/tmp/own &
    pid=$!
    exec 3>/tmp/in
    until [ -s /tmp/own ]; do sleep 0.1; done
    section own cat /tmp/own
    section regions mperfctl roofline --by region --json --pid $pid
    sleep 3  # for names
    section loops mperfctl roofline --json --pid $pid
    section log cat /tmp/log
    exec 3>&-
"""


def counted_itself(said):
    """Regions of clocked.c, vectorised for RVV: as many operations as it says itself, its own clock's
    rates, and loops that were sampled too."""
    own = {name: list(map(float, values)) for name, *values in
           map(str.split, said["own"].text.splitlines())}
    assert set(own) == {"triad", "stencil", "product"}, (said["own"], said["log"])
    told = {row["region"]: row for row in answer(said["regions"])["rows"]}
    for name, (seconds, flops, _) in own.items():
        row = told[name]
        assert row["fp32_ops"] + row["fp64_ops"] == flops, (name, row)
        assert abs(row["gops"] / (flops / seconds / 1e9) - 1) < 0.03, (name, seconds, row)
    sampled_loops = [row for row in answer(said["loops"])["rows"] if row["ipc"]]
    assert sampled_loops, answer(said["loops"])["rows"]
    # A hart takes 2 ns for each instruction, and cycles come at 1 GHz.
    assert all(abs(row["ipc"] - 0.5) < 0.01 for row in sampled_loops), sampled_loops


@on_a_board
def test_sampling_that_opens_and_never_fires_is_noticed(build):
    """And a program that counts itself, with vectors of 256 bits."""
    board = x60(build)
    board.files["usr/local/bin/clocked*"] = compile_counted(
        build, "riscv64", "clocked.c", "-march=rv64gcv").read_bytes()
    said = board.run("""
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000
        section asked mperfctl hotspots -e cycles --json -- board spin 500""" + COUNTED)
    refused_rung(said["doctor"], "never interrupts")
    hotspots = sampled(said["hotspots"], "c")
    loop = functions(hotspots)["loop_of_four"]
    assert loop["samples"] >= 300 and loop["cycles"] and loop["instructions"], loop
    # The board is as it is meant to be: cycles that were asked for open, and bring nothing.
    assert answer(said["asked"])["provenance"]["samples"] == 0, said["asked"]
    counted_itself(said)


@on_a_board
def test_a_t_head_identity_whose_overflow_is_its_own(build):
    """QEMU has the C906's identity and not its overflow registers: cycles open and never fire."""
    said = Guest(build, cpu="thead-c906").run("""
        section identity cat /proc/cpuinfo
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000""")
    assert said["identity"].text.count("0x5b7") == 2, said["identity"]
    refused_rung(said["doctor"], "never interrupts")
    loop = functions(sampled(said["hotspots"], "c"))["loop_of_four"]
    assert loop["samples"] >= 300 and loop["cycles"] and loop["instructions"], loop
