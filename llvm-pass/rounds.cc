// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM does not say how many iterations of the source one iteration of a transformed loop makes. But
// the vectoriser and the unroller leave traces:
//
//      tested first    for (...) without optimisation: the header tests, and runs once more than
//                      the body. We count the body.
//      vectorised      The exit compares an induction variable whose step is the number of
//                      iterations, a constant, or a constant times vscale.
//      unrolled        The source's increment was copied with its line and column. The copies, of
//                      which constants are folded, add one, two, ... n times its step; each begins
//                      the next iteration, also where the loop is left in between.
//      the same        Where no copy is left, the unroller's own counter may be: it starts at 0,
//                      steps by n, ends at a multiple of n that an `and` made, and has the
//                      location of the jump, where an increment of the source has its own.
//
// Increments that one macro repeats have one location, and are taken for copies.
//
// Source: LLVM 16 and 19, LoopVectorize.cpp, createVectorLoopSkeleton() (16), VPlanTransforms.cpp,
// addCanonicalIVRecipes() (19); LoopUnroll.cpp, UnrollLoop(); LoopUnrollRuntime.cpp,
// UnrollRuntimeLoopRemainder(), "niter".

#include "rounds.h"
#include "scopes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"

#include <map>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace mperf
{

namespace
{

// More copies than this are a coincidence: the unroller's size limits are much lower.
constexpr uint64_t COPIES_MAX = 512;

// Larger steps are not increments of a loop in the source.
constexpr unsigned STEP_BITS = 32;

// Constant that an instruction adds to a phi of its loop's header; 0: anything else.
int64_t constant_step(const Instruction &instruction, const PHINode &phi)
{
	const auto *address = dyn_cast<GetElementPtrInst>(&instruction);
	const bool adds = instruction.getOpcode() == Instruction::Add ||
			  instruction.getOpcode() == Instruction::Or;
	if (!(adds || (address && address->getNumIndices() == 1)) ||
		instruction.getOperand(0) != &phi)
		return 0;
	const auto *by = dyn_cast<ConstantInt>(instruction.getOperand(1));
	if (!by || !by->getValue().isSignedIntN(STEP_BITS))
		return 0;
	if (adds)
		return by->getSExtValue();
	const TypeSize bytes = instruction.getModule()->getDataLayout().getTypeAllocSize(
		address->getSourceElementType());
	if (bytes.isScalable() || !isUIntN(STEP_BITS - 1, bytes.getFixedValue()))
		return 0;
	return by->getSExtValue() * (int64_t)bytes.getFixedValue();
}

// The phi of the header that is compared at the exit, after its step; or null.
const PHINode *compared_phi(const Loop &loop, const Instruction *&ret_next, const Value *&ret_bound)
{
	const BasicBlock *latch = loop.getLoopLatch();
	const auto *jump = latch ? dyn_cast<BranchInst>(latch->getTerminator()) : nullptr;
	const auto *compare =
		jump && jump->isConditional() ? dyn_cast<ICmpInst>(jump->getCondition()) : nullptr;
	if (!compare)
		return nullptr;
	for (const PHINode &phi : loop.getHeader()->phis()) {
		const auto *next = dyn_cast<Instruction>(phi.getIncomingValueForBlock(latch));
		if (!next || next->getOpcode() != Instruction::Add || next->getOperand(0) != &phi ||
			!is_contained(compare->operands(), next))
			continue;
		ret_next = next;
		ret_bound = compare->getOperand(compare->getOperand(0) == next);
		return &phi;
	}
	return nullptr;
}

// vscale times a constant: the constant; 0: anything else.
int64_t times_vscale(const Value &value)
{
	uint64_t by = 0;
	const auto scale = m_Intrinsic<Intrinsic::vscale>();
	if (match(&value, scale))
		return 1;
	if (match(&value, m_Mul(scale, m_ConstantInt(by))) && by < UINT32_MAX)
		return by;
	if (match(&value, m_Shl(scale, m_ConstantInt(by))) && by < 32)
		return (int64_t)1 << by;
	return 0;
}

Round vectorised_round(const Loop &loop)
{
	const Instruction *next = nullptr;
	const Value *bound = nullptr;
	Round round = {loop.getHeader(), 1, false};
	if (!compared_phi(loop, next, bound))
		return round;
	const Value *step = next->getOperand(1);
	if (const auto *constant = dyn_cast<ConstantInt>(step)) {
		if (constant->getValue().isStrictlyPositive() && constant->getValue().isIntN(32))
			round.n = constant->getSExtValue();
	} else if (const int64_t n = times_vscale(*step)) {
		round.n = n;
		round.scalable = true;
	}
	return round;
}

using Copies = std::map<int64_t, const BasicBlock *>; // of an increment, by the amount added

// The copies of the increment of a phi, if they are a series.
Copies copies_of(const Loop &loop, const PHINode &phi)
{
	Copies copies;
	const auto *last = dyn_cast<Instruction>(phi.getIncomingValueForBlock(loop.getLoopLatch()));
	const int64_t whole = last ? constant_step(*last, phi) : 0;
	if (whole == 0 || !last->getDebugLoc() || last->getDebugLoc().getLine() == 0)
		return {};
	for (const User *user : phi.users()) {
		const auto *copy = dyn_cast<Instruction>(user);
		if (!copy || !loop.contains(copy) || copy->getDebugLoc() != last->getDebugLoc() ||
			isa<PHINode>(copy))
			continue;
		if (const int64_t step = constant_step(*copy, phi))
			copies[whole < 0 ? -step : step] = copy->getParent();
	}
	const int64_t n = copies.size(), each = copies.empty() ? 0 : copies.begin()->first;
	if (each <= 0 || copies.rbegin()->first != (whole < 0 ? -whole : whole) ||
		copies.rbegin()->first != n * each || (uint64_t)n > COPIES_MAX)
		return {};
	int64_t k = 0;
	return all_of(copies, [&](const auto &copy) { return copy.first == ++k * each; })
		       ? copies
		       : Copies();
}

// The step of the unroller's own counter; 1: there is none.
int64_t own_counter(const Loop &loop)
{
	const Instruction *next = nullptr;
	const Value *bound = nullptr;
	const PHINode *phi = compared_phi(loop, next, bound);
	const auto *step = phi ? dyn_cast<ConstantInt>(next->getOperand(1)) : nullptr;
	uint64_t mask = 0;
	if (!step || !next->getDebugLoc() ||
		next->getDebugLoc() != loop.getLoopLatch()->getTerminator()->getDebugLoc() ||
		!step->getValue().isPowerOf2() || step->getValue().ugt(COPIES_MAX) ||
		!match(phi->getIncomingValueForBlock(loop.getLoopPreheader()), m_Zero()) ||
		!match(bound, m_And(m_Value(), m_ConstantInt(mask))))
		return 1;
	// Its high bits may be known to be 0.
	const uint64_t n = step->getZExtValue();
	return (mask & (2 * n - 1)) == n ? n : 1;
}

// The block that runs after a loop's header in each iteration, if the header only tests; otherwise
// the header.
const BasicBlock *tested_body(const Loop &loop)
{
	BasicBlock *header = loop.getHeader();
	BasicBlock *latch = loop.getLoopLatch();
	const auto *test = dyn_cast<BranchInst>(header->getTerminator());
	if (!latch || latch == header || !test || !test->isConditional() ||
		loop.isLoopExiting(latch))
		return header;
	const bool stays = loop.contains(test->getSuccessor(0));
	const BasicBlock *body = test->getSuccessor(stays ? 0 : 1);
	if (stays == loop.contains(test->getSuccessor(1)) || !body->getSinglePredecessor())
		return header;
	return body;
}

// The vectoriser's loop, unrolled so that it no longer exits at its end: each copy of the step of
// its index, which starts at 0, represents that many iterations of the source.
SmallVector<Round, 2> vectorised_rounds(const Loop &loop)
{
	const Instruction *next = nullptr;
	const Value *bound = nullptr;
	if (compared_phi(loop, next, bound))
		return {vectorised_round(loop)};
	for (const PHINode &phi : loop.getHeader()->phis()) {
		const Copies copies =
			phi.getType()->isIntegerTy() ? copies_of(loop, phi) : Copies();
		if (copies.size() < 2 ||
			!match(phi.getIncomingValueForBlock(loop.getLoopPreheader()), m_Zero()))
			continue;
		SmallVector<Round, 2> rounds;
		for (const auto &[step, block] : copies)
			rounds.push_back({block, copies.begin()->first, false});
		return rounds;
	}
	return {vectorised_round(loop)};
}

SmallVector<Round, 2> unrolled_rounds(const Loop &loop)
{
	SmallVector<Round, 2> rounds = {{tested_body(loop), 1, false}};
	for (const PHINode &phi : loop.getHeader()->phis()) {
		const Copies copies = copies_of(loop, phi);
		if (copies.size() < 2)
			continue;
		for (const auto &[step, block] : copies) {
			if (step != copies.rbegin()->first)
				rounds.push_back({block, 1, false});
		}
		return rounds;
	}
	rounds.front().n = own_counter(loop);
	return rounds;
}

} // namespace

SmallVector<Round, 2> find_rounds(const Loop &loop)
{
	if (!loop.getLoopLatch() || !loop.getLoopPreheader())
		return {{loop.getHeader(), 1, false}};
	if (is_vectorised(loop))
		return vectorised_rounds(loop);
	return unrolled_rounds(loop);
}

} // namespace mperf
