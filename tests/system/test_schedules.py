# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: recordings at a time, of units' and of labelled jobs, within the budget, and whose they are."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

from container import HostContainer
from machine import (NOBODY, ROOT, Folder, Skip, as_nobody, everybodys, leave_to_plain, mperfctl, need_program, need_root,
                     refused)
from rates import rate_allowed
from service import Service, wait_until
from test_install import make
from test_limits import small_disc

SECONDS = 120
SANITIZED = ("test_a_schedule_with_a_time_records_the_whole_system_and_outlives_a_restart",
             "test_each_job_of_a_unit_is_recorded_whole")

CGROUPS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
SPIN = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done"
BUSY = ["sh", "-c", SPIN.format(400000)]
NOBODY_UID = 65534


def drop_in(folder, name, *lines):
    path = Path(folder) / "schedules.d" / f"{name}.schedule"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["[Schedule]", *lines]) + "\n")
    return path


def row_of(service, name):
    return next(row for row in service.ask("schedule")["schedule"] if row["schedule"] == name)


def runs_of(service, name):
    return [row for row in service.ask("schedule")["run"] if row["schedule"] == name]


def over(service, name, n=1):
    """The runs of a schedule, once n of them have ended and none goes on."""
    def ended():
        runs = runs_of(service, name)
        return len(runs) >= n and all(run["result"] != "goes on" for run in runs) and runs
    return wait_until(f"{n} runs of {name} have ended", ended)


def files_below(service):
    return sorted(str(p.relative_to(service.store / "schedules"))
                  for p in (service.store / "schedules").rglob("*.mprf*"))


def processes_of(service, recording, folder):
    service.ctl("schedule", "get", recording, "-o", folder / "got.mprf")
    rows = json.loads(service.ctl("hotspots", "-i", folder / "got.mprf", "--by", "process", "-n", "0",
                                  "--json").stdout)["rows"]
    return {row["comm"] for row in rows}


@contextlib.contextmanager
def unit(name):
    """A control group as systemd makes one for a unit; yields the words that run a command in it."""
    need_root()
    root = next((Path(c) for c in CGROUPS if (Path(c) / "cgroup.controllers").exists()), None)
    if root is None:
        raise Skip("there is no cgroup version 2")
    group = root / name
    try:
        group.mkdir()
    except OSError as error:
        raise Skip(f"control groups cannot be made: {error}") from None
    try:
        yield lambda *command: ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec \"$@\"", "sh", *command]
    finally:
        wait_until("the control group can be removed", lambda: not group.rmdir() or True)


# --- at a time ----------------------------------------------------------------------------------

def test_a_schedule_with_a_time_records_the_whole_system_and_outlives_a_restart(build):
    with Folder() as folder:
        drop_in(folder, "nightly", "OnCalendar=02:00", "Duration=2s", f"Frequency={rate_allowed(999)}",
                "CallGraph=fp")
        with Service(build, folder, flush="1s") as service:
            with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
                done = service.ctl("schedule", "run", "nightly")
                busy.kill()
            assert re.search(r"schedule nightly recorded: [0-9,]+ samples in nightly/\S+\.mprf", done.stderr), done
            (run,) = over(service, "nightly")
            assert run["result"] == "recorded" and run["job"] == "the whole system" and run["why"] is None, run
            assert run["samples"] > 20 and run["hz"] == rate_allowed(999), run
            assert 1.9e9 < run["duration_ns"] < 60e9, run
            assert "sh" in processes_of(service, run["recording"], Path(folder))
            assert (Path(folder) / "got.mprf").stat().st_size == run["bytes"]
            assert row_of(service, "nightly")["records"] == \
                f"02:00, at most 2 s at {rate_allowed(999)} Hz with stacks"
            assert service.stop() == 0
            service.start()
            assert runs_of(service, "nightly") == [run]
            text = service.ctl("schedule").stdout
            assert "Recorded and skipped" in text and run["recording"] in text, text


def test_a_run_that_is_told_to_end_keeps_what_it_has(build):
    with Folder() as folder:
        drop_in(folder, "long", "OnCalendar=02:00", "Duration=1h")
        with Service(build, folder, flush="1s") as service:
            environment = {**os.environ, "MPERF_SOCKET": str(service.socket)}
            with subprocess.Popen([build / "mperfctl", "schedule", "run", "long"], env=environment,
                                  stderr=subprocess.PIPE, text=True) as run:
                wait_until("it runs", lambda: runs_of(service, "long"))
                done = service.ctl("schedule", "run", "long", check=False)
                refused(done, 1, "is already running")
                time.sleep(1)
                run.send_signal(signal.SIGTERM)
                _, said = run.communicate(timeout=60)
            assert run.returncode == 0 and "ended early" in said and "it was stopped" in said, said
            (ended,) = over(service, "long")
            assert ended["samples"] > 0 and ended["recording"] in files_below(service), ended


def test_only_some_recordings_are_kept(build):
    with Folder() as folder:
        drop_in(folder, "often", "OnCalendar=hourly", "Duration=1s", "Keep=2")
        with Service(build, folder, flush="1s") as service:
            for _ in range(4):
                service.ctl("schedule", "run", "often")
            runs = over(service, "often", 2)
            assert [run["recording"] for run in runs] == files_below(service) and len(runs) == 2, runs
            assert row_of(service, "often")["kept"] == 2


def test_what_cannot_be_recorded_is_skipped_with_its_reason(build):
    with Folder() as folder:
        drop_in(folder, "nightly", "OnCalendar=02:00", "Duration=1s")
        drop_in(folder, "fast", "OnCalendar=02:00", "Duration=1s", "Frequency=49999")
        drop_in(folder, "jobs", "Share=5%")
        with Service(build, folder, flush="1s") as service:
            done = service.ctl("schedule", "run", "fast", check=False)
            assert done.returncode == 3 and "more than rate-max" in done.stderr, done
            service.ctl("schedule", "run", "fast", check=False)
            (run,) = runs_of(service, "fast")
            assert run["result"] == "skipped" and run["times"] == 2 and run["recording"] is None, run
            service.write_config(min_free="64T")
            service.process.send_signal(signal.SIGHUP)
            wait_until("it has read that", lambda: "configuration reloaded" in service.said())
            done = service.ctl("schedule", "run", "nightly", check=False)
            assert done.returncode == 3 and "less than min-free" in done.stderr, done
            refused(service.ctl("schedule", "run", "none", check=False), 1, "knows no schedule 'none'")
            refused(service.ctl("schedule", "run", "jobs", check=False), 2, "records jobs")
            assert not files_below(service)


def test_a_full_disc_loses_the_recording_and_nothing_else(build):
    with Folder() as folder, small_disc(Path(folder) / "disc", "24m") as disc:
        drop_in(folder, "long", "OnCalendar=02:00", "Duration=1h", f"Frequency={rate_allowed(999)}")
        drop_in(folder, "short", "OnCalendar=02:00", "Duration=1s")
        with Service(build, folder, flush="1s", path=disc / "store", budget="16M", rate=rate_allowed(499)) as service, \
                subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
            try:
                service.store = disc / "store"
                environment = {**os.environ, "MPERF_SOCKET": str(service.socket)}
                run = subprocess.Popen([build / "mperfctl", "schedule", "run", "long"], env=environment, text=True,
                                       stderr=subprocess.PIPE)
                wait_until("it has written", lambda: files_below(service))
                with open(disc / "filler", "wb") as filler, contextlib.suppress(OSError):
                    while filler.write(bytes(1 << 16)):
                        filler.flush()
                _, said = run.communicate(timeout=100)
            finally:
                busy.kill()
            assert run.returncode == 1 and "no space is left" in said, said
            (lost,) = over(service, "long")
            assert lost["result"] == "failed" and lost["recording"] is None and not files_below(service), lost
            (disc / "filler").unlink()
            service.ctl("schedule", "run", "short")
            assert over(service, "short")[0]["result"] == "recorded"


def test_a_used_up_budget_skips_runs_and_says_so(build):
    with Folder() as folder:
        drop_in(folder, "nightly", "OnCalendar=02:00", "Duration=1s", "Frequency=999")
        drop_in(folder, "jobs", "Label=job=b*")
        with Service(build, folder, flush="1s", overhead="0.0001%", rate=rate_allowed(499)) as service, \
                subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
            try:
                wait_until("the rate is lowered", lambda: "only one in" in service.ask("status")["budget"][0]["given_up"],
                           180)
                done = service.ctl("schedule", "run", "nightly", check=False)
                service.ctl("job", "run", "build", "--", "true")
            finally:
                busy.kill()
            assert done.returncode == 3 and "overhead = 0.0001 % does not allow it" in done.stderr, done
            (run,) = over(service, "jobs")
            assert run["result"] == "skipped" and "overhead = 0.0001 %" in run["why"], run
            assert "job=build" in run["job"], run
            assert not files_below(service)


# --- jobs ---------------------------------------------------------------------------------------

def test_each_job_of_a_unit_is_recorded_whole(build):
    own = f"{os.getpid()}.service"  # another build's daemon may be tested beside this one
    with Folder() as folder, unit(f"ci-{own}") as inside, unit(f"other-{own}") as outside:
        drop_in(folder, "ci", f"Unit=c*-{own}")
        with Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
            copy = Path(folder) / "in-the-unit"
            shutil.copy(os.path.realpath(shutil.which("sh")), copy)
            subprocess.run(inside(copy, "-c", f"{SPIN.format(300000)}; {copy} -c '{SPIN.format(300000)}'; true"),
                           check=True)
            subprocess.run(outside(*BUSY), check=True)
            (run,) = over(service, "ci")
            assert run["result"] == "recorded" and run["job"] == f"ci-{own}", run
            assert run["samples"] > 10 and run["uid"] == 0, run
            assert processes_of(service, run["recording"], Path(folder)) == {"in-the-unit"}
            row = row_of(service, "ci")
            assert (row["jobs"], row["drawn"], row["result"]) == (1, 1, "recorded"), row


def test_a_build_is_recorded_with_all_that_it_starts(build):
    need_program("gcc")
    with Folder() as folder:
        drop_in(folder, "builds", "Label=job=build", "Label=branch=m*", f"Frequency={rate_allowed(999)}")
        source = Path(folder) / "big.c"
        source.write_text("\n".join(f"double f{i}(double x) {{ return x * {i} + f{i - 1 if i else 0}(x); }}"
                                    if i else "double f0(double x) { return x; }" for i in range(500)))
        with Service(build, folder, flush="1s") as service:
            gcc = ["gcc", "-O2", "-c", "-o", "/dev/null", source]
            service.ctl("job", "run", "build", "--label", "branch=dev", "--", *gcc)
            service.ctl("job", "run", "tests", "--label", "branch=main", "--", "true")
            service.ctl("job", "run", "build", "--label", "branch=main", "--", *gcc)
            (run,) = over(service, "builds")
            assert run["result"] == "recorded" and "branch=main, job=build" in run["job"], run
            found = processes_of(service, run["recording"], Path(folder))
            assert "cc1" in found and found <= {"gcc", "cc1", "as", "mperfctl", "x86_64-linux-gn"}, found
            print(f"  {run['samples']} samples of a compiler in {run['duration_ns'] / 1e9:.1f} s, {run['bytes']} bytes")


def test_a_share_of_jobs_is_drawn_by_chance(build):
    with Folder() as folder:
        drop_in(folder, "half", "Share=50%")
        drop_in(folder, "few", "Share=0.0001%")
        with Service(build, folder, flush="1s") as service:
            for _ in range(40):  # of all series of 40 draws, one in a million has fewer than 5 or more than 35
                service.ctl("job", "run", "x", "--", "true")
            half = row_of(service, "half")
            assert half["jobs"] == 40 and 5 <= half["drawn"] <= 35, half
            assert row_of(service, "few")["jobs"] == 40 and not runs_of(service, "few"), row_of(service, "few")
            print(f"  {half['drawn']} of 40 were drawn")


def test_runs_at_once_are_limited_and_jobs_that_do_not_end_are_cut(build):
    with Folder() as folder:
        drop_in(folder, "all", "Share=100%", "Duration=10s", "Keep=100")
        with Service(build, folder, flush="1s") as service, contextlib.ExitStack() as stack:
            environment = {**os.environ, "MPERF_SOCKET": str(service.socket)}
            jobs = [stack.enter_context(subprocess.Popen(
                [build / "mperfctl", "job", "run", f"job{i}", "--", "sleep", "60"], env=environment))
                for i in range(18)]
            runs = over(service, "all", 17)
            for job in jobs:
                job.terminate()
            cut = [run for run in runs if run["result"] == "ended early"]
            assert len(cut) == 16 and all("lasted longer than Duration=" in run["why"] for run in cut), runs
            (skipped,) = [run for run in runs if run["result"] == "skipped"]
            assert skipped["times"] == 2 and "16 scheduled recordings are already running" in skipped["why"], skipped


def test_a_killed_service_leaves_no_files_and_says_what_was_lost(build):
    with Folder() as folder, unit("ci-mperf-killed.service") as inside:
        drop_in(folder, "ci", "Unit=ci-*.service")
        with Service(build, folder, flush="1s", rate=rate_allowed(499)) as service, \
                subprocess.Popen(inside("sh", "-c", "while :; do :; done")) as busy:
            try:
                wait_until("it records", lambda: runs_of(service, "ci"))
                wait_until("it has written", lambda: files_below(service))
                service.kill()
                service.start()
                lost, skipped = wait_until("the job is met again", lambda: len(runs := runs_of(service, "ci")) == 2
                                           and runs)
                assert lost["result"] == "failed" and lost["why"] == "mperfd was killed while it recorded", lost
                assert skipped["result"] == "skipped" and "already running" in skipped["why"], skipped
                assert not files_below(service)
            finally:
                busy.kill()
                busy.wait()


def test_recordings_of_a_user_are_that_users(build):
    need_root()
    with Folder() as folder:
        drop_in(folder, "jobs", "Label=job=*")
        drop_in(folder, "nightly", "OnCalendar=02:00", "Duration=1s")
        with Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
            environment = {**everybodys(build, Path(folder)), "MPERF_SOCKET": str(service.socket)}
            service.ctl("job", "run", "roots", "--", *BUSY)
            service.ctl("schedule", "run", "nightly")
            done = as_nobody(Path(folder), environment, "job", "run", "mine", "--", *BUSY)
            assert done.returncode == 0, done.stderr
            runs = over(service, "jobs", 2)
            roots, mine = (next(r for r in runs if name in r["job"]) for name in ("job=roots", "job=mine"))
            (night,) = runs_of(service, "nightly")
            assert (roots["uid"], mine["uid"]) == (0, NOBODY_UID), runs

            seen = json.loads(as_nobody(Path(folder), environment, "schedule", "--json").stdout)
            assert [run["job"] for run in seen["run"] if run["schedule"] == "jobs"] == [mine["job"]], seen
            assert [run["recording"] for run in seen["run"]] == [None, mine["recording"]], seen
            for theirs in roots, night:
                done = as_nobody(Path(folder), environment, "schedule", "get", theirs["recording"])
                refused(done, 1, "no recording", "that you may read")
            for path in "runs.log", "../runs.log", f"../schedules/{mine['recording']}", "/etc/passwd":
                refused(as_nobody(Path(folder), environment, "schedule", "get", path), 1, "no recording")
            refused(as_nobody(Path(folder), environment, "schedule", "run", "nightly"), 1, "mperf")
            done = as_nobody(Path(folder), environment, "schedule", "get", mine["recording"], "-o", "mine.mprf")
            assert done.returncode == 0 and "wrote mine.mprf" in done.stderr, done
            shown = as_nobody(Path(folder), {**environment, "MPERF_SOCKET": ""}, "hotspots", "-i", "mine.mprf",
                              "--by", "module", "--json", "-n", "0")
            modules = {row["module"] for row in json.loads(shown.stdout)["rows"]}
            assert any("sh" in (m or "") for m in modules), modules
            assert not any(m and m.startswith("[kernel.") for m in modules), modules


def test_another_user_gets_nothing_of_mine(build):
    need_root()
    with Folder() as folder:
        drop_in(folder, "jobs", "Label=job=*")
        with Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
            environment = {**everybodys(build, Path(folder)), "MPERF_SOCKET": str(service.socket)}
            done = as_nobody(Path(folder), environment, "job", "run", "mine", "--", *BUSY)
            assert done.returncode == 0, done.stderr
            (mine,) = over(service, "jobs")
            other = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", Path(folder) / "mperfctl"]
            environment = {**os.environ, **environment}
            seen = subprocess.run([*other, "schedule", "--json"], env=environment, text=True, capture_output=True,
                                  check=True)
            assert json.loads(seen.stdout)["run"] == [], seen.stdout
            done = subprocess.run([*other, "schedule", "get", mine["recording"]], env=environment, text=True,
                                  capture_output=True, cwd=Path(folder) / "tmp", check=False)
            refused(done, 1, "no recording")


def test_a_user_has_a_part_of_the_runs_at_once(build):
    need_root()
    with Folder() as folder:
        drop_in(folder, "jobs", "Label=job=*")
        with Service(build, folder, flush="1s") as service:
            environment = {**everybodys(build, Path(folder)), "MPERF_SOCKET": str(service.socket)}
            script = f"for i in 1 2 3 4 5 6; do {folder / 'mperfctl'} job run job$i -- sleep 20 & done; wait"
            with subprocess.Popen([*NOBODY, "sh", "-c", script], env={**os.environ, **environment},
                                  start_new_session=True) as jobs:
                runs = wait_until("all were met", lambda: sum(r["times"] for r in runs_of(service, "jobs")) == 6 and
                                  runs_of(service, "jobs"))
                service.ctl("job", "run", "roots", "--", "true")
                os.killpg(jobs.pid, signal.SIGTERM)
            going, skipped = ([r for r in runs if r["result"] == what] for what in ("goes on", "skipped"))
            assert len(going) == 4 and skipped[0]["times"] == 2, runs
            assert "4 scheduled recordings of this user's jobs are already running" in skipped[0]["why"], skipped
            roots = [r for r in over(service, "jobs", 6) if r["uid"] == 0]
            assert [r["result"] for r in roots] == ["recorded"], roots


# --- drop-ins -----------------------------------------------------------------------------------

def test_a_drop_in_that_is_wrong_costs_no_other_and_a_reload_reads_them_again(build):
    with Folder() as folder:
        drop_in(folder, "good", "Unit=ci-*.service")
        bad = drop_in(folder, "bad", "Unit=ci-*.service", "Kepp=3")
        (bad.parent / "pipe.schedule").unlink(missing_ok=True)
        os.mkfifo(bad.parent / "pipe.schedule")
        with Service(build, folder, flush="1s") as service:
            answer = service.ask("schedule")
            assert [row["schedule"] for row in answer["schedule"]] == ["good"], answer
            faults = sorted(row["fault"] for row in answer["fault"])
            assert len(faults) == 2 and f"{bad}:3: unknown key 'Kepp'; did you mean 'Keep'?" == faults[0], faults
            assert "it is not a regular file" in faults[1], faults
            assert faults[0] in service.said(), service.said()
            drop_in(folder, "bad", "Unit=ci-*.service", "Keep=3")
            service.process.send_signal(signal.SIGHUP)
            wait_until("it has read that", lambda: "configuration reloaded" in service.said())
            names = [row["schedule"] for row in service.ask("schedule")["schedule"]]
            assert names == ["bad", "good"], names


def test_a_reload_that_names_another_store_ends_runs_in_the_log_of_the_old_one(build):
    with Folder() as folder:
        drop_in(folder, "short", "OnCalendar=02:00", "Duration=1s")
        drop_in(folder, "long", "OnCalendar=02:00", "Duration=1h")
        first, second = Path(folder) / "store", Path(folder) / "other"

        def move(service, path):
            n = service.said().count("configuration reloaded")
            service.write_config(path=path)
            service.process.send_signal(signal.SIGHUP)
            wait_until("it has read that", lambda: service.said().count("configuration reloaded") > n)

        with Service(build, folder, flush="1s") as service:
            for _ in range(2):
                service.ctl("schedule", "run", "short")
            before = over(service, "short", 2)
            move(service, second)
            service.ctl("schedule", "run", "short")
            # the second run of this store, as there is one in the first
            with subprocess.Popen([build / "mperfctl", "schedule", "run", "long"], stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "MPERF_SOCKET": str(service.socket)}) as run:
                wait_until("it runs", lambda: runs_of(service, "long"))
                time.sleep(1)
                move(service, first)
                _, said = run.communicate(timeout=60)
            assert run.returncode == 1 and "mperf.conf names another store" in said, said
            assert runs_of(service, "short") == before and not runs_of(service, "long"), service.ask("schedule")
            move(service, second)
            (ended,) = over(service, "long")
            assert ended["result"] == "ended early" and ended["why"] == "mperf.conf names another store", ended
            assert ended["samples"] > 0 and (second / "schedules" / ended["recording"]).exists(), ended


def test_check_says_what_is_wrong_with_which_line(build):
    need_program("systemd-analyze")
    with Folder() as folder:
        good = drop_in(folder, "nightly", "OnCalendar=02:00", "Duration=10min", "Frequency=999", "CallGraph=fp")
        done = mperfctl(build, "schedule", "check", good)
        lines = done.stdout.splitlines()
        assert lines[0] == "nightly: 02:00, at most 10 min at 999 Hz with stacks", done.stdout
        assert re.fullmatch(r"  02:00: next \S+ \d{4}-\d\d-\d\d 02:00:00 \S+", lines[1]), done.stdout
        for lines, words in ((["OnCalendar=25:00"], ["does not take OnCalendar=25:00"]),
                             (["Share=0%"], [":2: Share is '0%'"]), (["Unit=a", "Unit=b"], [":3: 'Unit' was already"]),
                             ([], ["neither a time nor jobs"])):
            done = mperfctl(build, "schedule", "check", good, drop_in(folder, "wrong", *lines), check=False)
            assert done.returncode == 1 and all(word in done.stderr for word in words), done
            assert "nightly:" in done.stdout, done.stdout
        done = mperfctl(build, "schedule", "check", Path(folder) / "none.schedule", check=False)
        assert done.returncode == 1 and "there is no such file. Name another" in done.stderr, done


def test_without_systemd_analyze_times_are_not_checked_and_it_says_so(build):
    with Folder() as folder:
        good = drop_in(folder, "nightly", "OnCalendar=02:00")
        done = mperfctl(build, "schedule", "check", good, env={"PATH": str(folder)})
        assert "was not checked" in done.stderr, done


def test_when_a_timer_comes_next_is_asked_of_systemd(build):
    with Folder() as folder:
        drop_in(folder, "nightly", "OnCalendar=02:00")
        drop_in(folder, "jobs", "Share=5%")
        bin_folder = Path(folder) / "bin"
        bin_folder.mkdir()
        systemctl = bin_folder / "systemctl"
        systemctl.write_text("#!/bin/sh\necho \"$@\" >> $0.asked\necho NextElapseUSecRealtime=Fri 2026-11-27 02:00:00 UTC\n")
        systemctl.chmod(0o755)
        with Service(build, folder, flush="1s") as service:
            environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "TZ": "UTC"}
            rows = {row["schedule"]: row for row in service.ask("schedule", env=environment)["schedule"]}
            assert rows["nightly"]["next"] == "2026-11-27T02:00:00+00:00", rows
            assert rows["jobs"]["next"] is None, rows
            asked = (bin_folder / "systemctl.asked").read_text()
            assert asked.strip().endswith("mperf-schedule-nightly.timer") and asked.count("\n") == 1, asked
            systemctl.write_text("#!/bin/sh\necho no systemd >&2\nexit 1\n")
            done = service.ctl("schedule", "--json", env=environment)
            assert "systemd does not answer" in done.stderr, done.stderr
            assert json.loads(done.stdout)["schedule"][1]["next"] is None, done.stdout


def test_the_next_time_of_a_schedule_is_that_of_its_timer_in_a_booted_system(build):
    leave_to_plain(build, "make would rebuild without sanitizers")
    with Folder() as folder:
        installed, empty = Path(folder) / "installed", Path(folder) / "empty"
        make(build, "install", f"DESTDIR={installed}")
        empty.mkdir()
        drop_in(installed / "etc/mperf", "nightly", "OnCalendar=02:00", "Duration=1s")
        drop_in(installed / "etc/mperf", "jobs", "Share=5%")
        c = HostContainer(empty, installed)
        try:
            c.run("systemd-sysusers && systemctl start mperfd.socket mperfd.service")
            c.until("mperfctl status")

            def rows():
                return {row["schedule"]: row for row in json.loads(c.says("mperfctl schedule --json"))["schedule"]}

            def of_timer():
                when = c.says("systemctl show --property=NextElapseUSecRealtime --value mperf-schedule-nightly.timer")
                return int(c.says(f"date -d '{when}' +%s"))

            before = rows()
            assert datetime.fromisoformat(before["nightly"]["next"]).timestamp() == of_timer(), before
            assert before["jobs"]["next"] is None and before["nightly"]["last"] is None, before
            # what the timer starts
            c.run("systemctl start mperf-schedule-nightly.service")
            after = wait_until("it has recorded", lambda: (row := rows()["nightly"])["result"] == "recorded" and row)
            assert after["last"] is not None and after["next"] == before["nightly"]["next"], after
            # another time, from the next reload of systemd on
            c.run("sed -i s/02:00/03:30/ /etc/mperf/schedules.d/nightly.schedule && systemctl daemon-reload && "
                  "systemctl restart timers.target mperf-schedule-nightly.timer")
            assert c.says(f"date -d @{of_timer()} +%H:%M") == "03:30"
            assert datetime.fromisoformat(rows()["nightly"]["next"]).timestamp() == of_timer()
            print(f"  {after['result']}; next {after['next']}")
        finally:
            c.stop()


def test_wrong_arguments_are_refused_by_name(build):
    for arguments, word in ((["stop"], "takes list, check, run or get"), (["run"], "takes the name of a schedule"),
                            (["run", "a", "b"], "one argument too many"), (["list", "a"], "one argument too many"),
                            (["get"], "takes a recording"), (["-o", "x"], "for schedule get"),
                            (["check", "--json"], "work only with `list`")):
        done = mperfctl(build, "schedule", *arguments, check=False)
        assert done.returncode == 2 and word in done.stderr, (arguments, done.stderr)


# --- the generator ------------------------------------------------------------------------------

def generated(build, folder):
    out = Path(folder) / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    done = subprocess.run([build / "mperf-generator", out, out, out], text=True, capture_output=True, timeout=60,
                          env={**os.environ, "MPERF_SCHEDULES": str(Path(folder) / "schedules.d")}, check=False)
    return out, done


def test_the_generator_makes_timers_that_systemd_takes(build):
    leave_to_plain(build, "the units are the same")
    need_program("systemd-analyze")
    with Folder() as folder:
        drop_in(folder, "nightly", "OnCalendar=02:00", "OnCalendar=Sat,Sun 14:00", "Frequency=999")
        drop_in(folder, "ci.jobs-1", "Unit=ci-*.service")
        bad = drop_in(folder, "bad", "OnCalendar=02:00", "OnCalender=03:00")
        out, done = generated(build, folder)
        assert done.returncode == 0 and f"{bad}:3: unknown key 'OnCalender'" in done.stderr, done
        assert sorted(p.name for p in out.iterdir()) == [
            "mperf-schedule-nightly.service", "mperf-schedule-nightly.timer", "timers.target.wants"]
        timer = out / "mperf-schedule-nightly.timer"
        assert (out / "timers.target.wants" / timer.name).resolve() == timer.resolve()
        assert re.findall(r"^OnCalendar=(.*)$", timer.read_text(), re.M) == ["02:00", "Sat,Sun 14:00"]
        for expression in "02:00", "Sat,Sun 14:00":
            subprocess.run(["systemd-analyze", "calendar", "--", expression], check=True, capture_output=True)
        service = out / "mperf-schedule-nightly.service"
        # what it starts is not installed here
        service.write_text(re.sub(r"ExecStart=\S+/mperfctl", f"ExecStart={build / 'mperfctl'}", service.read_text()))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", timer, service], text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0 and done.stderr == "", done
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", service], text=True,
                              capture_output=True, check=True)
        rating = float(re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout).group(1))
        assert rating <= 1.5, done.stdout


def test_a_time_that_is_none_is_refused_by_systemd(build):
    leave_to_plain(build, "the units are the same")
    need_program("systemd-analyze")
    with Folder() as folder:
        drop_in(folder, "wrong", "OnCalendar=25:00 %h")
        out, done = generated(build, folder)
        assert done.returncode == 0 and done.stderr == "", done
        assert "OnCalendar=25:00 %%h" in (out / "mperf-schedule-wrong.timer").read_text()
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", out / "mperf-schedule-wrong.timer"], text=True,
                              capture_output=True, check=False)
        assert done.returncode != 0 and "Failed to parse calendar specification" in done.stderr, done


def test_the_generator_survives_any_folder(build):
    with Folder() as folder:
        out, done = generated(build, folder)
        assert done.returncode == 0 and done.stderr == "" and not list(out.iterdir()), done
        done = subprocess.run([build / "mperf-generator"], text=True, capture_output=True, check=False)
        assert done.returncode == 2 and "systemd.generator(7)" in done.stderr, done
        done = subprocess.run([build / "mperf-generator", Path(folder) / "none"], text=True, capture_output=True,
                              check=False, env={**os.environ, "MPERF_SCHEDULES": str(folder)})
        assert done.returncode == 1 and "cannot be written to" in done.stderr, done


def test_shipped_examples_are_schedules(build):
    need_program("systemd-analyze")
    examples = sorted((ROOT / "systemd" / "schedules").glob("*.schedule"))
    assert len(examples) == 3, examples
    done = mperfctl(build, "schedule", "check", *examples)
    assert done.stderr == "", done
