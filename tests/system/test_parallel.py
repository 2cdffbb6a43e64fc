# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mperfctl parallel: OpenMP programs with known waits (openmp.c), which were not built for it."""
import json
import re
import shutil
import subprocess
from pathlib import Path

from attacked import EVE, MALLORY, VICTOR, UnitService, as_user
from machine import ROOT, Folder, Skip, late_at_times, leave_to_plain, making, mperfctl, rows
from service import wait_until
from test_roofline_live import with_openmp

SECONDS = 20

SOURCE = ROOT / "tests" / "system" / "openmp.c"
HEADER = Path("/usr/lib/llvm-19/lib/clang/19/include/omp-tools.h")
LINES = {m[1]: n for n, line in enumerate(SOURCE.read_text().splitlines(), 1)
         if (m := re.match(r"static void (\w+)\(", line))}


def tool(build):
    return build / "libmperf-ompt.so"


def built(build, name, *flags, compiler="clang-19", source=SOURCE):
    if build.name == "asan":
        raise Skip("shown by the plain run; what it watches knows no sanitizers here")
    if compiler == "clang-19" and not (shutil.which(compiler) and HEADER.exists()):
        raise Skip("clang-19 and libomp-19-dev are not installed")
    target = build / "tests" / "programs" / name
    with making(build, name):
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([compiler, "-g", "-O1", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-fopenmp",
                            "-o", target, source, *flags], check=True)
    return target


def program(build):
    return built(build, "openmp")


def ran(build, *arguments, **environment):
    return json.loads(mperfctl(build, "parallel", "--json", *arguments, env=environment).stdout)["rows"]


def parallel(build, which, *options, by="region", **environment):
    return ran(build, "--by", by, *options, "--", program(build), which, **environment)


def recorded(build, path, *command):
    mperfctl(build, "record", "-g", "fp", "-F", 200, "-o", path, "--", *command,
             env={"OMP_TOOL_LIBRARIES": str(tool(build))})


def one(found, **values):
    """The only row with these values."""
    fitting = [row for row in found if all(row[k] == v for k, v in values.items())]
    assert len(fitting) == 1, (values, found)
    return fitting[0]


def in_function(found, name, key="function"):
    return [row for row in found if row[key] == name]


def test_the_interface_is_that_of_llvm(build):
    """ompt.h says what omp-tools.h of LLVM says."""
    if not HEADER.exists():
        raise Skip("libomp-19-dev is not installed")
    ours = (ROOT / "runtime" / "ompt" / "ompt.h").read_text()
    pairs = {"OMPT_PARALLEL_BEGIN": "ompt_callback_parallel_begin", "OMPT_PARALLEL_END": "ompt_callback_parallel_end",
             "OMPT_TASK_SCHEDULE": "ompt_callback_task_schedule", "OMPT_IMPLICIT_TASK": "ompt_callback_implicit_task",
             "OMPT_SYNC_REGION_WAIT": "ompt_callback_sync_region_wait", "OMPT_WORK": "ompt_callback_work",
             "OMPT_MUTEX_ACQUIRE": "ompt_callback_mutex_acquire", "OMPT_MUTEX_ACQUIRED": "ompt_callback_mutex_acquired",
             "OMPT_NEST_LOCK": "ompt_callback_nest_lock",
             "OMPT_SCOPE_BEGIN": "ompt_scope_begin", "OMPT_SCOPE_END": "ompt_scope_end",
             "OMPT_SYNC_BARRIER": "ompt_sync_region_barrier", "OMPT_SYNC_BARRIER_IMPLICIT": "ompt_sync_region_barrier_implicit",
             "OMPT_SYNC_BARRIER_EXPLICIT": "ompt_sync_region_barrier_explicit",
             "OMPT_SYNC_BARRIER_IMPLEMENTATION": "ompt_sync_region_barrier_implementation",
             "OMPT_SYNC_TASKWAIT": "ompt_sync_region_taskwait", "OMPT_SYNC_TASKGROUP": "ompt_sync_region_taskgroup",
             "OMPT_SYNC_REDUCTION": "ompt_sync_region_reduction",
             "OMPT_SYNC_BARRIER_WORKSHARE": "ompt_sync_region_barrier_implicit_workshare",
             "OMPT_SYNC_BARRIER_PARALLEL": "ompt_sync_region_barrier_implicit_parallel",
             "OMPT_SYNC_BARRIER_TEAMS": "ompt_sync_region_barrier_teams", "OMPT_WORK_LOOP": "ompt_work_loop",
             "OMPT_WORK_SECTIONS": "ompt_work_sections", "OMPT_WORK_SINGLE_EXECUTOR": "ompt_work_single_executor",
             "OMPT_WORK_SINGLE_OTHER": "ompt_work_single_other", "OMPT_WORK_LOOP_STATIC": "ompt_work_loop_static",
             "OMPT_WORK_LOOP_OTHER": "ompt_work_loop_other", "OMPT_MUTEX_LOCK": "ompt_mutex_lock",
             "OMPT_MUTEX_TEST_LOCK": "ompt_mutex_test_lock",
             "OMPT_MUTEX_TEST_NEST_LOCK": "ompt_mutex_test_nest_lock", "OMPT_MUTEX_CRITICAL": "ompt_mutex_critical",
             "OMPT_MUTEX_ATOMIC": "ompt_mutex_atomic", "OMPT_MUTEX_ORDERED": "ompt_mutex_ordered"}
    mine = {name: int(n) for name, n in re.findall(r"(OMPT_\w+) = (\d+)", ours)}
    assert set(mine) == set(pairs), set(mine) ^ set(pairs)
    theirs = re.sub(r"\bDEPRECATED_51\b", "", HEADER.read_text())
    for name, number in mine.items():
        said = re.search(rf"\b{pairs[name]}\b\s*=\s*(\d+)", theirs)
        assert said and int(said[1]) == number, (name, number, said)


@late_at_times
def test_uneven_work_is_an_imbalance(build):
    found = parallel(build, "uneven")
    region = one(found, function="uneven")
    line = int(region["source"].rsplit(":", 1)[1])
    assert str(SOURCE).endswith(region["source"].rsplit(":", 1)[0]) and 0 < line - LINES["uneven"] < 5, region
    assert (region["threads"], region["calls"]) == (4, 5), region
    # 20, 40, 60 and 80 ms of 80: 80 over a mean of 50, and 6 sixteenths are waited
    assert 0.3 < region["imbalance"] < 1.2, region
    assert 0.2 < region["wait"] < 0.65 and region["lock"] == 0, region
    assert region["elapsed_ns"] >= 400e6 and region["time_ns"] >= 3.9 * 400e6, region
    assert abs(region["work"] + region["wait"] + region["lock"] - 1) < 1e-6, region
    loop = one(parallel(build, "uneven", by="place"), what="loop")
    assert loop["function"] == "uneven" and loop["entries"] == 20 and loop["time_ns"] >= 1e9, loop
    assert 0.3 < loop["imbalance"] < 1.2, loop


@late_at_times
def test_waits_are_told_by_thread(build):
    found = in_function(parallel(build, "uneven", by="wait"), "uneven")
    waits = sorted(row["time_ns"] / 5e6 for row in found)
    assert len(found) == len({row["tid"] for row in found}) == 4, found
    assert all(row["what"] == "end of region" and row["entries"] == 5 for row in found), found
    # the last waits for nobody, the first for 60 ms
    assert waits[0] < waits[3] / 2 and waits[2] > 20 and waits[3] > 50, waits
    threads = in_function(parallel(build, "uneven", by="thread"), "uneven")
    assert len(threads) == 4 and all(row["entries"] == 5 for row in threads), threads
    works = [row["work_ns"] for row in threads]
    assert min(works) >= 0.1e9 and max(works) >= 0.4e9, threads


@late_at_times
def test_locks_are_waited_for_in_turn(build):
    found = in_function(parallel(build, "locks", by="place"), "locks")
    # the attempt is a lock of another place
    lock = max((row for row in found if row["what"] == "lock"), key=lambda row: row["time_ns"])
    critical = one(found, what="critical")
    # 0, 30, 60 and 90 ms; an attempt in vain is no wait
    assert 0.17e9 < lock["time_ns"] < 0.5e9 and 0.085e9 < lock["longest_ns"], found
    assert critical["entries"] == 4 and "openmp.c" in critical["source"], critical
    assert one(found, what="barrier")["entries"] == 4, found
    region = one(parallel(build, "locks"), function="locks")
    assert 0.2 < region["lock"] < 0.7, region


def test_an_attempt_at_a_lock_in_vain_is_no_wait(build):
    """Nor while the program reports, again and again, after it."""
    region = one(parallel(build, "attempts", MPERF_PERIOD="50"), function="attempts")
    assert region["lock"] == 0 and region["time_ns"] >= 2 * 300e6, region
    places = [row for row in parallel(build, "attempts", by="place", MPERF_PERIOD="50") if row["what"] == "lock"]
    assert sum(row["entries"] for row in places) == 2 and all(row["time_ns"] < 0.1e9 for row in places), places


def test_a_lock_that_the_thread_has_is_no_wait(build):
    region = one(parallel(build, "owned", MPERF_PERIOD="50"), function="owned")
    assert region["lock"] < 0.1 and region["time_ns"] >= 2 * 300e6, region
    places = [row for row in parallel(build, "owned", by="place", MPERF_PERIOD="50") if row["what"] == "lock"]
    assert sum(row["entries"] for row in places) == 4 and all(row["time_ns"] < 0.1e9 for row in places), places


def test_tasks_that_run_while_a_thread_waits_are_work(build):
    region = one(parallel(build, "tasks"), function="tasks")
    # 16 tasks of 20 ms
    assert region["work"] * region["time_ns"] > 0.3e9, region
    places = parallel(build, "tasks", by="place")
    assert one(places, what="single")["entries"] == 1 and one(places, what="taskwait"), places


def test_a_region_that_ends_its_function_is_told_by_its_body(build):
    """Its call is a jump, and returns to main."""
    region = one(parallel(build, "tasks"), function="tasks")
    assert 0 < int(region["source"].rsplit(":", 1)[1]) - LINES["tasks"] < 5, region


def test_regions_nest(build):
    every = parallel(build, "nested")
    inner = one(every, inside="nested")
    outer = one(every, function="nested", inside=None)
    assert outer["calls"] == 1 and outer["threads"] == 2, every
    assert inner["calls"] == 2 and inner["threads"] in (3, 4) and inner["time_ns"] >= 4 * 20e6, every


def test_regions_of_many_threads_are_all_counted(build):
    """LLVM's runtime frees a team before it says that its region ends, and another thread may have it by then."""
    every = parallel(build, "crowd")
    outer = one(every, inside=None)
    inner, = (row for row in every if row["inside"])
    assert (outer["calls"], outer["threads"]) == (1, 4), every
    assert inner["calls"] == 4 * 1000 and inner["time_ns"] <= 2 * outer["time_ns"], every


def test_threads_that_wait_for_a_league_of_teams_wait_at_no_place(build):
    assert [row["calls"] for row in parallel(build, "league") if row["inside"]] == [2]
    places = parallel(build, "league", by="place")
    assert all(row["time_ns"] < 0.2e9 for row in places), places


def test_regions_beyond_the_limit_are_counted_together(build):
    found = parallel(build, "many", "--limit", 0)
    others = one(found, function="[other regions]")
    calls = sum(row["calls"] for row in found)
    assert calls == sum(4 ** n for n in range(1, 7)) and others["calls"] > 1000, (calls, others)


def test_a_fork_in_a_region_adds_nothing_to_the_parents(build):
    """The child ends before its first report."""
    found = in_function(parallel(build, "forks", "--limit", 0), "forks")
    one(found, inside=None, threads=2, calls=1)


def test_a_program_with_a_tool_of_its_own_keeps_it(build):
    own = built(build, "openmp-own", "-DOWN_TOOL", "-rdynamic")
    for variable in "OMP_TOOL_LIBRARIES", "LD_PRELOAD":
        with Folder() as folder:
            output = folder / "out"
            said = subprocess.run([own, "uneven", "say"], text=True, capture_output=True, check=True, timeout=60,
                                  env={variable: str(tool(build)), "MPERF_OUTPUT": str(output)})
            assert said.stdout.startswith("own tool of ") and said.stdout.endswith("done\nown tool ends\n"), said
            assert said.stderr == "" and not output.exists(), (variable, said)


def test_each_way_to_load_it_works_and_says_nothing(build):
    linked = built(build, "openmp-linked", "-Wl,--no-as-needed", str(tool(build)), f"-Wl,-rpath,{build.resolve()}")
    ways = [(program(build), {"OMP_TOOL_LIBRARIES": str(tool(build))}),
            (program(build), {"LD_PRELOAD": str(tool(build))}), (linked, {})]
    for command, environment in ways:
        with Folder() as folder:
            output = folder / "out"
            said = subprocess.run([command, "nested", "say"], text=True, capture_output=True, check=True, timeout=60,
                                  env={**environment, "MPERF_OUTPUT": str(output)})
            assert (said.stdout, said.stderr) == ("done\n", ""), said
            found = rows(build, "parallel", "-i", output)["rows"]
            # addresses in a file stay without names
            assert {row["calls"] for row in found} == {1, 2}, found
            assert all(re.fullmatch(r"\[openmp[-a-z]*\+0x[0-9a-f]+\]", row["function"])
                       for row in found), found
    for off in {"OMP_TOOL": "disabled"}, {"MPERF_FEED": "", "MPERF_OUTPUT": ""}, {"OMP_TOOL_LIBRARIES": "/no/other.so"}:
        with Folder() as folder:
            output = folder / "out"
            environment = {"LD_PRELOAD": str(tool(build)), "MPERF_OUTPUT": str(output), **off}
            subprocess.run([program(build), "nested"], check=True, timeout=60, env=environment, capture_output=True)
            assert not output.exists(), off


def test_a_runtime_that_is_opened_late_is_found(build):
    """Neither the program nor what it is linked with knows OpenMP."""
    library = built(build, "openmp-library.so", "-DLIBRARY", "-shared", "-fPIC", "-Wl,-rpath,/usr/lib/llvm-19/lib")
    with Folder() as folder:
        source = folder / "opener.c"
        source.write_text('#include <dlfcn.h>\nint main(int n, char **a) { (void)n; '
                          'void *l = dlopen(a[1], RTLD_NOW); if (!l) return 1; '
                          '((void (*)(const char *))dlsym(l, "regions"))("uneven"); return dlclose(l); }\n')
        subprocess.run(["cc", "-o", folder / "opener", source, "-ldl"], check=True)
        found = ran(build, "--", folder / "opener", library)
        assert one(found, function="uneven")["calls"] == 5, found


def test_with_libgomp_nothing_happens_and_it_is_said(build):
    gnu = built(build, "openmp-gnu", compiler="gcc")
    done = mperfctl(build, "parallel", "--", gnu, "uneven", "say")
    assert "LD_PRELOAD=libomp.so.5" in done.stderr and done.stderr.startswith("done\n"), done
    counted = mperfctl(build, "parallel", "--json", "--", "env", "LD_PRELOAD=libomp.so.5", gnu, "uneven", "say")
    assert json.loads(counted.stdout)["rows"], counted
    said = subprocess.run([gnu, "uneven", "say"], text=True, capture_output=True, check=True,
                          env={"LD_PRELOAD": str(tool(build))})
    assert (said.stdout, said.stderr) == ("done\n", ""), said


def test_samples_and_recordings_are_joined(build):
    leave_to_plain(build, "a sanitized tool does not load into a program without sanitizers")
    with Folder() as folder:
        source, recording = folder / "busy.c", folder / "run.mprf"
        source.write_text("""
            #include <omp.h>
            double a[4096];
            __attribute__((noinline)) double heavy(double until) {
                double sum = 0;
                while (omp_get_wtime() < until) for (int i = 0; i < 4096; i++) sum += a[i];
                return sum; }
            int main(void) {
                double sum = 0, until = omp_get_wtime() + 1;
                #pragma omp parallel for schedule(static, 1) num_threads(2) reduction(+:sum)
                for (int i = 0; i < 2; i++) sum += heavy(until);
                return sum > 1; }
            """)
        busy = folder / "busy"
        if not shutil.which("clang-19") or not HEADER.exists():
            raise Skip("clang-19 and libomp-19-dev are not installed")
        subprocess.run(["clang-19", "-g", "-O1", "-fno-omit-frame-pointer", "-fopenmp", "-o", busy, source], check=True)
        recorded(build, recording, busy)
        functions = rows(build, "parallel", "--by", "function", "-i", recording)["rows"]
        inside = sum(row["sampled_ns"] for row in functions if row["region"] == "main")
        everything = sum(row["sampled_ns"] for row in functions)
        assert inside > 0.8 * everything and one(functions, region="main", function="heavy"), functions
        region = one(rows(build, "parallel", "-i", recording)["rows"], function="main")
        assert region["sampled_ns"] == inside and region["imbalance"] < 0.2, (region, functions)
        for command in "roofline", "blocks":  # which are of other things
            assert rows(build, command, "-i", recording)["rows"] == [], command


def test_loops_that_count_themselves_are_joined(build):
    """Two threads have half of a loop each, so their iterations are even, whatever their times."""
    counted = with_openmp(build, "openmp.c")
    with Folder() as folder:
        # it lives until its standard input ends, so that its threads are known
        recorded(build, folder / "run.mprf", "sh", "-c", f"sleep 1 | {counted} 2 wait")
        found = rows(build, "parallel", "--by", "loop", "-i", folder / "run.mprf")["rows"]
    dealt = one(found, function="dealt")
    assert (dealt["threads"], dealt["imbalance"], dealt["fp_ops"]) == (2, 0, 200000), found
    assert sum(row["fp_ops"] for row in in_function(found, "as_it_comes")) == 200000, found


def regions_of(service, uid):
    done = service.user(uid, "parallel", "--json")
    return json.loads(done.stdout)["rows"] if done.stdout else []


def test_a_runtime_that_may_not_load_tools_is_named(build):
    done = mperfctl(build, "parallel", "--", program(build), "uneven", "say", env={"OMP_TOOL": "disabled"})
    assert "OMP_TOOL=disabled" in done.stderr and "done\n" in done.stderr, done


def test_users_see_their_own_regions(build):
    """Through a service, which keeps them; and another user's build of the same has its own names."""
    with Folder() as folder, UnitService(build, folder, flush="1s", period="1min") as service:
        ours = folder / "openmp"
        shutil.copy(program(build), ours)
        shutil.copy(tool(build), folder)
        for uid in MALLORY, VICTOR:
            subprocess.run(as_user(uid, ours, "uneven"), check=True, timeout=60, cwd=folder,
                           env={"MPERF_FEED": str(service.feed),
                                "OMP_TOOL_LIBRARIES": str(folder / tool(build).name)})
        # names come after the counts
        wait_until("both are named",
                   lambda: len(in_function(service.ask("parallel")["rows"], "uneven")) == 2)
        for uid in MALLORY, VICTOR:
            region = one(regions_of(service, uid), function="uneven")
            assert region["threads"] == 4 and region["calls"] == 5, region
        assert regions_of(service, EVE) == [], "nobody's"
