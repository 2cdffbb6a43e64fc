# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Debian package, installed, used, reloaded, killed, stopped and purged under a real systemd.

All tests share one container, in the order in which they stand; each also works alone.
"""
import functools
import json
import os
import re
import shutil
import subprocess

from container import Container
from machine import (ROOT, Skip, at_end_of_module, compile_program, need_program, need_root,
                     plain_build)
from package import CONF, dependencies, is_right, reader_is_right
from test_unit import EXPOSURE_MAX, settings

SECONDS = 80

UNIT = "systemd/system/mperfd.service"
# Numbers of the kernel. Source: include/uapi/linux/capability.h.
CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19, "CAP_SYSLOG": 34, "CAP_PERFMON": 38,
                "CAP_BPF": 39, "CAP_CHECKPOINT_RESTORE": 40}


def once(function):
    """What function returned for a build; it runs once, and what it raised is told once in full."""
    @functools.cache
    def attempt(build):
        try:
            return function(build), None
        except Skip as skip:
            return None, skip
        except Exception as error:
            return None, AssertionError(f"{type(error).__name__}: {error}")

    def result(build):
        if build.name == "asan":
            raise Skip("shown by the plain run; a package is built without sanitizers")
        known = attempt.cache_info().currsize > 0
        value, error = attempt(build)
        if error and known and not isinstance(error, Skip):
            raise AssertionError(f"there is no {function.__name__}, as was told above")
        if error:
            raise error
        return value
    result.forget = attempt.cache_clear
    return result


@once
def packages(build):
    """make deb; the folder of the packages, and what was said. Without mperf-cc, whose plugins take two
    minutes to build: make check-programs makes that package, installs it and compiles with it. Not optimised, which
    takes less time: packages of boards are."""
    need_root()
    need_program("dpkg-buildpackage")
    done = subprocess.run(["nice", "make", f"BUILD={build}", "PASS=no", "deb"], cwd=ROOT, text=True,
                          capture_output=True, timeout=1500, env={**os.environ, "DEB_BUILD_OPTIONS": "noopt"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return build / "deb", done.stdout + done.stderr


def package(build):
    found = list(packages(build)[0].glob("mperf_*.deb"))
    assert len(found) == 1, found
    return found[0]


@once
def installed(build):
    """A container in which the package was installed and told to write each second."""
    deb = package(build)
    shared = build / "deb" / "shared"
    shared.mkdir(exist_ok=True)
    library = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    program = compile_program(build, "shares.c", str(library), f"-Wl,-rpath,{library.parent}")
    for file in deb, library, program, compile_program(build, "known.c"):
        shutil.copy(file, shared)
    c = Container(build, dependencies(deb), bind=shared)
    at_end_of_module(c.stop)
    at_end_of_module(installed.forget)
    c.run(f"apt-get -q install -y /mnt/{deb.name}", timeout=120)
    c.run("systemctl is-active mperfd.service && systemctl is-active mperfd.socket")
    for name in "alice", "bob":
        c.run(f"useradd --create-home --shell /bin/sh {name} && chmod 700 /home/{name} && "
              f"install -m 700 -o {name} /mnt/known /home/{name}/{name}s")
    c.run("usermod --append --groups mperf alice")
    # Names, rates and cuts are looked at here, so nothing is given up when other tests take the machine.
    c.run("sed -i 's/^#flush = .*/flush = 1s/; s/^#rate = .*/rate = 499/; "
          f"s/^#overhead = .*/overhead = none/' {CONF}")
    c.run("systemctl reload mperfd.service")
    return c


def main_pid(c):
    return c.says("systemctl show --property MainPID --value mperfd.service")


def hotspots(c, arguments, user=None):
    said = c.run(f"mperfctl hotspots --since -10m {arguments} --json", user=user).stdout
    return json.loads(said)["rows"]


def kept(c, arguments, wanted, user=None, seconds=30):
    """The rows of hotspots, as soon as `wanted` says that they hold what was waited for."""
    for _ in range(seconds):
        rows = hotspots(c, arguments, user)
        if wanted(rows):
            break
        c.run("sleep 1")
    return rows


def test_debian_packages_are_built_and_lintian_is_content(build):
    folder, said = packages(build)
    assert "lintian" in said and not re.search(r"^[EW]: ", said, re.M), said[-2000:]
    arch = subprocess.run(["dpkg", "--print-architecture"], check=True, text=True,
                          capture_output=True).stdout.strip()
    is_right(folder, arch)
    reader_is_right(folder, arch)


def test_installing_the_package_starts_the_service(build):
    c = installed(build)
    assert c.says("systemctl is-enabled mperfd.service mperfd.socket") == "enabled\nenabled"
    assert c.says("systemctl list-units --failed --no-legend --plain 'mperf*'") == ""
    assert re.search(r"sampling at \d+ Hz, storing in /var/lib/mperf",
                     c.says("systemctl show --property StatusText mperfd.service"))
    c.run("mperfctl status")
    assert c.says("journalctl --quiet --no-pager --priority err --unit mperfd.service") == ""
    assert c.says("systemctl --version | head -1").startswith("systemd ")


def test_the_running_service_is_confined_as_the_unit_says(build):
    c = installed(build)
    rated = plain_build(build) / "deb" / "shared" / "mperfd.service"
    rated.write_text(c.run(f"cat /lib/{UNIT}").stdout)
    mask = sum(1 << CAPABILITIES[name] for name in settings(rated, "AmbientCapabilities"))
    status = dict(line.split(":\t", 1) for line in
                  c.says(f"cat /proc/{main_pid(c)}/status").splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == mask, status
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    assert status["Uid"].split() == [c.says("id -u mperf")] * 4, status
    text = c.says("systemd-analyze security --no-pager mperfd.service")
    rating = re.search(r"Overall exposure level for mperfd\.service: ([0-9.]+)", text)
    assert rating and float(rating.group(1)) <= EXPOSURE_MAX, text
    source = (ROOT / "systemd" / "mperfd.service.in").read_text()
    assert rated.read_text() == source.replace("@SBINDIR@", "/usr/sbin")


def test_everybody_may_ask_and_sees_what_is_theirs(build):
    c = installed(build)
    for name in "alice", "bob":
        c.run(f"~/{name}s spin 1500", user=name)
    both = lambda rows: {"alices", "bobs"} <= {row["comm"] for row in rows}
    assert both(kept(c, "--by process -n 0", both))
    assert both(hotspots(c, "--by process -n 0", user="alice"))
    bobs = {row["comm"] for row in hotspots(c, "--by process -n 0", user="bob")}
    assert "bobs" in bobs and "alices" not in bobs, bobs
    for user in None, "alice", "bob":
        c.run("mperfctl status", user=user)
        frames = c.says("mperfctl top --frames 2 -d 500ms --json", user=user).splitlines()
        assert len(frames) == 2 and all(json.loads(f)["rows"] is not None for f in frames), frames


NO_BPF = ("bpf: BPF is not available (Operation not permitted); the context-switches sibling cuts "
          "counts at switches, but --event waiting has no callers, and the service no waits")


def missing_names(rows):
    """Which names of what is sampled below are not among the rows."""
    found = {row["function"] for row in rows}
    kernel = [row["function"] for row in rows if row["module"] == "[kernel]"]
    if sum(bool(re.fullmatch(r"[A-Za-z_][\w.]*", name)) for name in kernel) > len(kernel) / 2:
        found.add("kernel")
    return {"half", "library_spin", "spin", "kernel"} - found


def missing_after_sampling_anew(build, c, wanted):
    """Begin with an empty store and sample a deleted library, a program in a private folder and the
    kernel. The names that are missing, waiting for `wanted`; None where nothing is sampled."""
    library = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    c.run("systemctl stop mperfd.service && rm -rf /var/lib/mperf/* && "
          "systemctl start mperfd.service")
    if "not sampling" in c.says("systemctl show --property StatusText mperfd.service"):
        return None
    c.run(f"mkdir -p {library.parent} && chown bob {library.parent} && "
          f"install -o bob /mnt/{library.name} {library}")
    c.run(f"/mnt/shares 200 {library} > /dev/null & p=$!; until grep -q {library.name} /proc/$p/maps; "
          f"do :; done; rm {library}; ~/bobs spin 300; ~/bobs pages 300000; wait", user="bob")
    query = "--comm shares --comm bobs -n 0"
    whole = lambda rows: missing_names(rows) == wanted - {NO_BPF} and all(
        any(module in row["module"] for row in rows)
        for module in ("/mnt/shares", library.name, "/home/bob/bobs", "[kernel]"))
    kept(c, query, whole)
    c.run("sleep 2")  # should a name come late, it has come now
    return missing_names(hotspots(c, query)) | (missing_bpf(c) if has_bpf(build) else set())


def missing_of_what_ran_before(c):
    """Begin with an empty store beside a program of bob's. Whose it is, and what it has mapped, was not seen in its
    exec and must be read."""
    c.run("systemctl stop mperfd.service && rm -rf /var/lib/mperf/* && "
          "install ~bob/bobs /usr/local/bin/earlier")
    pid = c.says("earlier spin 600000 > /dev/null 2>&1 & echo $!", user="bob")
    c.until(f"[ $(cat /proc/{pid}/comm) = earlier ]")
    c.run("systemctl start mperfd.service")
    enough = lambda rows: sum(row["samples"] for row in rows) > 20
    named = lambda rows: any(row["function"] == "spin" for row in rows)
    try:
        assert enough(kept(c, "-n 0", enough)), "nothing is sampled"
        return set() if named(kept(c, "--comm earlier -n 0", named, seconds=10)) else {"spin"}
    finally:
        c.run(f"kill {pid}")


def has_bpf(build):
    """Does the machine outside let us load BPF programs? Then so does the container."""
    done = subprocess.run([build / "mperfctl", "doctor", "--json"], text=True, capture_output=True,
                          timeout=60)
    return any(row["topic"] == "bpf" and row["state"] == "ok"
               for row in json.loads(done.stdout)["rows"])


def missing_bpf(c):
    """What doctor says of the program that cuts counts at switches, unless that it agrees. It says nothing
    while others have the counters that would be cut."""
    for _ in range(5):
        # the service, and no private mperfd of root's where the service is late
        doctor = c.run("MPERF_SOCKET=/run/mperf/mperfd.sock mperfctl doctor --json", check=False)
        said = [row for row in json.loads(doctor.stdout)["rows"] if row["topic"] == "bpf"]
        if said:
            break
    return {f"bpf: {row['finding']}" for row in said if row["state"] != "ok"}


def test_private_folders_deleted_libraries_and_the_kernel_are_named(build):
    missing = missing_after_sampling_anew(build, installed(build), set())
    assert missing == set(), missing


def test_each_capability_of_the_service_is_needed(build):
    """Without it something of the above has no name, or doctor something to say; so none is there
    for nothing."""
    c = installed(build)
    missed = {"CAP_PERFMON": None, "CAP_SYS_PTRACE": {"spin"},
              "CAP_DAC_READ_SEARCH": {"library_spin", "spin"},
              "CAP_CHECKPOINT_RESTORE": {"library_spin"}, "CAP_BPF": {NO_BPF},
              "CAP_SYSLOG": {"kernel"}}
    assert missed.keys() == CAPABILITIES.keys()
    if not has_bpf(build):
        missed["CAP_BPF"] = set()  # it would have nothing to give
    folder = "/run/systemd/system/mperfd.service.d"
    for gone, names in missed.items():
        rest = " ".join(missed.keys() - {gone})
        lines = "".join(f"{key}=\\n{key}={rest}\\n"
                        for key in ("AmbientCapabilities", "CapabilityBoundingSet"))
        c.run(f"mkdir -p {folder} && printf '[Service]\\n{lines}' > {folder}/without.conf && "
              "systemctl daemon-reload")
        missing = (missing_of_what_ran_before(c) if gone == "CAP_SYS_PTRACE" else
                   missing_after_sampling_anew(build, c, names))
        assert missing == names, f"without {gone}: {missing}"
    c.run(f"rm -r {folder} && systemctl daemon-reload && systemctl restart mperfd.service")
    assert missing_of_what_ran_before(c) == set()


def test_a_reload_takes_a_good_configuration_and_refuses_a_bad_one(build):
    c = installed(build)
    pid = main_pid(c)
    c.run(f"cp {CONF} /root/good && sed -i 's/^rate = .*/rate = 151/' {CONF}")
    c.run("systemctl reload mperfd.service")
    # Each kernel allows 151, the lowest limit being a sample a tick; 499 it may not.
    c.until("systemctl show --property StatusText mperfd.service | grep -w '151 Hz'")
    c.run(f"echo 'raet = 5' >> {CONF}")
    lines = c.says(f"wc -l < {CONF}")
    assert c.run("systemctl reload mperfd.service", check=False).returncode != 0
    assert f"{CONF}:{lines}: " in c.journal(), c.journal()
    c.run(f"cp /root/good {CONF} && systemctl reload mperfd.service")
    c.until("! systemctl show --property StatusText mperfd.service | grep -w '151 Hz'")
    assert main_pid(c) == pid, "it was not reloaded but restarted"


def test_a_service_that_dies_or_hangs_is_started_anew(build):
    c = installed(build)
    died = main_pid(c)
    c.run(f"kill -KILL {died}")
    c.until("mperfctl status")
    c.run("mkdir -p /run/systemd/system/mperfd.service.d && "
          "printf '[Service]\\nWatchdogSec=2s\\n' > /run/systemd/system/mperfd.service.d/w.conf &&"
          " systemctl daemon-reload && systemctl restart mperfd.service")
    hung = main_pid(c)
    assert hung not in (died, "0"), hung
    c.run(f"kill -STOP {hung}")
    c.until(f"p=$(systemctl show --property MainPID --value mperfd.service); "
            f"[ $p != 0 ] && [ $p != {hung} ] && systemctl is-active mperfd.service", seconds=60)
    c.run("rm -r /run/systemd/system/mperfd.service.d && systemctl daemon-reload && "
          "systemctl restart mperfd.service && mperfctl status")
    c.run("journalctl --quiet --no-pager --unit mperfd.service | grep 'Watchdog timeout'")


def test_who_asks_a_stopped_service_starts_it(build):
    c = installed(build)
    # The tests above start it more often than systemd allows in ten seconds; that is not shown here.
    c.run("systemctl stop mperfd.service && systemctl reset-failed")
    assert c.run("systemctl is-active mperfd.service", check=False).returncode != 0
    assert c.says("systemctl show --property Result --value mperfd.service") == "success"
    c.run("mperfctl status", user="bob")
    c.run("systemctl is-active mperfd.service")


def test_a_purge_leaves_nothing_behind(build):
    c = installed(build)
    c.run("ls /var/lib/mperf/window")
    c.run("apt-get -q purge -y mperf", timeout=120)
    left = c.says("find / -xdev -path /proc -prune -o -path /mnt -prune -o "
                  "\\( -name 'mperf*' -o -name '*-mperf.conf' \\) -print | grep -v ^/home || :")
    assert left == "", left
    assert c.run("dpkg-query -s mperf", check=False).returncode != 0
    assert c.says("ls -d /etc/mperf /var/lib/mperf /var/cache/mperf /run/mperf 2>&1 | "
                  "grep -v 'No such file'", check=False) == ""
    assert c.says("systemctl list-units --all --no-legend 'mperf*'") == ""
    assert "mperf" in c.says("getent passwd mperf"), "the user stays, as Debian's policy has it"
