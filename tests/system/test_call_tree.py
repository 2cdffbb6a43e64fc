# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Call trees in the terminal, beside the folded stacks of the same recording; and rows by another column."""
import collections

from machine import Folder, mperfctl, rows
from recorded import answer, fails, known, recording


def stacks(build, *arguments):
    """[(names from the outermost caller on, value)]"""
    folded = mperfctl(build, "flamegraph", "-i", recording(build).path, "--folded", *arguments).stdout
    parts = [line.rpartition(" ") for line in folded.splitlines()]
    return [(names.split(";"), int(value)) for names, _, value in parts]


def tree(build, *arguments):
    return answer_rows(rows(build, "hotspots", "-i", recording(build).path, "--min-share", "0.0001%", *arguments))


def answer_rows(found):
    """Rows with the names of those above them."""
    way = []
    for row in found["rows"]:
        del way[row["depth"]:]
        way.append(row["function"])
        yield tuple(way), row


def values(found):
    """By way; functions of one name in two files are one here."""
    sums = collections.Counter()
    for way, row in found:
        sums[way] += row["total_value"]
    return sums


def test_the_tree_is_that_of_the_stacks(build):
    wanted = collections.Counter()
    for names, value in stacks(build):
        for depth in range(len(names)):
            wanted[tuple(names[:depth + 1])] += value
    found = values(tree(build, "--tree"))
    assert found and set(found) <= set(wanted), set(found) - set(wanted)
    whole = sum(value for _, value in stacks(build))
    for way, value in found.items():
        assert abs(value - wanted[way]) <= 1e-6 * whole, (way, value, wanted[way])
    assert sum(v for w, v in wanted.items() if w not in found) < 0.01 * whole


def test_callers_and_callees_are_those_of_the_stacks(build):
    total = 0
    callers = collections.Counter()
    for names, value in stacks(build):
        if "spin" in names:
            at = names.index("spin")
            total += value
            callers[names[at - 1]] += value
    up = values(tree(build, "--callers", "spin"))
    assert total > 0 and abs(up[("spin",)] - total) <= 1e-6 * total, (up[("spin",)], total)
    for caller, value in callers.items():
        assert abs(up[("spin", caller)] - value) <= 1e-6 * total, (caller, value)
    down = values(tree(build, "--callees", "main"))
    assert down[("main",)] >= down[("main", "spin")] > 0.9 * total, list(down)[:4]


def test_what_is_small_is_left_out_and_said(build):
    path = recording(build).path
    done = mperfctl(build, "hotspots", "-i", path, "--tree", "--min-share", "20%")
    assert "left out" in done.stderr and "spin" in done.stdout, (done.stdout, done.stderr)
    few = done.stdout.count("\n")
    assert few < mperfctl(build, "hotspots", "-i", path, "--tree", "--min-share", "0.01%").stdout.count("\n")
    for line in done.stdout.splitlines()[1:]:
        assert not line.strip().endswith("known") or float(line.split()[0]) >= 20, line


def test_another_column_sorts(build):
    by_total = [row["total"] for row in answer(build, "--sort", "total")["rows"]]
    assert by_total == sorted(by_total, reverse=True) and len(by_total) > 3
    few = rows(build, "hotspots", "-i", recording(build).path, "--sort", "total", "-n", "2")["rows"]
    assert [row["total"] for row in few] == by_total[:2]


def test_processes_of_one_name_are_one(build):
    with Folder() as folder:
        program = known(build)
        mperfctl(build, "record", "-o", folder / "r", "--", "sh", "-c", f"{program} spin 200; {program} spin 200; {program} spin 200")
        by_process = [r for r in rows(build, "hotspots", "-i", folder / "r", "--by", "process")["rows"] if r["comm"] == "known"]
        by_comm = [r for r in rows(build, "hotspots", "-i", folder / "r", "--by", "comm")["rows"] if r["comm"] == "known"]
        assert len(by_process) == 3 and len(by_comm) == 1, (by_process, by_comm)
        assert by_comm[0]["samples"] == sum(r["samples"] for r in by_process)


def test_what_cannot_be_is_refused(build):
    path = recording(build).path
    fails(build, 1, ["no sample has a function 'spi'", "Did you mean", "spin"], "hotspots", "-i", path, "--callers", "spi")
    fails(build, 1, ["no sample has a function", "hotspots -n 0"], "hotspots", "-i", path, "--callees", "\x1b[31mx")
    fails(build, 2, ["a call tree has rows of its own"], "hotspots", "-i", path, "--tree", "--by", "line")
    fails(build, 2, ["give one of them"], "hotspots", "-i", path, "--callers", "a", "--callees", "b")
    fails(build, 2, ["give --tree"], "hotspots", "-i", path, "--min-share", "5%")
    fails(build, 2, ["--sort"], "hotspots", "-i", path, "--sort", "name")
