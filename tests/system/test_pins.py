# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pinned jobs: what is kept of a job when its windows are gone, for how long, for whom, and at whose cost."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

from attacked import EVE, MALLORY, VICTOR, UnitService
from machine import Folder, leave_to_plain, mperfctl, need_program, refused
from rates import rate_allowed
from service import Service, wait_until
from test_jobs import PYTHON, SPIN, spin
from test_permissions import some_group
from test_store import HOUR, a_sealed_segment, name_of, put_aged, seal, unseal

SECONDS = 60
LEAVE_TO_PLAIN = "the pinner and roll-ups run with sanitizers in unit tests"

PROGRAM = [PYTHON, os.path.join(os.path.dirname(__file__), "feed_program.py")]
FINE = ("function", "module", "process", "thread", "line")


def of_job(service, label, by, ask=None):
    """Name and samples of each row, and what the answer says of itself."""
    answer = (ask or service.ask)("hotspots", "--since", "-1h", "--label", label, "--by", by, "-n", "0")
    drop = "total", "self", "total_ns"
    return (sorted(json.dumps({k: v for k, v in row.items() if k not in drop}) for row in answer["rows"]),
            json.dumps(answer["provenance"]))


def sealed(service, label, n_jobs):
    """Wait until so many jobs of the label are stored, and start anew: what was written does not change any
    more, and no name comes."""
    wait_until("the jobs are stored", lambda: len(of_job(service, label, "job")[0]) == n_jobs)
    assert service.stop() == 0
    service.start()


def same(after, before):
    assert after == before, ("new", [r for r in after if r not in before], "gone", [r for r in before if r not in after])


def loops_of(service, label):
    """What its loops counted: what mperf's counting cost is measured anew for each answer."""
    rows = service.ask("roofline", "--since", "-1h", "--label", label)["rows"]
    return [{k: v for k, v in row.items() if isinstance(v, (int, str))} for row in rows]


def pins(service):
    return service.ask("store")["pin"]


def pinned(service, label):
    return [row for row in pins(service) if label in row["job"]]


def run_job(service, name, *options, command=None):
    done = service.ctl("job", "run", name, *options, "--", *(command or spin(0.4)))
    assert done.returncode == 0 and done.stderr == "", done.stderr


def windows_of(service):
    return sorted((service.store / "window").glob("*.mprf"))


def push_out(service, seed, megabytes, n):
    """Newer windows, so large that the budget has no room for those that there are."""
    now = time.time()
    for i in range(n):
        put_aged(service.store, seed, now + i, megabytes)


def real_work(folder, feed):
    """Compilers, compressors and interpreters, and a program that tells of its loops."""
    need_program("xz")
    need_program("gcc")
    script = folder / "work.sh"
    (folder / "spin.py").write_text(SPIN)
    (folder / "many.c").write_text("".join(f"int f{i}(int x) {{ return x * {i} + x / {i + 1}; }}\n"
                                           for i in range(3000)))
    script.write_text(f"set -e\ncd {folder}\n"
                      f"{PYTHON} -S spin.py 0.5\n"
                      "head -c 3000000 /dev/urandom | xz -1 > noise.xz\n"
                      "gcc -O2 -c many.c -o many.o\n"
                      f"MPERF_FEED={feed} {' '.join(map(str, PROGRAM))} 3 30 7500000\n")
    return ["sh", str(script)]


def counted_work(service, n):
    return ["sh", "-c", " ".join([f"MPERF_FEED={service.feed}", *map(str, PROGRAM), f"{n} {10 * n} 1000000;",
                                  "exec", PYTHON, "-S", "-c", f"'{SPIN}'", "0.4"])]


def test_a_pinned_job_is_answered_in_full_when_its_windows_are_gone(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s", budget="64M", keep_windows="1h", rate=rate_allowed(499))
        with service:
            run_job(service, "build", "--label", "branch=main", "--label", "run=7", "--pin",
                    command=real_work(folder, service.feed))
            run_job(service, "other", "--label", "branch=main", "--label", "run=8")
            wait_until("the job is pinned", lambda: pinned(service, "run=7"))
            wait_until("the other is stored", lambda: len(of_job(service, "branch=main", "job")[0]) == 2)
            before = {by: of_job(service, "run=7", by) for by in FINE}
            loops = loops_of(service, "run=7")
            both = of_job(service, "branch=main", "job")
            assert "1 pinned job was read" in before["function"][1], before["function"][1]
            assert len(both[0]) == 2 and len(loops) == 2, (both, loops)
            for program in "cc1", "xz", "python":
                assert any(program in row for row in before["process"][0]), (program, before["process"][0])
            of_job_alone = windows_of(service)
            assert service.stop() == 0
        push_out(service, seed, megabytes=12, n=6)
        with service:
            wait_until("its windows are gone", lambda: not any(p.exists() for p in of_job_alone))
            for by in FINE:
                after = of_job(service, "run=7", by)
                same(after[0], before[by][0])
                assert "summed" not in after[1], after[1]
            same(loops_of(service, "run=7"), loops)
            used = sum(p.stat().st_size for p in service.store.rglob("*") if p.is_file())
            assert used <= 64 << 20, used
            (pin,) = pinned(service, "run=7")
            # the file is a recording like any other
            said = mperfctl(build, "hotspots", "-i", service.store / pin["file"], "--by", "process").stdout
            assert "cc1" in said and "python" in said, said
            # and the store says what it is
            assert pin["bytes"] == (service.store / pin["file"]).stat().st_size, pin
            assert pin["kept"] == "until unpinned" and pin["by"] == 0 and pin["uid"] == 0, pin
            said = service.ctl("store").stdout
            assert "Pinned jobs" in said and "run=7" in said, said
            # unpinned, only sums are left of it
            assert service.ctl("job", "unpin", "run=7").returncode == 0
            assert not pins(service) and not list((service.store / "pinned").iterdir())
            assert of_job(service, "run=7", "thread")[0] != before["thread"][0]


def compared(service):
    """What gate says of the runs, and of the functions of either side."""
    done = service.ctl("gate", "--baseline", "branch=main", "--candidate", "branch=topic", "-n", "0", "--json",
                       check=False)
    assert done.returncode in (0, 3, 4), done.stderr
    answer = json.loads(done.stdout)
    return answer["run"], answer["change"], answer["total"], answer["provenance"]["notes"]


def test_pinned_jobs_are_compared_when_their_windows_are_gone(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s", budget="64M", keep_windows="1h", rate=rate_allowed(499))
        with service:
            for run in range(1, 4):
                for branch in "main", "topic":
                    run_job(service, "bench", "--label", f"branch={branch}", "--label", f"run={branch}{run}")
            sealed(service, "job=bench", 6)
            before = compared(service)
            assert len(before[0]) == 6 and all(r["samples"] > 20 for r in before[0]), before[0]
            assert len(service.ask("job", "pin", "job=bench")["pin"]) == 6
            # in windows and pins, they count once
            pinned_too = compared(service)
            same(pinned_too[0], before[0])
            same(pinned_too[1], before[1])
            of_jobs = windows_of(service)
            assert service.stop() == 0
        push_out(service, seed, megabytes=12, n=6)
        with service:
            wait_until("their windows are gone", lambda: not any(p.exists() for p in of_jobs))
            after = compared(service)
            for k in range(3):
                same(after[k], before[k])
            assert not any("sums of" in note for note in after[3]), after[3]
            # another user's are not found
            done = service.ctl("gate", "--baseline", "branch=main,uid=65534", "--candidate", "branch=topic", "--json",
                               check=False)
            refused(done, 1, "no job of uid 65534 with branch=main")


def test_what_is_pinned_and_still_in_windows_counts_once(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        for run in 1, 2:
            run_job(service, "build", "--label", f"run={run}", command=counted_work(service, run))
        sealed(service, "job=build", 2)
        fresh = [of_job(service, "job=build", by)[0] for by in FINE]
        loops = loops_of(service, "job=build")
        done = service.ask("job", "pin", "build,last=1")
        assert [row["state"] for row in done["pin"]] == ["pinned"] and "run=2" in done["pin"][0]["job"], done
        again = service.ask("job", "pin", "job=bu*,run=2")
        assert [row["state"] for row in again["pin"]] == ["pinned before"], again
        for by, before in zip(FINE, fresh):
            same(of_job(service, "job=build", by)[0], before)
        same(loops_of(service, "job=build"), loops)
        assert len(pins(service)) == 1
        # a job of the same labels runs again: the new pin has both, and takes the old one's place
        (old,) = pins(service)
        run_job(service, "build", "--label", "run=2")
        wait_until("it has more", lambda: of_job(service, "run=2", "process")[0] not in fresh and
                   service.ask("job", "pin", "build,run=2")["pin"][0]["state"] == "pinned")
        (new,) = pins(service)
        assert new["file"] != old["file"] and new["since"] == old["since"] and new["until"] > old["until"], (old, new)


def test_a_running_job_is_pinned_when_it_ends_and_the_oldest_of_n_goes(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        keep = "--label", "branch=main", "--pin=branch=main", "--keep", "2"
        for run in 1, 2, 3:
            run_job(service, "build", "--label", f"run={run}", *keep)
            wait_until("it is pinned", lambda: pinned(service, f"run={run}"))
        wait_until("the oldest is gone", lambda: len(pins(service)) == 2)
        assert not pinned(service, "run=1") and {row["kept"] for row in pins(service)} == {"last 2 of branch=main"}
        # another selection is another group, and goes by its own number
        run_job(service, "build", "--label", "run=4", "--label", "branch=topic", "--pin", "--keep", "1")
        wait_until("it is pinned", lambda: pinned(service, "run=4"))
        assert len(pins(service)) == 3
        # what runs is said to be pinned later, and may be taken back
        job = subprocess.Popen([service.build / "mperfctl", "job", "run", "long", "--", "sleep", "60"],
                               env={**os.environ, "MPERF_SOCKET": str(service.socket)})
        try:
            wait_until("it runs", lambda: service.ask("job")["job"])
            assert service.ask("job", "pin", "long")["pin"][0]["state"] == "when it ends"
            assert service.ask("job")["job"][0]["pinned"] == "when it ends"
            assert service.ctl("job", "unpin", "long").returncode == 0
            assert service.ask("job")["job"][0]["pinned"] is None
        finally:
            job.terminate()
            job.wait()
        service.ctl("job", "unpin", "branch=*")
        assert not pins(service)
        refused(service.ctl("job", "unpin", "branch=main", check=False), 1, "none of your pinned jobs has branch=main")


def test_the_latest_are_unpinned_and_what_cannot_be_removed_stays(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        for n in 1, 2, 3:
            run_job(service, f"build{n}", "--label", "branch=main")
        wait_until("all are stored", lambda: len(of_job(service, "branch=main", "job")[0]) == 3)
        assert len(service.ask("job", "pin", "branch=main")["pin"]) == 3
        gone = service.ask("job", "unpin", "branch=main,last=2")["pin"]
        assert sorted(row["job"].split(", run=")[0] for row in gone) == \
            ["branch=main, job=build2", "branch=main, job=build3"], gone
        (left,) = pins(service)
        assert "job=build1" in left["job"], left
        # as any error of the disc
        path = service.store / left["file"]
        path.rename(folder / "kept")
        path.mkdir()
        refused(service.ctl("job", "unpin", "build1", check=False), 1, f"{left['file']} cannot be removed: ")
        assert len(pins(service)) == 1
        path.rmdir()
        (folder / "kept").rename(path)
        assert service.ctl("job", "unpin", "build1").returncode == 0
        assert not pins(service) and not path.exists()


class Users:
    """A service of the unit's user for Mallory, Victor, and Eve of the group."""

    def __init__(self, build, folder, **keys):
        self.group = some_group()
        self.service = UnitService(build, folder, flush="1s", rate=rate_allowed(499), group=self.group.gr_name,
                                   **keys)

    def __enter__(self):
        self.service.start()
        return self

    def __exit__(self, *error):
        self.service.__exit__(*error)

    def ctl(self, uid, *arguments):
        groups = (self.group.gr_gid,) if uid == EVE else ()
        return self.service.user(uid, *map(str, arguments), groups=groups)

    def ask(self, uid, *arguments):
        done = self.ctl(uid, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def run(self, uid, name, *options):
        done = self.ctl(uid, "job", "run", name, *options, "--", "sh", "-c",
                        "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        wait_until("its samples are stored", lambda: of_job(
            None, f"job={name}", "process", lambda *a: self.ask(uid, *a))[0])


def jobs(answer):
    return sorted(row["job"].partition(", run=")[0] for row in answer["pin"])


def test_users_pin_jobs_of_their_own_and_the_group_pins_all(build):
    with Folder() as folder, Users(build, folder) as users:
        users.run(MALLORY, "mine")
        users.run(VICTOR, "secret")
        for selection in "secret", "job=*t", "secret,last=1":
            refused(users.ctl(MALLORY, "job", "pin", selection), 1, "you have no job")
        assert jobs(users.ask(VICTOR, "job", "pin", "secret")) == ["job=secret"]
        assert jobs(users.ask(MALLORY, "job", "pin", "job=*")) == ["job=mine"]
        # who sees which
        assert jobs(users.ask(MALLORY, "job")) == ["job=mine"]
        assert jobs(users.ask(VICTOR, "job")) == ["job=secret"]
        assert jobs(users.ask(EVE, "job")) == ["job=mine", "job=secret"]
        refused(users.ctl(MALLORY, "store"), 1, "may not see the files of the store")
        answer = users.ask(MALLORY, "hotspots", "--since", "-1h", "--label", "job=secret", "--by", "process")
        assert not answer["rows"], answer["rows"]
        assert of_job(None, "job=secret", "process", lambda *a: users.ask(VICTOR, *a))[0]
        # who removes which
        for selection in "secret", "job=s*":
            refused(users.ctl(MALLORY, "job", "unpin", selection), 1, "none of your pinned jobs")
        assert jobs(users.ask(EVE, "job", "unpin", "secret")) == ["job=secret"]
        assert jobs(users.ask(EVE, "job", "pin", "secret")) == ["job=secret"]
        # it is Eve's now, who is charged
        assert users.ask(EVE, "store")["pin"][-1]["by"] == EVE
        assert jobs(users.ask(VICTOR, "job")) == ["job=secret"]
        refused(users.ctl(VICTOR, "job", "unpin", "secret"), 1, "none of your pinned jobs")
        pids = users.service.process.pid
        refused(users.ctl(MALLORY, "job", "start", "x", "--pid", pids), 1, str(pids))


def test_jobs_are_pinned_by_rules_at_the_cost_of_their_users(build):
    with Folder() as folder, Users(build, folder, pin_jobs="branch=*,keep=2 job=nightly,keep=1") as users:
        for run in 1, 2, 3:
            users.run(MALLORY, f"m{run}", "--label", "branch=main")
        users.run(MALLORY, "topic", "--label", "branch=topic")
        users.run(MALLORY, "none")
        users.run(VICTOR, "v", "--label", "branch=main")
        users.run(VICTOR, "nightly", "--pin")
        expected = {"branch=main, job=m2": "last 2 of branch=main", "branch=main, job=m3": "last 2 of branch=main",
                    "branch=topic, job=topic": "last 2 of branch=topic"}
        wait_until("Mallory's jobs are pinned, and the first has gone", lambda: {
            p["job"].partition(", run=")[0]: p["kept"] for p in users.ask(MALLORY, "job")["pin"]} == expected)
        assert all(p["by"] == p["uid"] == MALLORY for p in users.ask(MALLORY, "job")["pin"])
        # one user's jobs do not push out another's, and what was asked for goes before the rules
        wait_until("Victor's are pinned", lambda: {
            p["job"].partition(", run=")[0]: p["kept"] for p in users.ask(VICTOR, "job")["pin"]} ==
            {"branch=main, job=v": "last 2 of branch=main", "job=nightly": "until unpinned"})
        assert users.ctl(MALLORY, "job", "unpin", "branch=main").returncode == 0
        assert jobs(users.ask(MALLORY, "job")) == ["branch=topic, job=topic"]
        assert "keep=2 job=nightly" in subprocess.run(
            [build / "mperfd", f"--config={users.service.config}", "--print-config"], capture_output=True, text=True,
            check=True).stdout


def test_a_job_that_runs_again_under_its_labels_is_pinned_again(build):
    """Steps of a CI job, with a pause between them in which no process has its labels."""
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499),
                                     pin_jobs="branch=main,keep=5") as service:
        labels = "--label", "branch=main", "--label", "run=7"
        run_job(service, "build", *labels)
        wait_until("the first step is pinned", lambda: len(pins(service)) == 1)
        first, = pins(service)
        run_job(service, "build", *labels)
        wait_until("the second is in its place", lambda: [p["file"] for p in pins(service)] != [first["file"]]
                   and len(pins(service)) == 1)
        both, = pins(service)
        assert both["since"] == first["since"] and both["until"] > first["until"], (first, both)
        assert len(list((service.store / "pinned").iterdir())) == 1


def test_a_reload_applies_other_rules(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499),
                                     pin_jobs="branch=topic,keep=5") as service:
        def reload(n, **keys):
            service.write_config(**keys)
            service.process.send_signal(signal.SIGHUP)
            wait_until("it has read that", lambda: service.said().count("configuration reloaded") == n)

        run_job(service, "before", "--label", "branch=main")
        run_job(service, "topic", "--label", "branch=topic")
        wait_until("what the first rule names is pinned", lambda: pinned(service, "job=topic"))
        assert len(pins(service)) == 1, pins(service)
        with subprocess.Popen([service.build / "mperfctl", "job", "run", "running", "--label", "branch=main", "--",
                               *spin(3)], env={**os.environ, "MPERF_SOCKET": str(service.socket)}) as running:
            wait_until("it runs", lambda: service.ask("job")["job"])
            reload(1, pin_jobs="branch=main,keep=3")
            wait_until("it will be pinned", lambda: service.ask("job")["job"][0]["pinned"] == "when it ends")
            assert running.wait() == 0
        wait_until("it is pinned", lambda: pinned(service, "job=running"))
        assert pinned(service, "job=running")[0]["kept"] == "last 3 of branch=main"
        # what is wrong leaves the rules in force, and what is pinned stays without rules
        service.write_config(pin_jobs="branch=main")
        service.process.send_signal(signal.SIGHUP)
        wait_until("it is refused", lambda: "pin-jobs" in service.said())
        run_job(service, "wrong", "--label", "branch=main")
        wait_until("it is pinned", lambda: pinned(service, "job=wrong"))
        reload(2, pin_jobs="none")
        run_job(service, "none", "--label", "branch=main")
        wait_until("its samples are stored", lambda: of_job(service, "job=none", "process")[0])
        assert service.ask("job", "pin", "none")["pin"][0]["state"] == "pinned"
        assert pinned(service, "job=running") and pinned(service, "job=topic"), pins(service)


def test_labels_alone_fill_nobody_elses_room_for_pins(build):
    # an eighth of a megabyte each: two or three small jobs
    with Folder() as folder, Users(build, folder, budget="24M", pinned="1%", pin_jobs="branch=main,keep=20") as users:
        for run in range(6):
            users.run(MALLORY, f"m{run}", "--label", "branch=main")
        wait_until("there is no room for some", lambda: f"user {MALLORY} has" in users.service.said())
        users.run(VICTOR, "v", "--label", "branch=main")
        wait_until("Victor's job is pinned", lambda: users.ask(VICTOR, "job")["pin"])


def test_a_user_at_the_share_is_refused_and_takes_nothing_from_others(build):
    # an eighth of a megabyte each: two or three small jobs
    with Folder() as folder, Users(build, folder, budget="24M", pinned="1%") as users:
        fine = 0
        for run in range(6):
            users.run(MALLORY, f"m{run}", "--label", "branch=main")
            done = users.ctl(MALLORY, "job", "pin", f"m{run}")
            if done.returncode != 0:
                break
            fine += 1
        assert 1 <= fine <= 4, done.stdout + done.stderr
        refused(done, 1, f"job=m{fine}.* is not pinned: user {MALLORY} has \\d+ KB left of 122 KB",
                "Unpin the oldest: mperfctl job unpin 'branch=main, job=m0, run=")
        assert len(users.ask(MALLORY, "job")["pin"]) == fine, "those before stay"
        users.run(VICTOR, "v")
        assert jobs(users.ask(VICTOR, "job", "pin", "v")) == ["job=v"]
        # the advice helps; jobs differ in size, so that one may take the place of two
        for oldest in range(fine):
            assert len(users.ask(MALLORY, "job", "unpin", f"m{oldest}")["pin"]) == 1
            done = users.ctl(MALLORY, "job", "pin", f"m{fine}")
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stderr
        # with --keep the oldest of the group makes room
        assert users.ctl(MALLORY, "job", "unpin", "branch=main").returncode == 0
        kept = users.ask(MALLORY, "job", "pin", "branch=main", "--keep", 1)["pin"]
        assert len(kept) == 1 and f"m{fine}" in kept[0]["job"], kept
        users.run(MALLORY, "latest", "--label", "branch=main")
        done = users.ctl(MALLORY, "job", "pin", "branch=main", "--keep", 1)
        assert done.returncode == 0, done.stderr
        assert [p["job"].partition(", run=")[0] for p in users.ask(MALLORY, "job")["pin"]] == \
            ["branch=main, job=latest"]


def test_a_kill_at_any_moment_leaves_whole_pins_or_none(build):
    leave_to_plain(build, "a kill is the kernel's, and the other pins here take the same code through sanitizers")
    with Folder() as folder:
        service = Service(build, folder, flush="1s", rate=rate_allowed(499))
        chance = random.Random(1)
        with service:
            run_job(service, "build", "--label", "n=0", command=real_work(folder, service.feed))
            for n in 1, 2, 3:
                run_job(service, "build", "--label", f"n={n}")
            wait_until("all are stored", lambda: len(of_job(service, "job=build", "job")[0]) == 4)
            for _ in range(8):
                asked = subprocess.Popen([service.build / "mperfctl", "job", "pin", "build"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env={**os.environ, "MPERF_SOCKET": str(service.socket)})
                time.sleep(0.5 + chance.random() * 0.3)
                service.kill()
                asked.wait()
                service.start()
                assert all(p.suffix == ".mprf" for p in (service.store / "pinned").iterdir())
                for row in pins(service):
                    db = sqlite3.connect(f"file:{service.store / row['file']}?immutable=1", uri=True)
                    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                    assert db.execute("SELECT value FROM meta WHERE key = 'sealed'").fetchone() == (1,)
                    assert db.execute("SELECT sum(count) FROM sample").fetchone()[0] > 0
                    db.close()
                assert not service.ask("status")["store"][0].get("corrupt"), service.said()
                service.ctl("job", "unpin", "build", check=False)
            assert len(service.ask("job", "pin", "build")["pin"]) == 4


def test_a_disc_without_room_refuses_and_keeps_what_there_is(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        for n in 1, 2:
            run_job(service, "build", "--label", f"n={n}")
        wait_until("both are stored", lambda: len(of_job(service, "job=build", "job")[0]) == 2)
        service.ctl("job", "pin", "n=1")
        free = shutil.disk_usage(folder).free
        service.write_config(min_free=f"{(free >> 20) + 1024}M")
        service.process.send_signal(1)
        wait_until("there is no room", lambda: service.ask("status")["store"][0]["trouble"])
        refused(service.ctl("job", "pin", "n=2", check=False), 1,
                r"n=2.* is not pinned: the disc has \d+ KB left above min-free", "Unpin the oldest: mperfctl job unpin '")
        done = service.ctl("job", "pin", "job=build,n=1", check=False)
        assert done.returncode == 0 and "pinned before" in done.stdout, done
        assert len(pins(service)) == 1
        service.write_config(min_free="0", pinned="none")
        service.process.send_signal(1)
        wait_until("no job is pinned", lambda: "pinned = none" in service.ctl(
            "job", "pin", "build", check=False).stderr)
        assert len(pins(service)) == 1, "what is pinned stays"


def test_labels_and_loops_live_on_in_minutes_and_hours(build):
    """Without any pin: of what the windows had, sums are left, by job."""
    # One file is moved back, and at the full hour another begins.
    wait_until("the hour is not about to end", lambda: time.time() % HOUR < HOUR - 60, 90)
    with Folder() as folder:
        service = Service(build, folder, flush="1s", rate=rate_allowed(499))
        label = "--label", "branch=main"
        with service:
            run_job(service, "build", *label, "--label", "run=1", command=counted_work(service, 3))
            run_job(service, "build", "--label", "branch=topic", "--label", "run=2", command=counted_work(service, 5))
            wait_until("both are stored", lambda: len(of_job(service, "job=build", "job")[0]) == 2)
            assert service.stop() == 0
        move_back(service.store, 2 * HOUR)
        with service:
            wait_until("it is rolled up", lambda: {row["tier"]: row["files"] for row in service.ask(
                "store")["tier"]}["hour"])
            samples, loops = answers(service, label)
            assert service.stop() == 0
        for tier in "window", "minute":
            for path in (service.store / tier).glob("*.mprf"):
                path.unlink()
            with service:
                after = answers(service, label)
                same(sorted(after[0].items()), sorted(samples.items()))
                assert after[1] == loops, (tier, after[1], loops)
                assert service.stop() == 0


def move_back(store, seconds):
    """The store's one file as if of then, where no later window is of the same minute or hour."""
    path, = (store / "window").glob("*.mprf")
    unseal(path)
    db = sqlite3.connect(path)
    db.execute("UPDATE window SET realtime_ns = realtime_ns - ?", (seconds * 10 ** 9,))
    start, = db.execute("SELECT min(realtime_ns) FROM window").fetchone()
    db.commit()
    db.close()
    seal(path)
    path = path.rename(path.parent / name_of(start / 1e9))
    for other in store.rglob("*.mprf"):
        if other != path:
            other.unlink()


def answers(service, label):
    """Samples per function of the job, and its loops, of the hours before this one."""
    this_hour = int(time.time() // HOUR * HOUR)
    time_ = "--since", f"@{this_hour - 3 * HOUR}", "--until", f"@{this_hour}"
    hot = service.ask("hotspots", *time_, *label, "-n", "0")["rows"]
    loops = service.ask("roofline", *time_, *label)["rows"]
    samples = {}
    for row in hot:
        name = row["function"], row["module"]
        samples[name] = samples.get(name, 0) + row["samples"]
    figures = sorted((row["nest"], row["entries"], row["iterations"], row["ops"], row["time_ns"]) for row in loops)
    assert samples and len(figures) == 2 and figures[0][1] == 3, (hot, loops)
    return samples, figures


def test_wrong_arguments_of_pins_are_refused_by_name(build):
    for arguments, word in ((["pin"], "takes a selection"), (["unpin"], "takes a selection"),
                            (["pin", "x", "y"], "one argument too many"), (["start", "x", "--pin"], "--pin is for job run"),
                            (["unpin", "x", "--keep", "2"], "--keep is for"), (["run", "x", "--keep", "2", "--", "true"],
                                                                             "--keep is for"),
                            (["pin", "x", "--keep", "0"], "--keep takes"), (["pin", "last=1"], "needs a label, to select jobs"),
                            (["pin", "x,last=0"], "last= takes a number"), (["pin", "x,last=1x"], "last= takes a number"),
                            (["pin", "a=b,c"], "'c' is not of the form"), (["pin", "a b=c"], "'a b' is not a name"),
                            (["pin", ",".join(f"k{i}=v" for i in range(17))], "at most 16"),
                            (["run", "x", "--pin=last=2", "--", "true"], "needs a label, to select jobs")):
        done = mperfctl(build, "job", *arguments, check=False)
        assert done.returncode == 2 and word in done.stderr, (arguments[:3], done.stderr)
