# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks of known depth without frame pointers: each is complete, or cut where it must be, and none is wrong."""
import os
import platform
import re
import subprocess
from pathlib import Path

from machine import SOURCES, Folder, Skip, leave_to_plain, making, mperfctl, need_program, plain_build
from rates import rate_allowed

MS = 150   # of a processor, for each case
LEAST_MS = 50  # of samples at the bottom
WALKS = "test_unwind_step walks with sanitizers"

# Frames of depth.c between the calls of descend() and the function that runs, and those of libraries between them.
CASES = {
    "plain": (["spin"], None),
    "clock": (["spin"], None),                   # the vDSO
    "plt": (["spin"], None),
    "leaf": (["in_leaf", "leaf"], None),
    "alloca": (["in_alloca", "spin"], None),
    "large": (["in_large", "spin"], None),       # 40 KiB
    "qsort": (["in_qsort", "compare", "spin"], r"qsort(_r)?|msort\S*|introsort\S*|.*quicksort.*|libc\.so\S*\+0x\S+"),
    "signal": (["in_signal", "handle", "spin"], r"raise|gsignal|\S*pthread_kill\S*|__restore_rt|libc\.so\S*\+0x\S+|setjmp|"
               r"__(vdso|kernel)_rt_sigreturn|\[vdso\]\S*"),
    "altstack": (["in_altstack", "handle", "spin"], r"raise|gsignal|\S*pthread_kill\S*|__restore_rt|libc\.so\S*\+0x\S+|"
                 r"__(vdso|kernel)_rt_sigreturn|\[vdso\]\S*"),
    "vfork": (["in_vfork", "spin"], None),       # in the child
    "end": (["in_end", "never_returns", "spin"], None),
    "bare": (["in_bare", "bare_spin", "spin"], None),
    "jit": (["in_jit", "in_generated", "generated", "bare_spin", "spin"], None),
    "jit-bare": (["in_jit_bare", "in_generated", "generated", "bare_spin", "spin"], None),
}
STARTS = r"__libc_start_(main|call_main)\S*|libc_start_main_stage2|_start_c"
OF_LIBC = r"libc\.so\S*\+0x\S+"  # where its symbols are missing


def compiled(build, compiler, *flags):
    """depth.c by that compiler, without frame pointers, and with a PLT that binds late."""
    target = plain_build(build) / "tests" / "programs" / f"depth-{compiler}"
    source = SOURCES / "depth.c"
    with making(build, target.name):
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([compiler, "-g", "-O2", "-fomit-frame-pointer", "-Wl,-z,lazy", *flags, "-o", target,
                            source], check=True)
    return target


def are_among(frames, expected):
    """All of them, in their order, whatever is between."""
    rest = iter(expected)
    return all(frame in rest for frame in frames)


def stacks(folded, depth, case):
    """{"complete": ms, "cut at FUNCTION": ms, "with a gap": ms, "wrong": ms} and an example of each."""
    within, between = CASES[case]
    expected = ["_start", "main", *["descend"] * depth, *within]
    found, example = {}, {}
    for line in folded.splitlines():
        stack, _, n = line.rpartition(" ")
        frames = stack.split(";")[1:]
        if within[-1] not in frames:
            continue  # before the bottom was reached
        frames = frames[:len(frames) - frames[::-1].index(within[-1])]
        main = frames.index("main") if "main" in frames else 1
        frames = [f for i, f in enumerate(frames) if not re.fullmatch(STARTS, f)
                  and not (i < main and re.fullmatch(OF_LIBC, f))
                  and not (between and re.fullmatch(between, f))]
        kind = ("complete" if frames == expected else
                f"cut at {frames[0]}" if frames == expected[-len(frames):] else
                "with a gap" if are_among(frames, expected) else "wrong")
        found[kind] = found.get(kind, 0) + int(n) / 1e6
        example[kind] = stack
    return found, example


def stacks_are(kind, folded, depth, case, where):
    found, example = stacks(folded, depth, case)
    assert found.get(kind, 0) >= LEAST_MS, (where, depth, case, found, example)
    assert set(found) == {kind}, (where, depth, case, found, example)


def all_are(build, kind, program, depth, case, size=16384):
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-g", f"dwarf,{size}", "-o", folder / "r", "--",
                 program, depth, case, MS, check=False)
        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded").stdout
    stacks_are(kind, folded, depth, case, program.name)


# (depth, case, bytes of a copy, what all stacks are): what a board is asked for, too
KNOWN = [*[(depth, "plain", 16384, "complete") for depth in (1, 20, 120)],
         *[(20, case, 16384, "complete") for case in
           ("clock", "plt", "leaf", "alloca", "qsort", "signal", "vfork", "end")],
         (20, "large", 16384, "cut at in_large"), (20, "large", 65528, "complete"),
         (20, "bare", 16384, "cut at in_bare"), (20, "altstack", 16384, "cut at handle")]


def boards_script():
    """What a board runs, for boards_stacks_are."""
    return "".join(f"""
        mperfctl record -F 999 -g dwarf,{size} -o /tmp/{i} -- depth {depth} {case} {MS} >/dev/null 2>&1
        section depth{i} mperfctl flamegraph -i /tmp/{i} --folded
        rm /tmp/{i}""" for i, (depth, case, size, _) in enumerate(KNOWN))


def boards_stacks_are(said, where):
    """All as KNOWN says; but on RISC-V a function that never returns need not have saved its return address. On Arm,
    where all code should keep frame records, they lead past code that nothing describes, and past callers of it that
    keep none."""
    wrong = []
    for i, (depth, case, size, kind) in enumerate(KNOWN):
        kind = {("riscv64", "end"): "cut at in_end", ("arm64", "bare"): "with a gap"}.get((where, case), kind)
        try:
            stacks_are(kind, said[f"depth{i}"].text, depth, case, where)
        except AssertionError as error:
            wrong.append(error)
    assert not wrong, "\n".join(map(str, wrong))


def programs(build):
    leave_to_plain(build, WALKS)
    if platform.machine() not in ("x86_64", "riscv64", "aarch64"):
        raise Skip(f"stacks are not copied on {platform.machine()}")
    for compiler in "gcc", "clang":
        need_program(compiler)
        yield compiled(build, compiler)


def known(build, *cases):
    for program in programs(build):
        for depth, case, size, kind in KNOWN:
            if case in cases:
                all_are(build, kind, program, depth, case, size)


def test_stacks_of_any_depth_are_complete(build):
    known(build, "plain")


def test_stacks_are_complete_whatever_is_on_them(build):
    known(build, "clock", "plt", "leaf", "alloca", "qsort", "signal", "vfork", "end")


def test_a_stack_is_cut_where_its_copy_ends_and_a_larger_copy_holds_it(build):
    known(build, "large")


def test_a_stack_is_cut_where_nothing_describes_the_code(build):
    known(build, "bare")


def test_a_signal_on_a_stack_of_its_own_cuts_what_it_interrupted(build):
    """That stack is not copied; what was interrupted itself is known by its registers."""
    known(build, "altstack")


def test_generated_code_is_unwound_by_its_jitdump(build):
    if platform.machine() != "x86_64":
        raise Skip("depth.c generates code of x86-64")
    try:
        for program in programs(build):
            all_are(build, "complete", program, 20, "jit")
            all_are(build, "cut at generated", program, 20, "jit-bare")
    finally:
        remove_dumps()


def remove_dumps():
    for path in Path("/tmp").glob("jit-*.dump"):
        if path.stat().st_uid == os.getuid() and not Path(f"/proc/{path.stem[4:]}").exists() and \
                b"generated\0" in path.read_bytes()[:512]:
            path.unlink()


def test_programs_of_musl_are_unwound_as_far_as_they_are_described(build):
    """Debian's musl has no call frame information: stacks end where they enter it."""
    leave_to_plain(build, WALKS)
    need_program("musl-gcc")
    program = compiled(build, "musl-gcc")
    for case, end in ("plain", "main"), ("leaf", "main"), ("qsort", "compare"), ("signal", "handle"):
        all_are(build, f"cut at {end}", program, 20, case)
