# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The service's files as make install lays them down; that they work is shown by test_deb.py."""
import re
import subprocess

from machine import ROOT, Folder, leave_to_plain, need_program

EXPOSURE_MAX = 2.5


def installed(build, folder):
    """make install, all of it below folder; no program is made anew."""
    leave_to_plain(build, "the files are the same")
    done = subprocess.run(["make", "-s", f"BUILD={build}", f"PREFIX={folder}/usr",
                           f"CONFDIR={folder}/etc/mperf", "install"], cwd=ROOT, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "usr/lib/systemd/system"


def said(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=60, **options)
    return done.returncode, done.stdout + done.stderr


def settings(unit, key):
    return [value for line in unit.read_text().splitlines() if line.startswith(key + "=")
            for value in line.split("=", 1)[1].split()]


def test_the_service_is_rated_at_most_2_5(build):
    need_program("systemd-analyze")
    with Folder() as folder:
        unit = installed(build, folder) / "mperfd.service"
        status, text = said("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
        rating = re.search(r"Overall exposure level for mperfd\.service: ([0-9.]+)", text)
        assert status == 0 and rating and float(rating.group(1)) <= EXPOSURE_MAX, text


def test_the_fetcher_has_the_network_and_nothing_else(build):
    need_program("systemd-analyze")
    with Folder() as folder:
        unit = installed(build, folder) / "mperf-debuginfod.service"
        status, text = said("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
        rating = re.search(r"Overall exposure level for mperf-debuginfod\.service: ([0-9.]+)", text)
        assert status == 0 and rating and float(rating.group(1)) <= EXPOSURE_MAX, text
        assert not settings(unit, "AmbientCapabilities") and not settings(unit, "CapabilityBoundingSet")
        socket = (unit.parent / "mperf-debuginfod.socket")
        assert settings(socket, "SocketUser") == ["mperf"] and settings(socket, "SocketMode") == ["0600"]


def test_systemd_finds_nothing_to_say_about_the_units(build):
    need_program("systemd-analyze")
    with Folder() as folder:
        units = installed(build, folder)
        status, text = said("systemd-analyze", "verify", "--man=no", units / "mperfd.service",
                            units / "mperfd.socket", units / "mperf-debuginfod.service",
                            units / "mperf-debuginfod.socket")
        assert status == 0 and text == "", text


def test_each_capability_of_the_service_is_justified(build):
    with Folder() as folder:
        unit = installed(build, folder) / "mperfd.service"
        held = settings(unit, "AmbientCapabilities")
        assert held and held == settings(unit, "CapabilityBoundingSet"), held
        told = re.findall(r"^# (CAP_\w+) {2,}\S", unit.read_text(), re.M)
        assert sorted(told) == sorted(held), (told, held)
        page = (ROOT / "man" / "mperfd.8").read_text()
        assert not [c for c in held if f".B {c}\n" not in page], "mperfd(8) leaves one out"


def test_user_group_and_folders_are_made_by_systemd(build):
    for program in "systemd-sysusers", "systemd-tmpfiles":
        need_program(program)
    with Folder() as folder:
        installed(build, folder)
        (folder / "etc").mkdir(exist_ok=True)
        status, text = said("systemd-sysusers", f"--root={folder}",
                            folder / "usr/lib/sysusers.d/mperf.conf")
        assert status == 0, text
        users = (folder / "etc/passwd").read_text()
        groups = (folder / "etc/group").read_text()
        user = re.search(r"^mperf:x:(\d+):(\d+):.*:/usr/sbin/nologin$", users, re.M)
        group = re.search(r"^mperf:x:(\d+):$", groups, re.M)
        assert user and group and user.group(2) == group.group(1), users + groups
        status, text = said("systemd-tmpfiles", "--create", f"--root={folder}",
                            folder / "usr/lib/tmpfiles.d/mperf.conf")
        assert status == 0, text
        run, cache = (folder / "run/mperf").stat(), (folder / "var/cache/mperf").stat()
        assert run.st_mode & 0o777 == 0o755 and run.st_uid == 0, oct(run.st_mode)
        assert cache.st_mode & 0o777 == 0o700 and cache.st_uid == int(user.group(1)), cache


def test_the_sysctl_file_allows_what_the_capability_needs_and_no_more(build):
    with Folder() as folder:
        installed(build, folder)
        text = (folder / "usr/lib/sysctl.d/30-mperf.conf").read_text()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert lines == ["kernel.perf_event_paranoid = 2"], lines


def test_the_configuration_that_was_edited_outlives_an_install_and_an_uninstall(build):
    with Folder() as folder:
        installed(build, folder)
        file = folder / "etc/mperf/mperf.conf"
        fresh = file.read_text()
        assert fresh == (ROOT / "systemd" / "mperf.conf").read_text()
        file.write_text(fresh + "\n[sampling]\nrate = 49\n")
        installed(build, folder)
        status, text = said("make", "-s", f"BUILD={build}", f"PREFIX={folder}/usr",
                            f"CONFDIR={folder}/etc/mperf", "uninstall", cwd=ROOT)
        assert status == 0 and file.read_text().endswith("rate = 49\n"), text
        assert [p for p in folder.rglob("*") if p.is_file()] == [file], list(folder.rglob("*"))
