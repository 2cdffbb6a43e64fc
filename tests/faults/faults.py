# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All faults by name, and how often each is done by default: a hundred times where it
takes a moment, fewer where the service waits half a minute before it tries again."""
import crowds
import disc
import killed
import machine_wide

FAULTS = {
    "daemon-killed": (killed.fault_daemon_killed, 100),
    "opener-killed": (killed.fault_opener_killed, 100),
    "parser-killed": (killed.fault_parser_killed, 100),
    "watchdog": (killed.fault_watchdog, 10),
    "disc-full": (disc.fault_disc_full, 5),
    "read-only": (disc.fault_read_only, 5),
    "damage": (disc.fault_damage, 50),
    "processes": (crowds.fault_processes, 1),
    "mappings": (crowds.fault_mappings, 3),
    "clock": (machine_wide.fault_clock, 10),
    "hart": (machine_wide.fault_hart, 10),
}
