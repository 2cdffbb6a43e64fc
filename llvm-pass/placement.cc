// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An update of 1 goes into a block, or on an edge, which is split if both its ends have other
// edges; a hoisted one into its loop's preheader or exits. If it pays, a counter is promoted to a
// register in its loop.

#include "placement.h"
#include "base.h"
#include "counts.h"
#include "meaning.h"
#include "scopes.h"

#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace mperf
{

namespace
{

// The first position in a block for counters: after phis, landing pads and allocas.
Instruction *first_position(BasicBlock &block)
{
	if (block.isEntryBlock())
		return &*block.getFirstNonPHIOrDbgOrAlloca();
	return &*block.getFirstInsertionPt();
}

// The end of a block, or its first call: an update after a call keeps the base alive through it,
// and prevents a tail call.
Instruction *before_calls(BasicBlock &block)
{
	for (Instruction &instruction :
		make_range(first_position(block)->getIterator(), block.end())) {
		if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
			return &instruction;
	}
	return block.getTerminator();
}

// The target of the edges to a landing pad after one was split: that takes two new pads.
using Rests = DenseMap<const BasicBlock *, BasicBlock *>;

// A block between two, in the innermost loop that contains both. Dominators are recomputed after
// all edges are split; other edges stay unchanged.
BasicBlock *split_edge(BasicBlock *from, BasicBlock *to, LoopInfo &loops, Rests &rests)
{
	BasicBlock *between = nullptr;
	if (to->isLandingPad()) {
		SmallVector<BasicBlock *, 2> pads;
		SplitLandingPadPredecessors(to, {from}, ".count", ".rest", pads);
		between = pads.front();
		if (pads.size() > 1) {
			rests[to] = pads[1];
			if (Loop *loop = loops.getLoopFor(to))
				loop->addBasicBlockToLoop(pads[1], loops);
		}
	} else {
		CriticalEdgeSplittingOptions how;
		how.setMergeIdenticalEdges();
		between = SplitKnownCriticalEdge(
			from->getTerminator(), GetSuccessorNumber(from, to), how);
	}
	Loop *loop = loops.getLoopFor(to);
	while (loop && !loop->contains(from))
		loop = loop->getParentLoop();
	if (loop)
		loop->addBasicBlockToLoop(between, loops);
	return between;
}

} // namespace

// Does it pay to keep a counter of that block in a register while its loop runs? On x86 an addition
// to memory is one instruction, and slower than one to a register only on the loop's critical path.
bool Placer::is_promoted(const BasicBlock &block, bool is_mask) const
{
	if (!options.promote || options.mode == Mode::BLOCK)
		return false;
	if (is_mask || !Triple(function.getParent()->getTargetTriple()).isX86())
		return true;
	// An atomic operation waits for all earlier ones, so no addition near it is on the critical
	// path.
	const Loop *loop = loops.getLoopFor(&block);
	return loop && loop->isInnermost() && loop->getNumBlocks() == 1 &&
	       none_of(block, [](const Instruction &i) {
		       return isa<AtomicRMWInst>(i) || isa<AtomicCmpXchgInst>(i);
	       });
}

void Placer::add_update(Instruction *before, uint32_t counter, Value *amount, Loop *loop)
{
	IRBuilder<> builder(before);
	if (loop)
		return promoter.add(builder, *loop, counter, amount);
	Value *location = base.address(builder, counter);
	Value *old = builder.CreateLoad(builder.getInt64Ty(), location);
	builder.CreateStore(builder.CreateAdd(old, amount), location);
}

// The width of a mask's lanes, if they can be summed as a vector; 0: they cannot. On x86 a vector
// sum costs one instruction, counting a mask's bits three.
unsigned Placer::lane_bits(const Quantity &quantity, Loop *outer) const
{
	const auto *call = dyn_cast<IntrinsicInst>(quantity.at);
	if (!outer || !call || quantity.unit != Unit::LANES || quantity.length ||
		!isa<FixedVectorType>(quantity.value->getType()) ||
		!Triple(function.getParent()->getTargetTriple()).isX86())
		return 0;
	const Type *data = call->getType();
	if (data->isVoidTy())
		data = call->getArgOperand(0)->getType();
	const unsigned bits =
		data->getScalarType()->isPointerTy() ? 64 : data->getScalarSizeInBits();
	if (bits == 64)
		return bits;
	const Loop *innermost = loops.getLoopFor(call->getParent());
	return bits == 32 && hoister.is_short(*call->getParent(), *innermost, *outer) ? bits : 0;
}

// Equal quantities of one block share a counter (common in unrolled loops).
void Placer::add_quantities(const Meaning &meaning, const Scopes &scopes, Table &table)
{
	for (BasicBlock &block : function) {
		std::map<std::pair<decltype(Mix::terms), unsigned>, uint32_t> counters;
		const auto quantities = meaning.quantities.find(&block);
		if (quantities == meaning.quantities.end())
			continue;
		for (const Quantity &quantity : quantities->second) {
			Loop *outer = is_promoted(block, true)
					      ? promoter.register_loop(loops.getLoopFor(&block))
					      : nullptr;
			const unsigned bits = lane_bits(quantity, outer);
			const auto [entry, is_new] = counters.try_emplace(
				{quantity.mix.terms, bits}, table.n_counters());
			const uint32_t counter = is_new ? table.add_counter() : entry->second;
			for (const auto &[owned, factor] : quantity.mix.terms) {
				if (is_new)
					table.add_term(counter, scopes.of(&block, owned.first),
						owned.second, factor);
			}
			IRBuilder<> builder(quantity.at);
			if (bits != 0)
				promoter.add_lanes(builder, *outer, counter, quantity.value, bits);
			else
				add_update(quantity.at, counter,
					compute_quantity(builder, quantity), outer);
		}
	}
}

void Placer::add_hoisted(const Update &update)
{
	const Hoist &hoist = *update.hoist;
	if (!hoist.induction)
		return add_update(hoist.insertion_point->getTerminator(), update.counter,
			hoister.expand(hoist), nullptr);
	SmallVector<BasicBlock *, 4> exits;
	hoist.loop->getUniqueExitBlocks(exits);
	for (BasicBlock *exit : exits) {
		IRBuilder<> builder(&*exit->getFirstInsertionPt());
		Value *amount = hoister.expand_in_exit(hoist, builder);
		add_update(&*builder.GetInsertPoint(), update.counter, amount, nullptr);
	}
}

void Placer::add_counters(const Counts &counts, const Breaks &breaks)
{
	Type *word = Type::getInt64Ty(function.getContext());
	Rests rests;
	for (const Update &update : counts.updates) {
		if (update.hoist)
			add_hoisted(update);
	}
	for (const Update &update : counts.updates) {
		if (update.hoist)
			continue;
		Instruction *before = nullptr;
		BasicBlock *block = update.to;
		if (update.within)
			before = first_position(*block);
		else if (update.from->getUniqueSuccessor() &&
			 !isa<InvokeInst>(update.from->getTerminator())) {
			block = update.from;
			before = is_contained(breaks.may_leave, block) ? block->getTerminator()
								       : before_calls(*block);
		} else {
			while (!is_contained(successors(update.from), block))
				block = rests.lookup(block);
			if (!block->getUniquePredecessor())
				block = split_edge(update.from, block, loops, rests);
			before = first_position(*block);
		}
		Loop *outer = is_promoted(*block, false)
				      ? promoter.register_loop(loops.getLoopFor(block))
				      : nullptr;
		add_update(before, update.counter, ConstantInt::get(word, 1), outer);
	}
}

void Placer::finish(DominatorTree &dominators)
{
	// After splitting edges, loops may share exits.
	bool is_up_to_date = false;
	for (Loop *loop : loops.getLoopsInPreorder()) {
		if (loop->hasDedicatedExits())
			continue;
		if (!is_up_to_date)
			dominators.recalculate(function);
		is_up_to_date = true;
		formDedicatedExitBlocks(loop, &dominators, &loops, nullptr, false);
	}
	promoter.finish([&](IRBuilder<> &builder, uint32_t counter) {
		return base.address(builder, counter);
	});
}

} // namespace mperf
