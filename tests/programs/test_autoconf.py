# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""xz by autoconf, automake and libtool: probes of the compiler, threads, a shared library whose symbols
have versions, and programs that libtool starts."""
import functools
import re

from whole import (COUNTED, PLAIN, compilers, copies, functions, processor_seconds, rows_of_run, run,
                   run_ratio, source, tell, size_ratios)


@functools.cache
def built(build):
    folders, seconds, probes = copies(build, "xz-utils"), {}, {}
    for flavour, folder in folders.items():
        cc, _ = compilers(build, flavour)
        run("./configure", f"CC={cc}", "CFLAGS=-O2", "--disable-doc", "--disable-nls", cwd=folder)
        probes[flavour] = set(re.findall(r"^#define (.*)$", (folder / "config.h").read_text(), re.M))
        seconds[flavour], _ = processor_seconds("make", "-j2", cwd=folder)
    return folders, seconds, probes


def test_configure_finds_the_same(build):
    _, _, probes = built(build)
    assert probes[PLAIN] == probes[COUNTED] and len(probes[PLAIN]) > 50, probes[PLAIN] ^ probes[COUNTED]
    tell("xz-utils", probes_that_agree=len(probes[PLAIN]))


def test_its_own_tests_pass(build):
    folders, _, _ = built(build)
    totals = {}
    for flavour, folder in folders.items():
        said = run("make", "-j2", "check", cwd=folder)
        totals[flavour] = {k: int(n) for k, n in re.findall(r"^# (TOTAL|PASS|SKIP|FAIL|ERROR): +(\d+)$",
                                                           said, re.M) if int(n)}
    assert totals[PLAIN] == totals[COUNTED] and totals[PLAIN]["PASS"] >= 10, totals
    assert not {"FAIL", "ERROR"} & set(totals[COUNTED]), totals
    tell("xz-utils", **{f"tests, {k}": v for k, v in totals.items()})


def book(build):
    path = build / "programs" / "xz-utils" / "book"
    text = (source(build, "xz-utils") / "ChangeLog").read_bytes()
    path.write_bytes(text[:400_000])
    return path


def xz(folder):
    return folder / "src" / "xz" / "xz"


def test_both_builds_compress_the_same_and_what_it_costs(build):
    folders, seconds, _ = built(build)
    text, packed = book(build), {}
    for flavour, folder in folders.items():
        run("sh", "-c", 'exec "$1" -k -c "$2" >"$3"', "sh", xz(folder), text, folder / "book.xz")
        packed[flavour] = (folder / "book.xz").read_bytes()
        run("sh", "-c", 'exec "$1" -d -c "$2" >"$3"', "sh", xz(folder), folder / "book.xz",
            folder / "book")
        assert (folder / "book").read_bytes() == text.read_bytes()
    assert packed[PLAIN] == packed[COUNTED]
    libraries = {k: next((f / "src" / "liblzma" / ".libs").glob("liblzma.so.5.*")) for k, f in
                 folders.items()}
    tell("xz-utils", compile=seconds[COUNTED] / seconds[PLAIN],
         **size_ratios(build, libraries),
         run=run_ratio({k: ("sh", "-c", 'exec "$1" -k -c "$2" >/dev/null', "sh", xz(f), text)
                        for k, f in folders.items()}))


def test_rows_come_out_of_the_library(build):
    folders, _, _ = built(build)
    output = folders[COUNTED] / "xz.mperf"
    loops, by_function = rows_of_run(build, output, "sh", "-c", 'exec "$1" -k -c "$2" >/dev/null', "sh",
                                     xz(folders[COUNTED]), book(build))
    assert any(name.startswith("lzma_mf_") or name.startswith("bt_") for name in functions(by_function)), \
        functions(by_function)
    assert any("lz_encoder_mf.c:" in row["source"] for row in loops), loops[:5]
    tell("xz-utils", loops=len(loops), functions=len(by_function))
