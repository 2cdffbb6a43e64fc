# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: the kernels of tests/kernels by class, the targets, and how each is built plain
and counted."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from machine import Skip

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "tests" / "kernels"
RUN_SECONDS = 300

# Which marks a kernel is held against. "calls" are what a loop kernel is not: small functions that
# call or copy, of which the issue gives no mark; they are printed and not held.
CLASSES = {
    "loop": {"matmul.c": ["matmul"],
             "loops.c": ["triad", "spmv", "triangular", "stencil", "chase", "histogram", "half_open",
                         "constant_trips"],
             "vectors.c": ["product", "sum32", "sum64", "dot", "gather", "scatter", "bytes"]},
    "branchy": {"loops.c": ["multiple_exits", "bfs"],
                "masks.c": ["filter"],
                "flow.c": ["interpret_switch", "interpret_labels", "claim", "accumulate", "sort"]},
    "masked": {"masks.c": ["masked_store", "masked", "clip", "sum_of_some"]},
    "calls": {"flow.c": ["fibonacci", "jump_out", "copy", "short_loop"]},
}

# What code generators load: of bytes alone.
LOWERED = {"lowered": {"lowered.c": ["dense", "holes", "few", "looked_up", "polynomial", "behind_calls",
                                     "flagged", "truncated", "upper"]}}


def kernels(classes=None):
    """(class, source, kernel) of all."""
    return [(kind, KERNELS / source, name) for kind, files in (classes or CLASSES).items()
            for source, names in files.items() for name in names]


def run(command, **options):
    options.setdefault("timeout", RUN_SECONDS)
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done


class Target:
    """A machine to compile for, and what runs its programs."""

    def __init__(self, name, flags, runner=(), runtime=None):
        self.name, self.flags, self.runner, self.runtime = name, flags, runner, runtime


def x86(name="x86-64 AVX2", flags=("-O3", "-mavx2", "-mfma")):
    known = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    missing = {f.removeprefix("-m") for f in flags if f.startswith("-m")} - known
    if missing:
        raise Skip(f"this machine has no {', '.join(sorted(missing))}")
    return Target(name, [*flags])


def riscv(shop, march, bits=None):
    """A program for qemu-user, static, so that nothing but it is counted. Debian's cross compiler
    brings the C library; the runtime is built with that."""
    if not Path("/usr/riscv64-linux-gnu/lib/libc.a").exists():
        raise Skip("no C library of riscv64; install gcc-riscv64-linux-gnu")
    if not shutil.which("qemu-riscv64"):
        raise Skip("no qemu-riscv64; install qemu-user")
    cpu = f"rv64,v=true,vlen={bits},vext_spec=v1.0" if bits else "rv64"
    return Target(f"{march}, VLEN {bits}" if bits else march,
                  ["-O3", "--target=riscv64-linux-gnu", f"-march={march}", "-static",
                   "-fuse-ld=lld-19"], ("qemu-riscv64", "-cpu", cpu), shop.riscv_runtime())


class Workshop:
    """Builds programs once: plain by the same clang, or counted by mperf-cc."""

    def __init__(self, build, clang="clang-19"):
        self.build, self.clang, self.made = build, clang, set()
        self.folder = build / "bench" / "instrument"
        self.folder.mkdir(parents=True, exist_ok=True)

    def riscv_runtime(self):
        runtime = self.folder / "riscv64" / "libmperf-runtime.a"
        run(["make", "-C", ROOT, f"BUILD={runtime.parent}", "PASS=no", "BPF=no", runtime, "WERROR=",
             "CC=clang-19 --target=riscv64-linux-gnu", "CROSS_LDFLAGS=-fuse-ld=lld-19"])
        return runtime

    def qemu_plugin(self):
        """Counts instructions and bytes. The interface's version follows that of qemu."""
        said = run(["qemu-riscv64", "--version"]).stdout
        version = 1 if int(re.search(r"version (\d+)\.", said)[1]) < 9 else 2
        plugin = self.folder / "qemu.so"
        run(["cc", "-O2", "-shared", "-fPIC", f"-DPLUGIN_VERSION={version}", "-o", plugin,
             Path(__file__).with_name("qemu.c")])
        return plugin

    def tool(self, source):
        """A program of this folder's."""
        program = self.folder / source.removesuffix(".c")
        run(["cc", "-O2", "-o", program, Path(__file__).with_name(source)])
        return program

    def program(self, target, sources, counted, more=(), words=""):
        """words: options of the pass."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", f"{sources[0].stem} {self.clang} {target.name} {' '.join(more)}"
                      f" {words} {'counted' if counted else 'plain'}")
        program = self.folder / name
        if name in self.made:
            return program
        self.made.add(name)
        environment = dict(os.environ, MPERF_CLANG=self.clang, MPERF_PASS=words if counted else "off")
        if target.runtime:
            environment["MPERF_RUNTIME"] = str(target.runtime)
        cxx = any(s.suffix == ".cc" for s in sources)
        run([self.build / ("mperf-c++" if cxx else "mperf-cc"), *target.flags, *more, "-o", program,
             *sources, "-lm", f"-I{ROOT}/runtime", "-Wno-unused-command-line-argument"],
            env=environment)
        return program
