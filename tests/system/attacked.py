# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A service as the unit starts it, and two ordinary users beside it.

The daemon is a user of its own with exactly the capabilities of systemd/mperfd.service.in and none of
root's rights: tests that run it as root do not see what these capabilities cannot stop. Mallory is the
user who attacks, Victor the one who has something to hide; each has a home folder of mode 0700. They are
users to the kernel, which is what the daemon asks; they need no account."""
import os
import re
import resource
import shutil
import subprocess

from machine import (BAD_WORDS, ROOT, Folder, Skip, at_end_of_module, everybodys, need_program,
                     need_root)
from service import Service

# Each module has users of its own: what one user does to a service is charged to that user by all
# services that see it, and modules run beside each other. Below 61184, where systemd's begin.
DAEMON, MALLORY, VICTOR, EVE = (20000 + 8 * (os.getpid() % 5000) + i for i in range(4))
UNIT = ROOT / "systemd" / "mperfd.service.in"


def unit_capabilities():
    """As setpriv names them: perfmon, sys_ptrace and so on."""
    granted = re.search(r"^AmbientCapabilities=(.*)$", UNIT.read_text(), re.M)[1].split()
    return [name.removeprefix("CAP_").lower() for name in granted]


def unit_limit(name):
    return re.search(rf"^{name}=(.*)$", UNIT.read_text(), re.M)[1]


def as_user(uid, *command, groups=()):
    """The argument vector that runs a command as this user, without capabilities."""
    belongs = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *belongs, "--inh-caps=-all",
            *map(str, command)]


def as_unit(*command, without=()):
    """The argument vector that runs a command with the unit's user, capabilities (but these) and limits."""
    added = ",".join("+" + name for name in unit_capabilities() if name not in without)
    # A container may allow less than the unit asks for.
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = int(unit_limit("LimitNOFILE"))
    files = files if allowed == resource.RLIM_INFINITY else min(files, allowed)
    assert unit_limit("LimitMEMLOCK") == "infinity"
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    locked = "unlimited" if locked == resource.RLIM_INFINITY else locked
    return ["prlimit", f"--nofile={files}", f"--memlock={locked}", "setpriv",
            f"--reuid={DAEMON}", f"--regid={DAEMON}", "--clear-groups", f"--inh-caps=-all,{added}",
            f"--ambient-caps=-all,{added}", f"--bounding-set=-all,{added}", "--no-new-privs",
            *map(str, command)]


class UnitService(Service):
    """A Service that runs as_unit(). `group` of the configuration is a group that EVE is in (see
    user()) and nobody else. `without` names capabilities that it lacks: bpf, as on kernels without BPF."""

    def __init__(self, build, folder, sanitized=False, without=(), **keys):
        if not sanitized:
            need_plain(build)
        need_root()
        need_program("setpriv")
        need_program("prlimit")
        super().__init__(build, folder, **keys)
        self.without = without
        self.own = folder / "daemon"
        self.own.mkdir(mode=0o755)
        os.chown(self.own, DAEMON, DAEMON)
        self.keys["path"] = self.store = self.own / "store"
        self.keys["socket"] = self.socket = self.own / "socket"
        self.keys["feed"] = self.feed = self.own / "feed"
        self.programs = everybodys(build, folder)
        if (build / "platforms").exists():
            shutil.copytree(build / "platforms", folder / "platforms", dirs_exist_ok=True)
        self.cache = self.own / "cache"
        self.cache.mkdir(mode=0o700)
        os.chown(self.cache, DAEMON, DAEMON)
        self.homes = {}
        for uid in MALLORY, VICTOR:
            home = folder / f"home-{uid}"
            home.mkdir(mode=0o700)
            os.chown(home, uid, uid)
            self.homes[uid] = home

    def command(self):
        return as_unit(self.folder / "mperfd", *super().command()[1:], without=self.without)

    def start(self, ready=True, **popen):
        environment = dict(os.environ, TMPDIR=str(self.cache), **popen.pop("env", {}))
        return super().start(ready, env=environment, **popen)

    def user(self, uid, *arguments, groups=(), **options):
        """mperfctl against this service, as that user; CompletedProcess with text output."""
        home = self.homes.get(uid, self.folder / "tmp")
        environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", HOME=str(home),
                           TMPDIR=str(self.folder / "tmp"), MPERF_SOCKET=str(self.socket))
        done = subprocess.run(as_user(uid, self.folder / "mperfctl", *arguments, groups=groups),
                              **{"capture_output": True, "text": True, "errors": "replace",
                                 "timeout": 300, "cwd": home, "env": environment, **options})
        assert not any(word in (done.stderr or "") for word in BAD_WORDS), done.stderr
        return done


def need_plain(build):
    """Skip under sanitizers: what takes many busy programs and a minute is shown once."""
    if build.name == "asan":
        raise Skip("shown by the plain run; unit tests take the same code through sanitizers")


def need_setuid(folder):
    """Skip where files of this folder do not change the user of a process (nosuid)."""
    program = folder / "suid-id"
    shutil.copy(shutil.which("id"), program)
    os.chown(program, VICTOR, VICTOR)
    os.chmod(program, 0o4755)
    done = subprocess.run(as_user(MALLORY, program, "-u"), capture_output=True, text=True, check=True)
    if int(done.stdout) != VICTOR:
        raise Skip("setuid programs do not change their user here (nosuid)")


def shared(cache, make):
    """What a module's tests share, made once by make() and kept in the list `cache`; it has __exit__,
    which is called when the module has run."""
    if not cache:
        cache.append(make())
        at_end_of_module(lambda: cache.pop().__exit__(None, None, None))
    return cache[0]


class Stage(UnitService):
    """A UnitService in a scratch folder of its own, started: for tests that share one."""

    def __init__(self, build, **keys):
        self.scratch = Folder()
        super().__init__(build, self.scratch.path, **keys)
        self.start()

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            self.scratch.cleanup()
