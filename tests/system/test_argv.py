# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of processes that live shorter than the daemon's drains are apart."""
import subprocess
from pathlib import Path

from attacked import MALLORY, UnitService, as_user
from machine import Folder, Skip, compile_program, mperfctl, need_root, rows
from rates import allowing
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


def test_no_process_is_without_arguments_where_bpf_reports_execs(build):
    """A user's storm of short processes beside the service of the unit: none is without its arguments. Where other
    storms overrun the side band, such a loss is counted."""
    number = 300
    with Folder() as folder, UnitService(build, folder, flush="1s") as service:
        if not bpf_reports_execs(service.process.pid):
            raise Skip("BPF reports no execs here")
        brief = Path(folder) / "brief"
        brief.write_bytes(Path(compile_program(build, "brief.c")).read_bytes())
        brief.chmod(0o755)
        subprocess.run(as_user(MALLORY, "sh", "-c", f"for i in $(seq {number}); do {brief} --number $i; done"),
                       check=True)

        def known():
            found = service.ask("hotspots", "--since", "-1h", "--by", "process", "--limit", "0")
            of = [r for r in found["rows"] if r["comm"] == "brief"]
            return (found, of) if len(of) > number / 20 else None
        found, of = wait_until("their samples are stored", known)
        lost = found["provenance"]["lost"]
        if "side band overrun" in lost:
            raise Skip(f"others overran the side band: {lost}")
        assert all((r["argv"] or "").startswith(f"{brief} --number ") for r in of), of[:5]
        assert len({r["argv"] for r in of}) == len({r["pid"] for r in of}), of[:5]
        assert "arguments not read" not in lost, lost
