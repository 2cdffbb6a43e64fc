# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of the runtime in one process that cannot see one another by name: one serves all."""
import shutil
import subprocess

from counted import (LIBRARY_COUNTERS, SANITIZE, edges, environment, library_sums, linked, output,
                     program)
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


def test_a_copy_of_the_runtime_takes_no_static_storage(build):
    """So more libraries fit than static storage has room for, if their biases are dynamic too, as with
    dynamic-tls=1."""
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's libraries are large")
    n, room = 150, "glibc.rtld.optional_static_tls=16384"  # as mperf-runtime(7) says
    own = linked(build, "own-choice.so", "choice.c", flags=SHARED)
    with Folder() as folder:
        for i in range(n):
            shutil.copy(own, folder / f"library.{i}")
        told = output(edges(build), "opens", n, folder / "library", GLIBC_TUNABLES=room)
        assert sum(m.n_counters == 24 for m in told.objects.values()) == n, len(told.objects)
        done = subprocess.run([edges(build), "opens", str(n), folder / "library"], text=True,
                              capture_output=True, env=environment(MPERF_FEED=""), timeout=60)
        assert done.returncode == 0, done.stdout


def counted_entries(build, library, **variables):
    """Of the 2,000 entries into the function of choice.c: how many counted, and the sum of their
    places in their ten."""
    told = output(program(build), "library", library, 1, **variables)
    found = [o for o, m in told.objects.items() if m.n_counters == 24]  # none, if nothing counted
    return tuple(sum(told.sum(counter, object=o) for o in found) for counter in (4, 5))


def test_functions_in_two_bodies_of_a_library_that_hides_its_names_follow_the_choice(build):
    hides = linked(build, "hidden-choice.so", "choice.c", flags=[*SHARED, "-Wl,--exclude-libs,ALL"])
    shows = linked(build, "choice.so", "choice.c", flags=SHARED, with_runtime=False)
    for made in shows, hides:
        assert counted_entries(build, made) == (2000, 9000)
        assert counted_entries(build, made, MPERF_SAMPLE=0, MPERF_LOOPS="other") == (0, 0)
        n, places = counted_entries(build, made, MPERF_SAMPLE=10)
        # One in each ten, at a random place: 4.5 +- 0.2 on average.
        assert n in range(199, 202) and 3.3 * n < places < 5.7 * n, (n, places)


def test_of_two_libraries_in_a_program_that_has_no_runtime_the_first_serves_and_stays(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer's runtime must be in the program")
    first, second = with_script(build, "anonymous"), hidden(build, "second")
    told = output(linked(build, "plain", "plain.c", with_runtime=False), "both", first, second)
    assert sorted(sums[LIBRARY_COUNTERS - 1] for sums in library_sums(told, 2)) == [1, 2]
