# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the benchmark, by the names that --only takes."""
import accuracy
import clocks
import instructions
import machine_code
import regions
from machine import Skip
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


VLENS = (128, 256, 512)


def targets_of_flops(shop):
    """What there is of these; Skip where a machine lacks the instructions."""
    yield lambda: x86("x86-64", ("-O2",))
    yield lambda: x86()
    yield lambda: x86("x86-64 AVX-512", ("-O3", "-mavx512f", "-mavx512bw", "-mavx512vl"))
    yield lambda: riscv(shop, "rv64gc")
    for bits in VLENS:
        yield lambda bits=bits: riscv(shop, "rv64gcv", bits)


def flops(o, shop):
    rows, left_out = [], []
    for make in targets_of_flops(shop):
        try:
            rows += accuracy.flops(shop, make(), o.match)
        except Skip as reason:
            left_out.append(str(reason))
    return {"rows": rows, "not run": left_out}


def bytes_here(o, shop):
    return {"rows": accuracy.measure_bytes(shop, x86(), accuracy.Lackey(shop), o.match)}


def bytes_riscv(o, shop):
    truth, rows = accuracy.Plugin(shop), []
    for march, bits in (("rv64gc", None), ("rv64gcv", 256)):
        rows += accuracy.measure_bytes(shop, riscv(shop, march, bits), truth, o.match)
    return {"rows": rows}


def times(o, shop):
    return {"rows": clocks.times(shop, x86(), o.rounds, o.match)}


def rates(o, shop):
    return {"rows": clocks.rates(shop, x86(), o.rounds)}


def code(o, shop):
    return {"rows": machine_code.measure(shop.build, o.match)}


def of_regions(o, shop):
    return regions.measure(shop, x86("x86-64", ("-O2",)), o.rounds, o.match)


def whole(o, shop):
    import programs  # which wants the sources of Debian's packages
    return {"rows": programs.measure(shop, o.rounds)}


def of_foreign(o, shop):
    import foreign  # as above
    return {"rows": foreign.measure(shop, o.match)}


PARTS = {
    "instructions": instructions_here,
    "riscv": instructions_riscv,
    "flops": flops,
    "bytes": bytes_here,
    "bytes-riscv": bytes_riscv,
    "times": times,
    "rates": rates,
    "code": code,
    "regions": of_regions,
    "programs": whole,
    "foreign": of_foreign,
}
