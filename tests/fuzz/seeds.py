# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real files to damage: programs and libraries of this machine, programs compiled in all the ways that
change what the namer reads, perf maps, jitdumps, recordings.

A seed of the whole namer is a folder: `main`, and beside it what it leads to. Each is made once, and
left out where the machine lacks what makes it."""
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
INSTALLED = "/bin/true", "/bin/ls", "/bin/sed", "/usr/bin/gdbus", "/lib64/ld-linux-x86-64.so.2"
SMALL_BYTES = 65536  # of a seed for fuzzers in one process: larger ones make each input slow
RECORDED_BYTES = 400000

SOURCE_C = r"""
#include <stdio.h>
struct pair { int a; union { long b; double c; } u; };
static inline __attribute__((always_inline)) int innermost(int x, struct pair *p) { p->a += x; return x * 3 + p->a; }
static inline __attribute__((always_inline)) int inner(int x, struct pair *p) { return innermost(x, p) + innermost(x + 1, p); }
static __attribute__((noinline)) int outer(int x) { struct pair p = {x, {0}}; int s = 0; for (int i = 0; i < x; i++) s += inner(i, &p); return s; }
extern int other(int);
int main(int argc, char **argv) { (void)argv; printf("%d\n", outer(argc) + other(argc)); return 0; }
"""
SOURCE_OTHER = "int other(int x);\nint other(int x) { int s = 0; while (x-- > 0) s += x * x; return s; }\n"
SOURCE_CC = r"""
#include <string>
#include <vector>
namespace outermost { template <class T> struct box { T t; template <class U> T put(U u) { t += static_cast<T>(u); return t; } };
inline namespace v1 { [[gnu::noinline]] auto run(std::vector<std::string> const &v) { box<long> b{0}; for (auto const &s : v) b.put(s.size()); return b.t; } } }
int main(int argc, char **argv) { std::vector<std::string> v(argv, argv + argc); return static_cast<int>(outermost::run(v)); }
"""
C_FLAGS = {
    "dwarf2": ["-gdwarf-2", "-gstrict-dwarf"], "dwarf4": ["-gdwarf-4", "-O2"],
    "dwarf5": ["-gdwarf-5", "-O2"], "zlib": ["-g", "-O2", "-gz=zlib"],
    "zlib-gnu": ["-g", "-gz=zlib-gnu"], "zstd": ["-g", "-gz=zstd"],
    "types": ["-gdwarf-4", "-fdebug-types-section"], "static-pie": ["-g", "-O1", "-no-pie"],
    "sections": ["-gdwarf-5", "-O2", "-ffunction-sections"], "build-id": ["-g", "-Wl,--build-id"],
    "dwarf64": ["-gdwarf-5", "-gdwarf64"], "relocatable": ["-g", "-r"], "m32": ["-m32", "-g"]}
COMPILERS = {"gcc": "gcc", "clang": "clang", "riscv": "riscv64-linux-gnu-gcc",
             "arm": "aarch64-linux-gnu-gcc"}


def sh(folder, *command):
    """False: it did not work here."""
    try:
        return subprocess.run([str(c) for c in command], cwd=folder, capture_output=True,
                              timeout=120).returncode == 0
    except OSError:
        return False


def keep(target, **files):
    """A seed folder of these files, whole or not at all."""
    part = target.with_name("." + target.name)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, path in files.items():
        shutil.copyfile(path, part / name.replace("_", "."))
    part.rename(target)


def make_compiled(folder, work):
    for compiler, program in COMPILERS.items():
        for name, flags in C_FLAGS.items():
            out = work / f"{compiler}-{name}"
            if sh(work, program, *flags, "-o", out, "a.c", "b.c"):
                keep(folder / out.name, main=out)
    for compiler in "g++", "clang++":
        out = work / compiler
        if sh(work, compiler, "-g", "-O1", "-o", out, "c.cc"):
            keep(folder / compiler, main=out)
    split = work / "split"
    if sh(work, "gcc", "-g", "-gsplit-dwarf", "-o", split, "a.c", "b.c"):
        keep(folder / "split", main=split)
    if sh(work, "gcc", "-O1", "-gdwarf-4", "-gsplit-dwarf", "-c", "a.c", "b.c") and \
            sh(work, "gcc", "-o", "packed", "a.o", "b.o") and sh(work, "dwp", "-e", "packed"):
        keep(folder / "package", main=work / "packed", main_dwp=work / "packed.dwp")


def make_separate(folder, work):
    """A stripped program and its debug file; two programs and what dwz moved out of them; a
    program with its symbols packed."""
    if not sh(work, "gcc", "-g", "-O2", "-Wl,--build-id=none", "-o", "linked", "a.c", "b.c"):
        return
    if sh(work, "objcopy", "--only-keep-debug", "linked", "main.debug") and \
            sh(work, "objcopy", "--strip-all", "--add-gnu-debuglink=main.debug", "linked", "main"):
        keep(folder / "debuglink", main=work / "main", main_debug=work / "main.debug")
    if sh(work, "cp", "linked", "one") and sh(work, "cp", "linked", "two") and \
            sh(work, "dwz", "-m", "alt.debug", "-M", "alt.debug", "one", "two"):
        keep(folder / "dwz", main=work / "one", alt_debug=work / "alt.debug")
    if sh(work, "objcopy", "--strip-debug", "linked", "small") and \
            sh(work, "xz", "--keep", "--force", "small") and \
            sh(work, "objcopy", "--strip-all", "--add-section=.gnu_debugdata=small.xz", "linked",
               "mini"):
        keep(folder / "mini", main=work / "mini")


def make_elf(folder, work):
    for name, text in ("a.c", SOURCE_C), ("b.c", SOURCE_OTHER), ("c.cc", SOURCE_CC):
        (work / name).write_text(text)
    make_compiled(folder, work)
    make_separate(folder, work)
    for path in map(Path, INSTALLED):
        if path.exists():
            keep(folder / path.name, main=path)
    for path in sorted((CORPUS / "elf").iterdir()):
        keep(folder / f"made-{path.name}", main=path)


def make_maps(folder, work):
    lines = "".join(f"{0x1000 + 16 * i:x} 10 LazyCompile:*f{i} /srv/app/{i % 7}.js:{i}\n"
                    for i in range(1000))
    (work / "many").write_text(lines)
    for path in [work / "many", *sorted((CORPUS / "perf_map").iterdir())]:
        keep(folder / path.name, main=path)


def make_dumps(folder, work):
    for path in sorted((CORPUS / "jitdump").iterdir()):
        keep(folder / path.name, main=path)


def make(corpus):
    """{kind: folder of seeds} below `corpus`."""
    work = corpus / "work"
    work.mkdir(parents=True, exist_ok=True)
    folders = {}
    for kind, maker in ("elf", make_elf), ("perf_map", make_maps), ("jitdump", make_dumps):
        folders[kind] = folder = corpus / "seeds" / kind
        if not folder.exists():
            part = corpus / "seeds" / f".{kind}"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            maker(part, work)
            part.rename(folder)
    return folders


def spread(corpus, folders, build):
    """What fuzzers in one process begin with besides tests/fuzz/corpus: small files of the same. Also
    for targets that do not run this time."""
    for name in "elf", "segment", "rollup":
        (corpus / name).mkdir(parents=True, exist_ok=True)
    for seed in folders["elf"].iterdir():
        for path in seed.iterdir():
            if path.stat().st_size <= SMALL_BYTES:
                shutil.copyfile(path, corpus / "elf" / f"{seed.name}-{path.name}")
    recorded = corpus / "work" / "recorded.mperf"
    if not recorded.exists():
        done = subprocess.run([build / "mperfctl", "record", "-e", "cpu-clock", "-o", recorded,
                               "--", "sh", "-c", "ls / >/dev/null"], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"no recording among the seeds: {done.stderr.strip()}", file=sys.stderr)
            return
    if recorded.stat().st_size <= RECORDED_BYTES:
        for name in "segment", "rollup":
            shutil.copyfile(recorded, corpus / name / "recorded")
