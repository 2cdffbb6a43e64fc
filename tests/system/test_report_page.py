# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of a report: what is packed into it adds up as queries do, and its script shows that in a browser."""
import base64
import collections
import functools
import gzip
import hashlib
import html
import json
import os
import re

from attacked import MALLORY, VICTOR
from browser import Browser
from machine import Folder, compile_program, mperfctl, need_root, once_in_a_run
from recorded import fails, known
from service import Service, wait_until
from test_pins import Users

HOSTILE = "</script><b>\"'"
WORK = 'printf %s "$1" > /proc/$$/comm; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
SPIN = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
READY = "document.body.classList.contains('ready')"


@functools.lru_cache(maxsize=None)
def made(build):
    """Turns of two functions, threads that wait for a lock, and a process with a name that is markup: a recording, its
    page, and how long each turn was."""
    phases = compile_program(build, "phases.c")
    waits = compile_program(build, "threads_wait.c", "-pthread")

    def fill(part):
        script = f'{phases} > {part}/turns; {waits} lock 2; sh -c "$1" sh "$0"'
        mperfctl(build, "record", "-o", part / "r", "--", "sh", "-c", script, HOSTILE, WORK)
        mperfctl(build, "report", "-i", part / "r", "-o", part / "page.html")
    folder = once_in_a_run(build, f"report-{build.name}", fill)
    return folder / "r", folder / "page.html", folder / "turns"


class Packed:
    """What the page carries, by client/report/pack.h."""

    def __init__(self, text):
        data = gzip.decompress(base64.b64decode(re.search(r'id="packed">([^<]*)</script>', text)[1]))
        head, _, self.rest = data.partition(b"\n")
        self.head, self.at = json.loads(head), 0
        h, t = self.head, self.head["texts"]
        names, modules, self.kinds = (self.column(h["functions"]) for _ in range(3))
        self.names, self.modules = [t[i] for i in names], [t[i] for i in modules]
        back, self.function = self.column(h["nodes"] - 1), [0]
        self.caller = [0, *(i + 1 - n for i, n in enumerate(back))]
        self.function += self.column(h["nodes"] - 1)
        pid, tid, process, thread, group = (self.column(h["tasks"]) for _ in range(5))
        self.tasks = [(pid[i], tid[i], t[process[i]], t[thread[i]], t[group[i]]) for i in range(h["tasks"])]
        since, event, task, hart, node, value = (self.column(h["rows"]) for _ in range(6))
        at, self.rows = 0, []
        for i in range(h["rows"]):
            at += since[i]
            self.rows.append((at, t[event[i]], self.tasks[task[i]], hart[i] - 1, node[i], value[i]))
        assert self.at == len(self.rest), "bytes are left over"

    def column(self, n):
        found = []
        for _ in range(n):
            value = shift = 0
            while True:
                byte = self.rest[self.at]
                self.at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            found.append(value)
        return found

    def way(self, node):
        """Names from the outermost caller on."""
        names = []
        while node:
            names.append(self.names[self.function[node]])
            node = self.caller[node]
        return names[::-1]

    def sums(self, event, **wanted):
        """{function: (self, total)} in µs"""
        sums = collections.defaultdict(lambda: [0, 0])
        for _, name, task, _, node, value in self.rows:
            if name != event or any(task[{"process": 2, "thread": 3}[k]] != v for k, v in wanted.items()):
                continue
            names = self.way(node)
            sums[names[-1]][0] += value
            for caller in set(names):
                sums[caller][1] += value
        return sums


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def page_of(build, *arguments):
    with Folder() as folder:
        mperfctl(build, "report", "-o", folder / "x.html", *arguments)
        return read(folder / "x.html")


# --- what is packed -------------------------------------------------------------------------------

def test_the_page_adds_up_as_queries_do(build):
    path, page, _ = made(build)
    packed = Packed(read(page))
    folded = mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
    wanted = collections.Counter()
    for line in folded.splitlines():
        names, _, value = line.rpartition(" ")
        wanted[names.split(";")[-1]] += int(value)
    found = packed.sums("cpu-clock")
    whole = sum(wanted.values())
    assert whole > 0 and abs(sum(s for s, _ in found.values()) * 1000 / whole - 1) < 0.001, (whole, found)
    for name in "first", "second", "spin":
        assert abs(found[name][0] * 1000 - wanted[name]) < 0.001 * whole, (name, found[name], wanted[name])
        assert found[name][1] >= found[name][0]
    assert found["main"][1] > 0.3 * whole / 1000, found["main"]


def test_waits_stand_beside_cpu_time(build):
    path, page, _ = made(build)
    packed = Packed(read(page))
    events = {row[1] for row in packed.rows}
    assert "waiting:lock" in events, events
    said = mperfctl(build, "flamegraph", "-i", path, "-f", "-o", os.devnull, check=False).stderr
    folded = mperfctl(build, "flamegraph", "-i", path, "--folded", "-e", "waiting:lock").stdout
    wanted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    found = sum(value for _, event, _, _, _, value in packed.rows if event == "waiting:lock") * 1000
    assert wanted > 0 and abs(found / wanted - 1) < 0.001, (found, wanted, said)


def test_moments_are_where_they_were(build):
    """Each turn lasts 40 ms: of its middle, nearly all is its own function."""
    _, page, turns = made(build)
    packed = Packed(read(page))
    assert packed.head["bucket_ms"] <= 2 and packed.head["coarse_ms"] == 0, packed.head
    rows = [(at * packed.head["bucket_ms"], packed.way(node)) for at, event, task, _, node, _ in packed.rows
            if event == "cpu-clock" and task[2] == "phases"]
    known_turns = [(line.split()[0], int(line.split()[1]), int(line.split()[2])) for line in read(turns).splitlines()]
    first_row = min(at for at, names in rows if "first" in names)
    begin = known_turns[0][1] / 1e6
    right = wrong = 0
    for name, a, b in known_turns:
        for at, names in rows:
            moment = at - first_row + begin
            if a / 1e6 + 5 < moment < b / 1e6 - 5 and ("first" in names or "second" in names):
                right += name in names
                wrong += name not in names
    assert right > 100 and wrong <= right / 20, (right, wrong)


def test_callers_come_first_and_callees_stand_in_order(build):
    packed = Packed(read(made(build)[1]))
    callees = collections.defaultdict(list)
    for node in range(1, len(packed.caller)):
        assert packed.caller[node] < node
        callees[packed.caller[node]].append(node)
    for nodes in callees.values():
        assert nodes == list(range(nodes[0], nodes[0] + len(nodes)))
        names = [packed.names[packed.function[n]].encode() for n in nodes]
        assert names == sorted(names), names


def test_an_event_alone_has_no_waits(build):
    with Folder() as folder:
        mperfctl(build, "record", "-e", "page-faults", "-c", "1", "-o", folder / "r", "--", known(build), "pages", "500", "100")
        packed = Packed(page_of(build, "-i", folder / "r"))
        assert packed.head["unit"] == "count" and {row[1] for row in packed.rows} == {"page-faults"}, packed.head["unit"]
        assert sum(row[5] for row in packed.rows) >= 500


def test_the_store_is_known_by_window(build):
    need_root()
    with Folder() as folder, Service(build, folder, flush="1s", rate=499) as service:
        service.ctl("job", "run", "w", "--", known(build), "spin", "1500")

        def page():
            service.ctl("report", "--since", "-5m", "-f", "-o", folder / "x.html")
            packed = Packed(read(folder / "x.html"))
            return packed if any("spin" in packed.way(row[4]) for row in packed.rows) else None
        packed = wait_until("the store has samples", page)
        assert packed.head["coarse_ms"] >= 100 and packed.head["bucket_ms"] >= packed.head["coarse_ms"], packed.head
        assert "times are known to" in read(folder / "x.html")


def test_a_user_sees_his_own_processes_alone(build):
    need_root()
    with Folder() as folder, Users(build, folder) as users:
        for uid, name in (MALLORY, "mine"), (VICTOR, "victors"):
            done = users.ctl(uid, "job", "run", name, "--", "sh", "-c", f'printf {name} > /proc/$$/comm; {SPIN}')
            assert done.returncode == 0, done.stderr

        def names(uid):
            done = users.ctl(uid, "report", "--since", "-5m", "-o", "-")
            assert done.returncode == 0, done.stderr
            return {task[3] for task in Packed(done.stdout).tasks}
        wait_until("both are stored", lambda: {"mine"} <= names(MALLORY) and {"victors"} <= names(VICTOR))
        assert "victors" not in names(MALLORY) and "mine" not in names(VICTOR), (names(MALLORY), names(VICTOR))


def test_what_cannot_be_is_refused(build):
    path, _, _ = made(build)
    with Folder() as folder:
        fails(build, 1, ["did not count the event"], "report", "-i", path, "-e", "page-faults", "-o", folder / "x")
        fails(build, 1, ["there is no such file"], "report", "-i", folder / "nothing", "-o", folder / "x")
        fails(build, 2, ["no option '--wall'"], "report", "-i", path, "--wall")
        (folder / "mine").write_text("text")
        fails(build, 1, ["mine"], "report", "-i", path, "-o", folder / "mine")
        assert sorted(os.listdir(folder)) == ["mine"] and (folder / "mine").read_text() == "text"


def test_no_samples_are_said(build):
    path, _, _ = made(build)
    text = page_of(build, "-i", path, "--comm", "nobody")
    assert 'class="trust doubtful"' in text and "there are no samples" in text
    assert Packed(text).rows == []


def test_the_policy_allows_these_scripts_alone(build):
    text = read(made(build)[1])
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = re.search(r"script-src ([^;]*)", policy)[1].split()
    assert allowed == [f"'sha256-{h}'" for h in hashes] and len(allowed) > 3, (allowed, hashes)
    assert "default-src 'none'" in policy and "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


# --- in a browser ---------------------------------------------------------------------------------

def opened(browser, page, fragment=""):
    browser.open(page, fragment)
    wait_until("the page is ready", lambda: browser.run(READY))


def state(browser):
    return dict(part.split("=", 1) for part in browser.run("location.hash")[1:].split("&") if "=" in part)


def functions(browser):
    """{function: self share} of the table"""
    rows = browser.run("Array.from(document.querySelectorAll('#functions tbody tr')).map(r => "
                       "[r.cells[4].textContent, r.cells[1].textContent])")
    return {name: float(share.split()[0]) / 100 for name, share in rows}


def drag(browser, from_share, to_share):
    """Over the timeline, whose names take the left."""
    left, width, top = browser.run("(r => [r.left, r.width, r.top])(document.getElementById('timeline').getBoundingClientRect())")
    names = 190 if width >= 600 else 96
    points = [left + names + share * (width - names) for share in (from_share, (from_share + to_share) / 2, to_share)]
    for kind, x in zip(("mousePressed", "mouseMoved", "mouseReleased"), points):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=top + 8, button="left", buttons=1, clickCount=1)


def test_a_dragged_range_is_what_all_views_show(build):
    _, page, _ = made(build)
    packed = Packed(read(page))
    n = packed.head["buckets"]
    at = [a for a, event, task, *_, node, _ in packed.rows if "first" in packed.way(node) and event == "cpu-clock"]
    first = min(at)
    ms = packed.head["bucket_ms"]
    with Browser() as browser:
        opened(browser, page, "view=functions")
        assert {"first", "second"} <= set(functions(browser)), functions(browser)
        begin, end = (first + 8 / ms) / n, (first + 30 / ms) / n  # within the first turn
        drag(browser, begin, end)
        a, b = map(int, state(browser)["time"].split("-"))
        assert abs(a / n - begin) < 0.01 and abs(b / n - end) < 0.01, (a, b, begin, end)
        of_table = functions(browser)
        inside = collections.Counter()
        for row_at, event, _, _, node, value in packed.rows:
            if event == "cpu-clock" and a <= row_at < b:
                inside[packed.way(node)[-1]] += value
        for name, value in inside.items():
            assert abs(of_table.get(name, 0) - value / sum(inside.values())) < 0.001, (name, value, of_table)
        assert "second" not in of_table and of_table["first"] > 0.5, of_table
        browser.run("document.getElementById('tab-tree').click()")
        tree = browser.run("document.getElementById('calls').textContent")
        assert "first" in tree and "second" not in tree
        drag(browser, 0.5, 0.5)  # a click takes all
        assert "time" not in state(browser)


def test_keys_do_it_all(build):
    _, page, _ = made(build)
    with Browser() as browser:
        opened(browser, page)
        browser.press("/", "/")
        assert browser.run("document.activeElement.id") == "search"
        for letter in "first":
            browser.press(letter, letter)
        assert state(browser)["find"] == "first" and "matched" in browser.run("document.getElementById('matched').textContent")
        browser.press("Escape")
        assert "find" not in state(browser)
        browser.run("document.getElementById('timeline').focus()")
        browser.press("+", "+")
        first = state(browser)["time"]
        browser.press("ArrowRight")
        assert state(browser)["time"] != first
        browser.press("Escape")
        assert "time" not in state(browser)
        browser.run("document.getElementById('flame').focus()")
        for key in "ArrowDown", "ArrowDown", "ArrowDown":
            browser.press(key)
        named = browser.run("document.querySelector('#details b').textContent")
        browser.press("Enter", "\r")
        assert "at" in state(browser) and named, (named, state(browser))
        browser.press("Backspace")
        browser.press("Backspace")
        assert "at" not in state(browser)
        browser.run("document.getElementById('tab-graph').focus()")
        browser.press("ArrowRight")
        assert state(browser)["view"] == "tree" and browser.run("document.activeElement.id") == "tab-tree"
        row = "document.activeElement.closest('tr')"
        browser.run("document.querySelector('#calls tbody tr').focus()")
        rows = browser.run("document.querySelectorAll('#calls tbody tr').length")
        browser.press("ArrowLeft")
        assert browser.run("document.querySelectorAll('#calls tbody tr').length") == 1 < rows
        browser.press("ArrowRight")
        browser.press("ArrowDown")
        assert browser.run(f"{row}.getAttribute('aria-level')") == "2"
        assert browser.errors == [], browser.errors


def test_a_function_is_shown_in_all_places(build):
    _, page, _ = made(build)
    with Browser() as browser:
        opened(browser, page, "view=functions")
        browser.run("Array.from(document.querySelectorAll('#functions .link')).find(b => b.textContent === 'first').click()")
        assert state(browser)["way"] == "around" and browser.run("document.getElementById('around').textContent") == "Around first"
        sides = browser.run("(s => [true, false].map(up => { const t = mperf.treeAround(s, mperf.data.name.indexOf('first'), up);"
                            " return [t.root.total, mperf.callees(t, t.root).map(b => mperf.label(b))]; }))"
                            "(mperf.sum({choice: mperf.choices()[0], side: 'all', process: '', thread: '', from: 0,"
                            " to: mperf.data.nBuckets}))")
        packed = Packed(read(page))
        total = packed.sums("cpu-clock")["first"][1]
        assert abs(sides[0][0] - total) < 0.001 * total and abs(sides[1][0] - total) < 0.001 * total, (sides, total)
        assert sides[0][1] == ["main"], sides
        browser.run("document.querySelector('[data-way=up]').click()")
        assert state(browser)["way"] == "up" and browser.errors == []


def test_columns_sort(build):
    _, page, _ = made(build)
    with Browser() as browser:
        opened(browser, page, "view=functions")
        for column in "self", "total", "name", "module":
            button = f"document.querySelector('#functions th[data-sort={column}] button')"
            if column != "self":
                browser.run(f"{button}.click()")
            index = {"self": 1, "total": 3, "name": 4, "module": 5}[column]
            cells = browser.run(f"Array.from(document.querySelectorAll('#functions tbody tr')).map(r => r.cells[{index}].textContent)")
            if column in ("self", "total"):
                shares = [float(c.split()[0]) for c in cells]
                assert shares == sorted(shares, reverse=True), (column, shares)
            else:
                assert cells == browser.run(f"{json.dumps(cells)}.sort((a, b) => a.localeCompare(b))"), (column, cells)
            assert browser.run(f"{button}.parentNode.getAttribute('aria-sort')") in ("ascending", "descending")


def test_choices_choose(build):
    _, page, _ = made(build)
    packed = Packed(read(page))
    with Browser() as browser:
        opened(browser, page, "kind=waiting%3Alock&view=functions")
        wanted = {name for name, (own, _) in packed.sums("waiting:lock").items() if own > 0}
        assert wanted <= set(functions(browser)), (wanted, functions(browser))
        opened(browser, page, "side=user&view=functions")
        of_user = functions(browser)
        kernel = {packed.names[i] for i, kind in enumerate(packed.kinds) if kind == 1}
        own = {packed.names[i] for i, kind in enumerate(packed.kinds) if kind != 1}
        assert not (kernel - own) & set(of_user) and abs(sum(of_user.values()) - 1) < 0.01, of_user
        process = browser.run("Array.from(document.getElementById('process').options).find(o => o.value.startsWith('phases')).value")
        opened(browser, page, "view=functions")
        browser.run(f"(s => {{ s.value = {json.dumps(process)}; s.dispatchEvent(new Event('change')); }})"
                    "(document.getElementById('process'))")
        assert "spin" not in functions(browser) and "first" in functions(browser)
        opened(browser, page, browser.run("location.hash")[1:])  # who has the address sees the same
        assert "spin" not in functions(browser) and browser.run("document.getElementById('process').value") == process
        opened(browser, page, "view=none&kind=none&time=9-1&of=99999999&at=7.x&way=around&find=%5B&process=nobody")
        assert browser.errors == [], browser.errors


def test_hostile_names_are_text(build):
    _, page, _ = made(build)
    with Browser() as browser:
        opened(browser, page)
        assert HOSTILE in browser.run("Array.from(document.getElementById('process').options).map(o => o.value).join()")
        for view in "graph", "tree", "functions":
            opened(browser, page, f"view={view}&lanes=thread")
            assert browser.run("document.querySelectorAll('main b, main script').length") == 0
        opened(browser, page, "process=%3Cscript%3E&find=%3Cb%3E&of=1&lanes=%3Cb%3E&sort=%3Cb%3E")
        assert browser.run("document.querySelectorAll('main b, main script').length") == 0
        assert browser.errors == [] and [url for url in browser.asked if not url.startswith(f"file://{page}")] == [], \
            (browser.errors, browser.asked)


def test_without_a_script_there_are_tables(build):
    _, page, _ = made(build)
    with Browser() as browser:
        browser.open(page, script=False)
        shown = browser.run("document.body.innerText")
        assert "Functions" in shown and "Processes" in shown and "spin" in shown and "phases" in shown, shown[:800]
        assert "Flame graph" not in shown


def test_it_fits_screens_and_paper(build):
    _, page, _ = made(build)
    for width in 390, 1400, 2560:
        with Browser(width=width, height=844) as browser:
            for view in "graph", "tree", "functions":
                opened(browser, page, f"view={view}&kind=waiting")
                assert browser.run("document.documentElement.scrollWidth") <= width, (width, view)
            browser.look(min(width, 800), 1000, medium="print")
            assert browser.run("document.documentElement.scrollWidth") <= min(width, 800), (width, "print")
            assert browser.run("getComputedStyle(document.querySelector('.choices')).display") == "none"


def many_stacks(text, n):
    """The page with n stacks, each of its own, in 64 levels: what is packed is made anew."""
    functions, depth = 2000, 30
    names = [f"function_{i:04}" for i in range(functions)]
    callers, fns, leaves = [], [], []
    for i in range(n):  # each stack shares a part of the one before
        own = depth if i == 0 else 1 + i * 7919 % 12
        at = callers_of = 0 if i == 0 else leaves[-1]
        for _ in range(0 if i == 0 else own):
            at = callers[at - 1] if at else 0
        for k in range(own):
            callers.append(at)
            fns.append(1 + (i * 31 + k * 17 + callers_of) % (functions - 1))
            at = len(callers)
        leaves.append(at)
    # level by level, callees beside each other
    below = collections.defaultdict(list)
    for node, caller in enumerate(callers, 1):
        below[caller].append(node)
    order, new = [0], {0: 0}
    for node in order:
        for callee in below[node]:
            new[callee] = len(order)
            order.append(callee)

    def number(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])
    head = {"unit": "us", "begin_ms": 1e12, "bucket_ms": 200, "buckets": 3000, "coarse_ms": 0, "functions": functions,
            "nodes": len(order), "tasks": 1, "rows": n, "texts": ["", "cpu-clock", "prog", *names]}
    columns = [[0, *range(3, 3 + functions - 1)], [2] * functions, [0] * functions,
               [i - new[callers[node - 1]] for i, node in enumerate(order) if i], [fns[node - 1] for node in order[1:]],
               [1], [1], [2], [2], [0],
               [1 if i and i * 3000 // n != (i - 1) * 3000 // n else 0 for i in range(n)], [1] * n, [0] * n, [1] * n,
               [new[leaf] for leaf in leaves], [10000] * n]
    packed = json.dumps(head).encode() + b"\n" + b"".join(number(v) for column in columns for v in column)
    data = base64.b64encode(gzip.compress(packed, 9)).decode()
    return re.sub(r'(id="packed">)[^<]*', lambda m: m[1] + data, text)


def test_a_hundred_thousand_stacks_are_drawn(build):
    with Folder() as folder, Browser() as browser:
        (folder / "x.html").write_text(many_stacks(read(made(build)[1]), 100_000))
        opened(browser, folder / "x.html")
        ms = browser.run("(t => { document.getElementById('reset').click(); return performance.now() - t; })(performance.now())")
        up = browser.run("(t => { document.querySelector('[data-way=up]').click(); return performance.now() - t; })(performance.now())")
        nodes = browser.run("mperf.data.nNodes")
        print(f"    100,000 stacks, {nodes} nodes: all of it in {ms:.0f} ms, bottom up in {up:.0f} ms; "
              f"{os.path.getsize(folder / 'x.html') >> 10} KiB")
        assert browser.errors == [] and ms < 5000 and up < 5000  # a second, on a machine that does nothing else
