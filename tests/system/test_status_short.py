# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The five lines of `mperfctl status`: whether all is well, and if not, why."""
from fake_daemon import BYTES, COUNT, NONE, NS, SHARE, FakeDaemon, columns, done, rows
from machine import mperfctl

WELL = {
    "account": [{"period": "since start", "duration_ns": 10**12, "taken": 10**6, "lost": 900},
                {"period": "last minute", "duration_ns": 60 * 10**9, "taken": 11880, "lost": 0}],
    "rate": [{"hz": 99, "wanted_hz": 99, "trouble": None}],
    "process": [{"what": "daemon", "rss": 1 << 20}, {"what": "all", "rss": 25 << 20}],
    "budget": [{"budget": 0.01, "step": 0, "given_up": "nothing", "reason": None}],
    "overhead": [{"cause": "samples", "hart_share": 0.001}, {"cause": "all", "hart_share": 0.0042}],
    "naming": [{"state": "on", "named": 3545, "placed": 916, "waiting": 0}],
    "namer": [{"worker": "parser", "trouble": None}],
    "feed": [{"programs": 2, "trouble": None}],
    "store": [{"bytes": 3 << 20, "budget": 1 << 30, "minute_bytes": 1 << 20, "corrupt": 0, "trouble": None}],
}
UNITS = {"duration_ns": NS, "rss": BYTES, "bytes": BYTES, "budget": BYTES, "minute_bytes": BYTES, "hart_share": SHARE,
         "taken": COUNT}


def short(build, tables, *arguments):
    sent = []
    for table, found in tables.items():
        names = list(found[0]) if found else ["nothing"]
        sent.append(columns(table, *((n, n, UNITS.get(n, NONE)) for n in names)))
        sent.append(rows(*(tuple(row[n] for n in names) for row in found)))

    def answer(daemon, connection, request):
        daemon.send(connection, request.number, *sent, done())
    with FakeDaemon(answer) as daemon:
        return mperfctl(build, "status", *arguments, env={"MPERF_SOCKET": str(daemon.path)}).stdout


def changed(table, row, **values):
    tables = {name: [dict(r) for r in found] for name, found in WELL.items()}
    tables[table][row].update(values)
    return tables


def test_all_is_well(build):
    assert short(build, WELL).splitlines() == [
        "good: nothing is given up or in trouble, and next to nothing is lost",
        "Samples  99 Hz a hart; 11,880 in the last 60.0 s, none lost",
        "Cost     0.42 % of the busiest hart (budget 1.00 %); 25.0 MiB of memory",
        "Names    3,545 named, 916 by place, 0 waiting; 2 instrumented programs",
        "Store    3.00 MiB of 1.00 GiB; 1.00 MiB a minute",
        "",
        "mperfctl status --all shows all figures."]


def test_what_is_not_well_comes_first(build):
    for table, row, values, state, why in (
            ("account", 1, {"lost": 100}, "look:", "samples: 0.83 % were lost lately"),
            ("rate", 0, {"trouble": "the harts are gone"}, "trouble:", "rate: the harts are gone"),
            ("store", 0, {"trouble": "the disc is full\x1b[31m"}, "trouble:", "store: the disc is full\\x1b[31m"),
            ("namer", 0, {"trouble": "died"}, "trouble:", "namer: died"),
            ("naming", 0, {"state": "off"}, "look:", "names: off"),
            ("store", 0, {"corrupt": 2}, "look:", "store: files are damaged"),
            ("budget", 0, {"step": 2, "given_up": "one sample in 4", "reason": "samples cost 2 %"}, "look:",
             "given up for the budget: one sample in 4")):
        lines = short(build, changed(table, row, **values)).splitlines()
        assert lines[0] == state and lines[1].strip().startswith(why), (values, lines)
    lines = short(build, changed("rate", 0, hz=49)).splitlines()
    assert lines[:2] == ["look:", "  samples: the rate is lower than the one wanted"], lines
    assert lines[2].startswith("Samples  49 Hz a hart of 99 wanted"), lines
    first = dict(WELL, account=[{"period": "since start", "duration_ns": 5 * 10**9, "taken": 1000, "lost": 900}], overhead=[])
    lines = short(build, first).splitlines()
    assert lines[0] == "look:" and "47.37 % were lost lately" in lines[1] and "not known yet" in lines[3], lines
    assert short(build, changed("account", 1, lost=5)).startswith("good")  # one in two thousand


def test_missing_tables_and_figures_are_survived(build):
    assert short(build, {}).startswith("good")
    assert short(build, {name: [] for name in WELL}).startswith("good")


def test_all_figures_are_there_if_asked_for(build):
    text = short(build, WELL, "--all")
    assert "Overhead by cause" in text and "good:" not in text
    assert "# account" in short(build, WELL, "--raw") and '"account"' in short(build, WELL, "--json")
