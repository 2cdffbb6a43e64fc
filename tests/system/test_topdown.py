# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""topdown: a tree of an owner's metrics counted for real, trees of other machines from a fake daemon, and
what it refuses."""
import json
import re
import xml.etree.ElementTree as xml

from fake_daemon import COUNT, NONE, READY, SHARE, FakeDaemon, columns, done, failure, rows
from fake_daemon import provenance as fake_provenance
from machine import BAD_WORDS, Folder, mperfctl, refused
from machine import rows as answer_rows
from running import on_a_terminal
from test_platforms import ask, metric, tried_core, try_platforms, write

SVG = "{http://www.w3.org/2000/svg}"
TOPDOWN = 15  # Request.body
USAGE, REFUSED = 1, 2  # FailureKind


# --- counted here --------------------------------------------------------------------------------

def own_tree():
    """Of software events, so that any machine has them."""
    def share(name, text, groups, **more):
        return metric(name, text, "100%", groups) | more
    return [
        share("minor", r"minor\-faults / page\-faults", "TopdownL1;Useful"),
        share("rest", r"0.25 + major\-faults / page\-faults", "TopdownL1", next="Mix",
              BriefDescription="what is not minor"),
        share("part", r"0.1 + major\-faults / page\-faults", "rest_group"),
        share("none", r"1 / emulation\-faults", "rest_group"),
        metric("faults_per_ms", r"page\-faults / (task\-clock / 1e6)", "1per_ms", "Mix"),
    ]


def counted(build, folder, *arguments):
    core = tried_core()
    core["metrics"] = own_tree()
    write(folder, "tried.json", core)
    try_platforms(folder)
    return ask(build, folder, "topdown", *arguments)


def test_an_owners_tree_is_counted(build):
    with Folder() as folder:
        found = counted(build, folder, "--json", "--", "sh", "-c", "ls / >/dev/null")
        assert found.returncode == 0, found.stderr
        answer = json.loads(found.stdout)
        node = {row["node"]: row for row in answer["node"]}
        event = {row["event"]: row["scaled"] for row in answer["event"]}
        assert list(node) == ["minor", "rest", "part", "none", "residual"], node
        for name, parts in (("minor", event["minor-faults"]), ("rest", None), ("part", None)):
            share = (parts if parts is not None else event["major-faults"]) / event["page-faults"]
            share += {"minor": 0, "rest": .25, "part": .1}[name]
            assert abs(node[name]["value"] - 100 * share) < 1e-6, (name, answer)
            assert node[name]["error"] == 0 and node[name]["running_share"] == 1, node
        assert [row["parent"] for row in answer["node"]] == [None, None, "rest", "rest", None], node
        assert node["none"]["value"] is None and "is 0" in node["none"]["reason"], node
        assert abs(node["residual"]["value"] + 25) < 1e-6, node
        assert [name for name in node if node[name]["worst"]] == ["rest", "part"], node
        assert answer["core"][0]["core"] == "Tried Core" and answer["core"][0]["passes"] == 1, answer


def test_the_next_commands_are_of_the_same_target(build):
    with Folder() as folder:
        text = counted(build, folder, "-l", "1", "--", "sh", "-c", "exit 3")
        assert text.returncode == 3, text  # CMD's own
        for command in ("mperfctl topdown -l 2 -- sh -c 'exit 3'", "mperfctl stat -M Mix -- sh -c 'exit 3'",
                        "mperfctl hotspots -- sh -c 'exit 3'"):
            assert f"\n  {command}\n" in text.stdout, text.stdout
        assert "The most is lost to rest (what is not minor)." in text.stdout, text.stdout
        # They are: as printed, they run.
        assert ask(build, folder, "topdown", "-l", "2", "--", "sh", "-c", "exit 3").returncode == 3
        assert "faults_per_ms" in ask(build, folder, "stat", "-M", "Mix", "--", "true").stderr


def test_a_tree_is_explained_and_drawn(build):
    with Folder() as folder:
        text = counted(build, folder, "--explain", "--", "true").stdout
        assert re.search(r"^minor = minor\\-faults / page\\-faults\n    = [\d.]+ %, exact: counted all of the "
                         r"time, in pass 1\n    minor-faults: \d+, pass 1\n    page-faults: \d+, pass 1\n"
                         r"    source: made, verified: no\n", text, re.M), text
        raw = ask(build, folder, "topdown", "--raw", "--", "true").stdout.splitlines()
        assert len(raw) == 6 and all(line.count("\t") == raw[0].count("\t") for line in raw), raw
        drawn = ask(build, folder, "topdown", "-o", folder / "tree.html", "--", "echo", "its output")
        assert drawn.stdout == "its output\n" and "wrote" in drawn.stderr, drawn
        page = (folder / "tree.html").read_text(encoding="utf-8")
        assert not re.search(r"\bsrc=|href=|@import|https?://(?!www.w3.org/2000/svg)", page)
        assert "<script>\n</script>" in page, "it needs no script"
        ask(build, folder, "topdown", "-o", folder / "tree.svg", "--", "true")
        root = xml.fromstring((folder / "tree.svg").read_text(encoding="utf-8"))
        assert len([g for g in root.iter(SVG + "g")]) == 5, "a group each row"


def test_levels_and_names_that_are_not_there_are_named(build):
    with Folder() as folder:
        refused(counted(build, folder, "-l", "3", "--", "true"), 2,
                "the top-down tree of Tried Core has 2 levels, not 3", "Leave out -l")
        refused(ask(build, folder, "topdown", "-M", "TopdownL7", "--", "true"), 2,
                "Tried Core knows no metric or group named 'TopdownL7'", "mperfctl list metrics")
        below = ask(build, folder, "topdown", "-M", "rest", "--json", "--", "true")
        assert [row["node"] for row in json.loads(below.stdout)["node"]][:2] == ["rest", "part"], below


def test_without_a_tree_one_sentence_says_what_still_works(build):
    """This machine's own core may have one."""
    found = mperfctl(build, "topdown", "--", "true", check=False)
    if found.returncode == 0:
        assert "Top-down of true on" in found.stdout, found
        return
    refused(found, 1, "hotspots")
    counts = any(r["event"] == "cycles" and r["counts"] == "yes"
                 for r in answer_rows(build, "list", "hardware")["rows"])
    assert ("no hardware counters" in found.stderr) != counts, found.stderr


def test_what_makes_no_sense_is_refused_before_anything_runs(build):
    with Folder() as folder:
        for words, arguments in ((("-l takes a number from 1 to 16",), ("-l", "0")),
                                 (("-l takes a number",), ("-l", "all")),
                                 (("-M takes one name",), ("-M", "a,b")),
                                 (("-o draws a picture",), ("-o", folder / "t.svg", "--explain")),
                                 (("must end in",), ("-o", folder / "t.png")),
                                 (("--explain",), ("--explain", "--raw")),
                                 (("two forms",), ("--json", "--raw"))):
            refused(mperfctl(build, "topdown", *arguments, "--", "touch", folder / "ran", check=False), 2, *words)
        refused(mperfctl(build, "topdown", check=False), 2, "nothing to measure")
        refused(mperfctl(build, "topdown", "-e", "cycles", "--", "true", check=False), 2)
        assert not list(folder.iterdir())
        nowhere = mperfctl(build, "topdown", "--", "true", check=False, env={"MPERF_SOCKET": "/nonexistent"})
        refused(nowhere, 1, "no mperfd answers")


# --- of other machines ---------------------------------------------------------------------------

def tree(*nodes, passes=2, notes=b""):
    """The answer of a daemon: nodes are (name, parent, level, kind, value, error, worst, missing)."""
    named = ("node", "parent", "level", "kind", "value", "unit", "error", "running_share", "passes",
             "worst", "missing", "reason", "says", "formula", "inputs", "next", "has_more", "source",
             "verified")
    full = [(name, parent, level, kind, value, "%", error, 1.0 / passes, "2" if value is not None else None,
             worst, missing, f"{missing} was not counted: no counter" if missing else None, f"says {name}",
             f"{name}_slots / cycles", "EVENT, cycles", "Cache;TLB" if worst and level == 1 else None, 0,
             "a guide", "no") for name, parent, level, kind, value, error, worst, missing in nodes]
    return [
        columns("core", *[(n, n, NONE) for n in ("core", "levels", "deepest", "cut", "passes", "fewest",
                                                 "taking_turns")]),
        rows(("A Core", 2, 3, 0, passes, 1, "the kernel rotates the passes")),
        columns("node", *[(n, n, SHARE if n == "running_share" else NONE) for n in named]), rows(*full),
        columns("event", *[(n, n, COUNT) for n in ("event", "value", "scaled", "enabled_ns", "running_ns",
                                                   "running_share", "reason", "pass")]),
        rows(("EVENT", 500, 1000.0, 100, 50, 0.5, None, 1), ("EVENT", 600, 1200.0, 100, 50, 0.5, None, 2),
             ("cycles:u", 700, 1400.0, 100, 50, 0.5, None, 2),
             ("GONE", None, None, None, None, None, "no counter", 1)),
        fake_provenance(), done()]


KUNMINGHU = (
    ("retiring", None, 1, "useful", 40.0, 0.4, 0, None),
    ("frontend_bound", None, 1, "lost", 20.0, 0.9, 0, None),
    ("fetch_latency", "frontend_bound", 2, "lost", 15.0, 0.6, 0, None),
    ("fetch_bandwidth", "frontend_bound", 2, "lost", 5.0, 1.1, 0, None),
    ("bad_speculation", None, 1, "lost", 10.0, 0.02, 0, None),
    ("branch_mispredict", "bad_speculation", 2, "lost", None, None, 0, "TOTAL_FLUSH"),
    ("machine_clears", "bad_speculation", 2, "lost", None, None, 0, "TOTAL_FLUSH"),
    ("backend_bound", None, 1, "lost", 30.0, 1.3, 1, None),
    ("core_bound", "backend_bound", 2, "lost", 20.0, 1.0, 0, None),
    ("memory_bound", "backend_bound", 2, "lost", 30.0, 2.2, 1, None),
    ("l1_bound", "memory_bound", 3, "lost", 12.0, None, 1, None),
    ("l2_bound", "memory_bound", 3, "lost", 7.0, 0.0, 0, None),
    ("residual", "backend_bound", 2, "residual", -20.0, 2.5, 0, None),
)


def answers(*answer):
    def each(daemon, connection, request):
        assert request.case == TOPDOWN, request.case
        daemon.send(connection, request.number, READY, *answer)
    return each


def test_the_request_says_what_was_asked(build):
    with FakeDaemon(answers(*tree(*KUNMINGHU))) as daemon:
        mperfctl(build, "topdown", "-l", "2", "-M", "topdown-004", "-U", "--pid", "1", env=daemon.environment)
    (request,) = daemon.requests
    assert request.first(6) == 2 and request.text(5) == "topdown-004" and request.first(4) == 1, request.body


def test_rows_have_shares_errors_bars_and_what_is_missing(build):
    with FakeDaemon(answers(*tree(*KUNMINGHU))) as daemon:
        text = mperfctl(build, "topdown", "--pid", "1", env=dict(daemon.environment, COLUMNS="80")).stdout
    lines = text.splitlines()
    assert lines[0] == "Top-down of process 1 on A Core", text
    assert re.fullmatch(r"  retiring              40.0 % ± 0.4   █{16}[^█]?", lines[2]), text
    assert re.fullmatch(r"  bad_speculation       10.0 % ± <0.1  █{4}[^█]?", lines[6]), text
    assert re.search(r"    branch_mispredict +n/a +TOTAL_FLUSH was not counted: no counter$", text, re.M), text
    assert re.search(r"^▶ backend_bound .*\n    core_bound .*\n▶   memory_bound .*\n▶     l1_bound +12.0 % ± \? ",
                     text, re.M), text
    assert re.search(r"^    residual +-20.0 % ± 2.5 *$", text, re.M), text
    assert "2 passes, the fewest for these counters, and the kernel rotates them" in text, text
    assert "was counted 50 % of the time" in text, text
    for group in "Cache", "TLB":
        assert f"  mperfctl stat -M {group} --pid 1\n" in text, text


def test_explanations_show_each_input_in_its_pass(build):
    with FakeDaemon(answers(*tree(*KUNMINGHU))) as daemon:
        text = mperfctl(build, "topdown", "--explain", "--pid", "1", env=daemon.environment).stdout
    found = re.search(r"\nmemory_bound = .*?(?=\n\n)", text, re.S)[0]
    assert found == ("\nmemory_bound = memory_bound_slots / cycles\n    = 30.0 % ± 2.2, in pass 2\n"
                     "    says memory_bound\n    EVENT: 1,200, scaled: counted 50 % of the time, pass 2\n"
                     "    cycles:u: 1,400, scaled: counted 50 % of the time, pass 2\n"
                     "    source: a guide, verified: no"), found


def test_colours_are_for_terminals(build):
    with FakeDaemon(answers(*tree(*KUNMINGHU))) as daemon:
        plain = dict(daemon.environment)
        coloured = on_a_terminal(build, (40, 100), "topdown", "--pid", "1", env=dict(plain, NO_COLOR=""))
        without = on_a_terminal(build, (40, 100), "topdown", "--pid", "1", env=plain)
        option = on_a_terminal(build, (40, 100), "topdown", "--no-color", "--pid", "1",
                               env=dict(plain, NO_COLOR=""))
        simple = mperfctl(build, "topdown", "--pid", "1", env=dict(plain, LC_ALL="C", LANG="C"))
    assert "\033[1;31m▶ backend_bound" in coloured and "\033[32m" in coloured, coloured
    assert "\033" not in without + option + simple.stdout, without
    assert simple.stdout.startswith("Top-down") and "\n> backend_bound" in simple.stdout, simple.stdout
    assert max(len(line) for line in without.splitlines()[2:15]) <= 100, without


def test_hostile_names_steer_nothing(build):
    evil = "\033[31m<b>&\u202e" + "x" * 300
    with FakeDaemon(answers(*tree((evil, None, 1, "lost", 5.0, 0.0, 1, None),
                                  ("y", evil, 2, evil, 1e300, -1.0, 1, evil)))) as daemon, Folder() as folder:
        for more in (), ("--explain",), ("--raw",), ("-o", folder / "t.svg"), ("-o", folder / "t.html"):
            done_ = mperfctl(build, "topdown", *more, "--pid", "1", env=daemon.environment)
            assert "\033" not in done_.stdout and "\u202e" not in done_.stdout, done_.stdout
        xml.fromstring((folder / "t.svg").read_text(encoding="utf-8"))
        assert "<b>" not in (folder / "t.html").read_text(encoding="utf-8")


def test_an_answer_that_is_no_tree_is_refused(build):
    whole = tree(*KUNMINGHU)
    for answer in ([done()], whole[:2] + [done()], whole[:4] + [done()], [whole[0]] + whole[2:],
                   tree()[:2] + tree()[2:]):
        with FakeDaemon(answers(*answer)) as daemon:
            found = mperfctl(build, "topdown", "--pid", "1", env=daemon.environment, check=False)
        assert found.returncode == 1 and not found.stdout, found
        assert "mperfctl: " in found.stderr and not any(w in found.stderr for w in BAD_WORDS), found


def test_a_refusal_is_passed_on(build):
    for kind, status in ((REFUSED, 1), (USAGE, 2)):
        def answer(daemon, connection, request, kind=kind):
            daemon.send(connection, request.number, failure(kind, "there is no tree", "Plant one."))
        with FakeDaemon(answer) as daemon:
            refused(mperfctl(build, "topdown", "--pid", "1", env=daemon.environment, check=False), status,
                    "there is no tree. Plant one.")
