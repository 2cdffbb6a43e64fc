# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mbw, a memory benchmark that times its loop: our rate is the one that it prints, and the loop that is hottest
by counts and times is hottest by samples."""
import functools
import json
import re
from pathlib import Path

from whole import COUNTED, compilers, copies, roofline, run, tell

RUNS = 20
MEBIBYTES = 64
NEAR = 0.05  # the loop alone, against all that mbw does between its two readings of the clock
# At -O2 clang calls memcpy in place of the loop, at the line of one of the two calls that it merges.
COPIES = {"-O1": "for(t=0; t<asize", "-O2": "memcpy(b, a, array_bytes)"}
LOOP = "-t0"  # which its output calls MEMCPY


@functools.cache
def built(build):
    programs = {}
    for flavour, folder in copies(build, "mbw").items():
        cc, _ = compilers(build, flavour)
        for level in COPIES:
            # all-nests: a loop of integers is not timed otherwise
            run("make", "-B", f"CC={cc}", f"CFLAGS={level} -g", cwd=folder, MPERF_PASS="all-nests=1")
            run("mv", "mbw", f"mbw{level}", cwd=folder)
            programs[flavour, level] = folder / f"mbw{level}"
    return programs


def own_figure(said):
    """GB/s, loaded and stored, of all runs: it says MiB of one of the two arrays."""
    return float(re.search(r"^AVG\s.*Copy: (\S+) MiB/s", said, re.M)[1]) * 2 * (1 << 20) / 1e9


def source_line(program, row):
    """The text of the line that a row stands for."""
    path, _, line = row["source"].rpartition(":")
    return (program.parent / path).read_text().splitlines()[int(line) - 1].strip()


def test_rates_are_those_that_it_prints(build):
    for level, text in COPIES.items():
        program = built(build)[COUNTED, level]
        output = program.with_suffix(".mperf")
        output.unlink(missing_ok=True)
        said = run(program, LOOP, "-n", RUNS, MEBIBYTES, MPERF_OUTPUT=output)
        copy, = [r for r in roofline(build, output) if r["bytes_self"] > MEBIBYTES << 20
                 and source_line(program, r).startswith(text)]
        assert copy["bytes_loaded"] == copy["bytes_stored"] == RUNS * MEBIBYTES << 20, copy
        tell(f"mbw {level}", ours_over_its_own=copy["gbytes_self"] / own_figure(said))
        assert abs(copy["gbytes_self"] / own_figure(said) - 1) <= NEAR, (copy, said)


def test_the_hottest_loop_is_the_hottest_by_samples(build):
    for level, text in COPIES.items():
        program = built(build)[COUNTED, level]
        counts, samples = program.with_suffix(".counts"), program.with_suffix(".samples")
        counts.unlink(missing_ok=True)
        run(program, LOOP, "-n", RUNS, MEBIBYTES, MPERF_OUTPUT=counts)
        run(build / "mperfctl", "record", "--freq", 499, "-o", samples, "--", program, LOOP, "-n", RUNS, MEBIBYTES,
            MPERF_SOCKET="")
        hottest = max(roofline(build, counts), key=lambda r: r["share_self"] or 0)
        assert source_line(program, hottest).startswith(text), hottest
        said = run(build / "mperfctl", "hotspots", "-i", samples, "--by", "line", "--json", MPERF_SOCKET="")
        line = json.JSONDecoder().raw_decode(said)[0]["rows"][0]  # notes come behind it
        if hottest["kind"] == "copy":
            assert re.search(r"mem(cpy|move)", line["function"]), (line, hottest)
        else:
            assert Path(line["source"]).name == "mbw.c", line
            assert 0 <= line["line"] - int(hottest["source"].rpartition(":")[2]) <= 1, (line, hottest)
