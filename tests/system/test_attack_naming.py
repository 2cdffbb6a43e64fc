# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mallory's files and stacks against the namer: what they end is not Victor's naming."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from attacked import DAEMON, MALLORY, VICTOR, Stage, as_user, shared
from machine import Folder, mperfctl, need_program, need_root
from service import wait_until

SECONDS = 60
BY_ITSELF = "its parsers keep the harts busy, and what waits for a name beside them waits long"

# Until it has had so much CPU time: a loaded machine gives it little.
SPIN = """
#include <time.h>
#include <stdlib.h>
__attribute__((noinline)) void FUNCTION(double seconds) {
	volatile unsigned long x = 1;
	while ((double)clock() / CLOCKS_PER_SEC < seconds)
		for (int i = 0; i < 100000; i++) x = x * 3 + 1;
}
"""
MAIN = "int main(int argc, char **argv) { FUNCTION(atof(argv[1])); return argc == 9; }\n"
LOAD = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv) {
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*spin)(double) = library ? (void (*)(double))dlsym(library, "spin_in_library") : 0;
	if (!spin) return 1;
	spin(atof(argv[2]));
	return argc == 9;
}
"""
MANY_SYMBOLS = 400_000  # the parser reads them for some tenths of a second

_stage, _trapped, _alone = [], [], []


class Trapped(Stage):
    """A service whose parser ends over files that ask for it."""

    def start(self, ready=True, **popen):
        shutil.copy(self.build / "test-namer" / "mperf-namer", self.folder / "mperf-namer")
        return super().start(ready, **popen)


def stage(build):
    return shared(_stage, lambda: Stage(build, flush="1s"))


def trapped(build):
    return shared(_trapped, lambda: Trapped(build, flush="1s"))


def compiled(service, uid, name, text, *flags):
    """A program of this user's, in their home."""
    source = service.folder / f"{name}.c"
    source.write_text(text)
    target = service.homes[uid] / name
    subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", target, source, *flags],
                   check=True)
    os.chown(target, uid, uid)
    return target


def spinner(service, uid, function):
    return compiled(service, uid, function, SPIN.replace("FUNCTION", function) +
                    MAIN.replace("FUNCTION", function))


def run_as(uid, *command):
    return subprocess.Popen(as_user(uid, *command), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def functions(service, uid):
    done = service.user(uid, "hotspots", "--limit", "0", "--json")
    return {row["function"] for row in json.loads(done.stdout)["rows"]} if done.stdout else set()


def victor_is_named(service, function):
    """A new program of Victor's: its function's name comes."""
    program = run_as(VICTOR, spinner(service, VICTOR, function), 20)
    try:
        wait_until(f"{function} is named", lambda: function in functions(service, VICTOR))
    finally:
        program.kill()
        program.wait()


def copies(service, original, n):
    """That many of Mallory's, each a file of its own."""
    for i in range(n):
        copy = original.with_name(f"{original.name}-{i}")
        shutil.copy(original, copy)
        os.chown(copy, MALLORY, MALLORY)
        yield copy


def run_all(programs, seconds, at_a_time=10):
    programs = list(programs)
    for i in range(0, len(programs), at_a_time):
        for process in [run_as(MALLORY, p, seconds) for p in programs[i:i + at_a_time]]:
            process.wait()


def evil(service, section):
    program = spinner(service, MALLORY, f"evil_{section}")
    empty = service.folder / "empty"
    empty.write_bytes(b"x")
    subprocess.run(["objcopy", "--add-section", f".mperf.test.{section}={empty}", program],
                   check=True)
    return program


def doctors_answer_while_refused(service):
    """What doctor says to Mallory. It measures first, and a pause may be over before it is done; so of
    further crashes, until one pause lasted longer."""
    for attempt in range(4):
        doctor = service.user(MALLORY, "doctor").stdout
        if any(row["uid"] == MALLORY for row in service.ask("status")["naming_refused"]):
            return doctor
        run_all(copies(service, evil(service, "crash"), 8 << attempt), 0.15)
    raise AssertionError("no pause lasted as long as doctor takes")


def test_files_that_end_the_parser_cost_their_user_naming_and_nobody_else(build):
    service = trapped(build)
    # 70: more than any number of restarts that was once for a service's whole life
    run_all(copies(service, evil(service, "crash"), 70), 0.15)
    victor_is_named(service, "victors_after_crashes")

    status = service.ask("status")
    naming = status["naming"][0]
    assert naming["state"] == "on" and 4 <= naming["deaths"] <= 12, status["naming"]
    assert [row["uid"] for row in status["naming_refused"]] == [MALLORY], status["naming_refused"]
    assert {row["worker"] for row in status["namer"]} == {"opener", "parser"}, status["namer"]
    # each sees only themselves
    told = {uid: json.loads(service.user(uid, "status", "--json").stdout)["naming_refused"]
            for uid in (MALLORY, VICTOR)}
    assert len(told[MALLORY]) == 1 and told[VICTOR] == [], told
    doctor = service.user(VICTOR, "doctor").stdout
    assert "naming is paused for you" not in doctor, doctor
    assert "the service's opener" in doctor, doctor
    assert "naming is paused for you" in doctors_answer_while_refused(service)
    # the log has it, and not much of it
    lines = [line for line in service.said().splitlines() if "naming is paused" in line]
    assert 1 <= len(lines) <= 12 and f"user {MALLORY}" in lines[0], lines
    assert "evil_crash" not in service.said()


# A program that nobody may read, with files that everybody may write to: its user is charged for them.
HIDDEN_FILES = 24


def test_files_of_a_hidden_program_that_end_the_parser_cost_its_user_naming(build):
    service = shared(_alone, lambda: Trapped(build, flush="1s"))
    library = compiled(service, MALLORY, "evil.so", SPIN.replace("FUNCTION", "spin_in_library"),
                       "-shared", "-fPIC")
    subprocess.run(["objcopy", "--add-section", f".mperf.test.crash={service.config}", library], check=True)
    load = compiled(service, MALLORY, "load", LOAD, "-ldl")
    os.chmod(load, 0o111)
    # by a shell of Mallory's: setpriv execs while it still may read anything
    shell = Path(service.folder) / "each.sh"
    shell.write_text(f'for l in "$@"; do {load} "$l" 0.15 & n=$((n + 1)); [ $((n % 8)) = 0 ] && wait; done; wait\n')
    files = list(copies(service, library, HIDDEN_FILES))
    for file in files:
        os.chmod(file, 0o666)
    run_as(MALLORY, "sh", shell, *files).wait()
    refused = wait_until("naming is paused for Mallory", lambda: service.ask("status")["naming_refused"])
    assert [row["uid"] for row in refused] == [MALLORY], refused
    assert service.ask("status")["naming"][0]["deaths"] < HIDDEN_FILES
    victor_is_named(service, "victors_after_hidden_crashes")


def test_files_that_take_the_parser_long_delay_nobody_by_more_than_one_each(build):
    service = trapped(build)
    before = service.ask("status")["naming"][0]["deaths"]
    slow = [run_as(MALLORY, p, 10) for p in copies(service, evil(service, "slow"), 40)]
    try:
        victor_is_named(service, "victors_beside_slow_files")
    finally:
        for process in slow:
            process.kill()
            process.wait()
    status = service.ask("status")
    # files of the test before may be tried again, once their pause is over
    assert status["naming"][0]["deaths"] <= before + 2, (status["naming"], status["namer"], service.said())


def test_a_symbol_table_cut_under_the_parser_costs_its_user_alone(build):
    service = stage(build)
    symbols = "".join(f"s{i}: nop\n" for i in range(MANY_SYMBOLS))
    (service.folder / "many.s").write_text(f".text\n{symbols}.section .note.GNU-stack,\"\"\n")
    library = compiled(service, MALLORY, "library.so",
                       SPIN.replace("FUNCTION", "spin_in_library"), "-shared", "-fPIC",
                       service.folder / "many.s")
    load = compiled(service, MALLORY, "load", LOAD, "-ldl")
    # eight tries, of which three that were seen there are enough
    tries = (cut_under_the_parser(service, load, copy) for copy in copies(service, library, 8))
    ended = sum(itertools.islice(filter(None, tries), 3))
    naming = service.ask("status")["naming"][0]
    assert ended > 0 and 0 < naming["deaths"] <= 8, (ended, naming)
    victor_is_named(service, "victors_after_cut_files")


def cut_under_the_parser(service, load, library):
    """Truncate it while the parser has it mapped. True: it was seen there."""
    parser = next(int(row["pid"]) for row in service.ask("status")["namer"]
                  if row["worker"] == "parser")
    maps = Path(f"/proc/{parser}/maps")
    name = library.name
    process = run_as(MALLORY, load, library, 6)
    try:
        while process.poll() is None:
            try:
                if name in maps.read_text():
                    os.truncate(library, 8192)
                    return True
            except OSError:
                return False  # that parser is gone
        return False
    finally:
        process.kill()
        process.wait()


# More than the parser keeps the call frame information of, at the same time.
MANY = ["--", "sh", "-c", "for i in $(seq 64); do timeout 4 sh -c 'while :; do :; done' & done; wait"]


def test_a_recording_of_more_processes_than_the_parser_keeps_is_written(build):
    need_root()
    with Folder() as folder:
        done = mperfctl(build, "record", "-g", "dwarf", "-o", folder / "recording", *MANY, check=False)
        assert done.returncode == 0 and (folder / "recording").exists(), done.stderr


def test_a_recording_of_more_processes_than_the_parser_keeps_ends_nobody(build):
    service = stage(build)
    command = ["record", "-g", "dwarf", "-o"], MANY
    mine = service.homes[MALLORY] / "recording"
    done = service.user(MALLORY, *command[0], mine, *command[1])
    assert done.returncode == 0 and mine.exists(), done.stderr
    # of all that root may see, stacks of all of them are unwound at the same time
    done = service.ctl(*command[0], service.folder / "recording", *command[1], check=False)
    assert done.returncode == 0, (done.stderr, service.said())
    assert service.process.poll() is None, service.said()
    assert service.ask("status")["account"]


def allow_processes(service, n):
    """Set the daemon's own limit: its user may, where this root may not."""
    subprocess.run(as_user(DAEMON, "prlimit", f"--pid={service.process.pid}", f"--nproc={n}:"),
                   check=True)


def test_a_worker_that_cannot_be_forked_is_tried_again(build):
    service = stage(build)
    need_program("prlimit")
    limit = Path(f"/proc/{service.process.pid}/limits").read_text()
    before = re.search(r"^Max processes +(\w+) ", limit, re.M)[1]
    parser = next(row for row in service.ask("status")["namer"] if row["worker"] == "parser")
    allow_processes(service, 1)
    try:
        os.kill(int(parser["pid"]), signal.SIGKILL)
        failed = wait_until("it cannot be started", lambda: next(
            (row for row in service.ask("status")["namer"] if row["trouble"]), None))
        assert failed["worker"] == "parser" and failed["state"] == "failed", failed
        assert failed["restarts"] == int(parser["restarts"]) + 1, (parser, failed)
    finally:
        allow_processes(service, before)
    victor_is_named(service, "victors_after_a_failed_fork")
