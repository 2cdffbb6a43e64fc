# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whatever runs has its name: short-lived processes, code without a file, files that are gone."""
import os
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import (Folder, Skip, by_itself, compile_program, leave_to_plain, mperfctl, need_program,
                     need_root, plain_build, rows, workload, SOURCES)
from rates import long_enough, rate_allowed
from service import Service, wait_until

SECONDS = 50


def record(build, path, *arguments, **options):
    """What a program does in its own code; how often that is looked at is not the point here."""
    return mperfctl(build, "record", "-F", rate_allowed(999), "-e", "cpu-clock:u", "-o", path,
                    *arguments, **options)


def functions(build, path, *more):
    return rows(build, "hotspots", "-i", path, "--limit", "0", *more)["rows"]


def share(found, name, key="function"):
    return sum(r["self"] for r in found if r[key] == name)


LEAVES = """
    SELECT file.path, frame.offset, SUM(sample.count), (
        SELECT function.name FROM place JOIN function ON function.id = place.function
        WHERE place.frame = frame.id ORDER BY place.depth DESC LIMIT 1)
    FROM sample JOIN stack ON stack.id = sample.stack JOIN frame ON frame.id = stack.frame
    JOIN file ON file.id = frame.file WHERE file.kind = 1 GROUP BY frame.id"""


def sized_symbols(path):
    """(offset in the file, bytes, raw name) of every sized symbol, as readelf tells."""
    text = subprocess.run(["readelf", "-W", "-l", "--syms", path], capture_output=True, text=True,
                          errors="replace").stdout
    loads = [tuple(int(n, 16) for n in m) for m in
             re.findall(r"^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", text, re.M)]
    found = re.findall(r"^ +\d+: (\w+) +(\d+) (?:FUNC|IFUNC|OBJECT|NOTYPE) +\w+ +\w+ +(?!UND)\S+ "
                       r"(\S+)", text, re.M)
    symbols = []
    for value, size, name in found:
        address = int(value, 16)
        symbols += [(offset + address - start, int(size), name.split("@@")[0])
                    for offset, start, n in loads if start <= address < start + n and int(size)]
    return sorted(symbols)


def names_by_readelf(path):
    """Samples whose address lies inside a sized symbol of a readable file by readelf's account, how
    many of them mperf gave the name of such a symbol, and examples of the others."""
    inside = right = 0
    wrong = []
    covering = {}
    leaves = sqlite3.connect(f"file:{path}?immutable=1", uri=True).execute(LEAVES).fetchall()
    for module in {leaf[0] for leaf in leaves if os.path.exists(leaf[0])}:
        symbols = sized_symbols(module)
        for _, offset, n, name in (leaf for leaf in leaves if leaf[0] == module):
            names = {s[2] for s in symbols if s[0] <= offset < s[0] + s[1]}
            if names:
                covering[module, offset, n, name] = names
    raw = sorted(set().union(*covering.values()))
    readable = subprocess.run(["c++filt", "-p"], input="\n".join(raw), capture_output=True,
                              text=True, check=True).stdout.split("\n")
    demangled = dict(zip(raw, readable))
    for (module, offset, n, name), names in covering.items():
        inside += n
        if name in names or name in {demangled[r] for r in names}:
            right += n
        else:
            wrong.append((module, hex(offset), n, name, sorted(names)[:3]))
    return inside, right, wrong[:5]


def test_a_parallel_build_of_a_debian_package_is_named(build):
    leave_to_plain(build, "compilers take its time, and what names them names the other programs here")
    need_root()
    source = workload(build, "bzip2")
    with Folder() as folder:
        tree = folder / "bzip2"
        shutil.copytree(source, tree)
        hz = rate_allowed(1999)
        mperfctl(build, "record", "-F", hz, "-o", folder / "r.mprf", "--", "make", "-C", tree, "-j2",
                 "-s", "CFLAGS=-O3 -g", "bzip2", "bzip2recover", env={"CCACHE_DISABLE": "1"})
        processes = rows(build, "hotspots", "-i", folder / "r.mprf", "--by", "process",
                         "--limit", "0")
        inside, right, wrong = names_by_readelf(folder / "r.mprf")
    nameless = sum(r["self"] for r in processes["rows"] if not r["comm"])
    assert processes["provenance"]["samples"] > hz / 2, processes["provenance"]
    assert nameless <= 0.01, f"{nameless:.4f} of the samples have no process name"
    assert any(r["comm"] == "cc1" for r in processes["rows"]), processes["rows"][:5]
    assert inside > hz / 2 and right / inside >= 0.95, f"{right} of {inside} samples\n{wrong}"


def forget_maps(build, path):
    """Remove what the recorded programs left in /tmp for profilers, where others' tests may run."""
    for row in rows(build, "hotspots", "-i", path, "--by", "process", "--limit", "0")["rows"]:
        for left in f"/tmp/perf-{row['pid']}.map", f"/tmp/jit-{row['pid']}.dump":
            Path(left).unlink(missing_ok=True)


def test_code_without_a_file_is_named_by_perf_maps_and_jitdumps(build):
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        for kind in "map", "dump":
            record(build, folder / kind, "--", program, kind, long_enough(600))
            found = functions(build, folder / kind)
            assert share(found, f"jitted_by_{kind}") > 0.9, (kind, found[:3])
            forget_maps(build, folder / kind)
        record(build, folder / "quiet", "--", program, "quiet", long_enough(600))
        found = functions(build, folder / "quiet")
        assert not any("jitted" in r["function"] for r in found), found[:3]
        # a map that is not there is not said to be where the code is from
        assert share(found, "[anonymous]", key="module") > 0.9, found[:3]
        assert not any("/perf-" in (r["module"] or "") for r in found), found[:3]


LOOKS = "what changes between two looks, which others delay, has the name of before: mperfd(8)"
PARSED = "test_jitdump, and the perf maps and jitdumps of the test above, are read with sanitizers"
GENERATIONS = "generation_a", "generation_b", "generation_c"


def check_thirds(found, key="function", shares=(1 / 3, 1 / 3, 1 / 3)):
    """Each of three functions that ran at one address, one after the other, has its own time."""
    got = [share(found, name, key) for name in GENERATIONS]
    assert sum(got) > 0.9, found[:5]
    for name, is_share, should in zip(GENERATIONS, got, shares):
        assert abs(is_share - should) < 0.1, (name, got)


@by_itself(LOOKS)
def test_an_address_of_generated_code_has_the_name_of_its_time(build):
    leave_to_plain(build, PARSED)
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        for how in "map", "dump", "anew":
            record(build, folder / how, "--", program, f"again-{how}", long_enough(700))
            check_thirds(functions(build, folder / how))
            forget_maps(build, folder / how)
        # a frame of its own for each, in all that is made of a recording
        check_thirds(functions(build, folder / "map", "--by", "address"))
        lines = mperfctl(build, "flamegraph", "--folded", "-i", folder / "map").stdout
        assert all(f";{name} " in lines for name in GENERATIONS), lines[:500]


@by_itself(LOOKS)
def test_the_service_names_generated_code_by_its_time(build):
    leave_to_plain(build, PARSED)
    program = compile_program(build, "jit.c")
    with Folder() as folder, Service(build, folder, flush="1s", rate=f"{rate_allowed(499)}") as service:
        for how in "map", "dump":
            run = subprocess.Popen([program, f"again-{how}", str(long_enough(700))])
            assert run.wait() == 0
            found = wait_until("all is stored and named", lambda: settled(service, run.pid))
            check_thirds(found)
            for left in f"/tmp/perf-{run.pid}.map", f"/tmp/jit-{run.pid}.dump":
                Path(left).unlink(missing_ok=True)


def settled(service, pid):
    """The functions of a process that has ended, once they are named."""
    found = service.ask("hotspots", "--since", "-5m", "--pid", pid, "--limit", "0")["rows"]
    return found if share(found, GENERATIONS[2]) > 0 else None


@by_itself(LOOKS)
def test_code_that_a_jitdump_moves_keeps_its_name(build):
    leave_to_plain(build, PARSED)
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        record(build, folder / "r", "--", program, "again-move", long_enough(700))
        check_thirds(functions(build, folder / "r"), shares=(1 / 2, 1 / 4, 1 / 4))
        forget_maps(build, folder / "r")


def test_code_without_a_file_is_named_inside_a_container(build):
    need_root()
    need_program("unshare")
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        # A /tmp and pids of its own, as in any container: the map is /tmp/perf-1.map in there. The
        # program is copied to where it stays visible, since the checkout may lie below /tmp.
        script = (f"mount -t tmpfs none /mnt && cp {program} /mnt/jit && mount -t tmpfs none /tmp "
                  f"&& exec /mnt/jit map {long_enough(800)}")
        done = record(build, folder / "r", "--", "unshare", "--mount", "--pid", "--fork", "--mount-proc",
                      "sh", "-c", script, check=False)
        if done.returncode != 0 and "unshare" in done.stderr:
            raise Skip("unshare is refused here")
        found = functions(build, folder / "r")
    assert share(found, "jitted_by_map") > 0.8, found[:3]


def test_code_without_a_file_is_named_in_a_pid_namespace_with_our_mounts(build):
    need_root()
    need_program("unshare")
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        done = record(build, folder / "r", "--", "unshare", "--pid", "--fork", program, "map",
                      long_enough(800), check=False)
        Path("/tmp/perf-1.map").unlink(missing_ok=True)
        if done.returncode != 0 and "unshare" in done.stderr:
            raise Skip("unshare is refused here")
        found = functions(build, folder / "r")
    assert share(found, "jitted_by_map") > 0.8, found[:3]


def test_a_file_that_is_deleted_while_it_runs_is_named(build):
    program = compile_program(build, "depth.c")
    with Folder() as folder:
        shutil.copy(program, folder / "gone")
        process = subprocess.Popen([folder / "gone", "5"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.2)
            os.unlink(folder / "gone")
            record(build, folder / "r", "--pid", process.pid, "--for", f"{long_enough(1000)}ms")
        finally:
            process.kill()
            process.wait()
        found = functions(build, folder / "r")
    assert share(found, "spin") > 0.8 and "gone" in found[0]["module"], found[:3]


def test_a_program_in_another_mount_namespace_is_named(build):
    need_root()
    need_program("unshare")
    shares = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    program = compile_program(build, "shares.c", str(shares), f"-Wl,-rpath,{shares.parent}")
    with Folder() as folder:
        inner = folder / "inner"
        inner.mkdir()
        script = (f"mount -t tmpfs none {inner} && cp {program} {inner}/hidden && "
                  f"exec {inner}/hidden 300")
        record(build, folder / "r", "--", "unshare", "--mount", "sh", "-c", script)
        found = functions(build, folder / "r")
        assert not (inner / "hidden").exists()
    assert share(found, "half") > 0.3, found[:5]


def marked(program, target, section):
    """A copy of program that asks the test namer's parser to misbehave."""
    empty = target.with_suffix(".empty")
    empty.write_bytes(b"x")
    subprocess.run(["objcopy", "--add-section", f"{section}={empty}", program, target], check=True)
    return target


def record_misbehaving(build, folder, program):
    """Record a bad program beside a good one; the good one's rows and doctor's words."""
    good = compile_program(build, "jit.c")
    namer = build / "test-namer" / "mperf-namer"
    script = f"{good} map {long_enough(1500)} & {program}; wait"
    record(build, folder / "r", "--", "sh", "-c", script, env={"MPERF_NAMER": str(namer)})
    doctor = rows(build, "doctor", "-i", folder / "r")["rows"]
    found = functions(build, folder / "r")
    # of itself: how much of the machine it got is others' affair
    generated = [row for row in found if re.search(r"/perf-\d+\.map$", row["module"] or "")]
    forget_maps(build, folder / "r")
    named = share(generated, "jitted_by_map")
    assert named > 0.9 * sum(row["self"] for row in generated) > 0, found[:5]
    return [d["finding"] for d in doctor if d["topic"] == "file"]


def misbehaving(build, section, word):
    with Folder() as folder:
        bad = marked(compile_program(build, "inlined.c"), folder / "bad", section)
        said = record_misbehaving(build, folder, bad)
    assert any("bad" in s and word in s for s in said), said


def test_a_file_that_makes_the_parser_crash_costs_only_its_own_names(build):
    misbehaving(build, ".mperf.test.crash", "crashed")


@by_itself("the parser has a limit of CPU time, which beside others is more than a recording waits")
def test_a_file_that_makes_the_parser_spin_costs_only_its_own_names(build):
    leave_to_plain(build, "test_namer_worker lets it spin with sanitizers")
    misbehaving(build, ".mperf.test.spin", "time")


def test_a_file_system_that_hangs_on_open_costs_only_its_own_names(build):
    need_root()
    if not os.path.exists("/dev/fuse"):
        raise Skip("needs /dev/fuse")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True,
                           capture_output=True, text=True).stdout.split()
    hangfs = compile_program(build, "hangfs.c", *flags)
    with Folder() as folder:
        mount = folder / "mount"
        mount.mkdir()
        server = subprocess.Popen([hangfs, compile_program(build, "inlined.c"), mount],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                if (mount / "program").exists():
                    break
                time.sleep(0.05)
            said = record_misbehaving(build, folder, mount / "program")
        finally:
            server.kill()
            server.wait()
            subprocess.run(["umount", "-l", mount], check=False)
    assert any("program" in s and "open" in s for s in said), said


def test_kernel_functions_are_named(build):
    need_root()
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder / "r", "--", "dd",
                 "if=/dev/zero", "of=/dev/null", "bs=1M", "count=20000")
        modules = rows(build, "hotspots", "-i", folder / "r", "--by", "module")["rows"]
    kernel = [m for m in modules if m["module"] == "[kernel]"]
    assert kernel and kernel[0]["named"] > 0.95, modules


def test_a_line_and_inlined_callers_are_found(build):
    with Folder() as folder:
        program = compile_program(build, "inlined.c")
        record(build, folder / "r", "--", program)
        by_line = rows(build, "hotspots", "-i", folder / "r", "--by", "line")["rows"]
        inlined = functions(build, folder / "r", "--inlined")
        plain = functions(build, folder / "r")
    text = (SOURCES / "inlined.c").read_text().splitlines()
    hot = {n + 1 for n, line in enumerate(text) if "HOT" in line}
    assert sum(r["self"] for r in by_line
               if (r["source"] or "").endswith("inlined.c") and r["line"] in hot) > 0.8, by_line[:4]
    assert share(inlined, "inner") > 0.8 > share(inlined, "outer"), inlined[:4]
    assert share(plain, "outer") > 0.8, plain[:4]


def test_code_that_is_described_only_at_the_end_is_named(build):
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        record(build, folder / "late", "--", program, "late", long_enough(1500))
        found = functions(build, folder / "late")
        forget_maps(build, folder / "late")
    assert share(found, "jitted_by_map") > 0.9, found[:3]


# --- what a toolchain or a build leaves ----------------------------------------------------------

SPIN = """
#include <time.h>
volatile long n;
__attribute__((noinline)) void %s(void) { for (int i = 0; i < 100000; i++) n++; }
"""
MAIN = """
#include <time.h>
%s
int main(void) { clock_t end = clock() + CLOCKS_PER_SEC / 3; while (clock() < end) { %s } return 0; }
"""


def test_a_library_whose_symbol_table_was_stripped_in_part_has_the_names_of_its_exports(build):
    with Folder() as folder:
        (folder / "lib.c").write_text(SPIN % "exported_hot" + "int keep_me = 1;\n")
        (folder / "main.c").write_text(MAIN % ("void exported_hot(void);", "exported_hot();"))
        library = folder / "libx.so"
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-o", library, folder / "lib.c"], check=True)
        subprocess.run(["gcc", "-O1", "-o", folder / "main", folder / "main.c", library,
                        f"-Wl,-rpath,{folder}"], check=True)
        subprocess.run(["strip", "-K", "keep_me", library], check=True)
        record(build, folder / "r", "-g", "none", "--", folder / "main")
        found = functions(build, folder / "r", "--comm", "main")
        assert share(found, "exported_hot") > 0.9, found


def test_a_source_file_has_the_folder_that_it_was_compiled_in(build):
    with Folder() as folder:
        (folder / "src").mkdir()
        (folder / "build").mkdir()
        (folder / "src" / "main.c").write_text(SPIN % "hot" + MAIN % ("", "hot();"))
        for flags in ["-gdwarf-5"], ["-gdwarf-4"]:
            subprocess.run(["gcc", "-O1", *flags, "-o", folder / "main", "../src/main.c"], check=True, cwd=folder / "build")
            record(build, folder / "r", "-g", "none", "--", folder / "main")
            found = functions(build, folder / "r", "--by", "line", "--comm", "main")
            told = {r["source"] for r in found if r["function"] == "hot"}
            assert told == {f"{folder}/build/../src/main.c"}, (flags, told)


def test_names_that_are_longer_than_a_row_stay_two(build):
    with Folder() as folder:
        mangled = ["_ZN" + "9component" * 130 + f"{len(end)}{end}Ev" for end in ("poll", "shutdown")]
        (folder / "l.c").write_text("".join(SPIN % name for name in mangled) +
                                    MAIN % ("", "".join(name + "();" for name in mangled)))
        subprocess.run(["gcc", "-O1", "-w", "-o", folder / "l", folder / "l.c"], check=True)
        record(build, folder / "r", "-g", "none", "--", folder / "l")
        found = [r for r in functions(build, folder / "r", "--comm", "l") if "component" in r["function"]]
        assert len(found) == 2 and all(r["self"] > 0.1 for r in found), found
        assert {r["function"][-6:] for r in found} == {"pollEv", "downEv"}, found


INLINED = """
static inline __attribute__((always_inline)) void inl(long n) { for (long i = 0; i < n; i++) s += i * 3; }
__attribute__((noinline)) void hot_one(long n) { inl(n); }
"""


def inlined_into_hot_one(build, folder, *command, **options):
    record(build, folder / "r", "-g", "none", "--", *command, **options)
    answer = rows(build, "hotspots", "-i", folder / "r", "--limit", "0", "--inlined", "--comm", "p")
    (folder / "r").unlink()
    found = answer["rows"]
    says = any(f"inlined functions of {folder / 'p'} are missing" in note for note in answer["provenance"]["notes"])
    assert says == (share(found, "inl") == 0), answer["provenance"]
    return share(found, "inl"), found


def test_calls_inlined_into_units_that_were_split_off_are_named(build):
    """Beside the object (.dwo), in a package beside the program (.dwp), and neither."""
    with Folder() as folder:
        (folder / "p.c").write_text("volatile unsigned long s;" + INLINED + MAIN % ("", "hot_one(2000000);"))
        for version in "-gdwarf-5", "-gdwarf-4":
            (folder / "o").mkdir()
            subprocess.run(["gcc", "-O2", version, "-gsplit-dwarf", "-c", "../p.c"], check=True, cwd=folder / "o")
            subprocess.run(["gcc", "-o", "../p", "p.o"], check=True, cwd=folder / "o")
            inl, found = inlined_into_hot_one(build, folder, folder / "p")
            assert inl > 0.8, (version, found)
            if version == "-gdwarf-4":  # binutils 2.40 makes no others
                subprocess.run(["dwp", "-e", folder / "p", "-o", folder / "p.dwp"], check=True, cwd=folder / "o")
            shutil.rmtree(folder / "o")
            if version == "-gdwarf-4":
                inl, found = inlined_into_hot_one(build, folder, folder / "p")
                assert inl > 0.8, (version, "package", found)
                (folder / "p.dwp").unlink()
            inl, found = inlined_into_hot_one(build, folder, folder / "p")
            assert inl == 0 and share(found, "hot_one") > 0.8, (version, "none", found)


def test_debug_sections_that_zstd_compressed_are_read(build):
    with Folder() as folder:
        (folder / "p.c").write_text("volatile unsigned long s;" + INLINED + MAIN % ("", "hot_one(2000000);"))
        subprocess.run(["gcc", "-O2", "-g", "-o", folder / "p", folder / "p.c"], check=True)
        subprocess.run(["objcopy", "--compress-debug-sections=zstd", folder / "p"], check=True)
        inl, found = inlined_into_hot_one(build, folder, folder / "p")
        assert inl > 0.8, found
