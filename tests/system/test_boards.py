# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RISC-V boards that nobody has at hand: a real kernel, firmware and PMU driver below our programs.

Each test is one configuration of QEMU and what must come out of it. With icount=1 a hart takes 2 ns
for each instruction whatever the host does, so that cycles come at 1 GHz and IPC is 0.5 everywhere.
There is one such clock for all harts, so what must be exact runs on one of them.
"""
import functools
import json
import subprocess
import sys

from machine import ROOT, Skip, need_program

sys.path.insert(0, str(ROOT / "tests" / "boards"))
from guest import Guest, cross_build  # noqa: E402
from system import System  # noqa: E402

U74 = "mvendorid=0x489,marchid=0x8000000000000007,mimpid=0x4210427"
X60 = "mvendorid=0x710,marchid=0x8000000058000001,mimpid=0x1000000049772200,v=true,vlen=256"
# These say something of a stack or of throttled time; no sample is missing from the figures.
NO_SAMPLE_LOST = {"truncated stack", "throttled", "late record"}


def on_a_board(test):
    """The programs of a board are built once, without sanitizers."""
    @functools.wraps(test)
    def run(build):
        if build.name == "asan":
            raise Skip("shown by the plain run; boards get programs without sanitizers")
        test(build)
    return run


def answer(section):
    """The JSON that a command of mperfctl printed; stat leaves standard output to its program."""
    assert section.status == 0, section
    return json.loads(section.text.strip() or section.errors)


def functions(said):
    """{function: its row} of a hotspots answer."""
    return {row["function"]: row for row in said["rows"]}


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


@on_a_board
def test_both_compilers_build_for_another_architecture(build):
    for compiler in "clang", "gcc":
        if compiler == "gcc":
            need_program("riscv64-linux-gnu-gcc")
        programs = cross_build(build, "riscv64", compiler)
        for name in "mperfd", "mperf-namer", "mperfctl":
            said = subprocess.run(["readelf", "-h", programs / name], text=True, check=True,
                                  capture_output=True).stdout
            assert "RISC-V" in said, said


@on_a_board
def test_u74_that_cannot_interrupt_has_its_ipc_by_function(build):
    said = Guest(build, cpu=f"rv64,sscofpmf=false,{U74}", harts=1).run("""
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 999 --json -- board spin 2000""")
    refused_rung(said["doctor"], "cannot interrupt on overflow")
    hotspots = sampled(said["hotspots"], "c")
    for row in hotspots["rows"]:
        assert not row["cycles"] or abs(row["ipc"] - 0.5) < 0.01, row
    loop = functions(hotspots)["loop_of_four"]
    assert loop["self"] > 0.95 and loop["instructions"] > 0.95e9, loop
    # 999 a second for the 2 s that the program ran; ticks that fall into one long stretch without
    # interrupts are one.
    assert 1960 <= hotspots["provenance"]["samples"] <= 2020, hotspots["provenance"]
    assert hotspots["provenance"]["hz"] == 999, hotspots["provenance"]


@on_a_board
def test_cycles_lead_where_overflow_interrupts(build):
    """As on a C910. QEMU's overflow interrupts and icount do not go together on two harts."""
    said = Guest(build, cpu="rv64,sscofpmf=true", icount=None).run("""
        section hotspots mperfctl hotspots -F 499 --json -- board spin 2000""")
    hotspots = sampled(said["hotspots"], "a")
    assert hotspots["provenance"]["event"] == "cycles", hotspots["provenance"]
    loop = functions(hotspots)["loop_of_four"]
    assert loop["samples"] >= 30 and loop["self"] > 0.5, loop
    assert abs(loop["ipc"] - 1) < 0.05 and loop["instructions"] > 1e6, loop


@on_a_board
def test_instructions_are_exact_on_one_hart(build):
    """A turn of the loop is four instructions, and fast() makes a tenth of the turns of slow()."""
    said = Guest(build, cpu="rv64,sscofpmf=true", harts=1).run("""
        section one mperfctl stat --json -e instructions:u -- board loop 1000000
        section two mperfctl stat --json -e instructions:u -- board loop 2000000
        section hotspots mperfctl hotspots -F 999 --json -- board two 10000000""")
    once, twice = count_of(said["one"]), count_of(said["two"])
    assert abs(twice - once - 4_000_000) <= 64, (once, twice)
    found = functions(sampled(said["hotspots"], "a"))
    # The kernel's own instructions at each tick and sample are among them: some percent.
    for name, truth in ("fast", 40e6), ("slow", 400e6):
        counted = found[name]["instructions"]
        assert truth * 0.95 < counted < truth * 1.05, (name, truth, found[name])


def x60(build, *more):
    """An X60 by its device tree: the fixed counters of cycles and instructions cannot interrupt."""
    need_program("fdtput")
    board = Guest(build, cpu=f"rv64,sscofpmf=true,{X60}", harts=1)
    board.dtb = board.device_tree("x60")
    fixed = ["riscv,event-to-mhpmcounters", "1", "1", "1", "2", "2", "4",
             "10019", "1001b", "7fff8", "10021", "10021", "7fff8"]
    for cells in fixed, *more:
        subprocess.run(["fdtput", "-t", "x", board.dtb, "/pmu", *cells], check=True)
    return board


@on_a_board
def test_sampling_that_opens_and_never_fires_is_noticed(build):
    said = x60(build).run("""
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000
        section asked mperfctl hotspots -e cycles --json -- board spin 500""")
    refused_rung(said["doctor"], "never interrupts")
    hotspots = sampled(said["hotspots"], "c")
    loop = functions(hotspots)["loop_of_four"]
    assert loop["samples"] >= 300 and loop["cycles"] and loop["instructions"], loop
    # The board is as it is meant to be: cycles that were asked for open, and bring nothing.
    assert answer(said["asked"])["provenance"]["samples"] == 0, said["asked"]


@on_a_board
def test_x60_samples_by_a_raw_event_alone(build):
    """Raw event 1 is the one that interrupts there; it stands for u_mode_cycle."""
    board = x60(build, ["riscv,raw-event-to-mhpmcounters", "0", "1", "ffffffff", "ffffffff",
                        "7fff8"])
    said = board.run("""
        section identity cat /proc/cpuinfo
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000
        section raw mperfctl hotspots -F 499 -e r1 --json -- board spin 1000""")
    assert "0x8000000058000001" in said["identity"].text, said["identity"]
    refused_rung(said["doctor"], "never interrupts")
    sampled(said["hotspots"], "c")
    raw = sampled(said["raw"], "e")
    assert raw["provenance"]["samples"] >= 300, raw["provenance"]
    assert functions(raw)["loop_of_four"]["self"] > 0.95, raw["rows"]


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


@on_a_board
def test_an_unknown_identity_gets_what_its_kernel_offers(build):
    said = Guest(build, cpu="rv64,sscofpmf=true,mvendorid=0x7ff,marchid=0x8000000000000abc,"
                            "mimpid=0x1", harts=1).run("""
        section identity cat /proc/cpuinfo
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000""")
    assert "0x8000000000000abc" in said["identity"].text, said["identity"]
    answer(said["doctor"])
    loop = functions(sampled(said["hotspots"], "a"))["loop_of_four"]
    assert loop["samples"] >= 300 and loop["instructions"], loop


@on_a_board
def test_without_bpf_all_but_bpf_works(build):
    """The system call answers ENOSYS, as on a kernel that was built without it."""
    said = Guest(build, cpu=f"rv64,sscofpmf=false,{U74}").run("""
        section doctor board nobpf mperfctl doctor --json
        section hotspots board nobpf mperfctl hotspots -F 499 --json -- board spin 500""")
    found = [row for row in answer(said["doctor"])["rows"] if row["topic"] == "bpf"]
    assert [row["state"] for row in found] == ["info"] and found[0]["remedy"], found
    loop = functions(sampled(said["hotspots"], "c"))["loop_of_four"]
    assert abs(loop["ipc"] - 0.5) < 0.01 and loop["samples"] > 200, loop
