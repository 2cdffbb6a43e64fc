# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs jobs in processes of their own, as many side by side as there are seats.

There are as many seats as the machine has harts, and a job takes one, unless it says that it takes more: two where it keeps two harts busy,
all where it changes the machine for everybody (a sysctl, a hart that goes); or half of one, where it waits for most
of its time. What takes long begins
early, and what takes all seats comes at the end, so that nobody waits for the last job. What does not
mind how long it takes fills the time of processors that is left, since most system tests wait: for a period, a reply, a
time limit. It takes no seat and gives way to the others; of such jobs, one more than there are harts runs at once, the
longest first. A job ends
with its process: what its tests share (a recording, a container) neither disturbs another's nor
outlives it.

Who interrupts us (Ctrl-C, kill) ends all that runs: jobs are asked first, so that they undo what they
have set up, then whatever they started, wherever it went, and what does not listen is killed.
"""
import contextlib
import ctypes
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

ALL = 1 << 30       # seats of a job that runs alone
JOB_SECONDS = 3600  # the longest take minutes; what takes this long hangs, and is ended
NO_SEAT = 0         # of a job that fills what others leave
HALF_A_SEAT = 0.5   # of one that waits
FILLER_NICE = 10    # a tenth of the weight of others: it gives way, and is never starved

INTERRUPTS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
JOBS_END_SECONDS = 10  # for jobs to undo what they set up; unit tests run to their end meanwhile
REST_END_SECONDS = 5   # for what they left
# Source: Linux, include/uapi/linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Interrupted(BaseException):
    """A signal came that asks us to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid, done
    status = 1
    signal.alarm(JOB_SECONDS)
    try:
        stand_alone()
        if job.seats == NO_SEAT:
            os.nice(FILLER_NICE)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        result = job.run()
        pickle.dump((result, cpu_seconds()), done.file)
        done.file.flush()
        sys.stdout.flush()
        status = 0
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def stand_alone():
    """In a new job: the terminal's Ctrl-C is not for it; when it is asked to end, or its parent is gone, it
    leaves as by an exception, in silence."""
    def leave(*_):
        with open(os.devnull, "w", encoding="ascii") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        sys.exit(128 + signal.SIGTERM)

    for number in INTERRUPTS:
        signal.signal(number, leave)
    os.setpgid(0, 0)
    with open(os.devnull, encoding="ascii") as null:
        os.dup2(null.fileno(), 0)  # what reads from a terminal in the background would be stopped
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def interruptible():
    """Signals that ask us to end raise Interrupted, once, and are said in a line. What outlives its
    parent becomes our child, so that it is found."""
    def interrupted(number, _):
        for other in INTERRUPTS:
            signal.signal(other, signal.SIG_IGN)
        os.write(1, f"interrupted by {signal.Signals(number).name}: ending what runs\n".encode())
        raise Interrupted(number)

    prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = {number: signal.signal(number, interrupted) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        prctl(PR_SET_CHILD_SUBREAPER, 0)


def age_of(pid):
    """Seconds since that process began. Source: man proc_pid_stat, field 22."""
    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat[19]) / os.sysconf("SC_CLK_TCK")


def tell_rest(seconds, running, waiting):
    """What a run that is cut short was doing, for who has to find out why it took so long."""
    now = [f"{done.job.name} ({time.monotonic() - done.begin:.0f} s)" for done in running.values()]
    later = [job.name for job in waiting]
    with contextlib.suppress(OSError):  # nobody reads it, or we see no parent
        print(f"after {seconds:.0f} s, {age_of(os.getppid()):.0f} s after what started us: running "
              f"{', '.join(now) or 'nothing'}; to come {', '.join(later) or 'nothing'}", flush=True)


def descendants(pid):
    """The processes that it or they started and that have not ended."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent = stat.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        mine = children.get(todo.pop(), [])
        found += mine
        todo += mine
    return found


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def ended(find, seconds):
    """Wait until find() finds nobody, and take what has ended from the kernel's hands."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not find():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.05)


def end_jobs(jobs):
    """End these jobs, given by pid, and all that anybody below us has started."""
    def left():
        return descendants(os.getpid())

    send(jobs, signal.SIGTERM)
    ended(lambda: set(jobs) & set(left()), JOBS_END_SECONDS)
    send(left(), signal.SIGTERM)
    ended(left, REST_END_SECONDS)
    for _ in range(100):  # what they start meanwhile is found the next time
        send(left(), signal.SIGKILL)
        if ended(left, 0.1):
            break


def next_of(waiting, free, seats, busy):
    """The first that fits: longest first, those that want all seats last, which wait for fillers, too. busy:
    jobs that run."""
    n_fillers = sum(job.seats == NO_SEAT for job in busy)
    for job in sorted(waiting, key=lambda j: (j.seats >= seats, -j.seconds)):
        if job.seats == NO_SEAT and n_fillers > seats:
            continue
        if job.seats <= free or job.seats >= seats and not busy:
            return job
    return None


def run_all(jobs, seats=None):
    """Run them; gives a Done as each ends."""
    seats = seats or os.cpu_count() or 1
    waiting, running, free = list(jobs), {}, seats
    begin = time.monotonic()
    try:
        while waiting or running:
            job = next_of(waiting, free, seats, [done.job for done in running.values()])
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
    except BaseException as reason:
        try:
            if isinstance(reason, Interrupted):
                tell_rest(time.monotonic() - begin, running, waiting)
        finally:
            end_jobs(running)
        raise
