# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manual pages are held to what they describe: the list of keys, the schema, the help."""
import functools
import re
import sqlite3
import subprocess

from machine import ROOT, Folder, compile_program, mperfctl, need_program
from rates import long_enough, rate_allowed

FONTS = r"\\f(?:\(..|\[[^]]*\]|.)"


def page(name):
    return (ROOT / "man" / name).read_text()


def plain(text):
    """Roff's escapes as what they print."""
    for escape, letter in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\e", "\\"), (r"\&", "")):
        text = text.replace(escape, letter)
    return re.sub(FONTS, "", text)


def printed(name):
    """The whole page as a terminal shows it, in one line."""
    need_program("groff")
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rHY=0", ROOT / "man" / name],
                          check=True, capture_output=True, text=True)
    return re.sub(r"\s+", " ", done.stdout)


def section(text, title):
    found = re.search(rf'^\.SH "?{re.escape(title)}"?\n(.*?)(?=^\.SH |\Z)', text, re.M | re.S)
    assert found, title
    return found[1]


def subsections(text):
    return re.findall(r"^\.SS (\S+)\n(.*?)(?=^\.SS |\Z)", text, re.M | re.S)


def tagged(text):
    """The tags of a list that are set in bold by themselves, with what follows each."""
    return re.findall(r"^\.TP\n\.B ([^\n]*)\n(.*?)(?=^\.TP|\Z)", text, re.M | re.S)


# --- mperf.conf(5) -------------------------------------------------------------------------------

def conf_rows():
    """section, key, kind, min, max, default, unit, restart of each row of conf/conf.inc."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "daemon" / "conf/conf.inc").read_text(), flags=re.S)
    row = r'CONF\("(\S+)", "(\S+)", \w+, (\w+), "(.*?)", "(.*?)",\s*"(.*?)",\s*"(.*?)",\s*(true|false),'
    rows = re.findall(row, text)
    assert len(rows) == text.count("CONF(") > 15, rows
    return rows


def range_text(kind, least, most, unit):
    if kind in ("COUNT", "DURATION", "BYTES", "SHARE"):
        return f"From {least} to {most}{' ' + unit if unit else ''}."
    return {"SWITCH": "A switch.", "CALLERS": "tables, fp or no.", "PATH": "A path.", "GROUP": "The name of a group",
            "EVENTS": "Names", "VARIABLES": "A list of environment variables",
            "PINS": "Rules", "URLS": "URLs"}[kind]


def test_every_key_is_documented_with_its_default_and_range(build):
    documented = [(name.strip("[]"), *plain(tag).split(" = "), text)
                  for name, part in subsections(section(page("mperf.conf.5"), "KEYS"))
                  for tag, text in tagged(part)]
    rows = conf_rows()
    assert [d[:3] for d in documented] == [(r[0], r[1], r[5]) for r in rows]
    for (_, key, _, text), (_, _, kind, least, most, _, unit, restart) in zip(documented, rows):
        first = plain(text).split("\n")[0]
        assert first.startswith(range_text(kind, least, most, unit)), (key, first)
        waits = "A change waits for the next start." in first
        assert waits == (restart == "true"), (key, first)
        if kind in ("PATH", "GROUP", "EVENTS", "VARIABLES", "PINS", "URLS") and most != "255":
            assert f"at most {most} bytes long" in plain(text), key


def test_the_examples_of_the_configuration_have_keys_that_exist(build):
    known = {(row[0], row[1]) for row in conf_rows()}
    used = set()
    for block in re.findall(r"^\.nf\n(.*?)^\.fi", page("mperf.conf.5"), re.M | re.S):
        current = None
        for line in filter(None, plain(block).split("\n")):
            name = re.fullmatch(r"\[(\w+)\]", line)
            current = name[1] if name else current
            if not name:
                used.add((current, line.split(" = ")[0]))
    assert used and used <= known, used - known


# --- mperf-store(5) ------------------------------------------------------------------------------

def schema():
    return (ROOT / "daemon" / "store" / "segment" / "schema.sql").read_text()


@functools.lru_cache(maxsize=None)
def recording(build):
    """A folder with run.mprf, for as long as the tests run."""
    folder = Folder()
    mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder.path / "run.mprf", "--",
             compile_program(build, "known.c"), "spin", long_enough(300))
    return folder


def ask(build, query):
    path = recording(build).path / "run.mprf"
    db = sqlite3.connect(f"file:{path}?immutable=1&mode=ro", uri=True)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def test_every_table_and_column_is_documented(build):
    with sqlite3.connect(":memory:") as db:
        db.executescript(schema())
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' "
                                               "ORDER BY rowid")]
        wanted = [(table, [c[1] for c in db.execute(f"PRAGMA table_info({table})")])
                  for table in tables]
    documented = [(table, [tag for tag, _ in tagged(part)])
                  for table, part in subsections(section(page("mperf-store.5"), "TABLES"))]
    assert len(wanted) > 15 and documented == wanted
    for table, part in subsections(section(page("mperf-store.5"), "TABLES")):
        assert not [tag for tag, text in tagged(part) if not text.strip()], table


def test_every_key_of_meta_is_documented(build):
    comment = schema().split("What the segment is. Keys:")[1].split("CREATE TABLE")[0]
    keys = [key for line in re.findall(r"^--   (\S.*?)(?:   |$)", comment, re.M)
            for key in re.findall(r"[a-z_]+", line.split("  ")[0])]
    documented = [tag for tag, _ in tagged(section(page("mperf-store.5"), "KEYS OF META"))]
    assert set(keys) == set(documented) and len(keys) > 10, (keys, documented)
    written = {key.split(":")[0] for key, in ask(build, "SELECT key FROM meta")}
    assert written <= set(documented), written - set(documented)


def test_the_page_has_the_version_of_the_schema(build):
    version, = ask(build, "PRAGMA user_version")[0]
    application, = ask(build, "PRAGMA application_id")[0]
    said = printed("mperf-store.5")
    assert f"describes version {version} of it" in said and f"0x{application:x}" in said
    assert f"schema version {version} " in schema()


def test_losses_that_cost_samples_are_named_as_such(build):
    causes = re.findall(r'\[LOSS_\w+\] = \{"(.+)", (true|false)\}',
                        (ROOT / "daemon" / "sampler" / "stream.c").read_text())
    said = re.search(r"How often\. For (.*?) it counts samples that are missing", printed(
        "mperf-store.5"))[1]
    named = re.split(r", | and ", said)
    assert len(causes) > 10 and named == [name for name, costs in causes if costs == "true"], named


def examples():
    blocks = re.findall(r"^\.nf\n(.*?)^\.fi", section(page("mperf-store.5"), "EXAMPLES"), re.M | re.S)
    return [plain(block).strip() for block in blocks]


def test_the_queries_of_the_page_answer(build):
    queries = [block for block in examples() if block.startswith(("SELECT", "WITH"))]
    assert len(queries) >= 5
    for query in queries:
        found = ask(build, query)
        # This machine may count no instructions, and lose nothing.
        assert found or " loss " in query or " reading " in query, query
    functions, processes, stack = (ask(build, query) for query in queries[:3])
    # Where a PMU's registers trap, the kernel's write to one may have more than the program.
    spin, = (row for row in functions if row[0] == "spin")
    assert spin[2] > 20, functions
    assert processes[0][1] == "known", processes
    assert stack[0][1] == "spin" and "main" in [row[1] for row in stack], stack


def test_the_commands_of_the_page_run(build):
    need_program("sqlite3")
    text = page("mperf-store.5")
    commands = [plain(block).strip() for block in re.findall(r"^\.nf\n(.*?)^\.fi", text, re.M | re.S)
                if block.startswith("sqlite3 ")]
    assert len(commands) == 2, commands
    for command in commands:  # the one without a question reads it from us
        done = subprocess.run(["sh", "-c", command], input="SELECT * FROM meta;\n", text=True,
                              capture_output=True, cwd=recording(build).path, timeout=60)
        assert done.returncode == 0 and "sealed|1" in done.stdout.split("\n"), done
    assert [p.name for p in recording(build).path.iterdir()] == ["run.mprf"]


# --- mperfctl(1) ---------------------------------------------------------------------------------

def commands():
    return re.findall(r"^COMMAND\(\w+, (\w+),", (ROOT / "proto" / "command.inc").read_text(), re.M)


def test_every_command_has_its_place_in_the_manual(build):
    text = page("mperfctl.1")
    described = dict(tagged(section(text, "COMMANDS")))
    wanted = [*commands(), "help", "completion"]
    assert set(wanted) <= set(described), set(wanted) - set(described)
    assert not [name for name in wanted if not described[name].strip()]
    synopsis = section(text, "SYNOPSIS")
    assert not [name for name in wanted if f"mperfctl {name}" not in synopsis], synopsis


def test_every_option_of_every_help_is_in_the_manual(build):
    said = printed("mperfctl.1")
    missing = set()
    for name in commands():
        for line in mperfctl(build, name, "--help").stdout.splitlines():
            row = re.match(r"\s{2,6}(-\S.*?)(?:\s{2,}|$)", line)
            for option in re.findall(r"(?<![\w-])(--[\w-]+|-\w)", row[1]) if row else []:
                if not re.search(rf"(?<![\w-]){option}(?![\w-])", said):
                    missing.add((name, option))
    assert not missing, missing


def options_of(text):
    return set(re.findall(r"(?<![\w-])(--[\w-]+|-\w)(?![\w-])", text))


def helped(command):
    """The options of a program's --help: of its lines that begin with one, up to what they do."""
    done = subprocess.run([*command, "--help"], check=True, capture_output=True, text=True)
    lines = re.findall(r"^\s{2,6}(-\S.*?)(?:\s{2,}|$)", done.stdout, re.M)
    assert lines, command
    return options_of("\n".join(lines))


def test_the_options_of_a_page_are_those_of_the_helps_that_it_describes(build):
    ctl = build / "mperfctl"
    of_all = {"-h", "-?", "--help", "--usage", "-V", "--version"}
    for name, programs in (("mperfctl.1", [[ctl, c] for c in commands()]),
                           ("mperfctl-gate.1", [[ctl, "gate"], [ctl, "diff"]]),
                           ("mperfctl-timeline.1", [[ctl, "timeline"]]),
                           ("mperfctl-schedule.1", [[ctl, "schedule"]]),
                           ("mperfd.8", [[build / "mperfd"]]),
                           ("mperf-platform-check.1", [[build / "mperf-platform-check"]])):
        text = section(page(name), "OPTIONS")
        wanted = set().union(*map(helped, programs)) - of_all
        described = options_of(plain(text))
        assert wanted <= described, (name, "are missing", wanted - described)
        if name != "mperfctl.1":  # which speaks of other programs' options too
            more = described - wanted - of_all
            assert not more, (name, "no help has", more)


def test_all_that_users_share_is_in_the_table(build):
    text = (ROOT / "daemon" / "control" / "user.inc").read_text()
    names = re.findall(r'^LIMIT\(\w+, "(\w+)"', text, re.M)
    assert len(names) == text.count("\nLIMIT(") > 5, names
    table = section(page("mperfd.8"), "SHARES OF USERS")
    shown = re.findall(r"^    (\w+) ", table, re.M)
    assert not [name for name in names if name not in shown], (names, shown)


def test_the_pages_name_one_another(build):
    pages = sorted(p.name for p in (ROOT / "man").glob("*.[0-9]"))
    assert {"mperfctl.1", "mperf.conf.5", "mperf-store.5", "mperfd.8"} <= set(pages), pages
    for name in pages:
        for other, number in re.findall(r"\b(mperf[a-z.-]*) ?\((\d)\)", printed(name)):
            assert f"{other}.{number}" in pages, (name, other, number)
