# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs from Debian's source packages, each built twice from untouched copies: by plain clang
and by mperf-cc of the same version. What each build cost, what its tests say, what it counted."""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from machine import ROOT, Skip

sys.path.insert(0, str(ROOT / "llvm-pass" / "tests"))
from kernels import versions  # noqa: E402

COMMAND_SECONDS = 900  # the longest is SQLite's compilation on a busy machine
ROUNDS = 5             # of plain and counted runs, in turns
PLAIN, COUNTED = "plain", "counted"
PASS = "functions=1"   # options of the pass; rows of functions are looked at


def version(build):
    """The newest LLVM that there is a plugin for."""
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    return found[-1]


def compilers(build, flavour):
    """CC and CXX."""
    if flavour == COUNTED:
        return str(build / "mperf-cc"), str(build / "mperf-c++")
    return f"clang-{version(build)}", f"clang++-{version(build)}"


def clean_environment(**changes):
    """Ours, without what would change a compiler, the runtime or make."""
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("MPERF_", "MAKE", "MFLAGS")) and k not in ("CFLAGS", "LDFLAGS")}
    return dict(kept, LC_ALL="C", MPERF_FEED="", **{"MPERF_PASS": PASS, **{k: str(v) for k, v in changes.items()}})


def run(*command, cwd=None, stdin=None, status=0, **variables):
    """What a command printed on both streams; it must end as expected."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=clean_environment(**variables),
                          stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, text=True, errors="replace")
    assert done.returncode == status, (f"{' '.join(map(str, command))}: exit {done.returncode}\n"
                                       f"{done.stdout[-3000:]}")
    return done.stdout


def processor_seconds(*command, **options):
    """What a command and its children took of processors, and what it printed."""
    before = os.times()
    said = run(*command, **options)
    after = os.times()
    return (after.children_user + after.children_system
            - before.children_user - before.children_system), said


def source(build, package):
    """A Debian source package, unpacked once; Skip where there is none to be had."""
    folder = build / "workloads" / "sources"
    done = subprocess.run([ROOT / "tests" / "workloads" / "debian-source", package, folder], text=True,
                          capture_output=True, timeout=COMMAND_SECONDS)
    if done.returncode != 0:
        raise Skip(f"no source of {package}: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


def repository(build, name, address, tag, commit):
    """A tag of a repository, checked out once; MPERF_NAME_REPOSITORY overrides where from. Skip where it is
    not to be reached."""
    folder = build / "workloads" / "sources" / name
    done = folder / ".git" / "mperf-done"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    address = os.environ.get(f"MPERF_{name.split('-')[0].upper()}_REPOSITORY", address)
    fetched = subprocess.run(["git", "-C", folder, "fetch", "-q", "--depth=1", address, f"refs/tags/{tag}"],
                             capture_output=True, text=True, timeout=300)
    if fetched.returncode != 0:
        raise Skip(f"no {name}: {fetched.stderr.strip()[-200:]}")
    got = run("git", "-C", folder, "rev-parse", "FETCH_HEAD^{commit}").strip()
    assert got == commit, f"{tag} is another commit now: {got}"
    run("git", "-C", folder, "checkout", "-q", commit)
    done.touch()
    return folder


def copies(build, package):
    """{flavour: a fresh copy of its source}."""
    original = source(build, package)
    return {flavour: fresh(build, package, flavour, original) for flavour in (PLAIN, COUNTED)}


def folder_of(build, package, flavour):
    return build / "programs" / package / flavour


def fresh(build, package, flavour, original=None):
    folder = folder_of(build, package, flavour)
    shutil.rmtree(folder, ignore_errors=True)
    if original:
        shutil.copytree(original, folder, symlinks=True)
    else:
        folder.mkdir(parents=True)
    return folder


def code_and_text(path):
    """Bytes of machine code in a file or archive; and with it what else is read-only, as size has it."""
    sections = run("objdump", "-h", path)
    code = sum(int(size, 16) for size in re.findall(
        r"^ +\d+ \S+ +([0-9a-f]{8}) .*\n.*\bCODE\b", sections, re.M))
    return code, sum(int(line.split()[0]) for line in run("size", path).splitlines()[1:])


def size_ratios(build, files, runtime=True):
    """Counted over plain, {flavour: file}, without the runtime where it was linked."""
    own = code_and_text(build / "libmperf-runtime.a") if runtime else (0, 0)
    plain, counted = code_and_text(files[PLAIN]), code_and_text(files[COUNTED])
    return {"code": (counted[0] - own[0]) / plain[0], "code and tables": (counted[1] - own[1]) / plain[1]}


def run_ratio(commands, **options):
    """Counted over plain, median of processor seconds, of runs in turns; {flavour: command}."""
    seconds = {PLAIN: [], COUNTED: []}
    for i in range(ROUNDS):
        for flavour in (PLAIN, COUNTED) if i % 2 else (COUNTED, PLAIN):
            seconds[flavour].append(processor_seconds(*commands[flavour], **options)[0])
    return statistics.median(seconds[COUNTED]) / statistics.median(seconds[PLAIN])


def tell(what, **ratios):
    print(f"    {what}: " + ", ".join(f"{name} {value:.2f}" if isinstance(value, float)
                                      else f"{name} {value}" for name, value in ratios.items()), flush=True)


def roofline(build, output, *arguments):
    """The rows of what a program wrote."""
    said = run(build / "mperfctl", "roofline", "-i", output, "--json", "--limit", 0, *arguments,
               MPERF_SOCKET="")
    return json.loads(said)["rows"]


def rows_of_run(build, output, *command, **options):
    """Run it with its counts written to a file; the rows of its loops, and of its functions."""
    Path(output).unlink(missing_ok=True)
    run(*command, MPERF_OUTPUT=output, **options)
    return roofline(build, output), roofline(build, output, "--by", "function")


def functions(rows):
    return {row["function"] for row in rows}
