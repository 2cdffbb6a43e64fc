#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what a program that was linked with stub_runtime.c counted: one line for each scope and
metric that is not 0, sorted, so that two files can be compared. Arguments: the file, and vscale.

    kind function source:line nest inlined-at flags metric value

What a callee moves is its caller's; a callee has its calls alone, and its nest is the caller.
"""
import re
import struct
import sys
import zlib
from pathlib import Path

ABI = Path(__file__).resolve().parents[2] / "runtime" / "abi.inc"
METRICS = {int(i): name for i, name in re.findall(r'^MPERF_METRIC\((\d+), \w+, "(\w+)"',
                                                  ABI.read_text(encoding="utf-8"), re.M)}
KINDS = {1: "loop", 2: "function", 4: "block", 5: "callee"}
# Differ from mode to mode and run to run: what counting itself does, and what clocks say.
OWN = {"updates", "timed_entries", "time_ns", "counted_entries"}


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, n):
        self.at += n
        assert self.at <= len(self.data), "the table ends early"
        return self.data[self.at - n:self.at]

    def number(self, signed=False):
        value = shift = 0
        while True:
            byte = self.bytes(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value


def read_table(data):
    """Scopes as tuples and counters as lists of (scope, metric key, factor). Of a callee only entries
    are its own."""
    n = Numbers(data)
    assert n.number() == 2, "another version of tables"
    uses = [use for _ in range(n.number())
            for use, times in [(n.number(), n.number())] for _ in range(times)]
    packing, n_body = n.number(), n.number()
    body = n.bytes(len(data) - n.at)
    n = Numbers(zlib.decompress(body) if packing == 1 else body)
    assert len(n.data) == n_body, "it was packed wrongly"
    strings = [n.bytes(n.number()).decode() for _ in range(n.number())]
    n.bytes(8 * n.number())
    scopes, callers = [], {}
    for _ in range(n.number()):
        kind, parent, function, source, line, last, column, nest, inlined, flags = (
            n.number() for _ in range(10))
        assert kind in KINDS and parent <= len(scopes)
        if KINDS[kind] == "callee":
            callers[len(scopes)] = parent - 1
            caller = scopes[parent - 1]
            scopes.append(("callee", strings[function], "", f"{caller[1]} {caller[3]}".strip(), caller[4], 0))
            continue
        scopes.append((KINDS[kind], strings[function], f"{strings[source]}:{line}", strings[nest],
                       strings[inlined], flags))
    counters = []
    for i in range(n.number()):
        terms = [(n.number(), n.number(), n.number(True)) for _ in range(n.number())]
        counters.append((uses[i], [(scope if METRICS.get(key >> 2) == "entries" else callers.get(scope, scope),
                                    key, factor) for scope, key, factor in terms]))
    assert n.at == len(n.data) and len(uses) == len(counters), "the table goes on"
    return scopes, counters


def read_totals(data, vscale=1):
    """Sums by (scope..., metric); modules and copies of one scope added up."""
    totals = {}
    at = 0
    while at < len(data):
        n_counters, table_bytes = struct.unpack_from("<QQ", data, at)
        values = struct.unpack_from(f"<{n_counters}Q", data, at + 16)
        at += 16 + 8 * n_counters
        scopes, counters = read_table(data[at:at + table_bytes])
        at += table_bytes
        assert len(counters) == n_counters
        for value, (_, terms) in zip(values, counters):
            for scope, key, factor in terms:
                add_term(totals, scopes[scope], key, factor * value, vscale)
    return signed(totals)


def add_term(totals, scope, key, value, vscale):
    name = METRICS[key >> 2] + (".modelled" if key & 2 else "")
    totals[scope + (name,)] = totals.get(scope + (name,), 0) + value * (vscale if key & 1 else 1)


def signed(totals):
    """Counters and factors go modulo 2^64."""
    return {k: (v + (1 << 63)) % (1 << 64) - (1 << 63) for k, v in totals.items()}


def main():
    totals = read_totals(Path(sys.argv[1]).read_bytes(), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for key, value in sorted(totals.items()):
        if value and key[-1] not in OWN:
            print(*(str(part) or "-" for part in key), value)


if __name__ == "__main__":
    main()
