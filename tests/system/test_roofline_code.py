# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl roofline --from code: programs that count nothing, read from their machine code."""
import random
import shutil

from machine import Folder, Skip, compile_program, mperfctl, rows
from rates import long_enough, rate_allowed

SECONDS = 8


def need_reader(build):
    if not (build / "mperf-code").exists():
        raise Skip("built without LLVM's C library, so machine code is not read")


def known_code(build):
    return compile_program(build, "known_code.c", "-O2", "-fno-tree-vectorize", "-fno-unroll-loops")


def record(build, folder, program):
    path = folder / "r.mprf"
    mperfctl(build, "record", "-F", str(rate_allowed(999)), "-o", path, "--", program, str(long_enough(400)))
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


def test_what_machine_code_cannot_tell_is_refused(build):
    for options in ("--by", "thread"), ("--live",), ("--plot",), ("--inclusive",):
        done = mperfctl(build, "roofline", "--from", "code", *options, "--pid", "1", check=False)
        assert done.returncode == 2 and "--from code" in done.stderr, done.stderr
    done = mperfctl(build, "roofline", "--from", "cod", "--pid", "1", check=False)
    assert done.returncode == 2 and "code" in done.stderr, done.stderr
