# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that nobody here wrote: the 19 of Embench 1.0, as its authors' tag has them, and bzip2 of Debian's
source. What counting adds to their instructions, and to the time that compiling them takes."""
import sys

import whole
from instructions import by_cachegrind
from programs import SLOWED_PERIOD_MS, compilation, in_turns
from subjects import ROOT, Target
from whole import COUNTED, PLAIN

TAG, COMMIT = "embench-1.0", "0466a18e4f6b47e19598d7c6ba72916d54b68f65"
REPOSITORY = "https://github.com/embench/embench-iot"
BOARD = ROOT / "tests" / "bench" / "instrument"
FLAGS = ("-O2", "-w")
ROUNDS = (1, 3)  # of each some million instructions
COMPILED_TIMES = 5
BZIP2 = ("blocksort huffman crctable randtable compress decompress bzlib bzip2").split()


def embench(build):
    """(program, its sources, flags) of each."""
    folder = whole.repository(build, "embench", REPOSITORY, TAG, COMMIT)
    flags = [f"-I{folder}/support", "-include", str(BOARD / "board.h")]
    for program in sorted((folder / "src").iterdir()):
        yield program.name, [*sorted(program.glob("*.c")), folder / "support" / "main.c",
                             folder / "support" / "beebsc.c", BOARD / "board.c"], flags


def commands(shop, name, sources, flags):
    """{flavour: program} and {flavour: what compiles it}."""
    target = Target(f"foreign {name}", FLAGS)
    made = {k: shop.program(target, sources, k == COUNTED, flags) for k in (PLAIN, COUNTED)}
    return made, {k: compilation(shop.build, k, sources, flags) for k in (PLAIN, COUNTED)}


def row_of(shop, name, sources, flags, arguments, environments):
    """arguments and environments: of little work, and of more."""
    made, compiled = commands(shop, name, sources, flags)
    took = {}
    for flavour, program in made.items():
        few, many = (by_cachegrind(program, a, e) for a, e in zip(arguments, environments))
        took[flavour] = many - few
    row = {"program": name, "instructions": took[COUNTED] / took[PLAIN]}
    row["compile time"], _ = in_turns(compiled, COMPILED_TIMES, shop.streaming)
    print(f"foreign: {name} {row['instructions']:.4f}, to compile {row['compile time']:.3f}",
          file=sys.stderr, flush=True)
    return row


def measure(shop, wanted=None):
    alone = dict(shop.streaming, MPERF_FEED="", MPERF_PERIOD=str(SLOWED_PERIOD_MS))
    rounds = [dict(alone, BOARD_ROUNDS=str(n)) for n in ROUNDS]
    rows = []

    def is_wanted(name):
        return not wanted or any(w in name for w in wanted)

    for name, sources, flags in embench(shop.build):
        if is_wanted(name):
            rows.append(row_of(shop, name, sources, flags, ([], []), rounds))
    if is_wanted("bzip2"):
        folder = whole.source(shop.build, "bzip2")
        empty, text = shop.folder / "bzip2.empty", shop.folder / "bzip2.text"
        empty.write_bytes(b"")
        text.write_bytes((folder / "manual.xml").read_bytes() if (folder / "manual.xml").exists()
                         else b"".join(sorted(p.read_bytes() for p in folder.glob("*.c"))))
        rows.append(row_of(shop, "bzip2", [folder / f"{s}.c" for s in BZIP2], ["-D_FILE_OFFSET_BITS=64"],
                           (["-9", "-k", "-f", empty], ["-9", "-k", "-f", text]), (alone, alone)))
    return rows

