# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packages mperf-cc and mperf-code: lintian has nothing to say, they install beside a clang of their
choice, what mperf-cc compiles counts for the mperfctl of the package mperf, and that reads machine code.
"""
import functools
import re
import shutil
import subprocess

import chroot
from container import apt_sources, release
from machine import ROOT, Skip, need_program, need_root
from package import compiler_is_right, reader_is_right
from whole import clean_environment

MAKE_SECONDS = 900
INSTALL_SECONDS = 600


@functools.cache
def packages(build):
    """make deb with all of it, in a build folder of its own; its folder and what was said."""
    need_root()
    need_program("dpkg-buildpackage")
    own = build / "programs" / "packages"
    done = subprocess.run(["make", f"BUILD={own}", "deb"], cwd=ROOT, text=True, capture_output=True,
                          timeout=MAKE_SECONDS, env=clean_environment())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return own / "deb", done.stdout + done.stderr


def architecture():
    return subprocess.run(["dpkg", "--print-architecture"], check=True, text=True,
                          capture_output=True).stdout.strip()


def test_the_compiler_is_a_package_and_lintian_is_content(build):
    folder, said = packages(build)
    assert "lintian" in said and not re.search(r"^[EW]: ", said, re.M), said[-2000:]
    compiler_is_right(folder, architecture())
    reader_is_right(folder, architecture())


def root(build):
    """A bare Debian like this one."""
    with open(apt_sources()[0], encoding="utf-8") as file:
        uri = re.search(r"^(?:URIs:|deb(?: \[.*\])?) *(\S+)", file.read(), re.M)
    if not release() or not uri:
        raise Skip("needs Debian, to make a root like it")
    where = build / "programs" / "packages" / "debian"
    shutil.rmtree(where, ignore_errors=True)
    return chroot.made(where, release().group(1), uri.group(1))


def test_it_installs_beside_its_clang_compiles_and_counts(build):
    folder, _ = packages(build)
    made = root(build)
    for deb in folder.glob("mperf*.deb"):
        if "dbgsym" not in deb.name:
            shutil.copy(deb, made / "root" / deb.name)
    chroot.run(made, "apt-get -q update && apt-get -q install -y --no-install-recommends "
               "/root/mperf_*.deb /root/mperf-cc_*.deb pkg-config", INSTALL_SECONDS)
    said = chroot.run(made, "cd /tmp && mperf-cc -O2 /mperf/tests/kernels/matmul.c -o matmul -lm && "
                      "MPERF_OUTPUT=/tmp/out ./matmul && mperfctl roofline -i /tmp/out --csv", 60)
    assert "matmul.c:" in said, said
    said = chroot.run(made, "cd /tmp && clang-19 -O2 -fpass-plugin=$(pkg-config --variable=plugin19 mperf) "
                      "/mperf/tests/kernels/matmul.c -o by-hand $(pkg-config --libs mperf) -lm && "
                      "MPERF_OUTPUT=/tmp/out ./by-hand && mperfctl roofline -i /tmp/out --csv", 60)
    assert "matmul.c:" in said or "matmul" in said, said
    read = "mperfctl roofline --from code --csv -F 999 -- ./matmul matmul 200"
    said = chroot.run(made, f"cd /tmp && ! {read} 2>&1", 60)
    assert "apt install ./mperf-code_*.deb" in said, said
    said = chroot.run(made, f"apt-get -q install -y --no-install-recommends /root/mperf-code_*.deb && cd /tmp && {read}",
                      INSTALL_SECONDS)
    assert re.search(r"^matmul,.*machine code", said, re.M), said
    chroot.run(made, "apt-get -q purge -y mperf mperf-cc mperf-code && ! ls -d /usr/lib/mperf /usr/bin/mperf*", 120)
