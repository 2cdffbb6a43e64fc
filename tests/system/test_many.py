# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many processes, many events in a group, a large recording."""
import os
import subprocess

from machine import Folder, Skip, mperfctl, need_root, rows
from rates import allowing
from recorded import known
from running import share


# --- many processes, groups ----------------------------------------------------------------------

@allowing()
def test_a_storm_of_short_processes_is_named(build):
    need_root()
    with Folder() as folder:
        mperfctl(build, "record", "-a", "-F", "1999", "-e", "cpu-clock", "-o", folder / "r", "--",
                 known(build), "processes", "2000")
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
    nameless = sum(r["self"] for r in answer["rows"] if not r["comm"])
    assert nameless <= 0.01, f"{nameless:.4f} of {answer['provenance']} have no name"
    pids = {r["pid"] for r in answer["rows"] if r["comm"] == "known"}
    assert len(pids) > 100, len(pids)  # most live for less than one period
    assert answer["provenance"]["lost"].get("unknown task", 0) <= \
        0.01 * answer["provenance"]["samples"], answer["provenance"]


@allowing()
def test_a_group_of_events_is_counted_where_its_leader_sampled(build):
    with Folder() as folder:
        mperfctl(build, "record", "-F", "1999", "-e", "{cpu-clock,page-faults}", "-o", folder / "r",
                 "--", known(build), "pages", "100000", "400")
        faults = rows(build, "hotspots", "-i", folder / "r", "--event", "page-faults", "--limit", "0")
        clock = rows(build, "hotspots", "-i", folder / "r", "--limit", "0")
        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded", "--event",
                          "page-faults").stdout
    total = {r["function"]: r["total"] for r in faults["rows"]}
    assert total.get("touch_pages", 0) > 0.8 and total.get("spin", 0) < 0.05, faults["rows"][:6]
    # how long the faults take depends on the machine
    assert sum(r["self_ns"] for r in clock["rows"] if r["function"] == "spin") > 0.75 * 400e6, clock["rows"][:6]
    counted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    assert 0.9 * 100000 < counted < 1.05 * 100000, (counted, folded[:500])


def without_sanitizers(build):
    """Each page fault of the machine is a record: those of sanitizers' shadow memory, the daemon's own
    among them, fill the rings, and the start of what is recorded may be among what is lost."""
    if build.name == "asan":
        raise Skip("shown by the plain run; page faults of sanitizers fill the rings")


def test_page_faults_sampled_alone_are_charged_to_who_touched_the_pages(build):
    without_sanitizers(build)
    with Folder() as folder:
        mperfctl(build, "record", "-e", "page-faults", "-o", folder / "r", "--", known(build),
                 "pages", "20000")
        found = rows(build, "hotspots", "-i", folder / "r", "--event", "page-faults")
    assert share(found["rows"], function="touch_pages") > 0.9, (found["rows"][:4], found["provenance"])


def test_two_recordings_of_page_faults_at_once_lose_none_to_each_other(build):
    """The kernel gives samples of one session the id of the other."""
    need_root()
    without_sanitizers(build)
    with Folder() as folder:
        recordings = [subprocess.Popen(
            [build / "mperfctl", "record", "-e", "page-faults", "-o", folder / name, "--",
             known(build), "pages", "20000", "1000"], env=dict(os.environ, MPERF_SOCKET=""),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for name in ("one", "two")]
        for recording in recordings:
            said = recording.communicate(timeout=120)[1]
            assert recording.returncode == 0, said
        for name in "one", "two":
            found = rows(build, "hotspots", "-i", folder / name, "--event", "page-faults")
            lost = found["provenance"]["lost"]
            touched = sum(r["samples"] for r in found["rows"] if r["function"] == "touch_pages")
            # when a session begins or ends there may be some of events that are not open any more
            assert lost.get("record of a closed event", 0) < 1000, (name, lost)
            assert touched + lost.get("ring overrun", 0) >= 20000, (name, touched, lost)


@allowing()
def test_a_large_recording_arrives_however_fast_the_client_reads(build):
    """Streaming must not wait for a socket that has long been empty again."""
    need_root()
    script = f"{known(build)} processes 4000"
    for _ in range(3):
        with Folder() as folder:
            mperfctl(build, "record", "-a", "-F", "9999", "-e", "cpu-clock", "-o", folder / "r", "--",
                     "sh", "-c", script, timeout=120)
            size = (folder / "r").stat().st_size
            mperfctl(build, "hotspots", "-i", folder / "r")
    assert size > 600 << 10, size  # more than mperfd keeps for a client at once
