# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads what instrumented programs send: messages, tables, sums. The structs are those of
runtime/abi.inc, so that this reader knows nothing that the daemon does not."""
import collections
import os
import re
import select
import socket
import struct
import zlib

from machine import ROOT

ABI = (ROOT / "runtime" / "abi.inc").read_text()
ABI_H = (ROOT / "runtime" / "abi.h").read_text()
TYPES = {"uint16_t": "H", "uint32_t": "I", "uint64_t": "Q"}
METRICS = {int(i): (name, unit) for i, name, unit in
           re.findall(r'MPERF_METRIC\((\d+), \w+, "(\w+)", "(\w+)"', ABI)}
MODELLED, SCALABLE, VARIANT_BITS = 2, 1, 2
SPENT_SHORT = int(re.search(r"MPERF_SPENT_SHORT_BYTES (\d+)u", ABI_H)[1])


def _fields(kind):
    rows = re.findall(rf"^MPERF_{kind}_FIELD\((\w+), (\w+)\)", ABI, re.M)
    assert rows, kind
    return "<" + "".join(TYPES[t] for t, _ in rows), [name for _, name in rows]


HEAD = _fields("HEAD")[0]


def _types():
    """Numbers of the messages, as abi.h lists them."""
    body = re.search(r"enum mperf_message \{(.*?)\};", ABI_H, re.S).group(1)
    number, found = 0, {}
    for name, value in re.findall(r"MPERF_(\w+)(?: = (\d+))?,", body):
        number = int(value) if value else number + 1
        found[number] = name
    return found


TYPE = _types()
NUMBER = {name: number for number, name in TYPE.items()}


class Message:
    """One message: its fields as attributes, `type` its name, `rest` the bytes behind its struct."""

    def __init__(self, data):
        number, reserved, size = struct.unpack_from(HEAD, data)
        assert size == len(data) and reserved == 0, (number, reserved, size, len(data))
        self.type = TYPE[number]
        layout, names = _fields(self.type)
        at = struct.calcsize(HEAD)
        self.short = self.type == "SPENT" and len(data) == SPENT_SHORT
        if self.short:
            data += bytes(at + struct.calcsize(layout) - len(data))
        for name, value in zip(names, struct.unpack_from(layout, data, at)):
            setattr(self, name, value)
        self.rest = data[at + struct.calcsize(layout):]

    def deltas(self):
        assert len(self.rest) == 16 * self.n, (len(self.rest), self.n)
        return [(c, d) for c, _, d in struct.iter_unpack("<IIQ", self.rest)]

    def __repr__(self):
        return f"{self.type}({ {k: v for k, v in vars(self).items() if k not in ('rest', 'short', 'type')} })"


def make(kind, rest=b"", **fields):
    """A message as bytes."""
    layout, names = _fields(kind)
    body = struct.pack(layout, *(fields.pop(name, 0) for name in names)) + rest
    assert not fields, fields
    return struct.pack(HEAD, NUMBER[kind], 0, struct.calcsize(HEAD) + len(body)) + body


def split(data):
    """Messages one after the other, as in a file of MPERF_OUTPUT."""
    found, at = [], 0
    while at < len(data):
        size = struct.unpack_from(HEAD, data, at)[2]
        assert size >= struct.calcsize(HEAD), (at, size)
        found.append(Message(data[at:at + size]))
        at += size
    return found


def read_file(path):
    return split(path.read_bytes())


class Table:
    """A module's table: strings, scopes as dictionaries, counters as (kind, terms)."""
    SCOPE = ("kind parent function source line line_last column nest inlined_at flags").split()

    def __init__(self, data):
        self.data, self.at = data, 0
        version, uses = self.number(), []
        assert version in (1, 2), version
        if version == 2:
            uses = self.unpack()
        self.strings = [self.bytes() for _ in range(self.number())]
        if version == 2:
            n = self.number()
            self.defined = struct.unpack_from(f"<{n}Q", self.data, self.at)
            self.at += 8 * n
        self.scopes = [{name: self.number() for name in self.SCOPE} for _ in range(self.number())]
        self.counters = [(self.number() if version == 1 else int(uses[i] == 0),
                          [(self.number(), self.number(), self.signed())
                           for _ in range(self.number())])
                         for i in range(self.number())]
        assert self.at == len(self.data), (self.at, len(self.data))
        assert version == 1 or len(uses) == len(self.counters), len(uses)
        assert self.strings[0] == b""

    def unpack(self):
        """The uses of counters; goes on to read the body."""
        uses = [use for _ in range(self.number())
                for use, n in [(self.number(), self.number())] for _ in range(n)]
        packing, n = self.number(), self.number()
        body = self.data[self.at:]
        self.data, self.at = zlib.decompress(body) if packing == 1 else body, 0
        assert packing in (0, 1) and len(self.data) == n, (packing, n)
        return uses

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                self.last = byte, shift
                return value

    def signed(self):
        value = self.number()
        byte, shift = self.last
        return value - (1 << shift) if byte & 64 else value

    def bytes(self):
        n = self.number()
        self.at += n
        return self.data[self.at - n:self.at]


class Program:
    """What the messages of one connection say, with the checks that a daemon makes: nothing is
    referred to before it is announced, or after it is gone."""

    def __init__(self, messages=()):
        self.hello = None
        self.objects, self.threads, self.regions = {}, {}, {}
        self.pieces = collections.defaultdict(bytes)  # tables, by (object, module)
        self.firsts = {}                              # their counters' places in the object
        self.counts = collections.Counter()  # by (thread, object, region, counter)
        self.spent = {}                      # by (thread, region): entries, time_ns, granted…
        self.until = {}
        self.gone, self.rounds, self.last = set(), 0, False
        self.threads_lost = 0
        for message in messages:
            self.take(message)

    def take(self, m):
        assert (m.type == "HELLO") == (self.hello is None), m
        getattr(self, "take_" + m.type.lower())(m)

    def take_hello(self, m):
        assert m.magic == 0x4652504D and m.version in (1, 2), m
        self.hello = m

    def take_object(self, m):
        assert m.object not in self.objects and len(m.rest) == m.build_id_bytes, m
        m.build_id = m.rest.hex()
        self.objects[m.object] = m

    def take_table(self, m):
        piece = self.pieces[m.object, m.module]
        assert m.module < self.objects[m.object].n_modules and m.offset == len(piece), m
        assert m.counter_first + m.n_counters <= self.objects[m.object].n_counters, m
        self.pieces[m.object, m.module] = piece + m.rest
        self.firsts[m.object, m.module] = m.counter_first
        assert len(piece + m.rest) <= m.table_bytes, m

    def take_region(self, m):
        assert m.region not in self.regions and (not m.parent or m.parent in self.regions), m
        name, source = m.rest[:m.name_bytes], m.rest[m.name_bytes:]
        assert name[-1:] == b"\0" == source[-1:] and len(source) == m.source_bytes, m
        around = self.regions[m.parent] + "/" if m.parent else ""
        self.regions[m.region] = around + name[:-1].decode()

    def take_thread(self, m):
        assert m.thread not in self.threads, m
        self.threads[m.thread] = m

    def known(self, m):
        assert m.thread in self.threads and ("thread", m.thread) not in self.gone, m
        assert m.region == 0 or m.region in self.regions, m
        assert m.from_ns <= m.until_ns, m

    def take_deltas(self, m):
        self.known(m)
        assert ("object", m.object) not in self.gone, m
        counters = [c for c, _ in m.deltas()]
        assert counters == sorted(set(counters)) and len(m.deltas()) > 0, m
        assert counters[-1] < self.objects[m.object].n_counters, m
        for counter, delta in m.deltas():
            key = m.thread, m.object, m.region, counter
            self.counts[key] = (self.counts[key] + delta) % 2**64

    def take_spent(self, m):
        self.known(m)
        assert self.until.get((m.thread, m.region), 0) <= m.from_ns, m
        self.until[m.thread, m.region] = m.until_ns
        key = m.thread, m.region
        sums = self.spent.setdefault(key, collections.Counter())
        for name in ("entries counted_entries time_ns counted_ns granted granted_1 granted_2 "
                     "granted_3 granted_ns measured_entries represented inner_entries "
                     "time_variance granted_variance").split():
            sums[name] += getattr(m, name)

    def take_gone(self, m):
        gone = {1: "thread", 2: "object"}[m.kind], m.id
        assert gone not in self.gone, m
        self.gone.add(gone)

    def take_round(self, m):
        self.rounds += 1
        self.last = self.last or bool(m.last)
        self.threads_lost = m.threads_lost

    def table(self, key):
        return Table(self.pieces[key])

    def sum(self, counter, thread=None, object=None, region=None):
        """A counter's sum over threads and regions; region by its path, "" for none."""
        return sum(value for (t, o, r, c), value in self.counts.items()
                   if c == counter and thread in (None, t) and object in (None, o)
                   and region in (None, self.regions.get(r, ""))) % 2**64

    def in_region(self, path):
        """What was spent there, over threads."""
        total = collections.Counter()
        for (_, region), sums in self.spent.items():
            if self.regions[region] == path:
                total.update(sums)
        return total


class Daemon:
    """A daemon's end of the feed: listens at `path`, and takes programs in when told to."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(64)
        os.chmod(path, 0o666)

    def accept(self, seconds=30):
        self.listener.settimeout(seconds)
        return Connection(self.listener.accept()[0])

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Connection:
    def __init__(self, connected):
        self.socket = connected
        self.program = Program()
        self.messages = []

    def read(self, seconds=30):
        """Take one message; False at the end of the connection."""
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1 << 17)
        except ConnectionResetError:
            data = b""
        if not data:
            return False
        self.messages.append(Message(data))
        self.program.take(self.messages[-1])
        return True

    def read_until(self, ready):
        """Take messages until ready(program)."""
        while not ready(self.program):
            assert self.read(), f"it ended early: {self.messages[-3:]}"

    def read_newer_rounds(self):
        """Take all that waits, then two rounds: the second began after what was sent last was taken."""
        while select.select([self.socket], [], [], 0)[0]:
            assert self.read(), f"it ended early: {self.messages[-3:]}"
        rounds = self.program.rounds
        self.read_until(lambda p: p.rounds >= rounds + 2)

    def read_all(self):
        while self.read():
            pass
        return self.program

    def ask(self, **fields):
        self.socket.send(make("ASK", **fields))

    def want(self, object, wanted):
        self.socket.send(make("WANT", object=object, wanted=wanted))

    def grant(self, thread, fds):
        message = make("GRANT", thread=thread, n=len(fds))
        if fds:
            socket.send_fds(self.socket, [message], fds)
        else:
            self.socket.send(message)

    def close(self):
        self.socket.close()
