// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop whose trip count is known when it begins is counted by adding that number in its
// preheader. If the loop around it runs the preheader once a round, and is itself computable, the
// sum of all those additions is one too: a product where the trip count is the same in each round,
// a closed form where it grows evenly (triangular loops):
//
//      sum of (a + b·i) for i = 0 … n-1   =   a·n + b·n(n-1)/2
//
// One that goes by steps of more than 1, as what was unrolled or vectorised does, is said to go
// round again (way - step) / step times. That is way / step - 1, and the way is what it compares
// with.
//
// A loop whose trip count nobody knows before may still have walked by even steps when it is left:
// how far it got tells its rounds then, without a counter within.
//
// It ends inside of the outermost loop of a nest: what runs long is to be seen while it runs. And
// it is right only if the rounds then take place: not if a call inside may throw, jump or never
// return.

#include "hoist.h"

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

// As dear as an addition in each of few rounds; a division is not.
constexpr unsigned EXPANSION_BUDGET = 8;
// A walker's way is worked out at each of them, and makes the code longer.
constexpr size_t EXITS_MAX = 4;
// Deeper expressions are left alone: they take long to work out, and are dear to compute.
constexpr unsigned EXPRESSION_MAX = 24;

// Steps of up to so much get through 64 bits in 2^56 rounds, which take two years.
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

// A step that can be divided out: the value does not come around to where it began, unless it goes
// by one through all of 64 bits.
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

// The loop's values that go by even steps tell its rounds when it is left; one that begins at 0 and
// goes by 1 is one already.
std::optional<Hoist> Hoister::plan_behind(Loop &loop)
{
	SmallVector<BasicBlock *, 4> exits;
	loop.getUniqueExitBlocks(exits);
	if (!loop.getLoopLatch() || !loop.hasDedicatedExits() || exits.empty() ||
		exits.size() > EXITS_MAX || any_of(exits, [](const BasicBlock *exit) {
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
			best->walker = &phi;
			best->step = *step;
			best_price = price;
		}
	}
	return best;
}

// Where the walker stands when the loop is left to that block, in steps that `more` completes: by
// edge, it has taken this round's step or not, and what lives on there is the one that costs
// nothing.
Value *Hoister::last_of(const Hoist &hoist, BasicBlock &exit, Value *&more)
{
	PHINode *walker = hoist.walker;
	Type *wide = IntegerType::get(exit.getContext(), 64);
	auto *next =
		dyn_cast<Instruction>(walker->getIncomingValueForBlock(hoist.loop->getLoopLatch()));
	// One of few bits may come around with its last step.
	const bool is_wide = walker->getType()->isPointerTy() || walker->getType() == wide;
	const auto has_stepped = [&](const BasicBlock *from) {
		return next && is_wide && dominators.dominates(next, from->getTerminator());
	};
	const unsigned n = pred_size(&exit), n_stepped = count_if(predecessors(&exit), has_stepped);
	more = ConstantInt::get(wide, n_stepped == 0);
	if (n_stepped == 0 || n_stepped == n)
		return n_stepped ? cast<Value>(next) : walker;
	auto *last = PHINode::Create(walker->getType(), n, "mperf.last");
	auto *rest = PHINode::Create(wide, n, "mperf.rest");
	last->insertBefore(&exit.front());
	rest->insertBefore(&exit.front());
	for (BasicBlock *from : predecessors(&exit)) {
		const bool stepped = has_stepped(from);
		last->addIncoming(stepped ? cast<Value>(next) : walker, from);
		rest->addIncoming(ConstantInt::get(wide, !stepped), from);
	}
	more = rest;
	return last;
}

Value *Hoister::expand_behind(const Hoist &hoist, IRBuilder<> &builder)
{
	PHINode *walker = hoist.walker;
	Type *wide = builder.getInt64Ty();
	Type *narrow = walker->getType()->isPointerTy() ? wide : walker->getType();
	const auto number = [&](Value *value) {
		return value->getType()->isPointerTy() ? builder.CreatePtrToInt(value, narrow)
						       : value;
	};
	Value *more;
	Value *last = last_of(hoist, *builder.GetInsertBlock(), more);
	Value *from = number(walker->getIncomingValueForBlock(hoist.loop->getLoopPreheader()));
	// Frozen, it is the loop's own value, of which the loop would have to keep another that is
	// easier to count by. Where it begins at a value, the loop may have one of its own for it.
	Value *to = number(last);
	if (isa<Constant>(from))
		to = builder.CreateFreeze(to);
	Value *way = hoist.step < 0 ? builder.CreateSub(from, to) : builder.CreateSub(to, from);
	const uint64_t each = hoist.step < 0 ? -hoist.step : hoist.step;
	if (each > 1)
		way = builder.CreateLShr(way, ConstantInt::get(narrow, Log2_64(each)));
	return builder.CreateAdd(builder.CreateZExt(way, wide), more);
}

// Is it certain that the way is at least one step? Were it shorter, the loop would go on until it
// came around.
bool Hoister::goes_way(const SCEV *way, const APInt &step, const Loop &loop)
{
	if (way->getType()->isIntegerTy(64) && step.ule(STEP_MAX))
		return true;
	const SCEV *least = evolution.getConstant(step);
	return evolution.isKnownPredicate(ICmpInst::ICMP_UGE, way, least) ||
	       evolution.isLoopEntryGuardedByCond(&loop, ICmpInst::ICMP_UGE, way, least);
}

// From how often the loop goes round again.
void Hoister::set_amount(Hoist &hoist, const SCEV *back)
{
	Type *wide = IntegerType::get(back->getType()->getContext(), 64);
	const auto *division = dyn_cast<SCEVUDivExpr>(back);
	const auto *step = division ? dyn_cast<SCEVConstant>(division->getRHS()) : nullptr;
	if (step && step->getAPInt().isPowerOf2()) {
		const SCEV *way = evolution.getAddExpr(division->getLHS(), step);
		if (goes_way(way, step->getAPInt(), *hoist.loop)) {
			hoist.amount = evolution.getNoopOrZeroExtend(
				evolution.getUDivExpr(way, step), wide);
			hoist.way = evolution.getNoopOrZeroExtend(way, wide);
			hoist.shift = step->getAPInt().logBase2();
			return;
		}
	}
	hoist.amount = evolution.getAddExpr(
		evolution.getNoopOrZeroExtend(back, wide), evolution.getOne(wide));
}

std::optional<Hoist> Hoister::plan(Loop &loop)
{
	BasicBlock *place = loop.getLoopPreheader();
	const bool is_nest = !loop.getParentLoop() && !loop.isInnermost();
	if (is_nest || !place || !passes_control(loop))
		return {};
	const SCEV *back = evolution.getBackedgeTakenCount(&loop);
	if (isa<SCEVCouldNotCompute>(back))
		return plan_behind(loop);
	if (evolution.getTypeSizeInBits(back->getType()) > 64)
		return {};
	Hoist hoist = {&loop, place, nullptr, {}};
	set_amount(hoist, back);
	if (!can_expand(hoist.way ? hoist.way : hoist.amount, *place, loop))
		return plan_behind(loop);
	if (const auto *number = dyn_cast<SCEVConstant>(hoist.amount))
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
		hoist.way = nullptr;
	}
	return hoist;
}

bool Hoister::is_short(const Loop &innermost, const Loop &outermost)
{
	constexpr uint64_t SHORT_MAX = INT32_MAX;
	uint64_t runs = 1;
	for (const Loop *loop = &innermost;; loop = loop->getParentLoop()) {
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
	Instruction *end = hoist.place->getTerminator();
	const SCEV *amount = hoist.way ? hoist.way : hoist.amount;
	Value *value = expander.expandCodeFor(amount, amount->getType(), end);
	if (!hoist.way || isa<Constant>(value))
		return hoist.way ? expander.expandCodeFor(hoist.amount, value->getType(), end)
				 : value;
	// Not looked into, or the way would be worked out once more; but where it stays the same,
	// the shift comes before the loops around, too.
	const SCEV *step = evolution.getConstant(value->getType(), 1ull << hoist.shift);
	const SCEV *rounds = evolution.getUDivExpr(evolution.getUnknown(value), step);
	return expander.expandCodeFor(rounds, value->getType(), end);
}

} // namespace mperf
