# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Completion as the shells do it: bash's function is called as bash calls it, zsh is typed at."""
import os
import pty
import re
import select
import shlex
import subprocess
import time

from machine import ROOT, Folder, leave_to_plain, mperfctl, need_program, refused

SECONDS = 11
WAITS = "shells"

ZSH_SECONDS = 120  # for zsh to start or to complete, on a loaded machine; one of them takes 0.5 s


def commands():
    table = (ROOT / "proto" / "command.inc").read_text()
    return re.findall(r"^(?:OWN_)?COMMAND\(\w+, (\w+),", table, re.M)


def help_options(build, command):
    """Every option in the first column of a command's help, with what is said of it."""
    said, names = {}, []
    for line in mperfctl(build, command, "--help").stdout.splitlines():
        row = re.match(r"\s{2,6}(-\S.*?)(?:\s{2,}(.*))?$", line)
        if row:
            names = re.findall(r"(?<![\w-])(--[\w-]+|-\w)", row[1])
            said.update({name: row[2] or "" for name in names})
        elif re.match(r"\s{10,}\S", line):
            said.update({name: f"{said[name]} {line.strip()}" for name in names})
        else:
            names = []
    assert "--help" in said, said
    return said


def bash_script(build):
    return mperfctl(build, "completion", "bash").stdout


def bash(build, *lines, cwd=None, env=None):
    """What bash offers for each line, a list of words of which the last is being typed; `joined`
    words (with = and :) are to be given as bash cuts them."""
    calls = "".join(f"""
        COMP_WORDS=({' '.join(map(shlex.quote, line))}); COMP_CWORD={len(line) - 1}
        _mperfctl mperfctl; printf '%s\\n' "${{COMPREPLY[@]}}"; echo ----
    """ for line in lines)
    done = subprocess.run(["bash", "--norc", "-c", bash_script(build) + calls], text=True,
                          capture_output=True, timeout=120, cwd=cwd, env={**os.environ, **(env or {})})
    assert done.returncode == 0 and not done.stderr, done.stderr
    offered = [[word for word in part.split("\n") if word]
               for part in done.stdout.split("----\n")[:-1]]
    assert len(offered) == len(lines), done.stdout
    return offered


def one(build, *words, **options):
    return bash(build, ["mperfctl", *words], **options)[0]


# --- bash ----------------------------------------------------------------------------------------

def test_bash_completes_every_command(build):
    wanted = {*commands(), "help", "completion", "--help", "--version"}
    assert set(one(build, "")) == wanted
    assert one(build, "rec") == ["record"]
    assert one(build, "help", "flam") == ["flamegraph"]
    assert one(build, "zzz") == [] and one(build, "zzz", "--") == []
    listed = re.findall(r"^  (\w+) ", mperfctl(build, "--help").stdout, re.M)
    assert {"help", "completion", *commands()} <= set(listed), listed


def test_bash_completes_every_option_of_every_help(build):
    names = commands()
    offered = bash(build, *(["mperfctl", name, "-"] for name in names))
    for name, words in zip(names, offered):
        assert set(words) == set(help_options(build, name)), name


def test_bash_completes_long_options_by_their_beginning(build):
    assert one(build, "record", "--outp") == ["--output"]
    assert one(build, "record", "-F", "99", "--outp") == ["--output"]
    assert one(build, "record", "-e", "sched", ":", "sched_switch", "--outp") == ["--output"]
    assert one(build, "record", "-g", "tables", "--outp") == ["--output"]
    assert one(build, "record", "-g", "--outp") == ["--output"]
    assert one(build, "hotspots", "--by", "=", "line", "--inl") == ["--inlined"]
    assert one(build, "record", "--inl") == []


def test_bash_completes_the_values_that_help_names(build):
    script = bash_script(build)
    known = re.findall(r"'(\w+) (--[\w-]+)'\) echo '\??([a-z ]+)' ;;", script)
    assert {("hotspots", "--by"), ("top", "--by"), ("record", "--call-graph")} <= {
        (command, option) for command, option, _ in known}, known
    for command, option, words in known:
        said = help_options(build, command)[option].split(": ")[-1]
        named = re.findall(r"(?:^|, )([a-z]+)", said)
        assert named == words.split(), (command, option, said, words)
    assert one(build, "hotspots", "--by", "pro") == ["process"]
    assert one(build, "hotspots", "--by=pro") == ["--by=process"]      # = does not cut words
    assert one(build, "hotspots", "--by", "=", "pro") == ["process"]   # it does
    assert one(build, "hotspots", "--by", "=")[0] == "function"
    assert one(build, "record", "-g", "") == ["tables", "fp", "none"]
    assert one(build, "top", "--by", "li") == []
    assert one(build, "completion", "") == ["bash", "zsh", "--help"]
    assert one(build, "completion", "bash", "") == []


def words_of(text):
    return set(re.findall(r"[a-z]+", text))


def test_bash_completes_first_arguments(build):
    """Of commands that take words, those that their synopsis names."""
    for command in "job", "schedule", "roofs":
        offered = one(build, command, "")
        usage = mperfctl(build, command, "--help").stdout.split("\n\n")[0]
        assert offered and set(offered) <= words_of(usage), (command, offered, usage)
        assert one(build, command, offered[0][0]) == [w for w in offered if w[0] == offered[0][0]]
    assert one(build, "job", "--json", "un") == ["unpin"]
    assert one(build, "job", "run", "x") == []
    with Folder() as folder:
        (folder / "nightly.schedule").write_text("")
        for words in (["schedule", "check", "ni"], ["diff", "ni"], ["diff", "a", "ni"]):
            assert one(build, *words, cwd=folder) == ["nightly.schedule"], words
        assert one(build, "schedule", "run", "ni", cwd=folder) == []


def test_bash_completes_events_metrics_and_topics_of_this_machine(build):
    found = mperfctl(build, "list", "--raw").stdout.splitlines()[1:]
    rows = [line.split("\t") for line in found]
    path = {"PATH": f"{build}:{os.environ['PATH']}"}
    assert set(one(build, "list", "", env=path)) == {row[0] for row in rows}
    counting = {row[1] for row in rows if row[0] != "metrics" and row[4] == "yes"}
    assert "cpu-clock" in counting and set(one(build, "record", "-e", "", env=path)) == counting
    assert one(build, "stat", "-e", "task-clock,cpu-cl", env=path) == ["task-clock,cpu-clock"]
    assert one(build, "record", "--event=cpu-cl", env=path) == ["--event=cpu-clock"]
    metrics = {name for row in rows if row[0] == "metrics" for name in (row[1], *row[2].split(", ")) if name}
    assert set(one(build, "stat", "-M", "", env=path)) == metrics
    assert one(build, "record", "-e", "x", env={"PATH": "/usr/bin:/bin"}) == []  # no mperfctl there


def test_bash_completes_files_and_processes(build):
    with Folder() as folder:
        (folder / "a run.mprf").write_text("")
        for words in (["hotspots", "-i"], ["record", "-o"], ["record", "--output", "="]):
            assert one(build, *words, "a", cwd=folder) == ["a run.mprf"], words
        assert one(build, "record", "-F", "a", cwd=folder) == []
    me, parent = str(os.getpid()), "1"
    assert me in one(build, "record", "--pid", me)
    assert f"{parent},{me}" in one(build, "record", "-p", f"{parent},{me}")
    assert one(build, "record", "--pid", "x") == []


def test_bash_completes_the_program_to_run(build):
    with Folder() as folder:
        (folder / "argument").write_text("")
        for words in (["record"], ["record", "--"], ["stat", "-a", "--"], ["hotspots", "--"],
                      ["record", "-e", "cycles", ":", "u"], ["record", "-g", "fp"]):
            assert "objdump" in one(build, *words, "objdum"), words
            assert one(build, *words, "objdump", "arg", cwd=folder) == ["argument"], words
        for words in (["hotspots"], ["top"], ["top", "--"], ["list"]):
            assert one(build, *words, "objdum") == [], words
        # What follows the program is its own, whatever it looks like.
        assert one(build, "record", "objdump", "--outp", cwd=folder) == []


def test_the_bash_script_is_clean(build):
    need_program("shellcheck")
    done = subprocess.run(["shellcheck", "--shell=bash", "-"], input=bash_script(build), text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout


# --- zsh -----------------------------------------------------------------------------------------

class Zsh:
    """An interactive zsh with our function in its search path. Tab completes; then Ctrl-X writes
    what the line has become to a file."""

    def __init__(self, build, folder):
        self.shown = folder / "shown"
        self.n_lines = 0
        (folder / "functions").mkdir()
        (folder / "functions" / "_mperfctl").write_text(
            mperfctl(build, "completion", "zsh").stdout)
        (folder / "start").write_text(f"""
            fpath=({folder}/functions $fpath)
            autoload -Uz compinit; compinit -u -D
            show() {{ print -r -- "$BUFFER|" >> {self.shown}; BUFFER=; }}
            zle -N show; bindkey '^X' show; bindkey '^I' complete-word
            cd {folder}; print ready >> {self.shown}
        """)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="vt100", LC_ALL="C.UTF-8", PATH=f"{build}:{os.environ['PATH']}")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.type(f"source {folder}/start\n")

    def type(self, text):
        os.write(self.terminal, text.encode())
        end = time.monotonic() + ZSH_SECONDS
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)  # what it draws must not fill its terminal
            lines = self.shown.read_text().splitlines() if self.shown.exists() else []
            if len(lines) > self.n_lines:
                self.n_lines = len(lines)
                return lines[-1]
        raise AssertionError(f"zsh has not shown what became of {text!r}")

    def complete(self, line):
        return self.type(f"mperfctl {line}\t\x18").removeprefix("mperfctl ").removesuffix("|")

    def stop(self):
        os.close(self.terminal)  # hangs up
        os.waitpid(self.pid, 0)


def test_zsh_completes_commands_options_and_values(build):
    leave_to_plain(build, "zsh completes, by a script that other tests have printed with sanitizers")
    need_program("zsh")
    wanted = {
        "rec": "record ",
        "record --outp": "record --output=",
        "record -e cycles -a --forc": "record -e cycles -a --force ",
        "hotspots --by proc": "hotspots --by process ",
        "hotspots --by=proc": "hotspots --by=process ",
        "record -g tabl": "record -g tables ",
        "hotspots -i a": r"hotspots -i a\ run.mprf ",
        "record objdum": "record objdump ",
        "hotspots -a -- objdum": "hotspots -a -- objdump ",
        "hotspots -- ls a": r"hotspots -- ls a\ run.mprf ",
        "hotspots objdum": "hotspots objdum",
        "top --by li": "top --by li",
        "help flam": "help flamegraph ",
        "completion z": "completion zsh ",
        "job unp": "job unpin ",
        "schedule che": "schedule check ",
        "roofs mea": "roofs measure ",
        "list softw": "list software ",
        "record -e cpu-clo": "record -e cpu-clock ",
        "stat -e task-clock,cpu-clo": "stat -e task-clock,cpu-clock ",
    }
    with Folder() as folder:
        (folder / "a run.mprf").write_text("")
        zsh = Zsh(build, folder)
        try:
            got = {line: zsh.complete(line) for line in wanted}
        finally:
            zsh.stop()
    assert got == wanted, {k: (got[k], wanted[k]) for k in wanted if got[k] != wanted[k]}


def test_the_zsh_script_has_every_option_of_every_help(build):
    need_program("zsh")
    script = mperfctl(build, "completion", "zsh").stdout
    checked = subprocess.run(["zsh", "-f", "-n", "-c", script], text=True, capture_output=True)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr
    for name in commands():
        part = re.search(rf"^\t\t{name}\)\n(.*?)^\t\t;;\n", script, re.M | re.S)[1]
        found = set()
        for line in part.splitlines()[1:]:
            forms, described, _ = line.strip().partition("'[")
            if not described:
                continue  # what stands behind the options
            found |= set(re.findall(r"(?<![\w-])(--[\w-]+|-\w)", forms))
        assert found == set(help_options(build, name)), name


# --- the command itself --------------------------------------------------------------------------

def test_completion_names_its_shells(build):
    for arguments, words in (([], "name of a shell"), (["fish"], "'fish'"),
                             (["bash", "zsh"], "'zsh' is one argument too many")):
        done = mperfctl(build, "completion", *arguments, check=False)
        refused(done, 2, words, "completion bash")
        assert done.stdout == ""
    for arguments in (["help", "completion"], ["completion", "--help"]):
        assert "Usage: mperfctl completion bash|zsh" in mperfctl(build, *arguments).stdout
    done = mperfctl(build, "completio", check=False)
    refused(done, 2, "Did you mean `mperfctl completion`")
