# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the system tests share: the programs under test, the workloads, and this machine."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "tests" / "system"


class Skip(Exception):
    """The machine lacks what the test needs; the text says what."""


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def need_program(name):
    if not shutil.which(name):
        raise Skip(f"needs the program {name}")
    return shutil.which(name)


def plain_build(build):
    """The folder of the plain build, where workloads are kept once for all kinds."""
    return build.parent if build.name in ("asan", "fuzz") else build


def workload(build, name):
    """A workload built by tests/workloads/NAME; its path."""
    done = subprocess.run([ROOT / "tests" / "workloads" / name, plain_build(build)],
                          check=True, stdout=subprocess.PIPE)
    return Path(done.stdout.decode().splitlines()[-1])


def compile_program(build, source, *flags):
    """Compile tests/system/SOURCE into the build folder; its path."""
    target = plain_build(build) / "tests" / "programs" / Path(source).stem
    path = SOURCES / source
    suffix = "".join(c for c in "-".join(flags) if c.isalnum() or c == "-")
    target = target.with_name(target.name + suffix[:80])
    if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        base = [] if "-O0" in flags else ["-O2"]
        subprocess.run(["cc", "-g", *base, "-fno-omit-frame-pointer", "-o", target, path, *flags,
                        "-lpthread"], check=True)
    return target


def mperfctl(build, *arguments, check=True, **options):
    """Run mperfctl to its end; CompletedProcess with text output."""
    options.setdefault("timeout", 180)
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    environment.pop("MPERF_SOCKET", None)
    environment.update(options.pop("env", {}))
    done = subprocess.run([build / "mperfctl", *map(str, arguments)], text=True, errors="replace",
                          capture_output=True, env=environment, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"mperfctl {arguments} exited {done.returncode}\n"
                             f"{done.stdout}\n{done.stderr}")
    for line in done.stderr.splitlines():
        if "Sanitizer" in line or "runtime error" in line:
            raise AssertionError(done.stderr)
    return done


def rows(build, *arguments, **options):
    """The parsed --json answer of a command: {"columns", "rows", "provenance"}."""
    return json.loads(mperfctl(build, *arguments, "--json", **options).stdout)


class Folder(tempfile.TemporaryDirectory):
    """A scratch folder that everybody may enter, gone at the end."""

    def __init__(self):
        super().__init__(prefix="mperf-test-")
        os.chmod(self.name, 0o755)
        self.path = Path(self.name)

    def __enter__(self):
        super().__enter__()
        return self.path
