# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wall time: who worked alone, and who beside others, beside what threads say of themselves."""
import json
import os
import shutil

from machine import Folder, as_nobody, compile_program, everybodys, mperfctl, need_root, refused, rows
from recorded import known
from service import Service, wait_until


def said_by(done):
    """{name or number of harts: [wall s, cpu s]}"""
    return {name: [int(wall) / 1e9, int(cpu) / 1e9] for name, wall, cpu in map(str.split, done.stdout.splitlines())}


def program_of(build):
    return compile_program(build, "wall_work.c", "-pthread")


def agree(found, said, names, error_s):
    for name in names:
        wall_s, cpu_s = found.get(name, (0, 0))
        assert abs(wall_s - said[name][0]) <= error_s, (name, found, said)
        assert abs(cpu_s - said[name][1]) <= error_s, (name, found, said)


def found_by(answer, key):
    return {str(row[key]): (row["wall_ns"] / 1e9, row["self_ns"] / 1e9) for row in answer["rows"]}


def test_wall_time_is_what_threads_say(build):
    """Also on a busy machine: their own clocks show when they had no hart."""
    with Folder() as folder:
        said = said_by(mperfctl(build, "record", "-o", folder / "r", "--", program_of(build), 700))
        by_thread = rows(build, "hotspots", "--wall", "--by", "thread", "-i", folder / "r")
        by_harts = rows(build, "hotspots", "--by", "parallelism", "-i", folder / "r")
    total_s = sum(said[name][0] for name in ("alone", "second", "third"))
    error_s = 0.05 * total_s
    agree(found_by(by_thread, "comm"), said, ("alone", "second", "third"), error_s)
    agree(found_by(by_harts, "harts"), said, [n for n in "123" if said[n][0] > 0], error_s)
    # who worked alone weighs more than by CPU time
    assert said["alone"][0] / total_s > said["alone"][1] / sum(said[n][1] for n in ("alone", "second", "third"))
    for answer in by_thread, by_harts:
        wall = answer["provenance"]["wall"]
        assert abs(wall["busy_s"] - total_s) <= error_s, (wall, total_s)
        assert wall["least_s"] == wall["most_s"] == wall["busy_s"]
        assert abs(sum(row["wall_ns"] for row in answer["rows"]) / 1e9 - wall["busy_s"]) < 1e-6


def test_live_and_in_flame_graphs(build):
    program = program_of(build)
    with Folder() as folder:
        text = mperfctl(build, "hotspots", "--wall", "--by", "thread", "--", program, 300).stdout
        assert "Wall time" in text and "Parallelism" in text and "at least one hart worked for" in text, text
        mperfctl(build, "record", "-o", folder / "r", "--", program, 300)
        wall = rows(build, "hotspots", "--wall", "-i", folder / "r")["provenance"]["wall"]["busy_s"]
        folded = mperfctl(build, "flamegraph", "--wall", "--folded", "-i", folder / "r").stdout
        drawn_s = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) / 1e9
        assert abs(drawn_s - wall) < 0.01 * wall, (drawn_s, wall)
        mperfctl(build, "flamegraph", "--wall", "-i", folder / "r", "-o", folder / "wall.html")
        assert "wall time" in (folder / "wall.html").read_text()


def test_an_ordinary_users_clocks_run_with_his_threads(build):
    """Without the right to watch harts, each thread has a clock of its own, and threads share a hart."""
    need_root()
    with Folder() as folder:
        environment = everybodys(build, folder)
        os.chmod(folder, 0o755)
        shutil.copy(program_of(build), folder / "wall_work")
        done = as_nobody(folder, environment, "record", "-o", folder / "tmp" / "r", "--", "taskset", "-c", "0",
                         folder / "wall_work", 500)
        assert done.returncode == 0, done.stderr
        said = said_by(done)
        found = rows(build, "hotspots", "--wall", "--by", "thread", "-i", folder / "tmp" / "r")
    total_s = sum(said[name][0] for name in ("alone", "second", "third"))
    # one hart: wall time is CPU time
    assert abs(found["provenance"]["wall"]["busy_s"] - total_s) < 0.05 * total_s, (found["provenance"], said)
    assert abs(total_s - sum(said[name][1] for name in ("alone", "second", "third"))) < 0.05 * total_s


def test_the_service_gives_bounds(build):
    need_root()
    program = program_of(build)
    with Folder() as folder, Service(build, folder, flush="1s", rate=499) as service:
        done = service.ctl("job", "run", "w", "--", program, 2500)
        said = said_by(done)
        total_s = sum(said[name][0] for name in ("alone", "second", "third"))
        def stored():
            answer = json.loads(service.ctl("hotspots", "--wall", "--by", "job", "--label", "job=w", "--since", "-5m",
                                            "--json").stdout)
            return answer if answer["provenance"]["wall"]["cpu_s"] > 0.9 * sum(said[n][1] for n in said if n.isalpha()) \
                else None
        wall = wait_until("the store has the job", stored)["provenance"]["wall"]
        error_s = 0.05 * total_s
        assert wall["least_s"] - error_s <= total_s <= wall["most_s"] + error_s, (wall, said)
        text = service.ctl("hotspots", "--wall", "--label", "job=w", "--since", "-5m").stdout
        assert "at least one hart worked for" in text, text


def test_what_has_no_wall_time_is_refused(build):
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", known(build), "spin", "50")
        for arguments, why in ((("--wall", "--event", "waiting"), "wall time"), (("--wall", "-M", "ipc"), "wall time")):
            refused(mperfctl(build, "hotspots", *arguments, "-i", folder / "r", check=False), 2, why)
        mperfctl(build, "record", "-f", "-e", "page-faults", "-c", "1", "-o", folder / "r", "--", known(build), "pages", "500",
                 "100")
        refused(mperfctl(build, "hotspots", "--wall", "-i", folder / "r", check=False), 1, "stand for occurrences")
