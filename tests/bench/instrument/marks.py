# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The marks, and the table of what was measured beside them."""
import instructions

MINIPERF = "miniperf +30 to +86 %"
EXAMEM = "Examem +8 % at 1 % sampling"


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
    lines += ["", "| class | geometric mean | mark | worst | mark | others |", "|---" * 6 + "|"]
    for kind, (mean, worst, name) in instructions.sums(chosen).items():
        cells = []
        for value, limit in zip((mean, worst), limits.get(kind, (None, None))):
            cells.append("none" if limit is None else
                         f"at most {percent(limit)}: {verdict(value <= limit)}")
        lines.append(f"| {kind} | {percent(mean)} | {cells[0]} | {percent(worst)} ({name}) | {cells[1]} | "
                     f"{MINIPERF}, {EXAMEM} |")
    return [*lines, ""]


HERE = {"loop": (1.01, 1.05), "branchy": (None, 1.10), "masked": (None, 1.25)}
RISCV = {"all": (1.12, None), "loop": (1.12, None)}


def instruction_lines(rows, limits):
    return [line for target in dict.fromkeys(r["target"] for r in rows)
            for line in overhead_lines(rows, target, limits)]


LINES = {
    "instructions": lambda result: instruction_lines(result["rows"], HERE),
    "riscv": lambda result: instruction_lines(result["rows"], RISCV),
}


def table(results):
    lines = []
    for part, result in results.items():
        lines += [f"## {part}", ""]
        lines += [f"Left out: {result['left out']}.", ""] if "left out" in result else LINES[part](result)
    return "\n".join(lines)
