# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are no recordings, or not whole, or not one's own, are refused by name."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time

from machine import (BAD_WORDS, Folder, as_nobody, everybodys, mperfctl, need_program, need_root,
                     refused)
from recorded import fails, known, recording


# --- files that are no recordings ----------------------------------------------------------------

def bad_file(build, path, words, status=1):
    """All commands that read files refuse it, and leave it as it is."""
    before = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else None
    listed = sorted(os.listdir(path.parent))
    for how in (["hotspots"], ["flamegraph", "--folded"], ["doctor"]):
        done = fails(build, status, [re.escape(path.name), *words], *how, "-i", path)
        assert done.stdout == "", (how, done.stdout)
    assert before is None or path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == listed, os.listdir(path.parent)


REMEDY = r"(?i)\. .*(name|record|copy|wait|read|mperfctl)"


def test_files_that_are_no_recordings_are_refused(build):
    with Folder() as folder:
        bad_file(build, folder / "absent", ["no such file|No such file", REMEDY])
        (folder / "empty").write_bytes(b"")
        bad_file(build, folder / "empty", ["empty|not an mperf recording", REMEDY])
        (folder / "text").write_text("hello\n" * 1000)
        bad_file(build, folder / "text", ["not an mperf recording", REMEDY])
        (folder / "short").write_bytes(b"SQLite format 3\0")
        bad_file(build, folder / "short", ["cut off|short|damaged|not an mperf recording", REMEDY])
        (folder / "a folder").mkdir()
        bad_file(build, folder / "a folder", ["folder|director|regular|not an mperf", REMEDY])
        os.mkfifo(folder / "fifo")
        bad_file(build, folder / "fifo", ["regular|FIFO|pipe|not an mperf|no file", REMEDY])
        with sqlite3.connect(folder / "foreign.db") as db:
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
        bad_file(build, folder / "foreign.db", ["not an mperf recording", REMEDY])
        os.symlink("loop", folder / "loop")
        bad_file(build, folder / "loop", [r"\. \S"])


def patched(build, path, offset, data):
    """A copy of the good recording with bytes replaced."""
    content = bytearray(recording(build).path.read_bytes())
    content[offset:offset + len(data)] = data
    path.write_bytes(content)
    return path


def test_a_recording_of_another_version_is_refused(build):
    with Folder() as folder:
        # user_version is the big-endian word at 60. Source: SQLite's file format, "the header".
        newer = patched(build, folder / "newer", 60, (99).to_bytes(4, "big"))
        bad_file(build, newer, ["this mperf reads version 1", "version 99", REMEDY])
        alien = patched(build, folder / "alien", 68, b"alie")
        bad_file(build, alien, ["another program|not an mperf recording", REMEDY])


def test_a_truncated_recording_is_refused(build):
    content = recording(build).path.read_bytes()
    with Folder() as folder:
        for n in (1, 15, 99, 100, 511, 4095, 4096, 4097, 8192, len(content) // 2, len(content) - 4096,
                  len(content) - 1):
            (folder / "cut").write_bytes(content[:n])
            bad_file(build, folder / "cut", ["damaged|cut off|not an mperf recording", REMEDY])


def test_a_recording_with_flipped_bytes_does_no_harm(build):
    """Either the damage is seen and told, or it hit what nobody reads: never a crash."""
    content = recording(build).path.read_bytes()
    told = 0
    with Folder() as folder:
        path = folder / "flipped"
        for i in range(24):
            at = 100 + (len(content) - 300) * i // 24
            damaged = bytearray(content)
            for k in range(at, at + 200):
                damaged[k] ^= 0x5a
            path.write_bytes(damaged)
            done = mperfctl(build, "hotspots", "-i", path, "--json", check=False)
            assert not any(w in done.stderr for w in BAD_WORDS), done.stderr
            if done.returncode == 0:
                json.loads(done.stdout)
            else:
                refused(done, 1, "flipped", "damaged|not an mperf recording", REMEDY)
                told += 1
        assert told >= 3, told


def test_one_flipped_bit_is_told_or_changes_nothing(build):
    content = recording(build).path.read_bytes()
    with Folder() as folder:
        path = folder / "flipped"
        path.write_bytes(content)
        whole = mperfctl(build, "hotspots", "-i", path, "--limit", "0", "--json").stdout
        other = []
        for i in range(64):
            at = (len(content) - 1) * i // 63
            flipped = bytearray(content)
            flipped[at] ^= 1 << i % 8
            path.write_bytes(flipped)
            done = mperfctl(build, "hotspots", "-i", path, "--limit", "0", "--json", check=False)
            if done.returncode != 0:
                refused(done, 1, "flipped", "damaged|not an mperf recording|newer|older", REMEDY)
            elif done.stdout != whole:
                other.append(at)
        assert not other, other


def test_a_recording_that_is_still_being_written_is_refused(build):
    with Folder() as folder:
        (folder / "tmp").mkdir()
        client = subprocess.Popen([build / "mperfctl", "record", "-o", folder / "r", "-F", "99", "--",
                                   known(build), "spin", "30000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, TMPDIR=str(folder / "tmp")))
        try:
            for _ in range(200):
                found = list((folder / "tmp").glob("mperf-*/segment.mprf-wal"))
                if found and found[0].stat().st_size > 0:
                    break
                time.sleep(0.05)
            time.sleep(1.5)  # into the second window
            source = found[0].with_name("segment.mprf")
            shutil.copy(source, folder / "alone")
            (folder / "both").mkdir()
            shutil.copy(source, folder / "both" / "r")
            shutil.copy(found[0], folder / "both" / "r-wal")
            live = mperfctl(build, "hotspots", "-i", source, check=False)
        finally:
            client.terminate()
            client.wait(timeout=60)
        refused(live, 1, "segment.mprf", "unfinished", REMEDY)
        bad_file(build, folder / "alone", ["unfinished", REMEDY])
        bad_file(build, folder / "both" / "r", ["unfinished", REMEDY])
        assert os.listdir(folder / "tmp") == [], os.listdir(folder / "tmp")
        mperfctl(build, "hotspots", "-i", folder / "r")  # what came of it in the end is well


def test_a_file_that_may_not_be_read_is_refused(build):
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        shutil.copy(recording(build).path, folder / "private")
        os.chmod(folder / "private", 0o600)
        for how in "hotspots", "doctor":
            done = as_nobody(folder, environment, how, "-i", folder / "private")
            refused(done, 1, "private", "ermission", r"\. \S")
        os.chmod(folder / "private", 0o644)
        assert as_nobody(folder, environment, "hotspots", "-i", folder / "private").returncode == 0
        done = as_nobody(folder, environment, "record", "-o", folder / "r", "--", "true")
        refused(done, 1, re.escape(str(folder / "r")), "ermission", "-o")
