# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of others: the service names a user's programs by what that user may read, whatever links,
mounts and maps the user makes, and by all of that."""
import contextlib
import json
import os
import shlex
import shutil
import struct
import subprocess
import threading
from pathlib import Path

from attacked import MALLORY, VICTOR, Stage, as_user, shared
from machine import SOURCES, Skip, compile_program, need_program
from service import wait_until

SECONDS = 40
FRIENDS = 60310  # a group of Mallory's
MS = "300"
SECRETS = "secret_recipe", "secret.c"
MOST = 0x7fffffffffff

_stage = []


class Kitchen(Stage):
    """A Stage with Victor's secret: a program, and what names its addresses."""

    def __init__(self, build):
        super().__init__(build, flush="1s", rate="997")
        self.home, self.victors = self.homes[MALLORY], self.homes[VICTOR]
        whole = compile_program(build, "secret.c", "-Wl,--build-id=none")
        self.secret = self.victors / "secret.debug"
        objcopy("--only-keep-debug", whole, self.secret)
        self.stripped = self.folder / "stripped"
        objcopy("--strip-all", whole, self.stripped)
        give(self.secret, VICTOR, 0o600)

    def linked(self, name, debug=None):
        """A program of Mallory's below home/NAME that says its debug file is NAME/secret.debug, with the
        checksum of the real one."""
        place = self.home / name
        place.mkdir()
        program = place / name
        objcopy(f"--add-gnu-debuglink={debug or self.secret}", self.stripped, program)
        os.chmod(program, 0o755)
        os.chown(place, MALLORY, MALLORY)
        return program

    def record(self, *lines, wrap=()):
        """Mallory records a script through the service. The functions, sources and modules found."""
        path = self.home / "recording"
        script = "; ".join(map(str, lines))
        done = self.user(MALLORY, "record", "-F", "999", "-o", path, "--", *wrap, "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        return self.found("-i", path)

    def found(self, *arguments, uid=MALLORY):
        done = self.user(uid, "hotspots", *arguments, "--by", "line", "--limit", "0", "--json")
        return json.loads(done.stdout)["rows"] if done.returncode == 0 else []

    def sees(self, uid, program):
        """Of what the service samples of its own accord."""
        return [row for row in self.found(uid=uid) if (row["module"] or "").endswith(f"/{program.name}")]

    def names(self, uid, program):
        return "secret_recipe" in json.dumps(self.sees(uid, program))

    @contextlib.contextmanager
    def running(self):
        """start(uid, program): it runs until the end of the block."""
        processes = []
        try:
            yield lambda uid, program, groups=(): processes.append(subprocess.Popen(
                as_user(uid, program, "600000", groups=groups), cwd=self.homes[uid]))
        finally:
            for process in processes:
                process.kill()
                process.wait()


def kitchen(build):
    need_program("objcopy")
    return shared(_stage, lambda: Kitchen(build))


def objcopy(*arguments):
    subprocess.run(["objcopy", *map(str, arguments)], check=True)


def give(path, uid, mode, gid=None):
    os.chown(path, uid, uid if gid is None else gid)
    os.chmod(path, mode)


def run(program, *more):
    return shlex.join([str(program), MS, *map(str, more)])


def of(rows, program):
    """What was said of that program."""
    own = [row for row in rows if (row["module"] or "").endswith(f"/{Path(program).name}")]
    assert own, f"no samples of {program}: {rows}"
    return own


def is_named(rows, program):
    return any(secret in json.dumps(row) for row in of(rows, program) for secret in SECRETS)


def access_list(*users):
    """system.posix_acl_access: the owner and these users read, nobody else does.
    Source: include/uapi/linux/posix_acl_xattr.h."""
    none = 0xffffffff
    entries = [(1, 6, none), *((2, 4, uid) for uid in users), (4, 0, none), (16, 4, none), (32, 0, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_debug_links_lead_to_no_file_that_their_user_cannot_read(build):
    k = kitchen(build)
    own, link, folder, hard, above = (k.linked(name) for name in
                                      ("own", "link", "folder", "hard", "above"))
    shutil.copy(k.secret, own.parent / "secret.debug")
    give(own.parent / "secret.debug", MALLORY, 0o600)
    (link.parent / "secret.debug").symlink_to(k.secret)
    (folder.parent / ".debug").symlink_to(k.victors)
    os.link(k.secret, hard.parent / "secret.debug")  # as where fs.protected_hardlinks is 0
    (above.parent / "secret.debug").symlink_to(f"../../{k.victors.name}/../{k.victors.name}/secret.debug")
    programs = own, link, folder, hard, above
    rows = k.record(*(run(program) for program in programs))
    assert [p.name for p in programs if is_named(rows, p)] == ["own"], rows


def test_a_mount_in_a_namespace_of_ones_own_changes_nothing(build):
    k = kitchen(build)
    need_program("unshare")
    mounted = k.linked("mounted")
    (mounted.parent / "secret.debug").write_text("")
    os.chmod(k.victors, 0o711)  # it can be reached, so it can be mounted, but not be read
    try:
        tried = subprocess.run(as_user(MALLORY, "unshare", "-Urm", "mount", "--bind", k.secret,
                                       mounted.parent / "secret.debug"), capture_output=True, text=True)
        if tried.returncode != 0:
            raise Skip(f"users may not mount in namespaces of their own: {tried.stderr.strip()}")
        rows = k.record(f"mount --bind {k.secret} {mounted.parent}/secret.debug", run(mounted),
                        wrap=["unshare", "-Urm"])
    finally:
        os.chmod(k.victors, 0o700)
    assert not is_named(rows, mounted), rows


def test_shared_debug_information_is_read_for_those_who_may(build):
    k = kitchen(build)
    need_program("dwz")
    place = k.home / "shared"
    place.mkdir()
    os.chown(place, MALLORY, MALLORY)
    whole = compile_program(build, "secret.c", "-Wl,--build-id=sha1", "-fno-plt")
    for name in "good", "bad":
        folder = place / name
        folder.mkdir()
        os.chown(folder, MALLORY, MALLORY)
        for copy in "one", "two":
            shutil.copy(whole, folder / copy)
        done = subprocess.run(["dwz", "-m", folder / "alt", "-M", folder / "alt", folder / "one",
                               folder / "two"], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not (folder / "alt").exists():
            raise Skip(f"dwz moved nothing: {done.stderr.strip()}")
        objcopy("--wildcard", "--strip-symbol=*", folder / "one", folder / name)
        os.chmod(folder / "alt", 0o644)
    os.chown(place / "bad" / "alt", VICTOR, VICTOR)
    shutil.move(place / "bad" / "alt", k.victors / "alt")
    (place / "bad" / "alt").symlink_to(k.victors / "alt")
    rows = k.record(run(place / "good" / "good"), run(place / "bad" / "bad"))
    named = [name for name in ("good", "bad") if "secret_recipe" in json.dumps(of(rows, name))]
    assert named == ["good"], rows


def test_split_units_are_read_for_those_who_may(build):
    """A program says itself where they are: in a folder of Victor's, or behind a link to it."""
    k = kitchen(build)
    place = k.home / "apart"
    place.mkdir()
    for name, folder in ("good", place), ("bad", k.victors), ("link", place):
        subprocess.run(["gcc", "-O1", "-g", "-gsplit-dwarf", "-c", "-o", f"{name}.o", SOURCES / "secret.c"],
                       cwd=folder, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
        subprocess.run(["gcc", "-Wl,--build-id=none", "-o", place / name, folder / f"{name}.o"], check=True)
        objcopy("--wildcard", "--strip-symbol=*", place / name)
        assert (folder / f"{name}.dwo").exists()
        give(folder / f"{name}.dwo", VICTOR, 0o644)
    shutil.move(place / "link.dwo", k.victors / "link.dwo")
    (place / "link.dwo").symlink_to(k.victors / "link.dwo")
    os.chown(place, MALLORY, MALLORY)
    rows = k.record(*(run(place / name) for name in ("good", "bad", "link")))
    named = [name for name in ("good", "bad", "link") if "secret_recipe" in json.dumps(of(rows, name))]
    assert named == ["good"], rows


def test_a_program_that_becomes_a_link_to_anothers_is_not_named_by_it(build):
    """It has the build id that Mallory knows of Victor's; but it is another inode."""
    k = kitchen(build)
    known = f"-Wl,--build-id=0x{'5ec7e7' * 6}"
    whole = compile_program(build, "secret.c", known, "-fno-common")
    victors = k.victors / "program"
    shutil.copy(whole, victors)
    give(victors, VICTOR, 0o700)
    place = k.home / "becomes"
    place.mkdir()
    os.chown(place, MALLORY, MALLORY)
    program = place / "becomes"
    objcopy("--strip-all", whole, program)
    os.chmod(program, 0o755)
    rows = k.record(run(program, victors))
    assert not is_named(rows, program), rows


def test_what_a_user_may_run_and_not_read_is_named_for_its_owner_alone(build):
    """Whichever of them runs it first."""
    k = kitchen(build)
    whole = compile_program(build, "secret.c", "-Wl,--build-id=none")
    for order in (MALLORY, VICTOR), (VICTOR, MALLORY):
        program = k.folder / f"execute-only-{order[0]}"
        control = k.home / f"control-{order[0]}"
        shutil.copy(whole, program)
        shutil.copy(whole, control)
        give(program, VICTOR, 0o711)
        give(control, MALLORY, 0o755)
        with k.running() as start:
            start(order[0], program)
            if order[0] == VICTOR:
                wait_until("Victor's program is named for him", lambda: k.names(VICTOR, program))
            else:
                wait_until("Mallory's is seen", lambda: k.sees(0, program))
            start(order[1], program)
            wait_until("Victor's program is named for him", lambda: k.names(VICTOR, program))
            # what is named after it shows that its turn has come
            start(MALLORY, control)
            wait_until("a program of Mallory's own is named", lambda: k.names(MALLORY, control))
        assert not k.names(MALLORY, program), order


def test_lines_of_a_log_mounted_as_a_perf_map_are_no_functions(build):
    k = kitchen(build)
    need_program("unshare")
    jit = compile_program(build, "jit.c")
    shutil.copy(jit, k.home / "jit")
    os.chmod(k.home / "jit", 0o755)
    log = k.folder / "log"
    log.write_text(f"0 {MOST:x} the-words-of-root\n")
    log.chmod(0o600)
    tried = subprocess.run(as_user(MALLORY, "unshare", "-Urm", "mount", "--bind", log, k.home / "jit"),
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise Skip(f"users may not mount in namespaces of their own: {tried.stderr.strip()}")
    over = threading.Event()

    def go_on():
        """A log grows; one that does not is older than the program, and no map of its code."""
        while not over.wait(0.05):
            with open(log, "a", encoding="ascii") as f:
                f.write(f"{0x1000:x} {MOST - 0x1000:x} the-words-of-root\n")

    root = threading.Thread(target=go_on)
    root.start()
    try:
        rows = k.record("touch /tmp/perf-$$.map", f"mount --bind {log} /tmp/perf-$$.map",
                        f"exec {k.home}/jit quiet 800", wrap=["unshare", "-Urm"])
    finally:
        over.set()
        root.join()
    forget_maps()
    assert any(row["module"] and "perf-" in row["module"] for row in rows), rows
    assert "the-words-of-root" not in json.dumps(rows), rows


def forget_maps():
    for path in (*Path("/tmp").glob("perf-*.map"), *Path("/tmp").glob("jit-*.dump")):
        if path.exists() and path.stat().st_uid == MALLORY:
            path.unlink()


def test_maps_and_jitdumps_of_ones_own_are_read(build):
    k = kitchen(build)
    jit = k.home / "jit-of-her-own"
    shutil.copy(compile_program(build, "jit.c"), jit)
    os.chmod(jit, 0o755)
    said = json.dumps(k.record(f"{jit} map 400", f"{jit} dump 400"))
    forget_maps()
    assert "jitted_by_map" in said and "jitted_by_dump" in said, said


def test_what_a_group_or_a_list_lets_a_user_read_is_named(build):
    k = kitchen(build)
    group, acl, stranger = (k.linked(name) for name in ("group", "acl", "stranger"))
    pantry = k.folder / "pantry"
    pantry.mkdir()
    give(pantry, VICTOR, 0o750, FRIENDS)
    for program, mode in (group, 0o640), (acl, 0o600), (stranger, 0o600):
        debug = pantry / f"{program.name}.debug"
        shutil.copy(k.secret, debug)
        give(debug, VICTOR, mode, FRIENDS)
        (program.parent / "secret.debug").symlink_to(debug)
    try:
        os.setxattr(pantry / "acl.debug", "system.posix_acl_access", access_list(MALLORY))
    except OSError as e:
        raise Skip(f"no access control lists here: {e}") from e
    with k.running() as start:
        start(MALLORY, stranger, groups=[FRIENDS])
        wait_until("it is seen", lambda: k.sees(MALLORY, stranger))
        start(MALLORY, acl, groups=[FRIENDS])
        start(MALLORY, group, groups=[FRIENDS])
        for program in group, acl:
            wait_until(f"{program.name} is named", lambda: k.names(MALLORY, program))
    assert not k.names(MALLORY, stranger), k.sees(MALLORY, stranger)
