# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several recordings, or a folder of them, as one."""
import collections
import gzip
import json

from machine import Folder, mperfctl, refused, rows
from recorded import known


def recorded(build, folder, *names):
    for name in names:
        mperfctl(build, "record", "-o", folder / name, "--", known(build), "spin", "150")


def functions(found):
    return {(r["function"], r["module"]): (r["samples"], r["self_ns"]) for r in found["rows"]}


def folded(build, *arguments):
    sums = collections.Counter()
    for line in mperfctl(build, *arguments).stdout.splitlines():
        stack, _, n = line.rpartition(" ")
        sums[stack] += int(n)
    return sums


def test_the_sum_has_what_each_has(build):
    with Folder() as folder:
        recorded(build, folder, "a.mprf", "b.mprf")
        a, b, both, all_in_it = (rows(build, "hotspots", *options, "--limit", "0") for options in (
            ("-i", folder / "a.mprf"), ("-i", folder / "b.mprf"),
            ("-i", folder / "a.mprf", "-i", folder / "b.mprf"), ("-i", folder)))
        assert functions(both) == functions(all_in_it)
        expected = {key: tuple(x + y for x, y in zip(functions(a).get(key, (0, 0)), functions(b).get(key, (0, 0))))
                    for key in functions(a) | functions(b)}
        assert functions(both) == expected, (functions(both), expected)
        for member in "samples", "seconds":
            assert abs(both["provenance"][member] - a["provenance"][member] - b["provenance"][member]) < 1e-6, both
        lived = [x["provenance"]["threads"]["lived_s"] for x in (a, b, both)]
        assert abs(lived[0] + lived[1] - lived[2]) < 1e-6 and lived[0] > 0.1, lived

        one = [folded(build, "flamegraph", "--folded", "-i", folder / name) for name in ("a.mprf", "b.mprf")]
        summed = folded(build, "flamegraph", "--folded", "-i", folder / "a.mprf", "-i", folder / "b.mprf")
        assert summed == one[0] + one[1]
        assert summed == folded(build, "flamegraph", "--folded", "-i", str(folder / "?.mprf"))

        mperfctl(build, "export", "--as", "pprof", "-i", folder, "-o", folder / "p")
        assert gzip.decompress((folder / "p").read_bytes())
        speedscope = json.loads(mperfctl(build, "export", "--as", "speedscope", "-i", folder / "a.mprf", "-i",
                                         folder / "b.mprf").stdout)
        weights = 1e9 * sum(sum(p["weights"]) for p in speedscope["profiles"])
        assert abs(weights - sum(summed.values())) < 1e-3 * weights, (weights, sum(summed.values()))
        mperfctl(build, "flamegraph", "-i", folder / "a.mprf", "-i", folder / "b.mprf", "-o", folder / "f.html")
        assert "a.mprf and 1 more" in (folder / "f.html").read_text()


def test_a_recording_counts_once(build):
    with Folder() as folder:
        recorded(build, folder, "a.mprf")
        (folder / "link").symlink_to(folder / "a.mprf")
        done = mperfctl(build, "hotspots", "-i", folder / "a.mprf", "-i", folder / "link", "--json")
        assert "was given twice: it counts once" in done.stderr, done.stderr
        once = rows(build, "hotspots", "-i", folder / "a.mprf")
        assert json.loads(done.stdout)["provenance"]["samples"] == once["provenance"]["samples"]


def test_what_cannot_be_added_is_named(build):
    with Folder() as folder:
        recorded(build, folder, "a.mprf")
        (folder / "broken.mprf").write_text("no recording")
        (folder / "empty").mkdir()

        def fails(status, words, *arguments):
            refused(mperfctl(build, *arguments, check=False), status, words)
        fails(1, "there is no recording", "hotspots", "-i", folder / "a.mprf", "-i", folder / "none")
        fails(1, r"has no recording \(\*\.mprf\)", "hotspots", "-i", folder / "empty")
        fails(1, "broken.mprf", "hotspots", "-i", folder / "a.mprf", "-i", folder / "broken.mprf")
        fails(1, "broken.mprf", "flamegraph", "-i", folder, "-o", folder / "f.html")
        assert not (folder / "f.html").exists()
        for command in "topdown", "blocks":
            fails(2, "takes one file here", command, "-i", folder / "a.mprf", "-i", folder / "a.mprf")
