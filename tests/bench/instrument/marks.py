# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The marks, and the table of what was measured beside them."""
import statistics

import instructions
import regions

# Measured with our prototype: naive counting, geometric means, x86-64 and
# RISC-V. It is no measurement of miniperf.
NAIVE = "naive counting in each block +30 to +86 % instructions (our prototype)"
EXAMEM = "Examem +8 % run time at 1 % sampling"


def verdict(met):
    return "met" if met else "MISSED"


def percent(ratio):
    return f"{100 * (ratio - 1):+.2f} %"


def overhead_lines(rows, target, limits):
    """limits: {class: (of the geometric mean, of the worst)}; None: no mark."""
    chosen = [r for r in rows if r["target"] == target]
    lines = [f"### Instructions counted over plain, {target}", "",
             "| kernel | class | plain | counted | ratio |", "|---|---|---|---|---|"]
    lines += [f"| {r['kernel']} | {r['class']} | {r['plain']:,.0f} | {r['counted']:,.0f} | "
              f"{r['ratio']:.4f} |" for r in chosen]
    return [*lines, "", *class_lines(chosen, limits), ""]


def class_lines(rows, limits):
    lines = ["| class | geometric mean | mark | worst | mark | others |", "|---" * 6 + "|"]
    for kind, (mean, worst, name) in instructions.sums(rows).items():
        cells = []
        for value, limit in zip((mean, worst), limits.get(kind, (None, None))):
            cells.append("none" if limit is None else
                         f"at most {percent(limit)}: {verdict(value <= limit)}")
        lines.append(f"| {kind} | {percent(mean)} | {cells[0]} | {percent(worst)} ({name}) | {cells[1]} | "
                     f"{NAIVE}, {EXAMEM} |")
    return lines


HERE = {"loop": (1.01, 1.05), "branchy": (None, 1.10), "masked": (None, 1.25)}
RISCV = {"all": (1.12, None), "loop": (1.12, None)}


def instruction_lines(rows, limits):
    return [line for target in dict.fromkeys(r["target"] for r in rows)
            for line in overhead_lines(rows, target, limits)]


def flops_lines(result):
    """A line for each kernel, a column for each target: exact, or what it was instead."""
    rows = result["rows"]
    targets = list(dict.fromkeys(r["target"] for r in rows))
    lines = ["| kernel | analytic | " + " | ".join(targets) + " |", "|---" * (2 + len(targets)) + "|"]
    for key in dict.fromkeys((r["kernel"], r["metric"], r["least"], r["most"]) for r in rows):
        name, _, least, most = key
        cells = []
        for target in targets:
            counted, = [r["counted"] for r in rows if r["target"] == target and
                        (r["kernel"], r["metric"], r["least"], r["most"]) == key]
            cells.append(f"{counted:,}" + ("" if least <= counted <= most else " WRONG"))
        known = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        lines.append(f"| {name} | {known} | " + " | ".join(cells) + " |")
    wrong = [r for r in rows if not r["least"] <= r["counted"] <= r["most"]]
    return [*lines, "", f"FLOPs of {len(rows)} kernels and targets: {len(rows) - len(wrong)} as known "
            f"beforehand. Mark: all, at every VLEN: {verdict(not wrong)}.",
            *(f"Not run: {reason}." for reason in result["not run"]), ""]


# What is known of kernels that miss a mark of bytes.
CAUSES = {
    "copy": "the C library's memcpy loads and stores some words of each copy twice",
    "jump_out": "what setjmp and longjmp keep and bring back, which are external calls",
    "stencil": "registers that are spilled around its inner loop, once for each row of 98 points",
}


def causes(missed):
    return "".join(f" {name}: {CAUSES.get(name, 'not known why')}." for name in missed)


def share(value):
    return "–" if value is None else f"{100 * value:.3f} %"


def bytes_lines(result):
    lines = []
    for target in dict.fromkeys(r["target"] for r in result["rows"]):
        rows = [r for r in result["rows"] if r["target"] == target]
        lines += [f"### Bytes counted, of those that a tool saw, {target}", "",
                  "| kernel | class | outside the stack | all | rounds |", "|---" * 5 + "|"]
        lines += [f"| {r['kernel']} | {r['class']} | {share(r['outside_ratio'])} | "
                  f"{share(r['all_ratio'])} | {r['rounds']} |" for r in rows]
        outside = [r for r in rows if r["outside_ratio"] is not None]
        loops = [r for r in rows if r["class"] == "loop"]
        for what, chosen, key, mark in (("outside the stack", outside, "outside_ratio", 0.999),
                                        ("all, loop kernels", loops, "all_ratio", 0.98)):
            if chosen:
                far = max(chosen, key=lambda r: abs(r[key] - 1))
                missed = [r["kernel"] for r in chosen if abs(r[key] - 1) > 1 - mark + 1e-9]
                lines += ["", f"Bytes {what}: {len(chosen) - len(missed)} of {len(chosen)} kernels within "
                          f"{100 * (1 - mark):.1f} %, furthest {far['kernel']} at {share(far[key])}. Mark: "
                          f"{100 * mark:.1f} % ({verdict(not missed)}); Examem 93 %.{causes(missed)}"]
        lines.append("")
    return lines


def time_lines(result):
    rows = result["rows"]
    lines = ["### User time counted over plain, x86-64 AVX2", "",
             "| kernel | class | ratio, median | least | most |", "|---" * 5 + "|"]
    lines += [f"| {r['kernel']} | {r['class']} | {r['ratio']:.3f} | {min(r['ratios']):.3f} | "
              f"{max(r['ratios']):.3f} |" for r in rows]
    return [*lines, "", *class_lines(rows, HERE), ""]


REGION_MARK = 0.03


def rate_lines(result):
    """The median of all rounds for each region, and how far it is off."""
    lines = ["| region | own GFLOP/s | own GB/s | GFLOP/s told ÷ own | GB/s told ÷ own | corrected ÷ own |",
             "|---" * 6 + "|"]
    rows, met = result["rows"], True
    for name in dict.fromkeys(r["region"] for r in rows):
        middle = {key: statistics.median(r[key] for r in rows if r["region"] == name)
                  for key in rows[0] if key != "region"}
        met = met and all(abs(middle[key] - 1) <= REGION_MARK for key in ("gflops", "gbytes"))
        lines.append(f"| {name} | {middle['own_gflops']:.2f} | {middle['own_gbytes']:.2f} | "
                     f"{middle['gflops']:.4f} | {middle['gbytes']:.4f} | {middle['corrected']:.4f} |")
    return [*lines, "", f"Mark: within 3 % of the program's own clock: {verdict(met and rows)}; miniperf "
            "3.2 %, Examem 87 % accurate, Advisor 45 % off.", ""]


CODE_INSIDE, CODE_MEDIAN, CODE_WORST = 0.95, 0.10, 12


def code_line(r):
    return (f"| {r['kernel']}:{r['line']} | {r['clang']} {r['target']} | {r['samples']:,} | {r['pass']:.4f} | "
            f"{r['code']:.4f} ({r['low']:.4f} to {r['high']:.4f}) | {100 * r['error']:.1f} % | "
            f"{r['limits'] or '–'} |")


def code_lines(result):
    """All loops, by class; and those with the largest errors."""
    rows = [r for r in result["rows"] if r["pass"] > 0]
    none = [r for r in result["rows"] if r["pass"] == 0]
    if not rows:
        return ["no loop has operations and 500 samples", ""]
    lines = ["| class | loops | inside the interval | median error | with an interval | of these inside | median error |",
             "|---" * 7 + "|"]
    for kind in [*dict.fromkeys(r["class"] for r in rows), "all"]:
        of = [r for r in rows if kind in (r["class"], "all")]
        wide = [r for r in of if r["low"] < r["high"]]
        middle = [f"{100 * statistics.median(r['error'] for r in some):.2f} %" if some else "–"
                  for some in (of, wide)]
        lines.append(f"| {kind} | {len(of)} | {sum(r['inside'] for r in of)} | {middle[0]} | {len(wide)} | "
                     f"{sum(r['inside'] for r in wide)} | {middle[1]} |")
    inside = sum(r["inside"] for r in rows) / len(rows)
    median = statistics.median(r["error"] for r in rows)
    lines += ["", f"FLOP/B of {len(rows)} loops of 500 samples or more: {100 * inside:.1f} % inside the interval "
              f"(mark: 95 %: {verdict(inside >= CODE_INSIDE)}), median error {100 * median:.2f} % (mark: 10 %: "
              f"{verdict(median <= CODE_MEDIAN)}). Without operations are {len(none)} loops more, of which "
              f"{sum(r['code'] == 0 for r in none)} are read as such.", "",
              "| worst | build | samples | pass | code | error | but |", "|---" * 7 + "|"]
    worst = sorted(rows, key=lambda r: (r["inside"], -r["error"]))
    lines += [code_line(r) for r in worst[:CODE_WORST]]
    return [*lines, ""]


PROGRAMS = {"instructions": 1.05, "instructions, nobody listens": 1.05, "time": 1.05, "compile time": 1.15,
            "code": None, "code and tables": 1.60}


def program_lines(result):
    lines = ["| program | counted over plain | ratio | mark |", "|---|---|---|---|"]
    for row in result["rows"]:
        for what, limit in PROGRAMS.items():
            mark = "none" if limit is None else \
                f"at most {percent(limit)}: {verdict(row[what] <= limit)}"
            lines.append(f"| {row['program']} | {what} | {row[what]:.3f} | {mark} |")
        lines.append(f"| {row['program']} | start and end, million instructions more | {row['start']:.2f} "
                     "| none |")
    return [*lines, "", f"Others: {NAIVE}, {EXAMEM}.", ""]


def foreign_lines(result):
    columns, rows = ("instructions", "compile time"), result["rows"]
    over = [(f"{what} of {len(rows)}", {c: choose([r[c] for r in rows]) for c in columns})
            for what, choose in (("least", min), ("median", statistics.median), ("most", max))]
    lines = ["| program | instructions, nobody listens | compile time |", "|---|---|---|"]
    lines += [f"| {name} | " + " | ".join(percent(row[c]) for c in columns) + " |"
              for name, row in [*((r["program"], r) for r in rows), *over]]
    return [*lines, ""]


LINES = {
    "instructions": lambda result: instruction_lines(result["rows"], HERE),
    "riscv": lambda result: instruction_lines(result["rows"], RISCV),
    "flops": flops_lines,
    "bytes": bytes_lines,
    "bytes-riscv": bytes_lines,
    "times": time_lines,
    "rates": rate_lines,
    "code": code_lines,
    "regions": regions.lines,
    "programs": program_lines,
    "foreign": foreign_lines,
}


def table(results):
    lines = []
    for part, result in results.items():
        lines += [f"## {part}", ""]
        lines += [f"Left out: {result['left out']}.", ""] if "left out" in result else LINES[part](result)
    return "\n".join(lines)
