# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of programs, arguments and cgroups never reach a terminal or a page unescaped."""
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

from machine import Folder, Skip, compile_program, mperfctl, need_program, need_root
from rates import long_enough, rate_allowed
from recorded import known, samples
from running import by, share
from test_export import records
from wire import fields

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


# --- other tools' formats --------------------------------------------------------------------------

# What ends a field, a line, an element, a stack or a header for some reader; what a spreadsheet
# computes; what is no UTF-8, or not what it looks like.
FUNCTIONS = [
    b"=cmd|' /C calc'!A0", b"+1+1", b"-1", b"@SUM(1+1)", "\uff1d1+1".encode(), b" =1", b"\t=1",
    b"\x1b]0;owned\x07", b"\x9b31mred", "\x9b31mred".encode(), b"one\ntwo", b"one\r\ntwo", b"one\rtwo",
    b"\xff\xfe\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"cut\xe2\x80",
    "\u202egnp.exe".encode(), "\u2066x\u2069".encode(), "\ufeff=1".encode(), "\u2028line".encode(),
    b"</script><script>alert(1)</script>", b"<img src=x onerror=alert(1)>", b"]]>", b"--><b>", b"&lt;",
    b"`@acme/everyone`|x", b"a;b;c", b"a (b) (c.so)", b"x 1/1 [000] 1.000000: 1 cycles:", b"#comment",
    b"%s%n%d", b"back\\", b"\"", b"'", b"__proto__", b"constructor", b",,,", b" ", b"::error::x",
]
COMMS = [b"#x", b" lead", b"a b (c)", b"=1+1", b"\xff", b"\x1b[31mx", b"a\nb", b"", b"a 1/1 [0]", b"x:", b"-"]
PLACE = "hostile_%02d_" + "x" * 60
LONG = "long_" + "y" * 60000


def hostile_program(folder):
    """A program with a function of each of these names, in a process of each."""
    names = [PLACE % i for i in range(len(FUNCTIONS))] + [LONG]
    functions = "".join(f"""
__attribute__((noinline, noclone)) void {name}(void) {{
	clock_t until = clock() + CLOCKS_PER_SEC / 50;
	while (clock() < until)
		for (int i = 0; i < 20000; i++) sink += i;
}}
""" for name in names)
    comms = ", ".join('"' + "".join(f"\\{byte:03o}" for byte in name) + '"' for name in COMMS)
    calls = "\n".join(f"\tprctl(PR_SET_NAME, comm[{i % len(COMMS)}]); {name}();"
                      for i, name in enumerate(names))
    source, program = folder / "hostile.c", folder / "hostile"
    source.write_text("#include <sys/prctl.h>\n#include <time.h>\nstatic volatile unsigned sink;\n"
                      f"static const char *const comm[] = {{{comms}}};\n{functions}\n"
                      f"int main(void) {{\n{calls}\n\treturn 0;\n}}\n")
    subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", program, source], check=True)
    binary = program.read_bytes()
    for i, name in enumerate(FUNCTIONS):
        place = (PLACE % i).encode()
        binary = binary.replace(place, name.ljust(len(place), b"\0"))
    program.write_bytes(binary)
    return program


def pprof_strings(packed):
    return [text.decode() for number, text in fields(gzip.decompress(packed)) if number == 6]


def test_hostile_names_stay_names_in_the_formats_of_other_tools(build):
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder / "r", "--",
                 hostile_program(folder))
        packed = {}
        for form in ("csv", "perf-script", "folded", "speedscope", "firefox", "pprof"):
            mperfctl(build, "export", "--as", form, "-i", folder / "r", "-o", folder / form)
            packed[form] = (folder / form).read_bytes()
        answer = mperfctl(build, "hotspots", "-i", folder / "r", "--limit", "0", "--json").stdout
    n_samples = samples(json.loads(answer))
    pprof = pprof_strings(packed.pop("pprof"))
    written = {form: text.decode() for form, text in packed.items()}
    for form, text in written.items():
        check_text(form, text.replace("\r\n", "\n"))  # of csv
    for text in pprof:
        check_text("pprof", text)
    lines = list(csv.reader(io.StringIO(written["csv"], newline=""), strict=True))
    assert {len(line) for line in lines} == {len(lines[0])}
    cells = {cell for line in lines for cell in line if not re.fullmatch(r"-?[\d.e-]+", cell)}
    assert not [cell for cell in cells if cell[:1] in set("=+-@\uff1d")], cells
    assert {"'=cmd|' /C calc'!A0", "one\\x0atwo"} <= cells
    assert len(records(written["perf-script"])) == n_samples
    assert not re.search("^#", written["perf-script"], re.M)
    stacks = [line.rsplit(" ", 1) for line in written["folded"].splitlines()]
    assert all(n.isdigit() for _, n in stacks) and any("a:b:c" in stack for stack, _ in stacks)
    names = {frame["name"] for frame in json.loads(written["speedscope"])["shared"]["frames"]}
    assert names <= set(pprof) and set(json.loads(written["firefox"])["shared"]["stringArray"]) >= names
    assert {"__proto__", "\\xff\\xfe\\x80", "<img src=x onerror=alert(1)>"} <= names, names
