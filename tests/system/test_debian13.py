# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Debian 13 as the README has it, whatever this machine is: set up, built, tested and packaged there.

It begins bare, so that a package that nobody named is missed. Root and build are kept in
$(BUILD)/debian13 from one run to the next.
"""
import functools
import os
import re
import sys

import chroot
from machine import ROOT, Skip

sys.path.insert(0, str(ROOT / "tests" / "boards"))
from debian import mirror  # noqa: E402

SUITE = "trixie"
PACKAGES_SECONDS = 600  # downloads some 350 MB, once
BUILD_SECONDS = 900     # two minutes on two harts that do nothing else
TESTS_SECONDS = 900     # one or two, likewise


def there(test):
    """The test gets a function that runs a command on Debian 13, which is set up as CI is."""
    @functools.wraps(test)
    def run(build):
        if build.name == "asan":
            raise Skip("shown by the plain run; it builds for itself")
        if not os.environ.get("MPERF_DEBIAN13"):
            raise Skip("Debian 13 is tried by make check-debian13")
        root = chroot.made(build / "debian13", SUITE, mirror())
        chroot.run(root, "make BUILD=/build packages-check", PACKAGES_SECONDS)
        test(functools.partial(chroot.run, root))
    return run


def totals(said):
    """Show which tests were skipped there and how many passed; none failed, or run had told."""
    for line in re.findall(r"^skip .*|^unsteady: .*", said, re.M):
        print(f"  there: {line}")
    passed, = re.findall(r"^(\d+) passed, 0 failed, \d+ skipped$", said, re.M)
    print(f"  there: {passed} passed")
    return int(passed)


@there
def test_gcc_builds_without_a_warning_and_unit_tests_pass(run):
    assert re.match(r"gcc \(Debian (\d+)", run("gcc --version", 10))[1] == "14"
    run("make -j$(nproc) BUILD=/build WERROR=-Werror check-build", BUILD_SECONDS)
    said = run("tests/run /build --part unit", TESTS_SECONDS)
    assert totals(said) > 1000, said


@there
def test_clang_builds_without_a_warning(run):
    assert "clang version 19" in run("clang --version", 10)
    run("make -j$(nproc) BUILD=/build/clang CC=clang WERROR=-Werror check-build",
        BUILD_SECONDS)


@there
def test_the_pass_is_built_for_its_llvm_and_its_tests_pass(run):
    """It has LLVM 19 and no 16."""
    run("make -j$(nproc) BUILD=/build WERROR=-Werror all", BUILD_SECONDS)
    assert run("cd /build && ls -d llvm-*", 10).split() == ["llvm-19"]
    said = run("tests/run /build --part pass", TESTS_SECONDS)
    assert totals(said) >= 15, said


@there
def test_its_cppcheck_is_content(run):
    run("make -j$(nproc) BUILD=/build all", BUILD_SECONDS)
    assert totals(run("tests/run /build --part lint --match cppcheck", TESTS_SECONDS)) == 1


@there
def test_its_package_contents_lintian_and_works_below_its_systemd(run):
    """The tests of the package, there: most boot a container, which may be skipped with its reason."""
    run("make -j$(nproc) BUILD=/build all", BUILD_SECONDS)
    said = run("tests/run /build --part system --kind plain --match '^system-plain/deb/'",
               TESTS_SECONDS)
    run("make BUILD=/build/packages deb && ls /build/packages/deb/mperf-cc_*.deb", BUILD_SECONDS)
    assert "system-plain/deb/test_debian_packages_are_built_and_lintian_is_content (" in said, said
    assert totals(said) >= 1
