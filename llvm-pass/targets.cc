// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics that programs call by name, or that the C headers of a target make. They are many and
// regular, so names are read as the targets compose them, rather than listed:
//
//      llvm.riscv.v<operation>[.mask].<types>      operands end with [mask,] [rounding,] vl [,
//      policy] llvm.x86.avx2.maskload.d.256 and the like   a mask is the sign bits of a vector, or
//      i1s
//
// Source: LLVM 19, include/llvm/IR/IntrinsicsRISCV.td and IntrinsicsX86.td.

#include "mix.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mperf
{

namespace
{

// The operand that is the vector length: the last that need not be a constant.
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

// The vector that the operation is about: what is stored, or else what comes out, or goes in.
Type *data_type(CallBase &call, bool is_store)
{
	Type *type = is_store ? call.getArgOperand(0)->getType() : call.getType();
	if (auto *several = dyn_cast<StructType>(type))
		type = several->getElementType(0);
	for (unsigned i = 0; !type->isVectorTy() && i < call.arg_size(); i++)
		type = call.getArgOperand(i)->getType();
	return type;
}

// vle32, vlse, vluxei, vlseg2e32: `fields` is how many vectors.
bool is_riscv_access(StringRef operation, bool &ret_is_store, unsigned &ret_fields)
{
	const bool load = operation.starts_with("vl"), store = operation.starts_with("vs");
	if (!load && !store)
		return false;
	StringRef rest = operation.drop_front(2);
	const bool indexed = rest.consume_front("ux") || rest.consume_front("ox");
	const bool strided = !indexed && rest.consume_front("s");
	unsigned fields = 1;
	if (rest.consume_front("seg") || (strided && rest.consume_front("eg")))
		rest.consumeInteger(10, fields);
	rest.consume_front("ff");
	if (!(rest == "m" || rest.starts_with("e")) || rest.starts_with("ext"))
		return false;
	ret_is_store = store;
	ret_fields = fields;
	return true;
}

// Operations that one lane of an arithmetic instruction makes; 0: moves, masks, conversions.
unsigned riscv_operations(StringRef operation)
{
	StringRef name = operation;
	if (!name.consume_front("v"))
		return 0;
	name.consume_front("f");
	name.consume_front("w"); // widening
	name.consume_front("n"); // negated
	for (const char *fused :
		{"macc", "msac", "madd", "msub", "nmacc", "nmsac", "nmadd", "nmsub"})
		if (name.starts_with(fused))
			return 2;
	for (const char *single : {"add", "sub", "rsub", "mul", "div", "rem", "min", "max", "sqrt",
		     "redusum", "redosum", "redsum", "redmin", "redmax", "redand", "redor",
		     "redxor", "wredusum", "wredosum", "wredsum", "and", "or", "xor", "sll", "srl",
		     "sra", "sadd", "ssub", "aadd", "asub", "smul", "ssrl", "ssra"})
		if (name.starts_with(single))
			return 1;
	return 0;
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
		if (bits < 8) // vlm and vsm: a bit for each element; bytes are begun ones
			into.mix.add(is_store ? MPERF_METRIC_STORES : MPERF_METRIC_LOADS, 1);
		else
			for (unsigned i = 0; i < fields; i++)
				add_access(into, is_store, bits / 8, extent, nullptr);
		return true;
	}
	const unsigned each = riscv_operations(operation);
	if (each != 0 && !type->getScalarType()->isIntegerTy(1))
		add_operations(into,
			type->isFPOrFPVectorTy() ? float_metric(type)
						 : (uint32_t)MPERF_METRIC_INT_OPS,
			each, extent);
	return each != 0;
}

namespace
{

// A mask of x86 that is no vector of i1: the sign bits of its elements, or the bits of an integer.
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
	const Type *type = call.getType();
	if (!type->isFPOrFPVectorTy())
		return false;
	const StringRef operation = name.split('.').second;
	const unsigned each = StringSwitch<unsigned>(operation.split('.').first)
				      .StartsWith("vfm", 2)
				      .StartsWith("vfnm", 2)
				      .Cases("add", "sub", "mul", "div", 1)
				      .Cases("min", "max", "sqrt", "rcp", "rsqrt", 1)
				      .Cases("rcp14", "rsqrt14", "hadd", "hsub", "addsub", 1)
				      .Default(0);
	if (each == 0)
		return false;
	Extent extent = extent_of(type);
	// of a scalar in a vector's first lane: add.ss, vfmadd.sd
	if (name.contains(".ss") || name.contains(".sd") || name.contains(".sh"))
		extent.issued = extent.active = 1;
	add_operations(into, float_metric(type), each, extent);
	return true;
}

} // namespace mperf
