# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who sees what of a service: the table of mperfd(8), a row a test.

Two users run programs: Ada, and Bob, who has something to hide. Eve is a member of the group of the
configuration. They are users to the kernel, which is who tells the daemon; they need no account."""
import csv
import functools
import grp
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess

from machine import (BAD_WORDS, Folder, Skip, at_end_of_module, compile_program, everybodys,
                     need_program, need_root, refused)
from rates import rate_allowed
from service import Service, wait_until

ADA, BOB, EVE = 60201, 60202, 60203
SECRET = "the-secret-of-bob"
BYS = "function", "module", "process", "thread", "cgroup", "line", "hart", "address"
PROGRAMS = {"adas-program": ADA, "bobs-program": BOB, "setuid-program": ADA, "roots-program": 0}
KERNEL_ADDRESS = re.compile(r"ffff[0-9a-f]{12}")


def some_group():
    """A group that is there, and that none of us is in."""
    for group in grp.getgrall():
        if group.gr_gid not in (0, ADA, BOB, EVE) and not group.gr_mem:
            return group
    raise Skip("there is no group but root's")


class Scene:
    """A service, and programs of all users that it has sampled for a while."""

    def __init__(self, build):
        need_root()
        need_program("setpriv")
        self.group = some_group()
        self.scratch = Folder()
        self.folder = self.scratch.path
        self.environment = everybodys(build, self.folder)
        self.service = Service(build, self.folder, group=self.group.gr_name, flush="1s",
                               rate=rate_allowed(499))
        self.running = {}
        at_end_of_module(self.end)
        at_end_of_module(scene.cache_clear)
        self.service.start()
        for name, uid in PROGRAMS.items():
            self.run(compile_program(build, "known.c"), name, uid)
        everyone = {name.encode() for name in PROGRAMS}

        def all_are_there():
            found = self.ask(0, "hotspots", "--since", "-1h", "--by", "process", "--limit", "0")
            return everyone <= {os.path.basename(row["argv"].split()[0]).encode()
                                for row in found["rows"] if row["argv"]}
        wait_until("all programs are in the store", all_are_there)

    def run(self, program, name, uid):
        path = self.folder / name
        shutil.copy(program, path)
        os.chmod(path, 0o755)
        arguments = ["spin", "600000", "0", SECRET if uid == BOB else "no-secret"]
        if name == "setuid-program":
            os.chown(path, BOB, BOB)
            os.chmod(path, 0o4755)
        self.running[name] = subprocess.Popen(as_user(uid, path, *arguments))

    def pid(self, name):
        assert self.running[name].poll() is None
        return self.running[name].pid

    def user(self, uid, *arguments, groups=None):
        """mperfctl, as that user."""
        environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", **self.environment,
                           MPERF_SOCKET=str(self.service.socket))
        if groups is None:
            groups = (self.group.gr_gid,) if uid == EVE else ()
        done = subprocess.run(as_user(uid, self.folder / "mperfctl", *map(str, arguments),
                                      groups=groups),
                              capture_output=True, timeout=120, cwd=self.folder / "tmp",
                              env=environment)
        done.stdout = done.stdout.decode(errors="replace")
        done.stderr = done.stderr.decode(errors="replace")
        assert not any(word in done.stderr for word in BAD_WORDS), done.stderr
        return done

    def ask(self, uid, *arguments):
        done = self.user(uid, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def hotspots(self, uid, by, *arguments):
        return self.ask(uid, "hotspots", "--since", "-1h", "--limit", "0", "--by", by, *arguments)

    def end(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        self.service.__exit__(None, None, None)
        self.scratch.cleanup()


def as_user(uid, *command, groups=()):
    belongs = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *belongs, *map(str, command)]


@functools.lru_cache(maxsize=None)
def scene(build):
    return Scene(build)


def programs_in(text):
    return {name for name in PROGRAMS if name in text}


def refused_by_group(scene_, done, *words):
    refused(done, 1, *words, f"group {scene_.group.gr_name}", f"usermod -aG {scene_.group.gr_name}")


def hides_others(text):
    """Nothing of what others run, nor of where the kernel lies, is in what Ada was told. (What she
    asks is in the arguments of her mperfctl: so she never asks for them by name.)"""
    assert programs_in(text) <= {"adas-program"}, programs_in(text)
    assert SECRET not in text
    assert not KERNEL_ADDRESS.search(text), KERNEL_ADDRESS.search(text)


def test_own_processes_are_seen_without_the_group(build):
    found = scene(build).hotspots(ADA, "process")
    assert [row for row in found["rows"] if "adas-program" in row["argv"]], found
    assert found["provenance"]["samples"] > 0


def test_processes_of_others_are_seen_with_the_group_alone(build):
    s = scene(build)
    for uid in 0, EVE:
        assert programs_in(json.dumps(s.hotspots(uid, "process"))) == set(PROGRAMS), uid
    for uid, own in (ADA, "adas-program"), (BOB, "bobs-program"):
        assert programs_in(json.dumps(s.hotspots(uid, "process"))) == {own}, uid


def test_no_grouping_names_what_others_run(build):
    s = scene(build)
    for by in BYS:
        hides_others(json.dumps(s.hotspots(ADA, by)))


def test_a_flame_graph_names_nothing_that_others_run(build):
    s = scene(build)
    mine, all_ = (s.user(uid, "flamegraph", "--since", "-1h", "--folded", "-o", "-")
                  for uid in (ADA, EVE))
    assert mine.returncode == all_.returncode == 0, mine.stderr + all_.stderr
    assert "adas-program" in mine.stdout + mine.stderr or "spin" in mine.stdout
    hides_others(mine.stdout)
    assert len(all_.stdout.splitlines()) > len(mine.stdout.splitlines())


def test_exported_samples_name_nothing_that_others_run(build):
    s = scene(build)
    for form in "csv", "perf-script", "speedscope", "firefox":
        mine, all_ = (s.user(uid, "export", "--as", form, "--since", "-1h") for uid in (ADA, EVE))
        assert mine.returncode == all_.returncode == 0, mine.stderr + all_.stderr
        assert "adas-program" in mine.stdout and set(PROGRAMS) <= programs_in(all_.stdout), form
        hides_others(mine.stdout)
    table = s.user(ADA, "export", "--as", "csv", "--since", "-1h").stdout
    kernel = {(row["function"], row["offset"]) for row in csv.DictReader(io.StringIO(table, newline=""))
              if row["module"] == "[kernel]"}
    assert kernel <= {("[kernel]", "0x0")}, kernel


def test_arguments_of_others_are_seen_with_the_group_alone(build):
    s = scene(build)
    assert SECRET in json.dumps(s.hotspots(EVE, "process"))
    assert SECRET in json.dumps(s.hotspots(BOB, "process"))
    assert SECRET not in json.dumps(s.hotspots(ADA, "process"))


def kernel_rows(found):
    return {row["function"] for row in found["rows"] if row["module"] == "[kernel]"}


def test_the_kernel_is_one_function_without_the_group(build):
    s = scene(build)
    done = subprocess.run(as_user(ADA, "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000000"),
                          capture_output=True)  # which is almost all in the kernel
    assert done.returncode == 0, done.stderr

    def kernel_of(uid):
        return wait_until(f"samples of dd for {uid}",
                          lambda: kernel_rows(s.hotspots(uid, "function", "--comm", "dd")))
    assert kernel_of(ADA) == {"[kernel]"}
    assert len(kernel_of(EVE)) > 1
    hides_others(json.dumps(s.hotspots(ADA, "line", "--comm", "dd")))


def test_setuid_programs_are_seen_with_the_group_alone(build):
    s = scene(build)
    with open(f"/proc/{s.pid('setuid-program')}/status", encoding="ascii") as status:
        uids = re.search(r"Uid:\s+(\d+)\s+(\d+)", status.read()).groups()
    if uids != (str(ADA), str(BOB)):
        raise Skip("setuid programs do not change their user here (nosuid)")
    for uid in ADA, BOB:
        assert "setuid-program" not in json.dumps(s.hotspots(uid, "process")), uid
    refused_by_group(s, s.user(ADA, "record", "-o", "x.mprf", "--pid", s.pid("setuid-program")),
                     "additional rights|belongs to")


def test_all_at_once_is_refused_without_the_group(build):
    s = scene(build)
    for command in ("record", "-a", "--for", "100ms", "-o", "all.mprf"), ("stat", "-a", "--for", "100ms"):
        refused_by_group(s, s.user(ADA, *command), "whole system")
        done = s.user(EVE, *command, *(("-f",) if command[0] == "record" else ()))
        assert done.returncode == 0, done.stderr


def test_processes_of_others_are_refused_without_the_group(build):
    s = scene(build)
    for command in ("record", "-o", "others.mprf"), ("stat", "-e", "task-clock"):
        for name, words in ("bobs-program", f"uid {BOB}"), ("roots-program", "root"):
            refused_by_group(s, s.user(ADA, *command, "--for", "100ms", "--pid", s.pid(name)),
                             str(s.pid(name)), words)
        done = s.user(ADA, *command, "--for", "100ms", "--pid", s.pid("adas-program"))
        assert done.returncode == 0, done.stderr


def strings_of(path):
    """All text that a recording holds, and the kernel's frames in it."""
    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        tables = [t for t, in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        text = [repr(row) for t in tables for row in database.execute(f"SELECT * FROM '{t}'")]
        kernel = database.execute(
            "SELECT frame.offset FROM frame JOIN file ON file.id = frame.file "
            "WHERE file.path LIKE '[%kernel%'").fetchall()
        return "\n".join(text), {offset for offset, in kernel}
    finally:
        database.close()


def test_a_recording_belongs_to_who_asked_and_holds_nothing_of_others(build):
    s = scene(build)
    target = s.folder / "tmp" / "adas.mprf"
    done = s.user(ADA, "record", "-F", rate_allowed(999), "-o", target, "--",
                  "sh", "-c", "dd if=/dev/zero of=/dev/null bs=1 count=500000; exit 0")
    assert done.returncode == 0, done.stderr
    assert os.stat(target).st_uid == ADA
    text, kernel = strings_of(target)
    assert "dd" in text
    hides_others(text)
    assert kernel <= {0, None}, kernel
    assert programs_in(done.stdout + done.stderr) == set()


def test_top_shows_own_processes_without_the_group(build):
    s = scene(build)

    def seen(uid):
        done = s.user(uid, "top", "--by", "process", "--json", "--frames", "3", "-d", "500ms",
                      "--limit", "1000")
        assert done.returncode == 0, done.stderr
        return done.stdout
    mine = seen(ADA)
    hides_others(mine)
    assert "adas-program" in mine, mine
    assert programs_in(seen(EVE)) == set(PROGRAMS)


def test_everybody_may_ask_how_the_service_is(build):
    s = scene(build)
    for command in ("status",), ("doctor",), ("list", "software"):
        done = s.user(ADA, *command, "--json")
        assert done.returncode == 0, done.stderr
        hides_others(done.stdout)
    assert s.group.gr_name in s.user(ADA, "doctor").stdout
    assert "everybody's" in s.user(EVE, "doctor").stdout


def test_probes_and_tracepoints_are_not_for_everybody(build):
    s = scene(build)

    def stat(uid, event):
        return s.user(uid, "stat", "-e", event, "--for", "100ms", "--pid", s.pid("adas-program"))
    if os.path.exists("/sys/bus/event_source/devices/uprobe"):
        for uid in ADA, EVE:
            refused(stat(uid, "uprobe/config=0/"), 1, "creates no probes", "root")
    if stat(EVE, "sched:sched_switch").returncode == 0:  # else tracefs is not mounted
        refused_by_group(s, stat(ADA, "sched:sched_switch"), "more than your own processes")
    assert stat(ADA, "task-clock").returncode == 0


def test_who_joins_the_group_sees_more_when_he_comes_anew(build):
    s = scene(build)
    query = "hotspots", "--since", "-1h", "--by", "process", "--limit", "0", "--json"
    assert "bobs-program" not in s.user(ADA, *query).stdout
    joined = s.user(ADA, *query, groups=(s.group.gr_gid,))
    assert "bobs-program" in joined.stdout, joined.stderr


def test_another_group_counts_from_the_reload_on(build):
    need_root()
    need_program("setpriv")
    group = some_group()
    other = next(g for g in grp.getgrall() if g.gr_gid not in (0, group.gr_gid))
    with Folder() as folder, Service(build, folder, group=group.gr_name) as service:
        environment = dict(os.environ, MPERF_SOCKET=str(service.socket), LC_ALL="C.UTF-8",
                           **everybodys(build, folder))

        def count_all():
            return subprocess.run(as_user(EVE, folder / "mperfctl", "stat", "-a", "--for", "50ms",
                                          groups=(group.gr_gid,)),
                                  capture_output=True, text=True, timeout=120, env=environment)
        done = count_all()
        assert done.returncode == 0, done.stderr
        service.write_config(group=other.gr_name)
        service.process.send_signal(signal.SIGHUP)
        done = wait_until("the other group", lambda: (d := count_all()).returncode and d)
        refused(done, 1, f"join the group {other.gr_name}".capitalize())
