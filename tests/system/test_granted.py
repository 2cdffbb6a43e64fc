# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counters that the service gives to threads of programs, for their regions. Software events are
counted on any machine; what hardware counts is told, or why it is not."""
import os

from counted import Told, program
from machine import Folder
from service import Service, wait_until

SECONDS = 15
WAITS = "programs that tell every second"


def events_of(pid):
    """How many perf events a process holds."""
    found = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += "perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return found


def granted(service):
    return {row["event"]: row for row in service.ask("status")["feed_event"]}


def regions(service, pid, name):
    """The rows of a region, which are as many as it has markers, by line, and the whole answer."""
    answer = service.ask("roofline", "--by", "region", "--pid", pid)
    found = [r for r in answer["rows"] if r["region"] == name]
    return sorted(found, key=lambda r: int(r["source"].rpartition(":")[2])), answer


def test_events_of_regions_are_told_with_them(build):
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms",
                                     region_events="page-faults,task-clock,alignment-faults") as service, \
            Told(folder, program(build), "faults", 1000) as told:
        told.ready()
        pid = told.process.pid
        wait_until("it has its counters", lambda: events_of(pid) == 3)
        told.go_on()
        told.ready()
        def is_told():
            rows = regions(service, pid, "faults")[0]
            return len(rows) == 2 and "granted_ns" in rows[0]
        wait_until("all is told", is_told)
        (before, row), answer = regions(service, pid, "faults")
        assert before["entries"] == row["entries"] == 1 and not before["granted_ns"], before
        assert before["event_page-faults"] is None, before  # not looked for is not zero
        assert row["event_page-faults"] in range(1000, 1200), row  # a sanitizer's shadow is an eighth more
        assert row["event_alignment-faults"] == 0, row  # looked for, and none happened
        assert 0 < row["granted_ns"] <= row["time_ns"], row
        assert row["event_task-clock"] > 0, row
        assert any("user code" in note for note in answer["provenance"]["notes"]), answer
        assert granted(service)["page-faults"]["granted"] == 1
        told.go_on()
        told.ends()


def test_without_events_nothing_is_opened(build):
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms",
                                     region_events="none") as service, \
            Told(folder, program(build), "faults", 10) as told:
        told.ready()
        pid = told.process.pid
        wait_until("its region is told", lambda: regions(service, pid, "faults")[0])
        assert events_of(pid) == 0 and granted(service) == {}
        (row,), answer = regions(service, pid, "faults")
        assert "granted_ns" not in row and not any("counted for" in n for n in
                                                   answer["provenance"]["notes"])
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()


def test_what_hardware_does_not_count_is_told(build):
    with Folder() as folder, Service(build, folder, flush="1s", period="100ms") as service, \
            Told(folder, program(build), "faults", 10) as told:
        told.ready()
        wait_until("counters were asked for", lambda: any(
            r["granted"] or r["refused"] for r in granted(service).values()))
        found = granted(service)
        assert list(found) == ["L1-dcache-load-misses", "LLC-load-misses", "instructions"], found
        for row in found.values():
            assert row["granted"] or len(row["trouble"]) > 20, row
        for name, row in found.items():
            if row["refused"]:
                wait_until("it is told", lambda: f"{name} is not counted" in service.said())
                assert row["trouble"].split(";")[0] in service.said()
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()


def test_events_that_cannot_be_are_told_at_the_start(build):
    with Folder() as folder, Service(build, folder, region_events="instrutcions") as service:
        assert "instrutcions" in service.said() and granted(service) == {}
        assert service.ask("status")["feed"][0]["programs"] == 0  # programs are listened to
