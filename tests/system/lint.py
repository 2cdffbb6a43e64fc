# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source as text: the order of folders, licences, sizes, static analysis."""
import fnmatch
import importlib.machinery
import importlib.util
import os
import re
import subprocess

import macros
from machine import ROOT, need_program

# Each folder, and what its files may include besides their own. A folder includes only folders before it;
# everybody may include proto/, the daemon platform-db/. daemon.c and main.c, which wire, are the exception.
PROTO = ["proto/base", "proto", "proto/syntax", "proto/roofs", "proto/code"]
DAEMON = """kernel aside child debuginfod pmu pmu/event sampler count metric decode unwind naming attribute loops aggregate store/segment
store store/rollup answer query query/samples query/loops query/processes compare session doctor conf budget jobs service control"""
CLIENT = """show options wire plot topdown flamegraph export report compare roofs roofs/measure measure roofline top
commands"""
MAY_INCLUDE = {
    "platform-db": {"platform-db", *PROTO},
    "client": {"client", *(f"client/{folder}" for folder in CLIENT.split()), *PROTO},
    "runtime": {"runtime"},
    "runtime/ompt": {"runtime", "runtime/ompt"},
    "systemd": {*PROTO},
    "daemon/namer": {"daemon/namer", "daemon/unwind", *PROTO},
    "daemon/code": {"daemon/code", "daemon/namer", "daemon/unwind", *PROTO},
}


def in_order(folders, *always):
    """Let each folder include itself, those before it and what all of them may."""
    for position, folder in enumerate(folders):
        MAY_INCLUDE[folder] = {*always, *folders[:position + 1]}


in_order(PROTO)
in_order([f"daemon/{folder}" for folder in DAEMON.split()], "platform-db", *PROTO)
in_order([f"client/{folder}" for folder in CLIENT.split()], *PROTO)
# The wire between mperfd and its workers belongs to the workers.
MAY_INCLUDE["daemon/naming"].add("daemon/namer/message.h")
# Names that programs gave themselves are read as the namer reads those of files.
MAY_INCLUDE["daemon/query/loops"].add("daemon/namer/demangle.h")
# What instrumented programs send is said once, for all sides.
MAY_INCLUDE["daemon/loops"].add("runtime")


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


def test_includes_follow_the_order_of_folders(build):
    wrong = []
    for path in tracked("*.c", "*.h"):
        allowed = MAY_INCLUDE.get(str(path.parent.relative_to(ROOT)))
        if allowed is None:
            continue
        for include in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            target = include.rpartition("/")[0]
            if include.endswith(".inc") or target in allowed or include in allowed:
                continue
            wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong, wrong


def circles(edges):
    """The sets of nodes that lead back to each other, of {node: nodes}. Source: R. Tarjan, "Depth-first
    search and linear graph algorithms", 1972."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in edges:
        if node not in number:
            visit(node)
    return found


def objects(build):
    """{source: its object}, of all that was built."""
    sources = {str(p.relative_to(ROOT)) for p in tracked("*.c", "*.cc")
               if not str(p.relative_to(ROOT)).startswith("tests/")}
    return {s: o for s in sources for o in (
        [build / f"{s.removesuffix('.c')}.o"] if s.endswith(".c") else
        sorted(build.glob(f"llvm-*/{s.removeprefix('llvm-pass/').removesuffix('.cc')}.o"))[-1:]) if o.exists()}


def calls(build):
    """{source: sources whose functions or data it names}."""
    defines, needs = {}, {}
    source_of = {str(o): source for source, o in objects(build).items()}
    listed = subprocess.run(["nm", "-A", *source_of], check=True, capture_output=True, text=True).stdout
    for path, kind, name in re.findall(r"^(.*?):.* (\w) (\S+)$", listed, re.M):
        if kind in "TDBRC":
            defines[name] = source_of[path]
        elif kind == "U":
            needs.setdefault(source_of[path], set()).add(name)
    return {source: {defines[n] for n in names if n in defines} - {source} for source, names in needs.items()}


def test_no_files_of_a_room_call_each_other_in_a_circle(build):
    edges = calls(build)
    assert len(edges) > 200, len(edges)
    in_room = {a: {b for b in others if b.rpartition("/")[0] == a.rpartition("/")[0]}
               for a, others in edges.items()}
    assert not circles(in_room), circles(in_room)


def test_a_struct_that_one_file_owns_is_touched_by_that_file_alone(build):
    """A struct below a comment "/* slot.c */" belongs to that file of the room."""
    wrong, n_owned = [], 0
    for header in tracked("daemon/*.h"):
        text = header.read_text()
        for owner, struct in re.findall(r"^/\* (\w+\.c) \*/\nstruct (\w+) \{", text, re.M):
            members = re.findall(rf"^\tstruct {struct} \*?(\w+);", text, re.M)
            assert members, f"{header}: nothing holds struct {struct}"
            n_owned += 1
            touches = re.compile(rf"(?:->|\.)(?:{'|'.join(members)})(?:\[[^]]*\])?(?:\.|->)\w")
            wrong += [f"{path.relative_to(ROOT)}: {touches.search(path.read_text())[0]}, which is {owner}'s"
                      for path in header.parent.glob("*.c")
                      if path.name != owner and touches.search(path.read_text())]
    assert n_owned > 5, n_owned
    assert not wrong, wrong


def test_no_folders_call_each_other_in_a_circle(build):
    edges = {}
    for source, others in calls(build).items():
        folder = source.rpartition("/")[0]
        edges.setdefault(folder, set()).update({other.rpartition("/")[0] for other in others} - {folder})
    assert len(edges) > 40, sorted(edges)
    assert not circles(edges), circles(edges)


def test_every_folder_has_its_place_in_the_order(build):
    folders = {str(path.parent.relative_to(ROOT)) for path in tracked("*.c", "*.h")}
    without = {f for f in folders if not f.startswith(("tests", "llvm-pass")) and f != "daemon"} - set(MAY_INCLUDE)
    assert not without, without


def test_no_headers_include_each_other_in_a_circle(build):
    edges = {str(p.relative_to(ROOT)): set(re.findall(r'^#include "([^"]+)"', p.read_text(), re.M))
             for p in tracked("*.h")}
    assert not circles(edges), circles(edges)


def test_circles_are_found(build):
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}}) == [["a", "b", "c"]]
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def figures():
    """tests/figures as a module."""
    loader = importlib.machinery.SourceFileLoader("figures", str(ROOT / "tests" / "figures"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("figures", loader))
    loader.exec_module(module)
    return module


def test_functions_in_headers_have_a_caller_elsewhere_or_are_exported_for_tests(build):
    """Static is what only its own file calls; a docstring says "Exported for tests." where only tests call."""
    measure = figures()
    declared, *found = measure.exports(*measure.read_folder(ROOT))
    assert len(declared) > 2000, len(declared)
    unnamed, of_tests, doors = found
    assert not unnamed and doors == of_tests, (unnamed, of_tests - doors, doors - of_tests)


def test_functions_without_a_caller_elsewhere_are_found(build):
    product = {"a.h": "int used(void);\nint alone(int n);\n/* Poke. Exported for\n * tests. */\nint poked(\n\tint n);\n"
                      "int by_macro(void);\n#define M() by_macro()\n/* Exported for tests. */\nint called(void);\n",
               "a.c": "int used(void)\n{\n}\nint alone(int n)\n{\n\treturn alone(n);\n}\n",
               "b.c": '/* alone */\nint b(void)\n{\n\tputs("alone");\n\treturn used() + called();\n}\n'}
    _, unnamed, of_tests, doors = figures().exports(product, {"tests/t.c": "poked(1);\ncalled();\n"})
    assert (unnamed, of_tests, doors) == ({"a.h:alone"}, {"a.h:poked"}, {"a.h:poked", "a.h:called"})


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


def test_a_cross_build_compiles_nothing_before_its_libraries_are_there(build):
    """As make understood the rules: it builds in parallel, and a clean clone has no sysroot yet."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    place = f"{build}/none"
    done = subprocess.run(["make", "-np", "CROSS=riscv64", f"BUILD={place}", "PASS=no", "all"], cwd=ROOT,
                          capture_output=True, text=True, env=environment)
    rules = {target: (needs, first.split()) for target, needs, first in re.findall(
        rf"^{re.escape(place)}/riscv64/(\S+): ([^|\n]*)\|?(.*)$", done.stdout, re.M)}
    assert f"{place}/boards/riscv64.packages" in rules["gen/all"][0].split(), rules["gen/all"]
    objects_ = {target: first for target, (needs, first) in rules.items()
                if target.endswith(".o") and ".bpf." not in target and ".c" in needs}
    assert len(objects_) > 200, len(objects_)
    early = [target for target, first in objects_.items()
             if not {f"{place}/riscv64/gen/all", f"{place}/boards/riscv64.packages"} & set(first)]
    assert not early, early


def test_every_source_states_its_licence(build):
    sources = tracked("*.c", "*.h", "*.cc", "*.ll", "*.py", "*.mk", "Makefile", "*.proto", "*.sql",
                      "*.inc")
    without = [str(p) for p in sources if "SPDX-License-Identifier:" not in p.read_text()[:400]]
    assert sources and not without, without


def test_files_and_lines_keep_their_bounds(build):
    long = [f"{p}: {n} lines" for p in tracked("*.c", "*.h", "*.cc")
            if (n := len(p.read_text().splitlines())) > 600]
    assert not long, long


def test_c_files_are_in_form(build):
    """As clang-format 19 has them, which Debian 12 and 13 both have: other versions format otherwise."""
    program = need_program("clang-format-19")
    files = [path.relative_to(ROOT) for path in tracked("*.c", "*.h", "*.cc")]
    done = subprocess.run([program, "--dry-run", *files], cwd=ROOT, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", done.stderr, re.M)))
    assert done.returncode == 0 and not wrong, wrong or done.stderr


def test_headers_and_sizes_are_written_one_way(build):
    guarded = [str(p.relative_to(ROOT)) for p in tracked("*.h") if "\n#pragma once\n" not in p.read_text()]
    bare = [str(p.relative_to(ROOT)) for p in tracked("*.c", "*.h", "*.cc")
            if re.search(r"\bsizeof [^(]", macros.plain(p.read_text()))]
    assert not guarded and not bare, (guarded, bare)


# Columns and tables by name, as row.h, figures.inc and older lists write them, and as the client asks for them.
MADE = re.compile(r'(?:COLUMN|KNOWN_IF)\(\s*(\w+),\s*"|^BY_[A-Z]+\((\w+), [A-Z"]|"(\w+)",\s*"[^"]*",'
                  r'|(?:TABLE_BEGIN|TABLE_OF_ONE|row_send|row_stream_table)\([^,"]*,\s*"(\w+)"', re.M)
ASKED = re.compile(r'(?:reply_column|replies_table)\([^()"]*"(\w+)"|\.table = "(\w+)"')


def names_of(pattern, *folders):
    return {name for path in tracked("*.c", "*.h", "*.inc") if path.relative_to(ROOT).parts[0] in folders
            for found in pattern.findall(macros.joined(path.read_text())) for name in found if name}


def test_the_client_asks_for_columns_and_tables_that_there_are(build):
    asked, made = names_of(ASKED, "client"), names_of(MADE, "daemon", "client", "proto")
    assert {"schedule", "kind", "scaled"} <= asked & made and not asked - made, asked - made


# Macros in use that evaluate an argument more than once. What is added here needs a look at all uses;
# an inline function is better where one can be written.
REPEATING_HEADERS = ["sys/queue.h", "sys/param.h", "uthash.h", "utlist.h"]
REPEATING = set("""
    BY BY_BOTH FLOATS GROUPED MEMORY MOVES NONTEMPORAL OF_LMUL PRODUCTS WHOLE WHOLES
    COUNTED CPUS DL_APPEND DL_APPEND2 DL_APPEND_ELEM DL_DELETE DL_DELETE2 DL_FOREACH DL_FOREACH2
    DL_FOREACH_SAFE DL_FOREACH_SAFE2 DL_PREPEND HASH_ADD HASH_ADD_INT HASH_ADD_KEYPTR HASH_CLEAR HASH_COUNT HASH_DEL HASH_FIND
    HASH_FIND_INT HASH_FUNCTION HASH_ITER STEP TAILQ_ENTRY TAILQ_HEAD TAILQ_INIT TAILQ_INSERT_HEAD
    TAILQ_INSERT_TAIL TAILQ_REMOVE ROW_PART TABLE_BEGIN TABLE_OF_ONE TABLE_ROW TAKE_FD TAKE_PTR TEST
    TWICE""".split())


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
        " A(__VA_ARGS__)\n#define G(m) (p->m + (m))\n#define H(LINE) LINE(a) LINE(b)\n")))
    assert set(mine) == {"A", "B", "E", "F"} and mine["B"] == {0}, mine


def test_cppcheck_is_clean(build):
    need_program("cppcheck")
    done = subprocess.run(
        ["cppcheck", "--quiet", "--error-exitcode=1", "--std=c11", "--inline-suppr", "-j2",
         "--enable=warning,portability", "--suppressions-list=tests/cppcheck-suppressions",
         "-D_GNU_SOURCE", "-DMPERF_VERSION=\"0\"", "-DMPERF_LIBEXECDIR=\"/\"",
         "-DMPERF_SBINDIR=\"/\"", "-DMPERF_BINDIR=\"/\"", "-I.", f"-I{build}/gen",
         # of BPF's own dialect of C; clang compiles it with -Werror
         "-idaemon/kernel/switch.bpf.c", "-idaemon/kernel/programs.bpf.c",
         "proto", "platform-db", "daemon", "client", "runtime", "systemd"],
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
