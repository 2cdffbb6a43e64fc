# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs jobs in processes of their own, as many side by side as there are seats.

Most system tests wait: for a period, a reply, a time limit. So there are more seats than the machine
has harts, and a job takes one, unless it says that it takes more: two where it keeps two harts busy,
all where it changes the machine for everybody (a sysctl, a hart that goes). What takes long begins
early, and what takes all seats comes at the end, so that nobody waits for the last job. A job ends
with its process: what its tests share (a recording, a container) neither disturbs another's nor
outlives it.
"""
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback

ALL = 1 << 30       # seats of a job that runs alone
JOB_SECONDS = 3600  # the longest take minutes; what takes this long hangs, and is ended
SEATS_PER_HART = 2  # a job keeps a hart busy for two fifths of its time, by the median


class Job:
    """`run()` gives what comes out, for pickle. seconds: about how long it takes, if long."""

    def __init__(self, name, run, seats=1, seconds=0):
        self.name, self.run, self.seats, self.seconds = name, run, seats, seconds


class Done:
    """A job that has run: what it gave, the wall seconds, and those of processors; the result is
    None if its process died of `status`."""

    def __init__(self, job, begin, file):
        self.job, self.begin, self.file = job, begin, file
        self.result, self.status, self.seconds, self.cpu = None, 0, 0, 0

    def end(self, status):
        self.status, self.seconds = status, time.monotonic() - self.begin
        self.file.seek(0)
        try:
            self.result, self.cpu = pickle.load(self.file)
        except (EOFError, pickle.UnpicklingError):
            pass
        self.file.close()


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def start(job):
    """Fork; (pid, Done to be). The child writes its result where both can read it."""
    sys.stdout.flush()
    done = Done(job, time.monotonic(), tempfile.TemporaryFile())
    pid = os.fork()
    if pid:
        return pid, done
    status = 1
    signal.alarm(JOB_SECONDS)
    try:
        result = job.run()
        pickle.dump((result, cpu_seconds()), done.file)
        done.file.flush()
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def next_of(waiting, free, seats):
    """The first that fits: longest first, those that want all seats last."""
    for job in sorted(waiting, key=lambda j: (j.seats >= seats, -j.seconds)):
        if min(job.seats, seats) <= free:
            return job
    return None


def run_all(jobs, seats=None):
    """Run them; gives a Done as each ends."""
    seats = seats or SEATS_PER_HART * (os.cpu_count() or 1)
    waiting, running, free = list(jobs), {}, seats
    while waiting or running:
        job = next_of(waiting, free, seats)
        if job:
            waiting.remove(job)
            free -= min(job.seats, seats)
            pid, done = start(job)
            running[pid] = done
            continue
        pid, status = os.wait()
        if pid not in running:
            continue
        done = running.pop(pid)
        done.end(status)
        free += min(done.job.seats, seats)
        yield done
