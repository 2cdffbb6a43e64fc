# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""zlib: a configure that is nobody's but its own, plain make, a shared library with a version script."""
import functools

from whole import (COUNTED, PLAIN, compilers, copies, functions, processor_seconds, rows_of_run, run,
                   run_ratio, source, tell, size_ratios)


@functools.cache
def built(build):
    folders, seconds = copies(build, "zlib"), {}
    for flavour, folder in folders.items():
        cc, _ = compilers(build, flavour)
        run("./configure", cwd=folder, CC=cc)
        seconds[flavour], _ = processor_seconds("make", "-j2", cwd=folder)
    return folders, seconds


def book(build):
    """Text to compress: the change logs of all that is unpacked here."""
    path = build / "programs" / "zlib" / "book"
    text = (source(build, "zlib") / "ChangeLog").read_bytes()
    path.write_bytes((text * (3_000_000 // len(text) + 1))[:3_000_000])
    return path


def test_its_own_tests_pass(build):
    folders, _ = built(build)
    for flavour, folder in folders.items():
        said = run("make", "test", cwd=folder)
        for kind in "zlib test OK", "zlib shared test OK", "zlib 64-bit test OK":
            assert f"*** {kind} ***" in said, said
        tell("zlib", **{f"of 3 tests passed, {flavour}": said.count("test OK")})


def test_both_builds_compress_the_same_and_what_it_costs(build):
    folders, seconds = built(build)
    text = book(build)
    packed = {}
    for flavour, folder in folders.items():
        for program in "minigzip", "minigzipsh":
            run("cp", text, folder / "book")
            run(folder / program, "-9", folder / "book", LD_LIBRARY_PATH=folder)
            packed[flavour, program] = (folder / "book.gz").read_bytes()[10:]
            run(folder / program, "-d", folder / "book.gz", LD_LIBRARY_PATH=folder)
            assert (folder / "book").read_bytes() == text.read_bytes()
    assert len(set(packed.values())) == 1, {k: len(v) for k, v in packed.items()}
    archives = {k: next(f.glob("libz.so.1.*")) for k, f in folders.items()}
    tell("zlib", compile=seconds[COUNTED] / seconds[PLAIN],
         **size_ratios(build, archives),
         run=run_ratio({k: ("sh", "-c", 'exec "$1/minigzip" -c <"$2" >/dev/null', "sh", f, text)
                        for k, f in folders.items()}))


def check_rows(build, folder, program):
    text, output = book(build), folder / f"{program}.mperf"
    with text.open() as stdin:
        loops, by_function = rows_of_run(build, output, "sh", "-c", f"exec {folder}/{program} >/dev/null",
                                         stdin=stdin, LD_LIBRARY_PATH=folder)
    assert {"deflate_slow", "longest_match", "fill_window"} <= functions(by_function), \
        functions(by_function)
    match, = (row for row in by_function if row["function"] == "longest_match")
    assert match["entries"] > 10_000 and match["bytes_loaded"] > 10 * match["entries"], match
    assert any(row["function"] == "longest_match" and "deflate.c:" in row["source"] for row in loops)
    return match


def test_rows_come_out_of_static_and_of_shared_library(build):
    folders, _ = built(build)
    matches = [check_rows(build, folders[COUNTED], p) for p in ("minigzip64", "minigzip", "minigzipsh")]
    assert len({m["entries"] for m in matches}) == 1, matches
    tell("zlib", longest_match_entries=matches[0]["entries"])
