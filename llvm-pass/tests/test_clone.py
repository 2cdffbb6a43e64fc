# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mode clone with not all entries counting; that it counts as the others do where all are chosen is
in test_pass.py."""
import os

from kernels import KERNELS, compile_kernel, of_function, run, versions
from machine import Skip
from read_counts import OWN, read_totals

CLONED = 16
SOURCE = KERNELS / "choices.c"


def newest(build):
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    return found[-1]


def count_one_in(program, n):
    output = program.with_suffix(f".counts{n}")
    done = run([program], env=dict(os.environ, MPERF_STUB_OUTPUT=str(output), MPERF_STUB_ONE_IN=str(n)))
    return read_totals(output.read_bytes()), done.stdout


def is_cloned(key):
    return key[5] & CLONED


def test_where_nothing_is_chosen_entries_are_all_that_counts(build):
    program = compile_kernel(build, newest(build), SOURCE, ("-O2",), "clone")
    chosen, printed = count_one_in(program, 1)
    other, also = count_one_in(program, 0)
    assert printed == also
    entries = {k: v for k, v in chosen.items() if is_cloned(k) and k[-1] == "entries"}
    assert len(entries) >= 8, entries  # functions, and their outermost loops
    assert {k: other[k] for k in entries} == entries
    left = {k: v for k, v in other.items() if v and is_cloned(k) and k[-1] not in OWN | {"entries"}}
    assert not left, left
    assert of_function(chosen, "often", "fp64_ops") == 64000
    assert of_function(other, "often", "fp64_ops") == 0


def test_one_in_ten_stands_for_ten_where_entries_are_alike(build):
    program = compile_kernel(build, newest(build), SOURCE, ("-O2",), "clone")
    totals, _ = count_one_in(program, 10)
    for function, entries, ops in (("often", 1000, 64000), ("many", 50, 250), ("in_two", 40, 640)):
        counted = of_function(totals, function, "counted_entries")
        assert of_function(totals, function, "entries") == entries
        assert counted == entries // 10, (function, counted)
        assert of_function(totals, function, "fp64_ops") * entries // counted == ops
    # Fewer entries than 1 in 10: nothing counted, and it shows.
    assert of_function(totals, "seldom", "entries") == 3
    assert of_function(totals, "seldom", "counted_entries") == 0
    assert of_function(totals, "seldom", "fp64_ops") == 0


def test_what_is_not_chosen_runs_with_few_instructions_more(build):
    """By the code itself: an entry that is not chosen reads the word and branches once for it."""
    program = compile_kernel(build, newest(build), SOURCE, ("-O2",), "clone")
    text = run(["objdump", "-d", "--no-show-raw-insn", f"{program}.o"]).stdout
    body = text[text.index("<often>:"):].split("\n\n", 1)[0]
    lines = [line.split("\t")[-1] for line in body.splitlines()[1:]]
    words = [i for i, line in enumerate(lines) if "cmpl" in line or ("mov" in line and "(%rip)" in line)]
    assert words, body
    assert any(line.startswith(("je", "jne", "test")) for line in lines[words[0]:words[0] + 3]), lines[:20]
