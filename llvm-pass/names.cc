// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics of targets are thousands, and their names are regular. What is not recognised here is
// UNKNOWN, and its loop is flagged as one with inline assembly is; so a new intrinsic is never
// silently uncounted. Comparisons, conversions, roundings and negations are no operations, as
// elsewhere. A product that is summed up counts two, as Intel's own events have it for DPPS.
//
// Source: LLVM 16 and 19, include/llvm/IR/Intrinsics{X86,AArch64,RISCV}.td; Intel's perfmon events,
// FP_ARITH_INST_RETIRED: "DPP and FM(N)ADD/SUB instructions count twice".

#include "names.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr Known NONE = {Kind::NONE, 0, false}, UNKNOWN = {Kind::UNKNOWN, 0, false},
		ACCESS = {Kind::ACCESS, 0, false};

Known operations(unsigned each, bool reduces = false)
{
	return each ? Known{Kind::OPERATIONS, each, reduces} : UNKNOWN;
}

bool starts_with_any(StringRef name, ArrayRef<const char *> prefixes)
{
	return any_of(prefixes, [&](const char *prefix) { return name.starts_with(prefix); });
}

// --- x86: feature.[mask.]operation.types -----------------------------------------------------------

bool is_none_of_x86(StringRef operation)
{
	return starts_with_any(operation,
		{"cvt", "vcvt", "pack", "pshuf", "perm", "vperm", "blendv", "pblendvb", "movmsk",
			"pmovmskb", "cmp", "comi", "ucomi", "vcomi", "ptest", "vtest", "insertps",
			"ktest", "vzero", "round", "rndscale", "fpclass", "sitofp", "uitofp",
			"compress", "expand", "broadcastm", "pmov", "lfence", "sfence", "mfence",
			"clflush", "mwait", "monitor", "pause", "emms"});
}

bool is_plain_none_of_x86(StringRef name)
{
	return starts_with_any(
		name, {"rdtsc", "rdpmc", "rdpid", "rdpkru", "rdpru", "rdfsbase", "rdgsbase",
			      "rdrand", "rdseed", "clwb", "cldemote", "serialize", "seh.", "tpause",
			      "umwait", "umonitor", "flags.", "vcvt", "xgetbv"});
}

unsigned operations_of_x86(StringRef operation)
{
	return StringSwitch<unsigned>(operation)
		.Cases("add", "sub", "mul", "div", "min", "max", "sqrt", 1)
		.Cases("rcp", "rsqrt", "rcp14", "rsqrt14", "hadd", "hsub", "addsub", 1)
		.Cases("vfmadd", "vfmaddsub", "vfmsubadd", "vfmsub", "vfnmadd", "vfnmsub", 2)
		.Cases("dp", "dpps", "dppd", 2)
		.Case("dpbf16ps", 4)
		.Cases("pavg", "pmul", "pmulh", "pmulhu", "phadd", "phsub", "psign", 1)
		.Cases("psll", "pslli", "psllv", "psrl", "psrli", "psrlv", 1)
		.Cases("psra", "psrai", "psrav", 1)
		.Cases("pmadd", "pmaddw", "pmaddubs", 3)
		.StartsWith("vpmadd52", 2)
		.StartsWith("vpdpw", 4)
		.StartsWith("vpdpb", 8)
		.Default(0);
}

Known known_x86(StringRef name)
{
	if (is_plain_none_of_x86(name))
		return NONE;
	auto [feature, rest] = name.split('.');
	if (!starts_with_any(feature, {"sse", "ssse", "avx", "fma"}))
		return UNKNOWN; // mmx has vectors of a type of its own
	const bool is_masked = rest.consume_front("mask.") || rest.consume_front("maskz.");
	const StringRef operation = rest.split('.').first;
	if (rest.contains(".mem.") || rest.contains(".cph") || rest.contains(".csh"))
		return UNKNOWN; // stores; complex numbers
	if (operation == "maskload" || operation == "maskstore" ||
		(is_masked && starts_with_any(operation, {"gather", "scatter"})) ||
		(feature == "avx2" && operation == "gather"))
		return ACCESS;
	return is_none_of_x86(operation) ? NONE : operations(operations_of_x86(operation));
}

// --- RISC-V: v<operation>[.mask].<types> -----------------------------------------------------------

bool is_none_of_riscv(StringRef operation)
{
	return starts_with_any(
		       operation, {"vset", "vmv", "vfmv", "vmerge", "vfmerge", "vslide", "vfslide",
					  "vrgather", "vcompress", "vfirst", "viota", "vid",
					  "vmand", "vmnand", "vmor", "vmnor", "vmxor", "vmxnor",
					  "vmclr", "vms", "vmf", "vmadc", "vfclass", "vfcvt",
					  "vfwcvt", "vfncvt", "vzext", "vsext", "vfsgnj"}) ||
	       operation == "vcpop";
}

unsigned operations_of_riscv(StringRef operation)
{
	StringRef name = operation;
	if (!name.consume_front("v"))
		return 0;
	name.consume_front("f");
	name.consume_front("w"); // widening
	name.consume_front("n"); // negated, narrowing
	if (starts_with_any(
		    name, {"macc", "msac", "madd", "msub", "nmacc", "nmsac", "nmadd", "nmsub"}))
		return 2;
	return starts_with_any(
		name, {"add", "sub", "rsub", "mul", "div", "rdiv", "rem", "min", "max", "sqrt",
			      "rec7", "rsqrt7", "redusum", "redosum", "redsum", "redmin", "redmax",
			      "redand", "redor", "redxor", "and", "or", "xor", "sll", "srl", "sra",
			      "sadd", "ssub", "aadd", "asub", "smul", "ssrl", "ssra", "adc", "sbc",
			      "clip", "clz", "ctz", "cpopv", "brev", "rev8", "ror", "rol"});
}

// vle32, vlse, vluxei, vlseg2e32, and the same for stores
bool is_access_of_riscv(StringRef operation)
{
	if (!operation.consume_front("vl") && !operation.consume_front("vs"))
		return false;
	if (!operation.consume_front("ux") && !operation.consume_front("ox"))
		operation.consume_front("s");
	if (operation.consume_front("seg") || operation.consume_front("eg"))
		return true;
	return operation == "m" || operation == "e" || operation == "ei" || operation == "eff" ||
	       operation.starts_with("seg");
}

Known known_riscv(StringRef name)
{
	const StringRef operation = name.split('.').first;
	if (!operation.starts_with("v"))
		return UNKNOWN;
	if (is_access_of_riscv(operation))
		return ACCESS;
	return is_none_of_riscv(operation) ? NONE : operations(operations_of_riscv(operation));
}

// --- AArch64: neon.<operation>.<types>, sve.<operation>[.variant].<types> ----------------------------

unsigned operations_of_neon(StringRef operation)
{
	return StringSwitch<unsigned>(operation)
		.Cases("fabd", "fmax", "fmin", "fmaxnm", "fminnm", "fmulx", 1)
		.Cases("faddp", "fmaxp", "fminp", "fmaxnmp", "fminnmp", 1)
		.Cases("frecpe", "frsqrte", "frecpx", "urecpe", "ursqrte", 1)
		.Cases("abs", "addp", "pmul", "pmull", "sabd", "uabd", "cls", 1)
		.Cases("smax", "smin", "umax", "umin", 1)
		.Cases("smaxp", "sminp", "umaxp", "uminp", "saddlp", "uaddlp", 1)
		.Cases("smull", "umull", "sqdmulh", "sqrdmulh", "sqdmull", 1)
		.Cases("shadd", "uhadd", "srhadd", "urhadd", "shsub", "uhsub", 1)
		.Cases("sqadd", "uqadd", "sqsub", "uqsub", "suqadd", "usqadd", "sqabs", 1)
		.Cases("sshl", "ushl", "srshl", "urshl", "sqshl", "uqshl", "sqrshl", "uqrshl", 1)
		.Cases("sshll", "ushll", "shll", "vcadd", 1)
		.Cases("frecps", "frsqrts", "fmlal", "fmlal2", "fmlsl", "fmlsl2", 2)
		.Cases("bfmlalb", "bfmlalt", "sqrdmlah", "sqrdmlsh", "vcmla", 2)
		.Case("bfdot", 4)
		.Cases("sdot", "udot", "usdot", 8)
		.Default(0);
}

bool reduces_neon(StringRef operation)
{
	return StringSwitch<bool>(operation)
		.Cases("fmaxv", "fminv", "fmaxnmv", "fminnmv", "faddv", true)
		.Cases("saddv", "uaddv", "smaxv", "sminv", "umaxv", "uminv", true)
		.Cases("saddlv", "uaddlv", true)
		.Default(false);
}

Known known_neon(StringRef name)
{
	const StringRef operation = name.split('.').first;
	if (starts_with_any(operation, {"ld1x", "ld2", "ld3", "ld4", "st1x", "st2", "st3", "st4"}))
		return ACCESS;
	if (starts_with_any(operation, {"fcvt", "vcvt", "bfcvt", "frint", "facg", "tbl", "tbx",
					       "vcopy", "sqxt", "uqxt"}))
		return NONE;
	return reduces_neon(operation) ? operations(1, true)
				       : operations(operations_of_neon(operation));
}

bool is_none_of_sve(StringRef name)
{
	return starts_with_any(
		name, {"ptrue", "while", "cntb", "cnth", "cntw", "cntd", "cntp", "convert.", "dup",
			      "sel", "splice", "ext", "rev", "zip", "uzp", "trn", "tbl", "tbx",
			      "cmp", "fcmp", "facg", "fcvt", "scvtf", "ucvtf", "frint", "fneg",
			      "fabs", "neg", "compact", "insr", "last", "clast", "index", "brk",
			      "pfirst", "pnext", "ptest", "punpk", "sunpk", "uunpk", "sxt", "uxt",
			      "rdffr", "setffr", "wrffr", "prf", "psel", "adr", "pmov", "tuple."});
}

unsigned operations_of_sve(StringRef operation)
{
	return StringSwitch<unsigned>(operation)
		.Cases("fadd", "fsub", "fsubr", "fmul", "fmulx", "fdiv", "fdivr", "fsqrt", 1)
		.Cases("fmax", "fmin", "fmaxnm", "fminnm", "fabd", "fscale", "fcadd", 1)
		.Cases("frecpe", "frecpx", "frsqrte", "faddp", "fmaxp", "fminp", 1)
		.Cases("add", "sub", "subr", "mul", "smulh", "umulh", "abs", "cnt", "clz", 1)
		.Cases("sdiv", "sdivr", "udiv", "udivr", "sabd", "uabd", 1)
		.Cases("smax", "smin", "umax", "umin", 1)
		.Cases("and", "orr", "eor", "bic", "asr", "lsl", "lsr", "asrd", 1)
		.Cases("sqadd", "uqadd", "sqsub", "uqsub", 1)
		.Cases("fmla", "fmls", "fmad", "fmsb", "fnmla", "fnmls", "fnmad", "fnmsb", 2)
		.Cases("mla", "mls", "mad", "msb", "fcmla", "frecps", "frsqrts", 2)
		.Cases("fmlalb", "fmlalt", "fmlslb", "fmlslt", "bfmlalb", "bfmlalt", 2)
		.Case("bfdot", 4)
		.Cases("sdot", "udot", "usdot", "sudot", 8)
		.Default(0);
}

bool reduces_sve(StringRef operation)
{
	return StringSwitch<bool>(operation)
		.Cases("fadda", "faddv", "fmaxv", "fminv", "fmaxnmv", "fminnmv", true)
		.Cases("saddv", "uaddv", "smaxv", "sminv", "umaxv", "uminv", true)
		.Cases("andv", "orv", "eorv", true)
		.Default(false);
}

Known known_sve(StringRef name)
{
	if (is_none_of_sve(name) || name.split('.').second.split('.').first == "z")
		return NONE; // .z works on predicates
	if (name.contains(".x2") || name.contains(".x4") || name.contains(".vgx"))
		return UNKNOWN; // several vectors at once
	const auto [operation, variant] = name.split('.');
	if (StringSwitch<bool>(operation)
			.Cases("ld1", "ldnt1", "ldff1", "ldnf1", "st1", "stnt1", true)
			.Cases("ld2", "ld3", "ld4", "st2", "st3", "st4", true)
			.Default(false))
		return ACCESS;
	return reduces_sve(operation) ? operations(1, true)
				      : operations(operations_of_sve(operation));
}

Known known_aarch64(StringRef name)
{
	if (name.consume_front("neon."))
		return known_neon(name);
	if (name.consume_front("sve."))
		return known_sve(name);
	return starts_with_any(name, {"dmb", "dsb", "isb", "hint", "get.fpcr", "set.fpcr", "space"})
		       ? NONE
		       : UNKNOWN;
}

} // namespace

Known known_intrinsic(StringRef name)
{
	name.consume_front("llvm.");
	if (name.consume_front("x86."))
		return known_x86(name);
	if (name.consume_front("riscv."))
		return known_riscv(name);
	return name.consume_front("aarch64.") ? known_aarch64(name) : UNKNOWN;
}

} // namespace mperf
