# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of programs, arguments and cgroups never reach a terminal or a page unescaped."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

from machine import Folder, Skip, compile_program, mperfctl, need_program, need_root
from rates import long_enough, rate_allowed
from recorded import known
from running import by, share

NAME = "\x1b[31mred<b>&\""  # of hostile.c
SYMBOL = "<script>alert(1)</script>"
HOSTILE = "\x1b]0;owned\x07<b>\u202eexe.txt\u2066\u2028\u200b"  # an argument


# --- hostile names -------------------------------------------------------------------------------

def shown(build, path, folder):
    """Everything that is ever shown of a recording: name of the form, text."""
    for grouping in "function", "module", "process", "thread", "line", "cgroup", "hart", "address":
        for form in [], ["--raw"], ["--json"]:
            yield (f"{grouping} {form}",
                   mperfctl(build, "hotspots", "-i", path, "--by", grouping, *form).stdout)
    for name in "x.html", "x.svg":
        done = mperfctl(build, "flamegraph", "-i", path, "-o", folder / name)
        yield name + " stderr", done.stderr
        yield name, (folder / name).read_text(encoding="utf-8")
    yield "folded", mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
    yield "doctor", mperfctl(build, "doctor", "-i", path).stdout


def check_text(form, text):
    controls = set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]",
                              text))
    assert not controls, (form, controls)
    if form in ("x.html", "x.svg"):
        assert SYMBOL not in text and "<b>&" not in text and "<i>" not in text, form
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text, form


def test_names_of_programs_never_reach_a_terminal_or_a_page_unescaped(build):
    with Folder() as folder:
        inner = folder / "a\nb<i>"
        inner.mkdir()
        program = inner / "c\x1b[32m"
        shutil.copy(compile_program(build, "hostile.c"), program)
        stripped = inner / "stripped\x1b[33m"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        path = folder / "r\x1b[34m"
        done = mperfctl(build, "record", "-F", rate_allowed(999), "-o", path, "--", "sh", "-c",
                        '"$0" "$3" "$2"; exec "$1" "$3" "$2"', program, stripped, HOSTILE,
                        long_enough(300))
        check_text("record's stderr", done.stderr)
        by_name = dict(shown(build, path, folder))
        for form, text in by_name.items():
            check_text(form, text)
        xml.fromstring(by_name["x.svg"])
        drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", by_name["x.html"], re.S)
        xml.fromstring(drawing.group(0))
        # A line of a table is a line of an answer: the newline in the path made none.
        n_rows = len(json.loads(by_name["module ['--json']"])["rows"])
        assert len(by_name["module ['--raw']"].splitlines()) == n_rows + 1, by_name["module ['--raw']"]
        assert "\\x1b[31mred" in by_name["process []"], by_name["process []"]
        assert "\\x1b]0;owned\\x07" in by_name["process []"], by_name["process []"]
        assert "a\\x0ab<i>/stripped\\x1b[33m" in by_name["module []"], by_name["module []"]
        # JSON escapes, and gives back what was there.
        functions = json.loads(by_name["function ['--json']"])["rows"]
        assert share(functions, function=SYMBOL, module=str(program)) > 0.2, functions[:3]
        processes = json.loads(by_name["process ['--json']"])["rows"]
        assert share(processes, comm=NAME) > 0.8, processes
        assert any(HOSTILE in (r["argv"] or "") for r in processes), processes
        found = by(build, path, "process", "--comm", NAME)
        assert found and {r["comm"] for r in found} == {NAME}, found


def test_arguments_never_reach_a_terminal_or_a_page_unescaped(build):
    evil = "\x1b[31m</title><script>alert(2)</script>\n"
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", "true")
        for name in "x.html", "x.svg":
            mperfctl(build, "flamegraph", "-i", folder / "r", "--title", evil, "-o", folder / name)
            text = (folder / name).read_text()
            assert "<script>alert" not in text and "\x1b" not in text, name
            assert "&lt;script&gt;alert(2)" in text, name
        for arguments in ([evil], ["hotspots", "-i", evil], ["record", "--" + evil],
                          ["hotspots", "--by", evil], ["record", "-e", evil, "--", "true"],
                          ["stat", "--", evil], ["record", "-o", folder / "r2", "--", evil],
                          ["hotspots", "-i", folder / "r", "--event", evil],
                          ["record", "-o", f"/absent/{evil}", "--", "true"]):
            done = mperfctl(build, *arguments, check=False)
            assert done.returncode in (1, 2, 127), (arguments, done)
            check_text(arguments, done.stderr + done.stdout)
        done = mperfctl(build, "stat", "--", "sh", "-c", "exit 0", evil)
        check_text("stat", done.stderr)


CGROUP_SCRIPT = """
mount -t cgroup2 none /sys/fs/cgroup || exit 77
mkdir "/sys/fs/cgroup/$1" || exit 77
"$2" record -F 99 -o r -- sh -c 'echo $$ > "/sys/fs/cgroup/$0/cgroup.procs" && exec "$1" spin 300' \
	"$1" "$3"
status=$?
rmdir "/sys/fs/cgroup/$1"
exit $status
"""


def test_names_of_cgroups_never_reach_a_terminal_unescaped(build):
    need_root()
    need_program("unshare")
    name = f"mperf-test-{os.getpid()}-\x1b[31m<b>"
    with Folder() as folder:
        # Mounted where it belongs, but for us alone: the machine may use the older kind.
        done = subprocess.run(["unshare", "--mount", "sh", "-c", CGROUP_SCRIPT, "sh", name,
                               build / "mperfctl", known(build)], cwd=folder, text=True,
                              capture_output=True, timeout=60)
        if done.returncode == 77:
            raise Skip("no cgroup can be made here")
        assert done.returncode == 0, done
        text = mperfctl(build, "hotspots", "-i", folder / "r", "--by", "cgroup").stdout
        check_text("cgroup", text)
        found = by(build, folder / "r", "cgroup")
    assert share(found, cgroup="/" + name) > 0.8, found
    assert "-\\x1b[31m<b>" in text, text
