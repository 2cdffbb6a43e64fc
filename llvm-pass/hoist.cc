// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop whose trip count is known when it begins is counted by adding that number in its
// preheader. If the loop around it runs the preheader once a round, and is itself computable, the
// sum of all those additions is one too: a product where the trip count is the same in each round,
// a closed form where it grows evenly (triangular loops):
//
//      sum of (a + b·i) for i = 0 … n-1   =   a·n + b·n(n-1)/2
//
// It ends inside of the outermost loop of a nest: what runs long is to be seen while it runs. And
// it is right only if the rounds then take place: not if a call inside may throw, jump or never
// return.

#include "hoist.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace mperf
{

namespace
{

// As dear as an addition in each of few rounds; a division is not.
constexpr unsigned EXPANSION_BUDGET = 8;
// Deeper expressions are left alone: they take long to work out, and are dear to compute.
constexpr unsigned EXPRESSION_MAX = 24;

// n(n-1)/2, exact, in 64 bits
const SCEV *triangle(ScalarEvolution &evolution, const SCEV *n)
{
	Type *narrow = n->getType();
	Type *wide = IntegerType::get(narrow->getContext(), 128);
	const SCEV *less = evolution.getMinusSCEV(n, evolution.getOne(narrow));
	const SCEV *product = evolution.getMulExpr(
		evolution.getZeroExtendExpr(n, wide), evolution.getZeroExtendExpr(less, wide));
	const SCEV *half = evolution.getUDivExpr(product, evolution.getConstant(wide, 2));
	return evolution.getTruncateExpr(half, narrow);
}

} // namespace

bool Hoister::passes_control(const Loop &loop)
{
	const auto known = passing.find(&loop);
	if (known != passing.end())
		return known->second;
	bool passes = true;
	for (const BasicBlock *block : loop.blocks()) {
		for (const Instruction &instruction : *block)
			passes = passes &&
				 (instruction.isTerminator()
						 ? !isa<InvokeInst>(instruction)
						 : isGuaranteedToTransferExecutionToSuccessor(
							   &instruction));
		if (!passes)
			break;
	}
	passing[&loop] = passes;
	return passes;
}

// How often a block runs each time that the loop around it is entered; null: not known.
const SCEV *Hoister::runs_of(const BasicBlock *place, const Loop &loop)
{
	const SCEV *back = evolution.getBackedgeTakenCount(&loop);
	const BasicBlock *latch = loop.getLoopLatch();
	if (isa<SCEVCouldNotCompute>(back) || !latch || !dominators.dominates(place, latch))
		return nullptr;
	if (evolution.getTypeSizeInBits(back->getType()) > 64)
		return nullptr;
	Type *narrow = IntegerType::get(back->getType()->getContext(), 64);
	back = evolution.getNoopOrZeroExtend(back, narrow);

	SmallVector<BasicBlock *, 4> exiting;
	loop.getExitingBlocks(exiting);
	bool before_all = true, after_all = true;
	for (const BasicBlock *block : exiting) {
		before_all = before_all && dominators.dominates(place, block);
		after_all = after_all && block != place && dominators.dominates(block, place);
	}
	if (before_all)
		return evolution.getAddExpr(back, evolution.getOne(narrow));
	return after_all ? back : nullptr;
}

// The sum of an amount over all rounds of a loop, of which there are `runs`; null: no closed form.
const SCEV *Hoister::sum_over(const SCEV *amount, const Loop &loop, const SCEV *runs)
{
	if (evolution.isLoopInvariant(amount, &loop))
		return evolution.getMulExpr(amount, runs);
	if (const auto *steps = dyn_cast<SCEVAddRecExpr>(amount)) {
		if (steps->getLoop() != &loop || !steps->isAffine())
			return nullptr;
		const SCEV *step = steps->getStepRecurrence(evolution);
		return evolution.getAddExpr(evolution.getMulExpr(steps->getStart(), runs),
			evolution.getMulExpr(step, triangle(evolution, runs)));
	}
	if (const auto *parts = dyn_cast<SCEVAddExpr>(amount)) {
		const SCEV *sum = evolution.getZero(amount->getType());
		for (const SCEV *part : parts->operands()) {
			const SCEV *part_sum = sum_over(part, loop, runs);
			if (!part_sum)
				return nullptr;
			sum = evolution.getAddExpr(sum, part_sum);
		}
		return sum;
	}
	return nullptr;
}

bool Hoister::can_expand(const SCEV *amount, const BasicBlock &place, Loop &loop)
{
	const Instruction *end = place.getTerminator();
	return amount->getExpressionSize() <= EXPRESSION_MAX &&
	       expander.isSafeToExpandAt(amount, end) &&
	       !expander.isHighCostExpansion({amount}, &loop, EXPANSION_BUDGET, &target, end);
}

std::optional<Hoist> Hoister::plan(Loop &loop)
{
	BasicBlock *place = loop.getLoopPreheader();
	const bool is_nest = !loop.getParentLoop() && !loop.isInnermost();
	if (is_nest || !place || !passes_control(loop))
		return {};
	const SCEV *back = evolution.getBackedgeTakenCount(&loop);
	if (isa<SCEVCouldNotCompute>(back) || evolution.getTypeSizeInBits(back->getType()) > 64)
		return {};
	Type *narrow = IntegerType::get(back->getType()->getContext(), 64);
	back = evolution.getNoopOrZeroExtend(back, narrow);
	const SCEV *amount = evolution.getAddExpr(back, evolution.getOne(narrow));
	if (!can_expand(amount, *place, loop))
		return {};
	Hoist hoist = {&loop, place, amount, {}};
	if (const auto *number = dyn_cast<SCEVConstant>(amount))
		hoist.constant = number->getAPInt().getZExtValue();

	for (Loop *around = loop.getParentLoop(); around && around->getParentLoop();
		around = around->getParentLoop()) {
		BasicBlock *outer = around->getLoopPreheader();
		if (!outer || !passes_control(*around))
			break;
		const SCEV *runs = runs_of(hoist.place, *around);
		const SCEV *sum = runs ? sum_over(hoist.amount, *around, runs) : nullptr;
		if (!sum || !can_expand(sum, *outer, *around))
			break;
		hoist.place = outer;
		hoist.amount = sum;
	}
	return hoist;
}

Value *Hoister::expand(const Hoist &hoist)
{
	return expander.expandCodeFor(
		hoist.amount, hoist.amount->getType(), hoist.place->getTerminator());
}

} // namespace mperf
