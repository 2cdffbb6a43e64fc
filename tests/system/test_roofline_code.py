# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl roofline --from code: programs that count nothing, read from their machine code."""
import os
import random
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time

from machine import ROOT, Folder, Skip, compile_program, leave_to_plain, mperfctl, rows
from rates import long_enough, rate_allowed

SECONDS = 8


def need_reader(build):
    if not (build / "mperf-code").exists():
        raise Skip("built without LLVM's C library, so machine code is not read")


def known_code(build):
    return compile_program(build, "known_code.c", "-O2", "-fno-tree-vectorize", "-fno-unroll-loops")


def record(build, folder, program):
    """Again where the machine was so busy that the recording knows no build ids, as it says itself."""
    path = folder / "r.mprf"
    for _ in range(5):
        mperfctl(build, "record", "-f", "-F", str(rate_allowed(999)), "-o", path, "--", program, str(long_enough(400)))
        if "process that did not answer" not in rows(build, "hotspots", "-i", path)["provenance"]["lost"]:
            break
    return path


def loops(answer):
    """The loop of each function that has the most samples."""
    return {r["function"]: r for r in reversed(answer["rows"]) if r["depth"]}


def test_operations_per_byte_are_those_of_the_source(build):
    need_reader(build)
    with Folder() as folder:
        path = record(build, folder, known_code(build))
        answer = rows(build, "roofline", "--from", "code", "-i", path)
        found = loops(answer)
        for function, wanted in ("triad", 2 / 24), ("polynomial", 7 / 8):
            row = found[function]
            assert abs(row["ops_per_byte_self"] - wanted) < 1e-9, row
            assert row["ops_per_byte_low"] == row["ops_per_byte_high"] == row["ops_per_byte_self"], row
            assert row["from"] == "machine code" and row["samples"] > 10, row
            assert row["source"] is None or row["source"].rpartition(":")[0].endswith("known_code.c"), row
        row = found["sorted"]
        assert row["ops_per_byte_low"] <= 1 / 8 <= row["ops_per_byte_high"], row
        assert row["ops_per_byte_low"] < row["ops_per_byte_self"] < row["ops_per_byte_high"], row
        shares = sum(r["share_self"] for r in answer["rows"])
        assert 0.5 < shares <= 1 + 1e-9, shares
        notes = " ".join(answer["provenance"]["notes"])
        if all(r["instructions"] is None for r in answer["rows"]):
            assert "no rates" in notes and all(r["gops_self"] is None for r in answer["rows"]), notes
        text = mperfctl(build, "roofline", "--from", "code", "-i", path).stdout
        assert "polynomial" in text and "is in code that was read" in text, text


def test_single_precision_and_integers_are_told_apart(build):
    need_reader(build)
    with Folder() as folder:
        path = record(build, folder, known_code(build))
        single = loops(rows(build, "roofline", "--from", "code", "--ops", "sp", "-i", path))
        integer = loops(rows(build, "roofline", "--from", "code", "--ops", "int", "-i", path))
        assert single["polynomial"]["ops_per_byte_self"] == 0, single
        assert integer["polynomial"]["ops_per_byte_self"] > 0, integer


def test_a_file_that_changed_is_not_read(build):
    need_reader(build)
    with Folder() as folder:
        program = folder / "program"
        shutil.copy(known_code(build), program)
        path = record(build, folder, program)
        program.unlink()
        shutil.copy("/bin/true", program)
        answer = rows(build, "roofline", "--from", "code", "-i", path)
        assert not any(r["module"] == str(program) for r in answer["rows"]), answer["rows"]
        assert any("build id differs" in n for n in answer["provenance"]["notes"]), answer["provenance"]
        program.unlink()
        answer = rows(build, "roofline", "--from", "code", "-i", path)
        assert any("cannot be opened" in n for n in answer["provenance"]["notes"]), answer["provenance"]


def test_damaged_programs_hurt_nothing_but_their_reader(build):
    need_reader(build)
    with Folder() as folder:
        program = folder / "program"
        shutil.copy(known_code(build), program)
        path = record(build, folder, program)
        whole = program.read_bytes()
        chance = random.Random(7)
        for _ in range(20):
            bytes_ = bytearray(whole)
            for _ in range(40):
                bytes_[chance.randrange(len(bytes_)) if chance.random() < 0.5 else chance.randrange(4096)] = \
                    chance.randrange(256)
            program.write_bytes(bytes_[:len(bytes_) if chance.random() < 0.7 else chance.randrange(len(bytes_))])
            rows(build, "roofline", "--from", "code", "-i", path)  # an answer, whatever it is


def test_a_plot_without_rates_is_refused_in_words(build):
    need_reader(build)
    with Folder() as folder:
        path = record(build, folder, known_code(build))
        if any(r["gops_self"] is not None for r in rows(build, "roofline", "--from", "code", "-i", path)["rows"]):
            raise Skip("instructions are counted here, so there are rates to draw")
        for option in ("--plot",), ("-o", folder / "plot.html"):
            done = mperfctl(build, "roofline", "--from", "code", *option, "-i", path, check=False)
            assert done.returncode == 1 and "no instructions were counted" in done.stderr, done.stderr
        assert not (folder / "plot.html").exists()


def test_programs_are_found_in_another_folder_by_path_or_name(build):
    need_reader(build)
    with Folder() as folder:
        program = folder / "ran" / "program"
        program.parent.mkdir()
        shutil.copy(known_code(build), program)
        path = record(build, folder, program)
        program.unlink()
        by_path, by_name = folder / "by-path", folder / "by-name"
        for target in by_path / str(program).lstrip("/"), by_name / "program":
            target.parent.mkdir(parents=True)
            shutil.copy(known_code(build), target)
        for symfs in by_path, by_name:
            found = loops(rows(build, "roofline", "--from", "code", "--symfs", symfs, "-i", path))
            assert abs(found["triad"]["ops_per_byte_self"] - 2 / 24) < 1e-9, (symfs, found)
        answer = rows(build, "roofline", "--from", "code", "--symfs", folder / "ran", "-i", path)
        assert any("cannot be opened in" in n for n in answer["provenance"]["notes"]), answer["provenance"]
        done = mperfctl(build, "roofline", "--symfs", by_path, "-i", path, check=False)
        assert done.returncode == 2 and "--from code" in done.stderr, done.stderr
        done = mperfctl(build, "roofline", "--from", "code", "--vector-bits", "384", "-i", path, check=False)
        assert done.returncode == 2 and "power of two" in done.stderr, done.stderr


def test_without_the_reader_it_says_what_to_install_before_it_measures(build):
    with Folder() as folder:
        for name in "mperfctl", "mperfd", "mperf-namer":
            shutil.copy(build / name, folder / name)
        if any(os.access(f"{place}/mperf-code", os.X_OK) for place in ("/usr/local/libexec/mperf", "/usr/libexec/mperf")):
            raise Skip("mperf-code is installed on this machine")
        done = subprocess.run([folder / "mperfctl", "roofline", "--from", "code", "--", "touch", folder / "ran"],
                              capture_output=True, text=True)
        assert done.returncode == 1 and "apt install ./mperf-code_*.deb" in done.stderr, done
        assert not (folder / "ran").exists()


KERNELS = {"loop": {"vectors.c": ["dot"], "loops.c": ["triad", "stencil"]},
           "branchy": {"branches.c": ["either", "near", "quarters"], "flow.c": ["interpret_switch"]},
           "masked": {"masks.c": ["masked"]}}


def test_loops_of_kernels_have_the_operations_per_byte_that_the_pass_counts(build):
    """A few of what make bench-instrument RUN="--only code" does with all, where the marks are 95 % inside
    and a median error of 10 %."""
    leave_to_plain(build, "it compares figures, and runs many programs")
    need_reader(build)
    if not (build / "llvm-19" / "mperf-pass.so").exists():
        raise Skip("no plugin was built: LLVM 19 has no headers here")
    sys.path += [str(ROOT / folder) for folder in ("tests/bench/instrument", "llvm-pass/tests")]
    import machine_code
    machine_code.SECONDS = max(machine_code.SECONDS, 2 * machine_code.SAMPLES_LEAST / rate_allowed(machine_code.HZ))
    options = {"-O3 AVX2": machine_code.OPTIONS["-O3 AVX2"]}
    found = machine_code.measure(build, None, options, KERNELS, ("clang-19",))
    n, inside, middle = machine_code.summary(found)
    assert n >= 6 and inside >= n - 1 and middle <= 0.1, (n, inside, middle, found)
    assert {r["kernel"] for r in found if r["low"] == r["high"] and r["error"] < 1e-6} >= {"dot", "triad"}, found
    assert any(r["low"] < r["high"] for r in found), found


# --- the reader by itself ----------------------------------------------------------------------------

MAGIC, VERSION = 0x6d70636f, 2


def start_reader(build, path):
    """mperf-code about that file; the process and our end of its socket."""
    ours, theirs = socket.socketpair()
    file = os.open(path, os.O_RDONLY)

    def place():
        for fd, high, low in (theirs.fileno(), 20, 3), (file, 21, 4):
            os.dup2(fd, high)
            os.dup2(high, low)
    process = subprocess.Popen([build / "mperf-code"], preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    theirs.close()
    os.close(file)
    return process, ours


def ask_reader(build, path, samples):
    """The reply to samples, (offset, number): state, its loops, samples outside of functions."""
    process, ours = start_reader(build, path)
    ours.sendall(struct.pack("<IIIIB20s3x", MAGIC, VERSION, len(samples), 0, 0, b""))
    ours.sendall(b"".join(struct.pack("<QQdd", offset, n, n, -1) for offset, n in samples))
    ours.shutdown(socket.SHUT_WR)
    said = b"".join(iter(lambda: ours.recv(1 << 16), b""))
    assert process.wait(60) == 0, (process.returncode, process.stderr.read())
    magic, version, state, n_loops, _, outside = struct.unpack_from("<IIIIQQ", said)
    assert (magic, version) == (MAGIC, VERSION), said[:32]
    return state, n_loops, outside


def test_the_reader_has_no_rights_and_limits(build):
    """Before it is asked anything: no capability, no new privileges, a filter of system calls, no file
    to write, and limits of time and memory."""
    need_reader(build)
    process, ours = start_reader(build, "/bin/true")
    try:
        for _ in range(100):
            status = dict(line.split(":", 1) for line in open(f"/proc/{process.pid}/status"))
            if int(status["Seccomp"]) == 2:
                break
            time.sleep(0.05)
        assert int(status["Seccomp"]) == 2 and int(status["NoNewPrivs"]) == 1, status
        assert all(int(status[c], 16) == 0 for c in ("CapEff", "CapPrm", "CapInh")), status
        assert resource.prlimit(process.pid, resource.RLIMIT_CPU) == (30, 30)
        assert resource.prlimit(process.pid, resource.RLIMIT_CORE) == (0, 0)
        if build.name != "asan":
            assert resource.prlimit(process.pid, resource.RLIMIT_FSIZE) == (0, 0)
            assert resource.prlimit(process.pid, resource.RLIMIT_AS)[0] < 4 << 30
    finally:
        process.kill()
        process.wait()
        ours.close()


def elf_of(machine, code):
    """A program whose one function, as its only symbol says, is these bytes."""
    names, strings = b"\0.text\0.symtab\0.strtab\0.shstrtab\0", b"\0f\0"
    base, at = 0x10000, 64 + 56
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 2, 0, 1, base + at, len(code))
    offsets = [at, at + len(code), at + len(code) + len(symbols)]
    offsets.append(offsets[-1] + len(strings))
    end = offsets[-1] + len(names)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, machine, 1, base + at, 64, end, 0, 64, 56, 1,
                         64, 5, 4)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, end, end, 4096)
    def section(name, kind, flags, address, offset, n, link=0, size=0):
        return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, n, link, 0, 1, size)
    table = bytes(64) + section(1, 1, 6, base + at, at, len(code)) \
        + section(7, 2, 0, 0, offsets[1], len(symbols), 3, 24) \
        + section(15, 3, 0, 0, offsets[2], len(strings)) + section(23, 3, 0, 0, offsets[3], len(names))
    return header + segment + code + symbols + strings + names + table


def test_any_bytes_as_code_are_read_within_limits(build):
    """Random bytes, branches that all lead to one another, and a function larger than any, for each ISA."""
    need_reader(build)
    chance = random.Random(5)
    x86, arm, riscv = 62, 183, 243
    branches = b"".join(struct.pack("<BBi", 0x0f, 0x80 + i % 16, chance.randrange(-6 * i - 6, 6 * (5000 - i) - 6) // 6 * 6)
                        for i in range(5000))
    computed = b"\xff\xe0\x90" * 20000  # jmp rax; nop
    with Folder() as folder:
        program = folder / "program"
        for machine in x86, arm, riscv:
            for _ in range(3):
                code = bytes(chance.randrange(256) for _ in range(4000))
                program.write_bytes(elf_of(machine, code))
                state, _, _ = ask_reader(build, program, [(120 + 4 * i, 10) for i in range(900)])
                assert state == 1, state
        for code in branches, computed:
            begin = time.monotonic()
            program.write_bytes(elf_of(x86, code))
            state, n_loops, outside = ask_reader(build, program, [(120 + 6 * i, 10) for i in range(5000)])
            assert state == 1 and n_loops + outside > 0, (state, n_loops, outside)
            assert time.monotonic() - begin < 60
        program.write_bytes(elf_of(x86, b"\x90" * (5 << 20)))
        state, n_loops, outside = ask_reader(build, program, [(120, 10)])
        assert (state, n_loops, outside) == (1, 0, 10), (state, n_loops, outside)
        program.write_bytes(elf_of(8, b"\0" * 64))  # MIPS
        assert ask_reader(build, program, [(120, 10)])[0] == 4


def test_what_machine_code_cannot_tell_is_refused(build):
    for options in ("--by", "thread"), ("--live",), ("--inclusive",), ("--two-phase",):
        done = mperfctl(build, "roofline", "--from", "code", *options, "--pid", "1", check=False)
        assert done.returncode == 2 and "--from code" in done.stderr, done.stderr
    done = mperfctl(build, "roofline", "--from", "cod", "--pid", "1", check=False)
    assert done.returncode == 2 and "code" in done.stderr, done.stderr
