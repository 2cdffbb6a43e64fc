# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intrinsics of targets: each of each LLVM is counted, or counts nothing, or flags its loop. What a
table says of functions without branches needs no machine that can run them."""
import collections
import functools
import re
from pathlib import Path

from kernels import plugin, run, versions
from machine import Skip
from read_counts import METRICS, read_table

ASSEMBLY = 4  # MPERF_SCOPE_ASSEMBLY
# What arithmetic is called by any target, and what has that in its name without being any.
ARITHMETIC = re.compile(r"add|sub|mul|div|sqrt|mla|mls|fma|fms|max|min|dot|dp[bw]|abd|sh[lr]|s[lr][la]|rcp|recp|avg|mac|sad")
NOT_ARITHMETIC = re.compile(r"permil?var|comi|sublane|vsetvlimax|clast|x86\.rd|vm(set|sbf|s)|vmadc|vms|vslide|vmxn?or|"
                            r"\.kadd|\.sel|seh\.|vmand|fcvt|cvt|pack")
PROGRAM = """target datalayout = "e-m:e-i64:64-n32:64-S128"
target triple = "{triple}"
declare {result} @llvm.{name}({types})
define void @kernel({parameters}) {{
  {call}
  ret void
}}
attributes #0 = {{ "target-features"="{features}" }}
"""
V4F, V16F, V8F = "<4 x float>", "<16 x float>", "<8 x float>"
NXF, NXB, NXBF = "<vscale x 4 x float>", "<vscale x 4 x i1>", "<vscale x 8 x bfloat>"
FOUR = "{ <4 x float>, <4 x float>, <4 x float>, <4 x float> }"
PAIR = "{ <vscale x 4 x float>, <vscale x 4 x float> }"
X86, ARM, RISCV = ("x86_64-pc-linux-gnu", ""), ("aarch64-linux-gnu", "+neon,+sve,+bf16"), ("riscv64-linux-gnu", "+v")
# target, result, name, operands: what it counts (in scalable parts, or by a mask's lanes, once)
CASES = [
    (X86, V4F, "x86.sse41.dpps", [V4F, V4F, "i8 127"], {"fp32_ops": 8}),
    (X86, V16F, "x86.avx512bf16.dpbf16ps.512", [V16F, "<32 x bfloat>", "<32 x bfloat>"], {"fp32_ops": 64}),
    (X86, V4F, "x86.avx512.mask.add.ss.round", [V4F, V4F, V4F, "i8 -1", "i32 8"], {"fp32_ops": 1}),
    (X86, V4F, "x86.avx512.mask.add.ss.round", [V4F, V4F, V4F, "i8 0", "i32 8"], {"fp32_ops": 0}),
    (X86, V4F, "x86.avx512.mask.add.ss.round", [V4F, V4F, V4F, "i8", "i32 8"], None),
    (X86, "<4 x i32>", "x86.sse2.psrai.d", ["<4 x i32>", "i32"], {"int_ops": 4}),
    (X86, "<4 x i32>", "x86.sse2.pmadd.wd", ["<8 x i16>", "<8 x i16>"], {"int_ops": 12}),
    (X86, "<2 x i64>", "x86.aesni.aesenc", ["<2 x i64>", "<2 x i64>"], None),
    (X86, "<4 x i32>", "x86.sse2.cvtps2dq", [V4F], {}),
    (ARM, NXF, "aarch64.sve.fadd.nxv4f32", [NXB, NXF, NXF], {"fp32_ops": 1}),
    (ARM, NXF, "aarch64.sve.fmla.nxv4f32", [NXB, NXF, NXF, NXF], {"fp32_ops": 2}),
    (ARM, NXF, "aarch64.sve.bfdot", [NXF, NXBF, NXBF], {"fp32_ops": 16}),
    (ARM, "float", "aarch64.sve.faddv.nxv4f32", [NXB, NXF], {"fp32_ops": 1}),
    (ARM, NXF, "aarch64.sve.ftmad.x.nxv4f32", [NXF, NXF, "i32 3"], None),
    (ARM, NXB, "aarch64.sve.ptrue.nxv4i1", ["i32 31"], {}),
    (ARM, NXF, "aarch64.sve.ldnt1.nxv4f32", [NXB, "ptr"], {"bytes_loaded": 4, "loads": 1}),
    (ARM, V4F, "aarch64.neon.fmax.v4f32", [V4F, V4F], {"fp32_ops": 4}),
    (ARM, "<4 x i32>", "aarch64.neon.smax.v4i32", ["<4 x i32>", "<4 x i32>"], {"int_ops": 4}),
    (ARM, "float", "aarch64.neon.fmaxv.f32.v4f32", [V4F], {"fp32_ops": 3}),
    (ARM, FOUR, "aarch64.neon.ld4.v4f32.p0", ["ptr"], {"bytes_loaded": 64, "loads": 4}),
    (ARM, FOUR, "aarch64.neon.ld4lane.v4f32.p0", [V4F, V4F, V4F, V4F, "i64 1", "ptr"],
     {"bytes_loaded": 16, "loads": 4}),
    (ARM, "void", "aarch64.neon.st2.v4f32.p0", [V4F, V4F, "ptr"], {"bytes_stored": 32, "stores": 2}),
    (ARM, "<16 x i8>", "aarch64.crypto.aese", ["<16 x i8>", "<16 x i8>"], None),
    (RISCV, NXF, "riscv.vfmax.nxv4f32.nxv4f32.i64", [NXF, NXF, NXF, "i64"], {"fp32_ops": 1}),
    (RISCV, PAIR, "riscv.vlseg2.nxv4f32.i64", [NXF, NXF, "ptr", "i64"], {"bytes_loaded": 8, "loads": 2}),
    (RISCV, "<vscale x 4 x i32>", "riscv.vid.nxv4i32.i64", ["<vscale x 4 x i32>", "i64"], {}),
]
COUNTED = """x86.avx512bf16.dpbf16ps.512 x86.sse41.dpps x86.avx512.mask.add.ss.round aarch64.sve.fadd
    aarch64.sve.fmla aarch64.sve.fmul aarch64.sve.fsqrt aarch64.sve.sdiv aarch64.neon.ld4 aarch64.neon.smax
    aarch64.neon.fmax riscv.vfadd riscv.vlseg2""".split()


def need_versions(build):
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    return found


def opt(build, version, passes, text, *options):
    so = plugin(build, version)
    return run([f"opt-{version}", f"-load={so}", f"-load-pass-plugin={so}", f"-passes={passes}",
                "-mperf-functions", "-mperf-segment=false", "-S", *options], input=text).stdout


def test_no_intrinsic_of_a_target_is_silent(build):
    for version in need_versions(build):
        listed = dict(re.findall(r"^llvm\.(\S+) (counted|none|flagged)$",
                                 opt(build, version, "mperf-intrinsics", ""), re.M))
        header = Path(f"/usr/lib/llvm-{version}/include/llvm/IR/IntrinsicImpl.inc")
        if header.exists():
            known = set(re.findall(r'^  "llvm\.((?:x86|aarch64|riscv|arm|ppc|s390)\.\S+)",$',
                                   header.read_text(encoding="utf-8"), re.M))
            assert len(known) > 3000 and not known - set(listed), sorted(known - set(listed))[:5]
        silent = [n for n, how in listed.items()
                  if how == "none" and ARITHMETIC.search(n) and not NOT_ARITHMETIC.search(n)]
        assert not silent, silent
        wrong = [n for n in COUNTED if listed[n] != "counted"]
        assert not wrong, wrong


def kernel_of(case):
    (triple, features), result, name, operands, _ = case
    types = [o.rsplit(" ", 1)[0] if re.search(r" -?\d+$", o) else o for o in operands]
    parameters = [f"{t} %p{i}" for i, t in enumerate(types)]
    arguments = [o if o != t else p for o, t, p in zip(operands, types, parameters)]
    call = f"{'' if result == 'void' else '%r = '}call {result} @llvm.{name}({', '.join(arguments)})"
    return PROGRAM.format(triple=triple, result=result, name=name, types=", ".join(types), call=call,
                          parameters=", ".join(parameters), features=features).replace(") {", ") #0 {", 1)


def table_of(text):
    """The flags of all scopes, and by metric the sum of a table's factors."""
    literal = re.search(r'@mperf\.table = .* c"(.*)", ', text).group(1)
    data = re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m.group(1), 16)]), literal.encode())
    scopes, counters = read_table(data)
    metrics = collections.Counter()
    for _, terms in counters:
        for _, key, factor in terms:
            metrics[METRICS[key >> 2]] += factor
    return functools.reduce(lambda all_of, scope: all_of | scope[-1], scopes, 0), metrics


def test_intrinsics_count_what_they_do_and_others_flag_their_function(build):
    for version in need_versions(build):
        for case in CASES:
            flags, metrics = table_of(opt(build, version, "mperf", kernel_of(case)))
            expected = case[-1]
            assert bool(flags & ASSEMBLY) == (expected is None), (version, case, flags)
            for metric in ("fp32_ops", "int_ops", "loads", "stores", "bytes_loaded", "bytes_stored"):
                assert metrics[metric] == (expected or {}).get(metric, 0), (version, case, dict(metrics))
