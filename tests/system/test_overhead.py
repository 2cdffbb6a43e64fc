# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mperf costs is measured, shown, and kept to a budget: by a real service that can afford next to
nothing, or all."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from machine import Folder, by_itself, leave_to_plain
from service import Service, wait_until

SECONDS = 90
# Less than eight samples a second cost anywhere, so that all that helps is given up.
NEXT_TO_NOTHING = "0.0001%"
BUDGETS = "costs and budgets are of time, and unit tests take the same code through sanitizers"


def tables(service):
    return service.ask("status")


def budget(service):
    row, = tables(service)["budget"]
    return row


def cost_of(service, cause):
    return next((row for row in tables(service)["overhead"] if row["cause"] == cause), None)


def doctor(service):
    rows = service.ask("doctor")["rows"]
    return [row["finding"] for row in rows if row["topic"] == "cost"]


@contextlib.contextmanager
def spinning(folder):
    """A busy program called spins."""
    program = folder / "spins"
    shutil.copy(shutil.which("sh"), program)
    with subprocess.Popen([program, "-c", "while :; do :; done"]) as process:
        try:
            yield process
        finally:
            process.kill()


def cpu_seconds(process):
    """Source: proc(5), utime and stime of /proc/PID/stat."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_costs_are_measured_and_shown(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, Service(build, folder, flush="1s", overhead="100%") as service:
        with spinning(folder) as busy:
            wait_until("each hart has its price",
                       lambda: len(found := doctor(service)) == os.cpu_count() and
                       not any("not measured" in text for text in found), 180)
            print("  " + doctor(service)[0])
            wait_until("samples are priced", lambda: (row := cost_of(service, "samples")) and
                       row["per_second"] > 10 and row["machine_share"] > 0)
            wait_until("it had three seconds", lambda: cpu_seconds(busy) > 3)
            causes = {row["cause"]: row for row in tables(service)["overhead"]}
        assert causes["mperfd and its namer"]["machine_share"] > 0, causes
        each = causes["samples"]["machine_share"] * os.cpu_count() * 1e9 / causes["samples"]["per_second"]
        assert abs(causes["samples"]["each_ns"] - each) < 0.1 * each, causes
        assert causes["throttles"]["each_ns"] is None, causes
        parts = [row["machine_share"] or 0 for name, row in causes.items()
                 if name != "all" and not row["part_of"]]
        assert abs(sum(parts) - causes["all"]["machine_share"]) < 1e-9, causes
        own = {name: row["machine_share"] for name, row in causes.items()
               if row["part_of"] == "mperfd and its namer"}
        assert own["records of samples"] > 0 and own["naming"] > 0 and own["writing"] > 0, own
        whole = causes["mperfd and its namer"]["machine_share"]
        assert 0.95 * whole - 0.0005 < sum(own.values()) < 1.05 * whole + 0.0005, (own, whole)
        assert causes["naming for users"]["part_of"] == "clients and programs", causes
        assert budget(service)["given_up"] == "nothing", budget(service)
        assert budget(service)["over"] is None, budget(service)
        answer = service.ask("hotspots", "--since", "-1h")["provenance"]
        assert 0 < answer["cost_share"] < 1, answer
        assert "own cost" not in str(answer["lost"]), answer
        assert "own cost" not in str(tables(service)["loss"])
        text = service.ctl("hotspots", "--since", "-1h").stdout
        assert "; cost " in text and " % of the machine" in text, text


def test_forks_execs_and_mappings_are_counted_and_priced_by_doctor(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, Service(build, folder, flush="1s", overhead="100%") as service:
        with subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as forks:
            try:
                wait_until("forks and execs are counted", lambda: all(
                    (row := cost_of(service, name)) and row["per_second"] > 10
                    for name in ("forks", "execs", "mappings")))
                assert cost_of(service, "forks")["each_ns"] is None, "nobody asked for it"
                found, = (row for row in service.ask("doctor")["rows"] if row["topic"] == "side band")
                print("  " + found["finding"])
                priced = cost_of(service, "forks")
            finally:
                forks.kill()
        assert found["state"] == "ok", found
        words = re.fullmatch(r".* adds (.*) to a fork and exit, (.*) to a fork, exec and exit, (.*) to a "
                             r"mapping of code", found["finding"])
        assert words and all("µs" in price for price in words.groups()), found
        # what cannot be told from nothing has no price
        assert (priced["each_ns"] is None) == words[1].startswith("less than"), (priced, found)
        if priced["each_ns"]:
            part = priced["per_second"] * priced["each_ns"] / 1e9 / os.cpu_count()
            assert abs(priced["machine_share"] - part) < 0.2 * part, priced


def turns_a_second(service, seconds=5):
    def count():
        return tables(service)["loop"][0]["turns"], time.monotonic()
    n, began = count()
    time.sleep(seconds)  # the span is what is counted over
    more, ended = count()
    return (more - n) / (ended - began)


@by_itself("other tests' new programs are named at once, which makes turns")
def test_the_loop_turns_at_drains_and_for_little_else(build):
    """Four drains a second, and what this test asks. The least of some spans counts, for others may use the
    machine."""
    leave_to_plain(build, "a turn is a turn with sanitizers, too, but programs take longer to be named")
    with Folder() as folder, Service(build, folder, overhead="100%") as service, spinning(folder):
        spans = []
        wait_until("at most eight turns a second",
                   lambda: spans.append(turns_a_second(service)) or min(spans) <= 8, 120)
        print("  turns a second: " + ", ".join(f"{n:.1f}" for n in spans))


def test_a_budget_is_kept_and_what_was_given_up_is_said(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, \
            Service(build, folder, flush="1s", rate=99, overhead=NEXT_TO_NOTHING) as service:
        with spinning(folder) as busy:
            wait_until("something is given up", lambda: budget(service)["step"] > 0, 180)
            wait_until("the rate is lower", lambda: tables(service)["rate"][0]["hz"] < 99)
            state = budget(service)
            assert "samples cost hart" in state["reason"], state
            assert "one in 8 samples is taken" in state["given_up"], state
            assert tables(service)["rate"][0]["hz"] == 12, tables(service)["rate"]
            assert "to keep overhead within 0.0001 %: " in service.said(), service.said()
            assert any("(`mperfctl status` says what is given up)" in text
                       for text in doctor(service)), doctor(service)
            before = cpu_seconds(busy)
            wait_until("it had six seconds", lambda: cpu_seconds(busy) > before + 6, 120)
            notes = service.ask("hotspots", "--since", "-5s")["provenance"]["notes"]
            assert any("to limit overhead, " in note and "one in 8" in note for note in notes), notes
            least = cpu_seconds(busy)
            # samples are fewer, and stand for more time
            row, = service.ask("hotspots", "--by", "process", "--pid", busy.pid,
                               "--since", "-59m")["rows"]
            most = cpu_seconds(busy)
            assert 0.9 * least - 1 < row["self_ns"] / 1e9 < 1.05 * most + 1, (row, least, most)
            # an owner who lifts the limit has all of it back at once
            service.write_config(overhead="none")
            service.process.send_signal(signal.SIGHUP)
            wait_until("nothing is given up", lambda: budget(service)["step"] == 0)
            wait_until("the rate is back", lambda: tables(service)["rate"][0]["hz"] == 99)
        assert budget(service)["budget"] is None and budget(service)["reason"] is None


def test_a_budget_that_execs_exceed_says_what_costs_and_keeps_the_rate(build):
    """Their records and names cost it, and samples next to nothing. What is then put off, and in which order, takes
    minutes: unit tests replay it."""
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, Service(build, folder, rate=19, overhead="100%") as service, \
            subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as execs:
        try:
            wait_until("own CPU time is known", lambda: (budget(service)["spent"] or 0) > 0)
            samples, spent = cost_of(service, "samples")["hart_share"] or 0, budget(service)["spent"]
            limit = max(spent / 4, 2 * samples)
            assert limit < spent / 2, (samples, spent)
            service.write_config(rate=19, overhead=f"{limit * 100:.4f}%")
            service.process.send_signal(signal.SIGHUP)
            wait_until("it says what costs", lambda: budget(service)["over"])
        finally:
            execs.kill()
        state = budget(service)
        assert state["given_up"] == "nothing" and state["reason"] is None, state
        assert state["over"].endswith(", and nothing is decided yet"), state
        assert not re.search(r": samples cost", state["over"]), state
        assert tables(service)["rate"][0]["hz"] == 19, tables(service)["rate"]
        service.write_config(rate=19, overhead="100%")
        service.process.send_signal(signal.SIGHUP)
        wait_until("nothing is over the budget", lambda: budget(service)["over"] is None)


def test_a_client_may_exceed_the_budget(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, \
            Service(build, folder, flush="1s", rate=99, overhead=NEXT_TO_NOTHING) as service:
        with spinning(folder):
            wait_until("something is given up",
                       lambda: tables(service)["rate"][0]["hz"] == 12, 180)
            path = folder / "recording"
            service.ctl("record", "-a", "-F", "299", "-o", path, "--", "sleep", "3")
            answer = service.ask("hotspots", "-i", path)["provenance"]
            assert answer["hz"] == 299 and answer["samples"] > 300, answer
            assert answer["cost_share"] > 0, answer
            wait_until("the rate is the budget's again",
                       lambda: tables(service)["rate"][0]["hz"] == 12)


def test_a_client_s_own_budget_takes_of_its_rate_and_nothing_else(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, \
            Service(build, folder, flush="1s", rate=99, overhead="100%") as service:
        with spinning(folder):
            wait_until("samples are priced", lambda: (row := cost_of(service, "samples")) and
                       row["machine_share"] > 0, 180)
            path = folder / "recording"
            service.ctl("record", "-a", "-F", "999", "--overhead", NEXT_TO_NOTHING, "-o", path,
                        "--", "sleep", "10")
            answer = service.ask("hotspots", "-i", path)["provenance"]
            assert any("to keep overhead within 0.0001 %, 99 samples a second were asked for "
                       "instead of 999" in note for note in answer["notes"]), answer
            assert budget(service)["given_up"] == "nothing", budget(service)
            service.ctl("record", "-a", "-F", "299", "--overhead", "100%", "-o", path, "--",
                        "sleep", "6")
            answer = service.ask("hotspots", "-i", path)["provenance"]
            assert answer["hz"] == 299 and "overhead" not in str(answer["notes"]), answer


def test_a_walk_of_its_own_is_held_to_a_client_s_budget(build):
    leave_to_plain(build, BUDGETS)
    with Folder() as folder, \
            Service(build, folder, flush="1s", rate=99, overhead="100%") as service:
        with spinning(folder) as busy:
            path = folder / "recording"
            before = cpu_seconds(busy)
            service.ctl("record", "-a", "-U", "-F", "299", "--overhead", NEXT_TO_NOTHING, "-o",
                        path, "--", "sleep", "20")
            most = cpu_seconds(busy) - before
        answer = service.ask("hotspots", "-i", path, "--by", "process", "--pid", busy.pid)
        notes = answer["provenance"]["notes"]
        assert any("to keep overhead within 0.0001 %, " in note and "one in 8" in note
                   for note in notes), notes
        assert 0 < answer["provenance"]["cost_share"] < 1, answer["provenance"]
        # samples are fewer, and stand for more time
        row, = answer["rows"]
        assert 0.7 * most - 1 < row["self_ns"] / 1e9 < 1.05 * most + 1, (row, most)


def test_a_wrong_budget_is_named_and_the_old_one_stays(build):
    with Folder() as folder, Service(build, folder, overhead="2%") as service:
        service.write_config(overhead="two")
        service.process.send_signal(signal.SIGHUP)
        wait_until("the mistake is named", lambda: "overhead is 'two'" in service.said())
        assert budget(service)["budget"] == 0.02, budget(service)
