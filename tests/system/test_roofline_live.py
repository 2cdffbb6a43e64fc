# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl roofline of programs that mperf-cc built, while they run: C++, OpenMP, regions, LTO; their
answers are known beforehand."""
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from machine import ROOT, Folder, Skip, mperfctl, need_program, need_root, rows
from service import Service, wait_until

SECONDS = 14

KERNELS = ROOT / "tests" / "kernels"
# FLOPs of one round of regions.cc: least and most, by region.
REGIONS = {"outer": (5000, 5000), "inner": (3000, 3000), "thrown": (407, 408), "shade": (410, 410),
           "commented": (500, 500), "[no region]": (500, 500)}


def compiled(build, name, *flags, folder=KERNELS, words="functions=1"):
    """A program of tests/kernels by mperf-cc with these options of the pass; the same for all of these
    tests."""
    if build.name == "asan":
        raise Skip("shown by the plain run; the pass and its programs know no sanitizers here")
    if not (build / "llvm-19" / "mperf-pass.so").exists():
        raise Skip("no plugin was built: LLVM 19 has no headers here")
    source = folder / name
    target = build / "tests" / "programs" / re.sub(r"[^a-z0-9]+", "-", f"counted-{name}{''.join(flags)}-{words}")
    inputs = [source, build / "llvm-19" / "mperf-pass.so", build / "libmperf-runtime.a"]
    if not target.exists() or target.stat().st_mtime < max(p.stat().st_mtime for p in inputs):
        target.parent.mkdir(parents=True, exist_ok=True)
        wrapper = build / ("mperf-c++" if source.suffix == ".cc" else "mperf-cc")
        subprocess.run([wrapper, "-O2", *flags, "-o", target, source], check=True,
                       env={"PATH": "/usr/bin:/bin", "MPERF_CLANG": "clang-19",
                            "MPERF_PASS": words})
    return target


class Counted:
    """A program that does a round for each line that it is sent, and streams to the service."""

    def __init__(self, program, service):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={"MPERF_FEED": str(service.feed)})

    def round(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()
        assert self.process.stdout.readline().startswith("done 1 ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def check_regions(answer, n_rounds):
    found = {row["region"]: row for row in answer["rows"]}
    assert set(found) == set(REGIONS), answer["rows"]
    for name, (least, most) in REGIONS.items():
        flops = found[name]["fp32_ops"] + found[name]["fp64_ops"]
        assert n_rounds * least <= flops <= n_rounds * most, (name, n_rounds, found[name])
        if name != "[no region]":
            assert found[name]["entries"] == n_rounds and found[name]["time_ns"] > 0, found[name]
            assert re.search(r"regions\.cc:\d+$", found[name]["source"]), found[name]
    assert found["inner"]["around"] == "outer"
    assert found["outer"]["fp32_ops"] == n_rounds * 2000, found["outer"]


def test_regions_of_a_running_program_are_told_on_demand(build):
    """The period is a minute: what is told of each round was asked for."""
    program = compiled(build, "regions.cc")
    with Folder() as folder, Service(build, folder, flush="5s", period="1min") as service:
        with Counted(program, service) as counted:
            for n_rounds in 1, 2, 3:
                counted.round()
                service.hears(counted.process.pid)
                check_regions(service.ask("roofline", "--by", "region", "--pid",
                                          counted.process.pid), n_rounds)
            loops = service.ask("roofline", "--pid", counted.process.pid)["rows"]
    by_pointer = [r for r in loops if "shade" in r["function"]]
    assert by_pointer and sum(r["iterations"] for r in by_pointer) == 3 * 200, by_pointer
    assert all(r["source"] for r in loops), loops


def rate_of(service, pid, function):
    row, = [r for r in service.ask("roofline", "--pid", pid)["rows"] if r["function"] == function and not r["depth"]]
    return row["time_ns"], row["gops"]


def test_rates_of_a_loop_that_has_not_ended_are_not_known(build):
    """Its counts are added before it runs, or behind. Of a nest of three iterations they are as far off."""
    program, n = compiled(build, "runs_on.c", folder=ROOT / "tests" / "system"), 6_000_000_000
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms") as service:
        for what in "one", "nest":
            with subprocess.Popen([program, what, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={"MPERF_FEED": str(service.feed)}) as running:
                wait_until("its time is known", lambda: any(
                    r["function"] == what and r["time_ns"]
                    for r in service.ask("roofline", "--pid", running.pid)["rows"]))
                time_ns, rate = rate_of(service, running.pid, what)
                assert time_ns > 0 and rate is None, (what, time_ns, rate)
                wall_ns, cpu_ns = map(int, running.stdout.readline().split())
                time_ns, rate = rate_of(service, running.pid, what)
                # by either clock
                assert 0.8 * 2 * n / wall_ns < rate < 1.3 * 2 * n / cpu_ns, (what, rate, wall_ns, cpu_ns)
                running.kill()


def check_own_times(answer):
    """What is in a row never adds up to more than the row, nor all rows to more than the program."""
    around = []
    for row in answer["rows"]:  # each nest behind its outermost loop
        around[row["depth"]:] = [dict(row, inside_ns=row["time_self_ns"] or 0)]
        if row["depth"]:
            around[-2]["inside_ns"] += row["time_ns"] or 0
        for outer in around:
            assert outer["inside_ns"] <= (outer["time_ns"] or 0) * (1 + 1e-6) + len(around), (outer, row)
    shares = sum(row["share_self"] or 0 for row in answer["rows"])
    assert shares <= 1 + 1e-6, (shares, answer["rows"])


def of_output(build, program, folder, *arguments):
    path = folder / f"{program.name}.out"
    subprocess.run([program, *arguments], check=True, env={"MPERF_OUTPUT": str(path)},
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return rows(build, "roofline", "-n", "0", "-i", path)


def test_time_of_a_function_that_a_loop_calls_is_not_the_loops(build):
    program = compiled(build, "called.c", "-g", folder=ROOT / "tests" / "system")
    with Folder() as folder:
        answer = of_output(build, program, folder)
    check_own_times(answer)
    share = {name: sum(r["share_self"] or 0 for r in answer["rows"] if r["function"] == name)
             for name in ("work", "caller")}
    assert share["work"] > 10 * share["caller"], (share, answer["rows"])
    sampled = mperfctl(build, "roofline", "--json", "--freq", 999, "--", program, env={"MPERF_SOCKET": ""})
    answer = json.loads(sampled.stdout)
    check_own_times(answer)
    assert answer["rows"][0]["function"] == "work", answer["rows"]


def test_workers_outside_the_region_that_started_them_are_noted(build):
    program = compiled(build, "workers.c", "-fopenmp", folder=ROOT / "tests" / "system")
    with Folder() as folder:
        path = folder / "out"
        for threads, noted in (2, True), (1, False):
            subprocess.run([program], check=True, env={"MPERF_OUTPUT": str(path),
                                                       "OMP_NUM_THREADS": str(threads)})
            answer = rows(build, "roofline", "--by", "region", "-i", path)
            notes = [n for n in answer["provenance"]["notes"] if "counted in no region" in n]
            assert len(notes) == noted, answer["provenance"]
            path.unlink()


def test_time_that_threads_waited_is_noted(build):
    program = compiled(build, "waits.c", "-g", folder=ROOT / "tests" / "system")
    said = mperfctl(build, "roofline", "--json", "--freq", 999, "--", program, 20,
                    env={"MPERF_SOCKET": ""}).stdout
    with Folder() as folder:
        unsampled = of_output(build, program, folder, "0")
    for answer, noted in (json.loads(said), 1), (unsampled, 0):
        notes = [n for n in answer["provenance"]["notes"] if re.match(r"Threads had a CPU for \d+ %", n)]
        assert len(notes) == noted, answer["provenance"]


def test_what_is_in_a_row_adds_up_to_no_more_than_the_row(build):
    with Folder() as folder:
        for name, *flags in (["loops.c"], ["matmul.c"], ["flow.c"], ["callers.c"], ["exceptions.cc"],
                             ["openmp.c", "-fopenmp"]):
            check_own_times(of_output(build, compiled(build, name, *flags), folder))


def frames_of(said):
    """The JSON documents in what was printed, which begin behind what the program printed."""
    frames, decoder = [], json.JSONDecoder()
    said = said[said.index("{"):]
    while said.lstrip().startswith("{"):
        frame, end = decoder.raw_decode(said.lstrip())
        frames.append(frame)
        said = said.lstrip()[end:]
    return frames


def test_a_command_is_watched_until_it_ends(build):
    """A program waits a second at most for a service that gets no CPU time (MPERF_WAIT_TOTAL_MS), so
    beside busy programs it may take more than one try."""
    program = compiled(build, "called.c", "-g", folder=ROOT / "tests" / "system")
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        feed = {"MPERF_FEED": str(service.feed)}
        for _ in range(4):
            frames = frames_of(service.ctl("roofline", "--live", "--json", "--", program, env=feed).stdout)
            entries = sum(r["entries"] for f in frames for r in f["rows"]
                          if r["function"] == "work" and r["nest"] == "1")
            assert entries <= 50, frames
            if entries == 50:
                break
        assert entries == 50, entries
        failed = service.ctl("roofline", "--live", "--", "sh", "-c", "exit 7", env=feed, check=False)
        assert failed.returncode == 7, failed
        missing = service.ctl("roofline", "--live", "--", folder / "nothing", env=feed, check=False)
        assert missing.returncode == 127 and "cannot run" in missing.stderr, missing
        assert any("One column is 1 s" in service.ctl("blocks", "--live", "--", program, env=feed).stdout
                   for _ in range(4))
        failed = service.ctl("blocks", "--live", "--", "sh", "-c", "exit 7", env=feed, check=False)
        assert failed.returncode == 7, failed
    alone = mperfctl(build, "roofline", "--live", "--", program, env={"MPERF_SOCKET": ""}, check=False)
    assert alone.returncode == 1 and "service" in alone.stderr and not alone.stdout, alone


def stored(service, pid):
    said = service.ask("roofline", "--by", "region", "--pid", pid, "--since", "-1h")
    return said if said["rows"] else None


def counts_by_loop(answer):
    return {(r["function"], r["source"], r["nest"]): (r["entries"], r["iterations"], r["ops"],
                                                      r["bytes_loaded"]) for r in answer["rows"]}


def test_of_a_command_that_is_over_at_once_nothing_is_missing(build):
    """What it was by its exec, the service must know before it takes its first counts, and the last
    must be there when the recording ends; each run is looked at anew, some just after another."""
    program = compiled(build, "matmul.c")
    with Folder() as folder, Service(build, folder, flush="5s") as service:
        output = folder / "output"
        printed = subprocess.run([program], check=True, capture_output=True, text=True,
                                 env={"MPERF_OUTPUT": str(output)}).stdout
        whole = counts_by_loop(service.ask("roofline", "-i", output))
        assert any(entries and ops for entries, _, ops, _ in whole.values()), whole
        for _ in range(6):
            said = service.ctl("roofline", "--json", "--", program, env={"MPERF_FEED": str(service.feed)})
            assert printed in said.stderr, said
            assert counts_by_loop(json.loads(said.stdout)) == whole, said


def test_a_loop_that_runs_as_long_as_its_program_has_time(build):
    """Also where it calls what nobody sees into: what main does is in such a loop."""
    program = compiled(build, "../system/choices.c")
    with Folder() as folder, Service(build, folder, flush="5s") as service:
        running = subprocess.Popen([program, "goes-on"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   env={"MPERF_FEED": str(service.feed)})
        try:
            def of_main():
                found = service.ask("roofline", "--pid", running.pid)["rows"]
                return next((r for r in found if r["function"] == "main" and r["iterations"]), None)
            first = wait_until("main's loop is told", of_main)
            assert first["clock"] == "measured" and first["time_ns"] > 0, first
            wait_until("its time grows", lambda: of_main()["time_ns"] > first["time_ns"])
        finally:
            running.communicate()


def test_what_a_killed_program_loses_is_one_period(build):
    program = compiled(build, "regions.cc")
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms") as service:
        with Counted(program, service) as counted:
            for _ in range(5):
                counted.round()
            before = service.ask("status")["feed"][0]["rounds"]
            # the second that begins after this has all of it
            wait_until("two rounds of messages came",
                       lambda: service.ask("status")["feed"][0]["rounds"] >= before + 2)
            pid = counted.process.pid
            counted.process.kill()
            counted.process.wait()
            wait_until("it is gone", lambda: service.ask("status")["feed"][0]["programs"] == 0)
            said = wait_until("it is stored", lambda: stored(service, pid))
            check_regions(said, 5)


def test_loops_without_floats_have_time_on_request(build):
    """Without a service there are no samples; the answer says how to get the time of these loops."""
    for words, timed in (("", False), ("all-nests=1", True)):
        program = compiled(build, "loops.c", words=words)
        with Folder() as folder:
            output = folder / "run.mperf"
            subprocess.run([program], check=True, stdout=subprocess.DEVNULL, env={"MPERF_OUTPUT": str(output)})
            said = json.loads(mperfctl(build, "roofline", "-i", output, "--json").stdout)
        loops = [r for r in said["rows"] if r["function"] == "chase"]
        assert loops and all((r["time_ns"] is not None) == timed for r in loops), (words, loops)
        assert any("MPERF_PASS=all-nests=1" in n for n in said["provenance"]["notes"]) != timed, said


def test_regions_are_the_same_when_the_linker_optimises(build):
    if not shutil.which("ld.lld-19"):
        raise Skip("there is no ld.lld-19")
    for how in ("-flto=thin", "-flto=full"):
        program = compiled(build, "regions.cc", how)
        with Folder() as folder:
            output = folder / "run.mperf"
            subprocess.run([program], input="xx", text=True, check=True, stdout=subprocess.DEVNULL,
                           env={"MPERF_OUTPUT": str(output)})
            check_regions(rows(build, "roofline", "--by", "region", "-i", output), 2)


def test_a_kernel_that_alone_sets_the_segment_is_asked_to(build):
    """The emulator says of its x86-64 that programs may not write the base of %gs, and stands for
    kernels before 5.9."""
    if platform.machine() != "x86_64" or not shutil.which("qemu-x86_64"):
        raise Skip("there is no qemu-x86_64, or this is no x86-64")
    program = compiled(build, "regions.cc")
    assert "%gs:" in subprocess.run(["objdump", "-d", program], text=True, check=True,
                                    stdout=subprocess.PIPE).stdout
    with Folder() as folder:
        output = folder / "run.mperf"
        told = subprocess.run(["qemu-x86_64", "-E", "LD_SHOW_AUXV=1", program], input="xx", text=True,
                              check=True, capture_output=True,
                              env={"MPERF_OUTPUT": str(output)}).stdout
        assert "AT_PLATFORM" in told and not re.search(r"AT_HWCAP2: +0x[2367abef]\b", told), told
        check_regions(rows(build, "roofline", "--by", "region", "-i", output), 2)


def with_openmp(build, name):
    if not list(Path("/usr/lib/llvm-19/lib").glob("libomp.so*")):
        raise Skip("libomp of LLVM 19 is not installed")
    return compiled(build, name, "-fopenmp")


def test_threads_of_openmp_that_never_exit_are_told_while_they_live(build):
    program = with_openmp(build, "openmp.c")
    with Folder() as folder, Service(build, folder, flush="5s", period="1min") as service:
        for n_threads in 1, 2, 4:
            with subprocess.Popen([program, str(n_threads), "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True,
                                  env={"MPERF_FEED": str(service.feed)}) as process:
                assert process.stdout.readline()
                pid = str(process.pid)
                service.hears(pid)
                by_function = service.ask("roofline", "--by", "function", "--pid", pid)["rows"]
                by_thread = service.ask("roofline", "--by", "thread", "--pid", pid)["rows"]
                process.stdin.close()
            for name in "dealt", "as_it_comes":
                flops = sum(r["fp64_ops"] for r in by_function if r["function"] == name)
                assert flops == 200000, (n_threads, name, by_function)
            dealt = sorted(r["fp64_ops"] for r in by_thread)
            assert len(dealt) == n_threads and sum(dealt) == 400000, by_thread
            # Each has its part of what was dealt out beforehand; who got the rest is chance.
            assert dealt[0] >= 200000 / n_threads, by_thread


def test_threads_of_another_pid_namespace_are_told_apart(build):
    need_root()
    need_program("unshare")
    program = with_openmp(build, "openmp.c")
    with Folder() as folder, Service(build, folder, flush="5s", period="1min") as service:
        with subprocess.Popen(["unshare", "--pid", "--fork", program, "4", "wait"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "MPERF_FEED": str(service.feed)}) as process:
            assert process.stdout.readline()
            pid = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().strip()
            tids = {int(p.name) for p in Path(f"/proc/{pid}/task").iterdir()}
            service.hears(pid)
            by_thread = service.ask("roofline", "--by", "thread", "--pid", pid)["rows"]
            process.stdin.close()
        assert len(by_thread) == 4 and sum(r["fp64_ops"] for r in by_thread) == 400000, by_thread
        assert {int(r["tid"]) for r in by_thread} <= tids, (by_thread, tids)


def test_unequal_threads_show_in_their_bytes(build):
    """Shortcutting: what each of four threads loads is known, and printed by the program."""
    program = with_openmp(build, "shiloach_vishkin.c")
    with Folder() as folder:
        output = folder / "run.mperf"
        said = subprocess.run([program], text=True, check=True, stdout=subprocess.PIPE,
                              env={"MPERF_OUTPUT": str(output)}).stdout
        found = sorted(r["bytes_stored"] for r in rows(build, "roofline", "--by", "thread", "-i",
                                                       output)["rows"])
    stored = sorted(int(n) for n in re.findall(r"(\d+) stored", said))
    planted = 4 * 65536 // 4  # of each thread, before
    more = [n - planted - wanted for n, wanted in zip(found, stored)]
    assert len(found) == 4 and all(0 <= n < 4096 for n in more), (found, stored)
