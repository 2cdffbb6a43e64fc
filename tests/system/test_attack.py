# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The service as an attacker meets it: its rights are the unit's and no others."""
from pathlib import Path

from attacked import DAEMON, MALLORY, Stage, shared, unit_capabilities

_stage = []


def stage(build):
    return shared(_stage, lambda: Stage(build, sanitized=True, flush="1s"))


# Source: include/uapi/linux/capability.h of Linux 6.12.
NUMBERS = {"dac_read_search": 2, "sys_ptrace": 19, "syslog": 34, "perfmon": 38, "bpf": 39,
           "checkpoint_restore": 40}


def test_the_daemon_under_attack_has_exactly_the_rights_of_the_unit(build):
    pid = stage(build).process.pid
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    wanted = sum(1 << NUMBERS[name] for name in unit_capabilities())
    for key in "CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb":
        assert int(status[key], 16) == wanted, (key, status[key])
    assert set(status["Uid"].split()) == {str(DAEMON)}
    assert status["NoNewPrivs"] == "1"


def test_an_ordinary_user_is_answered_by_it(build):
    done = stage(build).user(MALLORY, "status")
    assert done.returncode == 0, done.stderr
