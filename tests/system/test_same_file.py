# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A name comes from the file that was mapped, or from none: other file systems with the same paths and inode
numbers, layers, copies in place. Programs call themselves what their hot function is called."""
import os
import shutil
import subprocess

from machine import Folder, Skip, need_program, need_root, mperfctl, rows, SOURCES
from rates import long_enough, rate_allowed

SECONDS = 30
SANITIZED = "test_programs_on_overlays_of_one_and_of_two_file_systems_are_named",
NAMES = "alpha", "omega"  # of the same length


def programs(build, folder, *ids):
    """One of each name, equal but for that and the kinds of their build ids (sha1), and of the same time."""
    for name, build_id in zip(NAMES, ids or ("sha1", "sha1")):
        subprocess.run(["cc", "-O1", "-g", f"-DHOT={name}", f'-DCOMM="{name}"', "-o", folder / name,
                        SOURCES / "same.c", f"-Wl,--build-id={build_id}"], check=True)
        os.utime(folder / name, (10 ** 9, 10 ** 9))


def script(text, folder, build, *before):
    """Run a shell script in a mount namespace of its own; its output."""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", *before, "sh", "-ec", text, "sh"],
                          cwd=folder, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "MPERFCTL": str(build / "mperfctl"),
                               "RATE": str(rate_allowed(499))})
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        raise Skip(f"cannot be mounted here: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


RECORD = "$MPERFCTL record -g none -e cpu-clock:u -F $RATE -o r.mprf -f --"


def named(build, path, name, wrong):
    """The share of a program's own samples that have its name; none has the other's."""
    found = rows(build, "hotspots", "-i", path, "--limit", "0", "--comm", name)["rows"]
    assert not [r for r in found if r["function"] == wrong], found[:5]
    mine = [r for r in found if (r["module"] or "").rpartition("/")[2] in ("prog", "t")]
    total = sum(r["self"] for r in mine)
    return sum(r["self"] for r in mine if r["function"] == name) / total if total else None


def test_another_file_systems_program_at_the_same_path_gives_no_names(build):
    need_root()
    need_program("unshare")
    for ids in ("none", "none"), ("sha1", "sha1"):
        with Folder() as folder:
            programs(build, folder, *ids)
            (folder / "m").mkdir()
            for ms, least in (20, None), (long_enough(700), 0.8):
                inodes = script(
                    f"mount -t tmpfs host m; cp omega m/prog; stat -c %i m/prog; {RECORD} unshare -m sh -ec '"
                    "mount -t tmpfs contained m; cp alpha m/prog; stat -c %i m/prog; "
                    f"for i in 1 2; do m/prog {ms}; done'", folder, build).split()
                assert inodes[0] == inodes[1], inodes  # else it shows nothing
                share = named(build, folder / "r.mprf", "alpha", "omega")
                assert least is None or share >= least, (ids, ms, share)


def test_programs_on_overlays_of_one_and_of_two_file_systems_are_named(build):
    need_root()
    need_program("unshare")
    with Folder() as folder:
        programs(build, folder)
        for place in "m", "low", "tmp":
            (folder / place).mkdir()
        shutil.copy(folder / "omega", folder / "low" / "prog")
        for layers in "$PWD/tmp/low:$PWD/tmp/other", "$PWD/low:$PWD/tmp/low":
            script(f"mount -t tmpfs none tmp; mkdir tmp/low tmp/other; cp alpha tmp/low/prog; {RECORD} "
                   f"unshare -m sh -ec 'mount -t overlay -o lowerdir={layers} none m; "
                   f"exec m/prog {long_enough(700)}'", folder, build)
            name, other = NAMES if "other" in layers else NAMES[::-1]
            assert named(build, folder / "r.mprf", name, other) > 0.8, layers


def test_copies_in_place_with_equal_times_have_names_of_their_own(build):
    for ids in ("none", "none"), ("sha1", "sha1"), ("sha1", "none"):
        with Folder() as folder:
            programs(build, folder, *ids)
            for ms, runs in (20, 6), (long_enough(400), 2):
                text = "".join(f"cp -p {name} t; ./t {ms}; " for name in NAMES * runs)
                mperfctl(build, "record", "-g", "none", "-F", rate_allowed(499), "-e", "cpu-clock:u", "-o",
                         "r.mprf", "-f", "--", "sh", "-ec", text, cwd=folder)
                shares = [named(build, folder / "r.mprf", a, b) for a, b in (NAMES, NAMES[::-1])]
                # the last run is not written over; the first may be before it is looked at
                assert ms == 20 or min(shares) > 0.3, (ids, shares)
                (folder / "t").unlink()


def test_copies_in_place_on_an_overlay_have_names_of_their_own(build):
    need_root()
    need_program("unshare")
    with Folder() as folder:
        programs(build, folder, "none", "none")
        for place in "m", "tmp":
            (folder / place).mkdir()
        # over the same inode, and with its number used again
        runs = "".join(f"cp -p {name} m/t; m/t {long_enough(500)}; {after} " for after in (":;", "rm m/t;")
                       for name in NAMES * 2)
        (folder / "runs").write_text(runs)
        script("mount -t tmpfs none tmp; mkdir tmp/up tmp/work tmp/low; mount -t overlay -o "
               f"lowerdir=tmp/low,upperdir=tmp/up,workdir=tmp/work none m; {RECORD} sh -e runs", folder, build)
        shares = [named(build, folder / "r.mprf", a, b) for a, b in (NAMES, NAMES[::-1])]
        assert min(shares) > 0.4, shares


def test_a_chmod_and_a_link_take_no_names_from_what_runs(build):
    with Folder() as folder:
        programs(build, folder)
        text = f"cp -p alpha t; ./t {long_enough(1500)} & sleep 0.4; chmod 700 t; ln t u; rm t; wait"
        mperfctl(build, "record", "-g", "none", "-F", rate_allowed(499), "-e", "cpu-clock:u", "-o", "r.mprf",
                 "-f", "--", "sh", "-ec", text, cwd=folder)
        assert named(build, folder / "r.mprf", "alpha", "omega") > 0.8


def test_machine_code_without_a_build_id_is_read_only_where_one_says_it_is_the_same(build):
    if not (build / "mperf-code").exists():
        raise Skip("built without LLVM's C library, so machine code is not read")
    with Folder() as folder:
        programs(build, folder, "none", "none")
        mperfctl(build, "record", "-F", rate_allowed(499), "-o", "r.mprf", "--", folder / "alpha",
                 long_enough(500), cwd=folder)
        answer = rows(build, "roofline", "--from", "code", "-i", folder / "r.mprf")
        assert not [r for r in answer["rows"] if r["function"] == "alpha"], answer["rows"][:3]
        assert any("build id is not known" in n for n in answer["provenance"]["notes"]), answer["provenance"]
        answer = rows(build, "roofline", "--from", "code", "-i", folder / "r.mprf", "--symfs", "/")
        assert [r for r in answer["rows"] if r["function"] == "alpha"], answer["provenance"]
