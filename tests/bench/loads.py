# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is profiled: programs of a fixed amount of work, one instance for each hart, pinned there."""
import os
import subprocess
import time
from pathlib import Path

from accounting import run_all, usage_of

HERE = Path(__file__).resolve().parent

SQL = """
CREATE TABLE t(a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
  INSERT INTO t SELECT (i * 7919) % 100003, printf('%08d', i) FROM n;
CREATE INDEX t_a ON t(a);
SELECT count(*), sum(length(b)) FROM t WHERE a BETWEEN 100 AND 90000;
SELECT b FROM t ORDER BY b DESC LIMIT 10;
SELECT x.a, count(*) FROM t x JOIN t y ON x.a = y.a GROUP BY x.a ORDER BY 2 DESC LIMIT 5;
"""

C_SOURCE = """
#include <stdio.h>
#include <string.h>
struct node { struct node *next; char name[32]; int value; };
static int walk(const struct node *n, int depth)
{
	int sum = 0;
	for (; n && depth; n = n->next, depth--)
		sum += n->value * (int)strlen(n->name);
	return sum;
}
int main(int argc, char **argv)
{
	struct node list[64];
	for (int i = 0; i < 64; i++) {
		snprintf(list[i].name, sizeof list[i].name, "%s-%d", argv[0], i + argc);
		list[i].value = i;
		list[i].next = i + 1 < 64 ? &list[i + 1] : 0;
	}
	return walk(list, argc) & 1;
}
"""

CXX_SOURCE = """
#include <map>
#include <string>
#include <vector>
int count(const std::vector<std::string> &words)
{
	std::map<std::string, int> seen;
	for (const auto &w : words)
		seen[w]++;
	return (int)seen.size();
}
"""


class Loads:
    """The workloads by name; command(name, work) is one instance."""

    NAMES = ("CPU loop", "SQL", "compiling", "forks")
    # two tasks that only switch; twenty that send to twenty
    SWITCHING = ("sched pipe", "sched messaging")

    def __init__(self, folder):
        self.folder = Path(folder)
        self.spin = self.folder / "spin"
        subprocess.run(["cc", "-O2", "-g", "-fno-omit-frame-pointer", "-o", self.spin,
                        HERE / "spin.c"], check=True)
        (self.folder / "one.c").write_text(C_SOURCE)
        (self.folder / "two.cc").write_text(CXX_SOURCE)
        self.work = {}

    def command(self, name, work, instance=0):
        work = max(1, int(work))
        if name == "CPU loop":
            return [self.spin, str(work)]
        if name == "SQL":
            return ["sqlite3", ":memory:", SQL.format(rows=work)]
        if name == "sched pipe":
            return ["perf", "bench", "sched", "pipe", "-l", str(work)]
        if name == "sched messaging":
            return ["perf", "bench", "sched", "messaging", "-g", "1", "-l", str(work)]
        if name == "compiling":
            script = ('i=0; while [ $i -lt "$1" ]; do gcc -O1 -c "$2/one.c" -o "$2/one$3.o"; '
                      'g++ -O1 -c "$2/two.cc" -o "$2/two$3.o"; i=$((i+1)); done')
        else:
            script = 'i=0; while [ $i -lt "$1" ]; do /bin/true; i=$((i+1)); done'
        return ["sh", "-c", script, "sh", str(work), str(self.folder), str(instance)]

    def calibrate(self, name, seconds):
        """Find the work that takes one instance so long, alone on its hart."""
        work = {"CPU loop": 20, "SQL": 20000, "compiling": 1, "forks": 100, "sched pipe": 10000,
                "sched messaging": 10}[name]
        while True:
            begin = time.monotonic()
            run_all(self.commands(name, work))
            took = time.monotonic() - begin
            if took > min(1, seconds / 3):  # long enough that starting it does not count
                break
            work *= 2
        self.work[name] = max(1, work * seconds / took)

    def commands(self, name, work):
        """One instance for each hart, with all that it starts pinned there: so what the kernel does
        at its switches happens in its time, and nobody else's."""
        harts = sorted(os.sched_getaffinity(0))
        return [["taskset", "--cpu-list", str(hart), *self.command(name, work, i)]
                for i, hart in enumerate(harts)]

    def run(self, name, share=1.0):
        """CPU seconds of all instances, each with so much of the calibrated work."""
        return self.usage(name, share).cpu_s

    def usage(self, name, share=1.0):
        """Usage of all instances."""
        return usage_of(self.commands(name, self.work[name] * share))

    def switching(self):
        """The loads that mostly switch, as far as this perf has them; and what is left out."""
        there, absent = [], []
        for name in self.SWITCHING:
            try:
                run_all([self.command(name, 1)])
                there.append(name)
            except (OSError, RuntimeError) as e:
                absent.append(f"{name}: {e}")
        return there, absent
