# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the user types: lists, doctor, colours, and every command with bad arguments."""
import json
import os
import re
import subprocess

from machine import Folder, as_nobody, everybodys, mperfctl, need_program, need_root, refused, rows
from recorded import fails, recording


# --- list and doctor -----------------------------------------------------------------------------

def test_list_shows_by_topic_what_counts_here(build):
    found = rows(build, "list")["rows"]
    clock = [r for r in found if r["event"] == "cpu-clock"]
    assert clock and clock[0]["counts"] == "yes", clock
    assert len({r["topic"] for r in found}) >= 2
    assert all(r["reason"] for r in found if r["counts"] != "yes"), found
    assert all(r["says"] for r in found), [r for r in found if not r["says"]]
    some = rows(build, "list", "software")["rows"]
    assert some and {r["topic"] for r in some} == {"software"}
    text = mperfctl(build, "list", "software").stdout
    assert "cpu-clock" in text and "\x1b" not in text, text
    fails(build, 2, ["no-such-topic", "software|list"], "list", "no-such-topic")


def test_doctor_says_what_this_machine_can_do(build):
    found = rows(build, "doctor")["rows"]
    harts = {r["hart"] for r in found if r["topic"] == "sampling" and r["state"] == "ok"}
    assert len(harts) == len(os.sched_getaffinity(0)), found
    text = json.dumps(found)
    for word in "perf_event_paranoid", "rung", "namer", "BPF", "debug":
        assert word in text, word
    for row in found:
        assert row["state"] in ("ok", "info", "warn", "fail"), row
        if row["state"] in ("warn", "fail"):
            assert row["remedy"], row
    table = mperfctl(build, "doctor").stdout
    assert re.search(r"^ok\s+sampling, hart", table, re.M) and "\x1b" not in table, table
    about = mperfctl(build, "doctor", "-i", recording(build).path).stdout
    assert "sampling" in about, about
    # One part of the answer does not contradict another.
    nothing = all("no PMU counts this event" in r["finding"] for r in found if "rung a not" in r["finding"])
    counters = [r["finding"] for r in found if r["topic"] == "counters"]
    if nothing and any("rung a not" in r["finding"] for r in found):
        assert not any(re.match(r"\d+ programmable", says) for says in counters), found


def test_without_proc_an_answer_says_so(build):
    need_root()
    need_program("unshare")
    commands = (["hotspots", "-F", "99", "--", "true"], ["hotspots", "--pid", "1", "--for", "1s"],
                ["stat", "--", "true"], ["top", "-b", "-n", "1", "--pid", "1"],
                ["hotspots", "-a", "--for", "1s"])
    for command, named in [(c, True) for c in commands] + [(commands[0], False)]:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh",
             build / "mperfctl", *command], capture_output=True, text=True, timeout=60,
            env=dict(os.environ, LC_ALL="C.UTF-8", MPERF_SOCKET="",
                     **({"MPERFD": str(build / "mperfd")} if named else {})))
        assert done.returncode == 1 and "/proc is not mounted" in done.stderr, (command, done)


def test_texts_are_in_the_charset_of_the_locale(build):
    """Tables, notes and marks are ASCII where the charset is not UTF-8; JSON is UTF-8 everywhere."""
    with Folder() as folder:
        named = folder / "größe"
        subprocess.run(["cc", "-O2", "-o", named, "-x", "c", "-"], check=True, text=True, input="""
            #include <time.h>
            int main(void) { while (clock() < CLOCKS_PER_SEC / 10) ; }""")
        commands = (["hotspots", "--by", "function", "--", named], ["doctor"], ["stat", "-r", "3", "--", named],
                    ["flamegraph", "--force", "-o", folder / "page.html", "--", named], ["hotspots", "--help"],
                    ["no-such-command…"])
        locales = {"LC_ALL": "C"}, {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}, {"LC_ALL": "de_DE.ISO-8859-1"}
        for locale in locales[:1 if build.name == "asan" else 3]:  # to the code they are one
            for command in commands:
                done = mperfctl(build, *command, check=False, env=locale)
                assert done.stdout.isascii() and done.stderr.isascii(), (locale, command, done)
        spread = mperfctl(build, *commands[2], env={"LC_ALL": "C"}).stderr
        assert "+-" in spread, spread
        text = mperfctl(build, *commands[0]).stdout
        assert "größe" in text, text
        data = mperfctl(build, "hotspots", "--by", "module", "--json", "--", named, env={"LC_ALL": "C"}).stdout
        assert any("größe" in (row["module"] or "") for row in json.loads(data)["rows"]), data
        raw = mperfctl(build, "hotspots", "--by", "module", "--raw", "--", named, env={"LC_ALL": "C"}).stdout
        assert "größe" in raw, raw
        mperfctl(build, "stat", "-o", folder / "counts", "--", named, env={"LC_ALL": "C"})
        assert "größe" in (folder / "counts").read_text(encoding="utf-8")


def test_nothing_is_coloured_that_is_not_on_a_terminal(build):
    for color in ({"NO_COLOR": ""}, {"NO_COLOR": "1"}):
        for command in (["hotspots", "-i", recording(build).path], ["list", "software"], ["doctor"]):
            done = mperfctl(build, *command, env=dict(color, TERM="xterm-256color"))
            assert "\x1b" not in done.stdout + done.stderr, (color, command)


def on_terminal(build, *arguments, **environment):
    """What the command prints on a terminal."""
    import pty
    leader, follower = pty.openpty()
    surroundings = dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8")
    surroundings.pop("NO_COLOR", None)
    process = subprocess.Popen([build / "mperfctl", *map(str, arguments)], stdin=follower,
                               stdout=follower, stderr=follower, env=dict(surroundings, **environment))
    os.close(follower)
    printed = b""
    try:
        while chunk := os.read(leader, 65536):
            printed += chunk
    except OSError:
        pass  # Linux says EIO when the other end is closed
    os.close(leader)
    assert process.wait(timeout=60) == 0, printed
    return printed.decode(errors="replace")


def test_colours_on_a_terminal_can_be_switched_off(build):
    command = ["hotspots", "-i", recording(build).path]
    assert "\x1b[" in on_terminal(build, *command)
    assert "\x1b[" not in on_terminal(build, *command, NO_COLOR="1")
    assert "\x1b[" not in on_terminal(build, *command, "--no-color")
    assert "\x1b[" not in on_terminal(build, *command, TERM="dumb")


# --- wrong usage ---------------------------------------------------------------------------------

def test_wrong_usage_is_told_in_one_sentence_with_status_2(build):
    for words, arguments in (
            (["command", "--help"], []),
            (["hotspot", r"mperfctl hotspots"], ["hotspot"]),
            (["recrod", r"mperfctl record"], ["recrod", "--", "true"]),
            (["--bogus", "help"], ["--bogus"]),
            (["--outptu", "--output"], ["record", "--outptu", "x", "--", "true"]),
            (["-x", "help record"], ["record", "-x", "--", "true"]),
            (["-o", "value|name"], ["record", "-o"]),
            (["nothing to measure", "--pid"], ["record"]),
            (["nothing to measure", "--pid"], ["stat"]),
            (["-F", "fast"], ["record", "-F", "fast", "--", "true"]),
            (["-F", "'0'"], ["record", "-F", "0", "--", "true"]),
            (["-F|samples", "-F|less"], ["record", "-F", "900000", "--", "true"]),
            (["-g", "magic"], ["record", "-gmagic", "--", "true"]),
            (["tables", "7"], ["record", "-g", "dwarf,7", "--", "true"]),
            (["--pid", "abc"], ["record", "--pid", "abc"]),
            (["-a", "--pid"], ["record", "-a", "--pid", "1"]),
            (["--for", "soon"], ["record", "-a", "--for", "soon"]),
            (["--by", "functoin", "function"], ["hotspots", "--by", "functoin"]),
            (["--cpu", "a-b"], ["hotspots", "--cpu", "a-b"]),
            (["--cpu", "3-1"], ["hotspots", "--cpu", "3-1"]),
            (["--since", "whenever"], ["hotspots", "--since", "whenever"]),
            (["--until", "--since"], ["hotspots", "--since", "now", "--until=-1h"]),
            (["--limit", "-3|many"], ["hotspots", "--limit", "many"]),
            (["--json", "--raw"], ["hotspots", "--json", "--raw"]),
            (["-i", "-a"], ["hotspots", "-i", "x", "-a"]),
            (["x.mprf", "-i"], ["hotspots", "x.mprf"]),
            (["-r", "0"], ["stat", "-r", "0", "--", "true"]),
            (["-r", "-I"], ["stat", "-r", "3", "-I", "100", "--", "true"]),
            (["too many", "help list"], ["list", "software", "hardware"]),
            (["too many", "help doctor"], ["doctor", "me"]),
            (["--folded", "help hotspots"], ["hotspots", "--folded"])):
        with Folder() as folder:
            fails(build, 2, words, *arguments, cwd=folder)
            assert os.listdir(folder) == [], (arguments, os.listdir(folder))


def test_help_and_version_are_no_mistakes(build):
    for arguments in (["--help"], ["-h"], ["help"], ["--version"], ["help", "record"],
                      ["record", "--help"], ["hotspots", "-h"], ["help", "doctor"]):
        done = mperfctl(build, *arguments)
        assert done.stdout and not done.stderr, (arguments, done)
    assert "--by" in mperfctl(build, "help", "hotspots").stdout
    fails(build, 2, ["recrod", "record"], "help", "recrod")


def test_events_that_are_unknown_or_malformed_are_named(build):
    with Folder() as folder:
        for words, event in (
                (["cpu-clok", "cpu-clock"], "cpu-clok"),
                (["page-fautls", "page-faults"], "cpu-clock,page-fautls"),
                (["instructoins", "instructions"], "instructoins"),
                ([r"\{", "list"], "{cpu-clock"),
                ([r"\}", "list"], "cpu-clock}"),
                (["group", "list"], "{}"),
                (["missing", "list"], "cpu-clock,,page-faults"),
                (["missing", "list"], ","),
                (["modifier", "list"], "cpu-clock:"),
                (["'z'|cpu-clock", "list"], "cpu-clock:z"),
                (["/", "list"], "cpu/cycles"),
                (["nopmu", "list"], "nopmu/x=1/"),
                (["spaces", "list"], "cpu clock"),
                ([r"rzz", "list"], "rzz"),
                (["127|bytes|long", "list"], "a" * 500)):
            for how in (["record", "-o", folder / "r"], ["stat"]):
                fails(build, 2, words, *how, "-e", event, "--", "true")
        fails(build, 2, ["empty", "help"], "record", "-e", "", "-o", folder / "r", "--", "true")
        fails(build, 2, ["nosuch|tracefs|tracing"], "record", "-e", "nosuch:nothing", "-o",
              folder / "r", "--", "true")
        assert os.listdir(folder) == [], os.listdir(folder)


def gone_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_pid_that_does_not_exist_is_named(build):
    with Folder() as folder:
        for how in (["record", "-o", folder / "r"], ["stat"], ["hotspots"], ["flamegraph"]):
            pid = gone_pid()
            fails(build, 1, [str(pid), "ps|pid"], *how, "--pid", pid, "--for", "1s",
                  env={"TMPDIR": str(folder)}, cwd=folder)
            assert os.listdir(folder) == [], (how, os.listdir(folder))


def test_a_pid_of_somebody_else_is_refused_by_name(build):
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        process = subprocess.Popen(["sleep", "60"])
        try:
            for how in (["record", "-o", "r"], ["stat"], ["hotspots"]):
                done = as_nobody(folder, environment, *how, "--pid", process.pid, "--for", "1s")
                refused(done, 1, str(process.pid), "not yours|another user|owner|root",
                        "CAP_PERFMON|CAP_SYS_PTRACE|root|perf_event_paranoid")
        finally:
            process.kill()
            process.wait()
        assert os.listdir(folder / "tmp") == [], os.listdir(folder / "tmp")


# --- where answers go ----------------------------------------------------------------------------

TALKS = ["sh", "-c", "echo from the program; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"]


def test_an_answer_and_the_programs_output_do_not_mix(build):
    done = mperfctl(build, "hotspots", "--json", "-g", "none", "-F", "499", "--", *TALKS)
    assert json.loads(done.stdout)["rows"] and "from the program" in done.stderr, done
    with Folder() as folder:
        answer = folder / "a.json"
        for _ in range(2):  # the second time over the first
            done = mperfctl(build, "hotspots", "--json", "-g", "none", "-F", "499", "-o", answer, "--", *TALKS)
            assert done.stdout == "from the program\n" and "wrote" in done.stderr, done
            assert json.loads(answer.read_text())["rows"]
        done = mperfctl(build, "hotspots", "--json", "-q", "-g", "none", "-o", answer, "--", *TALKS)
        assert not done.stderr, done
        folded = mperfctl(build, "flamegraph", "--folded", "-g", "none", "-F", "499", "--", *TALKS).stdout
        assert folded and all(re.search(r" \d+$", line) for line in folded.splitlines()), folded
        table = mperfctl(build, "stat", "-x", ",", "-e", "task-clock,page-faults", "-o", folder / "s.csv", "--", *TALKS)
        assert table.stdout == "from the program\n", table
        fields = [line.split(",") for line in (folder / "s.csv").read_text().splitlines()]
        assert [f[2] for f in fields] == ["task-clock", "page-faults"] and float(fields[0][0]) > 0, fields


def test_a_recording_can_be_piped(build):
    with Folder() as folder:
        with open(folder / "r.mprf", "wb") as out:
            subprocess.run([build / "mperfctl", "record", "-g", "none", "-F", "499", "-o", "-", "--", *TALKS],
                           stdout=out, stderr=subprocess.PIPE, check=True, env=dict(os.environ, MPERF_SOCKET=""))
        assert rows(build, "hotspots", "-i", folder / "r.mprf")["rows"]


def test_sources_and_others_files_are_not_overwritten(build):
    with Folder() as folder:
        for name, text in (("prog.c", "int x;"), ("package.json", '{"name": "x"}'), ("notes", "mine")):
            (folder / name).write_text(text)
            fails(build, 1, ["does not look like", "--force"], "list", "--json", "-o", folder / name)
            fails(build, 1, ["does not look like", "--force"], "stat", "-o", folder / name, "--", "true")
            assert (folder / name).read_text() == text
        mperfctl(build, "list", "--json", "-f", "-o", folder / "package.json")
        assert json.loads((folder / "package.json").read_text())["rows"]
        fails(build, 2, ["must end in"], "flamegraph", "-o", folder / "x.png", "-i", recording(build).path)
        assert not (folder / "x.png").exists()


def test_samples_of_tasks_outside_the_pid_namespace_are_counted_as_lost(build):
    need_root()
    need_program("unshare")
    spin = "exec python3 -c 'while True: pass'"
    with Folder() as folder, subprocess.Popen(["sh", "-c", spin]) as outside:
        try:
            script = (f'sh -c "$1" & p=$!; "$2" hotspots -a --for 2s -F 99 -g none --by process --json > "$3"; '
                      'kill $p')
            done = subprocess.run(
                ["unshare", "-p", "-f", "-m", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", spin,
                 build / "mperfctl", folder / "out"], capture_output=True, text=True, timeout=100,
                env=dict(os.environ, LC_ALL="C.UTF-8", MPERF_SOCKET=""))
        finally:
            outside.kill()
        answer = json.loads((folder / "out").read_text())
    assert answer["provenance"]["samples"] > 0, (answer, done)
    # Two loops share what harts there are, and one of them is outside.
    assert answer["provenance"]["lost"].get("task outside the pid namespace", 0) > 5, (answer, done)
