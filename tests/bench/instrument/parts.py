# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the benchmark, by the names that --only takes."""
import instructions
from subjects import riscv, x86


def instructions_here(o, shop):
    return {"rows": instructions.measure(shop, x86(), instructions.by_cachegrind, shop.streaming,
                                         o.match)}


def instructions_riscv(o, shop):
    plugin, rows = shop.qemu_plugin(), []
    for march, bits in (("rv64gc", None), ("rv64gcv", 256)):
        target = riscv(shop, march, bits)
        rows += instructions.measure(shop, target, instructions.ByQemu(target, plugin),
                                     shop.streaming, o.match)
    return {"rows": rows}


PARTS = {
    "instructions": instructions_here,
    "riscv": instructions_riscv,
}
