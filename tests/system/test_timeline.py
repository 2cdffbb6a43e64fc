# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""timeline: when a program of known phases was busy, by a recording and by the service, beside what it says itself."""
import json
import sqlite3

from machine import Folder, as_nobody, compile_program, everybodys, mperfctl, refused
from service import Service, wait_until

SANITIZED = "test_mistakes_are_named", "test_a_recording_is_exact"
PHASE_S = 3
NAME = "load_phases"
FLUSH_S = 15  # all phases, in one window, which does not say when


def phases_of(text):
    """[(begin, end, CPU time)] in seconds."""
    found = [tuple(int(n) / 1e9 for n in line.split()) for line in text.splitlines()]
    assert len(found) == 3, text
    return found


def series_of(answer, name=NAME):
    """[(begin, length, value)] of the row of that name, in seconds."""
    rows = [row for row in answer["timeline"] if row["label"] == name]
    assert len(rows) == 1, answer
    begin, every = rows[0]["begin_ns"] / 1e9, rows[0]["every_ns"] / 1e9
    return [(begin + i * every, every, value) for i, value in enumerate(rows[0]["values"])]


def cpu_between(series, begin, end):
    """CPU time in the stretches that are whole between these times, and how long they are."""
    inside = [(every, value or 0) for at, every, value in series if at >= begin and at + every <= end]
    return sum(every * value for every, value in inside), sum(every for every, _ in inside)


def agrees(series, phases, off_s, tolerance):
    """Each phase has its CPU time, if its ends may be off by so much; and that of all is right."""
    whole = sum(every * (value or 0) for _, every, value in series)
    said = sum(cpu for _, _, cpu in phases)
    assert abs(whole - said) <= tolerance * said, (whole, said)
    for begin, end, cpu in phases:
        inner, _ = cpu_between(series, begin + off_s, end - off_s)
        outer, _ = cpu_between(series, begin - off_s - series[0][1], end + off_s + series[0][1])
        assert inner <= cpu + tolerance * said, (begin, end, cpu, series)
        assert outer >= cpu - tolerance * said, (begin, end, cpu, series)
    (_, first, _), (asleep, awake, cpu), _ = phases
    quiet, quiet_s = cpu_between(series, asleep + off_s, awake - off_s)
    assert quiet_s > 0 and quiet <= 0.05 * quiet_s + cpu, (quiet, quiet_s, series)


def test_a_recording_is_exact(build):
    program = compile_program(build, "load_phases.c")
    with Folder() as folder:
        done = mperfctl(build, "record", "-o", folder / "r", "--", program, PHASE_S)
        answer = json.loads(mperfctl(build, "timeline", "-i", folder / "r", "--every", "250ms", "--json").stdout)
        agrees(series_of(answer), phases_of(done.stdout), 0.02, 0.1)
        assert not any("by the second" in note or "evenly" in note for note in answer["provenance"]["notes"])
        by_hart = json.loads(mperfctl(build, "timeline", "-i", folder / "r", "--by", "hart", "--every", "250ms",
                                      "--json").stdout)
        assert all(value <= 1.05 for row in by_hart["timeline"] for value in row["values"]), by_hart
        waits = json.loads(mperfctl(build, "timeline", "-i", folder / "r", "-e", "waiting:sleep", "--every", "250ms",
                                    "--json").stdout)
        (_, _, _), (asleep, awake, _), _ = phases_of(done.stdout)
        slept, slept_s = cpu_between(series_of(waits), asleep + 0.3, awake - 0.3)
        assert slept >= 0.8 * slept_s > 0, (slept, slept_s, waits)


def ran(service, program):
    """The program ran, and the service has stored it: its phases."""
    done = service.ctl("job", "run", "phases", "--", program, PHASE_S)
    phases = phases_of(done.stdout)
    wait_until("it is stored", lambda: any(
        row["label"] == NAME and row["mean"] > 0
        for row in service.ask("timeline", "--since", "-1m", "--comm", NAME)["timeline"]))
    return phases


def test_the_service_tells_the_second(build):
    program = compile_program(build, "load_phases.c")
    with Folder() as folder, Service(build, folder, flush=f"{FLUSH_S}s", rate="199") as service:
        phases = ran(service, program)
        ask = "timeline", "--since", "-1m", "--every", "500ms"
        answer = service.ask(*ask, "--comm", NAME)
        agrees(series_of(answer), phases, 1, 0.15)
        assert any("by the second" in note for note in answer["provenance"]["notes"]), answer["provenance"]
        by_job = service.ask(*ask, "--by", "job")
        agrees(series_of(by_job, job_of(by_job)), phases, 1, 0.15)
        service.ctl("job", "pin", "phases")
        pinned = wait_until("it is pinned", lambda: list((folder / "store" / "pinned").glob("*.mprf")))
        service.stop()
        told = json.loads(mperfctl(build, "timeline", "-i", pinned[0], "--every", "500ms", "--json").stdout)
        agrees(series_of(told), phases, 1, 0.15)
        with sqlite3.connect(f"file:{pinned[0]}?immutable=1", uri=True) as db:
            assert db.execute("SELECT count(*) FROM second WHERE hart >= 0").fetchone() == (0,)


def job_of(answer):
    labels = [row["label"] for row in answer["timeline"] if "phases" in row["label"]]
    assert len(labels) == 1, answer
    return labels[0]


def test_another_user_sees_nothing_of_it(build):
    program = compile_program(build, "load_phases.c")
    with Folder() as folder, Service(build, folder, flush=f"{FLUSH_S}s") as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        phases = ran(service, program)
        for by in "process", "job", "hart":
            done = as_nobody(folder, environment, "timeline", "--since", "-1m", "--every", "1s", "--by", by, "--json")
            assert done.returncode == 0, done.stderr
            assert NAME not in done.stdout and "phases" not in done.stdout, done.stdout
            busy = sum(value or 0 for row in json.loads(done.stdout)["timeline"] for value in row["values"])
            assert busy < 0.2 * sum(cpu for _, _, cpu in phases), done.stdout
        done = as_nobody(folder, environment, "record", "--since", "-1m", "-o", folder / "tmp" / "r")
        if done.returncode == 0:  # processes of that user ran, too
            with sqlite3.connect(f"file:{folder / 'tmp' / 'r'}?immutable=1", uri=True) as db:
                assert db.execute("SELECT count(*) FROM second s LEFT JOIN task t ON t.id = s.task "
                                  "WHERE s.hart >= 0 OR t.uid IS NOT 65534").fetchone() == (0,)


def test_it_is_drawn_in_the_width_of_the_terminal(build):
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
        for columns in "80", "120":
            text = mperfctl(build, "timeline", "-i", folder / "r", env={"COLUMNS": columns}).stdout
            lines = text.split("\n\n")[0].splitlines()
            assert lines[0].startswith("Process") and lines[-1].strip().startswith("|"), text
            assert all(len(line) <= int(columns) for line in lines), text
            assert "One column is " in text, text
        raw = mperfctl(build, "timeline", "-i", folder / "r", "--raw").stdout
        assert raw.startswith("# timeline\n") and "\n# mark\n" in raw, raw


def test_mistakes_are_named(build):
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", "true")
        for arguments, words in ((("--every", "1ns"), ("--every",)), (("--by", "colour"), ("--by",)),
                                 (("--json", "--raw"), ("two forms",))):
            refused(mperfctl(build, "timeline", "-i", folder / "r", *arguments, check=False), 2, *words)
        refused(mperfctl(build, "timeline", "-i", folder / "none", check=False), 1, "none")
