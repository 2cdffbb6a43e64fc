// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To count a loop whose trip count is known when it begins, we add that number in its preheader. If
// the loop around it runs the preheader once per iteration, and its own trip count is computable,
// the sum of all those additions is computable too: a product if the trip count is loop-invariant,
// a closed form if it grows linearly (triangular loops):
//
//      sum of (a + b·i) for i = 0 … n-1   =   a·n + b·n(n-1)/2
//
// In a loop with step above 1, as from unrolling and vectorising, the backedge-taken count is
// (distance - step) / step. The trip count then is distance / step, and the loop compares with the
// distance.
//
// A loop whose trip count is not computable may still have an induction variable with constant
// step: its value at the exit gives the number of iterations, without a counter in the loop.
//
// Hoisting ends inside the outermost loop of a nest: long work must be visible while it runs. And
// it is correct only if all iterations run: not if a call inside may throw, jump or never return.

#include "hoist.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace mperf
{

namespace
{

// About the cost of a few per-iteration increments; a division costs more. With 2, half_open of
// bench-instrument takes 25 points more instructions and its kernels 1.1; 64 saves no further
// instructions.
constexpr unsigned EXPANSION_BUDGET = 8;
// Each of them computes the distance, which makes the code longer.
constexpr size_t DISTANCE_EXITS_MAX = 4;
// Deeper expressions are not hoisted: they take long to analyse and to compute.
constexpr unsigned EXPRESSION_MAX = 24;

// With steps up to this, 64 bits overflow only after 2^56 iterations, which take two years.
constexpr uint64_t STEP_MAX = 256;

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

// Is the block, which is in no inner loop, on a cycle within the loop that avoids its header? Such
// a cycle is irreducible and not found as a loop, so the block may run many times in an iteration.
bool Hoister::repeats_within(const BasicBlock &block, const Loop &loop)
{
	if (&block == loop.getHeader())
		return false;
	SmallPtrSet<const BasicBlock *, 16> seen = {loop.getHeader()};
	SmallVector<const BasicBlock *, 16> open = {&block};
	while (!open.empty()) {
		for (const BasicBlock *next : successors(open.pop_back_val())) {
			if (next == &block)
				return true;
			if (loop.contains(next) && seen.insert(next).second)
				open.push_back(next);
		}
	}
	return false;
}

// How often a block, which is in no inner loop, runs per entry into the enclosing loop; null: unknown.
const SCEV *Hoister::runs_of(const BasicBlock *insertion_point, const Loop &loop)
{
	const SCEV *backedges_taken = evolution.getBackedgeTakenCount(&loop);
	const BasicBlock *latch = loop.getLoopLatch();
	// A block of an inner loop may run many times in an iteration.
	assert(loop.contains(insertion_point) &&
		none_of(loop, [&](const Loop *inner) { return inner->contains(insertion_point); }));
	if (isa<SCEVCouldNotCompute>(backedges_taken) || !latch ||
		!dominators.dominates(insertion_point, latch) ||
		repeats_within(*insertion_point, loop))
		return nullptr;
	if (evolution.getTypeSizeInBits(backedges_taken->getType()) > 64)
		return nullptr;
	Type *narrow = IntegerType::get(backedges_taken->getType()->getContext(), 64);
	backedges_taken = evolution.getNoopOrZeroExtend(backedges_taken, narrow);

	SmallVector<BasicBlock *, 4> exiting;
	loop.getExitingBlocks(exiting);
	bool before_all = true, after_all = true;
	for (const BasicBlock *block : exiting) {
		before_all = before_all && dominators.dominates(insertion_point, block);
		after_all = after_all && block != insertion_point &&
			    dominators.dominates(block, insertion_point);
	}
	if (before_all)
		return evolution.getAddExpr(backedges_taken, evolution.getOne(narrow));
	return after_all ? backedges_taken : nullptr;
}

// The sum of an amount over all iterations of a loop, `runs` in number; null: no closed form.
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

bool Hoister::can_expand(const SCEV *amount, const BasicBlock &insertion_point, Loop &loop)
{
	const Instruction *end = insertion_point.getTerminator();
	return amount->getExpressionSize() <= EXPRESSION_MAX &&
	       expander.isSafeToExpandAt(amount, end) &&
	       !expander.isHighCostExpansion({amount}, &loop, EXPANSION_BUDGET, &target, end);
}

// A step that can be divided out: the value does not wrap around to its start, except with step one
// through all of 64 bits.
static std::optional<int64_t> step_of(const SCEVAddRecExpr &walk, ScalarEvolution &evolution)
{
	const auto *step = dyn_cast<SCEVConstant>(walk.getStepRecurrence(evolution));
	const unsigned bits = evolution.getTypeSizeInBits(walk.getType());
	if (!walk.isAffine() || !step || bits > 64)
		return {};
	const int64_t number = step->getAPInt().getSExtValue();
	const bool by_one = number == 1 || number == -1;
	if (!isPowerOf2_64(number < 0 ? -number : number) ||
		!(walk.hasNoSelfWrap() || (by_one && bits == 64)))
		return {};
	return number;
}

// Induction variables with constant step give the number of iterations in the exits; one from 0
// with step 1 is that number.
std::optional<Hoist> Hoister::plan_in_exits(Loop &loop)
{
	SmallVector<BasicBlock *, 4> exits;
	loop.getUniqueExitBlocks(exits);
	if (!loop.getLoopLatch() || !loop.hasDedicatedExits() || exits.empty() ||
		exits.size() > DISTANCE_EXITS_MAX || any_of(exits, [](const BasicBlock *exit) {
			return exit->isEHPad() || exit->getFirstInsertionPt() == exit->end();
		}))
		return {};
	std::optional<Hoist> best;
	unsigned best_price = ~0u;
	for (PHINode &phi : loop.getHeader()->phis()) {
		if (!evolution.isSCEVable(phi.getType()))
			continue;
		const auto *walk = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&phi));
		const auto step =
			walk && walk->getLoop() == &loop ? step_of(*walk, evolution) : std::nullopt;
		if (!step)
			continue;
		const unsigned price = (*step != 1) + (isa<SCEVConstant>(walk->getStart()) ? 0 : 2);
		if (price < best_price) {
			best = Hoist{&loop, loop.getLoopPreheader(), nullptr, {}};
			best->induction = &phi;
			best->step = *step;
			best_price = price;
		}
	}
	return best;
}

// The induction variable's value when the loop exits to that block. Whether it includes this
// iteration's step depends on the edge, and `more` completes it: using the value that is live there
// anyway costs nothing.
Value *Hoister::last_of(const Hoist &hoist, BasicBlock &exit, Value *&more)
{
	PHINode *induction = hoist.induction;
	Type *wide = IntegerType::get(exit.getContext(), 64);
	auto *next = dyn_cast<Instruction>(
		induction->getIncomingValueForBlock(hoist.loop->getLoopLatch()));
	// A narrow one may wrap around with its last step.
	const bool is_wide = induction->getType()->isPointerTy() || induction->getType() == wide;
	const auto has_stepped = [&](const BasicBlock *from) {
		return next && is_wide && dominators.dominates(next, from->getTerminator());
	};
	const unsigned n = pred_size(&exit), n_stepped = count_if(predecessors(&exit), has_stepped);
	more = ConstantInt::get(wide, n_stepped == 0);
	if (n_stepped == 0 || n_stepped == n)
		return n_stepped ? cast<Value>(next) : induction;
	auto *last = PHINode::Create(induction->getType(), n, "mperf.last");
	auto *rest = PHINode::Create(wide, n, "mperf.rest");
	last->insertBefore(&exit.front());
	rest->insertBefore(&exit.front());
	for (BasicBlock *from : predecessors(&exit)) {
		const bool stepped = has_stepped(from);
		last->addIncoming(stepped ? cast<Value>(next) : induction, from);
		rest->addIncoming(ConstantInt::get(wide, !stepped), from);
	}
	more = rest;
	return last;
}

Value *Hoister::expand_in_exit(const Hoist &hoist, IRBuilder<> &builder)
{
	PHINode *induction = hoist.induction;
	Type *wide = builder.getInt64Ty();
	Type *narrow = induction->getType()->isPointerTy() ? wide : induction->getType();
	const auto number = [&](Value *value) {
		return value->getType()->isPointerTy() ? builder.CreatePtrToInt(value, narrow)
						       : value;
	};
	Value *more;
	Value *last = last_of(hoist, *builder.GetInsertBlock(), more);
	Value *from = number(induction->getIncomingValueForBlock(hoist.loop->getLoopPreheader()));
	// Freeze it, so that the loop's own induction variable is used; otherwise the loop would
	// get a second one that is easier to count with. If it starts at a non-constant value, the
	// loop may have such a second one anyway.
	Value *to = number(last);
	if (isa<Constant>(from))
		to = builder.CreateFreeze(to);
	Value *distance =
		hoist.step < 0 ? builder.CreateSub(from, to) : builder.CreateSub(to, from);
	const uint64_t each = hoist.step < 0 ? -hoist.step : hoist.step;
	if (each > 1)
		distance = builder.CreateLShr(distance, ConstantInt::get(narrow, Log2_64(each)));
	return builder.CreateAdd(builder.CreateZExt(distance, wide), more);
}

// Is the distance certainly at least one step? If it were shorter, the loop would run until it
// wraps around.
bool Hoister::covers_step(const SCEV *distance, const APInt &step, const Loop &loop)
{
	if (distance->getType()->isIntegerTy(64) && step.ule(STEP_MAX))
		return true;
	const SCEV *least = evolution.getConstant(step);
	return evolution.isKnownPredicate(ICmpInst::ICMP_UGE, distance, least) ||
	       evolution.isLoopEntryGuardedByCond(&loop, ICmpInst::ICMP_UGE, distance, least);
}

// The amount from the backedge-taken count.
void Hoister::set_amount(Hoist &hoist, const SCEV *backedges_taken)
{
	Type *wide = IntegerType::get(backedges_taken->getType()->getContext(), 64);
	const auto *division = dyn_cast<SCEVUDivExpr>(backedges_taken);
	const auto *step = division ? dyn_cast<SCEVConstant>(division->getRHS()) : nullptr;
	if (step && step->getAPInt().isPowerOf2()) {
		const SCEV *distance = evolution.getAddExpr(division->getLHS(), step);
		if (covers_step(distance, step->getAPInt(), *hoist.loop)) {
			hoist.amount = evolution.getNoopOrZeroExtend(
				evolution.getUDivExpr(distance, step), wide);
			hoist.distance = evolution.getNoopOrZeroExtend(distance, wide);
			hoist.shift = step->getAPInt().logBase2();
			return;
		}
	}
	hoist.amount = evolution.getAddExpr(
		evolution.getNoopOrZeroExtend(backedges_taken, wide), evolution.getOne(wide));
}

std::optional<Hoist> Hoister::plan(Loop &loop)
{
	BasicBlock *insertion_point = loop.getLoopPreheader();
	const bool is_nest = !loop.getParentLoop() && !loop.isInnermost();
	if (is_nest || !insertion_point || !passes_control(loop))
		return {};
	const SCEV *backedges_taken = evolution.getBackedgeTakenCount(&loop);
	if (isa<SCEVCouldNotCompute>(backedges_taken))
		return plan_in_exits(loop);
	if (evolution.getTypeSizeInBits(backedges_taken->getType()) > 64)
		return {};
	Hoist hoist = {&loop, insertion_point, nullptr, {}};
	set_amount(hoist, backedges_taken);
	if (!can_expand(hoist.distance ? hoist.distance : hoist.amount, *insertion_point, loop))
		return plan_in_exits(loop);
	if (const auto *number = dyn_cast<SCEVConstant>(hoist.amount))
		hoist.constant = number->getAPInt().getZExtValue();

	for (Loop *around = loop.getParentLoop(); around && around->getParentLoop();
		around = around->getParentLoop()) {
		BasicBlock *outer = around->getLoopPreheader();
		if (!outer || !passes_control(*around))
			break;
		const SCEV *runs = runs_of(hoist.insertion_point, *around);
		const SCEV *sum = runs ? sum_over(hoist.amount, *around, runs) : nullptr;
		if (!sum || !can_expand(sum, *outer, *around))
			break;
		hoist.insertion_point = outer;
		hoist.amount = sum;
		hoist.distance = nullptr;
	}
	return hoist;
}

bool Hoister::is_short(const BasicBlock &block, const Loop &innermost, const Loop &outermost)
{
	constexpr uint64_t SHORT_MAX = INT32_MAX;
	uint64_t runs = 1;
	const BasicBlock *insertion_point = &block;
	for (const Loop *loop = &innermost;; loop = loop->getParentLoop()) {
		if (!insertion_point || repeats_within(*insertion_point, *loop))
			return false;
		insertion_point = loop->getLoopPreheader();
		const auto *most =
			dyn_cast<SCEVConstant>(evolution.getConstantMaxBackedgeTakenCount(loop));
		if (!most || most->getAPInt().ugt(SHORT_MAX - 1))
			return false;
		runs *= most->getAPInt().getZExtValue() + 1;
		if (runs > SHORT_MAX)
			return false;
		if (loop == &outermost)
			return true;
	}
}

Value *Hoister::expand(const Hoist &hoist)
{
	Instruction *end = hoist.insertion_point->getTerminator();
	const SCEV *amount = hoist.distance ? hoist.distance : hoist.amount;
	Value *value = expander.expandCodeFor(amount, amount->getType(), end);
	if (!hoist.distance || isa<Constant>(value))
		return hoist.distance ? expander.expandCodeFor(hoist.amount, value->getType(), end)
				      : value;
	// Make it opaque, or the distance would be computed again; but if it is invariant in the
	// enclosing loops, hoist the shift out of them too.
	const SCEV *step = evolution.getConstant(value->getType(), 1ull << hoist.shift);
	const SCEV *rounds = evolution.getUDivExpr(evolution.getUnknown(value), step);
	return expander.expandCodeFor(rounds, value->getType(), end);
}

} // namespace mperf
