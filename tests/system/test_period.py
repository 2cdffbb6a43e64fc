# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Samples by occurrences: what one stands for is known to all answers, and to the exports of other tools."""
import gzip
import json
import re
import shutil
import sqlite3
import subprocess

from attacked import MALLORY, VICTOR, UnitService, as_user
from machine import Folder, compile_program, leave_to_plain, mperfctl, need_root, refused, rows
from recorded import fails, known

PAGES, PERIOD = 20000, 1000  # few enough for a low kernel.perf_event_max_sample_rate
# A hart's thousandth falls on us by chance where others have page faults, too: twenty, give or take four, nearly always.
FEWEST, MOST = 0.4 * PAGES, 1.6 * PAGES


def need_plain(build):
    leave_to_plain(build, "page faults of sanitizers fill the rings")


def record(build, path, *options):
    return mperfctl(build, "record", "-o", path, *options, "--", known(build), "pages", str(PAGES), "1000")


def touched(found, column):
    return sum(r[column] for r in found["rows"] if r["function"] == "touch_pages")


def test_a_sample_stands_for_as_many_occurrences_as_was_asked_for(build):
    need_plain(build)
    with Folder() as folder:
        record(build, folder / "r", "-e", "page-faults", "-c", str(PERIOD))
        found = rows(build, "hotspots", "-i", folder / "r")
        assert FEWEST < touched(found, "count") < MOST, found
        assert touched(found, "count") == PERIOD * touched(found, "samples"), found
        assert touched(found, "self") > 0.9 and touched(found, "self_ns") == 0, found
        assert found["provenance"]["period"] == PERIOD and found["provenance"]["hz"] == 0, found
        assert "one in 1,000;" in mperfctl(build, "hotspots", "-i", folder / "r").stdout
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
        assert meta["period:1"] == PERIOD and meta["hz"] == 0, meta

        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded").stdout
        assert FEWEST < sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()) < MOST
        script = mperfctl(build, "export", "--as", "perf-script", "-i", folder / "r").stdout
        assert set(re.findall(r"(\d+) page-faults:", script)) == {str(PERIOD)}, script[:300]
        mperfctl(build, "export", "--as", "pprof", "-i", folder / "r", "-o", folder / "p")
        assert b"page-faults" in gzip.decompress((folder / "p").read_bytes())
        speedscope = json.loads(mperfctl(build, "export", "--as", "speedscope", "-i", folder / "r").stdout)
        assert FEWEST < sum(sum(p["weights"]) for p in speedscope["profiles"]) < MOST


def test_a_clock_has_time_also_by_a_period(build):
    with Folder() as folder:
        mperfctl(build, "record", "-e", "cpu-clock,page-faults", "-c", "2000000", "-o", folder / "r", "--",
                 known(build), "spin", "300")
        found = rows(build, "hotspots", "-i", folder / "r")
    spun = sum(r["self_ns"] for r in found["rows"] if r["function"] == "spin")
    assert 0.15e9 < spun < 0.6e9, found
    assert found["provenance"]["hz"] == 500 and found["provenance"]["period"] is None, found["provenance"]
    assert "count" not in found["rows"][0], found["rows"][0]


def test_what_is_by_occurrences_is_not_compared_as_time(build):
    need_plain(build)
    with Folder() as folder:
        record(build, folder / "r", "-e", "page-faults", "-c", str(PERIOD))
        fails(build, 2, ["page-faults", "not measure time", "-F"], "diff", folder / "r", folder / "r")


def test_a_service_keeps_to_its_highest_rate(build):
    """Users have periods of events that come at each occurrence without one, and of others as long as these
    cannot come faster than rate-max."""
    need_root()
    need_plain(build)
    program = compile_program(build, "known.c")
    with Folder() as folder, UnitService(build, folder, rate=99, top_rate=99, rate_max=1000) as service:
        shutil.copy(program, folder / "known")
        for options, words in ((["-e", "cpu-clock", "-c", "999999"], ["cpu-clock", "1000 samples a second", "1000000"]),
                               (["-e", "cycles", "-c", "47999999"], ["cycles", "rate-max", "48000000"]),
                               (["-e", "r22,page-faults", "-c", "9"], ["r22", "rate-max"])):
            refused(service.user(MALLORY, "record", *options, "-o", "r", "--", "true"), 2, *words)
        record = service.homes[MALLORY] / "r"
        with subprocess.Popen(as_user(VICTOR, folder / "known", "pages", "1000000"),
                              stdout=subprocess.DEVNULL) as other:
            done = service.user(MALLORY, "record", "-e", "page-faults:u", "-c", str(PERIOD), "-o", record, "--",
                                folder / "known", "pages", str(PAGES), "1000")
            other.kill()
        assert done.returncode == 0, done.stderr
        found = rows(build, "hotspots", "-i", record)
        counted = sum(r["count"] for r in found["rows"])
        assert FEWEST < counted < MOST, found
