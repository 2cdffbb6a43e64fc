# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What RISC-V boards count, whom they charge with it, and what leads where cycles cannot.

As in test_boards.py a hart takes 2 ns for each instruction where icount is on, and has a cycle each
ns: so the time that Linux gives to a process says how many instructions it ran, whatever the PMU
says.
"""
import base64
import gzip
import json
import os
import re
import subprocess

from machine import ROOT, Folder, Skip, compile_program, mperfctl, need_program, refused, rows
from rates import rate_allowed
from test_boards import U74, Guest, answer, booted_once, functions, on_a_board, refused_rung, sampled, x60
from guest import sysroot  # in a folder that test_boards adds

FILLS = "a board with icount has a clock of its own, and another is a test that runs by itself"
SECONDS = 600  # it gives way to all others, so it begins first

# On that board raw event 1 is what QEMU can count: its owner says so, as an owner may. All else that
# mperf knows of an X60 stands.
OWNERS_FILE = {
    "platform": "spacemit-x60", "source": "an owner's board", "verified": "no",
    "events": [
        {"code": "0x1", "name": "u_mode_cycle", "topic": "cycles", "says": "cycles in user mode",
         "source": "an owner's board", "verified": "no"},
        {"code": "0x22", "name": "cond_br_inst", "topic": "branch", "says": "what 0x1 was",
         "source": "an owner's board", "verified": "no"}],
}


def findings(section, topic):
    return [row["finding"] for row in answer(section)["rows"] if row["topic"] == topic]


def has(lines, *words):
    """One of the lines has all of these words."""
    assert any(all(word in line for word in words) for line in lines), (words, lines)


@booted_once
def x60_of_raw_events(build):
    """Raw event 1 is the one that interrupts there. QEMU knows no 0x22, hence the owner's file."""
    board = x60(build, ["riscv,raw-event-to-mhpmcounters", "0", "1", "ffffffff", "ffffffff",
                        "7fff8"])
    board.files["owners.json"] = json.dumps(OWNERS_FILE).encode() + b"\n"
    return board.run_each(
        alone="""
        section identity cat /proc/cpuinfo
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000
        section raw mperfctl hotspots -F 499 -e r1 --json -- board spin 1000""",
        owned="""
        mkdir -p /etc/mperf/platforms.d
        cp /owners.json /etc/mperf/platforms.d/board.json
        section identity cat /proc/cpuinfo
        section vector board vector 0
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000
        section two mperfctl hotspots -F 999 --json -- board two 10000000
        section user mperfctl hotspots -U -F 499 --json -- board spin 500""")


@on_a_board
def test_x60_samples_by_a_raw_event_alone(build):
    """It stands for u_mode_cycle."""
    said = x60_of_raw_events(build)["alone"]
    assert "0x8000000058000001" in said["identity"].text, said["identity"]
    refused_rung(said["doctor"], "never interrupts")
    sampled(said["hotspots"], "c")
    raw = sampled(said["raw"], "e")
    assert raw["provenance"]["samples"] >= 200, raw["provenance"]
    assert functions(raw)["loop_of_four"]["self"] > 0.95, raw["rows"]


@on_a_board
def test_an_x60_is_led_by_its_own_event_and_has_its_ipc_by_function(build):
    """Rung b on a real kernel and driver: cycles and instructions never interrupt there, a raw event
    does, and they ride with it."""
    said = x60_of_raw_events(build)["owned"]
    assert "0x8000000058000001" in said["identity"].text, said["identity"]
    assert said["vector"].text.strip() == "256", said["vector"]

    has(findings(said["doctor"], "core"), "SpacemiT X60", "0x710/0x8000000058000001")
    has(findings(said["doctor"], "core"), "vectors", "RVV 1.0")
    sampling = findings(said["doctor"], "sampling")
    has(sampling, "rung b", "leader u_mode_cycle", "with counters")
    has(sampling, "rung a not taken", "cycles opens but never interrupts",
        "fixed counters of cycles and instructions have no overflow interrupt")
    has(findings(said["doctor"], "counters"), "16 programmable", "the fixed ones")
    has(findings(said["doctor"], "errata"), "their IPC mixes modes")
    has(findings(said["doctor"], "errata"), "L2 events ignore exclude_kernel")

    hotspots = sampled(said["hotspots"], "b")
    provenance = hotspots["provenance"]
    assert provenance["event"] == "u_mode_cycle", provenance
    assert provenance["switches"] == "sibling", provenance
    has(provenance["notes"], "u_mode_cycle", "SpacemiT X60", "counts only user mode")
    has(provenance["notes"], "IPC mixes modes on SpacemiT X60")
    loop = functions(hotspots)["loop_of_four"]
    assert loop["samples"] >= 150 and loop["self"] > 0.95, loop
    assert 0.45e9 < loop["instructions"] < 0.55e9, loop
    for row in hotspots["rows"] + answer(said["two"])["rows"]:
        assert not row["cycles"] or abs(row["ipc"] - 0.5) < 0.01, row
    exact(sampled(said["two"], "b"), 0.05)
    assert functions(sampled(said["user"], "b"))["loop_of_four"]["samples"] >= 50, said["user"]


def exact(hotspots, share):
    """board two 10000000: a turn is four instructions, and slow() makes ten times as many."""
    found = functions(hotspots, "slow")
    for name, truth in ("fast", 40e6), ("slow", 400e6):
        counted = found[name]["instructions"]
        assert abs(counted - truth) < share * truth, (name, truth, found[name])


# Two programs that give way to each other a hundred times, on the one hart that there is.
TURNS = """
cp /usr/local/bin/turns /usr/local/bin/many
cp /usr/local/bin/turns /usr/local/bin/few
cat >/tmp/both <<END
many 0 100 100000 100 >/tmp/many &
few 0 5 300000 100 >/tmp/few &
wait
END
for how in sibling bpf sums none; do
    export MPERF_SWITCHES=$how
    mperfctl record -a -F 99 -o /tmp/$how.mprf -e '{cpu-clock,instructions}' -- sh /tmp/both
    section many-$how cat /tmp/many
    section few-$how cat /tmp/few
    section $how mperfctl hotspots -i /tmp/$how.mprf --by process -n 0 --json
done
"""
# Two programs that hand the hart to each other every 40 ms, four periods.
RELAY = """
for how in sibling none; do
    export MPERF_SWITCHES=$how
    mperfctl record -a -F 99 -o /tmp/relay-$how.mprf -- sh -c 'relay 0 40000 12 even >/tmp/relay'
    section ran-$how cat /tmp/relay
    section relay-$how mperfctl hotspots -i /tmp/relay-$how.mprf --by process -n 0 --json
done
"""
CHARGE_SHARE = 0.01  # as mperfd(8) says; what it allows for each switch besides is not needed here
NS_PER_INSTRUCTION = 2


def charges(said, how):
    """{program: (instructions that it ran, those that it is charged with, its switches)}."""
    rows = {row["comm"]: row for row in answer(said[how])["rows"]}
    found = {}
    for name in "many", "few":
        told = dict(line.split() for line in said[f"{name}-{how}"].text.splitlines() if line)
        found[name] = (int(told["ran_ns"]) // NS_PER_INSTRUCTION, rows[name].get("instructions"),
                       int(told["switches"]))
    return found


def wrong(charged):
    return [(name, *row) for name, row in charged.items()
            if abs(row[1] - row[0]) > CHARGE_SHARE * row[0]]


@on_a_board
def test_counts_belong_to_who_ran_by_either_way_and_without_the_cut_to_nobody_else(build):
    """Each is charged with its own instructions within 1 %, cut by the context-switches sibling, cut
    by BPF (this kernel has BTF) and summed by BPF, and the first two agree when they look at the same
    switches, as doctor lets them. Where switches are only counted, nobody is charged with what the other ran, and the
    answer says how much of what a program ran is not charged."""
    said = Guest(build, cpu=f"rv64,sscofpmf=false,{U74}", harts=1,
                 sources=("board.c", "turns.c", "relay.c")).run(
        "section btf ls /sys/kernel/btf/vmlinux\nsection doctor mperfctl doctor --json" + TURNS + RELAY)
    assert said["btf"].status == 0, said["btf"]
    has(findings(said["doctor"], "bpf"), "BPF agrees")
    for how in "sibling", "bpf", "sums", "none":
        named = {"none": "counted", "sums": "bpf"}.get(how, how)
        assert answer(said[how])["provenance"]["switches"] == named, said[how]
        charged = charges(said, how)
        print(f"    switches: {how}: " + "; ".join(
            f"{name} ran {ran:,} instructions, is charged with {100 * ((got or 0) / ran - 1):+.2f} %"
            for name, (ran, got, _) in charged.items()))
        # Far enough apart for a mistake to show, and often enough cut.
        assert charged["few"][0] > 1.3 * charged["many"][0], charged
        assert all(switches >= 100 for _, _, switches in charged.values()), charged
        if how == "none":
            assert all((got or 0) <= (1 + CHARGE_SHARE) * ran for ran, got, _ in charged.values()), charged
        else:
            assert not wrong(charged), wrong(charged)
    for how in "sibling", "none":
        relayed(said, how)


def relayed(said, how):
    """Each turn has four samples. The first has no counts if switches are only counted; the others
    count what the program ran, in the share of its time that the answer says."""
    rows = {row["comm"]: row for row in answer(said[f"relay-{how}"])["rows"]}
    for line in said[f"ran-{how}"].text.splitlines():
        name, _, ran_ns, switches = line.split()
        row, ran = rows[name], int(ran_ns) // NS_PER_INSTRUCTION
        share = row.get("counted", 1)
        found = row["instructions"] / (share * ran) - 1
        print(f"    turns of 40 ms, {how}: {name} {switches} switches, {100 * share:.0f} % of "
              f"{row['samples']} samples counted; instructions {100 * found:+.1f} %, IPC {row['ipc']:.3f}")
        assert ("counted" in row) == (how == "none") and share > 0.5, row
        assert share < 0.9 or how == "sibling", row
        assert abs(found) < 0.1 and abs(row["ipc"] - 0.5) < 0.01, (row, ran)


def folded(section):
    """{stack, outermost first: what it is charged with}."""
    assert section.status == 0, section
    lines = [line.rpartition(" ") for line in section.text.splitlines()]
    return {tuple(stack.split(";")): int(n) for stack, _, n in lines}


def share_of(flames, function):
    return sum(n for stack, n in flames.items() if function in stack) / sum(flames.values())


def svg_share(text, function):
    """How much of the picture's width the function's widest box has."""
    boxes = re.findall(r"<title>([^<]*)</title><rect [^>]* width=\"([0-9.]+)\"", text)
    widths = [float(width) for title, width in boxes if function in title]
    return max(widths) / max(float(width) for _, width in boxes)


@booted_once
def counting(build):
    """Cycles and instructions are counted beside samples of the clock."""
    return Guest(build, cpu="rv64,sscofpmf=true", harts=1, sources=("board.c", "compared.c")).run_each(
        calls="""
        mperfctl record -F 999 -o /tmp/a.mprf -e '{cpu-clock,cycles,instructions:u}' -- \\
            board calls 20000000
        section json mperfctl hotspots -i /tmp/a.mprf --json
        section table mperfctl hotspots -i /tmp/a.mprf
        section by mperfctl hotspots -i /tmp/a.mprf --event instructions:u --json
        section cycles mperfctl flamegraph -i /tmp/a.mprf --event cycles --folded
        section instructions mperfctl flamegraph -i /tmp/a.mprf --event instructions:u --folded
        mperfctl flamegraph -i /tmp/a.mprf --event cycles -o /tmp/c.svg
        section svg cat /tmp/c.svg
        mperfctl flamegraph -i /tmp/a.mprf --event instructions:u -o /tmp/i.svg
        section svg-i cat /tmp/i.svg""",
        compared="""
        mperfctl record -F 499 -o /tmp/a.mprf -e '{cpu-clock,cycles,instructions}' -- compared 300
        section recording base64 /tmp/a.mprf""")


@on_a_board
def test_tables_and_flame_graphs_share_out_cycles_and_instructions(build):
    """Two functions of about the same cycles: a loop, and system calls. The instructions are those of
    user mode, so that the loop has nearly all of them, and the calls those of their few in libc."""
    said = counting(build)["calls"]
    rows = functions(sampled(said["json"], "e"))
    loop = rows["loop_of_four"]
    assert abs(loop["instructions"] - 80e6) < 4e6 and abs(loop["cycles"] - 160e6) < 8e6, loop
    assert abs(loop["ipc"] - 0.5) < 0.02 and rows["do_trap_ecall_u"]["ipc"] < 0.05, rows
    table = said["table"].text
    assert re.search(r"Self +Total +Samples +Cycles +Instructions +IPC +Function +Module\n", table)
    assert re.search(r"^ *4\d\.\d\d % .* 0\.(49|50)  loop_of_four +/usr/local/bin/board$", table,
                     re.M), table
    by = functions(sampled(said["by"], "e"))
    assert by["loop_of_four"]["self"] > 0.9 > 0.6 > loop["self"], (loop, by["loop_of_four"])

    cycles, instructions = folded(said["cycles"]), folded(said["instructions"])
    assert 0.4 < share_of(cycles, "loop_of_four") < 0.5 < share_of(cycles, "call_kernel") < 0.6
    assert share_of(instructions, "loop_of_four") > 0.9, instructions
    assert share_of(instructions, "call_kernel") < 0.1, instructions
    for flames, column in (cycles, "cycles"), (instructions, "instructions"):
        leaf = {stack: n for stack, n in flames.items() if stack[-1] == "do_trap_ecall_u"}
        assert sum(leaf.values()) == rows["do_trap_ecall_u"][column], (leaf, rows)
    widths = [svg_share(said[name].text, "call_kernel") for name in ("svg", "svg-i")]
    assert widths[0] > 0.5 > 0.1 > widths[1], widths


def per_us(name, event):
    """Instructions of a microsecond of CPU time, by a formula that wants a programmable counter too."""
    return {"MetricName": name, "MetricExpr": rf"(instructions + 0 * {event}) / (task\-clock / 1e3)",
            "MetricGroup": "Board", "ScaleUnit": "1per_us", "source": "an owner's board", "verified": "no"}


@on_a_board
def test_stat_is_exact_and_more_events_than_counters_are_right_within_the_stated_error(build):
    """A hart takes 2 ns for each instruction, so 500 a microsecond, and has a cycle each ns. Two programmable
    counters are there for three events of the TLB."""
    board = Guest(build, cpu=f"rv64,sscofpmf=false,pmu-mask=0x18,{U74}", harts=1)
    names = {"loads": r"dTLB\-load\-misses", "stores": r"dTLB\-store\-misses", "fetches": r"iTLB\-load\-misses"}
    board.files["etc/mperf/platforms.d/board.json"] = json.dumps(
        {"platform": "sifive-u74", "source": "an owner's board", "verified": "no",
         "metrics": [per_us(name, event) for name, event in names.items()]}).encode() + b"\n"
    said = board.run("""
        echo 'for i in 1 2 3 4 5 6 7 8; do ls -lR /sys/class /usr >/dev/null 2>&1; done' >/tmp/work
        section turns mperfctl stat -e cycles,instructions,dTLB-load-misses,dTLB-store-misses,iTLB-load-misses \
            --json -- board loop 200000000
        section exact mperfctl stat -e cycles,instructions,task-clock --json -- board loop 100000000
        section all mperfctl stat -M Board --json -- sh /tmp/work
        section loads mperfctl stat -M loads --json -- sh /tmp/work
        section stores mperfctl stat -M stores --json -- sh /tmp/work
        section fetches mperfctl stat -M fetches --json -- sh /tmp/work""")
    count = counts(said["exact"])
    assert abs(count["instructions"]["scaled"] - 400e6) < 0.01 * 400e6, count
    assert abs(count["instructions"]["scaled"] / count["cycles"]["scaled"] - 0.5) < 1e-4, count
    assert abs(count["cycles"]["scaled"] / count["task-clock"]["scaled"] - 1) < 1e-3, count
    together = counts(said["all"])
    assert {together[name]["passes"] for name in names} == {"1", "2"}, together
    for name in names:
        alone = counts(said[name])[name]
        assert alone["running_share"] == 1 and alone["error"] == 0, alone
        row = together[name]
        print(f"    {name}: {row['scaled']:.1f} ± {row['error']:.1f} a µs, counted {100 * row['running_share']:.0f} % of "
              f"the time; alone {alone['scaled']:.1f}")
        assert row["running_share"] < 0.9, row
        assert abs(row["scaled"] - alone["scaled"]) < row["error"] < 0.02 * alone["scaled"], (row, alone)
    # By name each is a group of its own. The time says how many there were.
    for name, each_ns in ("instructions", NS_PER_INSTRUCTION), ("cycles", 1):
        row = counts(said["turns"])[name]
        truth = row["enabled_ns"] / each_ns
        print(f"    {name}: {row['scaled']:,.0f} ± {row['error']:,.0f}, counted {100 * row['running_share']:.0f} % of "
              f"the time; there were {truth:,.0f}")
        assert row["running_share"] < 0.95, row
        assert abs(row["scaled"] - truth) < row["error"] < 0.02 * truth, (row, truth)


def counts(section):
    """{event or metric: its row} of stat, which leaves standard output to its program."""
    return {row["event"]: row for row in answer(section)["rows"]}


@on_a_board
def test_the_silent_sampler_of_another_qemu_is_noticed(build):
    """Debian 13's QEMU opens sampling events with overflow interrupts and lets none fire. Should a
    later one do better, then cycles lead there: what is taken is what fires."""
    board = Guest(build, cpu="rv64,sscofpmf=true", harts=1)
    board.qemu_tree = "qemu-trixie"
    said = board.run("""
        section asked mperfctl hotspots -e cycles -F 499 --json -- board spin 500
        section doctor mperfctl doctor --json
        section hotspots mperfctl hotspots -F 499 --json -- board spin 1000""")
    fires = answer(said["asked"])["provenance"]["samples"] > 0
    print(f"    Debian 13's QEMU: cycles open and {'fire' if fires else 'never fire'}")
    if not fires:
        refused_rung(said["doctor"], "never interrupts")
    loop = functions(sampled(said["hotspots"], "a" if fires else "c"))["loop_of_four"]
    assert loop["samples"] >= 200 and loop["instructions"], loop


def cross_known_code(build, name, *flags):
    """known_code.c for the board: optimised, with lines, and static."""
    target = build / "boards" / "programs" / "riscv64" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["clang-19", "--target=riscv64-linux-gnu", f"--sysroot={sysroot(build, 'riscv64')}",
                    "-fuse-ld=lld-19", "-g", "-O2", "-static", *flags, "-o", target,
                    ROOT / "tests/system/known_code.c"], check=True)
    return target


def code_rows(build, recording, folder, *options):
    """{function: its hottest loop} as this machine reads it from the board's recording and programs."""
    said = rows(build, "roofline", "--from", "code", "-i", recording, "--symfs", folder, *options)
    return {r["function"]: r for r in reversed(said["rows"]) if r["depth"]}


@on_a_board
def test_rates_of_plain_programs_are_read_here_from_their_samples_and_code(build):
    """GFLOP/s of loops that count nothing, by the instructions beside samples, as the program's own clock
    has them; scalar ones, and vectors of 256 bits, which are bounds where their length is not known."""
    if not (build / "mperf-code").exists():
        raise Skip("built without LLVM's C library, so machine code is not read")
    need_program("clang-19")
    scalar = cross_known_code(build, "known_code", "-march=rv64gc")
    vector = cross_known_code(build, "known_vectors", "-march=rv64gcv")
    board = Guest(build, cpu=f"rv64,v=true,vlen=256,sscofpmf=false,{U74}", harts=1)
    for program in scalar, vector:
        board.files[f"usr/local/bin/{program.name}*"] = program.read_bytes()
    said = board.run("""
        for each in known_code known_vectors; do
            section own-$each mperfctl record -F 999 -o /tmp/$each.mprf -- $each 120
            section file-$each sh -c "gzip -c /tmp/$each.mprf | base64"
        done""")
    with Folder() as folder:
        for program in scalar, vector:
            recording = folder / f"{program.name}.mprf"
            recording.write_bytes(gzip.decompress(base64.b64decode(said[f"file-{program.name}"].text)))
        own = {name: own_rates(said[f"own-{name}"]) for name in ("known_code", "known_vectors")}
        found = code_rows(build, folder / "known_code.mprf", scalar.parent)
        for function, per_byte in ("triad", 2 / 24), ("polynomial", 7 / 8):
            agrees(found[function], own["known_code"][function], per_byte)
        row = found["sorted"]
        assert row["gops_low"] < own["known_code"]["sorted"] < row["gops_high"], (row, own)

        loose = code_rows(build, folder / "known_vectors.mprf", scalar.parent)["triad"]
        found = code_rows(build, folder / "known_vectors.mprf", scalar.parent, "--vector-bits", "256")
        agrees(found["triad"], own["known_vectors"]["triad"], 2 / 24)
        assert loose["ops_per_byte_self"] == found["triad"]["ops_per_byte_self"], loose
        assert loose["gops_low"] < own["known_vectors"]["triad"] < loose["gops_high"], (loose, own)
        assert loose["gops_high"] > 100 * loose["gops_low"] and "any length" in loose["limits"], loose
        assert "vectors of 256 bits" in found["triad"]["limits"], found


def own_rates(section):
    """{function: GFLOP/s} as known_code prints them."""
    assert section.status == 0, section
    return {name: float(rate) for name, rate in re.findall(r"^(triad|polynomial|sorted) ([0-9.]+)$",
                                                           section.text, re.M)}


def agrees(row, own, per_byte):
    """The loop's rate is that of a hart that takes 2 ns for each instruction, and the program's own but for
    what it does between loops, and interrupts."""
    print(f"    {row['function']}: {row['gops_self']:.4f} GFLOP/s ({row['gops_low']:.4f} to "
          f"{row['gops_high']:.4f}) from {row['samples']} samples and its code, {own:.4f} in its own time; "
          f"{row['ops_per_byte_self']:.4f} FLOP/B, {row['limits'] or 'exact'}")
    assert abs(row["ops_per_byte_self"] - per_byte) < 1e-6, row
    assert abs(row["gops_self"] / (row["ops_per_instruction"] / NS_PER_INSTRUCTION) - 1) < 0.01, row
    assert 1 - 0.01 < row["gops_self"] / own < 1 + 0.1, (row, own)
    assert row["gops_low"] < own < row["gops_high"], (row, own)
    assert abs(row["gbytes_self"] * per_byte / row["gops_self"] - 1) < 1e-6, row


@on_a_board
def test_a_recording_of_a_board_is_shown_beside_one_of_this_machine(build):
    """The same source on two instruction sets: its three functions have a third each on both, and the
    board's recording has instructions. Nothing is tested, and a gate refuses."""
    said = counting(build)["compared"]
    with Folder() as folder:
        board, here = folder / "board.mprf", folder / "here.mprf"
        board.write_bytes(base64.b64decode(said["recording"].text))
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", here, "--", compile_program(build, "compared.c"),
                 2000)
        both = json.loads(mperfctl(build, "diff", here, board, "--json").stdout)
        text = mperfctl(build, "diff", here, board).stdout
        back = json.loads(mperfctl(build, "diff", board, here, "--json").stdout)
        itself = json.loads(mperfctl(build, "diff", board, board, "--json").stdout)["change"]
        counted = mperfctl(build, "diff", board, board).stdout
        done = mperfctl(build, "gate", "--baseline", here, "--candidate", board, check=False)
        refused(done, 2, "riscv64", "mperfctl diff")
        mixed = mperfctl(build, "diff", "--baseline", here, "--baseline", board, "--candidate", board, check=False)
        refused(mixed, 2, "riscv64", "one machine on each side")
    assert [s["machine"] for s in both["side"]] == [os.uname().machine, "riscv64"], both["side"]
    assert both["side"][1]["instructions"] > 0 and "total" not in both and "change" not in both, both.keys()
    rows = {r["function"]: r for r in both["beside"] if r["module"] == "compared"}
    for function in "steady", "even", "slowed":
        row = rows[function]
        assert 0.2 < row["share_a"] < 0.45 and 0.2 < row["share_b"] < 0.45, row
        own = next(r for r in itself if r["function"] == function and r["module"] == "compared")
        assert own["baseline_instructions"] == own["candidate_instructions"] == row["instructions_b"], (own, row)
        assert own["baseline_ipc"] == row["ipc_b"] and own["ipc_change"] == own["instructions_change"] == 0, own
        assert own["ipc_low"] is None, "one run has no spread"
        assert row["instructions_b"] > 1e6 and abs(row["ipc_b"] - 0.5) < 0.05, row
        assert abs(row["ratio"] - row["ns_b"] / row["ns_a"]) < 1e-9, row
        swapped = next(r for r in back["beside"] if r["function"] == function and r["module"] == "compared")
        assert (swapped["share_a"], swapped["share_b"]) == (row["share_b"], row["share_a"]), (row, swapped)
    assert re.search(r"Candidate +Instructions +IPC +Verdict", counted), counted
    assert "A: " + os.uname().machine in text and "B: riscv64" in text and "no change is tested" in text, text
    assert re.search(r"Share A +Share B .*IPC B +Function", text), text
