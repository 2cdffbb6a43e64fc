# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mallory's program that nobody may read: the kernel says that its memory is root's, and its job is not."""
import json
import os
import shutil
import subprocess

from attacked import MALLORY, UnitService, as_user
from machine import Folder, compile_program
from rates import rate_allowed
from service import wait_until

SECONDS = 60
RUN = "spin", "400", "0"  # ms


def environment(n):
    return {**os.environ, "CI_JOB_ID": str(n), "CI_COMMIT_REF_NAME": "main"}


def hidden(service, program):
    """A copy that Mallory may run and not read."""
    path = service.homes[MALLORY] / "hidden"
    shutil.copy(program, path)
    os.chown(path, MALLORY, MALLORY)
    os.chmod(path, 0o111)
    return path


def pinned(service):
    return sorted((row["uid"], row["job"]) for row in service.ask("job")["pin"])


def rows(service, *arguments):
    done = service.ctl("hotspots", "--since", "-1h", "--limit", "0", "--json", *arguments)
    return json.loads(done.stdout)["rows"]


def test_the_environment_of_a_hidden_program_makes_no_job_of_roots(build):
    known = compile_program(build, "known.c")
    with Folder() as folder, UnitService(build, folder, flush="1s", rate=rate_allowed(499),
                                         job_environment="CI_JOB_ID,branch=CI_COMMIT_REF_NAME",
                                         pin_jobs="branch=main,keep=2") as service:
        for n in 101, 102:
            subprocess.run([known, *RUN], env=environment(n), check=True)
        wait_until("root's jobs are pinned", lambda: len(pinned(service)) == 2)
        before = pinned(service)
        assert all(uid == 0 for uid, _ in before), before
        program = hidden(service, known)
        for n in 661, 662:
            # by a shell of Mallory's: setpriv execs while it still may read anything
            subprocess.run(as_user(MALLORY, "sh", "-c", f'CI_JOB_ID={n} CI_COMMIT_REF_NAME=main exec "$0" "$@"',
                                   program, *RUN), check=True)
        # root sees what it did, in no job, and in no selection of root's runs
        wait_until("it was sampled", lambda: any(row["comm"] == "hidden" for row in rows(service, "--by", "process")))
        of_branch = rows(service, "--by", "process", "--label", "branch=main")
        assert of_branch and all(row["comm"] != "hidden" for row in of_branch), of_branch
        jobs = [row["job"] for row in rows(service, "--by", "job") if row["job"]]
        assert jobs and not any("66" in job for job in jobs), jobs
        # a job of this user's that begins now is pinned after those before it
        subprocess.run([known, *RUN], env=environment(103), check=True)
        wait_until("root's next is pinned", lambda: any("103" in job for _, job in pinned(service)))
        after = pinned(service)
        assert [uid for uid, _ in after] == [0, 0] and any("102" in job for _, job in after), (before, after)
