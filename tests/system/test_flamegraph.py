# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flame graphs: well-formed pages that load nothing, and folded stacks that sum up."""
import os
import re
import xml.etree.ElementTree as xml

from machine import Folder, mperfctl
from rates import long_enough, rate_allowed
from recorded import answer, fails, known, recording

SVG = "{http://www.w3.org/2000/svg}"


# --- flamegraph ----------------------------------------------------------------------------------

def boxes(root):
    """(title lines, x, width, y) of every box of an SVG."""
    found = []
    for group in root.iter(SVG + "g"):
        title, rect = group.find(SVG + "title"), group.find(SVG + "rect")
        if title is not None and rect is not None:
            found.append((title.text.split("\n"), float(rect.get("x")), float(rect.get("width")),
                          float(rect.get("y"))))
    return found


def check_drawing(root):
    assert root.tag == SVG + "svg"
    found = boxes(root)
    width = float(root.get("viewBox").split()[2])
    assert len(found) > 5 and max(b[2] for b in found) == width, found[:3]
    assert any(b[0][0].startswith("spin") and b[2] > 0.5 * width for b in found), found[:8]
    for title, x, w, _ in found:
        assert -0.01 <= x and x + w <= width + 0.01, (title, x, w)
    # Boxes of one row never overlap.
    for y in {b[3] for b in found}:
        row = sorted((b[1], b[2]) for b in found if b[3] == y)
        assert all(a[0] + a[1] <= b[0] + 0.01 for a, b in zip(row, row[1:])), (y, row)


def test_flamegraph_is_a_well_formed_page_that_loads_nothing(build):
    with Folder() as folder:
        page = folder / "flame.html"
        mperfctl(build, "flamegraph", "-i", recording(build).path, cwd=folder)
        text = page.read_text(encoding="utf-8")
        assert os.listdir(folder) == ["flame.html"]
    drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", text, re.S)
    assert drawing, text[:500]
    check_drawing(xml.fromstring(drawing.group(0)))
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    for outside in re.findall(r"(?:src|href)\s*=\s*[\"']?([^\"'\s>]+)", text) + \
            re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import[^;]*", text):
        assert outside.startswith("#"), outside
    for word in "search", "Reset", "cpu-clock", "samples":
        assert word in text, word


def test_flamegraph_is_plain_svg_where_the_name_says_so(build):
    with Folder() as folder:
        mperfctl(build, "flamegraph", "-i", recording(build).path, "-o", folder / "x.svg")
        text = (folder / "x.svg").read_text(encoding="utf-8")
    check_drawing(xml.fromstring(text))
    assert "<script" not in text and "cpu-clock" in text


def test_a_flamegraph_beside_itself_has_no_colours(build):
    path = recording(build).path
    with Folder() as folder:
        mperfctl(build, "flamegraph", "-i", path, "--diff", path, "-o", folder / "diff.svg")
        root = xml.parse(folder / "diff.svg").getroot()
    check_drawing(root)
    classes = {g.get("class") for g in root.iter(SVG + "g")}
    assert classes == {"f r0", "f e0"}, classes
    fails(build, 2, ["-i"], "flamegraph", "--diff", path)
    fails(build, 2, ["--folded"], "flamegraph", "-i", path, "--diff", path, "--folded")
    fails(build, 1, ["no such file"], "flamegraph", "-i", path, "--diff", f"{path}.none")


def test_folded_stacks_sum_up_to_the_samples_weight(build):
    path = recording(build).path
    folded = mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
    weights = {}
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        assert stack and stack not in weights, line
        weights[stack] = int(weight)
    ns = sum(r["self_ns"] for r in answer(build)["rows"])
    assert sum(weights.values()) == ns, (sum(weights.values()), ns)
    assert any(";main;spin" in stack for stack in weights), folded[:1000]
    alone = mperfctl(build, "flamegraph", "-i", path, "--folded", "--comm", "other").stdout
    assert all(line.startswith("other;") for line in alone.splitlines()), alone[:500]
    faults = mperfctl(build, "flamegraph", "-i", path, "--folded", "--event", "page-faults").stdout
    def counted(name):
        return sum(int(line.rpartition(" ")[2]) for line in faults.splitlines() if name in line)
    assert 0.9 * 3000 < counted("touch_pages") < 1.1 * 3000, (counted("touch_pages"), faults[:1000])
    assert counted("other;") < 300, (counted("other;"), faults[:1000])  # it starts, no more


def test_flamegraph_of_a_command_and_to_stdout(build):
    with Folder() as folder:
        out = mperfctl(build, "flamegraph", "-F", rate_allowed(999), "-o", "-", "--", "sh", "-c",
                       f"{known(build)} spin {long_enough(300)} >/dev/null", cwd=folder,
                       env={"TMPDIR": str(folder)}).stdout
        assert os.listdir(folder) == [], os.listdir(folder)
    drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", out, re.S)
    check_drawing(xml.fromstring(drawing.group(0)))
    with Folder() as folder:
        fails(build, 1, ["absent/x.html", "-o"], "flamegraph", "-i", recording(build).path, "-o",
              folder / "absent" / "x.html")
