# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""topdown of earlier counts: of topdown-groups in a service's store, in its files and their roll-ups, and of
recordings whose samples carried the events."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import Folder, Skip, as_nobody, everybodys, mperfctl, refused, seal
from service import Service, wait_until
from test_platforms import ask, metric, tried_core, try_platforms, with_platforms, write
from test_topdown import own_tree

SECONDS = 60
WAITS = "flushes"

FLUSH = "1s"
SEAL_BYTES = 32


class Counting(Service):
    """A service that knows the tried core, and counts its tree."""
    platforms = None

    def command(self):
        return with_platforms(self.platforms, *super().command())


def described(folder, tree=None):
    """A folder with the description of this machine's core, with a tree of software events."""
    core = tried_core()
    core["metrics"] = tree or own_tree()
    there = folder / "platforms"
    there.mkdir()
    write(there, "tried.json", core)
    try_platforms(there)
    return there


def counting(build, folder, groups="TopdownL1,rest_group", **keys):
    service = Counting(build, folder, flush=FLUSH, topdown_groups=groups, **keys)
    service.platforms = described(folder)
    return service


def work():
    """Page faults, for some hundred milliseconds."""
    subprocess.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do ls / >/dev/null; done"], check=True)


def tree_of(answer):
    return {row["node"]: row for row in json.loads(answer.stdout)["node"]}


def test_the_store_has_what_harts_counted_and_a_tree_of_it(build):
    with Folder() as folder, counting(build, folder) as service:
        for _ in range(7):
            work()
            time.sleep(1)
        found = service.ctl("topdown", "--since", "-1h", "--json")
        answer = json.loads(found.stdout)
        node = {row["node"]: row for row in answer["node"]}
        event = {row["event"]: row for row in answer["event"]}
        assert list(node) == ["minor", "rest", "part", "none", "residual"], node
        assert event["page-faults"]["scaled"] > 100, event
        share = event["minor-faults"]["scaled"] / event["page-faults"]["scaled"]
        assert abs(node["minor"]["value"] - 100 * share) < 1e-6, answer
        # software events never wait for a counter: exact
        assert node["minor"]["running_share"] == 1 and node["minor"]["error"] == 0, node
        assert "nothing to divide by" in node["none"]["reason"], node
        assert answer["core"][0]["core"] == "Tried Core", answer
        text = service.ctl("topdown", "--since", "-1h").stdout
        assert "Top-down of what the service counted on Tried Core" in text, text
        assert "mperfctl stat -M Mix -a --for 10s" in text, text
        # and no other answer has it
        hotspots = service.ask("hotspots", "--since", "-1h", "--by", "process")
        assert all(row["comm"] and row["samples"] for row in hotspots["rows"]), hotspots
        assert "counted" not in hotspots["provenance"]["event"], hotspots


def test_files_of_the_store_and_their_roll_ups_have_it_too(build):
    with Folder() as folder:
        with counting(build, folder) as service:
            work()
            time.sleep(2.5)
            work()
        windows = [*service.store.glob("window/*.mprf")]
        # sealed, and rolled up by the next service
        with service:
            wait_until("minutes and hours have counts", lambda: all(
                any(map(has_counts, service.store.glob(f"{tier}/*.mprf"))) for tier in ("minute", "hour")))
        values = {}
        for tier in "window", "minute", "hour":
            for file in windows if tier == "window" else service.store.glob(f"{tier}/*.mprf"):
                for event, value in counts_of(build, folder, tier, file).items():
                    values.setdefault(tier, {}).setdefault(event, 0)
                    values[tier][event] += value
        assert values["window"]["page-faults"] > 0, values
        assert values["minute"] == values["hour"] == values["window"], values


def has_counts(file):
    """A roll-up makes its file first, and fills it in one transaction."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM sample WHERE rung > 5").fetchone()[0] > 0
    except sqlite3.Error:
        return False  # it is being written


def counts_of(build, folder, tier, file):
    """{event: its count} of a file of the store, as topdown -i has it."""
    copy = folder / f"{tier}.mprf"
    copy.write_bytes(file.read_bytes())
    with sqlite3.connect(copy) as db:
        n = db.execute("SELECT count(*) FROM sample WHERE rung > 5").fetchone()[0]
        assert db.execute("SELECT value FROM meta WHERE key LIKE 'core:%'").fetchall() == [("tried-core",)], tier
        is_sealed = db.execute("SELECT value FROM meta WHERE key = 'sealed'").fetchone()[0]
        db.execute("UPDATE meta SET value = 1 WHERE key = 'sealed'")
    db.close()
    if is_sealed:
        copy.write_bytes(file.read_bytes())
    else:
        seal(copy)  # roll-ups grow for a day and longer
    found = ask(build, folder / "platforms", "topdown", "-i", copy, "--json")
    if n == 0:
        refused(found, 1)  # written before counting began
        return {}
    assert found.returncode == 0, found
    return {row["event"]: row["value"] for row in json.loads(found.stdout)["event"]}


def changed(file, copy, *sql):
    """A sealed copy of that file of the store, after these statements."""
    content = file.read_bytes()
    copy.write_bytes(content[:-SEAL_BYTES] if content[-SEAL_BYTES:].startswith(b"mPrfSeal") else content)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        for statement in ("UPDATE meta SET value = 1 WHERE key = 'sealed'", *sql):
            db.execute(statement)
        db.commit()
    seal(copy)
    return copy


def test_errors_of_stored_counts_have_the_part_that_turns_make(build):
    with Folder() as folder:
        with counting(build, folder) as service:
            for _ in range(7):  # an error needs some windows
                work()
                time.sleep(1)
        file = max(filter(has_counts, service.store.glob("window/*.mprf")), key=lambda file: file.stat().st_size)
        half = "UPDATE reading SET running_ns = enabled_ns / 2, value = value / 2"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            (core,), = db.execute("SELECT key FROM meta WHERE key LIKE 'core:%'").fetchall()
        turn = "INSERT OR REPLACE INTO meta VALUES ('turn:{}:{}', {})"
        harts = core.removeprefix("core:")

        def minor(name, *sql):
            copy = changed(file, folder / f"{name}.mprf", "DELETE FROM meta WHERE key LIKE 'turn:%'", *sql)
            return tree_of(ask(build, folder / "platforms", "topdown", "-i", copy, "--json"))["minor"]

        whole = minor("whole", turn.format(harts, 0, 50000))
        plain = minor("plain", half)
        turned = minor("turned", half, turn.format(harts, 0, 50000))
        others = [minor(f"other{i}", half, statement) for i, statement in enumerate((
            turn.format(harts, 1, 50000), turn.format(1000, 0, 50000), turn.format(harts, 0, 2000000),
            turn.format(harts, 0, -5), turn.format(harts, "x", 50000), turn.format(harts, 999, 50000)))]
        assert whole["error"] == 0, "what was counted all of the time took no turns"
        assert abs(plain["running_share"] - 0.5) < 1e-9 and turned["value"] == plain["value"], (plain, turned)
        # a count may be off by 5 % of what is half of the time on its counters: a quotient by as much
        assert abs(turned["error"] - plain["error"] - 0.025 * plain["value"]) < 1e-6, (plain, turned)
        assert all(other["error"] == plain["error"] for other in others), (plain, others)


def test_counts_that_others_kept_from_the_counters_say_so(build):
    with Folder() as folder:
        with counting(build, folder) as service:
            work()
            time.sleep(2.5)
        file = max(filter(has_counts, service.store.glob("window/*.mprf")), key=lambda file: file.stat().st_size)
        some = changed(file, folder / "some.mprf", "UPDATE reading SET running_ns = enabled_ns / 4")
        text = ask(build, folder / "platforms", "topdown", "-i", some).stdout
        assert "The event with the least time on a counter was counted 25" in text and "of the time" in text, text
        never = changed(file, folder / "never.mprf", "UPDATE reading SET running_ns = 0, value = 0 WHERE event IN "
                                                     "(SELECT id FROM event WHERE name LIKE 'minor-faults%')")
        node = tree_of(ask(build, folder / "platforms", "topdown", "-i", never, "--json"))
        assert node["minor"]["value"] is None, node
        assert "minor-faults never got a counter: other events used all of them" in node["minor"]["reason"], node


def test_only_those_who_see_all_see_what_harts_counted(build):
    with Folder() as folder, counting(build, folder) as service:
        time.sleep(2.5)
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        os.chmod(service.socket, 0o666)
        refused(as_nobody(folder, environment, "topdown", "--since", "-1h"), 1,
                "counts of whole harts include all users", "mperf")
        refused(as_nobody(folder, environment, "topdown", "-a", "--for", "1s"), 1, "whole system")


def test_a_store_without_groups_says_how_to_have_them(build):
    with Folder() as folder, Service(build, folder, flush=FLUSH) as service:
        time.sleep(1.5)
        refused(service.ctl("topdown", "--since", "-1h", check=False), 1,
                "no metrics were counted continuously at that time", "topdown-groups = TopdownL1")


def test_groups_that_are_not_there_are_said_once_and_sampling_goes_on(build):
    with Folder() as folder, counting(build, folder, groups="NoSuchGroup") as service:
        wait_until("the journal's line", lambda: "topdown-groups = NoSuchGroup is not counted" in service.said())
        assert "Tried Core knows no metric or group named 'NoSuchGroup'" in service.said()
        time.sleep(1.5)
        assert service.said().count("NoSuchGroup is not counted") == 1, service.said()
        assert service.ask("hotspots", "--since", "-1h")["rows"] is not None


def test_a_reload_begins_and_ends_counting(build):
    with Folder() as folder, counting(build, folder, groups="none") as service:
        time.sleep(1.2)
        refused(service.ctl("topdown", "--since", "-1h", check=False), 1, "no metrics were counted")
        service.write_config(topdown_groups="TopdownL1")
        service.process.send_signal(signal.SIGHUP)
        wait_until("a tree", lambda: service.ctl("topdown", "--since", "-1h", "-l", "1",
                                                 check=False).returncode == 0)


def test_a_reload_counts_by_the_platform_database_that_was_read(build):
    with Folder() as folder, counting(build, folder, groups="TopdownL1") as service:
        def counted():
            done = service.ctl("topdown", "--since", "-1h", "--json", check=False)
            return {row["event"] for row in json.loads(done.stdout)["event"] if row["scaled"]} if done.stdout else set()

        wait_until("counts by the first description", lambda: "page-faults" in counted())
        core = tried_core()
        core["metrics"] = [metric("moves", r"context\-switches / task\-clock", "1e6per_ms", "TopdownL1")]
        # as the service sees it
        write(Path(f"/proc/{service.process.pid}/root/etc/mperf/platforms.d"), "tried.json", core)
        service.process.send_signal(signal.SIGHUP)
        wait_until("counts by the second one", lambda: "context-switches" in counted())


def test_a_recording_whose_samples_carried_the_events_has_a_tree(build):
    with Folder() as folder:
        there = described(folder)
        file = folder / "run.mprf"
        done = ask(build, there, "record", "-F", "199", "-e",
                   "{cpu-clock,page-faults,minor-faults,major-faults}", "-o", file, "--", "sh", "-c",
                   "for i in 1 2 3 4 5 6 7 8 9 10; do ls / >/dev/null; done")
        assert done.returncode == 0, done
        node = tree_of(ask(build, there, "topdown", "-i", file, "--json"))
        # a sample can fall between the kernel's two counts of one fault, of hundreds
        assert 90 < node["minor"]["value"] < 101 and 25 <= node["rest"]["value"] < 35, node
        assert node["none"]["value"] is None, node
        refused(ask(build, there, "topdown", "-i", file, "-l", "3"), 1, "has 2 levels, not 3")
        refused(ask(build, there, "topdown", "-i", file, "-M", "Nothing"), 1,
                "Tried Core knows no metric or group named 'Nothing'")
        # of a machine that is not described there
        refused(mperfctl(build, "topdown", "-i", file, check=False), 1, "tried-core", "platform database lacks")


def test_recordings_without_counters_and_files_that_are_none_are_named(build):
    with Folder() as folder:
        file = folder / "plain.mprf"
        mperfctl(build, "record", "-e", "cpu-clock", "-o", file, "--", "true")
        there = described(folder)
        refused(ask(build, there, "topdown", "-i", file), 1)
        refused(mperfctl(build, "topdown", "-i", folder / "nothing", check=False), 1, "there is no such file")
        (folder / "text").write_text("no recording\n")
        refused(mperfctl(build, "topdown", "-i", folder / "text", check=False), 1, "is not an mperf recording")
        refused(mperfctl(build, "topdown", "-i", file, "--", "true", check=False), 2, "-i reads a recording")
        refused(mperfctl(build, "topdown", "--since", "-1h", "--pid", "1", check=False), 2, "counts of whole harts")
        refused(mperfctl(build, "topdown", "-a", "--cpu", "0", check=False), 2, "--cpu narrows")
        refused(mperfctl(build, "topdown", "--live", "--since", "-1h", check=False), 2, "--live")


def test_a_core_whose_metrics_the_recording_lacks_says_which_event_is_missing(build):
    with Folder() as folder:
        there = described(folder, [metric("switches", r"context\-switches / cpu\-migrations", "100%", "TopdownL1")])
        file = folder / "run.mprf"
        assert ask(build, there, "record", "-e", "{cpu-clock,page-faults}", "-F", "199", "-o", file, "--", "sh", "-c",
                   "ls / /usr >/dev/null").returncode == 0
        refused(ask(build, there, "topdown", "-i", file), 1, "none of the metrics of Tried Core was counted",
                "context-switches was not counted")


# --- counts that ride on samples -----------------------------------------------------------------

FAULTS = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ls -R /usr/include >/dev/null; done"


def rows_of(done):
    assert done.returncode == 0, done
    return json.loads(done.stdout)["rows"]


def test_hotspots_have_metrics_with_their_errors_where_counters_ride_on_samples(build):
    with Folder() as folder:
        there = described(folder)
        rows = rows_of(ask(build, there, "hotspots", "-M", "minor,faults_per_ms,none", "-F", "499", "-g", "none", "-n",
                           "0", "--json", "--", "sh", "-c", FAULTS))
        known = [row for row in rows if row["minor"] is not None]
        assert known and all(0 <= row["minor"] < 500 for row in known), rows
        assert all(row["none"] is None for row in rows), "nothing to divide by is n/a, not 0"
        assert any(row["faults_per_ms"] for row in rows), rows
        often = [row for row in rows if row["samples"] >= 50]
        assert all(row["faults_per_ms"] is None or row["faults_per_ms_error"] is not None for row in often), often
        refused(ask(build, there, "hotspots", "-M", "Nothing", "--", "true"), 2,
                "knows no metric or group named 'Nothing'")
        refused(ask(build, there, "hotspots", "-M", "minor", "-e", "cycles", "--", "true"), 2, "leave it out, or -e")


def test_a_recording_has_metrics_if_its_samples_carried_the_events(build):
    with Folder() as folder:
        there = described(folder)
        file = folder / "run.mprf"
        assert ask(build, there, "record", "-e", "{cpu-clock,page-faults,minor-faults}", "-F", "499", "-o", file, "--",
                   "sh", "-c", FAULTS).returncode == 0
        done = ask(build, there, "hotspots", "-i", file, "-M", "minor,rest", "--by", "module", "--json")
        rows = rows_of(done)
        assert any(row["minor"] for row in rows) and all(row["rest"] is None for row in rows), rows
        notes = json.loads(done.stdout)["provenance"]["notes"]
        assert "major-faults was not counted: metrics that need it are n/a" in notes, notes
        refused(mperfctl(build, "hotspots", "-i", file, "-M", "minor", check=False), 1, "tried-core")


def test_diff_shows_how_metrics_of_rows_changed(build):
    with Folder() as folder:
        there = described(folder, own_tree() + [metric(f"more{i}", r"minor\-faults / page\-faults", "100%", "More")
                                                for i in range(12)])
        for i in range(3):
            for side in "a", "b":
                assert ask(build, there, "record", "-M", "minor", "-F", "499", "-g", "none", "-o",
                           folder / f"{side}{i}.mprf", "--", "sh", "-c", FAULTS).returncode == 0
        sides = f"{folder}/a*.mprf", f"{folder}/b*.mprf"
        done = ask(build, there, "diff", *sides, "-M", "minor,rest", "--by", "process", "-n", "0", "--json")
        assert done.returncode == 0, done
        answer = json.loads(done.stdout)
        ls, = [row for row in answer["change"] if row["comm"] == "ls"]
        assert ls["baseline_minor"] > 90 and ls["candidate_minor"] > 90, ls
        assert ls["minor_low"] <= ls["minor_change"] <= ls["minor_high"] and abs(ls["minor_change"]) < 0.1, ls
        assert ls["rest_change"] is None, ls
        notes = answer["provenance"]["notes"]
        assert "rest is n/a, since no run counted its events" in notes, notes
        # of one run a side, the interval is by what the estimates say of themselves
        found = [row for row in rows_of(ask(build, there, "hotspots", "-i", folder / "a0.mprf", "-M", "minor", "--by",
                                            "process", "-n", "0", "--json"))
                 if row["comm"] == "ls" and row["minor"] is not None]
        mean = sum(row["minor"] * row["self_ns"] for row in found) / sum(row["self_ns"] for row in found)
        done = ask(build, there, "diff", folder / "a0.mprf", folder / "b0.mprf", "-M", "minor", "--by", "process", "-n",
                   "0", "--json")
        ls, = [row for row in json.loads(done.stdout)["change"] if row["comm"] == "ls"]
        assert abs(ls["baseline_minor"] - mean) < 1e-6 * mean, (ls, found)
        if all(row["minor_error"] is not None for row in found):
            assert ls["minor_low"] <= ls["minor_change"] <= ls["minor_high"], ls
        text = ask(build, there, "diff", *sides, "-M", "minor", "--by", "process").stdout
        assert "minor %" in text and "IPC" not in text, text
        # as many as there may be: what the rows are is still shown
        text = ask(build, there, "diff", *sides, "-M", "More", "--by", "process").stdout
        assert "more11 %" in text and "Process" in text and "ls" in text.split(), text
        beside = json.loads(ask(build, there, "diff", *sides, "-M", "minor", "--by", "process", "--side-by-side", "--json").stdout)
        ls, = [row for row in beside["beside"] if row["comm"] == "ls"]
        assert ls["minor_a"] > 90 and ls["minor_b"] > 90, ls
        # the gate's verdict is the same with them
        plain, more = (ask(build, there, "gate", "--baseline", sides[0], "--candidate", sides[1], "--json", *m)
                       for m in ((), ("-M", "minor")))
        assert plain.returncode == more.returncode in (0, 3, 4), (plain, more)
        assert json.loads(plain.stdout)["total"] == json.loads(more.stdout)["total"]
        refused(ask(build, there, "diff", *sides, "-M", "Nothing"), 2, "knows no metric or group named 'Nothing'")
        refused(ask(build, there, "diff", *sides, "-M", "minor", "--by", "loop"), 2, "leave out -M")
        refused(ask(build, there, "record", "-M", "minor", "-e", "cycles", "-o", folder / "no", "--", "true"), 2,
                "leave it out, or -e")
        # recordings whose core is not described here
        refused(mperfctl(build, "diff", *sides, "-M", "minor", check=False), 1, "tried-core")


def test_stat_shows_processes_control_groups_and_harts_apart(build):
    with Folder() as folder:
        there = described(folder)
        rows = rows_of(ask(build, there, "stat", "-M", "minor,faults_per_ms", "--per-process", "--json", "--", "sh", "-c",
                           FAULTS))
        assert {row["comm"] for row in rows} <= {"sh", "ls", "mperfctl", "unshare"}, rows
        assert any(row["comm"] == "ls" and row["faults_per_ms"] for row in rows), rows
        rows = rows_of(ask(build, there, "stat", "-M", "minor", "--per-cgroup", "--json", "--", "sh", "-c", FAULTS))
        assert rows and all(row["cgroup"].startswith("/") for row in rows if row["cgroup"]), rows
        done = ask(build, there, "stat", "-M", "minor", "--per-hart", "--json", "-a", "--for", "1s")
        rows = json.loads(done.stderr)["rows"]  # as all figures of stat
        harts = {row["harts"] for row in rows}
        assert harts == {str(hart) for hart in os.sched_getaffinity(0)} or len(harts) == os.cpu_count(), rows
        assert len(rows) == 3 * len(harts), rows  # two events and the metric, on each
        for words, arguments in (
                (("exclude each other",), ("--per-hart", "--per-process")),
                (("give -M too",), ("--per-process",)),
                (("one table",), ("--per-cgroup", "-M", "minor", "-I", "100"))):
            refused(mperfctl(build, "stat", *arguments, "--", "true", check=False), 2, *words)


def test_another_users_processes_do_not_show_without_the_group(build):
    with Folder() as folder, counting(build, folder, groups="none") as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        os.chmod(service.socket, 0o666)
        for by in "--per-process", "--per-cgroup", "--per-hart":
            refused(as_nobody(folder, environment, "stat", "-M", "minor", by, "-a", "--for", "1s"), 1, "group")
        own = as_nobody(folder, environment, "stat", "-M", "minor", "--per-process", "--json", "--", "sh", "-c", FAULTS)
        found = {row["comm"] for row in rows_of(own)}
        assert found <= {"sh", "ls", "mperfctl"}, found


def test_without_counters_one_sentence_says_what_still_works(build):
    counts = any(r["event"] == "cycles" and r["counts"] == "yes"
                 for r in json.loads(mperfctl(build, "list", "hardware", "--json").stdout)["rows"])
    if counts:
        raise Skip("this machine counts cycles")
    for command in ("hotspots",), ("stat", "--per-process"):
        refused(mperfctl(build, *command, "-M", "General", "--", "true", check=False), 1,
                "none of the events of these metrics counts here", "still shows where the time goes")


# --- live ----------------------------------------------------------------------------------------

def test_live_trees_are_shown_one_after_the_other(build):
    with Folder() as folder:
        there = described(folder)
        text = ask(build, there, "topdown", "-a", "--live", "--frames", "2")
        assert text.returncode == 0 and text.stdout.count("Top-down of the whole system") == 2, text
        assert "Look next" not in text.stdout and "\033" not in text.stdout, text
        lines = ask(build, there, "topdown", "-a", "--live", "--frames", "2", "--json").stdout.splitlines()
        frames = [json.loads(line) for line in lines]
        assert len(frames) == 2 and frames[1]["time"] - frames[0]["time"] > 0.5, frames
        assert [row["node"] for row in frames[0]["rows"]][:2] == ["minor", "rest"], frames
        command = ask(build, there, "topdown", "--live", "--", "sh", "-c", "sleep 1.3; exit 4")
        assert command.returncode == 4 and command.stdout.count("Top-down of sh") == 1, command
        for words, arguments in ((("--frames needs --live",), ("--frames", "2")),
                                 (("leave it out, or -o",), ("--live", "-o", "x.svg")),
                                 (("-d takes 1s or more",), ("--live", "-d", "200ms"))):
            refused(mperfctl(build, "topdown", "-a", *arguments, check=False), 2, *words)
