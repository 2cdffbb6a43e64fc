# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Labels of many jobs in a small store: they live as long as the samples of their jobs, and where they do not,
the store says so."""
import shutil

from attacked import MALLORY, VICTOR
from machine import Folder, compile_program
from service import wait_until
from test_pins import Users

SECONDS = 60
SHORT = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"


def job(users, uid, name, command=SHORT):
    done = users.ctl(uid, "job", "run", name, "--label", "branch=main", "--", "sh", "-c", command)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def names(users, uid):
    rows = users.ask(uid, "hotspots", "--since", "-1h", "--by", "job", "-n", "0")["rows"]
    return {part.removeprefix("job=") for row in rows if row["job"]
            for part in row["job"].split(", ") if part.startswith("job=")}


def share(users, uid):
    return next(row for row in users.service.ask("store")["share"] if row["user"] == uid)


def use_up(build, users, uid, folder):
    """Seconds of a program whose stacks are never the same take what the user may write."""
    noise = shutil.copy(compile_program(build, "noise.c"), folder)
    for _ in range(30):
        job(users, uid, "build", f"{noise} $(mktemp -d -p {users.service.homes[uid]}) 1")
        if share(users, uid)["detail"] == "sums":
            return
    raise AssertionError(f"30 of them do not use up the share: {share(users, uid)}")


def test_many_short_jobs_of_a_user_over_the_share_keep_their_labels(build):
    # where mperf samples less, to keep its overhead, a short job may have no sample
    with Folder() as folder, Users(build, folder, overhead="none", budget="16M", keep_windows="14d") as users:
        use_up(build, users, MALLORY, folder)
        short = {f"short{i}" for i in range(6)}
        for name in sorted(short):
            job(users, MALLORY, name)
        wait_until("all jobs are stored", lambda: short <= names(users, MALLORY))
        row = share(users, MALLORY)
        assert row["cut"] > 0 and row["unlabelled"] == 0, row
        print(f"  {len(short) + 1} jobs, {row['cut']} of their samples cut, none without its job", flush=True)


def test_a_user_of_more_jobs_than_fit_is_said_to_be_and_takes_nothing_from_another(build):
    # what an hour may add is some kilobytes, and what labels may take of it some hundred bytes
    with Folder() as folder, Users(build, folder, budget="16M", keep_windows="730d", keep_minutes="730d",
                                   keep_hours="730d") as users:
        use_up(build, users, MALLORY, folder)
        for i in range(20):
            job(users, MALLORY, f"short{i}")
        wait_until("some have no room", lambda: share(users, MALLORY)["unlabelled"] > 0)
        said = users.service.ctl("store").stdout
        assert "Without job" in said, said
        job(users, VICTOR, "mine", SHORT.replace("200000", "800000"))
        wait_until("the other user's job is stored", lambda: "mine" in names(users, VICTOR))
        assert share(users, VICTOR)["unlabelled"] == 0, share(users, VICTOR)
