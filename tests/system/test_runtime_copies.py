# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of the runtime in one process that cannot see one another by name: one serves all."""
from counted import LIBRARY_COUNTERS, SANITIZE, library_sums, linked, output, program
from machine import Folder, Skip

SHARED = ["-shared", "-fPIC"]
SCRIPT = {"anonymous": "{ global: library_count; local: *; };",
          "named": "THE_LIBRARY_1 { global: library_count; local: *; };"}


def hidden(build, name, *flags):
    return linked(build, f"hidden-{name}.so", "library.c", flags=[*SHARED, *flags])


def with_script(build, kind):
    with Folder() as folder:
        (folder / "script").write_text(SCRIPT[kind])
        return hidden(build, kind, f"-Wl,--version-script={folder}/script")


def check_one_serves(build, library):
    told = output(program(build), "library", library, 5)
    for sums in library_sums(told, 5):
        assert set(sums[c] for c in range(4, LIBRARY_COUNTERS)) == {2}, sums
    assert told.in_region("closing")["entries"] == told.in_region("closed")["entries"] == 5
    assert len({m.build_id for m in told.objects.values()}) == 2, told.objects


def test_a_library_that_hides_its_names_is_counted_with_the_program(build):
    for kind in SCRIPT:
        check_one_serves(build, with_script(build, kind))


def test_a_library_that_binds_its_own_names_is_counted_with_the_program(build):
    check_one_serves(build, hidden(build, "symbolic", "-Wl,-Bsymbolic"))
    check_one_serves(build, hidden(build, "excluded", "-Wl,--exclude-libs,ALL"))


def test_of_two_libraries_in_a_program_that_has_no_runtime_the_first_serves_and_stays(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's runtime must be in the program")
    first, second = with_script(build, "anonymous"), hidden(build, "second")
    told = output(linked(build, "plain", "plain.c", with_runtime=False), "both", first, second)
    assert sorted(sums[LIBRARY_COUNTERS - 1] for sums in library_sums(told, 2)) == [1, 2]
