# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses, limits, hostile names and missing rights: each is told, and nothing breaks."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as xml
from pathlib import Path

from machine import (BAD_WORDS, NOBODY, Folder, Skip, as_nobody, compile_program, everybodys, mperfctl,
                     need_program, need_root, refused, rows)
from wire import BYTES, CANCEL, DONE, FAILURE, FINISH, LIST, READY, RECORD, Private, field, frame, hello

NAME = "\x1b[31mred<b>&\""  # of hostile.c
SYMBOL = "<script>alert(1)</script>"


def known(build):
    return compile_program(build, "known.c")


def by(build, path, grouping, *more):
    return rows(build, "hotspots", "-i", path, "--by", grouping, "--limit", "0", *more)["rows"]


def share(found, **wanted):
    return sum(r["self"] for r in found if all(r[k] == v for k, v in wanted.items()))


# --- processes of a recording --------------------------------------------------------------------

def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def alive(pid):
    try:
        return not re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return False


def wait_until(condition, seconds, what):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Running:
    """A client at work, with its daemon and the daemon's workers."""

    def __init__(self, build, folder, *arguments):
        self.folder = folder
        environment = dict(os.environ, TMPDIR=str(folder / "tmp"), NO_COLOR="1", LC_ALL="C.UTF-8")
        environment.pop("MPERF_SOCKET", None)
        (folder / "tmp").mkdir()
        self.client = subprocess.Popen([build / "mperfctl", *map(str, arguments)], env=environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       errors="replace", cwd=folder)
        self.daemon = None
        try:
            wait_until(self.find, 20, "a private mperfd with its workers")
        except AssertionError:
            self.client.kill()
            raise

    def find(self):
        for pid in children(self.client.pid):
            if command_line(pid)[0].endswith("mperfd"):
                self.daemon = pid
        self.workers = {command_line(pid)[1]: pid for pid in children(self.daemon or 0)
                        if len(command_line(pid)) > 2}
        self.commands = [pid for pid in children(self.client.pid) if pid != self.daemon]
        return {"open", "parse"} <= set(self.workers) and \
            list((self.folder / "tmp").glob("mperf-*/segment.mprf"))

    def end(self):
        """CompletedProcess of the client."""
        out, said = self.client.communicate(timeout=30)
        return subprocess.CompletedProcess(self.client.args, self.client.returncode, out, said)

    def stop(self):
        """Whatever happened: nothing is left running."""
        for pid in [*self.commands, self.daemon]:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)
        self.client.kill()
        self.client.communicate()


@contextlib.contextmanager
def running(build, *arguments):
    with Folder() as folder:
        r = Running(build, folder, *arguments)
        try:
            yield r
        finally:
            r.stop()


@contextlib.contextmanager
def sysctl(name, value):
    """A kernel setting for a while; what it was comes back whatever happens."""
    path = Path("/proc/sys") / name.replace(".", "/")
    before = path.read_text()
    try:
        path.write_text(f"{value}\n")
    except OSError as error:
        raise Skip(f"{name} cannot be set here: {error.strerror}") from None
    try:
        yield
    finally:
        path.write_text(before)


@contextlib.contextmanager
def spinners(build, n, what="spin"):
    busy = [subprocess.Popen([known(build), what, "100000"], stdout=subprocess.DEVNULL)
            for _ in range(n)]
    try:
        yield [p.pid for p in busy]
    finally:
        for p in busy:
            p.kill()
            p.wait()


# --- hostile names -------------------------------------------------------------------------------

def shown(build, path, folder):
    """Everything that is ever shown of a recording: name of the form, text."""
    for grouping in "function", "module", "process", "thread", "line", "cgroup", "hart":
        for form in [], ["--raw"], ["--json"]:
            yield (f"{grouping} {form}",
                   mperfctl(build, "hotspots", "-i", path, "--by", grouping, *form).stdout)
    for name in "x.html", "x.svg":
        done = mperfctl(build, "flamegraph", "-i", path, "-o", folder / name)
        yield name + " stderr", done.stderr
        yield name, (folder / name).read_text(encoding="utf-8")
    yield "folded", mperfctl(build, "flamegraph", "-i", path, "--folded").stdout
    yield "doctor", mperfctl(build, "doctor", "-i", path).stdout


def check_text(form, text):
    controls = set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text))
    assert not controls, (form, controls)
    if form in ("x.html", "x.svg"):
        assert SYMBOL not in text and "<b>&" not in text and "<i>" not in text, form
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text, form


def test_names_of_programs_never_reach_a_terminal_or_a_page_unescaped(build):
    with Folder() as folder:
        inner = folder / "a\nb<i>"
        inner.mkdir()
        program = inner / "c\x1b[32m"
        shutil.copy(compile_program(build, "hostile.c"), program)
        stripped = inner / "stripped\x1b[33m"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        path = folder / "r\x1b[34m"
        done = mperfctl(build, "record", "-F", "999", "-o", path, "--", "sh", "-c",
                        '"$0" 300 "$2"; exec "$1" 300 "$2"', program, stripped, "\x1b]0;owned\x07<b>")
        check_text("record's stderr", done.stderr)
        by_name = dict(shown(build, path, folder))
        for form, text in by_name.items():
            check_text(form, text)
        xml.fromstring(by_name["x.svg"])
        drawing = re.search(r"<svg[^>]*id=\"flame\".*?</svg>", by_name["x.html"], re.S)
        xml.fromstring(drawing.group(0))
        # A line of a table is a line of an answer: the newline in the path made none.
        n_rows = len(json.loads(by_name["module ['--json']"])["rows"])
        assert len(by_name["module ['--raw']"].splitlines()) == n_rows + 1, by_name["module ['--raw']"]
        assert "\\x1b[31mred" in by_name["process []"], by_name["process []"]
        assert "\\x1b]0;owned\\x07" in by_name["process []"], by_name["process []"]
        assert "a\\x0ab<i>/stripped\\x1b[33m" in by_name["module []"], by_name["module []"]
        # JSON escapes, and gives back what was there.
        functions = json.loads(by_name["function ['--json']"])["rows"]
        assert share(functions, function=SYMBOL, module=str(program)) > 0.2, functions[:3]
        processes = json.loads(by_name["process ['--json']"])["rows"]
        assert share(processes, comm=NAME) > 0.8, processes
        assert any("\x1b]0;owned\x07<b>" in (r["argv"] or "") for r in processes), processes
        found = by(build, path, "process", "--comm", NAME)
        assert found and {r["comm"] for r in found} == {NAME}, found


def test_arguments_never_reach_a_terminal_or_a_page_unescaped(build):
    evil = "\x1b[31m</title><script>alert(2)</script>\n"
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", "true")
        for name in "x.html", "x.svg":
            mperfctl(build, "flamegraph", "-i", folder / "r", "--title", evil, "-o", folder / name)
            text = (folder / name).read_text()
            assert "<script>alert" not in text and "\x1b" not in text, name
            assert "&lt;script&gt;alert(2)" in text, name
        for arguments in ([evil], ["hotspots", "-i", evil], ["record", "--" + evil],
                          ["hotspots", "--by", evil], ["record", "-e", evil, "--", "true"],
                          ["stat", "--", evil], ["record", "-o", folder / "r2", "--", evil],
                          ["hotspots", "-i", folder / "r", "--event", evil],
                          ["record", "-o", f"/absent/{evil}", "--", "true"]):
            done = mperfctl(build, *arguments, check=False)
            assert done.returncode in (1, 2, 127), (arguments, done)
            check_text(arguments, done.stderr + done.stdout)
        done = mperfctl(build, "stat", "--", "sh", "-c", "exit 0", evil)
        check_text("stat", done.stderr)


CGROUP_SCRIPT = """
mount -t cgroup2 none /sys/fs/cgroup || exit 77
mkdir "/sys/fs/cgroup/$1" || exit 77
"$2" record -F 999 -o r -- sh -c 'echo $$ > "/sys/fs/cgroup/$0/cgroup.procs" && exec "$1" spin 300' \
	"$1" "$3"
status=$?
rmdir "/sys/fs/cgroup/$1"
exit $status
"""


def test_names_of_cgroups_never_reach_a_terminal_unescaped(build):
    need_root()
    need_program("unshare")
    name = f"mperf-test-{os.getpid()}-\x1b[31m<b>"
    with Folder() as folder:
        # Mounted where it belongs, but for us alone: the machine may use the older kind.
        done = subprocess.run(["unshare", "--mount", "sh", "-c", CGROUP_SCRIPT, "sh", name,
                               build / "mperfctl", known(build)], cwd=folder, text=True,
                              capture_output=True, timeout=60)
        if done.returncode == 77:
            raise Skip("no cgroup can be made here")
        assert done.returncode == 0, done
        text = mperfctl(build, "hotspots", "-i", folder / "r", "--by", "cgroup").stdout
        check_text("cgroup", text)
        found = by(build, folder / "r", "cgroup")
    assert share(found, cgroup="/" + name) > 0.8, found
    assert "-\\x1b[31m<b>" in text, text


# --- losses --------------------------------------------------------------------------------------

def overrun(build, last_seconds):
    """Record while mperfd sleeps so long that every ring is full; what hotspots says of it."""
    need_root()
    # With so many callers a ring is full in less than a second, but where others run besides.
    for asleep_seconds in (2, 8, 20):
        provenance, lost, text = overrun_of(build, asleep_seconds, last_seconds)
        if lost > 1000:
            break
    assert provenance["samples"] > 1000, provenance
    # What fired while nobody looked is either there or counted.
    assert lost > 1000, provenance
    fired = 9999 * os.cpu_count() * provenance["seconds"]
    assert provenance["samples"] + lost > 0.85 * fired, (fired, provenance)
    assert re.search(r"lost: .*(ring overrun|samples lost by the kernel) \([\d,]+\)", text), text


def overrun_of(build, asleep_seconds, last_seconds):
    with spinners(build, os.cpu_count(), "deep"), \
            running(build, "record", "-F", "9999", "-a", "-o", "r") as r:
        time.sleep(0.6)  # until it counts
        os.kill(r.daemon, signal.SIGSTOP)
        time.sleep(asleep_seconds)
        if last_seconds == 0:
            r.client.send_signal(signal.SIGINT)
            time.sleep(0.2)
        os.kill(r.daemon, signal.SIGCONT)
        time.sleep(last_seconds)
        if last_seconds > 0:
            r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        provenance = rows(build, "hotspots", "-i", r.folder / "r", "--by", "process")["provenance"]
        text = mperfctl(build, "hotspots", "-i", r.folder / "r").stdout
    lost = provenance["lost"].get("ring overrun", 0) + \
        provenance["lost"].get("samples lost by the kernel", 0)
    return provenance, lost, text


def test_samples_that_found_the_ring_full_are_counted_and_shown(build):
    overrun(build, 0.6)


def test_samples_that_found_the_ring_full_at_the_very_end_are_counted(build):
    """No record follows that could tell of them."""
    overrun(build, 0)


def test_names_still_come_after_a_worker_was_killed(build):
    other = compile_program(build, "known.c", "-O1")  # another build id
    script = f"{known(build)} spin 1000; {other} spin 500"
    for worker in "parse", "open":
        with running(build, "record", "-F", "999", "-o", "r", "--", "sh", "-c", script) as r:
            time.sleep(0.4)
            r.find()
            os.kill(r.workers[worker], signal.SIGKILL)
            done = r.end()
            assert done.returncode == 0, done
            found = by(build, r.folder / "r", "function")
            assert os.listdir(r.folder / "tmp") == []
        for module in known(build), other:
            named = share(found, function="spin", module=str(module))
            everything = share(found, module=str(module))
            assert everything > 0.1 and named > 0.9 * everything, (worker, module, found[:4])


def test_a_daemon_that_is_killed_is_told_in_one_sentence(build):
    for how in ("record", "-o", "r"), ("stat",), ("hotspots",), ("flamegraph", "-o", "f.html"):
        with Folder() as folder:
            environment = dict(os.environ, TMPDIR=str(folder))
            client = subprocess.Popen([build / "mperfctl", *how, "--", known(build), "spin", "700"],
                                      cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            found = []
            wait_until(lambda: found.extend(p for p in children(client.pid)
                                            if command_line(p)[0].endswith("mperfd")) or found,
                       20, "a private mperfd")
            time.sleep(0.3)
            os.kill(found[0], signal.SIGKILL)
            out, said = client.communicate(timeout=60)
            refused(subprocess.CompletedProcess(how, client.returncode, out, said), 1, "mperfd",
                    "signal 9|Killed", r"\. \S")
            # A daemon that is killed cannot clean up; the client has.
            left = [name for name in os.listdir(folder) if not (folder / name).is_dir()]
            assert left == [], (how, left)


def test_a_daemon_that_cannot_go_on_says_so_and_ends(build):
    """Its segment is taken away under it: no answer can follow, and nobody waits for one."""
    with Folder() as folder:
        (folder / "tmp").mkdir()
        client = subprocess.Popen([build / "mperfctl", "record", "-o", "r", "--", known(build), "spin", "2500"],
                                  cwd=folder, env=dict(os.environ, TMPDIR=str(folder / "tmp")), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: list((folder / "tmp").glob("mperf-*/*")), 20, "a segment")
        time.sleep(0.3)
        for made in (folder / "tmp").glob("mperf-*"):
            shutil.rmtree(made)
        out, said = client.communicate(timeout=30)
        assert client.returncode == 1 and "cannot be stored in" in said, (client.returncode, said)
        assert not (folder / "r").exists()


def test_a_process_that_is_named_twice_is_sampled_once(build):
    """As a user whose events are opened for each process."""
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        shutil.copy(known(build), folder / "known")
        busy = subprocess.Popen([*NOBODY, folder / "known", "spin", "60000"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.2)
            done = as_nobody(folder, environment, "hotspots", "--json", "--pid", busy.pid,
                             "--pid", busy.pid, "--for", "1s")
        finally:
            busy.kill()
            busy.wait()
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["provenance"]
        assert 0 < told["samples"] < 1.5 * told["hz"] * told["seconds"], told


def test_a_daemon_goes_when_its_client_is_killed(build):
    with running(build, "record", "-o", "r", "--", known(build), "spin", "60000") as r:
        workers = list(r.workers.values())
        time.sleep(0.5)
        r.client.kill()
        wait_until(lambda: not any(map(alive, [r.daemon, *workers])), 15, "mperfd and workers gone")
        assert os.listdir(r.folder / "tmp") == [], os.listdir(r.folder / "tmp")


def test_a_recording_of_the_system_ends_well_on_ctrl_c(build):
    need_root()
    with running(build, "record", "-a", "-o", "r") as r:
        time.sleep(0.8)
        r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        assert rows(build, "hotspots", "-i", r.folder / "r")["provenance"]["seconds"] > 0.5
        assert os.listdir(r.folder / "tmp") == []


def test_nothing_is_left_behind_by_recordings(build):
    with Folder() as folder:
        (folder / "tmp").mkdir()
        for i in range(5):
            how = [["record", "-o", folder / "r"], ["hotspots"]][i % 2]
            mperfctl(build, *how, "--", "true", env={"TMPDIR": str(folder / "tmp")})
            assert os.listdir(folder / "tmp") == []
        assert sorted(os.listdir(folder)) == ["r", "tmp"], os.listdir(folder)


def test_no_descriptor_leaks_over_many_recordings_of_one_daemon(build):
    with Folder() as folder:
        daemon = Private(build, env=dict(os.environ, TMPDIR=str(folder)))
        try:
            daemon.send(hello(1))
            assert daemon.message()[0][0] == 1
            counts = []
            whom = field(1, field(2, bytes([*varint_of(os.getpid())])))
            for i in range(1, 11, 2):
                daemon.request(i, RECORD, whom)
                case, why = daemon.answer(READY, FAILURE)
                assert case == READY, why
                if i == 5:  # one is given up in the middle
                    daemon.request(i + 1, CANCEL, field(1, i))
                    assert daemon.answer(DONE, FAILURE)[0] == FAILURE
                else:
                    daemon.request(i + 1, FINISH, field(1, i))
                    assert daemon.answer(BYTES)[1]
                    assert daemon.answer(DONE, FAILURE)[0] == DONE
                daemon.request(100 + i, LIST, b"")  # it has tidied up when it answers this
                assert daemon.answer(DONE, FAILURE)[0] == DONE
                counts.append(len(os.listdir(f"/proc/{daemon.process.pid}/fd")))
                assert os.listdir(folder) == [], os.listdir(folder)
                assert children(daemon.process.pid) == []  # not even dead ones
            assert len(set(counts)) == 1, counts
        finally:
            status, said = daemon.end()
        assert status == 0 and said == "", (status, said)


def varint_of(n):
    while n > 127:
        yield n & 127 | 128
        n >>= 7
    yield n


def test_a_client_that_makes_no_sense_is_hung_up_on(build):
    greeting = hello(1)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", frame(b"\xff" * 64), (1 << 31).to_bytes(4, "little"),
                 hello(2), frame(field(2, field(1, 1) + field(LIST, b""))), greeting[:7],
                 greeting + frame(field(2, field(1, 0) + field(LIST, b""))),
                 greeting + frame(field(3, field(1, 1))), greeting + b"\xff" * 1000,
                 greeting + frame(field(2, field(1, 1) + field(RECORD, b"")))):
        with Folder() as folder:
            daemon = Private(build, env=dict(os.environ, TMPDIR=str(folder)))
            daemon.send(sent)
            time.sleep(0.05)
            status, said = daemon.end()
            assert status == 0 and said == "", (sent, status, said)
            assert os.listdir(folder) == []


# --- limits --------------------------------------------------------------------------------------

@contextlib.contextmanager
def small_disc(folder, size):
    need_root()
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "none", folder],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("mounting is refused here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


SPACE = r"\. .*(space|TMPDIR|-o|elsewhere|disc)"


def test_a_full_disc_for_the_daemon_is_told_with_its_remedy(build):
    # At the start there is no room for a segment; later there is, but not for the samples.
    for size, work in ("32k", ["true"]), ("256k", [known(build), "processes", "4000"]):
        with Folder() as folder, small_disc(folder / "disc", size) as disc:
            done = mperfctl(build, "record", "-F", "9999", "-o", folder / "r", "--", *work,
                            check=False, env={"TMPDIR": str(disc)})
            refused(done, 1, "space", SPACE)
            assert os.listdir(disc) == [] and os.listdir(folder) == ["disc"], size


def test_a_full_disc_for_the_output_leaves_no_partial_file(build):
    with Folder() as folder, small_disc(folder / "disc", "16k") as disc:
        done = mperfctl(build, "record", "-o", disc / "r", "--", "true", check=False)
        refused(done, 1, "space", SPACE)
        assert os.listdir(disc) == [], os.listdir(disc)
        mperfctl(build, "record", "-F", "999", "-o", folder / "r", "--", known(build), "spin", "200")
        (disc / "filler").write_bytes(b"x" * 16 * 1024)
        for form in "x.html", "x.svg":
            done = mperfctl(build, "flamegraph", "-i", folder / "r", "-o", disc / form, check=False)
            refused(done, 1, "space", SPACE)
        done = mperfctl(build, "hotspots", "--", "true", env={"TMPDIR": str(disc)}, check=False)
        refused(done, 1, "space", SPACE)
        assert os.listdir(disc) == ["filler"], os.listdir(disc)


def test_output_that_cannot_be_written_is_a_failure(build):
    with Folder() as folder:
        mperfctl(build, "record", "-F", "999", "-o", folder / "r", "--",
                 compile_program(build, "jit.c"), "quiet", "100")
        for command in (["hotspots", "-i", folder / "r"], ["hotspots", "-i", folder / "r", "--json"],
                        ["flamegraph", "-i", folder / "r", "--folded"], ["list"], ["doctor"],
                        ["flamegraph", "-i", folder / "r", "-o", "-"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([build / "mperfctl", *command], stdout=full, text=True,
                                      stderr=subprocess.PIPE, timeout=60)
            assert done.returncode == 1 and "No space" in done.stderr, (command, done)
            assert not any(w in done.stderr for w in BAD_WORDS), done.stderr


def test_a_folder_for_temporary_files_that_is_missing_is_named(build):
    with Folder() as folder:
        for how in ["record", "-o", folder / "r"], ["hotspots"]:
            done = mperfctl(build, *how, "--", "true", check=False,
                            env={"TMPDIR": str(folder / "absent")})
            refused(done, 1, "TMPDIR|absent", r"\. \S")
        assert os.listdir(folder) == []


def test_too_few_descriptors_are_told_with_the_limit(build):
    with Folder() as folder:
        for how in (["record", "-o", folder / "r"], ["hotspots"]):
            done = subprocess.run(["prlimit", "--nofile=16:16", build / "mperfctl", *how, "--", "true"],
                                  text=True, capture_output=True, timeout=60, cwd=folder,
                                  env=dict(os.environ, TMPDIR=str(folder)))
            refused(done, 1, "descriptors|RLIMIT_NOFILE|ulimit", "ulimit -n|LimitNOFILE")
            assert os.listdir(folder) == [], os.listdir(folder)


def test_a_small_soft_limit_of_descriptors_is_raised_by_itself(build):
    need_root()
    with Folder() as folder:
        subprocess.run(["prlimit", "--nofile=16:4096", build / "mperfctl", "record", "-a", "-o",
                        folder / "r", "--for", "300ms"], check=True, capture_output=True, timeout=30)


def test_a_rate_that_the_kernel_lowers_is_told(build):
    need_root()
    with sysctl("kernel.perf_event_max_sample_rate", 200), Folder() as folder:
        done = mperfctl(build, "record", "-F", "999", "-o", folder / "r", "--", known(build), "spin",
                        "600")
        assert re.search(r"200 .*kernel\.perf_event_max_sample_rate", done.stderr), done.stderr
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process")
    assert answer["provenance"]["hz"] == 200, answer["provenance"]
    known_ns = sum(r["self_ns"] for r in answer["rows"] if r["comm"] == "known")
    # Weights follow the rate. At its very limit the kernel throttles, and that is told too.
    assert 0.2e9 < known_ns < 0.7e9, answer
    assert known_ns > 0.5e9 or answer["provenance"]["lost"].get("throttled", 0) > 0, answer


def test_an_unprivileged_user_records_programs_of_his_own(build):
    need_root()
    need_program("setpriv")
    with sysctl("kernel.perf_event_paranoid", 2), Folder() as folder:
        environment = everybodys(build, folder)
        program = folder / "known"
        shutil.copy(known(build), program)
        done = as_nobody(folder, environment, "record", "-F", "999", "-o", "r", "--", program, "spin",
                         "500")
        assert done.returncode == 0, done
        done = as_nobody(folder, environment, "hotspots", "-i", "r", "--json", "--limit", "0")
        found = json.loads(done.stdout)
        assert share(found["rows"], function="spin") > 0.9, found["rows"][:4]
        assert found["provenance"]["samples"] > 300, found["provenance"]
        assert not [r for r in found["rows"] if r["module"] == "[kernel]"], found["rows"]
        done = as_nobody(folder, environment, "stat", "--", program, "spin", "200")
        assert done.returncode == 0 and re.search(r"msec\s+task-clock", done.stderr), done
        done = as_nobody(folder, environment, "doctor")
        assert "perf_event_paranoid" in done.stdout, done
        for how in (["record", "-o", "r2"], ["stat"], ["hotspots"]):
            done = as_nobody(folder, environment, *how, "-a", "--for", "300ms")
            refused(done, 1, r"kernel\.perf_event_paranoid|CAP_PERFMON", r"\. \S")
        done = as_nobody(folder, environment, "record", "-e", "cpu-clock:k", "-o", "r2", "--", "true")
        refused(done, 1, r"kernel\.perf_event_paranoid|CAP_PERFMON", "cpu-clock:k")
        assert sorted(os.listdir(folder / "tmp")) == ["r"], os.listdir(folder / "tmp")


# --- harts that come and go ----------------------------------------------------------------------

@contextlib.contextmanager
def second_hart():
    """A function that switches hart 1 off and on; it is on again whatever happens."""
    need_root()
    switch = Path("/sys/devices/system/cpu/cpu1/online")
    if not switch.exists() or switch.read_text().strip() != "1":
        raise Skip("hart 1 cannot be switched off here")
    try:
        switch.write_text("0")
        switch.write_text("1")
    except OSError as error:
        raise Skip(f"hart 1 cannot be switched off here: {error.strerror}") from None
    try:
        yield lambda on: switch.write_text("1" if on else "0")
    finally:
        switch.write_text("1")


def bounce(build, off_seconds):
    """Record while hart 1 goes away and comes back."""
    with second_hart() as switch, spinners(build, 2 * os.cpu_count()), \
            running(build, "record", "-a", "-F", "499", "-o", "r") as r:
        time.sleep(1.2)
        switch(False)
        off = time.time()
        time.sleep(off_seconds)
        switch(True)
        on = time.time()
        time.sleep(2.3)
        r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        path = r.folder / "r"
        return (rows(build, "hotspots", "-i", path, "--by", "hart", "--until", f"@{off - 1:.3f}"),
                rows(build, "hotspots", "-i", path, "--by", "hart", "--since", f"@{on + 1.2:.3f}"),
                rows(build, "hotspots", "-i", path, "--by", "hart"))


def check_bounce(before, after, whole):
    for found in before, after:
        harts = {r["hart"]: r["samples"] for r in found["rows"]}
        assert harts.get(0, 0) > 50 and harts.get(1, 0) > 50, (before["rows"], after["rows"], whole)
    assert whole["provenance"]["lost"].get("hart came or went", 0) >= 2, whole["provenance"]


def test_a_hart_that_goes_away_and_comes_back_is_sampled_again(build):
    check_bounce(*bounce(build, 1.3))


def test_a_hart_that_is_away_for_an_instant_is_sampled_again(build):
    check_bounce(*bounce(build, 0.05))


# --- many processes, groups ----------------------------------------------------------------------

def test_a_storm_of_short_processes_is_named(build):
    need_root()
    with Folder() as folder:
        mperfctl(build, "record", "-a", "-F", "1999", "-o", folder / "r", "--", known(build),
                 "processes", "2000")
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
    nameless = sum(r["self"] for r in answer["rows"] if not r["comm"])
    assert nameless <= 0.01, f"{nameless:.4f} of {answer['provenance']} have no name"
    pids = {r["pid"] for r in answer["rows"] if r["comm"] == "known"}
    assert len(pids) > 100, len(pids)  # most live for less than one period
    assert answer["provenance"]["lost"].get("unknown task", 0) <= \
        0.01 * answer["provenance"]["samples"], answer["provenance"]


def test_a_group_of_events_is_counted_where_its_leader_sampled(build):
    with Folder() as folder:
        mperfctl(build, "record", "-F", "1999", "-e", "{cpu-clock,page-faults}", "-o", folder / "r",
                 "--", known(build), "pages", "100000", "400")
        faults = rows(build, "hotspots", "-i", folder / "r", "--event", "page-faults", "--limit", "0")
        clock = rows(build, "hotspots", "-i", folder / "r", "--limit", "0")
        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded", "--event",
                          "page-faults").stdout
    total = {r["function"]: r["total"] for r in faults["rows"]}
    assert total.get("touch_pages", 0) > 0.8 and total.get("spin", 0) < 0.05, faults["rows"][:6]
    assert share(clock["rows"], function="spin") > 0.3, clock["rows"][:6]
    counted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    assert 0.9 * 100000 < counted < 1.05 * 100000, (counted, folded[:500])


def test_page_faults_sampled_alone_are_charged_to_who_touched_the_pages(build):
    with Folder() as folder:
        mperfctl(build, "record", "-e", "page-faults", "-o", folder / "r", "--", known(build),
                 "pages", "20000")
        found = rows(build, "hotspots", "-i", folder / "r", "--event", "page-faults")
    assert share(found["rows"], function="touch_pages") > 0.9, found["rows"][:4]


def test_a_large_recording_arrives_however_fast_the_client_reads(build):
    """Streaming must not wait for a socket that has long been empty again."""
    need_root()
    script = f"{known(build)} processes 4000"
    for _ in range(3):
        with Folder() as folder:
            mperfctl(build, "record", "-a", "-F", "9999", "-o", folder / "r", "--", "sh", "-c",
                     script, timeout=20)
            size = (folder / "r").stat().st_size
            mperfctl(build, "hotspots", "-i", folder / "r")
    assert size > 600 << 10, size  # more than mperfd keeps for a client at once
