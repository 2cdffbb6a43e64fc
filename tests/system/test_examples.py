# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples for CI systems, each run as far as it can be without its vendor: hooks with a runner's environment,
in processes that start one another as a runner's do; scripts, workflows, units."""
import os
import re
import shlex
import subprocess
import tomllib

from machine import (NOBODY, ROOT, Folder, Skip, compile_program, everybodys, leave_to_plain,
                     need_program, need_root)
from rates import rate_allowed
from service import Service, wait_until

SECONDS = 30
LEAVE_TO_PLAIN = "they are scripts"
EXAMPLES = ROOT / "man" / "examples"
SCRIPTS = [*EXAMPLES.glob("*.sh"), *EXAMPLES.glob("*/*.sh")]
SPIN = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
SLOWER = 3
RUNS = 6
# Source: docs.github.com, "Variables reference"; docs.gitlab.com, "Predefined CI/CD variables".
GITHUB = {"GITHUB_JOB": "tests", "GITHUB_RUN_ID": "4711", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_REF_NAME": "7/merge",
          "GITHUB_HEAD_REF": "feature/x", "GITHUB_SHA": "0123456789abcdef", "GITHUB_REPOSITORY": "owner/name"}
GITLAB = {"CI_JOB_NAME": "tests", "CI_JOB_ID": "815", "CI_COMMIT_REF_NAME": "feature/y", "CI_COMMIT_SHA": "fedcba",
          "CI_PROJECT_PATH": "group/name"}


def yaml_of(path):
    try:
        import yaml
    except ImportError:
        raise Skip("needs python3-yaml") from None
    return yaml.safe_load(path.read_text())


def read_config(name):
    return tomllib.loads((EXAMPLES / name).read_text())


def environment_of(build, folder, service, **more):
    socket = str(service.socket) if service else ""
    return {**os.environ, **everybodys(build, folder), "MPERF_SOCKET": socket,
            "PATH": f"{folder}:{os.environ['PATH']}", **more}


def as_user(folder, environment, *command, **options):
    done = subprocess.run([*NOBODY, *map(str, command)], env=environment, cwd=folder / "tmp", text=True,
                          capture_output=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


def job_with_samples(service, *words):
    """Its name, when it has samples."""
    def found():
        rows = service.ask("hotspots", "--since", "-1h", "--by", "job", "-n", "0")["rows"]
        return [r["job"] for r in rows if r["job"] and r["samples"] > 10 and all(w in r["job"] for w in words)]
    return wait_until(f"a job with {words} has samples", found)[0]


def test_scripts_are_those_of_a_plain_shell(build):
    assert len(SCRIPTS) >= 3, SCRIPTS
    for path in SCRIPTS:
        subprocess.run(["bash" if path.parent.name == "github" else "sh", "-n", path], check=True)
        subprocess.run([need_program("shellcheck"), path], check=True)
        assert os.access(path, os.X_OK), path


def test_the_readme_names_each_example_and_no_other(build):
    named = {name for row in re.findall(r"^\| (`.*?`) \|", (EXAMPLES / "README.md").read_text(), re.M)
             for name in re.findall(r"`([^`]+)`", row)}
    there = {str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*") if p.is_file()} - {"README.md"}
    assert named == there, named ^ there


def test_systemd_finds_nothing_to_say_about_the_units(build):
    need_program("systemd-analyze")
    with Folder() as folder:
        for path in (EXAMPLES / "systemd").iterdir():
            text = path.read_text().replace("/usr/bin/mperfctl", str(build / "mperfctl"))
            (folder / path.name).write_text(text.replace("User=ci", "User=daemon"))
        (folder / "mperfd.service").write_text("[Service]\nExecStart=/bin/true\n")
        units = [folder / f"{name}@main.{kind}" for name, kind in (("build", "service"), ("gate", "service"),
                                                                   ("gate", "timer"))]
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units], text=True,
                              capture_output=True, check=False, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"})
        assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_service_takes_the_configuration(build):
    done = subprocess.run([build / "mperfd", f"--config={EXAMPLES / 'mperf.conf'}", "--print-config"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0 and "branch=GITHUB_REF_NAME" in done.stdout, done


def test_githubs_hook_labels_the_steps_of_its_job(build):
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        hook = folder / "job-started.sh"
        hook.write_bytes((EXAMPLES / "github" / "job-started.sh").read_bytes())
        # the worker starts the hook by `bash -e FILE`, and then the steps
        worker = f"bash -e {hook} || exit 9\nbash -e -c '{SPIN}'\ntrue"
        as_user(folder, environment_of(build, folder, service, **GITHUB), "sh", "-c", worker)
        name = job_with_samples(service, "job=tests")
        for label in "branch=feature/x", "run=4711.2", "commit=0123456789abcdef", "repository=owner/name":
            assert label in name, name


def test_gitlabs_runner_labels_the_script_of_its_job(build):
    before = read_config("gitlab/config.toml")["runners"][0]["pre_build_script"]
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(499)) as service:
        # As the shell executor writes it: one text, which a subshell evaluates. Its shell is one of login, whose
        # profile would set another PATH.
        text = "\n".join([before, SPIN, f"bash -c {shlex.quote(SPIN)}", "true"])
        script = f"set -eo pipefail\nset +o noclobber\n: | eval {shlex.quote(text)}\nexit 0\n"
        as_user(folder, environment_of(build, folder, service, **GITLAB), "bash", input=script)
        name = job_with_samples(service, "job=tests")
        for label in "branch=feature/y", "run=815", "commit=fedcba", "project=group/name":
            assert label in name, name


def test_hooks_do_not_fail_a_job_where_no_service_answers(build):
    need_root()
    before = read_config("gitlab/config.toml")["runners"][0]["pre_build_script"]
    with Folder() as folder:
        environment = environment_of(build, folder, None, **GITHUB, **GITLAB)
        done = as_user(folder, environment, "bash", "-e", EXAMPLES / "github" / "job-started.sh")
        assert "::warning::" in done.stdout, done
        done = as_user(folder, environment, "bash", "-e", "-o", "pipefail", "-c", before + "\necho built")
        assert "no labels" in done.stdout and done.stdout.endswith("built\n"), done


def programs(build, folder):
    """baseline/program and candidate/program, which has a function that does twice as much."""
    path = compile_program(build, "compared.c")
    for side, percent in ("baseline", 0), ("candidate", 100):
        (folder / side).mkdir()
        (folder / side / "program").write_text(f"#!/bin/sh\nexec {path} 3000 {percent}\n")
        (folder / side / "program").chmod(0o755)


def of_examples(script):
    """With the examples that stand here, and fewer runs."""
    return script.replace("/usr/share/doc/mperf/examples", str(EXAMPLES)).replace("-n 10", f"-n {RUNS}")


def run_gate(build, folder, script):
    environment = {**os.environ, "MPERF_SOCKET": "", "PATH": f"{build}:{os.environ['PATH']}",
                   "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run(["bash", "-e", "-c", of_examples(script)], cwd=folder, env=environment, text=True,
                          capture_output=True, check=False)


def test_githubs_workflow_fails_a_slower_branch_and_writes_the_summary(build):
    leave_to_plain(build, "a script that starts mperfctl")
    steps = yaml_of(EXAMPLES / "github" / "gate.yml")["jobs"]["gate"]["steps"]
    script, = [s["run"] for s in steps if s.get("name") == "Gate"]
    with Folder() as folder:
        programs(build, folder)
        done = run_gate(build, folder, script)
        summary = (folder / "summary.md").read_text()
        assert done.returncode == SLOWER, (done.stdout, done.stderr)
        assert summary.startswith("**slower: ") and "slowed in compared" in summary, summary
        assert "failures=" in (folder / "gate" / "gate.xml").read_text()


def test_gitlabs_pipeline_ends_with_the_status_that_it_allows_for(build):
    leave_to_plain(build, "a script that starts mperfctl")
    job = yaml_of(EXAMPLES / "gitlab" / "gitlab-ci.yml")["gate"]
    assert job["allow_failure"] == {"exit_codes": 4} and job["artifacts"]["reports"] == {"junit": "gate/gate.xml"}
    with Folder() as folder:
        programs(build, folder)
        (folder / "program").symlink_to(folder / "baseline" / "program")
        done = run_gate(build, folder, job["script"][-1].replace("-n 10", "-n 2"))
        assert done.returncode == 4, (done.stdout, done.stderr)  # two runs a side are not enough
        assert done.stdout.startswith("**not enough to tell: "), done.stdout


def test_a_program_that_fails_is_not_compared(build):
    with Folder() as folder:
        programs(build, folder)
        (folder / "candidate" / "program").write_text("#!/bin/sh\necho no such option >&2\nexit 5\n")
        done = run_gate(build, folder, f"{EXAMPLES}/gate-builds.sh -n 5 baseline/program candidate/program")
        assert done.returncode == 1 and "nothing is compared" in done.stderr, done
        assert "no such option" in done.stderr and "candidate/program" in done.stderr, done
