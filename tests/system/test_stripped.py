# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions without a symbol are named by their file and their start, in all answers; what is in no file is [unknown]."""
import json
import re
import subprocess

from machine import Folder, SOURCES, compile_program, mperfctl, need_program, rows
from rates import long_enough, rate_allowed

FUNCTIONS = ("add", "mix", "take")


def build_program(folder, *flags, compiler="gcc"):
    """Build stripped.c; the stripped program, and the addresses of its functions before it was stripped."""
    need_program(compiler)
    whole, program = folder / "whole", folder / "stripped"
    folder.mkdir(exist_ok=True)
    subprocess.run([compiler, "-O2", "-Wl,--build-id=sha1", *flags, "-o", whole, SOURCES / "stripped.c"], check=True)
    subprocess.run(["strip", "-s", "-o", program, whole], check=True)
    listed = subprocess.run(["nm", whole], check=True, text=True, stdout=subprocess.PIPE).stdout
    found = dict(re.findall(r"^0*([0-9a-f]+) t (add|mix|take)$", listed, re.M))
    return program, {name: f"stripped+0x{addr}" for addr, name in found.items()}


def record(build, path, program, *options):
    mperfctl(build, "record", "-F", rate_allowed(999), "-e", "cpu-clock:u", *options, "-o", path, "--", program,
             long_enough(900))
    return path


def functions(build, path, *more):
    return rows(build, "hotspots", "-i", path, "-n", "0", *more)


def is_at_starts(build, folder, *flags, compiler="gcc"):
    program, names = build_program(folder / "built", *flags, compiler=compiler)
    path = record(build, folder / "p.mprf", program)
    found = functions(build, path)
    assert sorted(names) == sorted(FUNCTIONS), names
    own = {r["function"]: r for r in found["rows"] if r["module"] == str(program)}
    for name in names.values():
        assert own[name]["self"] > 0.15, (names, own)
    assert sum(own[name]["self"] for name in names.values()) > 0.9, (names, own)
    assert found["provenance"]["placed_share"] > 0.95, found["provenance"]
    return path, program, names


def test_functions_are_named_by_their_start(build):
    for compiler, *flags in (["gcc"], ["clang"], ["gcc", "-static"], ["gcc", "-no-pie"]):
        with Folder() as folder:
            path, program, _ = is_at_starts(build, folder, *flags, compiler=compiler)
            shares = functions(build, path)["provenance"]
            assert shares["named_share"] < 0.1, shares
            module = {r["module"]: r for r in functions(build, path, "--by", "module")["rows"]}[str(program)]
            assert module["named"] < 0.1 and module["placed"] > 0.95, module
            text = mperfctl(build, "hotspots", "-i", path).stdout
            assert re.search(r"; \d+\.\d % named, (9\d\.\d|100\.0) % placed", text), text
            said = mperfctl(build, "doctor", "-i", path).stdout
            assert re.search(rf"{program}: \d % of its samples are named by a symbol, (9\d|100) % by a symbol or the "
                             r"start of a function", said), said


def test_all_answers_have_these_names(build):
    with Folder() as folder:
        path, program, names = is_at_starts(build, folder)
        flame = mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
        answers = [flame]
        for form in "perf-script", "speedscope", "csv", "firefox":
            answers.append(mperfctl(build, "export", "-i", path, "--as", form, "-o", "-").stdout)
        for answer in answers:
            assert "[unknown]" not in answer or "stripped+0x" in answer
            for name in names.values():
                assert name in answer, (name, answer[:2000])


def test_diff_matches_them_by_build_id(build):
    with Folder() as folder:
        one, names = build_program(folder / "one")
        two, others = build_program(folder / "two", "-DBEFORE=4096")
        assert set(names.values()).isdisjoint(others.values()), (names, others)
        recorded = [record(build, folder / f"{i}.mprf", program) for i, program in enumerate((one, one, two))]

        def sides(a, b):
            found = json.loads(mperfctl(build, "diff", a, b, "--json").stdout)["change"]
            return {r["function"]: (r["baseline_ns"] > 0, r["candidate_ns"] > 0) for r in found}

        same, other = sides(*recorded[:2]), sides(*recorded[1:])
        for name in names.values():
            (found,) = [f for f in same if re.fullmatch(re.escape(name) + r" \([0-9a-f]{8}\)", f)]
            assert same[found] == (True, True), same
            assert other[found] == (True, False), other
        assert sum(s == (False, True) for s in other.values()) == len(FUNCTIONS), other


def test_the_same_address_of_another_build_is_another_function(build):
    with Folder() as folder:
        programs = [build_program(folder / str(i), f"-Wl,--build-id=0x{i:040x}")[0] for i in (1, 2)]
        recorded = [record(build, folder / f"{i}.mprf", program) for i, program in enumerate(programs)]
        found = json.loads(mperfctl(build, "diff", *recorded, "--json").stdout)["change"]
        assert len(found) == 2 * len(FUNCTIONS), found
        assert all((r["baseline_ns"] > 0) != (r["candidate_ns"] > 0) for r in found), found
        for other, had in (0, True), (1, False):
            page = folder / "flame.html"
            mperfctl(build, "flamegraph", "-f", "-i", recorded[0], "--diff", recorded[other], "-o", page)
            was = re.findall(r"<title>stripped\+0x[^<]*was ([\d.]+)", page.read_text())
            assert was and all((float(share) > 0) == had for share in was), was


def test_diff_finds_moved_code_by_its_callers(build):
    with Folder() as folder:
        built = [build_program(folder / str(i), "-DALONE", "-rdynamic", f"-DBEFORE={4096 * (i + 1)}")
                 for i in range(2)]
        recorded = [record(build, folder / f"{i}.mprf", program, "-g", "dwarf") for i, (program, _) in enumerate(built)]
        found = json.loads(mperfctl(build, "diff", *recorded, "--json").stdout)["change"]
        was, now = (names["add"] for _, names in built)
        assert was != now
        became = {r["function"].split(" ")[0]: r["became"] for r in found}
        assert now in became[was], (was, now, found)


def test_code_in_no_file_says_its_mapping(build):
    with Folder() as folder:
        program = compile_program(build, "jit.c")
        path = folder / "p.mprf"
        mperfctl(build, "record", "-F", rate_allowed(999), "-e", "cpu-clock:u", "-g", "none", "-o", path, "--", program,
                 "quiet", long_enough(500))
        found = functions(build, path)["rows"]
        unknown = sum(r["self"] for r in found if r["function"] == "[unknown] [anonymous]")
        assert unknown > 0.9, found[:5]
