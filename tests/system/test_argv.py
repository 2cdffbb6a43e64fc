# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of processes that live shorter than the daemon's drains are apart."""
from machine import Folder, compile_program, mperfctl, need_root, rows
from rates import allowing

PROCESSES = 300


@allowing()
def test_processes_of_five_milliseconds_have_their_own_arguments(build):
    need_root()
    brief = compile_program(build, "brief.c")
    with Folder() as folder:
        loop = f"for i in $(seq {PROCESSES}); do {brief} --number $i 'two words'; done"
        mperfctl(build, "record", "-F", "4999", "-e", "cpu-clock", "-o", folder / "r", "--", "sh",
                 "-c", loop)
        found = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
    briefs = [r for r in found["rows"] if r["comm"] == "brief"]
    assert len({r["pid"] for r in briefs}) >= 0.95 * PROCESSES, len(briefs)
    numbers = [r["argv"].split()[2] for r in briefs
               if (r["argv"] or "").startswith(f"{brief} --number ")
               and r["argv"].endswith("two words")]
    # A wrong one would be worse than none: no two have the same, and pids rise with the numbers.
    assert len(numbers) == len(set(numbers)), "two processes have the same arguments"
    # Who is gone before the daemon has its turn is counted; how many are depends on the machine.
    lost = found["provenance"]["lost"].get("arguments not read", 0)
    assert len(numbers) + lost >= len(briefs), (len(numbers), len(briefs), found["provenance"])
    assert len(numbers) >= 0.75 * len(briefs), f"{len(numbers)} of {len(briefs)} have their own"
