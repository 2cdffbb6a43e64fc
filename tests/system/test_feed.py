# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that count themselves, as the service takes them in: by a program that speaks the feed and
knows the answers, and by others that lie."""
import contextlib
import os
import sqlite3
import struct
import subprocess
import sys
import threading

import feed_program as feed
from machine import NOBODY, ROOT, Folder
from service import Service, wait_until


def stored(service):
    """What the store's sealed and unsealed windows hold of loops: {(function, nest, metric): sum}, by
    a reader of our own."""
    sums = {}
    for path in sorted((service.store / "window").glob("*.mprf")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            for *key, value in db.execute(
                    "SELECT t.pid, s.kind, s.subprogram, s.nest, m.name, sum(c.value) "
                    "FROM loop_count c JOIN loop_site s ON s.id = c.loop "
                    "JOIN loop_metric m ON m.id = c.metric LEFT JOIN task t ON t.id = c.task "
                    "GROUP BY 1, 2, 3, 4, 5"):
                sums[tuple(key)] = sums.get(tuple(key), 0) + value
    return sums


def faults(service):
    return {row["cause"]: row["count"] for row in service.ask("status")["feed_fault"]}


def rounds(service):
    return service.ask("status")["feed"][0]["rounds"]


def test_what_a_program_counts_is_stored(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            table = feed.triad()
            feed.announce(c, table)
            feed.count_triad(c, 2, 20, 5_000_000)
            c.send(feed.round_())
            feed.count_triad(c, 1, 10, 2_500_000)
            c.send(feed.round_())
            wait_until("two rounds came", lambda: rounds(service) == 2)
        me = os.getpid()
        wait_until("it is stored", lambda: stored(service).get((me, 2, "triad", "", "entries")) == 3)
        found = stored(service)
        assert found[me, 1, "triad", "1", "iterations"] == 30
        assert found[me, 1, "triad", "1", "time_ns"] == 7_500_000
        assert found[me, 1, "triad", "1.1", "fp64_ops"] == 30 * 2000
        assert found[me, 1, "triad", "1.1", "bytes_loaded"] == 30 * 16000
        assert (me, 3, "", "", "span_ns") in found
        assert not faults(service), faults(service)
