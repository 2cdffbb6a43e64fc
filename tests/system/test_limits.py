# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Full discs, few descriptors, low rates and missing rights: each is told with its remedy."""
import contextlib
import json
import os
import re
import shutil
import subprocess

from machine import (BAD_WORDS, Folder, Skip, as_nobody, compile_program, everybodys, mperfctl,
                     need_program, need_root, refused, rows, sysctl)
from rates import allowing, limited_to, long_enough, rate_allowed, rate_granted, samples_of
from recorded import known
from running import share, wait_until
from service import PATIENCE_S, Service

BY_ITSELF = "it changes what the kernel lets everybody sample"


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


@allowing()
def test_a_full_disc_for_the_daemon_is_told_with_its_remedy(build):
    # At the start there is no room for a segment; later there is, but not for the samples.
    for size, work in ("32k", ["true"]), ("256k", [known(build), "processes", "4000"]):
        with Folder() as folder, small_disc(folder / "disc", size) as disc:
            done = mperfctl(build, "record", "-F", "9999", "-e", "cpu-clock", "-o", folder / "r", "--", *work,
                            check=False, env={"TMPDIR": str(disc)})
            refused(done, 1, "space", SPACE)
            assert "ulimit" not in done.stderr, done.stderr
            assert os.listdir(disc) == [] and os.listdir(folder) == ["disc"], size


def test_a_full_disc_for_the_output_leaves_no_partial_file(build):
    with Folder() as folder, small_disc(folder / "disc", "16k") as disc:
        done = mperfctl(build, "record", "-o", disc / "r", "--", "true", check=False)
        refused(done, 1, "space", SPACE)
        assert os.listdir(disc) == [], os.listdir(disc)
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder / "r", "--", known(build), "spin",
                 long_enough(200))
        (disc / "filler").write_bytes(b"x" * 16 * 1024)
        for form in "x.html", "x.svg":
            done = mperfctl(build, "flamegraph", "-i", folder / "r", "-o", disc / form, check=False)
            refused(done, 1, "space", SPACE)
        done = mperfctl(build, "hotspots", "--", "true", env={"TMPDIR": str(disc)}, check=False)
        refused(done, 1, "space", SPACE)
        assert os.listdir(disc) == ["filler"], os.listdir(disc)


def test_output_that_cannot_be_written_is_a_failure(build):
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder / "r", "--",
                 compile_program(build, "jit.c"), "quiet", long_enough(200))
        for command in (["hotspots", "-i", folder / "r"], ["hotspots", "-i", folder / "r", "--json"],
                        ["flamegraph", "-i", folder / "r", "--folded"], ["list"], ["doctor"],
                        ["flamegraph", "-i", folder / "r", "-o", "-"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([build / "mperfctl", *command], stdout=full, text=True,
                                      stderr=subprocess.PIPE, timeout=60)
            assert done.returncode == 1 and "No space" in done.stderr, (command, done)
            assert not any(w in done.stderr for w in BAD_WORDS), done.stderr


def test_files_that_may_not_grow_are_named_and_closed_output_is_written_nowhere(build):
    with Folder() as folder:
        for command, says in (["record", "-o", "r", "--", "true"], "the limit of file size is reached.*ulimit -f"), (["list", "--json"], "File too large"):
            line = " ".join([str(build / "mperfctl"), *command])
            done = subprocess.run(["bash", "-c", f"ulimit -f 4; cd {folder}; {line} > out"], text=True,
                                  capture_output=True, env={**os.environ, "MPERF_SOCKET": "", "TMPDIR": str(folder)},
                                  check=False)
            assert done.returncode == 1 and re.search(says, done.stderr), done  # not killed by SIGXFSZ
            assert set(os.listdir(folder)) <= {"out"}, os.listdir(folder)
        done = subprocess.run(["bash", "-c", f"{build}/mperfctl list --json >&-"], text=True, capture_output=True,
                              check=False)
        refused(done, 1, "cannot write to stdout: Bad file descriptor")


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


def test_a_recording_in_the_way_is_one_however_few_descriptors_are_left(build):
    """Too few to look at it: that is what is said, and not that it is somebody else's."""
    with Folder() as folder:
        mperfctl(build, "record", "-e", "cpu-clock", "-o", folder / "r", "--", "true")
        before = (folder / "r").read_bytes()
        done = subprocess.run(["prlimit", "--nofile=4:4", build / "mperfctl", "record", "-o", folder / "r",
                               "--", "true"], text=True, capture_output=True, timeout=60)
        refused(done, 1, "open files", "ulimit -n")
        assert (folder / "r").read_bytes() == before


def test_a_small_soft_limit_of_descriptors_is_raised_by_itself(build):
    need_root()
    with Folder() as folder:
        subprocess.run(["prlimit", "--nofile=16:4096", build / "mperfctl", "record", "-a", "-o",
                        folder / "r", "--for", "300ms"], check=True, capture_output=True, timeout=120)


def test_a_rate_that_the_kernel_lowers_is_told(build):
    need_root()
    with limited_to(200), Folder() as folder:
        done = mperfctl(build, "record", "-F", "999", "-e", "cpu-clock", "-o", folder / "r", "--",
                        known(build), "spin", "600")
        hz = rate_granted(999)
        assert hz < 200 and re.search(rf" {hz} Hz.*limit is 200 .*kernel\.perf_event_max_sample_rate",
                                      done.stderr), (hz, done.stderr)
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process")
    assert answer["provenance"]["hz"] == hz, answer["provenance"]
    known_ns = sum(r["self_ns"] for r in answer["rows"] if r["comm"] == "known")
    assert 0.5e9 < known_ns < 0.7e9, answer  # weights follow the rate, whatever is throttled


def test_a_rate_that_the_kernel_lowers_under_a_running_service_is_followed_and_told(build):
    # rates below those to which the kernel would lower its limit meanwhile, by itself
    with Folder() as folder, Service(build, folder, rate="99") as service:
        with limited_to(50):
            hz = rate_granted(99)
            wait_until(lambda: f"sampling at {hz} Hz instead of 99" in service.said(), PATIENCE_S,
                       "the log says the lower rate")
            told = f"no more than {hz} samples a second without throttling (kernel.perf_event_max_sample_rate)"
            wait_until(lambda: told in service.ctl("hotspots", "--since", "-1m").stdout, PATIENCE_S,
                       "an answer says the lower rate")
            found = [row for row in service.ask("doctor")["rows"] if row["topic"] == "rate"]
            assert found[0]["state"] == "warn" and " 50 " in found[0]["finding"], found
        wait_until(lambda: "sampling at 99 Hz again" in service.said(), PATIENCE_S,
                   "the log says the rate of before")


def test_root_is_told_which_sysctl_hides_the_kernel_from_root(build):
    need_root()
    with sysctl("kernel.kptr_restrict", 2):
        found = rows(build, "doctor")["rows"]
    hidden, = [row for row in found if row["topic"] == "kernel names"]
    assert "kernel.kptr_restrict" in hidden["finding"], hidden
    assert "kernel.kptr_restrict=1" in hidden["remedy"] and "run as root" not in hidden["remedy"], hidden


def test_an_unprivileged_user_records_programs_of_his_own(build):
    need_root()
    need_program("setpriv")
    with sysctl("kernel.perf_event_paranoid", 2), Folder() as folder:
        environment = everybodys(build, folder)
        program = folder / "known"
        shutil.copy(known(build), program)
        hz = rate_allowed(999)
        done = as_nobody(folder, environment, "record", "-F", hz, "-o", "r", "--", program, "spin",
                         "500")
        assert done.returncode == 0, done
        done = as_nobody(folder, environment, "hotspots", "-i", "r", "--json", "--limit", "0")
        found = json.loads(done.stdout)
        assert share(found["rows"], function="spin") > 0.9, found["rows"][:4]
        assert found["provenance"]["samples"] > samples_of(0.5, hz) / 2, found["provenance"]
        assert not [r for r in found["rows"] if r["module"] == "[kernel]"], found["rows"]
        done = as_nobody(folder, environment, "stat", "--", program, "spin", "200")
        assert done.returncode == 0 and re.search(r"msec\s+task-clock", done.stderr), done
        done = as_nobody(folder, environment, "doctor")
        assert "perf_event_paranoid" in done.stdout, done
        for restricts, remedy in (0, "kernel.perf_event_paranoid=1"), (1, "kernel.kptr_restrict=0"):
            with sysctl("kernel.kptr_restrict", restricts):
                done = as_nobody(folder, environment, "doctor")
            hidden = done.stdout.split("kernel names: ")[1].split("\n")[1]
            assert remedy in hidden, done
        for how in (["record", "-o", "r2"], ["stat"], ["hotspots"]):
            done = as_nobody(folder, environment, *how, "-a", "--for", "300ms")
            refused(done, 1, r"kernel\.perf_event_paranoid|CAP_PERFMON", r"\. \S")
        done = as_nobody(folder, environment, "top", "--batch", "--frames", "1")
        refused(done, 1, r"kernel\.perf_event_paranoid=0", "--pid")
        assert "modifier" not in done.stderr, done.stderr
        done = as_nobody(folder, environment, "record", "-e", "cpu-clock:k", "-o", "r2", "--", "true")
        refused(done, 1, r"kernel\.perf_event_paranoid|CAP_PERFMON", "cpu-clock:k")
        assert sorted(os.listdir(folder / "tmp")) == ["r"], os.listdir(folder / "tmp")
