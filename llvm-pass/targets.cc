// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics that programs call by name, or that the C headers of a target make. They are many and
// regular, so names are read as the targets compose them, rather than listed:
//
//      llvm.riscv.v<operation>[.mask].<types>
//                  operands end with [mask,] [rounding,] vl [, policy]
//      llvm.x86.avx2.maskload.d.256 and the like
//                  a mask is the sign bits of a vector, or i1s
//
// Source: LLVM 19, include/llvm/IR/IntrinsicsRISCV.td and IntrinsicsX86.td.

#include "targets.h"
#include "names.h"

#include "llvm/ADT/bit.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mperf
{

namespace
{

uint32_t arithmetic_metric(const Type *type)
{
	return type->isFPOrFPVectorTy() ? float_metric(type) : (uint32_t)MPERF_METRIC_INT_OPS;
}

// The vector length operand: the last one that need not be a constant.
Value *vector_length(CallBase &call)
{
	for (unsigned i = call.arg_size(); i-- > 0;) {
		if (!call.paramHasAttr(i, Attribute::ImmArg))
			return call.getArgOperand(i)->getType()->isIntegerTy()
				       ? call.getArgOperand(i)
				       : nullptr;
	}
	return nullptr;
}

Value *mask_operand(CallBase &call)
{
	for (unsigned i = call.arg_size(); i-- > 0;) {
		Type *type = call.getArgOperand(i)->getType();
		if (type->isVectorTy() && type->getScalarType()->isIntegerTy(1))
			return call.getArgOperand(i);
	}
	return nullptr;
}

// The vector that the operation works on: the value stored, or else the result, or an operand.
Type *data_type(CallBase &call, bool is_store)
{
	Type *type = is_store ? call.getArgOperand(0)->getType() : call.getType();
	if (auto *several = dyn_cast<StructType>(type))
		type = several->getElementType(0);
	for (unsigned i = 0; !type->isVectorTy() && i < call.arg_size(); i++)
		type = call.getArgOperand(i)->getType();
	return type;
}

// vle32, vlse, vluxei, vlseg2e32: `fields` is the number of vectors.
bool is_riscv_access(StringRef operation, bool &ret_is_store, unsigned &ret_fields)
{
	const bool load = operation.starts_with("vl"), store = operation.starts_with("vs");
	if (!load && !store)
		return false;
	StringRef rest = operation.drop_front(2);
	const bool indexed = rest.consume_front("ux") || rest.consume_front("ox");
	const bool strided = !indexed && rest.consume_front("s");
	unsigned fields = 1;
	const bool several = rest.consume_front("seg") || (strided && rest.consume_front("eg"));
	if (several)
		rest.consumeInteger(10, fields);
	rest.consume_front("ff");
	if (!(rest == "m" || rest.starts_with("e") || (several && rest.empty())) ||
		rest.starts_with("ext"))
		return false;
	ret_is_store = store;
	ret_fields = fields;
	return true;
}

} // namespace

bool read_riscv_intrinsic(BlockMix &into, CallBase &call)
{
	StringRef name = call.getCalledFunction()->getName();
	if (!name.consume_front("llvm.riscv.v"))
		return false;
	const StringRef operation =
		call.getCalledFunction()->getName().split("riscv.").second.split('.').first;
	const bool with_mask = name.contains(".mask.");
	bool is_store = false;
	unsigned fields = 1;
	const bool access = is_riscv_access(operation, is_store, fields);
	Type *type = data_type(call, access && is_store);
	if (!type->isVectorTy())
		return false;
	Value *length = vector_length(call);
	if (!length)
		return false;
	const Extent extent = masked(
		into, extent_of(type), with_mask ? mask_operand(call) : nullptr, length, call);
	if (access) {
		const unsigned bits = type->getScalarSizeInBits();
		if (bits < 8) // vlm and vsm: a bit per element, rounded up to bytes
			into.mix.add(is_store ? MPERF_METRIC_STORES : MPERF_METRIC_LOADS, 1);
		else
			for (unsigned i = 0; i < fields; i++)
				add_access(into, is_store, bits / 8, extent, nullptr);
		return true;
	}
	const unsigned each = known_intrinsic(call.getCalledFunction()->getName()).each;
	if (each != 0 && !type->getScalarType()->isIntegerTy(1))
		add_operations(into,
			type->isFPOrFPVectorTy() ? float_metric(type)
						 : (uint32_t)MPERF_METRIC_INT_OPS,
			each, extent);
	return each != 0;
}

namespace
{

// An x86 mask that is not a vector of i1: the sign bits of its elements, or the bits of an integer.
Extent x86_masked(BlockMix &into, Type *type, Value *mask, CallBase &call)
{
	Extent extent = extent_of(type);
	if (mask->getType()->isVectorTy() && !mask->getType()->getScalarType()->isIntegerTy(1)) {
		if (const auto *constant = dyn_cast<Constant>(mask);
			constant && constant->isAllOnesValue())
			return extent;
		extent.quantity = find_quantity(into, Unit::SIGN_LANES, mask, nullptr, call);
		return extent;
	}
	return masked(into, extent, mask, nullptr, call);
}

// Keeps the lanes whose bits are set in an integer. False: not known here.
bool x86_bits(CallBase &call, Extent &extent)
{
	for (unsigned i = call.arg_size(); i-- > 0;) {
		Value *bits = call.getArgOperand(i);
		if (!bits->getType()->isIntegerTy() || call.paramHasAttr(i, Attribute::ImmArg))
			continue;
		const auto *constant = dyn_cast<ConstantInt>(bits);
		if (!constant)
			return false;
		const uint64_t all = extent.issued < 64 ? (1ull << extent.issued) - 1 : ~0ull;
		extent.active = llvm::popcount(constant->getZExtValue() & all);
	}
	return true;
}

bool read_x86_access(BlockMix &into, StringRef name, CallBase &call)
{
	const bool load = name.contains(".maskload."), store = name.contains(".maskstore.");
	const bool gather = name.contains(".gather"), scatter = name.contains(".scatter");
	const unsigned n = call.arg_size();
	Value *mask = nullptr, *data = nullptr;
	if (load && n == 2)
		mask = call.getArgOperand(1);
	else if (store && n == 3) {
		mask = call.getArgOperand(1);
		data = call.getArgOperand(2);
	} else if (gather && n == 5) // source, base, index, mask, scale
		mask = call.getArgOperand(3);
	else if (scatter && n == 5) { // base, mask, index, data, scale
		mask = call.getArgOperand(1);
		data = call.getArgOperand(3);
	} else
		return false;
	Type *type = data ? data->getType() : call.getType();
	if (!type->isVectorTy())
		return false;
	add_access(into, data != nullptr, type->getScalarSizeInBits() / 8,
		x86_masked(into, type, mask, call), nullptr);
	return true;
}

} // namespace

bool read_x86_intrinsic(BlockMix &into, CallBase &call)
{
	StringRef name = call.getCalledFunction()->getName();
	if (!name.consume_front("llvm.x86."))
		return false;
	if (read_x86_access(into, name, call))
		return true;
	const Known known = known_intrinsic(call.getCalledFunction()->getName());
	if (known.kind != Kind::OPERATIONS)
		return false;
	Type *type = call.getType();
	Extent extent = extent_of(type);
	// of a scalar in a vector's first lane: add.ss, vfmadd.sd
	const bool is_first =
		type->isFPOrFPVectorTy() &&
		(name.contains(".ss") || name.contains(".sd") || name.contains(".sh"));
	if (is_first)
		extent.issued = extent.active = 1;
	const bool has_bits =
		name.contains("mask") || name.contains("rcp14") || name.contains("rsqrt14");
	if (has_bits && !x86_bits(call, extent))
		return false;
	add_operations(into, arithmetic_metric(type), known.each, extent);
	return true;
}

namespace
{

// The number of vectors that an access moves, and the type of one.
unsigned fields_of(CallBase &call, bool is_store, Type *&ret_type)
{
	if (!is_store) {
		auto *several = dyn_cast<StructType>(call.getType());
		ret_type = several ? several->getElementType(0) : call.getType();
		return several ? several->getNumElements() : 1;
	}
	unsigned n = 0;
	ret_type = call.getArgOperand(0)->getType();
	for (const Use &argument : call.args())
		n += argument->getType() == ret_type;
	return n;
}

// ld2, ld2lane, ld2r, and the same for stores; SVE's have a predicate.
bool read_aarch64_access(BlockMix &into, StringRef name, CallBase &call)
{
	const bool is_store = name.split('.').second.starts_with("st");
	Type *type;
	const unsigned fields = fields_of(call, is_store, type);
	if (!type->isVectorTy())
		return false;
	const StringRef operation = name.split('.').second.split('.').first;
	Extent extent = extent_of(type);
	if (operation.ends_with("lane") || operation.ends_with("r"))
		extent = Extent();
	extent = masked(into, extent, mask_operand(call), nullptr, call);
	for (unsigned i = 0; i < fields; i++)
		add_access(into, is_store, type->getScalarSizeInBits() / 8, extent, nullptr);
	return true;
}

} // namespace

bool read_aarch64_intrinsic(BlockMix &into, CallBase &call)
{
	StringRef name = call.getCalledFunction()->getName();
	if (!name.consume_front("llvm.aarch64."))
		return false;
	const Known known = known_intrinsic(call.getCalledFunction()->getName());
	if (known.kind == Kind::ACCESS)
		return read_aarch64_access(into, name, call);
	if (known.kind != Kind::OPERATIONS)
		return false;
	Type *type = call.getType();
	if (known.reduces) {
		// Its lanes are those of the vector, its operations of the result's type.
		for (const Use &argument : call.args())
			if (argument->getType()->isVectorTy())
				type = argument->getType();
	}
	if (type->getScalarType()->isIntegerTy(1))
		return true; // masks
	const uint32_t metric = arithmetic_metric(type);
	add_operations(into, metric, known.each,
		masked(into, extent_of(type), mask_operand(call), nullptr, call));
	if (known.reduces && name.starts_with("neon."))
		into.mix.add(metric, -1);
	return true;
}

} // namespace mperf
