# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the programs make of the platform database on this machine: cores, overrides, errors."""
import json
import os
import platform
import re
import signal
import subprocess
from pathlib import Path

from machine import BAD_WORDS, ROOT, Folder, Skip, mperfctl, need_program, need_root, refused, rows
from service import PATIENCE_S, Service, wait_until

# An /etc of its own, with the files of the folder $0 in platforms.d.
ETC = ('mount -t tmpfs none /mnt && cp -a /etc/. /mnt && mkdir -p /mnt/mperf/platforms.d && '
       'cp "$0"/*.json /mnt/mperf/platforms.d && mount --move /mnt /etc && exec "$@"')


def with_platforms(folder, *command):
    """The command, with the folder's files as /etc/mperf/platforms.d."""
    need_root()
    need_program("unshare")
    return ["unshare", "-m", "sh", "-c", ETC, str(folder), *map(str, command)]


def try_platforms(folder):
    done = subprocess.run(with_platforms(folder, "true"), capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"no /etc of one's own here: {done.stderr.strip()}")


def ask(build, folder, *arguments):
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    environment.pop("MPERF_SOCKET", None)
    done = subprocess.run(with_platforms(folder, build / "mperfctl", *arguments), env=environment,
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert not any(word in done.stdout + done.stderr for word in BAD_WORDS), done.stderr
    return done


def online():
    return os.sysconf("SC_NPROCESSORS_ONLN")


def found_of(answer, topic):
    return [row for row in answer["rows"] if row["topic"] == topic]


def this_core():
    """The row of "cpus" that fits this machine's harts, by /proc/cpuinfo."""
    said = {}
    for line in open("/proc/cpuinfo", encoding="utf-8", errors="replace"):
        key, _, value = line.partition(":")
        said.setdefault(key.strip(), value.strip())
    if platform.machine() == "x86_64":
        return {"arch": "x86", "vendor": said["vendor_id"], "family": int(said["cpu family"]),
                "model": int(said["model"])}
    if platform.machine() == "aarch64":
        midr = (int(said["CPU implementer"], 16) << 24 | int(said["CPU variant"], 16) << 20 |
                0xf << 16 | int(said["CPU part"], 16) << 4 | int(said["CPU revision"]))
        return {"arch": "arm64", "midr": hex(midr)}
    if platform.machine() == "riscv64" and "mvendorid" in said:
        return {"arch": "riscv", "mvendorid": said["mvendorid"], "marchid": said["marchid"],
                "mimpid": said["mimpid"]}
    raise Skip("/proc/cpuinfo does not say which core this is")


def tried_core():
    """A description of this machine's core, as its owner may write one."""
    origin = {"source": "a test", "verified": "no"}
    return {
        "platform": "tried-core", "title": "Tried Core", **origin,
        "arch": this_core()["arch"],
        "cpus": [{**this_core(), **origin}],
        "events": [
            {"code": "0x1f7", "name": "tried_event", "says": "what the test tries",
             "topic": "tried-topic", **origin},
            {"code": "0x1f8", "name": "tried_loads", "generic": ["L1-dcache-loads"],
             "says": "loads", "topic": "cache", **origin}],
        "quirks": [
            {"quirk": "note", "says": "this core was tried on a Tuesday", **origin},
            {"quirk": "overflow", "counters": "none", **origin}],
    }


def write(folder, name, content):
    (folder / name).write_text(content if isinstance(content, str)
                               else json.dumps(content, indent=1) + "\n")


def test_doctor_names_the_core_of_every_hart(build):
    answer = rows(build, "doctor")
    cores = found_of(answer, "core")
    assert {row["hart"] for row in cores} == {
        row["hart"] for row in found_of(answer, "sampling")}, cores
    assert len({row["hart"] for row in cores}) == online(), cores
    # Its identity, or that it is not known.
    assert all(re.search(r"(x86 \w+-\d+-|arm64 0x|riscv 0x|not known)", row["finding"])
               for row in cores if row["state"] == "ok" or row["remedy"]), cores
    assert not found_of(answer, "platforms"), found_of(answer, "platforms")


def test_an_owner_describes_a_core_of_his_own(build):
    with Folder() as folder:
        write(folder, "tried.json", tried_core())
        try_platforms(folder)
        answer = json.loads(ask(build, folder, "doctor", "--json").stdout)
        cores = found_of(answer, "core")
        assert cores and all("Tried Core" in row["finding"] for row in cores), cores
        assert any("Tuesday" in row["finding"] and "not verified" in row["finding"]
                   for row in found_of(answer, "errata")), found_of(answer, "errata")

        listed = json.loads(ask(build, folder, "list", "--json").stdout)
        tried = [row for row in listed["rows"] if row["event"] == "tried_event"]
        assert len(tried) == 1 and tried[0]["topic"] == "tried-topic", tried
        assert tried[0]["code"] == "r1f7" and tried[0]["counts"] in ("yes", "zero", "no"), tried
        assert tried[0]["counts"] == "yes" or tried[0]["reason"], tried
        # Beside the kernel's topic of that name it is told apart.
        assert [row["topic"] for row in listed["rows"]
                if row["event"] == "tried_loads"] == ["core-cache"], listed
        some = ask(build, folder, "list", "-a", "tried-topic").stdout
        assert "tried_event" in some and "r1f7" in some and "cpu-clock" not in some, some
        for topic in "cache", "core-cache":
            assert "tried_loads" in ask(build, folder, "list", "-a", topic).stdout, topic


def test_an_owners_events_are_taken_by_name(build):
    with Folder() as folder:
        write(folder, "tried.json", tried_core())
        try_platforms(folder)
        done = ask(build, folder, "stat", "-e", "cpu-clock,tried_event", "--json", "--", "true")
        assert done.returncode == 0, done.stderr
        counted = {row["event"]: row for row in json.loads(done.stderr)["rows"]}
        assert counted["cpu-clock"]["value"] > 0, counted
        # By the very rule by which the raw code is counted, or is not. Whether a counter is free may
        # change between the two.
        events = "cpu-clock,tried_event,r1f7"
        for attempt in range(5):
            both = ask(build, folder, "stat", "-e", events, "--json", "--", "true")
            plain = {row["event"]: row for row in json.loads(both.stderr)["rows"]}
            if plain["tried_event"]["reason"] == plain["r1f7"]["reason"]:
                break
        else:
            raise AssertionError((attempt, counted, plain))
        refused(ask(build, folder, "stat", "-e", "tried_evnet", "--", "true"), 2,
                "'tried_event'")
        refused(mperfctl(build, "stat", "-e", "tried_event", "--", "true", check=False), 2,
                "unknown event")


def metric(name, text, unit="", group="own"):
    return {"MetricName": name, "MetricExpr": text, "MetricGroup": group, "source": "made",
            "verified": "no"} | ({"ScaleUnit": unit} if unit else {})


def test_an_owners_metrics_are_counted_and_listed(build):
    """Of software events, so that any machine has them."""
    core = tried_core()
    core["metrics"] = [metric("faults_per_ms", r"page\-faults / (task\-clock / 1e6)", "1per_ms", "own;Second"),
                       metric("twice", "2 * faults_per_ms"), metric("vain", r"1 / emulation\-faults")]
    with Folder() as folder:
        write(folder, "tried.json", core)
        try_platforms(folder)
        done = ask(build, folder, "stat", "-M", "own", "--json", "--", "sh", "-c", "ls >/dev/null")
        assert done.returncode == 0, done.stderr
        rows = {row["event"]: row for row in json.loads(done.stderr)["rows"]}
        told = rows["page-faults"]["value"] / (rows["task-clock"]["value"] / 1e6)
        assert abs(rows["faults_per_ms"]["scaled"] - told) < 1e-6 * told, rows
        assert rows["faults_per_ms"]["unit"] == "per_ms", rows
        assert abs(rows["twice"]["scaled"] - 2 * told) < 1e-6 * told, rows
        assert rows["vain"]["scaled"] is None and "is 0" in rows["vain"]["reason"], rows
        text = ask(build, folder, "stat", "-M", "twice", "-r", "2", "--", "true").stderr
        assert re.search(r"^ +[\d.]+ +twice  \( ± ", text, re.M), text
        listed = ask(build, folder, "list", "metrics").stdout
        assert "faults_per_ms" in listed and "cpu-clock" not in listed, listed
        assert re.search(r"^faults_per_ms +own, Second\b", listed, re.M), listed
        refused(ask(build, folder, "stat", "-M", "faults_per_hour", "--", "true"), 2,
                "Tried Core knows no metric or group named 'faults_per_hour'")


def test_an_owners_codes_have_fields(build):
    """Two events in one code, added up: said by mperfctl and by the check, and refused where it is none."""
    origin = {"source": "a test", "verified": "no"}
    core = tried_core()
    core["quirks"] += [
        {"quirk": "selector", "name": "tried", **origin},
        {"quirk": "field", "name": "FIRST", "bits": "0-7", "holds": "event", **origin},
        {"quirk": "field", "name": "SECOND", "bits": "8-15", "holds": "event", **origin},
        {"quirk": "field", "name": "HOW", "bits": "16-17", "holds": "operation", "joins": ["FIRST", "SECOND"],
         "values": ["OR=0", "ADD=2"], **origin}]
    core["events"] += [{"code": code, "name": name, "topic": "bank", "counters": "0x3", **origin}
                       for name, code in (("tried_a", 5), ("tried_b", 6))]
    with Folder() as folder:
        write(folder, "tried.json", core)
        try_platforms(folder)
        found = ask(build, folder, "list", "--decode", "r20605", "--json")
        assert found.returncode == 0, found.stderr
        rows_found = [[row[key] for key in ("core", "field", "bits", "value", "means", "reason")]
                      for row in json.loads(found.stdout)["rows"]]
        assert rows_found == [
            ["Tried Core", "code", "63-0", "0x20605", "bank:tried_a+tried_b", ""],
            ["Tried Core", "FIRST", "7-0", "0x5", "bank:tried_a", ""],
            ["Tried Core", "SECOND", "15-8", "0x6", "bank:tried_b", ""],
            ["Tried Core", "HOW", "17-16", "0x2", "ADD of FIRST and SECOND", ""]], rows_found
        shown = check(build, "--show", "tried-core", "--decode", "0x20605", folder)
        assert "  code bank:tried_a+tried_b\n" in shown.stdout, shown
        assert "  field HOW (17-16) = 0x2: ADD of FIRST and SECOND\n" in shown.stdout, shown
        left = ask(build, folder, "list", "--decode", "0x4000000", "--raw").stdout
        assert "no field\t26\t0x4000000" in left, left
        refused(ask(build, folder, "list", "--decode", "22"), 2, "'22' is not a raw code", "such as r40000002007")
        refused(ask(build, folder, "stat", "-e", "bank:tried_a+tried_b+tried_a", "--", "true"), 2,
                "3 events, but codes of Tried Core have room for only 2")
        refused(ask(build, folder, "stat", "-e", "tried/FIRST=256/", "--", "true"), 2,
                "'256' is neither a number of 8 bits")
        # It parses: what counts it is this machine's own matter.
        tried = ask(build, folder, "stat", "--explain", "-e", "task-clock,{bank:tried_a+tried_b,tried/FIRST=5/u}", "--",
                    "true")
        assert tried.returncode == 0 and "bank:tried_a+tried_b" in tried.stderr, tried
        assert "set 1 of 1 of the events by name: task-clock, which needs no counter; bank:tried_a+tried_b" in tried.stderr, tried


def test_a_code_of_a_core_without_fields_is_refused_by_name(build):
    core = tried_core()
    with Folder() as folder:
        core["platform"] = "fieldless"
        write(folder, "tried.json", core)
        try_platforms(folder)
        refused(ask(build, folder, "list", "--decode", "r22"), 1,
                "the fields of raw codes are not known for this machine's cores", "mperf-platforms")
        refused(ask(build, folder, "list", "--decode", "r22", "cache"), 2, "--decode prints one raw code alone")


def test_the_plan_of_a_stat_is_printed(build):
    with Folder() as folder:
        core = tried_core()
        core["metrics"] = [metric("tried_rate", r"page\-faults / (task\-clock / 1e6)", "1per_ms", "Tried")]
        write(folder, "tried.json", core)
        try_platforms(folder)
        told = ask(build, folder, "stat", "--explain", "-M", "Tried", "--", "true").stderr
        assert (" Note: pass 1 of 1: page-faults, which needs no counter; task-clock, which needs no counter\n"
                in told), told
        assert "all are counted at the same time" in told, told
        assert "Note: pass" not in ask(build, folder, "stat", "-M", "Tried", "--", "true").stderr


def test_a_wrong_file_is_named_by_its_line_and_costs_nothing_else(build):
    with Folder() as folder:
        write(folder, "tried.json", tried_core())
        write(folder, "wrong.json", '{\n "platform": "wrong",\n "nonsense": 1\n}\n')
        try_platforms(folder)
        answer = json.loads(ask(build, folder, "doctor", "--json").stdout)
        wrong = found_of(answer, "platforms")
        assert len(wrong) == 1 and wrong[0]["state"] == "warn" and wrong[0]["remedy"], wrong
        assert re.search(r"platforms\.d/wrong\.json:\d+: ", wrong[0]["finding"]), wrong
        assert all("Tried Core" in row["finding"] for row in found_of(answer, "core")), answer


class OwnEtc(Service):
    """A service with the folder's platforms."""

    def __init__(self, build, folder, platforms):
        super().__init__(build, folder)
        self.platforms = platforms

    def start(self, ready=True, **popen):
        self.write_config()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                with_platforms(self.platforms, self.build / "mperfd", "--foreground",
                               f"--config={self.config}"),
                stderr=log, stdout=log, stdin=subprocess.DEVNULL, **popen)
        wait_until("the service is ready", lambda: self.is_ready(0), PATIENCE_S)
        return self


    def described(self):
        """The folder of platforms as the service sees it."""
        return Path(f"/proc/{self.process.pid}/root/etc/mperf/platforms.d")

    def reload(self, said):
        before = self.said().count(said)
        self.process.send_signal(signal.SIGHUP)
        wait_until(f"the log says '{said}'", lambda: self.said().count(said) > before)

    def cores(self):
        return [row["finding"] for row in found_of(self.ask("doctor"), "core")]


def test_a_reload_takes_platforms_and_says_what_waits_for_a_restart(build):
    with Folder() as folder, Folder() as platforms:
        write(platforms, "other.json", {"platform": "tried-other", "title": "Another Core",
                                        "arch": "riscv", "source": "a test", "verified": "no"})
        try_platforms(platforms)
        with OwnEtc(build, folder, platforms) as service:
            assert not any("Tried Core" in core for core in service.cores())
            write(service.described(), "tried.json", tried_core())
            service.reload("platforms reloaded")
            assert all("Tried Core" in core for core in service.cores()), service.cores()
            listed = service.ask("list")["rows"]
            assert any(row["event"] == "tried_event" for row in listed), listed
            # It says that nothing interrupts, which the plans in force could not know.
            assert re.search(r"harts 0.* keep sampling with the platform data read at the start; "
                             "restart", service.said()), service.said()
            waits = [row for row in found_of(service.ask("doctor"), "sampling")
                     if row["state"] == "warn"]
            assert len(waits) == online() and all("restart" in row["remedy"] for row in waits)


def test_a_reload_with_a_broken_platform_keeps_what_was(build):
    with Folder() as folder, Folder() as platforms:
        write(platforms, "tried.json", tried_core())
        try_platforms(platforms)
        with OwnEtc(build, folder, platforms) as service:
            write(service.described(), "tried.json", '{\n "platform": "tried-core",\n "x": 1\n}\n')
            service.reload("the platforms stay as they were")
            assert re.search(r"platforms\.d/tried\.json:3: unknown key 'x'", service.said())
            assert "platforms reloaded" not in service.said(), service.said()
            assert all("Tried Core" in core for core in service.cores()), service.cores()
            wrong = found_of(service.ask("doctor"), "platforms")
            assert len(wrong) == 1 and "tried.json:3" in wrong[0]["finding"], wrong
            assert "reload mperfd" in wrong[0]["remedy"] and "it had" in wrong[0]["remedy"], wrong
            write(service.described(), "tried.json", tried_core())
            service.reload("platforms reloaded")
            assert not found_of(service.ask("doctor"), "platforms")


def test_the_service_says_what_is_wrong_and_what_its_harts_are(build):
    with Folder() as folder, Folder() as platforms:
        write(platforms, "tried.json", tried_core())
        write(platforms, "wrong.json", '{ "platform": }\n')
        try_platforms(platforms)
        with OwnEtc(build, folder, platforms) as service:
            assert re.search(r"platforms\.d/wrong\.json:1", service.said()), service.said()
            answer = service.ask("doctor")
            assert all("Tried Core" in row["finding"] for row in found_of(answer, "core")), answer
            assert found_of(answer, "platforms"), answer
            rungs = {row["hart"] for row in found_of(answer, "sampling") if row["state"] == "ok"}
            assert len(rungs) == online(), answer


# --- mperf-platform-check --------------------------------------------------------------------------

def check(build, *arguments):
    done = subprocess.run([build / "mperf-platform-check", *map(str, arguments)], text=True,
                          capture_output=True, timeout=60)
    assert not any(word in done.stdout + done.stderr for word in BAD_WORDS), done.stderr
    return done


def test_the_owner_of_a_board_checks_his_file_before_mperfd_reads_it(build):
    shipped = ROOT / "platform-db" / "platforms"
    assert check(build, shipped).stdout.endswith("no errors\n")
    with Folder() as folder:
        write(folder, "tried.json", tried_core())
        shown = check(build, "--show", "tried-core", shipped, folder)
        assert shown.returncode == 0 and "tried_event: what the test tries" in shown.stdout, shown
        write(folder, "wrong.json", '{\n "platform": "wrong",\n "nonsense": 1\n}\n')
        wrong = check(build, shipped, folder)
        assert wrong.returncode == 1 and not wrong.stdout, wrong
        assert re.fullmatch(r".*wrong\.json:3: unknown key 'nonsense'; .*\n", wrong.stderr), wrong
        none = check(build, "--show", "tried-cor", shipped)
        assert none.returncode == 1 and "--list" in none.stderr, none
        assert check(build, "--nonsense").returncode == 2


def keys_of(build, folder, content):
    """Which keys the parser takes where that file has one that it does not know."""
    write(folder, "probe.json", json.dumps(content))
    said = check(build, folder).stderr
    found = re.search(r"unknown key 'x'; (.*?) has: (.*)\n", said)
    assert found, said
    return found[1], set(found[2].split(", "))


def test_the_page_has_every_key_that_the_parser_takes(build):
    page = (ROOT / "man" / "mperf-platforms.5").read_text()
    parts = dict(re.findall(r"^\.SS (\S+)\n(.*?)(?=^\.S[SH] )", page, re.M | re.S))
    row = {"source": "a test", "verified": "no"}
    base = {"platform": "probe", "title": "t", "arch": "riscv", **row}
    asked = {"platform": {**base, "x": 1}, "cpus": {**base, "cpus": [{"x": 1}]},
             "events": {**base, "events": [{"x": 1}]}}
    with Folder() as folder:
        write(folder, "probe.json", {**base, "quirks": [{"quirk": "x", **row}]})
        kinds = re.search("is one of: (.*)\n", check(build, folder).stderr)[1].split(", ")
        for name, content in asked.items():
            _, keys = keys_of(build, folder, content)
            missing = {key for key in keys if not re.search(rf"\b{key}\b", parts[name])}
            assert len(keys) > 5 and not missing, (name, missing)
        described = dict(re.findall(r"^\.TP\n\.B (\S+)\n(.*?)(?=^\.TP|\Z)", parts["quirks"],
                                    re.M | re.S))
        assert {name.replace("\\-", "-") for name in described} == set(kinds), kinds
        for kind in kinds:
            _, keys = keys_of(build, folder, {**base, "quirks": [{"quirk": kind, "x": 1}]})
            text = described[kind.replace("-", "\\-")]
            missing = {key for key in keys - {"quirk", "source", "verified", "says"}
                       if not re.search(rf"\b{key}\b", text)}
            assert not missing, (kind, missing)


def test_the_example_of_the_page_is_right(build):
    page = (ROOT / "man" / "mperf-platforms.5").read_text()
    example = re.search(r"^\.nf\n(\{.*?)^\.fi", page, re.M | re.S)[1].replace("\\-", "-")
    with Folder() as folder:
        write(folder, "example.json", example)
        shown = check(build, "--show", "sifive-p650", folder)
        assert shown.returncode == 0, shown.stderr
        assert "leader for user: CORE_CLOCK_CYCLES (0x165)" in shown.stdout, shown.stdout


def completed(build, *words):
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_mperf_platform_check "$1" 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, ROOT / "platform-db" / "completion.bash",
                           build / "mperf-platform-check", *words], text=True, capture_output=True,
                          timeout=60)
    return done.stdout.split()


def test_options_and_platforms_are_completed(build):
    assert completed(build, "--sh") == ["--show"]
    assert completed(build, "--show", "spacemit-x6") == ["spacemit-x60"]
    assert completed(build, "--show", "=", "thead-c92") == ["thead-c920"]
    assert len(completed(build, "--show", "=")) > 30
    assert completed(build, str(ROOT / "platform-db" / "platforms" / "spacemit-x6")) == [
        str(ROOT / "platform-db" / "platforms" / "spacemit-x60")]
    need_program("zsh")
    done = subprocess.run(["zsh", "-n", ROOT / "platform-db" / "completion.zsh"], text=True,
                          capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
