# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is installed works from where it stands, and is gone when it is uninstalled."""
import subprocess

from machine import ROOT, Folder, Skip, compile_program
from rates import long_enough, rate_allowed

PROGRAMS = ["usr/bin/mperfctl", "usr/bin/mperf-platform-check",
            "usr/lib/mperf/libmperf-ompt.so", "usr/lib/systemd/system-generators/mperf-generator", "usr/libexec/mperf/mperf-namer", "usr/libexec/mperf/mperf-roofs",
            "usr/sbin/mperfd"]
SERVICE = ["etc/mperf/mperf.conf", "usr/lib/systemd/system/mperfd.service",
           "usr/lib/systemd/system/mperfd.socket", "usr/lib/systemd/system/mperf-debuginfod.service",
           "usr/lib/systemd/system/mperf-debuginfod.socket", "usr/lib/sysctl.d/30-mperf.conf",
           "usr/lib/sysusers.d/mperf.conf", "usr/lib/tmpfiles.d/mperf.conf",
           *(f"usr/share/doc/mperf/examples/{name}.schedule" for name in ("ci-jobs", "nightly", "some-jobs")),
           "usr/share/bash-completion/completions/mperfctl",
           "usr/share/bash-completion/completions/mperf-platform-check",
           "usr/share/zsh/site-functions/_mperfctl",
           "usr/share/zsh/site-functions/_mperf-platform-check"]
COUNTING_PAGES = ("mperf-cc.", "mperf-runtime.")


def make(build, *arguments):
    done = subprocess.run(["make", "-s", f"BUILD={build}", *arguments], cwd=ROOT, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


def counting(build):
    """What compiles programs that count themselves, where an LLVM for it was found."""
    plugins = {f"usr/lib/mperf/{p.parent.name}/{p.name}" for p in build.glob("llvm-*/mperf-p*.so")}
    return plugins and {*plugins, "usr/bin/mperf-cc", "usr/bin/mperf-c++", "usr/include/mperf.h",
                        "usr/lib/mperf/libmperf-runtime.a", "usr/lib/pkgconfig/mperf.pc",
                        "usr/share/man/man1/mperf-c++.1"}


def reads_code(build):
    """What reads machine code, where LLVM's C library was found."""
    return {"usr/libexec/mperf/mperf-code"} if (build / "mperf-code").exists() else set()


def test_an_installed_tree_works_and_uninstalls_without_a_trace(build):
    if build.name == "asan":
        raise Skip("shown by the plain run; make would rebuild without sanitizers")
    program = compile_program(build, "jit.c")
    with Folder() as folder:
        make(build, "install", f"DESTDIR={folder}", "PREFIX=/usr")
        pages = [f"usr/share/man/man{p.suffix[1]}/{p.name}" for p in ROOT.glob("man/*.[1578]")
                 if counting(build) or not p.name.startswith(COUNTING_PAGES)]
        platforms = [f"usr/share/mperf/platforms/{p.relative_to(ROOT / 'platform-db/platforms')}"
                     for p in (ROOT / "platform-db/platforms").rglob("*.json")]
        examples = [f"usr/share/doc/mperf/{p.relative_to(ROOT / 'man')}" for p in (ROOT / "man" / "examples").rglob("*")
                    if p.is_file()]
        wanted = {*PROGRAMS, *SERVICE, *pages, *platforms, *examples, *counting(build), *reads_code(build),
                  "usr/share/mperf/platforms/README.md"}
        assert set(installed(folder)) == wanted, set(installed(folder)) ^ wanted
        done = subprocess.run([folder / "usr/bin/mperfctl", "hotspots", "-F",
                               str(rate_allowed(999)), "--", program, "map", str(long_enough(300))], text=True, capture_output=True, cwd=folder)
        assert done.returncode == 0 and "jitted_by_map" in done.stdout, done.stdout + done.stderr
        done = subprocess.run([folder / "usr/bin/mperf-platform-check", "--show", "spacemit-x60"],
                              text=True, capture_output=True, cwd=folder)
        assert done.returncode == 0 and "SpacemiT X60" in done.stdout, done.stdout + done.stderr
        make(build, "uninstall", f"DESTDIR={folder}", "PREFIX=/usr")
        assert installed(folder) == [], installed(folder)
