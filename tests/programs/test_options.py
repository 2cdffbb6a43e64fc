# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program of two files, by every way of building that projects use: it answers the same, and its
operations come out."""
import shutil

from machine import Folder
from whole import COUNTED, compilers, roofline, run, version

MAIN = """#include <stdio.h>
double twice(const double *a, int n);
int main(void)
{
	double a[100];
	for (int i = 0; i < 100; i++)
		a[i] = i;
	printf("%g\\n", twice(a, 100));
	return 0;
}
"""
TWICE = """double twice(const double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i] * 2.0;
	return sum;
}
"""
ANSWER = "9900\n"
FLOPS = 200
LINKED = ["-static", "-static-pie", "-no-pie -fno-pie", "-s", "-Wl,-z,defs", "-Wl,-z,now -Wl,-z,relro",
          "-ffunction-sections -fdata-sections -Wl,--gc-sections", "-fuse-ld=bfd", "-Wl,--build-id=none"]
COMPILED = ["-O0", "-O1", "-Os", "-Oz", "-O3 -march=native", "-Ofast", "-mcmodel=large", "-fno-plt", "-pg",
            "-g -gsplit-dwarf", "-gz", "-finstrument-functions", "-funique-internal-linkage-names",
            "-fsplit-machine-functions", "-fbasic-block-sections=all", "-femulated-tls",
            "-ftrivial-auto-var-init=zero -fstack-protector-all -fcf-protection=full",
            "-fstack-clash-protection -D_FORTIFY_SOURCE=2", "-Weverything -Werror -Wno-missing-prototypes "
            "-Wno-double-promotion -Wno-declaration-after-statement -Wno-unsafe-buffer-usage"]
PROFILED = ["--coverage", "-fprofile-instr-generate -fcoverage-mapping", "-fprofile-generate"]
SANITIZED = ["-fsanitize=address", "-fsanitize=undefined", "-fsanitize=thread",
             "-fsanitize=address,undefined -fno-sanitize-recover=all", "-fsanitize=safe-stack"]
LTO = ["-flto", "-flto=thin", "-flto=full -O3", "-flto=thin -fuse-ld=gold", "-flto=thin -g",
       "-flto -ffunction-sections -Wl,--gc-sections -s", "-flto=thin -fsanitize=undefined"]


def linkers(build):
    return [f"-fuse-ld={name}" for name in (f"lld-{version(build)}", "gold") if shutil.which(f"ld.{name}")]


def check(build, options):
    cc, _ = compilers(build, COUNTED)
    with Folder() as folder:
        (folder / "main.c").write_text(MAIN)
        (folder / "twice.c").write_text(TWICE)
        for options in options:
            words = options.split()
            for name in "main", "twice":
                run(cc, "-O2", *words, "-c", f"{name}.c", cwd=folder)
            run(cc, "-O2", *words, "main.o", "twice.o", "-o", "program", cwd=folder)
            output = folder / "told"
            said = run("./program", cwd=folder, MPERF_OUTPUT=output)
            assert said == ANSWER, (options, said)
            rows = roofline(build, output, "--by", "function")
            flops = sum(row["fp64_ops"] for row in rows)
            # Lanes of a sum that may be taken in any order are added up at its end.
            most = FLOPS + (32 if "-Ofast" in options else 0)
            assert FLOPS <= flops <= most, (options, flops, rows)
            output.unlink()


def test_linked_in_each_way_it_counts(build):
    check(build, LINKED + linkers(build))


def test_compiled_in_each_way_it_counts(build):
    check(build, COMPILED)


def test_with_profiles_and_coverage_it_counts(build):
    check(build, PROFILED)


def test_with_sanitizers_it_counts(build):
    check(build, SANITIZED)


def test_with_lto_it_counts_once(build):
    check(build, LTO)


def test_with_a_profile_to_go_by_it_counts(build):
    cc, _ = compilers(build, COUNTED)
    with Folder() as folder:
        (folder / "main.c").write_text(MAIN)
        (folder / "twice.c").write_text(TWICE)
        run(cc, "-O2", "-fprofile-generate=profile", "main.c", "twice.c", "-o", "first", cwd=folder)
        run("./first", cwd=folder)
        run(f"llvm-profdata-{version(build)}", "merge", "-o", "merged", "profile", cwd=folder)
        for how in ((), ("-flto=thin",)):
            run(cc, "-O2", *how, "-fprofile-use=merged", "main.c", "twice.c", "-o", "second", cwd=folder)
            assert run("./second", cwd=folder, MPERF_OUTPUT=folder / "told") == ANSWER
            rows = roofline(build, folder / "told", "--by", "function")
            assert sum(row["fp64_ops"] for row in rows) == FLOPS, (how, rows)


def test_a_cache_of_compilers_keeps_objects_that_count(build):
    cc, _ = compilers(build, COUNTED)
    with Folder() as folder:
        (folder / "twice.c").write_text(TWICE)
        for _ in range(2):
            run("ccache", cc, "-O2", "-c", "twice.c", cwd=folder, CCACHE_DIR=folder / "cache")
        assert "mperf_modules" in run("objdump", "-h", "twice.o", cwd=folder)
        told = run("ccache", "--print-stats", CCACHE_DIR=folder / "cache")
        assert "direct_cache_hit\t1" in told, told
