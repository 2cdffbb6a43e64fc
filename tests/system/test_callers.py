# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How callers are found: by unwind tables unless told otherwise, whatever is recorded, and through the service
as without one."""
import json
import platform
import shutil
import subprocess

from machine import Folder, Skip, compile_program, mperfctl, need_program, refused
from rates import rate_allowed
from service import Service

NOTE = "callers by unwind tables"
PYTHON = "/usr/bin/python3"
LOOP = ["-c", "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: sum(range(5000))"]
ENDLESS = ["-c", "while True: sum(range(5000))"]


def need_python():
    """Debian's, whose code keeps no frame pointers on these machines."""
    if platform.machine() not in ("x86_64", "riscv64"):
        raise Skip(f"{platform.machine()} keeps frame pointers")
    return need_program(PYTHON)


def measured(build, folder, *arguments, run=mperfctl):
    """The share of python's stacks that have four frames or more, and the notes."""
    file = folder / "run.mprf"
    first = (build,) if run is mperfctl else ()
    run(*first, "record", "-f", "-F", rate_allowed(499), "-o", file, *arguments)
    only = ["--comm", "python3"]
    folded = mperfctl(build, "flamegraph", "-i", file, "--folded", *only).stdout
    stacks = [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2])) for line in folded.splitlines()]
    deep = sum(n for frames, n in stacks if len(frames) > 4) / sum(n for _, n in stacks)
    answer = json.loads(mperfctl(build, "hotspots", "-i", file, "--json", *only).stdout)
    return deep, " ".join(answer["provenance"]["notes"])


def of_all_targets(build, folder, run=mperfctl):
    python = need_python()
    deep, notes = measured(build, folder, "--", python, *LOOP, run=run)
    assert deep > 0.9 and NOTE in notes, ("a command", deep, notes)
    with subprocess.Popen([python, *ENDLESS]) as running:
        try:
            for target in ["--pid", str(running.pid)], ["-a"]:
                deep, notes = measured(build, folder, *target, "--for", "1s", run=run)
                assert deep > 0.9 and NOTE in notes, (target, deep, notes)
        finally:
            running.kill()


def test_callers_are_found_by_tables_whatever_is_recorded(build):
    with Folder() as folder:
        of_all_targets(build, folder)


def test_it_is_the_same_through_the_service(build):
    with Folder() as folder, Service(build, folder, callers="tables") as service:
        of_all_targets(build, folder, run=service.ctl)


def test_all_of_a_service_with_frame_pointers_is_recorded_as_it_is_sampled(build):
    python = need_python()
    with Folder() as folder, Service(build, folder, callers="fp") as service:
        with subprocess.Popen([python, *ENDLESS]) as running:
            try:
                deep, notes = measured(build, folder, "-a", "--for", "1s", run=service.ctl)
                assert deep < 0.5 and NOTE not in notes, (deep, notes)
                deep, notes = measured(build, folder, "--pid", str(running.pid), "--for", "1s", run=service.ctl)
                assert deep > 0.9 and NOTE in notes, (deep, notes)
            finally:
                running.kill()


def test_g_chooses(build):
    python = need_python()
    with Folder() as folder:
        for chosen, by_tables, least, most in ((["-g", "fp"], False, 0, 0.5), (["-g", "none"], False, 0, 0),
                                               (["-g"], True, 0.9, 1), (["-g", "tables,16384"], True, 0.9, 1),
                                               (["-g", "dwarf"], True, 0.9, 1), (["-e", "cpu-clock"], False, 0, 0.5)):
            deep, notes = measured(build, folder, *chosen, "--", python, *LOOP)
            assert (NOTE in notes) == by_tables and least <= deep <= most, (chosen, notes, deep)


def test_what_cannot_run_is_refused_in_one_line(build):
    with Folder() as folder:
        copy = folder / "copy"
        shutil.copyfile(need_python(), copy)
        refused(mperfctl(build, "record", "--", copy, check=False, cwd=folder), 126, "cannot run")
        refused(mperfctl(build, "record", "--", folder / "absent", check=False, cwd=folder), 127, "absent")
