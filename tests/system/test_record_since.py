# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""record --since: what the service has kept of a time, as a recording that answers as the store does, for whoever
asks and for nobody else."""
import collections
import csv
import datetime
import io
import json
import os
import re
import shutil
import sqlite3
import time

from attacked import MALLORY, VICTOR, as_user
from machine import SAMPLES, Folder, compile_program, mperfctl, refused, seal, unseal
from recorded import known
from service import Service, wait_until
from test_pins import Users
from test_store import HOUR, a_sealed_segment, name_of, put_aged

SECONDS = 60
SPIN = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
# what is Victor's: his program, its arguments, a function of it, his job, his shell's arguments
SECRETS = b"victors_tool", b"secret_recipe", b"victors-job", b"VICTORS-PASSWORD"
SUMS = "samples", "cpu_ns", "value"
ALL_BY = "function", "module", "process", "thread", "cgroup", "job", "line", "hart", "address"
ABOUT_FILES = re.compile("file is still being written|only your own processes")


def at(seconds):
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def rows(path):
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        return lambda sql: db.execute(sql).fetchall()


def told(answer, by):
    """What an answer says of its samples, without what it says of its files and its asker. A query of some tasks that
    is not of code does not know whose stacks were cut; a file that has only these tasks does."""
    p = answer["provenance"]
    if by not in ("function", "module", "line", "address"):
        p["lost"].pop("truncated stack", None)
        p["notes"] = [note for note in p["notes"] if "are cut: callers are missing" not in note]
    return p | {"notes": [note for note in p["notes"] if not ABOUT_FILES.search(note)]}


def parts(words, text):
    """What is the same in any order. Rows of stacks that differ in the kernel alone are one in a file that hides it."""
    if "csv" in words:
        total = collections.Counter()
        for row in csv.DictReader(io.StringIO(text)):
            values = {key: int(row.pop(key) or 0) for key in SUMS}
            total.update({(json.dumps(row), key): value for key, value in values.items()})
        return sorted(total.items())
    if "speedscope" in words:
        return sorted(frame["name"] for frame in json.loads(text)["shared"]["frames"])
    return text.splitlines()


def are_the_same(what, saved, kept):
    """Equal values come in any order."""
    saved, kept = ([json.dumps(row) for row in side] for side in (saved, kept))
    assert kept, what
    assert sorted(saved) == sorted(kept), (what, "new", [r for r in saved if r not in kept][:5],
                                           "gone", [r for r in kept if r not in saved][:5])


def same_answers(store, file, since, until, events=(None, "waiting")):
    """What hotspots, flamegraph and export say of the store's stretch and of the file: `store` and `file` run
    mperfctl and give what it prints, or its refusal without the name of the source."""
    stretch = "--since", since, "--until", until
    for event in events:
        of_event = ("--event", event) if event else ()
        for by in ALL_BY:
            words = "hotspots", "--by", by, "-n", "0", "--json", *of_event
            kept, saved = store(*words, *stretch), file(*words)
            assert (kept is None) == (saved is None), (words, kept, saved)
            if kept is None:
                continue
            kept, saved = json.loads(kept), json.loads(saved)
            are_the_same(words, saved["rows"], kept["rows"])
            assert told(saved, by) == told(kept, by), (words, kept["provenance"], saved["provenance"])
        for words in ("flamegraph", "--folded"), ("export", "--as", "csv"), ("export", "--as", "speedscope"):
            kept, saved = store(*words, *of_event, *stretch), file(*words, *of_event)
            assert (kept is None) == (saved is None), (words, event)
            if kept is not None:
                are_the_same((*words, event), *(parts(words, text) for text in (saved, kept)))


def runner(run):
    """Runs mperfctl; its output, or None if it is refused."""
    def answered(*arguments):
        done = run(*arguments)
        return done.stdout if done.returncode == 0 else None
    return answered


class Stretch:
    """Two users who work, each in a job, and the time in which they did."""

    def __init__(self, build, folder):
        self.users = Users(build, folder, overhead="none")
        self.build, self.service = build, self.users.service

    def __enter__(self):
        self.users.__enter__()
        try:
            self.work()
        except BaseException:
            self.users.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error):
        self.users.__exit__(*error)

    def job(self, uid, name, *command):
        done = self.users.ctl(uid, "job", "run", name, "--", *command)
        assert done.returncode == 0, done.stderr

    def work(self):
        tool = self.service.homes[VICTOR] / "victors_tool"
        mine = self.service.homes[MALLORY] / "mallorys_tool"
        shutil.copy(compile_program(self.build, "secret.c"), tool)
        shutil.copy(known(self.build), mine)
        began = time.time()
        time.sleep(1.1)
        self.job(VICTOR, "victors-job", "sh", "-c", f"{SPIN} # VICTORS-PASSWORD\n{tool} 300; sleep 0.3")
        self.job(MALLORY, "mallorys-job", "sh", "-c", f"{SPIN}; {mine} spin 300; sleep 0.3; "
                 "dd if=/dev/zero of=/dev/null bs=64k count=40000 2>/dev/null")
        time.sleep(1.1)
        ended = time.time()
        wait_until("it is stored and named", lambda: self.is_stored(began, ended))
        self.since, self.until = at(began), at(ended + 1)
        time.sleep(2)  # what came late is written, too

    def is_stored(self, began, ended):
        done = self.service.ctl("hotspots", "--since", at(began), "--until", at(ended + 1), "-n", "0")
        return all(word in done.stdout for word in ("secret_recipe", "spin", "[kernel]")) and time.time() > ended + 2

    def save(self, uid, path, *more):
        """As root (0), or as that user into their home."""
        words = "record", "--since", self.since, "--until", self.until, "-f", "-o", path, *more
        return self.service.ctl(*words, check=False) if uid == 0 else self.users.ctl(uid, *words)


def saved(done):
    assert done.returncode == 0 and "wrote " in done.stderr and done.stdout == "", (done.returncode, done.stderr)
    return done.stderr


def test_a_stretch_answers_as_the_store_does_and_has_what_its_asker_may_see(build):
    with Folder() as folder, Stretch(build, folder) as s:
        everything, mine = folder / "all.mprf", s.service.homes[MALLORY] / "mine.mprf"
        saved(s.save(0, everything))
        saved(s.save(MALLORY, mine))

        # root has all of it
        def of_root(*words):
            return s.service.ctl(*words, check=False)
        same_answers(runner(of_root), runner(lambda *w: mperfctl(build, *w, "-i", everything, check=False)),
                     s.since, s.until)
        missing = [secret for secret in SECRETS if secret not in everything.read_bytes()]
        assert not missing, missing
        of = rows(everything)
        assert of("SELECT value FROM meta WHERE key = 'all'") == [(1,)]
        kernel = {name.encode() for name, in of(
            "SELECT DISTINCT u.name FROM file f JOIN frame r ON r.file = f.id JOIN place p ON p.frame = r.id "
            "JOIN function u ON u.id = p.function WHERE f.kind IN (2, 3) AND length(u.name) > 9")}
        of_users = {name for name, in of(
            "SELECT DISTINCT u.name FROM file f JOIN frame r ON r.file = f.id JOIN place p ON p.frame = r.id "
            "JOIN function u ON u.id = p.function WHERE f.kind NOT IN (2, 3)")}
        kernel = {name for name in kernel if name.decode() not in of_users}
        assert len(kernel) > 3, kernel
        others = {comm.encode() for comm, in of(
            f"SELECT DISTINCT comm FROM task WHERE uid IS NOT {MALLORY} AND length(comm) > 7 AND comm NOT IN "
            f"(SELECT comm FROM task WHERE uid = {MALLORY})")}

        # an ordinary user has their own processes, and one word for the kernel
        def of_mallory(*words):
            return s.users.ctl(MALLORY, *words)
        same_answers(runner(of_mallory), runner(lambda *w: of_mallory(*w, "-i", mine)), s.since, s.until)
        raw = mine.read_bytes()
        seen = [word for word in (*SECRETS, *kernel, *others) if word in raw]
        assert seen == [], seen
        assert b"mallorys_tool" in raw and b"mallorys-job" in raw, of("SELECT comm FROM task")
        of = rows(mine)
        of_tasks, of_files = of("SELECT DISTINCT uid FROM task"), of("SELECT path, build_id FROM file WHERE kind IN (2, 3)")
        assert of_tasks == [(MALLORY,)] and of_files == [("[kernel]", None)], (of_tasks, of_files)
        strays = of("SELECT count(*) FROM sample WHERE task = 0 OR rung > 5")
        assert strays == [(0,)], strays
        assert of("SELECT r.offset, u.name FROM frame r JOIN file f ON f.id = r.file JOIN place p ON p.frame = r.id "
                  "JOIN function u ON u.id = p.function WHERE f.kind IN (2, 3)") == [(0, "[kernel]")]
        assert of("SELECT count(*) FROM stack s JOIN stack c ON c.id = s.parent AND c.frame = s.frame JOIN frame r "
                  "ON r.id = s.frame JOIN file f ON f.id = r.file WHERE f.kind IN (2, 3)") == [(0,)]
        assert of("SELECT value FROM meta WHERE key = 'all'") == [(0,)]
        assert of("PRAGMA freelist_count") == [(0,)] and of("PRAGMA integrity_check") == [("ok",)]

        filters(s, build, folder)
        merged(build, folder, everything)
        answered_elsewhere(build, folder, everything)
        leaves_nothing(s)


def filters(s, build, folder):
    """Each choice is what the same filter of a query shows."""
    for words in (("--comm", "victors_tool"), ("--label", "job=victors-job"), ("--label", "job=mallorys-job"),
                  ("--comm", "dd", "--comm", "victors_tool")):
        saved(s.save(0, folder / "some.mprf", *words))
        for by in "function", "thread", "job":
            kept = s.service.ask("hotspots", "--since", s.since, "--until", s.until, *words, "--by", by, "-n", "0")
            answer = json.loads(mperfctl(build, "hotspots", "-i", folder / "some.mprf", "--by", by, "-n", "0",
                                         "--json").stdout)
            assert answer["rows"] == kept["rows"] and kept["rows"], (words, kept["rows"], answer["rows"])
    raw = s.service.homes[MALLORY] / "none.mprf"
    done = s.save(MALLORY, raw, "--comm", "victors_tool")
    assert done.returncode == 1 and "no such samples of your processes" in done.stderr, done.stderr
    assert not raw.exists()
    saved(s.save(0, folder / "one.mprf", "--label", "job=mallorys-job"))
    assert not any(secret in (folder / "one.mprf").read_bytes() for secret in SECRETS)


def merged(build, folder, path):
    """Beside another recording it adds up."""
    mperfctl(build, "record", "-o", folder / "run.mprf", "--", known(build), "spin", "100")
    def samples(*paths):
        inputs = [word for p in paths for word in ("-i", p)]
        return json.loads(mperfctl(build, "hotspots", *inputs, "--json").stdout)["provenance"]["samples"]
    assert samples(path, folder / "run.mprf") == samples(path) + samples(folder / "run.mprf")


def answered_elsewhere(build, folder, path):
    """Commands that read recordings read it."""
    assert "secret_recipe" in mperfctl(build, "diff", folder / "run.mprf", path, "--json").stdout
    mperfctl(build, "flamegraph", "-i", path, "-o", folder / "flame.html")
    mperfctl(build, "doctor", "-i", path, check=False)
    done = mperfctl(build, "hotspots", "-i", path, "--comm", "victors_tool", "--json")
    assert "secret_recipe" in done.stdout


def leaves_nothing(s):
    """No folder of the daemon's is left, and its users hold nothing."""
    wait_until("its cache is empty", lambda: not os.listdir(s.service.cache))
    held = {row["limit"]: row["held"] for row in s.service.ask("status")["limit"]}
    assert held["recordings"] == held["cache"] == 0, held


def test_the_newest_samples_are_in_it(build):
    with Folder() as folder, Service(build, folder, flush="60s") as service:
        mperfctl(build, "record", "-o", folder / "r", "--", known(build), "spin", "300")
        said = saved(service.ctl("record", "--since", "-1m", "-o", folder / "new.mprf"))
        assert "the recording lacks" in said and "the store has nothing" in said, said
        assert "spin" in mperfctl(build, "hotspots", "-i", folder / "new.mprf").stdout
        quiet = service.ctl("record", "--since", "-1m", "-q", "-o", folder / "quiet.mprf")
        assert quiet.stderr == "" and (folder / "quiet.mprf").exists(), quiet.stderr
        piped = service.ctl("record", "--since", "-1m", "-o", "-", check=False, encoding="latin-1")
        assert piped.returncode == 0 and piped.stdout.startswith("SQLite format 3"), piped.stderr


def test_what_means_nothing_is_refused_and_leaves_no_file(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        def fails(status, words, *arguments):
            done = service.ctl("record", "-o", folder / "no.mprf", *arguments, check=False)
            assert done.returncode == status and words in done.stderr, (arguments, done.returncode, done.stderr)
            assert not (folder / "no.mprf").exists(), arguments
        for more in (("-a",), ("--for", "1s"), ("-F", "99"), ("-e", "cpu-clock"), ("-g", "fp"), ("-U",), ("-M", "ipc"),
                     ("--overhead", "1%"), ("--", "true")):
            fails(2, "--since saves what the service has kept", "--since", "-1m", *more)
        for more in ("--until", "-1m"), ("--comm", "sh", "-a"), ("--cgroup", "/x/", "-a"):
            fails(2, f"{more[0]} chooses among what the service has kept", *more)
        fails(2, "--until is not after --since", "--since", "-1m", "--until", "-2m")
        fails(2, "is in the future", "--since", at(time.time() + 1000))
        fails(1, "the store has no samples of that time", "--since", "-3d", "--until", "-2d")
        wait_until("something is stored", lambda: service.ask("hotspots", "--since", "-1m")["rows"])
        fails(1, "the store has no such samples of that time", "--since", "-1m", "--comm", "no such name")
        fails(1, "the store has no such samples of that time", "--since", "-1m", "--pid", "4194304")
        (folder / "other").write_text("not a recording")
        done = service.ctl("record", "--since", "-1m", "-o", folder / "other", check=False)
        assert done.returncode == 1 and "is not an mperf recording" in done.stderr, done.stderr
        assert (folder / "other").read_text() == "not a recording"
    with Folder() as folder:
        done = mperfctl(build, "record", "--since", "-1m", "-o", folder / "no.mprf", env={"MPERF_SOCKET": ""},
                        check=False)
        refused(done, 1, "no mperfd service answers")
        assert not (folder / "no.mprf").exists()


def a_seed(build, folder):
    """A segment of the service's with some samples; a short one may have none."""
    while True:
        seed = a_sealed_segment(build, folder)
        if rows(seed)(f"SELECT sum(count) FROM {SAMPLES}")[0][0]:
            return seed
        shutil.rmtree(folder / "seed")


def of_other_boot(path, boot):
    unseal(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'boot_id'", (f"{boot}-0000-0000-0000-000000000000",))
    seal(path)


def test_what_a_recording_cannot_have_is_said(build):
    """An earlier boot, hours of which only sums are left, a damaged file."""
    with Folder() as folder:
        seed = a_seed(build, folder)
        service = Service(build, folder, flush="1s", keep_windows="2d")
        now = time.time()
        sums = put_aged(service.store, seed, now - 20 * HOUR)
        with service:
            day = time.strftime("%Y%m%dT", time.gmtime(now - 20 * HOUR))
            wait_until("the oldest is summed up", lambda: list((service.store / "minute").glob(f"{day}*.mprf")))
            assert service.stop() == 0
        service.keys["keep_windows"] = "2h"
        earlier = put_aged(service.store, seed, now - HOUR)
        of_other_boot(earlier, "bbbbbbbb")
        earlier = earlier.rename(earlier.with_name(name_of(now - HOUR, "bbbbbbbb")))
        with service:
            wait_until("the oldest is gone", lambda: not sums.exists())
            wait_until("there are windows of now", lambda: service.ask("hotspots", "--since", "-10s")["rows"])
            done = service.ctl("record", "--since", at(now - 21 * HOUR), "--until", at(now - 19 * HOUR), "-o",
                               folder / "sums.mprf", check=False)
            assert done.returncode == 1 and "only sums of minutes or hours" in done.stderr, done.stderr
            assert "Save a time that it has in full, from 20" in done.stderr, done.stderr
            said = saved(service.ctl("record", "--since", at(now - 21 * HOUR), "--until", at(now - HOUR + 60), "-o",
                                     folder / "part.mprf"))
            assert "of which the store has only sums of minutes or hours" in said, said
            assert not (folder / "sums.mprf").exists()

            said = saved(service.ctl("record", "--since", "-24h", "-o", folder / "both.mprf"))
            assert "are of an earlier boot" in said, said
            boots = rows(folder / "both.mprf")("SELECT min(realtime_ns) FROM window")[0][0] / 1e9
            assert boots > now - 1, (boots, now)
            said = saved(service.ctl("record", "--since", at(now - 2 * HOUR), "--until", at(now - HOUR + 60), "-o",
                                     folder / "old.mprf"))
            assert "the recording lacks" in said, said
            (n,), = rows(folder / "old.mprf")(f"SELECT sum(count) FROM {SAMPLES}")
            (of_seed,), = rows(seed)(f"SELECT sum(count) FROM {SAMPLES}")
            assert n == of_seed, (n, of_seed)

            rotten = bytearray(earlier.read_bytes())
            rotten[len(rotten) // 2] ^= 255
            earlier.write_bytes(rotten)
            done = service.ctl("record", "--since", at(now - 2 * HOUR), "--until", at(now - HOUR + 60), "-o",
                               folder / "rotten.mprf", check=False)
            assert done.returncode == 1 and "cannot be read" in done.stderr, done.stderr
            assert not (folder / "rotten.mprf").exists()


def test_loops_are_saved_with_their_counts(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        program = os.path.join(os.path.dirname(__file__), "feed_program.py")
        began = time.time()
        time.sleep(1.1)
        done = service.ctl("job", "run", "counted", "--", "sh", "-c",
                           f"MPERF_FEED={service.feed} {shutil.which('python3')} {program} 3 30 7500000")
        assert done.returncode == 0, done.stderr
        wait_until("its loops are stored", lambda: service.ask("roofline", "--since", at(began))["rows"])
        time.sleep(2.1)
        stretch = "--since", at(began), "--until", at(time.time() - 1)
        saved(service.ctl("record", *stretch, "-o", folder / "loops.mprf"))
        def counts(answer):
            return [{k: v for k, v in row.items() if isinstance(v, (int, str))} for row in answer["rows"]]
        kept = counts(service.ask("roofline", *stretch))
        assert kept and counts(json.loads(mperfctl(build, "roofline", "-i", folder / "loops.mprf", "--json").stdout)) \
            == kept
