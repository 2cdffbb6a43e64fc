# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the system tests share: the programs under test, the workloads, and this machine."""
import atexit
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "tests" / "system"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# None of our programs may ever say these.
BAD_WORDS = ("Traceback", "Sanitizer", "runtime error", "terminate called", "core dumped")


class Skip(Exception):
    """The machine lacks what the test needs; the text says what."""


def by_itself(why, at_a_time=1):
    """A test that wants the machine for itself, or for so many of those of its module that say the same;
    the others of its module do not. As BY_ITSELF of a module (tests/run)."""
    def decorate(test):
        test.by_itself = why
        test.by_itself_at_a_time = at_a_time
        return test
    return decorate


def leave_to_plain(build, why):
    """Skip in the run with sanitizers: they would show nothing that the plain run does not, because of why."""
    if build.name == "asan":
        raise Skip(f"shown by the plain run; {why}")


def late_at_times(test):
    """A test with bounds above for what a busy machine makes longer: it holds in one of five runs. How late a
    thread is differs each time; what is wrong with mperf is so each time."""
    @functools.wraps(test)
    def tried(build):
        for _ in range(4):
            try:
                return test(build)
            except AssertionError as late:
                print(f"  again, for a busy machine may be late: {late}"[:300], flush=True)
        return test(build)
    return tried


@contextlib.contextmanager
def wrong_today(defect):
    """Around what should hold and does not, because mperf has this defect: the test passes as long as an
    assertion in here fails, and fails when none does, so that the fix of mperf removes this."""
    try:
        yield
    except AssertionError as error:
        print(f"  wrong, as is known: {defect} [{error}]", flush=True)
        return
    raise AssertionError(f"this holds now; take its wrong_today away: {defect}")


_ends = []


def at_end_of_module(function):
    """What a module's tests share shall not run beside another's: function() is called when they
    have run."""
    _ends.append(function)


@atexit.register
def end_module():
    while _ends:
        _ends.pop()()


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def need_counting_hart(build):
    found = rows(build, "list", "hardware")["rows"]
    if not any(r["event"] == "instructions" and r["counts"] == "yes" for r in found):
        raise Skip("no hart here counts instructions")


def need_program(name):
    if not shutil.which(name):
        raise Skip(f"needs the program {name}")
    return shutil.which(name)


@contextlib.contextmanager
def ended_in_order():
    """SIGTERM ends us as an exception does, so that what was begun is undone."""
    if threading.current_thread() is not threading.main_thread():
        raise AssertionError("what changes the machine for all runs by itself, in the main thread")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def sysctl(name, value):
    """A kernel setting for a while; the old one is restored whatever happens, but for SIGKILL."""
    with ended_in_order(), written(name, value):
        yield


@contextlib.contextmanager
def written(name, value):
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


def plain_build(build):
    """The folder of the plain build, where workloads are kept once for all kinds."""
    return build.parent if build.name == "asan" else build


@contextlib.contextmanager
def making(build, name):
    """Tests run side by side, in processes of their own: what they share is made by one of them while
    the others wait. Not to be nested."""
    folder = plain_build(build) / "tests" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once_in_a_run(build, name, make):
    """The folder that make(folder) filled for all jobs of a run: what many modules read, and none changes.
    What failed and has its second run has one of its own."""
    with making(build, name):
        folder = Path(tempfile.gettempdir()) / name
        if not folder.exists():
            part = Path(tempfile.mkdtemp())
            make(part)
            part.chmod(0o755)
            part.rename(folder)
    return folder


def workload(build, name):
    """A workload built by tests/workloads/NAME; its path. It is not the one of demo and benchmarks: with -O1
    a compiler takes half the time, and a test is about names and shares."""
    with making(build, name):
        done = subprocess.run([ROOT / "tests" / "workloads" / name, plain_build(build) / "tests"],
                              check=True, stdout=subprocess.PIPE, env={**os.environ, "OPTIMISE": "-O1"})
    return Path(done.stdout.decode().splitlines()[-1])


def compile_program(build, source, *flags):
    """Compile tests/system/SOURCE into the build folder; its path."""
    target = plain_build(build) / "tests" / "programs" / Path(source).stem
    path = SOURCES / source
    suffix = "".join(f for f in flags if f.startswith("-f") or f == "-shared")
    target = target.with_name(target.name + suffix)
    with making(build, target.name):
        if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            base = [] if "-O0" in flags else ["-O2"]
            subprocess.run(["cc", "-g", *base, "-fno-omit-frame-pointer", "-o", target, path,
                            *flags, "-lpthread"], check=True)
    return target


# A command in front of ours, as root's: no BPF program can be loaded then.
WITHOUT_BPF = ["setpriv", "--bounding-set=-bpf,-sys_admin"]


def mperfctl(build, *arguments, check=True, through=(), **options):
    """Run mperfctl to its end; CompletedProcess with text output. through: a command in front of it."""
    options.setdefault("timeout", 180)
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    environment.pop("MPERF_SOCKET", None)
    environment.update(options.pop("env", {}))
    # Standard error goes to a file: with sanitizers the workers share it, and one that is stuck in
    # the kernel would keep a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        done = subprocess.run([*through, build / "mperfctl", *map(str, arguments)], text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=errors,
                              env=environment, **options)
        errors.seek(0)
        done.stderr = errors.read()
    if check and done.returncode != 0:
        raise AssertionError(f"mperfctl {arguments} exited {done.returncode}\n"
                             f"{done.stdout}\n{done.stderr}")
    for line in done.stderr.splitlines():
        if "Sanitizer" in line or "runtime error" in line:
            raise AssertionError(done.stderr)
    return done


def rows(build, *arguments, **options):
    """The parsed --json answer of a command: {"columns", "rows", "provenance"}."""
    return json.loads(mperfctl(build, *arguments, "--json", **options).stdout)


# In SQL, in place of the table sample: without threads that waited.
SAMPLES = "(SELECT * FROM sample WHERE event NOT IN (SELECT id FROM event WHERE pmu = 'waiting'))"


class Hash128(ctypes.Structure):
    """Source: xxhash.h, XXH128_hash_t."""
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def unseal(path):
    """Cut the seal off a segment, so that SQLite may change it."""
    with open(path, "r+b") as file:
        file.seek(-32, os.SEEK_END)
        assert file.read(8) == b"mPrfSeal", path
        file.truncate(path.stat().st_size - 32)


def seal(path):
    """Seal a segment that was changed: daemon/store/segment/trailer.h."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_128bits.restype = Hash128
    xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    content = path.read_bytes()
    found = xxhash.XXH3_128bits(content, len(content))
    with open(path, "ab") as file:
        file.write(b"mPrfSeal" + struct.pack("<Q", len(content)) + struct.pack(">QQ", found.high, found.low))


class Folder(tempfile.TemporaryDirectory):
    """A scratch folder that everybody may enter, gone at the end."""

    def __init__(self):
        super().__init__(prefix="mperf-test-")
        os.chmod(self.name, 0o755)
        self.path = Path(self.name)

    def __enter__(self):
        super().__enter__()
        return self.path


def refused(done, status, *words):
    """The command said one sentence with its remedy, with all the words, and nothing else."""
    said = [line for line in done.stderr.splitlines()
            # of a recording that had begun
            if not re.fullmatch(r"mperfctl: (\d+ Hz|sampling at \d+ Hz: the kernel throttles more.*)\.", line)]
    everything = f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, f"wanted {status}: {everything}"
    assert not any(word in done.stdout + done.stderr for word in BAD_WORDS), everything
    assert len(said) == 1 and said[0].startswith("mperfctl: "), everything
    assert said[0][-1] in ".?!", everything
    for word in words:
        assert re.search(word, said[0]), f"'{word}' is missing: {everything}"


def everybodys(build, folder):
    """A copy of the programs where everybody may run them; the build may be in a private folder."""
    for name in "mperfctl", "mperfd", "mperf-namer":
        shutil.copy(build / name, folder / name)
        os.chmod(folder / name, 0o755)
    (folder / "tmp").mkdir()
    os.chmod(folder / "tmp", 0o777)
    return {"TMPDIR": str(folder / "tmp"), "HOME": str(folder / "tmp")}


def as_nobody(folder, environment, *arguments):
    done = subprocess.run([*NOBODY, folder / "mperfctl", *map(str, arguments)], text=True,
                          capture_output=True, timeout=120, cwd=folder / "tmp",
                          env=dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", **environment))
    assert not any(word in done.stderr for word in BAD_WORDS), done.stderr
    return done
