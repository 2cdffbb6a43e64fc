# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs: labels from requests and from the environment, which processes inherit, and who sees them."""
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from machine import Folder, as_nobody, everybodys, leave_to_plain, mperfctl, need_root, refused
from rates import allowing, rate_allowed
from service import Service, wait_until
from wire import DONE, FAILURE, Client, field

JOB, JOB_START = 19, 1  # case of Request.body, and JobAction

SPIN = ("import sys, time\n"
        "end = time.process_time() + float(sys.argv[1])\n"
        "while time.process_time() < end: sum(range(1000))\n")
PYTHON = os.path.realpath(sys.executable)
ARGUMENT_BYTES = 120000  # about the longest that a program can be given. Source: execve(2), MAX_ARG_STRLEN


def spin(seconds):
    return [PYTHON, "-S", "-c", SPIN, str(seconds)]


def shell(*lines):
    return ["sh", "-c", "\n".join([*lines, "true"])]


def by_job(service, *options):
    """Seconds per job, of all that was stored."""
    rows = service.ask("hotspots", "--since", "-1h", "--by", "job", "-n", "0", *options)["rows"]
    return {row["job"]: row["self_ns"] / 1e9 for row in rows}


def seconds_of(service, job, *options):
    return sum(s for name, s in by_job(service, *options).items() if name and job in name)


def test_a_command_and_all_it_starts_are_in_its_job_and_its_exit_status_is_passed_on(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        done = service.ctl("job", "run", "build", "--label", "branch=main", "--",
                           *shell(" ".join(["exec", PYTHON, "-S", "-c", f"'{SPIN}'", "0.5"])))
        assert done.returncode == 0, done.stderr
        done = service.ctl("job", "run", "fails", "--", "sh", "-c", "exit 7", check=False)
        assert done.returncode == 7 and done.stderr == "", done.stderr
        done = service.ctl("job", "run", "missing", "--", "/no/such/program", check=False)
        assert done.returncode == 127 and "/no/such/program" in done.stderr, done.stderr
        seen = wait_until("the job has its samples", lambda: seconds_of(service, "job=build") > 0.3 and
                          by_job(service))
        (name,) = [n for n in seen if n and "job=build" in n]
        assert name.startswith("branch=main, job=build, run="), name
        assert by_job(service, "--label", "branch=main").keys() == {name}
        assert by_job(service, "--label", "branch=no").keys() == set()
        assert not service.ask("job")["job"], "its processes have ended"


def test_a_shell_is_in_a_job_from_start_to_end(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        script = folder / "spin.py"
        script.write_text(SPIN)
        run = f"{PYTHON} -S {script}"
        ctl = f"{service.build / 'mperfctl'} job"
        subprocess.run(shell(f"{run} 0.4", f"{ctl} start one --label n=1", f"{run} 0.6", f"{ctl} --json >{folder}/list",
                             f"{ctl} start two", f"{run} 0.5", f"{ctl} end", f"{run} 0.4"),
                       env={**os.environ, "MPERF_SOCKET": str(service.socket)}, check=True)
        listed = json.loads((folder / "list").read_text())
        assert "job=one" in json.dumps(listed) and "n=1" in json.dumps(listed), listed
        spun = ("--comm", os.path.basename(PYTHON)[:15])  # mperfctl, which runs in the jobs too, takes more with sanitizers
        wait_until("both jobs have their samples", lambda: seconds_of(service, "job=two", *spun) > 0.3)
        assert 0.4 < seconds_of(service, "job=one", *spun) < 0.85, by_job(service)
        assert 0.3 < seconds_of(service, "job=two", *spun) < 0.75, by_job(service)


def test_named_variables_are_labels_and_secrets_are_never_stored(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499),
                                     job_environment="CI_JOB_ID,branch=CI_REF") as service:
        environment = {**os.environ, "CI_JOB_ID": "4711", "CI_REF": "feature/x", "MY_TOKEN": "very-secret-value"}
        subprocess.run(spin(0.6), env=environment, check=True)
        wait_until("the job has its samples",
                   lambda: by_job(service).get("CI_JOB_ID=4711, branch=feature/x", 0) > 0.3)
        assert service.stop() == 0
        stored = b"".join(p.read_bytes() for p in (folder / "store").rglob("*") if p.is_file())
        assert b"feature/x" in stored and b"very-secret-value" not in stored


def test_a_configuration_that_names_a_secret_is_refused(build):
    with Folder() as folder:
        service = Service(build, folder, job_environment="CI_JOB_TOKEN")
        service.write_config()
        done = subprocess.run(service.command(), capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "job-environment is 'CI_JOB_TOKEN'" in done.stderr, done.stderr
        assert "secret" in done.stderr, done.stderr


def test_only_its_user_labels_a_process_and_sees_the_job(build):
    need_root()
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        roots = subprocess.Popen(["sleep", "60"])
        try:
            for action in ["start", "theirs"], ["end"]:
                done = as_nobody(folder, environment, "job", *action, "--pid", str(roots.pid))
                refused(done, 1, str(roots.pid))
                assert "or run mperfctl as root" in done.stderr and "group" not in done.stderr, done.stderr
            wait_until("the process is known", lambda: service.ctl(
                "job", "start", "roots", "--pid", roots.pid, check=False).returncode == 0)
            assert len(service.ask("job")["job"]) == 1
            done = as_nobody(folder, environment, "job", "--json")
            assert json.loads(done.stdout)["job"] == [], done.stdout
            done = as_nobody(folder, environment, "job", "run", "mine", "--label", "a=b", "--", "sh", "-c",
                              "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done")
            assert done.returncode == 0, done.stderr
            wait_until("root sees it", lambda: seconds_of(service, "job=mine") > 0.2)
            done = as_nobody(folder, environment, "hotspots", "--since", "-1h", "--by", "job", "--json")
            jobs = {row["job"] for row in json.loads(done.stdout)["rows"]}
            assert any(j and "job=mine" in j for j in jobs) and not any(j and "roots" in j for j in jobs), jobs
        finally:
            roots.kill()
            roots.wait()


def test_jobs_of_two_users_with_the_same_labels_are_two_rows(build):
    need_root()
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        job = ["job", "run", "merge", "--label", "run=1", "--", "sh", "-c", "i=0; while [ $i -lt 400000 ]; do "
               "i=$((i+1)); done"]
        service.ctl(*job)
        assert as_nobody(folder, environment, *job).returncode == 0

        def users():
            rows = service.ask("hotspots", "--since", "-1h", "--by", "job", "-n", "0")["rows"]
            found = {row["uid"] for row in rows if row["job"] == "job=merge, run=1" and row["samples"] > 10}
            return found == {0, 65534}
        wait_until("both are seen", users)


def test_requests_that_are_refused_leave_no_descriptor_behind(build):
    need_root()

    def n_pidfds(service):
        links = (os.readlink(fd) for fd in Path(f"/proc/{service.process.pid}/fd").iterdir() if fd.is_symlink())
        return sum("pidfd" in link for link in links)

    with Folder() as folder, Service(build, folder) as service:
        environment = {**everybodys(build, folder), "MPERF_SOCKET": str(service.socket)}
        before = n_pidfds(service)
        for _ in range(5):
            for action in ["start", "theirs"], ["end"]:
                refused(as_nobody(folder, environment, "job", *action, "--pid", "1"), 1, "process 1 ")
        assert n_pidfds(service) < before + 5  # the service holds some of its own


def test_without_a_service_the_command_runs_all_the_same(build):
    with Folder() as folder:
        for socket, words in ("", "without labels"), (folder / "none", "no mperfd answers"):
            done = mperfctl(build, "job", "run", "x", "--", "sh", "-c", "echo ran; exit 3",
                            env={"MPERF_SOCKET": str(socket)}, check=False)
            assert done.returncode == 3 and done.stdout == "ran\n" and words in done.stderr, done
        done = mperfctl(build, "job", "start", "x", env={"MPERF_SOCKET": ""}, check=False)
        assert done.returncode == 1 and "mperfd" in done.stderr, done.stderr


def test_wrong_arguments_are_refused_by_name(build):
    for arguments, word in ((["run"], "takes the job's name"), (["run", "x"], "takes a name and a command"),
                            (["run", "--", "true"], "takes a name and a command"), (["stat"], "start"),
                            (["start", "x", "y"], "one argument too many"), (["end", "x"], "one argument too many"),
                            (["start", "x", "--label", "y"], "'y' is not of the form"),
                            (["start", "x", "--label", "a b=c"], "'a b' is not a name"),
                            (["start", "x", "--label", f"a={'v' * ARGUMENT_BYTES}"], "more than 256 bytes"),
                            (["start", "x\n"], "control character"), (["--label", "a=b"], "--label is for"),
                            (["start", "x", *[f"--label=k{i}=v" for i in range(15)]], "at most 14")):
        done = mperfctl(build, "job", *arguments, check=False)
        assert done.returncode == 2 and word in done.stderr, (arguments[:3], done.stderr)


@allowing()
def test_a_jobs_time_adds_up_to_that_of_its_processes(build):
    leave_to_plain(build, "it compares figures, and jobs of the other tests here are sampled with sanitizers")
    # Many processes of 2 ms, which inherit the job. Samples differ from getrusage by ticks, and by the
    # scatter of n samples at fixed times: 1 / sqrt(n).
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(999)) as service:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        service.ctl("job", "run", "builds", "--",
                    *shell("for i in $(seq 50); do for j in 1 2 3 4 5 6 7 8; do ls -R /usr/share/doc/m* >/dev/null; "
                           "/bin/true; done; done"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        last = [0]

        def settled():
            now = seconds_of(service, "job=builds")
            same, last[0] = now > 0 and now == last[0], now
            time.sleep(1.2)
            return same
        wait_until("all samples are stored", settled)
        samples = last[0] * service.ask("hotspots", "--since", "-1h")["provenance"]["hz"]
        assert abs(last[0] / used - 1) < 0.05 + 4 / samples ** 0.5, (last[0], used, samples)


def test_a_recording_has_labels_for_all_its_processes_and_keeps_those_of_jobs(build):
    with Folder() as folder, Service(build, folder, rate=rate_allowed(499)) as service:
        file = folder / "a.mprf"
        for alone in "", str(service.socket):
            done = mperfctl(build, "record", "-f", "-F", rate_allowed(499), "--label", "branch=main", "--label", "n=1",
                            "-o", file, "--", *shell(" ".join([PYTHON, "-S", "-c", f"'{SPIN}'", "0.3"])),
                            env={"MPERF_SOCKET": alone})
            rows = json.loads(mperfctl(build, "hotspots", "-i", file, "--by", "job", "--json").stdout)["rows"]
            assert [r["job"] for r in rows] == ["branch=main, n=1"], (alone, rows, done.stderr)
        for label, found in ("n=1", True), ("branch=m*", True), ("n=2", False), ("other=1", False):
            rows = json.loads(mperfctl(build, "hotspots", "-i", file, "--label", label, "--json").stdout)["rows"]
            assert bool(rows) == found, (label, rows)
        service.ctl("job", "run", "outer", "--label", "branch=old", "--label", "run=3", "--", build / "mperfctl",
                    "record", "-f", "-F", rate_allowed(499), "--label", "branch=new", "-o", file, "--", *spin(0.3),
                    env={"MPERF_SOCKET": str(service.socket)})
        rows = json.loads(mperfctl(build, "hotspots", "-i", file, "--by", "job", "--json").stdout)["rows"]
        assert [r["job"] for r in rows] == ["branch=new, job=outer, run=3"], rows
        assert any("branch=old" in (job or "") for job in by_job(service)), "the store has the job's own"


def test_wrong_labels_of_a_recording_are_refused_before_the_command_runs(build):
    with Folder() as folder:
        for arguments, word in ((["--label", "y"], "'y' is not of the form"), (["--label", "a b=c"], "'a b' is not"),
                                (["--label", f"a={'v' * ARGUMENT_BYTES}"], "more than 256 bytes"),
                                (["--label", "a=\x01"], "control character"),
                                ([f"--label=k{i}=v" for i in range(17)], "labels")):
            done = mperfctl(build, "record", *arguments, "-o", folder / "x.mprf", "--", "touch", folder / "ran",
                            check=False, env={"MPERF_SOCKET": ""})
            assert done.returncode in (1, 2) and word in done.stderr, (arguments[0][:20], done.returncode, done.stderr)
        assert not (folder / "ran").exists() and not (folder / "x.mprf").exists()


def test_names_and_labels_by_which_no_job_is_found_are_refused(build):
    with Folder() as folder:
        ran = folder / "ran"
        for arguments, words in ((["run", ""], "the job's name is empty"), (["start", ""], "the job's name is empty"),
                                 (["start", "x", "--label", "job=y"], "another name"),
                                 (["run", "x", "--label", "job=y"], "another name"),
                                 (["run", "x", "--label", "a=1", "--label", "a=2"], "label 'a' is given twice"),
                                 (["run", "x", "--label", "user=me"], "label 'user' has a reserved name"),
                                 (["start", "x", "--label", "last=1"], "label 'last' has a reserved name")):
            command = ["--", "touch", ran] if arguments[0] == "run" else []
            refused(mperfctl(build, "job", *arguments, *command, check=False, env={"MPERF_SOCKET": ""}), 2, words)
            assert not ran.exists(), arguments


def test_what_a_table_shows_of_a_job_selects_it(build):
    names = ["a\\b, c", "a\\b", "*", "w?t"]
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        for name in names:
            service.ctl("job", "run", name, "--label", "run=1", "--pin", "--", *spin(0.2))

        def pinned():
            return [row["job"] for row in service.ask("job").get("pin", [])]
        wait_until("all are pinned", lambda: len(pinned()) == len(names))
        for job in pinned():
            answer = service.ask("hotspots", "--since", "-1h", "--by", "job", *(
                o for label in job.replace("\\, ", "\\,\0").split(", ") for o in ("--label", label.replace("\0", " "))))
            assert [r["job"] for r in answer["rows"]] == [job], (job, answer["rows"])
            left = [j for j in pinned() if j != job]
            service.ctl("job", "unpin", job)
            assert pinned() == left, job


def test_the_daemon_refuses_reserved_labels_too(build):
    with Folder() as folder:
        for variables in "user=GITHUB_ACTOR", "since":
            service = Service(build, folder, job_environment=variables)
            service.write_config()
            done = subprocess.run(service.command(), capture_output=True, text=True, check=False)
            assert done.returncode != 0 and "no LABEL since, until, last, user or uid" in done.stderr, done.stderr
    with Folder() as folder, Service(build, folder) as service, Client(service.socket) as client:
        client.request(1, JOB, field(1, JOB_START) + field(2, os.getpid()) + field(3, b"uid=0"))
        assert b"label 'uid' has a reserved name" in client.answer(FAILURE, DONE)[1]
