# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime's tests share: programs of tests/runtime, built and run, and what they told."""
import collections
import os
import subprocess

from feed import Program, read_file
from machine import BAD_WORDS, ROOT, Folder, making

SOURCES = ROOT / "tests" / "runtime"
SANITIZE = {"asan": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]}
SANITIZING = {"cc": "clang", "c++": "clang++"}  # whose sanitizers are those of the runtime in build/asan
A, B, C = 4, 5, 6    # counters of program.c
TIMED, TIME = 2, 3   # of its nest
EARLY, LATE = 7, 8
LIBRARY_COUNTERS = 2000
CONSTRUCTED = 7      # what a static constructor counts


def runtime(build):
    return build / "libmperf-runtime.a"


def linked(build, name, *sources, flags=(), compiler="cc", with_runtime=True):
    """A program or library of tests/runtime, built anew where a source or the runtime is newer."""
    target = build / "tests" / "programs" / "runtime" / name
    inputs = [*SOURCES.iterdir(), *(ROOT / "runtime").iterdir(), runtime(build)]
    with making(build, f"{build.name}-{name}"):
        if not target.exists() or target.stat().st_mtime <= max(p.stat().st_mtime for p in inputs):
            link(build, target, sources, flags, compiler, with_runtime)
    return target


def link(build, target, sources, flags, compiler, with_runtime):
    target.parent.mkdir(parents=True, exist_ok=True)
    archive = ["-Wl,-u,__mperf_region_begin", "-Wl,--export-dynamic-symbol=__mperf_*",
               runtime(build)] if with_runtime else []
    if build.name in SANITIZE:
        compiler = SANITIZING.get(compiler, compiler)
    subprocess.run([compiler, "-g", "-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", f"-I{ROOT}",
                    *SANITIZE.get(build.name, []), "-o", target,
                    *(s if s[0] == "/" or s[-2:] == ".o" else SOURCES / s for s in map(str, sources)),
                    *flags, *archive, "-pthread", "-ldl"], check=True)


def program(build):
    return linked(build, "program", "program.c")


def edges(build):
    return linked(build, "edges", "edges.c")


def library(build, **options):
    return linked(build, "library.so", "library.c", flags=["-shared", "-fPIC"],
                  with_runtime=False, **options)


def environment(**changes):
    """The runtime's own variables are only those that a test gives."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MPERF_")}
    clean["ASAN_OPTIONS"] = "detect_leaks=0"  # areas are kept on purpose
    return dict(clean, **{k: str(v) for k, v in changes.items()})


def ran(path, *arguments, status=0, **variables):
    """Run it to its end: it says nothing on standard error, and exits with that status."""
    done = subprocess.run([path, *map(str, arguments)], text=True, capture_output=True, timeout=120,
                          env=environment(**variables))
    everything = f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, everything
    assert not done.stderr and not any(word in everything for word in BAD_WORDS), everything
    return done


def output(path, *arguments, **options):
    """What it told its file."""
    with Folder() as folder:
        ran(path, *arguments, MPERF_OUTPUT=folder / "out", **options)
        told = Program(read_file(folder / "out"))
    assert told.last and told.threads_lost == 0, (told.last, told.threads_lost)
    return told


def outputs(path, *arguments, **options):
    """What each of its processes told a file of its own."""
    with Folder() as folder:
        ran(path, *arguments, MPERF_OUTPUT=folder / "out.%p", **options)
        return [Program(read_file(file)) for file in sorted(folder.iterdir())]


class Told:
    """A program that talks with us over its standard streams, and with a daemon of ours."""

    def __init__(self, folder, path, *arguments, period=20, feed=None, **variables):
        variables.setdefault("MPERF_FEED", feed or folder / "feed")
        self.process = subprocess.Popen(
            [path, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(MPERF_PERIOD=period, **variables))

    def ready(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", (line, self.process.poll(), self.process.stderr.read())

    def go_on(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()

    def ends(self, status=0):
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == status and not errors, (self.process.returncode, errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def library_sums(told, n):
    """The counters of the libraries, which are those objects that have so many."""
    objects = [o for o, m in told.objects.items() if m.n_counters == LIBRARY_COUNTERS]
    assert len(objects) == n, told.objects
    sums = {o: collections.Counter() for o in objects}
    for (_, o, _, counter), value in told.counts.items():
        if o in sums:
            sums[o][counter] += value
    return list(sums.values())
