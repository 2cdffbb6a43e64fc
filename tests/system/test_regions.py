# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of which 1 in N entries is measured (MPERF_REGION_SAMPLE): what the measured ones stand for,
however they end, and what the service reports of them."""

import math

from counted import SANITIZE, Told, linked, output, outputs, ran
from machine import Folder
from service import Service, wait_until
from feed import Program, read_file
from test_granted import events_of, regions

SECONDS = 20
WAITS = "programs that tell every second"
N = 100
WARM_UP = 1 + 2 + 4 + 8 + 16 + 32 + 64  # entries of windows that double, one measured in each
WHOLE = WARM_UP + 50 * N                # entries of whole windows
MEASURED = 7 + 50


def entries(build):
    return linked(build, "entries", "entries.c")


def ratio(spent, name="represented"):
    return spent[name] / (spent["entries"] - spent["inner_entries"])


def test_all_entries_are_measured_unless_asked_otherwise(build):
    spent = output(entries(build), "plain", 1000).in_region("plain")
    assert spent["entries"] == spent["counted_entries"] == 1000, spent
    assert spent["measured_entries"] == spent["represented"] == 0, spent  # a short message


def test_one_in_n_stands_for_all(build):
    spent = output(entries(build), "plain", WHOLE, MPERF_REGION_SAMPLE=N).in_region("plain")
    assert spent["entries"] == spent["represented"] == WHOLE, spent
    assert spent["measured_entries"] == MEASURED and spent["time_ns"] > 0, spent
    none = output(entries(build), "plain", 1000, MPERF_REGION_SAMPLE=0).in_region("plain")
    assert none["entries"] == 1000 and none["time_ns"] == none["measured_entries"] == 0, none


def test_a_region_entered_once_is_measured(build):
    spent = output(entries(build), "plain", 1, MPERF_REGION_SAMPLE=10000).in_region("plain")
    assert spent["entries"] == spent["measured_entries"] == spent["represented"] == 1, spent


def test_a_wrong_number_measures_all(build):
    for wrong in ("", "-3", "ten", "10x"):
        spent = output(entries(build), "plain", 100, MPERF_REGION_SAMPLE=wrong).in_region("plain")
        assert spent["time_ns"] > 0 and spent["measured_entries"] == 0, (wrong, spent)


def test_entries_inside_themselves_are_not_drawn(build):
    spent = output(entries(build), "recursion", WHOLE, MPERF_REGION_SAMPLE=N).in_region("again")
    assert spent["entries"] == 3 * WHOLE and spent["inner_entries"] == 2 * WHOLE, spent
    assert spent["measured_entries"] == MEASURED and spent["represented"] == WHOLE, spent


def test_regions_inside_each_other_are_not_drawn_twice(build):
    told = output(entries(build), "turns", WHOLE, MPERF_REGION_SAMPLE=N)
    for path in ("even", "even/odd"):
        spent = told.in_region(path)
        assert spent["entries"] == 3 * WHOLE and spent["inner_entries"] == 2 * WHOLE, (path, spent)
        assert spent["measured_entries"] == MEASURED and spent["represented"] == WHOLE, (path, spent)
    assert len(told.spent) == 2, told.spent


def test_regions_nested_in_one_function_stay_where_they_are(build):
    told = output(entries(build), "nested", WHOLE, MPERF_REGION_SAMPLE=N)
    for path in ("outer", "outer/inner", "outer/inner/innermost"):
        spent = told.in_region(path)
        assert spent["entries"] == spent["represented"] == WHOLE, (path, spent)
        assert spent["measured_entries"] == MEASURED and spent["inner_entries"] == 0, (path, spent)
    assert len(told.spent) == 3, told.spent


def test_measured_entries_left_by_longjmp_end_at_the_next_marker(build):
    told = output(entries(build), "jumps", WHOLE, MPERF_REGION_SAMPLE=N)
    for path in ("around", "around/left"):
        spent = told.in_region(path)
        assert spent["entries"] == spent["represented"] == WHOLE, (path, spent)
        assert spent["measured_entries"] == MEASURED, (path, spent)


def test_a_child_measures_its_own_entries(build):
    parent, child = sorted(outputs(entries(build), "forks", WHOLE, MPERF_REGION_SAMPLE=N),
                           key=lambda p: p.in_region("open")["entries"], reverse=True)
    for told in (parent, child):
        spent = told.in_region("plain")
        assert spent["entries"] == WHOLE and 0.9 < ratio(spent) < 1.1, spent
    assert parent.in_region("plain")["represented"] == WHOLE
    assert child.in_region("open")["entries"] == 0, child.in_region("open")


def test_each_thread_draws_for_itself(build):
    told = output(entries(build), "threads", WHOLE, MPERF_REGION_SAMPLE=N)
    assert len(told.spent) == 4, told.spent
    for spent in told.spent.values():
        assert spent["represented"] == WHOLE and spent["measured_entries"] == MEASURED, spent


def test_signal_handlers_measure_too(build):
    for one_in in (1, 10):
        with Folder() as folder:
            done = ran(entries(build), "signals", 200000, MPERF_OUTPUT=folder / "out",
                       MPERF_REGION_SAMPLE=one_in)
            told = Program(read_file(folder / "out"))
        handled = int(done.stdout)
        inside = [told.in_region(path) for path in told.regions.values() if path.endswith("handler")]
        assert handled > 50 and sum(s["entries"] for s in inside) == handled, (handled, inside)
        assert told.in_region("plain")["entries"] == 200000, told.in_region("plain")
        for spent in told.spent.values():
            assert spent["time_ns"] < 60e9, spent  # no entry was timed from another start


def touch(build, n, one_in):
    """Page faults of a region with a period, by a granted event: what the service answers."""
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms",
                                     region_events="page-faults") as service, \
            Told(folder, entries(build), "pages", n, feed=service.feed,
                 MPERF_REGION_SAMPLE=one_in) as told:
        told.ready()
        pid = told.process.pid
        wait_until("it has its counter", lambda: events_of(pid) == 1)
        told.go_on()
        told.ready()
        wait_until("all is told", lambda: any(r["entries"] == n for r in regions(service, pid, "pages")[0]))
        rows, answer = regions(service, pid, "pages")
        told.go_on()
        told.ends()
        return rows[-1], answer


def test_events_are_scaled_with_their_error(build):
    n = 20000
    row, answer = touch(build, n, 10)
    # a sanitizer touches one of its own pages for each eight
    touched = 2 * n * (9 / 8 if build.name in SANITIZE else 1)
    off = row["event_page-faults"] / touched - 1
    assert row["entries"] == n and n / 10 <= row["measured_entries"] <= n / 10 + 5, row
    # Of entries of 1, and 11 at each tenth, the standard deviation is 3; of 2,000 of them, each of
    # 10, 2 * 20,000 are off by 3 * sqrt(90 * 2000), 3 %. What is told is that squared, rounded up to whole units
    # of MPERF_VARIANCE_UNIT, and so up to a fifth more.
    expected = 3 * math.sqrt(90 * 2000) / (2 * n)
    assert 0.02 < row["event_page-faults_error"] < 0.05, row
    assert abs(off) < 5 * expected, (off, row)
    assert 0 < row["error"] < 1, row
    assert any("10 % of the entries of regions were measured" in note for note in answer["provenance"]["notes"]), answer


def test_without_sampling_there_is_no_word_of_it(build):
    row, answer = touch(build, 2000, 1)
    assert "measured_entries" not in row and "event_page-faults_error" not in row, row
    assert row["event_page-faults"] in range(4000, 4600), row
    assert not any("were measured" in note for note in answer["provenance"]["notes"]), answer
