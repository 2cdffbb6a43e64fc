# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots of mperfctl roofline: pages, SVG and text, of files whose answers are known."""
import json
import re
import time
import xml.etree.ElementTree as xml

import feed_program as feed
from machine import Folder, mperfctl, refused
from running import on_a_terminal

SVG = "{http://www.w3.org/2000/svg}"
MEASURE = "mperfctl roofs measure"


def write_output(path, triad_ms, moved=0):
    """triad() of feed_program: 1/12 FLOP per byte."""
    table = feed.triad(moved)
    path.write_bytes(b"".join([feed.hello(), feed.object_(n_counters=len(table.counters)), *feed.tables(table),
                               feed.thread(), feed.deltas({0: 3, 1: 300, 2: 3, 3: triad_ms * 1_000_000}),
                               feed.round_(last=1)]))


def alone(folder):
    """No service, and no measured roofs."""
    return {"MPERF_SOCKET": "", "XDG_STATE_HOME": str(folder / "state")}


def write_many(path, n):
    """n loops of one function, each with its own intensity, time and line."""
    table = feed.Table()
    function = table.scope(feed.FUNCTION, "many", "many.c", 1, 3 * n)
    counts = {}
    for i in range(n):
        loop = table.scope(feed.LOOP, "many", "many.c", 3 * i + 1, 3 * i + 2, 1, str(i + 1), parent=function)
        table.counter((loop, "entries", 1), (loop, "iterations", 100), (loop, "bytes_loaded", 800 + i),
                      (loop, "fp64_ops", 100 + i % 97), (loop, "instructions", 500), (loop, "timed_entries", 1))
        table.counter((loop, "time_ns", 1))
        counts |= {2 * i: 1000, 2 * i + 1: 10_000 + 37 * (i * i % 9973)}
    some = [dict(list(counts.items())[at:at + 1000]) for at in range(0, len(counts), 1000)]
    path.write_bytes(b"".join([feed.hello(), feed.object_(n_counters=2 * n), *feed.tables(table), feed.thread(),
                               *map(feed.deltas, some), feed.round_(last=1)]))


def drawing_of(text):
    drawing = re.search(r"<svg[^>]*id=\"plot\".*?</svg>", text, re.S)
    assert drawing, text[:500]
    return xml.fromstring(drawing.group(0))


def dots_of(root):
    return {group.find(SVG + "title").text: group.find(SVG + "circle") for group in root.iter(SVG + "g")
            if group.find(SVG + "circle") is not None}


def test_a_page_is_well_formed_and_loads_nothing(build):
    with Folder() as folder:
        write_output(folder / "run.out", 10)
        done = mperfctl(build, "roofline", "-i", folder / "run.out", "-o", folder / "plot.html",
                        "--title", "a <b> title", env=alone(folder))
        text = (folder / "plot.html").read_text(encoding="utf-8")
        assert sorted(p.name for p in folder.iterdir()) == ["plot.html", "run.out"]
    assert not done.stdout and "wrote" in done.stderr and MEASURE in done.stderr, done
    dots = dots_of(drawing_of(text))
    (title,) = dots
    assert title.startswith("triad\nkernels/triad.c:") and "0.0833 FLOP/byte" in title, title
    assert "<h1>a &lt;b&gt; title</h1>" in text and MEASURE in text
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"\bsrc=|href=|@import|https?://(?!www.w3.org/2000/svg)", text)


def test_svg_stands_alone_and_can_go_to_stdout(build):
    with Folder() as folder:
        write_output(folder / "run.out", 10)
        mperfctl(build, "roofline", "-i", folder / "run.out", "-o", folder / "plot.svg", env=alone(folder))
        root = xml.fromstring((folder / "plot.svg").read_text(encoding="utf-8"))
        assert len(dots_of(root)) == 1 and not list(root.iter(SVG + "script"))
        said = mperfctl(build, "roofline", "-i", folder / "run.out", "-o", "-", env=alone(folder)).stdout
        assert len(dots_of(drawing_of(said))) == 1
        refused(mperfctl(build, "roofline", "-i", folder / "run.out", "-o", folder / "absent" / "x.svg",
                         check=False, env=alone(folder)), 1, "absent/x.svg", "-o")


def test_loops_of_two_runs_are_joined_though_their_lines_moved(build):
    with Folder() as folder:
        write_output(folder / "before.out", 100)
        write_output(folder / "after.out", 10, moved=8)
        files = "-i", folder / "before.out", "-i", folder / "after.out"
        text = mperfctl(build, "roofline", *files, "-o", "-", env=alone(folder)).stdout
        said = mperfctl(build, "roofline", *files, "--plot", env={**alone(folder), "LC_ALL": "C.UTF-8"}).stdout
    root = drawing_of(text)
    earlier = [g for g in root.iter(SVG + "g") if g.get("class", "").endswith(" before")]
    ways = [line for line in root.iter(SVG + "line") if line.get("class") == "way"]
    assert len(dots_of(root)) == 2 and len(earlier) == 1 and len(ways) == 1, text[-2000:]
    assert float(ways[0].get("y2")) < float(ways[0].get("y1")), "it got faster"
    assert "○" in said and re.search(r"triad +kernels/triad.c:2\d +1 ", said), said


def test_a_plot_fits_its_terminal_and_names_its_letters(build):
    with Folder() as folder:
        write_output(folder / "run.out", 10)
        for lines, columns in (24, 80), (50, 160):
            said = on_a_terminal(build, (lines, columns), "roofline", "--plot", "-i", folder / "run.out",
                                 env=alone(folder))
            plain = re.sub(r"\033\[[\d;]*m", "", said).split("\n")
            drawn = plain[:plain.index("")]
            assert len(drawn) == lines and all(len(line) <= columns for line in drawn), drawn
            assert drawn[0].strip() == "GFLOP/s" and "\033[" in said
            assert any(MEASURE in line for line in [" ".join(drawn[-3:])]), drawn
            assert re.search(r"^ *triad +\S+:\d+ +1 ", "\n".join(plain), re.M), plain


def test_ten_thousand_loops_are_drawn_in_seconds(build):
    """With sanitizers, which have nothing to say of time, a thousand."""
    n = 1_000 if build.name == "asan" else 10_000
    with Folder() as folder:
        write_many(folder / "run.out", n)
        begin = time.monotonic()
        mperfctl(build, "roofline", "-i", folder / "run.out", "-n", 0, "-o", folder / "plot.html", env=alone(folder))
        took = time.monotonic() - begin
        text = (folder / "plot.html").read_text(encoding="utf-8")
        said = mperfctl(build, "roofline", "-i", folder / "run.out", "-n", 0, "--plot",
                        env={**alone(folder), "LC_ALL": "C.UTF-8"}).stdout
    dots = dots_of(drawing_of(text))
    assert len(dots) == n and took < 60, (len(dots), took)
    assert len(text) < n * 1000, len(text)
    labels = [t for t in drawing_of(text).iter(SVG + "text") if "many" in "".join(t.itertext())]
    assert 1 <= len(labels) <= 200, len(labels)  # what fits, not one a dot
    assert len(re.findall(r"^many +many.c:", said, re.M)) == n and "GFLOP/s" in said


def keep_roofs(folder, machine):
    """As `mperfctl roofs measure` keeps them, on a machine of that id."""
    common = {"kind": "some", "scope": "hart", "harts": 1, "lmul": 0, "hz": 0, "repeats": 9, "note": ""}
    roofs = [{**common, "limit": "memory", "level": "L1", "pattern": "load", "bytes": 4096, "unit": "avx2",
              "value": 1e11, "low": 9e10, "high": 1.1e11},
             {**common, "limit": "compute", "precision": "f64", "operation": "fma", "unit": "avx2",
              "value": 5e10, "low": 4e10, "high": 6e10}]
    kept = folder / "state" / "mperf" / "roofs"
    kept.mkdir(parents=True)
    (kept / "some.json").write_text(json.dumps(
        {"format": "mperf-roofs", "version": 1, "measured": 1, "took": 1, "quick": False, "paused": False,
         "machine": {"id": machine, "kernel": "6.1", "architecture": "x86_64",
                     "kinds": [{"id": "some", "name": "Some", "harts": "0"}]}, "roofs": roofs, "notes": []}))


def test_roofs_of_another_machine_are_marked_and_compared_with_nothing(build):
    with Folder() as folder:
        write_output(folder / "run.out", 10)
        keep_roofs(folder, "another")
        drawn = mperfctl(build, "roofline", "-i", folder / "run.out", "-o", "-", env=alone(folder)).stdout
        rows = json.loads(mperfctl(build, "roofline", "-i", folder / "run.out", "--json",
                                   env=alone(folder)).stdout)["rows"]
    roofs = [g for g in drawing_of(drawn).iter(SVG + "g") if g.get("class", "").startswith("roofs")]
    assert [g.get("class") for g in roofs] == ["roofs stale"], roofs
    assert "These roofs are stale" in drawn and "another machine" in drawn and MEASURE in drawn
    assert "L1 100 GB/s" in drawn and "Of roof" not in drawn, drawn[-3000:]
    assert rows and all("of_roof" not in row for row in rows), rows


def test_plots_that_make_no_sense_are_refused(build):
    for arguments, word in ((["--plot", "--json"], "--json"), (["-o", "x.png"], "must end in"),
                            (["-i", "a", "-i", "b"], "--plot"), (["-i", "a", "-i", "b", "-i", "c"], "'c'"),
                            (["--live", "-o", "x.html"], "--live"), (["--title", "x"], "-o"),
                            (["--peaks"], "--plot")):
        refused(mperfctl(build, "roofline", *arguments, check=False), 2, word)
