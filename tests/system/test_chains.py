# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that keep no frame pointers: record, hotspots and flamegraph see it before they run and find
callers by unwind tables; programs that keep them are sampled as cheaply as ever."""
import json
import platform
import shutil
import subprocess

from machine import Folder, Skip, compile_program, mperfctl, need_program, refused
from rates import rate_allowed
from service import Service

SAYS = "built without frame pointers"
NOTE = "callers by unwind tables"
PYTHON = "/usr/bin/python3"
LOOP = ["-c", "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: sum(range(5000))"]


def need_python():
    """Debian's, whose code keeps no frame pointers on these machines."""
    if platform.machine() not in ("x86_64", "riscv64"):
        raise Skip(f"{platform.machine()} keeps frame pointers")
    return need_program(PYTHON)


def measured(build, folder, *arguments, run=mperfctl):
    """What record says on stderr, the share of stacks that have four frames or more, and the notes."""
    file = folder / "run.mprf"
    first = (build,) if run is mperfctl else ()
    said = run(*first, "record", "-F", rate_allowed(499), "-o", file, *arguments).stderr
    folded = mperfctl(build, "flamegraph", "-i", file, "--folded").stdout
    stacks = [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2])) for line in folded.splitlines()]
    deep = sum(n for frames, n in stacks if len(frames) > 4) / sum(n for _, n in stacks)
    answer = json.loads(mperfctl(build, "hotspots", "-i", file, "--json").stdout)
    return said, deep, " ".join(answer["provenance"]["notes"])


def test_a_command_without_frame_pointers_is_unwound_and_says_so(build):
    python = need_python()
    with Folder() as folder:
        said, deep, notes = measured(build, folder, "--", python, *LOOP)
        assert said.count(SAYS) == 1 and "-g fp" in said and NOTE in notes, (said, notes)
        assert deep > 0.9, deep


def test_g_fp_insists_and_g_none_stays_none(build):
    python = need_python()
    with Folder() as folder:
        said, deep, notes = measured(build, folder, "-g", "fp", "--", python, *LOOP)
        assert SAYS not in said and NOTE not in notes and deep < 0.5, (said, notes, deep)
        said, deep, notes = measured(build, folder, "-g", "none", "--", python, *LOOP)
        assert SAYS not in said and NOTE not in notes and deep == 0, (said, notes, deep)
        # without a word it is the default
        said, _, notes = measured(build, folder, "-g", "--", python, *LOOP)
        assert SAYS in said and NOTE in notes, (said, notes)


def test_a_command_that_keeps_frame_pointers_is_not_unwound(build):
    with Folder() as folder:
        said, _, notes = measured(build, folder, "--", compile_program(build, "known.c"), "spin", "300")
        assert SAYS not in said and NOTE not in notes, (said, notes)


def test_it_is_the_same_through_the_service(build):
    python = need_python()
    with Folder() as folder, Service(build, folder) as service:
        said, deep, notes = measured(build, folder, "--", python, *LOOP, run=service.ctl)
        assert said.count(SAYS) == 1 and NOTE in notes and deep > 0.9, (said, notes, deep)
        said, _, notes = measured(build, folder, "--", compile_program(build, "known.c"), "spin", "300",
                                  run=service.ctl)
        assert SAYS not in said and NOTE not in notes, (said, notes)


def test_hotspots_and_flamegraph_do_it_too(build):
    python = need_python()
    with Folder() as folder:
        for command in ["hotspots"], ["flamegraph", "-o", folder / "page.html"]:
            said = mperfctl(build, *command, "--", python, *LOOP, cwd=folder).stderr
            assert said.count(SAYS) == 1, said


def test_a_script_is_judged_by_its_interpreter_and_a_build_by_its_flags(build):
    need_python()
    with Folder() as folder:
        def judged_broken(program, *arguments):
            return SAYS in mperfctl(build, "record", "-f", "-o", folder / "r", "--", program, *arguments).stderr

        script = folder / "script"
        script.write_text(f"#! {PYTHON}\n")
        script.chmod(0o755)
        assert judged_broken(script)
        source = folder / "some.c"
        source.write_text('#include <stdio.h>\n__attribute__((noinline)) int f(int n) { return printf("%d", n) + n; }\n'
                          "int main(int n, char **v) { (void)v; return f(n) * 0 + f(n + 1) * 0; }\n")
        for flags, broken in ((["-fomit-frame-pointer"], True), (["-fno-omit-frame-pointer"], False),
                              (["-static", "-fomit-frame-pointer"], True),
                              # nothing to unwind by
                              (["-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"], False)):
            subprocess.run(["cc", "-O2", "-o", folder / "some", source, *flags], check=True)
            assert judged_broken(folder / "some") == broken, flags
        subprocess.run(["strip", folder / "some"], check=True)
        assert not judged_broken(folder / "some")


def test_what_cannot_run_is_refused_in_one_line(build):
    with Folder() as folder:
        copy = folder / "copy"
        shutil.copyfile(need_python(), copy)
        refused(mperfctl(build, "record", "--", copy, check=False, cwd=folder), 126, "cannot run")
        refused(mperfctl(build, "record", "--", folder / "absent", check=False, cwd=folder), 127, "absent")
