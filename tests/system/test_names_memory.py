# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that is in no file that a mapping names has its name: BPF programs, text that was replaced in place,
programs out of a memfd; and the callers of 32-bit programs are found."""
import contextlib
import subprocess
import sys

from attacked import UnitService
from machine import (Folder, Skip, compile_program, mperfctl, need_root, rows, SOURCES)
from rates import long_enough, rate_allowed
from service import wait_until

SECONDS = 40


def record(build, path, *arguments, **options):
    """What a program does in its own code."""
    return mperfctl(build, "record", "-F", rate_allowed(999), "-e", "cpu-clock:u", "-g", "none",
                    "-o", path, *arguments, **options)


def functions(build, path, *more):
    return rows(build, "hotspots", "-i", path, "--limit", "0", *more)["rows"]


def share(found, *names, key="function"):
    return sum(r["self"] for r in found if r[key] in names)


@contextlib.contextmanager
def running(*command):
    """A program that says a byte once it is ready; it is ended."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE)
    try:
        if process.stdout.read(1) != b"x":
            if process.wait() == 77:
                raise Skip("the kernel does not load that BPF program")
            raise AssertionError(process.returncode)
        yield process
    finally:
        process.kill()
        process.wait()


# --- BPF -----------------------------------------------------------------------------------------


def need_compiled_bpf():
    need_root()
    with open("/proc/sys/net/core/bpf_jit_enable") as enabled:
        if enabled.read().strip() == "0":
            raise Skip("BPF programs are interpreted here (net.core.bpf_jit_enable)")


def bpf_loop(build):
    need_compiled_bpf()
    program = compile_program(build, "bpf_loop.c")
    with running(program, "tried", "0"):
        return program


def of_bpf(found, name):
    return [r for r in found if r["function"].startswith("bpf_prog_") and r["function"].endswith("_" + name)]


def test_a_bpf_program_has_its_name(build):
    program = bpf_loop(build)
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-g", "none", "-e", "cpu-clock", "-o", folder / "r",
                 "--", program, "my_bpf_loop", long_enough(700))
        found = functions(build, folder / "r", "--comm", "bpf_loop")
        named = of_bpf(found, "my_bpf_loop")
        assert len(named) == 1 and named[0]["self"] > 0.5, found[:5]
        assert named[0]["module"] == f"[{named[0]['function']}]", named
        assert sum(r["self"] for r in found if r["module"] == "[kernel]" and r["function"] == "[unknown]") < 0.05, found[:5]


def test_bpf_programs_that_were_loaded_before_the_service_began_have_their_names(build):
    program = bpf_loop(build)
    with Folder() as folder, running(program, "from_before", "60000") as process:
        with UnitService(build, folder, flush="1s") as service:
            def named():
                found = service.ask("hotspots", "--since", "-5m", "--pid", process.pid, "--limit", "0")["rows"]
                return of_bpf(found, "from_before")
            wait_until("the program of before has its name", named)


def test_code_of_the_kernel_that_is_in_no_list_is_a_module_of_its_own(build):
    need_compiled_bpf()
    with open("/proc/kallsyms") as symbols:
        if not int(symbols.read(16), 16):
            raise Skip("the kernel hides where its text is (kernel.kptr_restrict)")
    program = compile_program(build, "filtered.c")
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-g", "none", "-e", "cpu-clock", "-o", folder / "r",
                 "--", program, long_enough(700))
        found = functions(build, folder / "r", "--comm", "filtered")
        unlisted = [r for r in found if r["module"] == "[kernel_unlisted]"]
        assert [r["function"] for r in unlisted] == ["[unknown]"] and unlisted[0]["self"] > 0.25, found[:5]
        assert share(found, "[kernel]", key="module") > 0, found[:5]


# --- text without its file -----------------------------------------------------------------------


def test_text_that_was_replaced_by_anonymous_memory_keeps_its_names(build):
    program = compile_program(build, "remapped.c")
    with Folder() as folder:
        record(build, folder / "r", "--", program, "same", long_enough(700))
        found = functions(build, folder / "r", "--comm", "remapped")
        assert min(share(found, "moved"), share(found, "moved_too")) > 0.3, found[:5]
        assert {r["module"] for r in found if r["function"].startswith("moved")} == {str(program)}, found[:5]


def test_text_that_was_replaced_before_it_is_looked_at_has_its_names(build):
    program = compile_program(build, "remapped.c")
    with Folder() as folder, running(program, "same", "60000") as process:
        record(build, folder / "r", "--pid", process.pid, "--for", f"{long_enough(700)}ms")
        found = functions(build, folder / "r")
        assert min(share(found, "moved"), share(found, "moved_too")) > 0.3, found[:5]


def test_other_code_in_the_place_of_text_does_not_get_its_names(build):
    program = compile_program(build, "remapped.c")
    with Folder() as folder:
        record(build, folder / "r", "--", program, "other", long_enough(700))
        found = functions(build, folder / "r", "--comm", "remapped")
        assert share(found, "moved", "moved_too") < 0.05, found[:5]
        assert share(found, "[anonymous]", key="module") > 0.8, found[:5]


# --- memfd ---------------------------------------------------------------------------------------

HOT = """
#include <time.h>
#include <unistd.h>
volatile unsigned long n;
__attribute__((noinline)) void hot_one(void) { for (int i = 0; i < 100000; i++) n += 3; }
__attribute__((noinline)) void hot_two(void) { for (int i = 0; i < 100000; i++) n ^= 5; }
int main(int argc, char **argv) {
	if (write(1, "x", 1) != 1) return 1;
	clock_t end = clock() + CLOCKS_PER_SEC / 1000 * MS;
	while (clock() < end) { hot_one(); hot_two(); }
	return 0;
}
"""
EXECUTE = """
import os, sys
fd = os.memfd_create("payload", os.MFD_CLOEXEC)
with open(sys.argv[1], "rb") as program:
    os.write(fd, program.read())
os.execve(fd, ["payload"], os.environ)
"""


def out_of_memfd(folder, milliseconds):
    """The command of a program that is executed out of a memfd."""
    (folder / "hot.c").write_text(HOT)
    subprocess.run(["gcc", "-O1", "-g", f"-DMS={milliseconds}", "-o", folder / "hot", folder / "hot.c"], check=True)
    return [sys.executable, "-c", EXECUTE, folder / "hot"]


def check_payload(found):
    assert min(share(found, "hot_one"), share(found, "hot_two")) > 0.2, found[:5]
    modules = {r["module"].rsplit("/", 1)[-1] for r in found if r["function"].startswith("hot_")}
    assert modules == {"memfd:payload"}, found[:5]


def test_a_program_out_of_a_memfd_is_named(build):
    with Folder() as folder:
        command = out_of_memfd(folder, long_enough(900))
        record(build, folder / "r", "--", *command)
        found = functions(build, folder / "r")
        inside = [r for r in found if "python" not in (r["module"] or "")]
        total = sum(r["self"] for r in inside)
        check_payload([{**r, "self": r["self"] / total} for r in inside])


def test_a_program_that_ran_out_of_a_memfd_before_is_named(build):
    with Folder() as folder, running(*out_of_memfd(folder, 60000)) as process:
        record(build, folder / "r", "--pid", process.pid, "--for", f"{long_enough(700)}ms")
        check_payload(functions(build, folder / "r"))


# --- 32 bits -------------------------------------------------------------------------------------


def narrow(folder):
    program = folder / "narrow"
    done = subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-m32", "-ffreestanding", "-fno-stack-protector",
                           "-nostdlib", "-static", "-o", program, SOURCES / "narrow.c"], capture_output=True)
    if done.returncode != 0:
        raise Skip("cc builds no 32-bit programs here")
    try:
        subprocess.run([program, "1", "0"], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        raise Skip("this kernel runs no 32-bit programs") from None
    return program


def test_callers_of_a_32_bit_program_are_found(build):
    with Folder() as folder:
        program = narrow(folder)
        mperfctl(build, "record", "-F", rate_allowed(999), "-e", "cpu-clock:u", "-g", "dwarf", "-o", folder / "r",
                 "--", program, "5", long_enough(700) // 10)
        lines = mperfctl(build, "flamegraph", "--folded", "-i", folder / "r").stdout.splitlines()
        stacks = [line.rsplit(" ", 1) for line in lines if "spin" in line]
        whole = ";_start;begin;" + "descend;" * 5 + "spin"
        total = sum(int(n) for _, n in stacks)
        found = sum(int(n) for stack, n in stacks if stack.endswith(whole))
        assert found > 0.9 * total > 0, stacks[:5]
