# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many instructions a kernel takes: all of the process, by cachegrind here and by a plugin of qemu
elsewhere, as the difference of two repeat counts, so that start and end are out of it."""
import re
import statistics
import sys

from subjects import kernels, run

INSTRUCTIONS_WANTED = 4_000_000  # between both repeat counts: well above what one entry differs by
ROUNDS_MAX = 4000
ROUNDS_FIRST = 3                 # what happens once per thread or region is over by then


def by_cachegrind(program, arguments, environment):
    """Instructions of user code; system calls are not among them."""
    said = run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
                program, *arguments], env=environment).stderr
    return int(re.search(r"I +refs: +([\d,]+)", said)[1].replace(",", ""))


class ByQemu:
    def __init__(self, target, plugin):
        self.target, self.plugin = target, plugin

    def __call__(self, program, arguments, environment):
        said = run([*self.target.runner, "-plugin", self.plugin, program, *arguments],
                   env=environment).stderr
        return int(re.search(r"^instructions (\d+)$", said, re.M)[1])


def per_round(count, program, name, environment, rounds):
    """Instructions of one round, when those at the beginning are over."""
    few = count(program, [name, ROUNDS_FIRST], environment)
    many = count(program, [name, ROUNDS_FIRST + rounds], environment)
    return (many - few) / rounds


def ratio(count, plain, counted, name, environment):
    base = per_round(count, plain, name, environment, 4)
    rounds = max(4, min(ROUNDS_MAX, int(INSTRUCTIONS_WANTED / max(base, 1))))
    return {"kernel": name, "rounds": rounds, "plain": base,
            "counted": per_round(count, counted, name, environment, rounds)}


def measure(shop, target, count, environment, wanted=None):
    """A row for each kernel of that target."""
    rows, programs = [], {}
    for kind, source, name in kernels():
        if wanted and not any(w in name for w in wanted):
            continue
        if source not in programs:
            programs[source] = [shop.program(target, [source], counted) for counted in (False, True)]
        row = {"target": target.name, "class": kind, **ratio(count, *programs[source], name, environment)}
        row["ratio"] = row["counted"] / row["plain"]
        rows.append(row)
        print(f"{target.name}: {name} {row['ratio']:.4f}", file=sys.stderr, flush=True)
    return rows


def geomean(values):
    return statistics.geometric_mean(values) if values else None


def sums(rows):
    """{class: (geometric mean, worst ratio, its kernel)}; "all" is all of them."""
    found = {}
    for kind in (*dict.fromkeys(r["class"] for r in rows), "all"):
        chosen = [r for r in rows if kind in (r["class"], "all")]
        worst = max(chosen, key=lambda r: r["ratio"])
        found[kind] = geomean([r["ratio"] for r in chosen]), worst["ratio"], worst["kernel"]
    return found
