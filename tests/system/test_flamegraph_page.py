# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flame graphs with several pictures: what each shows, what is left out and why, and the page's script in a browser."""
import functools
import html
import json
import os
import re
from collections import defaultdict
from pathlib import Path

from browser import Browser
from machine import Folder, compile_program, mperfctl, need_root, once_in_a_run
from recorded import fails, known
from service import Service, wait_until

OF_VIEW = {"cpu": [], "waiting": ["--event", "waiting"], "ready": ["--event", "waiting:hart"], "wall": ["--wall"]}
HOSTILE = "</script><b>\"'"
WORK = 'printf %s "$1" > /proc/$$/comm; i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done'
UNITS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1, "min": 60e9}


@functools.lru_cache(maxsize=None)
def waits(build):
    """Threads that wait for a lock, and a process with a name that is markup, which works: a recording, and its page."""
    program = compile_program(build, "threads_wait.c", "-pthread")

    def fill(part):
        mperfctl(build, "record", "-o", part / "r", "--", "sh", "-c", 'sh -c "$2" sh "$1" & "$0" lock 3; wait', program,
                 HOSTILE, WORK)
        mperfctl(build, "flamegraph", "-i", part / "r", "-o", part / "page.html")
    folder = once_in_a_run(build, f"waits-{build.name}", fill)
    return folder / "r", folder / "page.html"


def buttons(text):
    """{view: (title, pressed, disabled, label, whole)}"""
    found = {}
    for name, title, pressed, off, inner in re.findall(
            r'<button type="button" data-button="(\w+)" title="([^"]*)" aria-pressed="(\w+)"( disabled)?>(.*?)</button>',
            text):
        label, _, whole = inner.partition(" <small>")
        found[name] = (html.unescape(title), pressed == "true", bool(off), html.unescape(label),
                       html.unescape(whole.removesuffix("</small>")))
    return found


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="views"[^>]*>(.*?)</script>', text, re.S)[1])


def shares_of_data(data, view):
    """{names from the root's callers on: share of the whole}"""
    paths, shares = [], defaultdict(float)
    for parent, _, width, _, label, _, _ in data["views"][view]:
        paths.append(paths[parent] + (data["strings"][label].replace(";", ":"),) if paths else ())
        shares[paths[-1]] += width / 1200
    return shares


def folded(build, path, *arguments):
    """{names: value} with the values of callees, and the whole."""
    sums = defaultdict(int)
    for line in mperfctl(build, "flamegraph", "--folded", "-i", path, *arguments).stdout.splitlines():
        stack, _, value = line.rpartition(" ")
        names = tuple(stack.split(";"))
        for n in range(len(names) + 1):
            sums[names[:n]] += int(value)
    return sums


def read(file):
    return Path(file).read_text(encoding="utf-8")


def test_each_view_is_the_flame_graph_of_its_event(build):
    path, page = waits(build)
    text = read(page)
    data = data_of(text)
    there = {name for name, (_, _, off, _, _) in buttons(text).items() if not off}
    assert {"cpu", "waiting", "wall"} <= there and set(data["views"]) == there - {"cpu"}, there
    for view in data["views"]:
        shares, sums = shares_of_data(data, view), folded(build, path, *OF_VIEW[view])
        kinds = {names for names in shares if names and names[-1].startswith("waiting:")}
        assert bool(kinds) == (view in ("waiting", "ready")), (view, kinds)
        for names, share in shares.items():
            if names not in kinds:
                assert abs(share - sums[names] / sums[()]) < 1e-5, (view, names, share, sums[names] / sums[()])
        if kinds:  # each sample has one
            assert abs(sum(shares[names] for names in kinds) - 1) < 0.01, (view, kinds)
        number, unit = buttons(text)[view][4].split()
        assert abs(float(number.replace(",", "")) * UNITS[unit] / sums[()] - 1) < 0.006, (view, buttons(text)[view], sums[()])
    lock = [names for names in shares_of_data(data, "waiting") if names[-1:] == ("waiting:lock",)]
    assert any("threads_wait" in names[0] for names in lock), lock
    assert "; sampled every" not in text and re.search(r'<span data-view="waiting" hidden>waiting:.*?, sampled every', text)
    assert "at least one hart worked for" in text


def test_options_choose_the_view_that_is_first(build):
    path, _ = waits(build)
    with Folder() as folder:
        for arguments, first in ([], "cpu"), (["--wall"], "wall"), (["-e", "waiting"], "waiting"), \
                (["--event", "off-cpu"], "waiting"):
            mperfctl(build, "flamegraph", "-i", path, "-f", "-o", folder / "x.html", *arguments)
            text = read(folder / "x.html")
            pressed = [name for name, (_, is_pressed, _, _, _) in buttons(text).items() if is_pressed]
            assert pressed == [first] and f'data-first="{first}"' in text, (arguments, pressed)
            assert first not in data_of(text)["views"] and {"cpu", "waiting", "wall"} - {first} <= set(data_of(text)["views"])
            assert (first == "waiting") == ("<title>waiting:lock" in text), arguments


def test_what_has_one_picture_is_as_it_was(build):
    path, _ = waits(build)
    with Folder() as folder:
        for name, *arguments in (("x.html", "-e", "waiting:lock"), ("x.html", "--event", "cpu-clock"),
                                 ("x.html", "--diff", path), ("x.svg",), ("x.svg", "-e", "waiting"), ("x.svg", "--wall")):
            mperfctl(build, "flamegraph", "-i", path, "-f", "-o", folder / name, *arguments)
            text = read(folder / name)
            assert "data-button=" not in text and "application/json" not in text, (name, arguments)
            assert "<title>waiting:lock" not in text, (name, arguments)
    assert not any(names and names[-1].startswith("waiting:") for names in folded(build, path, "--event", "waiting"))


def test_what_the_source_lacks_is_left_out_with_its_reason(build):
    with Folder() as folder:
        mperfctl(build, "record", "-e", "page-faults", "-c", "1", "-o", folder / "r", "--", known(build), "pages", "500",
                 "100")
        mperfctl(build, "flamegraph", "-i", folder / "r", "-o", folder / "x.html")
        text = read(folder / "x.html")
        found = buttons(text)
        assert found["cpu"][3] == "page-faults" and not found["cpu"][2], found
        for name, why in ("waiting", "no samples of waiting threads"), ("ready", "no samples of waiting threads"), \
                ("wall", "stand for occurrences"):
            assert found[name][2] and why in found[name][0] and found[name][4] == "", found[name]
        assert "Left out: Waiting, Waiting for a CPU (" in text and data_of(text)["views"] == {}, text[-2000:]
        # what is asked for by name must be there
        fails(build, 1, ["no samples of waiting"], "flamegraph", "-i", folder / "r", "-e", "waiting", "-o", folder / "y.html")
        fails(build, 1, ["stand for occurrences"], "flamegraph", "-i", folder / "r", "--wall", "-o", folder / "y.html")


def test_a_command_is_run_once_for_all_views(build):
    with Folder() as folder:
        mperfctl(build, "flamegraph", "-o", folder / "x.html", "--", "sh", "-c",
                 f"echo run >> {folder}/runs; {known(build)} spin 300 > /dev/null; sleep 0.5")
        assert read(folder / "runs") == "run\n" and sorted(os.listdir(folder)) == ["runs", "x.html"], os.listdir(folder)
        found = buttons(read(folder / "x.html"))
    assert not found["cpu"][2] and not found["waiting"][2] and not found["wall"][2], found


def test_a_guess_of_wall_time_is_shown_only_if_asked_for(build):
    need_root()
    with Folder() as folder, Service(build, folder, flush="1s", rate=499) as service:
        service.ctl("job", "run", "w", "--", known(build), "spin", "1500")

        def page(*arguments):
            service.ctl("flamegraph", "--since", "-5m", "-f", "-o", folder / "x.html", *arguments)
            return read(folder / "x.html")
        text = wait_until("the store has samples", lambda: (lambda t: t if "There are no samples" not in t else None)(page()))
        found = buttons(text)
        assert found["wall"][2] and "--wall shows a guess" in found["wall"][0], found
        text = page("--wall")
        assert not buttons(text)["wall"][2] and "at least one hart worked" in text, buttons(text)


# --- in a browser --------------------------------------------------------------------------------

BOX = "Array.from(document.querySelectorAll('main g.f')).filter(g => g.style.display !== 'none')"


def names_shown(browser):
    return browser.run(f"{BOX}.map(g => g.querySelector('title').textContent.split('\\n')[0])")


def width_of(browser, name):
    """Of the widest box with that name, as a share of the picture."""
    return browser.run(f"Math.max(0, ...{BOX}.filter(g => g.querySelector('title').textContent.startsWith("
                       f"{json.dumps(name)} + '\\n')).map(g => g.querySelector('rect').width.baseVal.value)) / "
                       "document.querySelector('main svg').viewBox.baseVal.width")


def click_box(browser, name):
    browser.run(f"{BOX}.find(g => g.querySelector('title').textContent.startsWith({json.dumps(name)} + '\\n'))"
                ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")


def words_shown(browser):
    return browser.run("Array.from(document.querySelectorAll('[data-view]')).filter(w => !w.hidden).map(w => w.dataset.view)")


def pressed(browser):
    return browser.run("document.querySelector('[data-button][aria-pressed=true]').dataset.button")


def test_the_switch_shows_each_view(build):
    _, page = waits(build)
    data = data_of(read(page))
    with Browser() as browser:
        browser.open(page)
        assert pressed(browser) == "cpu" and "threads_wait" in names_shown(browser)
        for view in [*data["views"], "cpu"]:
            browser.run(f"document.querySelector('[data-button={view}]').click()")
            assert pressed(browser) == view and set(words_shown(browser)) == {view}, (view, words_shown(browser))
            assert browser.run("location.hash") == f"#view={view}"
            if view != "cpu":
                shown = browser.run("document.querySelectorAll('main g.f').length")
                assert shown == len(data["views"][view]), (view, shown)
                shares = shares_of_data(data, view)
                for names in ("threads_wait",), ("threads_wait", "clone3"):
                    if len([n for n in shares if n and n[-1] == names[-1]]) == 1:  # else another box is meant
                        assert abs(width_of(browser, names[-1]) - shares[names]) < 0.005, (view, names)
            if view in ("cpu", "wall"):  # a name is text
                assert HOSTILE in names_shown(browser), (view, names_shown(browser))
        assert browser.run("document.querySelectorAll('main b, main script').length") == 0
        assert browser.errors == [] and [url for url in browser.asked if not url.startswith(f"file://{page}")] == [], \
            (browser.errors, browser.asked)


def test_keys_reach_the_switch(build):
    _, page = waits(build)
    with Browser() as browser:
        browser.open(page)
        for _ in range(20):
            browser.press("Tab")
            if browser.run("document.activeElement.dataset.button") == "waiting":
                break
        browser.press("Enter", "\r")
        assert pressed(browser) == "waiting"
        assert browser.run("document.activeElement.dataset.button") == "waiting"


def test_zoom_and_search_are_kept_across_views_and_in_the_address(build):
    _, page = waits(build)
    with Browser() as browser:
        browser.open(page, "view=waiting")
        assert pressed(browser) == "waiting"
        click_box(browser, "threads_wait")
        browser.run("document.querySelector('[data-find=\"^waiting:lock$\"]').click()")
        matched = browser.run("document.getElementById('matched').textContent")
        assert "matched" in matched and float(matched.split()[0]) > 10, matched
        address = browser.run("location.hash")
        assert "view=waiting" in address and "at=" in address and "find=" in address, address
        sh = width_of(browser, "sh")
        browser.run("document.querySelector('[data-button=cpu]').click()")
        assert abs(width_of(browser, "threads_wait") - 1) < 0.01 and width_of(browser, "sh") == 0 == sh
        assert browser.run("document.getElementById('search').value") == "^waiting:lock$"
        browser.run("document.querySelector('[data-button=waiting]').click()")
        assert browser.run("location.hash") == address
        # somebody else opens that address
        browser.open(page, address[1:])
        assert pressed(browser) == "waiting" and abs(width_of(browser, "threads_wait") - 1) < 0.01
        assert browser.run("document.getElementById('matched').textContent") == matched
        browser.open(page, "view=__proto__&at=nothing&without=x,y&find=%5B")
        assert pressed(browser) == "cpu" and browser.errors == [], browser.errors


def test_a_zoom_that_another_view_lacks_stops_at_the_last_caller_that_it_has(build):
    _, page = waits(build)
    with Browser() as browser:
        browser.open(page, "view=waiting")
        click_box(browser, "waiting:lock")
        address = browser.run("location.hash")
        browser.run("document.querySelector('[data-button=cpu]').click()")
        assert abs(width_of(browser, "threads_wait") - 1) < 0.01 and width_of(browser, "sh") == 0, names_shown(browser)
        browser.run("document.querySelector('[data-button=waiting]').click()")
        assert browser.run("location.hash") == address
        assert abs(width_of(browser, "waiting:lock") - 1) < 0.01


def test_boxes_left_out_give_their_width_to_the_others(build):
    _, page = waits(build)
    with Browser() as browser:
        browser.open(page, "view=waiting")
        program, sh = width_of(browser, "threads_wait"), width_of(browser, "sh")
        assert browser.run("document.getElementById('omit').disabled")
        click_box(browser, "sh")
        browser.run("document.getElementById('omit').click()")
        assert width_of(browser, "sh") == 0
        assert abs(width_of(browser, "threads_wait") - program / (1 - sh)) < 0.02, (program, sh, width_of(browser, "threads_wait"))
        said = browser.run("document.getElementById('matched').textContent")
        assert abs(float(said.split()[0]) / 100 - sh) < 0.02 and "left out" in said, (said, sh)
        browser.open(page, browser.run("location.hash")[1:])
        assert width_of(browser, "sh") == 0
        browser.run("document.getElementById('reset').click()")
        assert abs(width_of(browser, "sh") - sh) < 0.01 and abs(width_of(browser, "threads_wait") - program) < 0.01


def test_without_a_script_the_first_view_is_a_picture(build):
    path, _ = waits(build)
    with Folder() as folder, Browser() as browser:
        mperfctl(build, "flamegraph", "-i", path, "-e", "waiting", "-o", folder / "x.html")
        browser.open(folder / "x.html", script=False)
        assert "waiting:lock" in names_shown(browser)
        assert set(words_shown(browser)) == {"waiting"}
        assert browser.run("getComputedStyle(document.querySelector('.views')).display") == "none"


def test_a_page_fits_a_narrow_screen_and_paper(build):
    _, page = waits(build)
    with Browser(width=390, height=844) as browser:
        for view in "cpu", "waiting", "wall":
            browser.open(page, f"view={view}")
            assert browser.run("document.documentElement.scrollWidth") <= 390, view
            # the buttons can be seen, and leave room for boxes
            top, end = browser.run("(r => [r.top, document.querySelector('header').getBoundingClientRect().bottom])"
                                   "(document.querySelector('.views').getBoundingClientRect())")
            assert top >= 0 and end < 500, (view, top, end)
        browser.look(800, 1000, medium="print")
        assert browser.run("getComputedStyle(document.querySelector('.views')).display") == "none"
