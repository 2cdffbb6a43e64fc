# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recording that many tests read, and what they ask of it."""
import functools
import os
import pickle
import shutil
import sqlite3

from machine import compile_program, mperfctl, once_in_a_run, refused, rows
from rates import rate_allowed, rate_limit


def known(build):
    return compile_program(build, "known.c")


class Recording:
    """One recording that many tests read: two processes of known shares, on known harts."""

    SPIN_MS, OTHER_MS = 1300, 400

    def __init__(self, build, folder):
        self.path = folder / "known.mprf"
        harts = sorted(os.sched_getaffinity(0))
        self.harts = harts[0], harts[-1]
        program = known(build)
        other = folder / "other"
        shutil.copy(program, other)
        script = (f"{program} spin {self.SPIN_MS} {self.harts[0]} & "
                  f"{other} spin {self.OTHER_MS} {self.harts[1]} & wait; {program} pages 3000 100")
        limit = None
        while limit != rate_limit():  # else it was taken at two rates
            limit = rate_limit()
            self.hz = rate_allowed(999)
            self.done = mperfctl(build, "record", "-F", self.hz, "-e", "cpu-clock", "-e",
                                 "page-faults", "-f", "-o", self.path, "--", "sh", "-c", script)
        with sqlite3.connect(f"file:{self.path}?immutable=1", uri=True) as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
            self.windows = [ns / 1e9 for ns, in db.execute(
                "SELECT realtime_ns FROM window WHERE id IN (SELECT window FROM sample) ORDER BY id")]
        self.begin_s = meta["realtime_ns"] / 1e9
        self.seconds = (meta["end_ns"] - meta["monotonic_ns"]) / 1e9


@functools.lru_cache(maxsize=None)
def recording(build):
    """Of each kind of build one."""
    known(build)  # what is made is not made within what is made
    folder = once_in_a_run(build, f"recorded-{build.name}",
                           lambda part: (part / "made").write_bytes(pickle.dumps(Recording(build, part))))
    made = pickle.loads((folder / "made").read_bytes())
    made.path = folder / made.path.name
    return made


def answer(build, *arguments):
    return rows(build, "hotspots", "-i", recording(build).path, "--limit", "0", *arguments)


def samples(found, **wanted):
    return sum(r["samples"] for r in found["rows"]
               if all(r[key] == value for key, value in wanted.items()))


def fails(build, status, words, *arguments, **options):
    done = mperfctl(build, *arguments, check=False, **options)
    refused(done, status, *words)
    return done
