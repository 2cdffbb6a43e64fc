# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mallory's recordings and those of others by the same schedule: a share of MaxUse= for each user."""
import shutil
import subprocess
import time

from attacked import MALLORY, VICTOR, Stage, as_user, need_plain, shared
from machine import compile_program
from service import wait_until
from test_schedules import drop_in, runs_of

SECONDS = 60
MAX_USE = 4 << 20
NOISE_S = 30  # it is ended when its recording has

_stage = []


class Recorder(Stage):
    """A service with a schedule of labelled jobs, all kept within a few MB."""

    def start(self, ready=True, **popen):
        drop_in(self.folder, "ci", "Label=job=*", f"MaxUse={MAX_USE >> 20}M")
        return super().start(ready, **popen)


def kept(service):
    return {name_of(row): row["recording"] for row in runs_of(service, "ci") if row["recording"]}


def name_of(row):
    return row["job"].partition(", run=")[0].removeprefix("job=")


def ended(service, job):
    return next((row for row in runs_of(service, "ci") if name_of(row) == job and row["result"] != "goes on"), None)


def test_a_running_recording_of_one_user_takes_nothing_that_is_kept_of_another(build):
    need_plain(build)
    noise = compile_program(build, "noise.c")
    service = shared(_stage, lambda: Recorder(build, flush="1s", overhead="none"))
    shutil.copy(noise, service.folder / "noise")
    time.sleep(1)  # jobs from before its first look are not recorded
    for n in 1, 2:
        service.ctl("job", "run", f"nightly{n}", "--", "sleep", "0.3")
        assert service.user(VICTOR, "job", "run", f"mine{n}", "--", "sleep", "0.3").returncode == 0
    wait_until("four are kept", lambda: len(kept(service)) == 4)
    before = kept(service)
    command = as_user(MALLORY, "env", f"MPERF_SOCKET={service.socket}", service.folder / "mperfctl", "job", "run",
                      "mallory", "--", service.folder / "noise", service.homes[MALLORY], NOISE_S)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          cwd=service.homes[MALLORY]) as attack:
        try:
            row = wait_until("Mallory's recording has ended", lambda: ended(service, "mallory"))
        finally:
            subprocess.run(as_user(MALLORY, "kill", "--", attack.pid), check=False)
    after = kept(service)
    assert {job: after.get(job) for job in before} == before, (before, after)
    assert row["result"] == "ended early" and "share of MaxUse=" in row["why"], row
    assert row["bytes"] < MAX_USE // 2, row
    # what Mallory may keep is Mallory's latest
    assert set(after) - set(before) <= {"mallory"}, after
