# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other machines, each below QEMU's user mode with Debian's C library of that kind: the kernels with
counts that are known, Lua and zlib, by mperf-cc --target= as it stands when it is installed."""
import functools
import json
import re
import shutil
from pathlib import Path

from kernels import KERNELS, expectations
from machine import ROOT, Skip
from whole import run, source, tell, version

TRIPLES = {"riscv64": "riscv64-linux-gnu", "arm64": "aarch64-linux-gnu",
           "ppc64el": "powerpc64le-linux-gnu"}
QEMU = {"riscv64": "qemu-riscv64", "arm64": "qemu-aarch64", "ppc64el": "qemu-ppc64le"}
VECTOR_BITS = (128, 256, 512)
# C alone: Debian's cross C++ libraries would come with a whole gcc each. openmp.c wants a library.
SOURCES = ["matmul.c", "loops.c", "flow.c", "vectors.c"]
WORK = ROOT / "tests" / "programs" / "work.lua"


@functools.cache
def staged(build):
    """mperf-cc as installed, with runtimes of the targets."""
    llvm = version(build)
    missing = [t for t in TRIPLES.values() if not Path("/usr", t, "include", "stdio.h").exists()]
    missing += [q for q in QEMU.values() if not shutil.which(q)]
    if missing:
        raise Skip(f"not here: {', '.join(missing)}; make check-programs installs them")
    folder = build / "programs" / "machines" / "usr"
    shutil.rmtree(folder, ignore_errors=True)
    run("make", f"BUILD={build}", f"PASS_VERSIONS={llvm}", f"RUNTIME_TARGETS={' '.join(TRIPLES)}",
        "PREFIX=/usr", f"DESTDIR={folder.parent}", "install-pass", cwd=ROOT)
    for arch in TRIPLES:
        assert (folder / "lib" / "mperf" / arch / "libmperf-runtime.a").exists(), arch
    return folder / "bin" / "mperf-cc"


class Machine:
    """A target, what is compiled for it beyond its least, and how it is run."""

    def __init__(self, build, name, arch=None, flags=(), cpu=None):
        self.build, self.name, self.arch, self.flags = build, name, arch, list(flags)
        self.qemu = [QEMU[arch], "-L", f"/usr/{TRIPLES[arch]}"] if arch else []
        self.qemu += ["-cpu", cpu] if cpu else []
        self.cc = [staged(build)] + ([f"--target={TRIPLES[arch]}"] if arch else [])
        self.folder = build / "programs" / "machines" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def compiled(self, name, *arguments):
        program = self.folder / name
        run(*self.cc, *self.flags, *arguments, "-o", program, "-lm", cwd=self.folder)
        return program

    def run(self, program, *arguments, **options):
        """What it printed, and its rows by function."""
        output = Path(f"{program}.mperf")
        output.unlink(missing_ok=True)
        said = run(*self.qemu, program, *arguments, MPERF_OUTPUT=output, **options)
        rows = run(self.build / "mperfctl", "roofline", "-i", output, "--by", "function", "--json",
                   "--limit", 0, MPERF_SOCKET="")
        return said, json.loads(rows)["rows"]


def native(build):
    return Machine(build, "native")


def machines(build):
    yield Machine(build, "rv64gc", "riscv64", ["-march=rv64gc"])
    for bits in VECTOR_BITS:
        yield Machine(build, f"rv64gcv-{bits}", "riscv64", ["-march=rv64gcv"],
                      f"rv64,v=true,vlen={bits},vext_spec=v1.0")
    yield Machine(build, "arm64", "arm64")
    yield Machine(build, "ppc64el", "ppc64el")


def wrong(rows, source_name):
    """Expected counts that the rows do not have, and how many were looked at."""
    totals = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, (int, float)):
                at = (row["function"], key)
                totals[at] = totals.get(at, 0) + value
    columns = set(rows[0])
    known = [e for e in expectations(KERNELS / source_name) if e[1] in columns]
    return [f"{f} {m}: {totals.get((f, m), 0)}, not {least} to {most}" for f, m, least, most in known
            if not least <= totals.get((f, m), 0) <= most], len(known)


def test_kernels_answer_as_here_and_their_counts_are_exact(build):
    for machine in machines(build):
        looked_at = 0
        for name in SOURCES:
            said, _ = native(build).run(native(build).compiled(name[:-2], "-O2", KERNELS / name))
            got, rows = machine.run(machine.compiled(name[:-2], "-O3", KERNELS / name))
            assert got == said, (machine.name, name, got[-500:], said[-500:])
            bad, n = wrong(rows, name)
            assert not bad, (machine.name, name, bad)
            looked_at += n
        assert looked_at >= 10, looked_at
        tell(machine.name, kernels=len(SOURCES), counts_that_are_exact=looked_at)


def lua(machine):
    sources = [p for p in (source(machine.build, "lua5.4") / "src").glob("*.c") if p.name != "luac.c"]
    header = machine.folder / "lua5.4-deb-multiarch.h"
    header.write_text('#define DEB_HOST_MULTIARCH "here"\n')
    return machine.compiled("lua", "-O2", "-std=gnu99", "-DLUA_USE_LINUX", f"-I{machine.folder}",
                            "-Wl,-E", *sorted(sources))


def flops(rows, function):
    return sum(row["fp64_ops"] for row in rows if row["function"] == function)


def test_lua_answers_as_here_and_its_operations_are_as_many(build):
    said, rows = native(build).run(lua(native(build)), WORK, 1)
    wanted = flops(rows, "luaV_execute")
    assert wanted >= 5 * 100000, wanted
    for machine in machines(build):
        got, rows = machine.run(lua(machine), WORK, 1)
        assert got == said, (machine.name, got, said)
        assert flops(rows, "luaV_execute") == wanted, (machine.name, flops(rows, "luaV_execute"), wanted)
        tell(machine.name, lua_flops=flops(rows, "luaV_execute"))


def test_zlib_compresses_as_here(build):
    book = source(build, "zlib") / "ChangeLog"
    packed, entries = {}, {}
    for machine in (native(build), *machines(build)):
        copy = machine.folder / "zlib"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source(build, "zlib"), copy, symlinks=True)
        cc = " ".join(map(str, machine.cc))
        run("./configure", "--static", cwd=copy, CC=cc, CFLAGS=" ".join(["-O2", *machine.flags]),
            CHOST=TRIPLES.get(machine.arch, ""))
        run("make", "-j2", "minigzip", cwd=copy)
        shutil.copy(book, copy / "book")
        _, rows = machine.run(copy / "minigzip", "-9", copy / "book", cwd=copy)
        packed[machine.name] = (copy / "book.gz").read_bytes()
        entries[machine.name] = [r["entries"] for r in rows if r["function"] == "longest_match"]
    assert len(set(packed.values())) == 1 and len(set(map(str, entries.values()))) == 1, entries
    assert re.search(r"[1-9]", str(entries["native"])), entries
    tell("zlib", machines=len(packed), longest_match_entries=entries["native"][0])
