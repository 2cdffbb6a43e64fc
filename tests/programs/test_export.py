# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mperfctl exports, read by the tools that it is for: Google's pprof from Debian's sources, speedscope
from npm in a headless Chromium, the Firefox Profiler's own command line from npm. They must show a function
with the share that hotspots reports."""
import functools
import html
import http.server
import json
import os
import re
import subprocess
import threading

from machine import Folder, Skip, mperfctl, need_program
from recorded import answer, recording

PPROF = "github.com/google/pprof"
# Fixed: what newer ones read or refuse may differ, and should be looked at first.
SPEEDSCOPE, PROFILER_CLI = "speedscope@1.25.0", "@firefox-devtools/profiler-cli@0.10.0"
COMMAND_SECONDS = 600  # Go's compiler on a busy machine


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace",
                          timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def export(build, form, path):
    mperfctl(build, "export", "--as", form, "-i", recording(build).path, "-o", path)
    return path


def shares(build, *filters):
    """Self time of each function over all, from hotspots."""
    found = answer(build, "--inlined", *filters)["rows"]
    total = sum(r["self_ns"] for r in found)
    by_function = {}
    for r in found:
        by_function[r["function"]] = by_function.get(r["function"], 0) + r["self_ns"] / total
    return by_function


# --- pprof ----------------------------------------------------------------------------------------

@functools.cache
def google_pprof(build):
    need_program("go")
    if not os.path.isdir(f"/usr/share/gocode/src/{PPROF}"):
        raise Skip("needs the Debian package golang-github-google-pprof-dev")
    target = build / "programs" / "pprof"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        run("go", "build", "-o", target, PPROF,
            env=dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode",
                     GOCACHE=str(build / "programs" / "go")))
    return target


def top(build, path, *options):
    """Share of each function, flat."""
    said = run(google_pprof(build), "-top", "-nodecount=10000", "-nodefraction=0", *options, path)
    found = {}
    for line in said.splitlines():
        row = re.match(r" *\S+ +([\d.]+)% +[\d.]+% +\S+ +[\d.]+% +(.*?)( \(inline\)| \(partial-inline\))?$", line)
        if row:
            found[row[2]] = found.get(row[2], 0) + float(row[1]) / 100
    return said, found


def test_pprof_shows_the_shares_of_hotspots(build):
    with Folder() as folder:
        path = export(build, "pprof", folder / "p.pb.gz")
        said, found = top(build, path)
        assert "Type: cpu" in said and "File: known" in said, said[:500]
        assert abs(found["spin"] - shares(build)["spin"]) < 0.001, (found, shares(build)["spin"])
        _, other = top(build, path, "-tagfocus=process=^other$")
        wanted = shares(build, "--comm", "other")["spin"] * \
            sum(r["self_ns"] for r in answer(build, "--comm", "other")["rows"]) / \
            sum(r["self_ns"] for r in answer(build)["rows"])
        assert abs(other["spin"] - wanted) < 0.002, (other, wanted)
        listed = run(google_pprof(build), "-list=^spin$", path)
        assert "known.c" in listed, listed[:500]
        said, faults = top(build, export_event(build, "page-faults", folder / "f.pb.gz"))
        assert "Type: page-faults" in said and faults["touch_pages"] > 0.5, said[:500]


def export_event(build, event, path):
    mperfctl(build, "export", "--as", "pprof", "--event", event, "-i", recording(build).path, "-o", path)
    return path


# --- from npm -------------------------------------------------------------------------------------

@functools.cache
def from_npm(build, package):
    """The folder of the package."""
    need_program("npm")
    need_program("node")
    folder = build / "programs" / "npm"
    name = package[:package.rindex("@")]
    place = folder / "node_modules" / name
    version = package[package.rindex("@") + 1:]
    if not place.is_dir() or json.loads((place / "package.json").read_text())["version"] != version:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund",
                               package], capture_output=True, text=True, timeout=COMMAND_SECONDS)
        if done.returncode != 0:
            raise Skip(f"npm does not install {package}: {done.stderr.strip()[-200:]}")
    return place


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_speedscope_shows_the_shares_of_hotspots(build):
    chromium = need_program("chromium")
    release = from_npm(build, SPEEDSCOPE) / "dist" / "release"
    with Folder() as folder:
        os.symlink(release, folder / "speedscope")
        export(build, "speedscope", folder / "profile.json")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            at = f"http://127.0.0.1:{server.server_port}"
            page = run(chromium, "--headless", "--no-sandbox", "--use-gl=swiftshader", "--enable-webgl",
                       "--ignore-gpu-blocklist", "--enable-unsafe-swiftshader", f"--user-data-dir={folder}/chromium",
                       "--window-size=1200,900", "--virtual-time-budget=20000", "--dump-dom",
                       f"{at}/speedscope/index.html#profileURL={at}/profile.json&view=sandwich")
        finally:
            server.shutdown()
            server.server_close()
    title = re.search(r"known \d+/\d+", page)
    assert title, page[-2000:]
    # A row of the table: total, self, name; of the thread with the most time.
    rows = re.findall(r"<tr[^>]*><td[^>]*>[^<]*\(([^)]*)%\).*?</td><td[^>]*>[^<]*\(([^)]*)%\).*?</td>"
                      r"<td title=\"([^\"]*)\"[^>]*>(?:<span[^>]*></span>)?([^<]*)</td>", page)
    # >99 % and <0.01 % are as exact as it says them
    found = {html.unescape(name): float(html.unescape(own).strip("<>")) / 100 for _, own, _, name in rows}
    pid = int(title[0].split()[1].split("/")[0])
    wanted = shares(build, "--pid", pid)
    assert abs(found["spin"] - wanted["spin"]) < 0.01, (found, wanted["spin"])


def load(cli, path, environment):
    """It waits half a second for its daemon to start, which is too short on a busy machine."""
    for _ in range(20):
        done = subprocess.run(["node", cli, "load", path], env=environment, capture_output=True, text=True,
                              timeout=COMMAND_SECONDS)
        if done.returncode == 0:
            return
        assert "did not become ready" in done.stderr, done
    raise Skip("this machine is too busy for profiler-cli to start")


def test_the_firefox_profiler_shows_the_shares_of_hotspots(build):
    cli = from_npm(build, PROFILER_CLI) / "dist" / "profiler-cli.js"
    with Folder() as folder:
        export(build, "firefox", folder / "profile.json")
        environment = dict(os.environ, HOME=str(folder), PROFILER_CLI_SESSION_DIR=str(folder))
        try:
            load(cli, folder / "profile.json", environment)
            threads = run("node", cli, "profile", "info", "--all", env=environment)
            handle = re.search(r"(t-\d+): known \[tid (\d+)\] - ([\d.]+)", threads)
            assert handle, threads
            run("node", cli, "thread", "select", handle[1], env=environment)
            functions = run("node", cli, "thread", "functions", env=environment)
        finally:
            subprocess.run(["node", cli, "stop", "--all"], env=environment, capture_output=True, timeout=60)
    row = re.search(r"!spin - self: \S+ \(([\d.]+)%\)|!spin.*?self: [\d.]+ms \(([\d.]+)%\)|"
                    r"([\d.]+)%[^\n]*!spin", functions)
    assert row, functions[:2000]
    share = float(next(g for g in row.groups() if g)) / 100
    wanted = shares(build, "--pid", handle[2])["spin"]
    assert abs(share - wanted) < 0.02, (share, wanted, functions[:1000])
