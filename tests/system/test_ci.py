# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A CI runner's day: an ordinary user builds and tests two branches of bzip2 in turns, fifty jobs with labels,
by an example that the package has; one branch has a function that does more. The gate stops it."""
import json
import os
import re
import subprocess

from machine import NOBODY, ROOT, Folder, as_nobody, everybodys, leave_to_plain, workload
from rates import rate_allowed
from service import Service

SECONDS = 100
JOBS = 25            # of each branch
# Bytes of the store. What an hour may add to it, one user of two, is 16 MB: 50 jobs take some.
BUDGET, KEPT = 32 << 20, "1h"
SLOWER, UNDECIDED = 3, 4
MARGIN = "20%"       # at the usual 2 % a busy machine makes a function of the compiler slower, too
TEXT_BYTES = 600_000
SLOW = 400           # rounds that refine a table, where main makes 4; it takes some 50 samples of a job
FUNCTION = r"(BZ2_compressBlock|sendMTFValues) in bzip2"  # the second may be inlined into the first
# What a job does: compile what the branch changed, link, and see that what was packed can be unpacked.
JOB = """
set -e
rm -f compress.o libbz2.a
make -s CFLAGS="-O2 -g" libbz2.a
cc -g -o bzip2 bzip2.o libbz2.a
./bzip2 -c text >packed
./bzip2 -dc packed | cmp - text
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def make_branches(build, folder):
    """main, and slow, which refines each table a hundred times as often."""
    source = workload(build, "bzip2")
    for branch in "main", "slow":
        run("cp", "-r", source, folder / branch)
        header = folder / branch / "bzlib_private.h"
        text, n = re.subn(r"#define BZ_N_ITERS +4", f"#define BZ_N_ITERS {4 if branch == 'main' else SLOW}",
                          header.read_text())
        assert n == 1
        header.write_text(text)
        run("make", "-s", "CFLAGS=-O2 -g", "libbz2.a", "bzip2.o", cwd=folder / branch)
        parts = b"".join(p.read_bytes() for p in sorted(source.glob("*.[ch1]")))
        (folder / branch / "text").write_bytes((parts * (TEXT_BYTES // len(parts) + 1))[:TEXT_BYTES])
    run("chown", "-R", "65534:65534", folder / "main", folder / "slow")


def explains(report):
    """It says, with figures, what it cannot exclude, and what it would have seen."""
    return (re.search(r"^(The total may have grown by as much as \+[\d.]+ %|"
                      r"Some rows may have added more than [\d.]+ % to the total)\.$", report, re.M) and
            re.search(r"^A total growth of at least \+[\d.]+ % would have been found in four of five cases; "
                      r"for [\d.]+ % it takes (\d+ runs a side|longer runs)", report, re.M))


def test_fifty_jobs_of_two_branches_and_the_gate_stops_the_slow_one(build):
    leave_to_plain(build, "what is built and compared has no code of ours")
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499), callers="no", overhead="none",
                                     keep_windows=KEPT, budget=BUDGET) as service:
        environment = {**os.environ, **everybodys(build, folder), "MPERF_SOCKET": str(service.socket),
                       "PATH": f"{folder}:{os.environ['PATH']}"}
        make_branches(build, folder)
        done = subprocess.run([*NOBODY, "sh", ROOT / "man" / "examples" / "jobs-in-turns.sh", "-n", str(JOBS), "-m",
                               MARGIN, "-j", "bzip2", folder / "main", folder / "slow", "--", "sh", "-c", JOB],
                              env=environment, cwd=folder / "tmp", capture_output=True, text=True, check=False)
        report = done.stdout
        assert done.returncode in (SLOWER, UNDECIDED), (done.returncode, report, done.stderr[-2000:])
        if done.returncode == SLOWER:
            assert re.match(r"\*\*slower: \+", report.replace("\\", "")), report
            assert re.search(rf"^\| \*\*`{FUNCTION}`\*\* \| \+", report, re.M), report
        else:
            print(f"  too noisy to tell: {report.splitlines()[0]}", flush=True)
            assert report.startswith("**not enough to tell: ") and explains(report), report
        sides = [f"job=bzip2,branch={branch},last={JOBS}" for branch in ("main", "slow")]
        again = as_nobody(folder, environment, "gate", "--baseline", sides[0], "--candidate", sides[1],
                          "--max-regression", MARGIN, "--json")
        total, = json.loads(again.stdout)["total"]
        assert again.returncode == done.returncode, (again, report)
        assert total["baseline_runs"] == total["candidate_runs"] == JOBS, total
        stored = sum(p.stat().st_blocks * 512 for p in service.store.rglob("*") if p.is_file())
        assert 0 < stored <= BUDGET, stored
        print(f"  {2 * JOBS} jobs take {stored / 1e6:.1f} MB of the store", flush=True)
