# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that come later: a debug file is installed beside a running service, after samples were stored, and after a
recording was made."""
import contextlib
import gzip
import http.server
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

from machine import (SOURCES, Folder, as_nobody, everybodys, mperfctl, need_program, need_root,
                     plain_build, rows)
from service import Service, wait_until

SECONDS = 60
LEAVE_TO_PLAIN = "namer, query and naming run with sanitizers in unit tests and in test_names"
DEBUG = Path("/usr/lib/debug/.build-id")
NAME = "secret_recipe"


class Program:
    """A program without symbols, with a build id of its own, and its debug file, which is not installed yet."""

    def __init__(self, folder, name="bare"):
        need_root()
        need_program("objcopy")
        self.path, self.debug, self.id = folder / name, folder / f"{name}.debug", secrets.token_hex(20)
        self.compile(self.path, self.id)
        subprocess.run(["objcopy", "--only-keep-debug", self.path, self.debug], check=True)
        subprocess.run(["objcopy", "--strip-all", self.path], check=True)
        os.chmod(self.path, 0o755)

    def compile(self, path, build_id):
        subprocess.run(["cc", "-g", "-O2", "-fno-omit-frame-pointer", f"-Wl,--build-id=0x{build_id}", "-o", path,
                        SOURCES / "secret.c"], check=True)

    @contextlib.contextmanager
    def installed(self, debug=None, mode=0o644):
        """As dpkg does: written beside, and renamed."""
        place = DEBUG / self.id[:2] / f"{self.id[2:]}.debug"
        made = [p for p in (place.parent, *place.parent.parents) if not p.exists()]
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(".dpkg-new")
        try:
            shutil.copy(debug or self.debug, part)
            os.chmod(part, mode)
            part.rename(place)
            yield
        finally:
            place.unlink(missing_ok=True)
            part.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()


def share(found, program):
    """Of the program's own samples, those with its function's name."""
    own = [r for r in found if r["module"] == str(program.path)]
    return sum(r["self"] for r in own if r["function"] == NAME) / (sum(r["self"] for r in own) or 1) if own else None


def kept(service, program):
    return share(service.ask("hotspots", "--since", "-5m", "--limit", "0")["rows"], program)


def is_unnamed(service, program):
    """The program was sampled, and has no names."""
    return kept(service, program) == 0


def stored_names(service):
    """Names in the file that is being written, not those that a question adds."""
    path = max(service.store.glob("window/*.mprf"), key=lambda p: p.stat().st_mtime)
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {row[0] for row in db.execute("SELECT name FROM function")}


def test_a_running_service_names_what_it_samples_when_the_debug_file_comes(build):
    with Folder() as folder:
        program = Program(folder)
        with Service(build, folder, flush="1s", rate="499") as service:
            run = subprocess.Popen([program.path, "600000"])
            try:
                wait_until("it is sampled", lambda: is_unnamed(service, program))
                assert NAME not in stored_names(service)
                with program.installed():
                    wait_until("it is named in what is written", lambda: NAME in stored_names(service))
                    wait_until("all of it is named", lambda: kept(service, program) > 0.95)
                # the names are the service's own now
                assert kept(service, program) > 0.95
            finally:
                run.kill()
                run.wait()


def test_a_reload_looks_for_debug_files_beside_a_program(build):
    with Folder() as folder:
        program = Program(folder)
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id",
                        f"--add-gnu-debuglink={program.debug}", program.path], check=True)
        hidden = program.debug.rename(folder / "hidden")
        with Service(build, folder, flush="1s", rate="499") as service:
            run = subprocess.Popen([program.path, "600000"])
            try:
                wait_until("it is sampled", lambda: is_unnamed(service, program))
                hidden.rename(program.debug)
                service.process.send_signal(signal.SIGHUP)
                wait_until("it is named", lambda: (kept(service, program) or 0) > 0)
            finally:
                run.kill()
                run.wait()


def test_stored_samples_are_named_by_a_debug_file_that_came_since(build):
    with Folder() as folder:
        program = Program(folder)
        with Service(build, folder, flush="1s", rate="499") as service:
            subprocess.run([program.path, "1000"], check=True)
            wait_until("it is stored", lambda: is_unnamed(service, program))
            assert service.stop() == 0
            service.start()
            assert is_unnamed(service, program)
            with program.installed():
                assert kept(service, program) > 0.95
            assert is_unnamed(service, program)


def test_a_recording_is_named_by_what_the_machine_knows_now(build):
    with Folder() as folder:
        os.chmod(folder, 0o755)
        program, recording = Program(folder), folder / "r.mprf"
        mperfctl(build, "record", "-F", "499", "-o", recording, "--", program.path, "1000")
        os.chmod(recording, 0o644)
        before = recording.read_bytes()
        nobody = everybodys(plain_build(build), folder)

        def found(*more):
            return rows(build, "hotspots", "-i", recording, "--limit", "0", *more)["rows"]

        assert share(found(), program) == 0
        with program.installed():
            assert share(found(), program) > 0.95
            assert any(str(r["source"]).endswith("/secret.c") for r in found("--by", "line"))
            for command in ("flamegraph", "--folded"), ("export", "--as", "perf-script"):
                done = mperfctl(build, command[0], "-i", recording, *command[1:], "-o", "-")
                assert NAME in done.stdout, done.stdout[:500]
            done = as_nobody(folder, nobody, "hotspots", "-i", recording)
            assert NAME in done.stdout, done.stdout + done.stderr
        with program.installed(mode=0o600):  # whoever may not read it learns nothing of it
            done = as_nobody(folder, nobody, "hotspots", "-i", recording)
            assert done.returncode == 0 and NAME not in done.stdout, done.stdout
        other = Program(folder, "other")
        with program.installed(debug=other.debug):  # another build's
            assert share(found(), program) == 0
        assert recording.read_bytes() == before


def test_doctor_and_tables_name_the_package_that_has_the_symbols(build):
    """By dpkg's own lists; what no package owns has none."""
    need_root()
    need_program("dpkg")
    need_program("xz")
    owner = subprocess.run(["dpkg", "-S", "liblzma.so.5"], capture_output=True, text=True).stdout.split(":")[0]
    with Folder() as folder:
        program, recording = Program(folder), folder / "r.mprf"
        mperfctl(build, "record", "-F", "499", "-o", recording, "--", "sh", "-c",
                 f"{program.path} 1000; head -c 3000000 /dev/urandom | xz -9 -T1 > /dev/null")
        said = mperfctl(build, "doctor", "-i", recording, check=False).stdout
        assert f"`apt install {owner}-dbg" in said, said
        own = [line for line in said.splitlines() if str(program.path)[-20:] in line]
        assert own and not any("apt install" in line for line in own), said
        table = mperfctl(build, "hotspots", "-i", recording, "--comm", "xz").stdout
        assert f"`apt install {owner}-dbg" in table.splitlines()[-1], table
        assert "apt install" not in mperfctl(build, "hotspots", "-i", recording, "--comm", program.path.name).stdout


@contextlib.contextmanager
def debuginfod(folder, files):
    """Debian's server over the debug files in a folder: its URL."""
    need_program("debuginfod")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(["debuginfod", "-F", "-d", folder / "server.db", "-p", str(port), "-t", "1", files],
                                  stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def test_a_recording_is_named_by_a_debuginfod_server(build):
    with Folder() as folder:
        os.chmod(folder, 0o755)
        (folder / "files").mkdir()
        program, recording = Program(folder), folder / "r.mprf"
        program.debug.rename(folder / "files" / "bare.debug")
        mperfctl(build, "record", "-F", "499", "-o", recording, "--", program.path, "1000")
        os.chmod(recording, 0o644)
        nobody = everybodys(plain_build(build), folder)

        def names(url, cache):
            asked = {**nobody, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(folder / "tmp" / cache)}
            done = as_nobody(folder, asked, "hotspots", "-i", recording)
            assert done.returncode == 0, done.stderr
            return NAME in done.stdout

        with debuginfod(folder, folder / "files") as url:
            count = iter(range(1000))  # a server that has not read all yet is remembered to have nothing
            wait_until("the server has it", lambda: names(url, f"cache-{next(count)}"))
            kept = f"cache-{next(count)}"
            assert names(url, kept)
            assert not names("", "no")
        assert names(url, kept)  # the server is gone, the cache is not
        # a cache with another build's file gives no names
        place, = (folder / "tmp" / kept / program.id).glob("debuginfo")
        place.chmod(0o644)
        shutil.copy(Program(folder, "other").debug, place)
        assert not names(url, kept)


NOBODY = 65534


@contextlib.contextmanager
def fetcher(service, at):
    """What mperf-debuginfod.service starts, as a user who may do nothing, with the socket that systemd makes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(at))
        listening.listen()
        process = subprocess.Popen(
            ["bash", "-c",  # sh knows descriptors of one digit alone
             f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&{listening.fileno()}', "sh",
             plain_build(service.build) / "mperfd", "--fetch-debug", f"--config={service.config}"],
            pass_fds=[listening.fileno()], user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_service_is_named_by_a_debuginfod_server(build):
    with Folder() as folder:
        os.chmod(folder, 0o755)
        (folder / "files").mkdir()
        (folder / "cache").mkdir()
        os.chown(folder / "cache", NOBODY, NOBODY)
        program, at = Program(folder), folder / "fetch"
        program.debug.rename(folder / "files" / "bare.debug")
        with debuginfod(folder, folder / "files") as url:
            wait_until("the server has it", lambda: answers(f"{url}/buildid/{program.id}/debuginfo"))
            with Service(build, folder, flush="1s", rate="499", debuginfod=url, debuginfod_socket=at,
                         debuginfod_cache=folder / "cache") as service, fetcher(service, at) as process:
                run = subprocess.Popen([program.path, "600000"])
                try:
                    wait_until("it is named in what is written", lambda: NAME in stored_names(service))
                    # what was stored before is named by the cache
                    wait_until("all of it is named", lambda: (kept(service, program) or 0) > 0.95)
                finally:
                    run.kill()
                    run.wait()
                assert process.poll() is None and "debug symbols of servers" not in service.said()
        place = folder / "cache" / program.id / "debuginfo"
        assert place.stat().st_uid == NOBODY and place.stat().st_mode & 0o777 == 0o644


def answers(url):
    with contextlib.suppress(urllib.error.URLError):
        return urllib.request.urlopen(url, timeout=5).status == 200
    return False


def test_a_service_whose_fetcher_is_away_says_so_and_goes_on(build):
    with Folder() as folder:
        program = Program(folder)
        with Service(build, folder, flush="1s", rate="499", debuginfod="http://127.0.0.1:1",
                     debuginfod_socket=folder / "nobody") as service:
            run = subprocess.Popen([program.path, "600000"])
            try:
                wait_until("it is said", lambda: f"nothing answers at {folder / 'nobody'}" in service.said())
                wait_until("it is sampled", lambda: is_unnamed(service, program))
            finally:
                run.kill()
                run.wait()
            assert service.said().count("nothing answers") == 1


class Hostile(http.server.BaseHTTPRequestHandler):
    """What a server may send: its name says what it does with all that is asked for."""

    def do_GET(self):  # noqa: N802
        getattr(self, self.path.split("/")[1])()

    def log_message(self, *_):
        pass

    def missing(self):
        self.send_error(404)

    def broken(self):
        self.send_error(503)

    def endless(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 20))

    def packed(self):
        """A megabyte that unpacks to a gigabyte, with its length."""
        body = gzip.compress(bytes(1 << 30), 9)
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)


HAVE, NONE, LATER, OVER = 1, 2, 3, 4


def test_a_fetcher_with_a_broken_configuration_asks_nobody(build):
    """If it ended, systemd would start it for who waits, until it is started too often."""
    need_root()
    with Folder() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        os.chmod(folder, 0o755)
        service, at = Service(build, folder, debuginfod="http://127.0.0.1:1"), folder / "at"
        service.write_config()
        with open(service.config, "a") as config:
            config.write("raet = 5\n")
        with fetcher(service, at) as process:
            client.connect(str(at))
            client.settimeout(SECONDS)
            client.send(secrets.token_bytes(20))
            answer, = client.recv(1)
            assert answer == OVER
            assert process.poll() is None


def test_what_a_hostile_server_sends_is_bounded(build):
    need_root()
    with Folder() as folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.chmod(folder, 0o755)
        url = f"http://127.0.0.1:{server.server_port}"

        def asked(urls):
            """The answer about one file, and the bytes that are left in a cache of 40 MB."""
            cache, at = folder / f"cache-{secrets.token_hex(4)}", folder / f"at-{secrets.token_hex(4)}"
            cache.mkdir()
            os.chown(cache, NOBODY, NOBODY)
            service = Service(build, folder, debuginfod=urls, debuginfod_cache=cache, debuginfod_cache_bytes="40M")
            service.write_config()
            with fetcher(service, at), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(str(at))
                client.settimeout(SECONDS)
                client.send(secrets.token_bytes(20))
                answer, = client.recv(1)
                return answer, sum(p.stat().st_size for p in cache.rglob("debuginfo*"))

        assert asked("http://127.0.0.1:1")[0] == LATER  # nobody listens there
        assert asked("none")[0] == OVER
        assert asked(f"{url}/missing")[0] == NONE
        for path in "broken", "endless", "packed":
            answer, left = asked(f"{url}/{path}")
            assert answer in (LATER, NONE) and left == 0, (path, answer, left)
        server.shutdown()
