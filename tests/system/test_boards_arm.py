# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arm boards, as test_boards.py has RISC-V ones: identity, counting, and sampling by QEMU's PMU."""
from test_boards import answer, count_of, functions, on_a_board, sampled
from guest import Guest


def is_profiled(build, cpu, midr):
    """The core is what it says, counts to the instruction, and its cycles lead."""
    said = Guest(build, arch="arm64", cpu=cpu, harts=1).run("""
        section identity cat /sys/devices/system/cpu/cpu0/regs/identification/midr_el1
        section doctor mperfctl doctor --json
        section one mperfctl stat --json -e instructions:u -- board loop 1000000
        section two mperfctl stat --json -e instructions:u -- board loop 2000000
        section hotspots mperfctl hotspots -F 999 --json -- board two 10000000""")
    assert int(said["identity"].text, 16) == midr, said["identity"]
    answer(said["doctor"])
    once, twice = count_of(said["one"]), count_of(said["two"])
    # What start-up takes differs by some hundreds, as addresses are random.
    assert abs(twice - once - 4_000_000) <= 2000, (once, twice)
    found = functions(sampled(said["hotspots"], "a"), "slow")
    for name, truth in ("fast", 40e6), ("slow", 400e6):
        counted = found[name]["instructions"]
        assert truth * 0.95 < counted < truth * 1.05, (name, truth, found[name])


@on_a_board
def test_neoverse_n1_counts_and_samples(build):
    is_profiled(build, "neoverse-n1", 0x414FD0C1)  # r4p1


@on_a_board
def test_cortex_a72_counts_and_samples(build):
    is_profiled(build, "cortex-a72", 0x410FD083)  # r0p3
