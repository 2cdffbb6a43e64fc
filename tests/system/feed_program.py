# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that speaks the feed as runtime/abi.inc has it, with tables made by hand.

As a program of its own it counts as its argument says, in JSON on its standard input; the tests know
what must come out.
"""
import json
import os
import re
import socket
import struct
import sys
import threading
import time
from pathlib import Path

ABI = (Path(__file__).resolve().parent.parent.parent / "runtime" / "abi.inc").read_text()
METRICS = {name: int(number) for number, name in
           re.findall(r'^MPERF_METRIC\((\d+), \w+, "(\w+)"', ABI, re.M)}
MAGIC, VERSION = 0x4652504d, 1
HELLO, OBJECT, TABLE, REGION, THREAD, DELTAS, SPENT, GONE, ROUND, ASK = *range(1, 10), 64
LOOP, FUNCTION, BLOCK = 1, 2, 4
SCALABLE, MODELLED = 1, 2
PACKET_BYTES_MAX = 32 << 10


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def uleb(n):
    out = bytearray()
    while True:
        byte, n = n & 127, n >> 7
        out.append(byte | (128 if n else 0))
        if not n:
            return bytes(out)


def sleb(n):
    out = bytearray()
    while True:
        byte, n = n & 127, n >> 7
        last = n == (-1 if byte & 64 else 0)
        out.append(byte | (0 if last else 128))
        if last:
            return bytes(out)


class Table:
    """Scopes and counters of one compilation unit, as bytes()."""

    def __init__(self):
        self.strings, self.scopes, self.counters = [""], [], []

    def string(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def scope(self, kind, function, source="", line=0, line_last=None, column=0, nest="",
              inlined_at="", parent=None, flags=0):
        """Its number."""
        self.scopes.append([kind, 0 if parent is None else parent + 1, self.string(function),
                            self.string(source), line, line if line_last is None else line_last,
                            column, self.string(nest), self.string(inlined_at), flags])
        return len(self.scopes) - 1

    def counter(self, *terms, state=False):
        """Terms are (scope, metric's name, factor) or (…, variant). Its number."""
        self.counters.append((int(state), [(t[0], METRICS[t[1]] << 2 | (t[3] if len(t) > 3 else 0),
                                            t[2]) for t in terms]))
        return len(self.counters) - 1

    def __bytes__(self):
        out = uleb(1) + uleb(len(self.strings))
        for text in self.strings:
            out += uleb(len(text.encode())) + text.encode()
        out += uleb(len(self.scopes)) + b"".join(uleb(n) for s in self.scopes for n in s)
        out += uleb(len(self.counters))
        for kind, terms in self.counters:
            out += uleb(kind) + uleb(len(terms))
            out += b"".join(uleb(scope) + uleb(metric) + sleb(factor)
                            for scope, metric, factor in terms)
        return out


def message(kind, fixed, rest=b"", n_bytes=None):
    n = 8 + len(fixed) + len(rest)
    return struct.pack("<HHI", kind, 0, n if n_bytes is None else n_bytes) + fixed + rest


def hello(begin_ns=None, vscale=0, period_ms=1000, magic=MAGIC, version=VERSION):
    begin_ns = now_ns() if begin_ns is None else begin_ns
    return message(HELLO, struct.pack("<IIQII", magic, version, begin_ns, vscale, period_ms))


def object_(number=0, n_counters=0, n_modules=1, build_id=b"\x5a" * 20):
    return message(OBJECT, struct.pack("<IIII", number, n_counters, n_modules, len(build_id)),
                   build_id)


def tables(table, number=0, module=0, first=0, n_counters=None, piece=PACKET_BYTES_MAX - 32):
    """Messages that bring a table (or any bytes) in pieces."""
    n_counters = len(table.counters) if n_counters is None else n_counters
    data = bytes(table)
    return [message(TABLE, struct.pack("<IIIIII", number, module, first, n_counters, len(data), at),
                    data[at:at + piece]) for at in range(0, len(data), piece)]


def region(number, name, source="", line=0, parent=0):
    name, source = name.encode() + b"\0", source.encode() + b"\0"
    return message(REGION, struct.pack("<IIIIII", number, parent, line, len(name), len(source), 0),
                   name + source)


def thread(number=0, tid=None, begin_ns=None):
    return message(THREAD, struct.pack("<IIQ", number, tid or threading.get_native_id(),
                                       now_ns() if begin_ns is None else begin_ns))


def deltas(counts, thread_=0, number=0, region_=0, from_ns=None, until_ns=None):
    """counts: {counter: how much more}."""
    until_ns = now_ns() if until_ns is None else until_ns
    rest = b"".join(struct.pack("<IIQ", counter, 0, n % 2**64)
                    for counter, n in sorted(counts.items()))
    return message(DELTAS, struct.pack("<IIIIQQ", thread_, number, region_, len(counts),
                                       until_ns if from_ns is None else from_ns, until_ns), rest)


def spent(region_, time_ns, thread_=0, entries=1, counted=None, from_ns=0, until_ns=None,
          granted=(0, 0, 0, 0), granted_ns=0):
    counted = entries if counted is None else counted
    return message(SPENT, struct.pack("<IIQQQQQQQQQQQ", thread_, region_, from_ns,
                                      now_ns() if until_ns is None else until_ns, entries, counted,
                                      time_ns, time_ns * counted // entries, *granted, granted_ns))


def gone(kind, number):
    return message(GONE, struct.pack("<II", kind, number))


def round_(until_ns=None, last=0, threads_lost=0):
    return message(ROUND, struct.pack("<QII", now_ns() if until_ns is None else until_ns, last,
                                      threads_lost))


class Connection:
    """The program's end of the socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(path))

    def send(self, *messages):
        for m in messages:
            self.socket.send(m)
        return self

    def asked(self, timeout=10):
        """The next ASK as (period_ms, now)."""
        self.socket.settimeout(timeout)
        data = self.socket.recv(4096)
        kind, _, n = struct.unpack("<HHI", data[:8])
        assert kind == ASK and n == len(data) == 16, data
        return struct.unpack("<II", data[8:])

    def is_hung_up_on(self, timeout=10):
        """Did the daemon hang up, whatever it sent before?"""
        self.socket.settimeout(timeout)
        try:
            while self.socket.recv(4096):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def triad(moved=0):
    """A kernel with known answers: a function, an outer loop of some passes and an inner one of a
    thousand elements of a[i] = b[i] + 3 * c[i] in double. Counters: 0 calls, 1 passes, 2 and 3 the
    words of the outermost loop's time. It stands `moved` lines further down. Returns the table and the
    object's counters."""
    t = Table()
    function = t.scope(FUNCTION, "triad", "kernels/triad.c", 10 + moved, 20 + moved)
    outer = t.scope(LOOP, "triad", "kernels/triad.c", 12 + moved, 16 + moved, 2, "1", parent=function)
    inner = t.scope(LOOP, "triad", "kernels/triad.c", 13 + moved, 15 + moved, 3, "1.1", parent=outer, flags=1)
    t.counter((function, "entries", 1), (function, "instructions", 5), (function, "updates", 1),
              (outer, "entries", 1))
    t.counter((outer, "iterations", 1), (outer, "instructions", 3), (outer, "updates", 1),
              (outer, "branches", 1), (inner, "entries", 1), (inner, "iterations", 1000),
              (inner, "bytes_loaded", 16000), (inner, "bytes_stored", 8000), (inner, "loads", 2000),
              (inner, "stores", 1000), (inner, "fp64_ops", 2000), (inner, "int_ops", 1000),
              (inner, "instructions", 6000), (inner, "lanes_issued", 2000),
              (inner, "lanes_active", 1500))
    t.counter((outer, "timed_entries", 1))
    t.counter((outer, "time_ns", 1))
    return t


def count_triad(c, calls, passes, time_ns, thread_=0, region_=0, from_ns=None):
    c.send(deltas({0: calls, 1: passes, 2: calls, 3: time_ns}, thread_, region_=region_,
                  from_ns=from_ns))


def announce(c, table, **options):
    c.send(hello(**options), object_(n_counters=len(table.counters)), *tables(table), thread())


def main():
    """As a command: calls, passes and time of triad on the command line, the socket in MPERF_FEED."""
    calls, passes, time_ns = map(int, sys.argv[1:4])
    with Connection(os.environ["MPERF_FEED"]) as c:
        announce(c, triad())
        count_triad(c, calls, passes, time_ns)
        c.send(round_(last=1))
    print(json.dumps({"pid": os.getpid()}))


if __name__ == "__main__":
    main()
