# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frames of top as the daemon sends them, for a daemon that is not there."""
import time

from fake_daemon import (COUNT, HZ, NONE, NS, RATIO, READY, SHARE, TOP, columns, provenance, rows)

HARTS = (("hart", "Hart", NONE), ("load", "Load", SHARE), ("user", "User", SHARE),
         ("kernel", "Kernel", SHARE), ("rung", "Sampled by", NONE), ("hz", "Rate", HZ),
         ("ipc", "IPC", RATIO), ("samples", "Samples", COUNT))
FIGURES = (("self", "Self", SHARE), ("total", "Total", SHARE), ("samples", "Samples", COUNT),
           ("self_ns", "Time", NS), ("cycles", "Cycles", COUNT),
           ("instructions", "Instructions", COUNT), ("ipc", "IPC", RATIO))
NAMES = {
    "function": (("function", "Function", NONE), ("module", "Module", NONE)),
    "module": (("module", "Module", NONE),),
    "process": (("comm", "Process", NONE), ("pid", "PID", NONE), ("argv", "Arguments", NONE)),
    "thread": (("comm", "Thread", NONE), ("pid", "PID", NONE), ("tid", "TID", NONE)),
    "cgroup": (("cgroup", "Control group", NONE),),
}
ROWS = {
    "function": [("sqlite3VdbeExec", "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6"),
                 ("ggc_internal_alloc", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"),
                 ("_int_malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
                 ("clear_page_erms", "[kernel]"),
                 ("std::vector<größe, 関数>::push_back", "/opt/app"),
                 ("\x1b[2J\x1b]0;owned\x07evil", "/tmp/\u202eexe"),
                 (None, "/opt/stripped")],
    "module": [("/usr/lib/x86_64-linux-gnu/libc.so.6",), ("[kernel]",)],
    "process": [("cc1plus", 4711, "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus -quiet a.cc"),
                ("sqlite3", 12, "sqlite3 my.db")],
    "thread": [("worker", 4711, 4713)],
    "cgroup": [("/system.slice/build.service",), ("/",)],
}


def harts(n=2, load=0.5):
    return (columns("harts", *HARTS),
            rows(*((i, load, load * 0.75, load * 0.25, "d: cpu-clock alone", 99, None, int(99 * load))
                   for i in range(n))))


def table(by, shift=0.0, extra=()):
    """Falling shares from 40 % on; `extra` are more rows of names."""
    names = ROWS[by] + list(extra)
    process = (("process", "Process", NONE),) if by == "function" else ()
    share = [max(0.4 / 2 ** i - shift, 0.0001) for i in range(len(names))]
    return (columns(by, *NAMES[by], *FIGURES, *process),
            rows(*((*name, s, min(2 * s, 1.0), int(198 * s), int(1e9 * s), int(4e9 * s),
                    int(3e9 * s), 0.75, *(("cc1plus",) if process else ()))
                   for name, s in zip(names, share))))


def callers():
    return (columns("function", ("function", "Function", NONE), ("module", "Module", NONE),
                    ("total", "Total", SHARE), ("self_ns", "Time", NS)),
            rows(("main", "/opt/app", 0.75, 10), ("[no caller]", None, 0.25, 5)))


def stream(n=None, n_harts=2, extra=(), **figures):
    """An answer function: n frames (None: until cancelled), then it waits for the cancel."""
    def answer(daemon, connection, request):
        assert request.case == TOP, request.case
        by, called = request.text(3), request.text(6)
        daemon.send(connection, request.number, READY)
        sent = 0
        while not daemon.cancelled.is_set() and (n is None or sent < n):
            content = callers() if called else table(by, 0.001 * (sent % 9), extra)
            daemon.send(connection, request.number,
                        *harts(n_harts, 0.3 + 0.05 * (sent % 9)), *content, provenance(**figures))
            sent += 1
            daemon.cancelled.wait((request.first(1, 0) or 1000) / 1000)
        while n is not None and not daemon.cancelled.is_set():
            time.sleep(0.05)
    return answer
