# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One user's noise and the others' history: a store under attack keeps what others did."""
import os
import shutil
import subprocess

from attacked import MALLORY, VICTOR, UnitService, as_user, need_plain
from machine import Folder, compile_program
from rates import rate_allowed
from service import wait_until

SECONDS = 40

BUDGET = 16 << 20  # the least that mperf.conf takes
# 120 new call sites a sample, some 40 bytes each: at this rate 2 MB a second and hart. At 99 Hz it takes a minute.
RATE = 499
NOISE_S = 240  # it is ended when it has done what it can
CUT = 3000     # samples of Mallory that were kept without callers, when there is no room for them


def samples_of_victor(service):
    """What the windows know of Victor's threads: samples, and what the answer says of itself."""
    answer = service.ask("hotspots", "--by", "thread", "--comm", "victor", "--since", "-59m",
                         "--limit", 0)
    return sum(row["samples"] for row in answer["rows"]), answer["provenance"]


def window_files(service):
    return {row["file"]: row for row in service.ask("store")["file"] if row["tier"] == "window"}


def of(service, user):
    """What the store keeps of the user: the row of its share."""
    return next((row for row in service.ask("store").get("share", []) if row["user"] == user), {})


def run_victor(service, folder):
    """A few seconds of work under a name that nothing else has."""
    program = folder / "victor"
    shutil.copy(shutil.which("sh"), program)
    subprocess.run(as_user(VICTOR, "timeout", "4", program, "-c", "while :; do :; done"), check=False)
    return wait_until("Victor's work is stored", lambda: samples_of_victor(service)[0])


def test_noise_of_one_user_does_not_push_out_the_history_of_another(build):
    need_plain(build)
    noise = compile_program(build, "noise.c")
    with Folder() as folder:
        with UnitService(build, folder, flush="1s", budget=BUDGET, keep_windows="1h", keep_minutes="1h",
                         keep_hours="1h", rate=rate_allowed(RATE), overhead="none") as service:
            before = run_victor(service, folder)
            first = min(window_files(service))
            shutil.copy(noise, folder / "noise")
            with subprocess.Popen(as_user(MALLORY, folder / "noise", service.homes[MALLORY], NOISE_S),
                                  stdout=subprocess.DEVNULL) as attack:
                try:
                    wait_until("Mallory has no room", lambda: of(service, MALLORY).get("cut", 0) > CUT, NOISE_S)
                finally:
                    subprocess.run(as_user(MALLORY, "kill", "--", attack.pid), check=False)
            files = window_files(service)
            after, provenance = samples_of_victor(service)
            said = service.ask("store")
            print({name: row["bytes"] for name, row in files.items()}, said["tier"], said.get("share"))
            assert first in files, (first, files)
            # what was on its way when it was first looked for may have come since
            assert after >= before, (before, after, provenance)


HIDDEN_S = 5
HIDDEN_BYTES = 100_000  # far less than a tenth of what such noise takes; nothing else runs as Mallory


def test_noise_of_a_program_that_nobody_may_read_is_taken_from_its_users_share(build):
    need_plain(build)
    noise = compile_program(build, "noise.c")
    with Folder() as folder, UnitService(build, folder, flush="1s", budget=BUDGET, keep_windows="1h",
                                         keep_minutes="1h", keep_hours="1h") as service:
        hidden = folder / "noise"
        shutil.copy(noise, hidden)
        os.chmod(hidden, 0o711)

        # by a shell of Mallory's: setpriv execs while it still may read anything
        subprocess.run(as_user(MALLORY, "sh", "-c", 'exec "$0" "$@"', hidden, service.homes[MALLORY], HIDDEN_S),
                       check=True, stdout=subprocess.DEVNULL)
        wait_until("it is charged to Mallory", lambda: of(service, MALLORY).get("bytes", 0) > HIDDEN_BYTES)
