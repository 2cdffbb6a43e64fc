# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of the service that are killed, and a loop that hangs."""
import os
import random
import signal
import socket
import time

from scene import Result, Scene, account, check_account, check_segments, worker
from service import wait_until

WATCHDOG_SECONDS = 2     # what the emulated manager grants; the unit grants a minute
LONGEST_LIFE_SECONDS = 2  # of a daemon before it is killed: in starting, sampling, flushing


def fault_daemon_killed(build, times):
    """kill -9 of the daemon at any moment: the store opens, what was in hand is counted."""
    chance = random.Random(times)
    with Scene(build) as scene:
        service = scene.service
        for _ in range(times):
            service.start()
            time.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
            service.kill()
        service.start()
        scene.new_function()
        check_account(service)
        assert service.stop() == 0, service.said()[-2000:]
        files, stored, killed = check_segments(service)
    return Result(times, stored + killed, killed, f"{files} segments, all sound and sealed")


def workers_killed(build, times, role):
    with Scene(build) as scene:
        service = scene.service.start()
        for i in range(times):
            pid = wait_until(f"a worker to {role}", lambda: worker(service, role))
            os.kill(pid, signal.SIGKILL)
            wait_until(f"another worker to {role}", lambda p=pid: worker(service, role) not in (
                None, p))
            if i % 10 == 0:
                scene.new_function()
        scene.new_function()
        now = check_account(service)
        assert service.stop() == 0, service.said()[-2000:]
        check_segments(service)
    return Result(times, now["taken"], now["lost"], "a new program is named after the last")


def fault_opener_killed(build, times):
    """kill -9 of the opener under load: it comes again, and naming goes on."""
    return workers_killed(build, times, "open")


def fault_parser_killed(build, times):
    """kill -9 of the parser under load: it comes again, and naming goes on."""
    return workers_killed(build, times, "parse")


class Manager:
    """What systemd does about WatchdogSec=: hears pings, and sends SIGABRT to a daemon without any.
    Source: man systemd.service, man sd_watchdog_enabled"""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        os.chmod(self.path, 0o666)

    def environment(self):
        return {"NOTIFY_SOCKET": str(self.path),
                "WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1000000)}

    def hears(self, seconds):
        """Was there a ping within that many seconds from now?"""
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(65536)
        except BlockingIOError:
            pass
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if b"WATCHDOG=1" in self.socket.recv(65536):
                    return True
            except TimeoutError:
                return False
        return False


def fault_watchdog(build, times):
    """A loop that hangs sends no ping, is ended by SIGABRT and started again; one that only slept
    goes on."""
    with Scene(build) as scene:
        service = scene.service
        manager = Manager(scene.folder)
        for _ in range(times):
            service.start(env=manager.environment())
            wait_until("it pings", lambda: manager.hears(WATCHDOG_SECONDS))
            service.process.send_signal(signal.SIGSTOP)
            assert not manager.hears(WATCHDOG_SECONDS), "a stopped daemon says that it lives"
            service.process.send_signal(signal.SIGCONT)
            wait_until("it pings again", lambda: manager.hears(WATCHDOG_SECONDS))
            check_account(service)
            service.process.send_signal(signal.SIGSTOP)
            assert not manager.hears(WATCHDOG_SECONDS), "a stopped daemon says that it lives"
            service.process.send_signal(signal.SIGABRT)
            service.process.send_signal(signal.SIGCONT)
            assert service.process.wait(60) == -signal.SIGABRT, service.said()[-2000:]
        service.start()
        scene.new_function()
        now = account(service)
        assert service.stop() == 0, service.said()[-2000:]
        files, stored, killed = check_segments(service)
    return Result(times, stored + killed, killed + now["lost"], f"{files} segments, all sound")
