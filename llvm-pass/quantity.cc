// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for quantities known only at run time. A mask of fixed length becomes an integer whose bits
// are counted; one of scalable length is counted by the target's own instruction, if it has one
// (RVV's vcpop.m, SVE's cntp): summing a widened mask lowers badly.

#include "quantity.h"

#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsRISCV.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

// The mask with the lanes from `length` on cleared.
static Value *shortened(IRBuilder<> &builder, Value *mask, Value *length)
{
	Value *wide = builder.CreateZExtOrTrunc(length, builder.getInt64Ty());
	Value *first = builder.CreateIntrinsic(Intrinsic::get_active_lane_mask,
		{mask->getType(), builder.getInt64Ty()}, {builder.getInt64(0), wide});
	return builder.CreateAnd(mask, first);
}

static Value *count_scalable(IRBuilder<> &builder, Value *mask, Value *length)
{
	const Triple triple(builder.GetInsertBlock()->getModule()->getTargetTriple());
	if (triple.isRISCV64()) {
		Value *all = length ? builder.CreateZExtOrTrunc(length, builder.getInt64Ty())
				    : builder.getInt64(-1);
		return builder.CreateIntrinsic(Intrinsic::riscv_vcpop,
			{mask->getType(), builder.getInt64Ty()}, {mask, all});
	}
	if (length)
		mask = shortened(builder, mask, length);
	if (triple.isAArch64())
		return builder.CreateIntrinsic(
			Intrinsic::aarch64_sve_cntp, {mask->getType()}, {mask, mask});
	Type *wide = VectorType::get(builder.getInt64Ty(), cast<VectorType>(mask->getType()));
	return builder.CreateAddReduce(builder.CreateZExt(mask, wide));
}

static Value *count_lanes(IRBuilder<> &builder, Value *mask, Value *length)
{
	const auto *type = dyn_cast<FixedVectorType>(mask->getType());
	if (!type)
		return count_scalable(builder, mask, length);
	if (length)
		mask = shortened(builder, mask, length);
	Value *bits = builder.CreateBitCast(mask, builder.getIntNTy(type->getNumElements()));
	if (type->getNumElements() < 32) // widen to a register, to count in one instruction
		bits = builder.CreateZExt(bits, builder.getInt32Ty());
	return builder.CreateZExtOrTrunc(
		builder.CreateUnaryIntrinsic(Intrinsic::ctpop, bits), builder.getInt64Ty());
}

static Value *sign_mask(IRBuilder<> &builder, Value *vector)
{
	auto *type = cast<FixedVectorType>(vector->getType());
	const unsigned bits = type->getScalarSizeInBits();
	auto *integers = FixedVectorType::get(builder.getIntNTy(bits), type->getNumElements());
	return builder.CreateICmpSLT(
		builder.CreateBitCast(vector, integers), Constant::getNullValue(integers));
}

Value *compute_quantity(IRBuilder<> &builder, const Quantity &quantity)
{
	Type *wide = builder.getInt64Ty();
	Value *value = quantity.value;
	switch (quantity.unit) {
	case Unit::VALUE:
		if (value->getType()->isStructTy()) // a compare-and-exchange: did it succeed?
			value = builder.CreateExtractValue(value, 1);
		return builder.CreateZExtOrTrunc(value, wide);
	case Unit::WORDS:
		value = builder.CreateZExtOrTrunc(value, wide);
		return builder.CreateLShr(builder.CreateAdd(value, builder.getInt64(7)), 3);
	case Unit::SIGN_LANES:
		return count_lanes(builder, sign_mask(builder, value), nullptr);
	case Unit::LANES:
		return count_lanes(builder, value, quantity.length);
	}
	llvm_unreachable("all units are above");
}

} // namespace mperf
