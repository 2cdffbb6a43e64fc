# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pinned jobs of others: what one asks of them is answered as if there were none, whatever pattern it is."""
import json
import re

from attacked import MALLORY, VICTOR, Stage, shared
from service import wait_until

SECONDS = 30
WAITS = "flushes and jobs"

SPIN = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]
stage = []
# Patterns that match the value below, and some of the same form that match nothing.
HIT, MISS = ("ma*", "marm?lade", "marmalade"), ("xa*", "xarm?lade", "xarmalade")


class Pinned(Stage):
    """Root and Victor each have a pinned job whose label is secret; Mallory has one of their own."""

    def __init__(self, build):
        super().__init__(build, flush="1s")
        for uid, label in (0, "secret=marmalade"), (VICTOR, "secret=marmalade"), (MALLORY, "mine=1"):
            run = self.ctl if uid == 0 else lambda *arguments, uid=uid: self.user(uid, *arguments)
            done = run("job", "run", "build", "--label", label, "--pin", "--", *SPIN)
            assert done.returncode == 0, done.stderr
        wait_until("all are pinned", lambda: len(self.ask("store")["pin"]) == 3)


def said(service, value, *arguments):
    """What Mallory is told: exit status, output and errors, without the value asked for and figures of the moment."""
    done = service.user(MALLORY, *(a.replace("VALUE", value) for a in arguments))
    text = (done.stdout + done.stderr).replace(value, "VALUE")
    return done.returncode, re.sub(r"\d[\d.,:]*", "N", text)


QUESTIONS = (
    ("hotspots", "--since", "-1h", "--label", "secret=VALUE"),
    ("hotspots", "--since", "-1h", "--label", "secret=VALUE", "--json"),
    ("hotspots", "--since", "-1h", "--by", "job", "--label", "secret=VALUE"),
    ("hotspots", "--since", "-1h", "--label", "secret=VALUE", "--event", "cycles"),
    ("flamegraph", "--since", "-1h", "--label", "secret=VALUE", "--format", "folded"),
    ("roofline", "--since", "-1h", "--label", "secret=VALUE"),
    ("diff", "secret=VALUE", "mine=1"),
    ("diff", "mine=1", "secret=VALUE", "--json"),
    ("diff", "secret=VALUE,unit=a.service", "mine=1"),
    ("gate", "--baseline", "secret=VALUE", "--candidate", "mine=1"),
    ("job", "pin", "secret=VALUE"),
    ("job", "unpin", "secret=VALUE"),
    ("schedule", "get", "VALUE.mprf"),
)


def test_answers_do_not_say_which_labels_others_jobs_have(build):
    service = shared(stage, lambda: Pinned(build))
    asked = [(question, HIT[0], MISS[0]) for question in QUESTIONS]
    asked += [(QUESTIONS[0], hit, miss) for hit, miss in zip(HIT[1:], MISS[1:])]
    for question, hit, miss in asked:
        answers = said(service, hit, *question), said(service, miss, *question)
        assert answers[0] == answers[1], (question, hit, *answers)
    assert len(service.ask("store")["pin"]) == 3
    shown = json.loads(service.user(MALLORY, "job", "--json").stdout)["pin"]
    assert [pin["by"] for pin in shown] == [MALLORY], shown


def test_ones_own_pins_are_read(build):
    service = shared(stage, lambda: Pinned(build))
    for uid, label in (MALLORY, "mine=1"), (VICTOR, "secret=m*"):
        done = service.user(uid, "hotspots", "--since", "-1h", "--label", label, "--json")
        answer = json.loads(done.stdout)
        assert answer["rows"] and "1 pinned job was read" in json.dumps(answer["provenance"]), answer
    everybodys = service.ask("hotspots", "--since", "-1h", "--label", "secret=marm*")
    assert "2 pinned jobs were read" in json.dumps(everybodys["provenance"]), everybodys["provenance"]
