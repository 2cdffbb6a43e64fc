// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code generator loads no more of an integer than is used of it. It sees a block at a time,
// so we do too. Here we predict it, by these of its rules:
//
//      parts       of an integer with one user that needs one aligned part of it, that is loaded.
//      masks       an integer all of whose users, also behind phis, mask it, truncate it or shift
//                  it to the left is masked where it is loaded, if one mask is as wide as all of them.
//      halves      sums and the like of 64 bits become ones of 32, if no more is used of the result:
//                  on targets where that costs no instruction.
//      amounts     an amount to shift by is a byte, on x86.
//
// Source: LLVM 16 and 19, TargetLowering.cpp, SimplifySetCC() and ShrinkDemandedOp(); DAGCombiner.cpp,
// reduceLoadWidth(); CodeGenPrepare.cpp, optimizeLoadExt(); X86ISelLowering.h, getScalarShiftAmountTy().

#include "lowered.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

namespace
{

// --- parts -------------------------------------------------------------------------------------

constexpr unsigned BYTE_BITS = 8;

// The bits of the narrowest aligned part that contains all of the mask's.
unsigned part_with(const APInt &mask)
{
	if (mask.getBitWidth() > 64)
		return 0;
	const unsigned first = llvm::countr_zero(mask.getZExtValue());
	const unsigned last = mask.getActiveBits() - 1;
	unsigned width = mask.getBitWidth();
	while (width > BYTE_BITS && width % 2 == 0 && first / (width / 2) == last / (width / 2))
		width /= 2;
	return width;
}

bool is_test_of_zero(const Value &value)
{
	const auto *test = dyn_cast<ICmpInst>(&value);
	const auto *zero = test ? dyn_cast<ConstantInt>(test->getOperand(1)) : nullptr;
	return zero && zero->isZero() && test->isEquality();
}

const Instruction *only_user(const Instruction &instruction)
{
	const auto *user =
		instruction.hasOneUse() ? cast<Instruction>(*instruction.user_begin()) : nullptr;
	return user && user->getParent() == instruction.getParent() ? user : nullptr;
}

const ConstantInt *right_number(const Instruction &instruction, bool is_kind)
{
	return is_kind ? dyn_cast<ConstantInt>(instruction.getOperand(1)) : nullptr;
}

// RISC-V's registers hold words and need no truncation, nor do AArch64's stores.
bool is_free(const Instruction &truncation)
{
	const Triple triple(truncation.getModule()->getTargetTriple());
	const Instruction *user = only_user(truncation);
	return (triple.isRISCV64() && truncation.getType()->isIntegerTy(32)) ||
	       (triple.isAArch64() && user && isa<StoreInst>(user));
}

// The number of low bits that a user needs, following chains of single users; 0: all.
unsigned low_bits(const Instruction *user)
{
	unsigned least = 0;
	const auto limit = [&](unsigned bits) { least = least ? std::min(least, bits) : bits; };
	for (; user; user = only_user(*user)) {
		const auto *mask = right_number(*user, user->getOpcode() == Instruction::And);
		if (mask && mask->getValue().isMask())
			limit(mask->getValue().getActiveBits());
		else if (!isa<TruncInst>(user))
			break;
		else if (!is_free(*user))
			limit(std::max(BYTE_BITS, user->getType()->getScalarSizeInBits()));
	}
	return least;
}

// How many bits the one user of an integer needs; 0: all.
unsigned needed_bits(const Instruction &user, unsigned width)
{
	const Instruction *next = only_user(user);
	const auto *mask = right_number(user, user.getOpcode() == Instruction::And);
	if (mask && !mask->isZero() && next && is_test_of_zero(*next))
		return part_with(mask->getValue());
	const auto *shift = right_number(user,
		user.getOpcode() == Instruction::LShr || user.getOpcode() == Instruction::AShr);
	if (!shift || shift->getValue().uge(width))
		return low_bits(&user);
	const unsigned by = shift->getZExtValue();
	const unsigned low = low_bits(next);
	const unsigned bits = low != 0 && low < width - by ? low : width - by;
	return by % bits == 0 ? bits : 0;
}

// --- masks -------------------------------------------------------------------------------------

// Mask of the bits that are used, as optimizeLoadExt() has it; 0: all.
unsigned masked_bits(const LoadInst &load, unsigned width)
{
	APInt needed(width, 0), widest(width, 0);
	SmallVector<const User *, 8> work(load.users());
	SmallPtrSet<const User *, 8> seen;
	while (!work.empty()) {
		const auto *user = cast<Instruction>(work.pop_back_val());
		if (!seen.insert(user).second)
			continue;
		if (isa<PHINode>(user)) {
			append_range(work, user->users());
			continue;
		}
		const auto *number = right_number(*user, user->isBinaryOp());
		if (user->getOpcode() == Instruction::And && number) {
			needed |= number->getValue();
			if (number->getValue().ugt(widest))
				widest = number->getValue();
		} else if (user->getOpcode() == Instruction::Shl && number) {
			needed.setLowBits(width - number->getLimitedValue(width - 1));
		} else if (isa<TruncInst>(user)) {
			needed.setLowBits(user->getType()->getIntegerBitWidth());
		} else {
			return 0;
		}
	}
	return needed.isMask() && needed == widest ? needed.getActiveBits() : 0;
}

// --- halves ------------------------------------------------------------------------------------

constexpr unsigned WORD_BITS = 64;

bool has_free_halves(const Instruction &instruction)
{
	const Triple triple(instruction.getModule()->getTargetTriple());
	return triple.getArch() == Triple::x86_64 || triple.isAArch64();
}

bool is_shrunk(const Instruction &instruction)
{
	switch (instruction.getOpcode()) {
	case Instruction::Add:
	case Instruction::Sub:
	case Instruction::Mul:
	case Instruction::And:
	case Instruction::Or:
	case Instruction::Xor:
		return true;
	default:
		return false;
	}
}

// The only user of a value, and the later users of that, need no bits above these.
unsigned bits_below(const Instruction *user, unsigned width)
{
	if (!user)
		return width;
	if (isa<TruncInst>(user))
		return user->getType()->getScalarSizeInBits();
	const auto *number = right_number(*user, user->isBinaryOp());
	if (user->getOpcode() == Instruction::And && number &&
		number->getValue().getActiveBits() < width)
		return number->getValue().getActiveBits();
	if (is_shrunk(*user))
		return bits_below(only_user(*user), width);
	if (!number || number->getValue().uge(width))
		return width;
	const unsigned by = number->getZExtValue(), above = bits_below(only_user(*user), width);
	if (user->getOpcode() == Instruction::LShr)
		return std::min(width, above + by);
	if (user->getOpcode() == Instruction::Shl)
		return above > by ? above - by : 0;
	return width;
}

bool is_half(const LoadInst &load, unsigned width)
{
	const Instruction *user = only_user(load);
	return width == WORD_BITS && user && is_shrunk(*user) && has_free_halves(load) &&
	       bits_below(user, width) <= WORD_BITS / 2;
}

// --- amounts -----------------------------------------------------------------------------------

constexpr unsigned AMOUNT_DEPTH_MAX = 4; // from the load; a rotation has 2

// Is the value used only as a shift amount, in its own block?
bool is_amount(const Instruction &value, unsigned depth)
{
	return depth > 0 && !value.use_empty() && all_of(value.uses(), [&](const Use &use) {
		const auto *user = cast<Instruction>(use.getUser());
		if (user->getParent() != value.getParent() || !user->getType()->isIntegerTy())
			return false;
		if (user->isShift())
			return use.getOperandNo() == 1;
		const auto *call = dyn_cast<IntrinsicInst>(user);
		if (call && (call->getIntrinsicID() == Intrinsic::fshl ||
				    call->getIntrinsicID() == Intrinsic::fshr))
			return use.getOperandNo() == 2;
		const bool is_plain =
			isa<ZExtInst>(user) || isa<TruncInst>(user) ||
			(is_shrunk(*user) && any_of(user->operands(), [](const Value *other) {
				return isa<ConstantInt>(other);
			}));
		return is_plain && is_amount(*user, depth - 1);
	});
}

} // namespace

std::optional<uint64_t> narrowed_bytes(const LoadInst &load)
{
	if (!load.isSimple() || !load.getType()->isIntegerTy() || load.getFunction()->hasOptNone())
		return std::nullopt;
	const unsigned width = load.getType()->getIntegerBitWidth();
	const auto is_part = [&](unsigned bits) {
		return bits >= BYTE_BITS && bits < width && isPowerOf2_32(bits);
	};
	const Instruction *user = only_user(load);
	unsigned bits = user ? needed_bits(*user, width) : 0;
	if (!is_part(bits))
		bits = masked_bits(load, width);
	if (!is_part(bits) && is_half(load, width))
		bits = WORD_BITS / 2;
	if (!is_part(bits) && Triple(load.getModule()->getTargetTriple()).isX86() &&
		is_amount(load, AMOUNT_DEPTH_MAX))
		bits = BYTE_BITS;
	return is_part(bits) ? std::optional<uint64_t>(bits / BYTE_BITS) : std::nullopt;
}

} // namespace mperf
