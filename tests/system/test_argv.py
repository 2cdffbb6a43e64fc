# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of processes that live shorter than the daemon's drains are apart."""
from pathlib import Path

from attacked import UnitService
from execs import KINDS, Execs, losses
from machine import Folder, Skip, compile_program, mperfctl, need_root, rows
from rates import allowing, rate_allowed
from service import wait_until

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


def bpf_reports_execs(pid):
    """Does the process have a BPF program of the kind that exec_bpf.c loads (BPF_PROG_TYPE_TRACING)?"""
    kinds = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return any("prog_type:\t26\n" in text for text in kinds)


def test_all_processes_have_their_arguments_where_bpf_reports_execs(build):
    """Short processes of two users beside the service of the unit. Where other storms overrun the side band, such a
    loss is counted."""
    number = 200
    with Folder() as folder, UnitService(build, folder, flush="1s", rate=rate_allowed(4999)) as service:
        if not bpf_reports_execs(service.process.pid):
            raise Skip("BPF reports no execs here")
        execs = Execs(build, folder)
        before = losses(service)
        truth = execs.run(KINDS, number, 1000)  # for 1 ms each, so that most are sampled

        def known():
            found = execs.stored(service, truth)
            return found if len(found[0] | found[1]) > len(truth) / 20 else None
        right, none, wrong = wait_until("their samples are stored", known)
        lost = {cause: n - before.get(cause, 0) for cause, n in losses(service).items()}
        if lost.get("side band overrun") or lost.get("over a user's share"):
            raise Skip(f"others overran the side band, or these users had too much: {lost}")
        unread = lost.get("arguments not read", 0)
        print(f"  {len(right)} of {len(truth)} were sampled and have their arguments, {len(none - right)} have none; "
              f"not read of anyone: {unread}")
        assert not wrong, wrong[:3]
        assert not none - right, none - right
        assert unread <= 0.001 * len(truth) + 1, lost
