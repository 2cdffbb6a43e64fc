# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperf-cc as build systems call it: what is a link and what not, what is asked and what is built, what
is wrong and said so."""
import os
import shutil
import subprocess

from kernels import KERNELS, plugin, run, versions
from machine import Folder, Skip

PROGRAM = """#include <stdio.h>
double twice(const double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i] * 2.0;
	return sum;
}
int main(void)
{
	double a[100];
	for (int i = 0; i < 100; i++)
		a[i] = i;
	printf("%g\\n", twice(a, 100));
	return 0;
}
"""
ANSWER = "9900\n"


class Wrapper:
    """mperf-cc in a folder that has program.c, and nothing of ours in the environment."""

    def __init__(self, build, folder):
        if not versions(build):
            raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
        self.build, self.folder = build, folder
        (folder / "program.c").write_text(PROGRAM)

    def __call__(self, *arguments, name="mperf-cc", status=0, stdin="", **variables):
        done = subprocess.run([self.build / name, *map(str, arguments)], cwd=self.folder, text=True,
                              input=stdin, capture_output=True, timeout=120,
                              env={"PATH": os.environ["PATH"], **variables})
        assert done.returncode == status, (arguments, done)
        return done.stdout + done.stderr

    def counts(self, file):
        return "mperf_modules" in run(["objdump", "-h", self.folder / file]).stdout

    def answers(self, program="a.out"):
        return run([self.folder / program]).stdout == ANSWER


def wrapped(test):
    def in_folder(build):
        with Folder() as folder:
            test(Wrapper(build, folder))
    in_folder.__name__ = test.__name__
    return in_folder


@wrapped
def test_what_makes_no_program_gets_no_runtime(cc):
    for option, result in (("-c", "program.o"), ("-S", "program.s"), ("-fsyntax-only", None), ("-E", None),
                           ("-M", None), ("-MM", None)):
        said = cc(option, "-O2", "program.c")
        assert "warning" not in said and "libmperf-runtime" not in said, said
        assert result is None or (cc.folder / result).exists(), option
    assert cc.counts("program.o")
    cc("-r", "program.o", "-o", "partial.o")
    cc("partial.o")
    assert cc.answers() and cc.counts("a.out")


@wrapped
def test_a_header_is_compiled_as_one(cc):
    (cc.folder / "known.h").write_text("int known(int);\n")
    cc("known.h")
    assert (cc.folder / "known.h.gch").exists() or (cc.folder / "known.h.pch").exists()
    cc("-x", "c-header", "program.c", "-o", "program.pch")
    cc("-xc++-header", "known.h", "-o", "other.pch", name="mperf-c++")


@wrapped
def test_response_files_say_what_is_asked_for_too(cc):
    (cc.folder / "compile").write_text("-O2 -c\n\"program.c\" -o 'its object.o'")
    (cc.folder / "nested").write_text("@compile")
    cc("@nested")
    assert cc.counts("its object.o")
    (cc.folder / "lto").write_text("-flto=thin -c program.c -o bitcode.o")
    cc("@lto")
    assert (cc.folder / "bitcode.o").read_bytes()[:2] == b"BC"
    assert b"__mperf_object_register" not in (cc.folder / "bitcode.o").read_bytes()
    (cc.folder / "round").write_text("@round")
    cc("@round", status=1)
    cc("@nowhere", status=1)


@wrapped
def test_links_that_would_run_no_plugin_count_too(cc):
    """ThinLTO's at -O0, and those of objects with machine code beside the bitcode."""
    for version in versions(cc.build):
        for flags in ("-O0 -flto=thin", "-O0 -flto", "-O2 -flto=thin -Wl,--lto-O0", "-O2 -flto=thin -O0",
                      "-O2 -flto=thin -ffat-lto-objects", "-O2 -flto -ffat-lto-objects"):
            said = cc(*flags.split(), "program.c", MPERF_CLANG=f"clang-{version}")
            assert cc.answers() and cc.counts("a.out") and not said, (version, flags, said)
        cc("-O2", "-flto=thin", "-c", "program.c", MPERF_CLANG=f"clang-{version}")
        cc("-O0", "-flto=thin", "program.o", MPERF_CLANG=f"clang-{version}")
        assert cc.answers() and cc.counts("a.out"), version
    (cc.folder / "fat").write_text("-flto -ffat-lto-objects")
    said = cc("@fat", "-c", "program.c", status=1)
    assert "leave it out" in said and said.count("\n") == 1, said


@wrapped
def test_what_follows_two_dashes_is_an_input(cc):
    shutil.copy(cc.folder / "program.c", cc.folder / "-odd.c")
    (cc.folder / "known.h").write_text("int known(int);\n")
    cc("-O2", "--", "program.c")
    assert cc.answers() and cc.counts("a.out")
    cc("-O2", "-o", "odd", "--", "-odd.c")
    assert cc.answers("odd") and cc.counts("odd")
    cc("-O2", "-c", "-o", "--", "program.c")  # a file's name
    cc("-O2", "-o", "linked", "-Wl,-O1", "./--")
    assert cc.answers("linked") and cc.counts("linked")
    cc("--", "known.h")
    assert (cc.folder / "known.h.gch").exists() or (cc.folder / "known.h.pch").exists()
    assert "no input files" in cc("--", status=1)


@wrapped
def test_standard_input_and_libraries_are_inputs(cc):
    cc("-O2", "-xc", "-", "-o", "from-input", stdin=PROGRAM)
    assert cc.answers("from-input") and cc.counts("from-input")
    cc("-O2", "-c", "program.c")
    run(["ar", "rc", cc.folder / "libwhole.a", cc.folder / "program.o"])
    for arguments in (("-L.", "-lwhole"), ("-L.", "-l", "whole"), ("-Wl,./libwhole.a",)):
        cc(*arguments, "-o", "from-library")
        assert cc.answers("from-library") and cc.counts("from-library"), arguments


@wrapped
def test_questions_are_answered_as_clang_does(cc):
    version = versions(cc.build)[-1]
    for arguments in (("-v",), ("-dumpmachine",), ("-dumpversion",), ("-print-search-dirs",),
                      ("-print-file-name=libc.so",), ("-print-resource-dir",), ("--help",)):
        done = run([f"clang-{version}", *arguments], cwd=cc.folder)
        assert cc(*arguments) == done.stdout + done.stderr, arguments
    assert "LLVM version" in cc("-cc1", "-version")
    assert "GNU ld" in cc("-Wl,--version")
    assert "no input files" in cc(status=1)
    assert "__clang__" in cc("-dM", "-E", "-", stdin="")


@wrapped
def test_what_runs_without_a_c_library_is_left_alone(cc):
    cc("-O2", "-ffreestanding", "-c", "program.c", "-o", "alone.o")
    assert not cc.counts("alone.o")
    cc("-O2", "-ffreestanding", "-fhosted", "-c", "program.c", "-o", "hosted.o")
    assert cc.counts("hosted.o")


@wrapped
def test_libraries_link_and_programs_that_have_them_run(cc):
    (cc.folder / "user.c").write_text('int program(void);\nint main(void) { return program(); }\n')
    cc("-O2", "-fPIC", "-shared", "-Dmain=program", "program.c", "-o", "libprogram.so", "-Wl,-z,defs")
    cc("-O2", "user.c", "-L.", "-lprogram", "-Wl,-rpath,$ORIGIN")
    assert cc.answers() and cc.counts("libprogram.so")
    run([f"clang-{versions(cc.build)[-1]}", "user.c", "-L.", "-lprogram", "-Wl,-rpath,$ORIGIN",
         "-o", "plain"], cwd=cc.folder)
    assert cc.answers("plain")


@wrapped
def test_c_links_cxx_where_it_is_told_the_library(cc):
    shutil.copy(KERNELS / "exceptions.cc", cc.folder)
    cc("-O1", "exceptions.cc", "-lstdc++", "-o", "by-c")
    cc("-O1", "exceptions.cc", "-o", "by-cxx", name="mperf-c++")
    assert run([cc.folder / "by-c"]).stdout == run([cc.folder / "by-cxx"]).stdout


@wrapped
def test_a_target_without_a_runtime_is_said_to_have_none(cc):
    said = cc("--target=s390x-linux-gnu", "-c", "program.c", "-fsyntax-only", "-nostdinc", status=1)
    assert "libmperf-runtime" not in said, said
    said = cc("--target=s390x-linux-gnu", "program.o", status=1)
    assert "s390x/libmperf-runtime.a" in said and "MPERF_RUNTIME" in said, said
    said = cc("-m32", "program.o", status=1)
    assert "i386/libmperf-runtime.a" in said, said
    version = versions(cc.build)[-1]
    own = run([f"clang-{version}", "-dumpmachine"]).stdout.strip()
    cc(f"--target={own}", "-O2", "program.c")
    assert cc.answers()


@wrapped
def test_a_program_that_has_its_own_use_for_gs_is_told_how_to_be_built(cc):
    if os.uname().machine != "x86_64":
        raise Skip("%gs is a register of x86")
    (cc.folder / "uses.c").write_text("int first(int __seg_gs *p)\n{\n\treturn *p;\n}\n")
    (cc.folder / "names.c").write_text('int first(void)\n{\n\tint v;\n\t'
                                       '__asm__("movl %%gs:0, %0" : "=r"(v));\n\treturn v;\n}\n')
    for name in "uses.c", "names.c":
        said = cc("-O2", "-c", name, status=1)
        assert f"{name} uses itself (in first)" in said and "segment=0 in MPERF_PASS" in said, said
        assert not cc("-O2", "-c", name, MPERF_PASS="segment=0")
        assert not cc("-O2", "-c", "-fPIC", name)
    cc("-O2", "program.c", MPERF_PASS="segment=0")
    assert cc.counts("a.out") and cc.answers()


@wrapped
def test_no_plugin_for_a_clang_is_said_before_it_runs(cc):
    fake = cc.folder / "clang-of-ours"
    fake.write_text("#!/bin/sh\n[ \"$1\" = -dumpversion ] && echo 14.0.6 && exit\necho ran\n")
    fake.chmod(0o755)
    said = cc("-c", "program.c", MPERF_CLANG=str(fake), status=1)
    assert "no plugin" in said and "LLVM 14" in said and "MPERF_CLANG" in said and "ran" not in said, said
    assert str(versions(cc.build)[-1]) in said, said
    said = cc("-c", "program.c", MPERF_CLANG="clang-of-nowhere", status=1)
    assert "clang-of-nowhere" in said, said
    assert cc("-c", "program.c", MPERF_CLANG=str(fake), MPERF_PASS="off") == "ran\n"


@wrapped
def test_a_plugin_of_another_llvm_says_so_and_nothing_crashes(cc):
    found = versions(cc.build)
    compilers = {v: f"clang-{v}" for v in (14, 16, 19) if shutil.which(f"clang-{v}")}
    pairs = [(v, clang) for v in found for other, clang in compilers.items() if other != v]
    if not pairs:
        raise Skip("there is no clang but that of the plugin")
    for version, clang in pairs:
        done = subprocess.run([clang, "-O2", "-c", "program.c", f"-fpass-plugin={plugin(cc.build, version)}"],
                              cwd=cc.folder, capture_output=True, text=True)
        assert done.returncode == 1, (clang, version, done)
        assert f"this plugin is for LLVM {version}" in done.stderr and "mperf-cc" in done.stderr, done
        assert "Stack dump" not in done.stderr and "symbol lookup" not in done.stderr, done
