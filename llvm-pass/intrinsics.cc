// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls: intrinsics, library functions known by name, and the rest. What this module does not define
// becomes a callee, by name; readers leave out those that another module counts.
//
// The bytes that a copy or a fill moves are known exactly; the number of accesses depends on the C
// library, and is modelled as words of eight bytes (like Examem, section III.F).

#include "excluded.h"
#include "names.h"
#include "reader.h"
#include "remarks.h"
#include "targets.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr uint64_t WORD_BYTES = 8;

// Copies and fills of a known length up to this become loads and stores: eight of 16 bytes, as on
// x86-64. Source: LLVM 19, X86ISelLowering.cpp, MaxStoresPerMemcpy.
constexpr uint64_t INLINE_BYTES_MAX = 128;

// Moves `length` bytes: loads them if there is a `source`, and stores them if there is a `to`.
// Bytes that a callee moves are not charged to its caller.
void add_block_move(BlockMix &into, Instruction &call, Value *length, const Value *to,
	const Value *source, Owner owner)
{
	const auto *constant = dyn_cast<ConstantInt>(length);
	Quantity *bytes =
		constant ? nullptr : find_quantity(into, Unit::VALUE, length, nullptr, call);
	Quantity *words =
		constant ? nullptr : find_quantity(into, Unit::WORDS, length, nullptr, call);
	const uint64_t n_bytes = constant ? constant->getZExtValue() : 1;
	const uint64_t n_words = constant ? (n_bytes + WORD_BYTES - 1) / WORD_BYTES : 1;
	Mix &by_byte = bytes ? bytes->mix : into.mix;
	Mix &by_word = words ? words->mix : into.mix;
	if (owner != OWN)
		into.mix.add(MPERF_METRIC_ENTRIES, 1, 0, owner);
	if (source) {
		by_byte.add(MPERF_METRIC_BYTES_LOADED, n_bytes, 0, owner);
		by_word.add(MPERF_METRIC_LOADS, n_words, MPERF_MODELLED, owner);
		if (is_local(source))
			by_byte.add(MPERF_METRIC_STACK_BYTES_LOADED, n_bytes, 0, owner);
	}
	if (to) {
		by_byte.add(MPERF_METRIC_BYTES_STORED, n_bytes, 0, owner);
		by_word.add(MPERF_METRIC_STORES, n_words, MPERF_MODELLED, owner);
		if (is_local(to))
			by_byte.add(MPERF_METRIC_STACK_BYTES_STORED, n_bytes, 0, owner);
	}
}

// Owner of the work of a copy or fill that LLVM knows: the C library, unless the copy is short.
Owner owner_of(BlockMix &into, StringRef name, MemIntrinsic &call)
{
	const auto *constant = dyn_cast<ConstantInt>(call.getLength());
	if (call.getIntrinsicID() == Intrinsic::memcpy_inline ||
		(constant && constant->getZExtValue() <= INLINE_BYTES_MAX))
		return OWN;
	return find_callee(into, name, call);
}

// The metric of an ordinary operation on that type, by its opcode; 0: not counted.
uint32_t opcode_metric(unsigned opcode, const Type *type)
{
	if (type->getScalarType()->isIntegerTy(1) || !Instruction::isBinaryOp(opcode))
		return 0;
	return type->isFPOrFPVectorTy() ? float_metric(type) : (uint32_t)MPERF_METRIC_INT_OPS;
}

// Operations per lane of an intrinsic; 0: none.
unsigned arithmetic_operations(Intrinsic::ID id)
{
	switch (id) {
	case Intrinsic::fma:
	case Intrinsic::fmuladd:
	case Intrinsic::experimental_constrained_fma:
	case Intrinsic::experimental_constrained_fmuladd:
		return 2;
	case Intrinsic::sqrt:
	case Intrinsic::minnum:
	case Intrinsic::maxnum:
	case Intrinsic::minimum:
	case Intrinsic::maximum:
	case Intrinsic::smin:
	case Intrinsic::smax:
	case Intrinsic::umin:
	case Intrinsic::umax:
	case Intrinsic::abs:
	case Intrinsic::ctpop:
	case Intrinsic::ctlz:
	case Intrinsic::cttz:
	case Intrinsic::bswap:
	case Intrinsic::bitreverse:
	case Intrinsic::fshl:
	case Intrinsic::fshr:
	case Intrinsic::sadd_sat:
	case Intrinsic::uadd_sat:
	case Intrinsic::ssub_sat:
	case Intrinsic::usub_sat:
	case Intrinsic::experimental_constrained_fadd:
	case Intrinsic::experimental_constrained_fsub:
	case Intrinsic::experimental_constrained_fmul:
	case Intrinsic::experimental_constrained_fdiv:
	case Intrinsic::experimental_constrained_frem:
	case Intrinsic::experimental_constrained_sqrt:
	case Intrinsic::sadd_with_overflow:
	case Intrinsic::uadd_with_overflow:
	case Intrinsic::ssub_with_overflow:
	case Intrinsic::usub_with_overflow:
	case Intrinsic::smul_with_overflow:
	case Intrinsic::umul_with_overflow:
		return 1;
	default:
		return 0;
	}
}

// Intrinsics that become calls of the C library on all our targets.
bool is_library_intrinsic(Intrinsic::ID id)
{
	switch (id) {
	case Intrinsic::sin:
	case Intrinsic::cos:
	case Intrinsic::exp:
	case Intrinsic::exp2:
	case Intrinsic::log:
	case Intrinsic::log2:
	case Intrinsic::log10:
	case Intrinsic::pow:
	case Intrinsic::powi:
		return true;
	default:
		return false;
	}
}

// The function that such an intrinsic calls: sinf for llvm.sin.f32.
std::string library_name(const IntrinsicInst &call)
{
	const Type *type = call.getType()->getScalarType();
	std::string name =
		Intrinsic::getBaseName(call.getIntrinsicID()).substr(strlen("llvm.")).str();
	if (call.getIntrinsicID() == Intrinsic::powi)
		return type->isFloatTy() ? "__powisf2" : "__powidf2";
	return name + (type->isFloatTy() ? "f" : type->isDoubleTy() ? "" : "l");
}

// A reduction combines all lanes: one operation fewer than lanes, unless the start value counts.
bool read_reduction(BlockMix &into, IntrinsicInst &call)
{
	bool ordered = false;
	switch (call.getIntrinsicID()) {
	case Intrinsic::vector_reduce_fadd:
	case Intrinsic::vector_reduce_fmul: {
		const auto *start = dyn_cast<ConstantFP>(call.getArgOperand(0));
		const bool neutral = start && (start->isZero() || start->isExactlyValue(1.0));
		ordered = !neutral;
		break;
	}
	case Intrinsic::vector_reduce_fmin:
	case Intrinsic::vector_reduce_fmax:
	case Intrinsic::vector_reduce_add:
	case Intrinsic::vector_reduce_mul:
	case Intrinsic::vector_reduce_and:
	case Intrinsic::vector_reduce_or:
	case Intrinsic::vector_reduce_xor:
	case Intrinsic::vector_reduce_smin:
	case Intrinsic::vector_reduce_smax:
	case Intrinsic::vector_reduce_umin:
	case Intrinsic::vector_reduce_umax:
		break;
	default:
		return false;
	}
	const Type *type = call.getArgOperand(call.arg_size() - 1)->getType();
	const uint32_t metric = opcode_metric(
		type->isFPOrFPVectorTy() ? Instruction::FAdd : Instruction::Add, type);
	if (metric == 0)
		return true;
	add_operations(into, metric, 1, extent_of(type));
	if (!ordered)
		into.mix.add(metric, -1);
	return true;
}

// Masked, gathering, scattering, expanding, compressing accesses, and those with a vector length.
bool read_masked_access(BlockMix &into, const DataLayout &layout, IntrinsicInst &call)
{
	unsigned pointer = 0, mask = 0;
	bool is_store = false;
	switch (call.getIntrinsicID()) {
	case Intrinsic::masked_load:
	case Intrinsic::masked_gather:
		mask = 2;
		break;
	case Intrinsic::masked_expandload:
		mask = 1;
		break;
	case Intrinsic::masked_store:
	case Intrinsic::masked_scatter:
		is_store = true;
		pointer = 1;
		mask = 3;
		break;
	case Intrinsic::masked_compressstore:
		is_store = true;
		pointer = 1;
		mask = 2;
		break;
	default:
		return false;
	}
	const Type *type = is_store ? call.getArgOperand(0)->getType() : call.getType();
	const Value *where = call.getArgOperand(pointer);
	const uint64_t bytes =
		layout.getTypeStoreSize(const_cast<Type *>(type)->getScalarType()).getFixedValue();
	add_access(into, is_store, bytes,
		masked(into, extent_of(type), call.getArgOperand(mask), nullptr, call),
		where->getType()->isVectorTy() ? nullptr : where);
	return true;
}

// Intrinsics with explicit vector length: vp.*
bool read_predicated(BlockMix &into, const DataLayout &layout, IntrinsicInst &call)
{
	auto *predicated = dyn_cast<VPIntrinsic>(&call);
	if (!predicated)
		return false;
	const Value *pointer = predicated->getMemoryPointerParam();
	const Value *stored = predicated->getMemoryDataParam();
	const Type *type = stored ? stored->getType() : call.getType();
	if (!type->isVectorTy()) // a reduction, whose vector is its second operand
		type = call.arg_size() > 1 ? call.getArgOperand(1)->getType() : type;
	const Extent extent = masked(into, extent_of(type), predicated->getMaskParam(),
		predicated->getVectorLengthParam(), call);
	if (pointer) {
		const Type *element = const_cast<Type *>(type)->getScalarType();
		add_access(into, stored != nullptr,
			layout.getTypeStoreSize(const_cast<Type *>(element)).getFixedValue(),
			extent, pointer->getType()->isVectorTy() ? nullptr : pointer);
		return true;
	}
	if (isa<VPReductionIntrinsic>(predicated)) {
		const uint32_t metric = type->isFPOrFPVectorTy() ? float_metric(type)
								 : (uint32_t)MPERF_METRIC_INT_OPS;
		add_operations(into, metric, 1, extent);
		return true;
	}
	const auto opcode = predicated->getFunctionalOpcode();
	const Intrinsic::ID id = call.getIntrinsicID();
	const bool fused = id == Intrinsic::vp_fma || id == Intrinsic::vp_fmuladd;
	const uint32_t metric = fused    ? float_metric(type)
				: opcode ? opcode_metric(*opcode, type)
					 : 0;
	if (metric != 0)
		add_operations(into, metric, fused ? 2 : 1, extent);
	return true;
}

// Library functions unknown to LLVM. Other functions may be in any module of the program, which is
// known only at run time.
bool is_foreign(StringRef name)
{
	// Functions of the C library that are not in TargetLibraryInfo. Source: ISO C17, 7;
	// POSIX.1-2017.
	static const StringSet<> of_libc = {"rand", "srand", "rand_r", "random", "srandom",
		"drand48", "erand48", "lrand48", "nrand48", "mrand48", "jrand48", "srand48",
		"bsearch", "lfind", "lsearch", "hsearch", "tsearch", "tfind", "time", "clock",
		"difftime", "localtime", "localtime_r", "gmtime_r", "strftime", "gettimeofday",
		"clock_gettime", "nanosleep", "usleep", "sleep", "sched_yield", "getpid", "sysconf",
		"mmap", "munmap", "mprotect", "close", "lseek", "pread", "pwrite", "ftruncate",
		"fsync", "poll", "select", "epoll_wait", "socket", "connect", "accept", "send",
		"recv", "sendto", "recvfrom", "ioctl", "fcntl", "dlopen", "dlsym", "getline",
		"fscanf", "strtof", "strtold", "strerror", "strcoll", "strxfrm", "setlocale", "erf",
		"erff", "erfc", "erfcf", "lgamma", "lgammaf", "tgamma", "tgammaf", "hypot",
		"hypotf", "fma", "fmaf", "lrint", "lrintf", "llrint", "lround", "lroundf",
		"llround", "nextafter", "scalbn", "ilogb", "fdim", "j0", "j1", "jn", "y0", "y1",
		"yn", "exp10", "cexp", "clog", "csqrt", "cpow", "raise", "kill", "sigaction",
		"sigprocmask"};
	if (of_libc.contains(name))
		return true;
	for (const char *prefix : {"__kmpc_", "omp_", "pthread_", "_ZNS", "_ZNKS", "_ZSt", "__cxa_",
		     "_Zn", "_Zd", "_Unwind_", "__gxx_", "gomp_", "GOMP_", "__mperf_"})
		if (name.starts_with(prefix))
			return true;
	return false;
}

} // namespace

bool MixReader::read_intrinsic(IntrinsicInst &call)
{
	if (const auto *transfer = dyn_cast<AnyMemTransferInst>(&call)) {
		auto *plain = dyn_cast<MemTransferInst>(&call);
		const Owner owner =
			plain ? owner_of(*into, isa<MemMoveInst>(plain) ? "memmove" : "memcpy",
					*plain)
			      : OWN;
		add_block_move(*into, call, transfer->getLength(), transfer->getRawDest(),
			transfer->getRawSource(), owner);
		return true;
	}
	if (const auto *fill = dyn_cast<AnyMemSetInst>(&call)) {
		auto *plain = dyn_cast<MemSetInst>(&call);
		add_block_move(*into, call, fill->getLength(), fill->getRawDest(), nullptr,
			plain ? owner_of(*into, "memset", *plain) : OWN);
		return true;
	}
	if (const unsigned each = arithmetic_operations(call.getIntrinsicID())) {
		const Type *type = call.getArgOperand(0)->getType();
		Extent extent = extent_of(type);
		if (extent.vector && tail && extent.issued == tail_lanes)
			extent.quantity = tail;
		if (!type->getScalarType()->isIntegerTy(1))
			add_operations(*into,
				type->isFPOrFPVectorTy() ? float_metric(type)
							 : (uint32_t)MPERF_METRIC_INT_OPS,
				each, extent);
		return true;
	}
	if (is_library_intrinsic(call.getIntrinsicID())) {
		const Extent extent = extent_of(call.getType());
		const uint32_t variant = extent.scalable ? MPERF_SCALABLE : 0;
		remark_unseen(call);
		into->mix.add(MPERF_METRIC_EXTERNAL_CALLS, extent.issued, variant);
		into->mix.add(MPERF_METRIC_ENTRIES, extent.issued, variant,
			find_callee(*into, library_name(call), call));
		return true;
	}
	if (read_reduction(*into, call) || read_masked_access(*into, layout, call) ||
		read_predicated(*into, layout, call) || read_riscv_intrinsic(*into, call) ||
		read_x86_intrinsic(*into, call) || read_aarch64_intrinsic(*into, call))
		return true;
	// An unknown intrinsic of a target: flag the loop.
	into->assembly |= Function::isTargetIntrinsic(call.getIntrinsicID()) &&
			  known_intrinsic(call.getCalledFunction()->getName()).kind != Kind::NONE;
	return false;
}

bool MixReader::read_library_call(CallBase &call, StringRef symbol)
{
	StringRef name = symbol;
	name.consume_front("__");
	name.consume_back("_chk");
	const unsigned n = call.arg_size();
	const auto at = [&](unsigned i) { return call.getArgOperand(i); };
	const auto add_move = [&](unsigned length, unsigned to, const Value *source) {
		add_block_move(
			*into, call, at(length), at(to), source, find_callee(*into, name, call));
	};
	if (n >= 3 && (name == "memcpy" || name == "memmove" || name == "mempcpy"))
		add_move(2, 0, at(1));
	else if (n >= 3 && name == "bcopy")
		add_move(2, 1, at(0));
	else if (n >= 3 && name == "memset")
		add_move(2, 0, nullptr);
	else if (n >= 2 && name == "bzero")
		add_move(1, 0, nullptr);
	else if (n >= 1 && name == "strlen" && isa<CallInst>(call) && !call.isMustTailCall()) {
		// The whole text, including its final NUL. Its length is known only after the call;
		// if that must be a tail call, no code may follow it.
		assert(!call.isTerminator());
		Quantity *length =
			find_quantity(*into, Unit::VALUE, &call, nullptr, *call.getNextNode());
		length->mix.add(MPERF_METRIC_BYTES_LOADED, 1, MPERF_MODELLED);
		into->mix.add(MPERF_METRIC_BYTES_LOADED, 1, MPERF_MODELLED);
		add_callee(call, name);
	} else
		return false;
	return true;
}

// A callee that this module does not count. Only the running program knows whether another one does.
void MixReader::add_callee(const CallBase &call, StringRef name)
{
	into->mix.add(MPERF_METRIC_ENTRIES, 1, 0, find_callee(*into, name, call));
}

void MixReader::add_call(CallBase &call, bool is_unseen)
{
	const auto *callee = dyn_cast<Function>(call.getCalledOperand()->stripPointerCasts());
	if (is_unseen)
		remark_unseen(call);
	into->mix.add(is_unseen ? MPERF_METRIC_EXTERNAL_CALLS : MPERF_METRIC_CALLS, 1);
	if (callee && (is_unseen || callee->isDeclaration()))
		add_callee(call, callee->getName());
}

void MixReader::read_call(CallBase &call)
{
	if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
		read_intrinsic(*intrinsic);
		return;
	}
	if (const auto *assembly = dyn_cast<InlineAsm>(call.getCalledOperand())) {
		into->assembly |= !assembly->getAsmString().empty();
		return;
	}
	const Function *callee = dyn_cast<Function>(call.getCalledOperand()->stripPointerCasts());
	if (!callee || !callee->isDeclaration())
		return add_call(call, callee && callee->hasFnAttribute(NOT_COUNTED));
	if (callee->getName().starts_with("__mperf_"))
		return;
	LibFunc known;
	const bool is_library = library.getLibFunc(*callee, known);
	if (is_library && (known == LibFunc_sqrt || known == LibFunc_sqrtf))
		into->mix.add(float_metric(call.getType()), 1);
	else if (is_library && read_library_call(call, callee->getName()))
		return;
	else
		add_call(call, is_library || is_foreign(callee->getName()));
}

} // namespace mperf
