# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source as text: the order of the stations, licences, sizes, static analysis."""
import fnmatch
import re
import subprocess

import macros
from machine import ROOT, need_program

# Each folder, and what its files may include besides their own. Stations include only stations
# before them; everybody may include proto/, the daemon platform-db/. daemon.c and main.c, which wire, are the exception.
STATIONS = ["pmu", "decode", "attribute", "loops", "aggregate", "store", "query", "control"]
MAY_INCLUDE = {
    "proto": {"proto"},
    "platform-db": {"platform-db", "proto"},
    "client": {"client", "proto"},
    "runtime": {"runtime"},
    "daemon/namer": {"daemon/namer", "proto"},
}
for position, station in enumerate(STATIONS):
    MAY_INCLUDE[f"daemon/{station}"] = {"proto", "platform-db", *(f"daemon/{s}" for s in STATIONS[:position + 1])}
# The wire between mperfd and its workers belongs to the workers.
MAY_INCLUDE["daemon/attribute"].add("daemon/namer")
# Names that programs gave themselves are read as the namer reads those of files.
MAY_INCLUDE["daemon/query"].add("daemon/namer/demangle.h")
# What instrumented programs send is said once, for all sides.
MAY_INCLUDE["daemon/loops"].add("runtime")
# What the administrator has set; control alone acts on it.
MAY_INCLUDE["daemon/control"].add("daemon/conf.h")


def tracked(*patterns):
    """The project's own files; an unpacked archive, which has no history, holds nothing else but
    build/."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True)
    found = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
        if p.is_file() and p.relative_to(ROOT).parts[0] != "build"]
    return [ROOT / name for name in sorted(found)
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def test_includes_follow_the_order_of_the_stations(build):
    wrong = []
    for path in tracked("*.c", "*.h"):
        folder = str(path.parent.relative_to(ROOT))
        allowed = MAY_INCLUDE.get(folder)
        if allowed is None:
            continue
        for include in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            target = include.rpartition("/")[0]
            if include.endswith(".inc") or target in allowed or include in allowed:
                continue
            wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong, wrong


def test_hash_tables_have_a_key(build):
    """uthash's own hash is the same in each process, so outsiders could choose what falls together."""
    wrong = [str(path) for path in tracked("*.c", "*.h")
             if "<uthash.h>" in path.read_text() and path.name != "hash_table.h"]
    assert not wrong, wrong


def test_the_client_links_neither_sqlite_nor_elf(build):
    needed = subprocess.run(["objdump", "-p", build / "mperfctl"], check=True, capture_output=True,
                            text=True).stdout
    libraries = re.findall(r"NEEDED\s+(\S+)", needed)
    assert libraries and not [n for n in libraries if re.match("libsqlite|libelf|libdw", n)], libraries


def test_the_daemon_parses_no_elf(build):
    needed = subprocess.run(["objdump", "-p", build / "mperfd"], check=True, capture_output=True,
                            text=True).stdout
    libraries = re.findall(r"NEEDED\s+(\S+)", needed)
    assert libraries and not [n for n in libraries if re.match("libelf|libdw", n)], libraries


def test_every_source_states_its_licence(build):
    sources = tracked("*.c", "*.h", "*.cc", "*.ll", "*.py", "*.mk", "Makefile", "*.proto", "*.sql",
                      "*.inc")
    without = [str(p) for p in sources if "SPDX-License-Identifier:" not in p.read_text()[:400]]
    assert sources and not without, without


def test_files_and_lines_keep_their_bounds(build):
    long = [f"{p}: {n} lines" for p in tracked("*.c", "*.h", "*.cc")
            if (n := len(p.read_text().splitlines())) > 600]
    assert not long, long


# Macros in use that evaluate an argument more than once. What is added here needs a look at all uses;
# an inline function is better where one can be written.
REPEATING_HEADERS = ["sys/queue.h", "sys/param.h", "uthash.h", "utlist.h"]
REPEATING = set("""
    COUNTED CPUS DL_APPEND DL_APPEND2 DL_DELETE DL_DELETE2 DL_FOREACH DL_FOREACH2 DL_FOREACH_SAFE
    DL_FOREACH_SAFE2 HASH_ADD HASH_ADD_INT HASH_ADD_KEYPTR HASH_CLEAR HASH_COUNT HASH_DEL HASH_FIND
    HASH_FIND_INT HASH_FUNCTION HASH_ITER STEP TAILQ_ENTRY TAILQ_HEAD TAILQ_INIT TAILQ_INSERT_HEAD
    TAILQ_INSERT_TAIL TAILQ_REMOVE TAKE_FD TAKE_PTR TWICE""".split())


def repeating_macros():
    """{name: positions} of all that our sources and the headers of the list define."""
    texts = {path: path.read_text() for path in tracked("*.c", "*.h", "*.inc", "*.cc")}
    ours = [d for text in texts.values() for d in macros.definitions(text)]
    return macros.repeating(macros.system_definitions(REPEATING_HEADERS) + ours), texts


def test_nothing_is_done_twice_by_a_macro_that_evaluates_its_argument_twice(build):
    repeats, texts = repeating_macros()
    wrong = [f"{path.relative_to(ROOT)}:{line}: {macro} evaluates {what} more than once"
             for path, text in texts.items() for line, macro, what in macros.wrong_uses(text, repeats)]
    assert not wrong, wrong


def test_each_macro_in_use_that_evaluates_an_argument_twice_is_known(build):
    repeats, texts = repeating_macros()
    used = {name for text in texts.values() for name in re.findall(r"\b(\w+)\s*\(", macros.plain(text))
            if name in repeats}
    assert used == REPEATING, (used - REPEATING, REPEATING - used)


def test_a_call_that_a_macro_would_make_twice_is_found(build):
    repeats, _ = repeating_macros()
    assert {name: repeats.get(name) for name in ("MIN", "MAX", "TAILQ_INSERT_HEAD")} == {
        "MIN": {0, 1}, "MAX": {0, 1}, "TAILQ_INSERT_HEAD": {0, 1}}
    wrong = {"TAILQ_INSERT_HEAD(&n->jobs, land(n), queued);": "land()",
             "x = MIN(\n a, *p++);": "++", "HASH_ADD_INT(t->set, tid, s = next);": "=",
             "TAKE_FD(fds[--n])": "--", "y = MAX(1, MIN(2, f(x)));": "f()"}
    for text, what in wrong.items():
        assert what in {found[2] for found in macros.wrong_uses(text, repeats)}, text
    for text in ("TAILQ_INSERT_HEAD(&n->jobs, j, queued);", "MIN(sizeof(a), b == c)", "MIN(a, (int)b)",
                 "/* MIN(f(), 1) */", "TAILQ_REMOVE(queue(n), s, queued)", "f(g())",
                 '"MAX(f(), 2)"', "HASH_FIND(hh, t->set, &key, sizeof(key), found);"):
        assert not macros.wrong_uses(text, repeats), text
    mine = macros.repeating(list(macros.definitions(
        "#define A(x) ((x) + (x))\n#define B(y) A(y)\n#define C(z) (sizeof(z) + (z))\n"
        "#define D(v) do { use(v); } while (0)\n#define E(v) for (; v;)\n#define F(...) \\\n"
        " A(__VA_ARGS__)\n#define G(m) (p->m + (m))\n")))
    assert set(mine) == {"A", "B", "E", "F"} and mine["B"] == {0}, mine


def test_cppcheck_is_clean(build):
    need_program("cppcheck")
    done = subprocess.run(
        ["cppcheck", "--quiet", "--error-exitcode=1", "--std=c11", "--inline-suppr", "-j2",
         "--enable=warning,portability", "--suppressions-list=tests/cppcheck-suppressions",
         "-D_GNU_SOURCE", "-DMPERF_VERSION=\"0\"", "-DMPERF_LIBEXECDIR=\"/\"",
         "-DMPERF_SBINDIR=\"/\"", "-I.", f"-I{build}/gen",
         # of BPF's own dialect of C; clang compiles it with -Werror
         "-idaemon/pmu/switch.bpf.c", "proto", "platform-db", "daemon", "client", "runtime"],
        cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_shell_scripts_are_clean(build):
    need_program("shellcheck")
    scripts = [p for p in tracked("tests/packages", "tests/workloads/*", ".ci/run", "llvm-pass/mperf-cc")]
    done = subprocess.run(["shellcheck", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_man_pages_are_clean(build):
    need_program("groff")
    for page in tracked("man/*.[0-9]"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True,
                              text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
