// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The modes. `tree` counts what a spanning tree leaves out; `block` counts each block, and is what
// the others are held against; `sets` counts one block of each set that runs equally often (Examem,
// section III.D: there, those that come after each other in every run; here, exactly those, so that
// it is right and not nearly so).
//
// In tree and sets, a loop's header may be counted from without. Where the trip count is a number,
// it needs no counter at all: its count is so many times its preheader's.

#include "counts.h"
#include "table.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace mperf
{

namespace
{

// An addition of what must be computed costs as much as so many of 1.
constexpr uint64_t HOIST_COST = 3;
// How long a count may get by putting other counts in the place of counters.
constexpr size_t SUM_MAX = 4096;

// The exchange whose success that branch is about: 0 is the way on if it did; or null.
const Instruction *exchange_of(const BranchInst &jump)
{
	const auto *success = dyn_cast<ExtractValueInst>(jump.getCondition());
	if (!success || success->getIndices() != ArrayRef<unsigned>{1} ||
		success->getParent() != jump.getParent())
		return nullptr;
	const auto *exchange = dyn_cast<AtomicCmpXchgInst>(success->getAggregateOperand());
	return exchange && exchange->getParent() == jump.getParent() ? exchange : nullptr;
}

using Hoists = DenseMap<const BasicBlock *, Hoist>; // by header

Hoists plan_hoists(const Shape &shape, Hoister &hoister, const Options &options)
{
	Hoists hoists;
	if (!options.hoist)
		return hoists;
	for (Loop *loop : shape.loops.getLoopsInPreorder()) {
		if (auto hoist = hoister.plan(*loop))
			hoists.try_emplace(loop->getHeader(), *hoist);
	}
	return hoists;
}

uint64_t frequency(const Shape &shape, const BasicBlock *block)
{
	return shape.frequencies.getBlockFreq(block).getFrequency();
}

void count_blocks(const Shape &shape, Table &table,
	function_ref<bool(const BasicBlock *)> is_needed, Counts &counts)
{
	for (BasicBlock &block : shape.function) {
		if (!is_needed(&block) || block.getFirstInsertionPt() == block.end())
			continue;
		const uint32_t counter = table.add_counter();
		counts.sums[&block][counter] = 1;
		counts.updates.push_back({counter, &block, &block, true, {}});
	}
}

// Gives counters to what the tree leaves out. Symbols stand for them until it is known which of
// them are only multiples of others.
class Tree
{
      public:
	Tree(const Shape &shape, const Hoists &hoists, Flow &flow)
	    : shape(shape), hoists(hoists), flow(flow)
	{
	}

	bool solve(Table &table, Counts &counts)
	{
		for (Arc &arc : flow.arcs) {
			if (arc.in_tree)
				continue;
			arc.sum[chords.size()] = 1;
			chords.push_back(&arc);
		}
		if (!flow.solve())
			return false;
		for (uint32_t chord = 0; chord < chords.size(); chord++)
			make_multiple(chord);
		counters.assign(chords.size(), 0);
		for (uint32_t chord = 0; chord < chords.size(); chord++) {
			if (multiples.count(chord) || chords[chord]->known)
				continue;
			counters[chord] = table.add_counter();
			const Arc &arc = *chords[chord];
			Update update = {counters[chord], arc.from, arc.to, arc.within, {}};
			if (const Hoist *hoist = hoist_of(arc))
				update.hoist = *hoist;
			counts.updates.push_back(update);
		}
		for (BasicBlock &block : shape.function) {
			counts.sums[&block] = final_sum(flow.of_block(&block));
			const auto *jump = dyn_cast<BranchInst>(block.getTerminator());
			if (!jump || !jump->isConditional() || !exchange_of(*jump))
				continue;
			const Sum *sum = flow.of_edge(&block, jump->getSuccessor(0));
			if (sum && jump->getSuccessor(0) != jump->getSuccessor(1))
				counts.exchanges[exchange_of(*jump)] = final_sum(*sum);
		}
		return true;
	}

      private:
	const Hoist *hoist_of(const Arc &arc) const
	{
		const auto hoist = arc.within ? hoists.find(arc.from) : hoists.end();
		return hoist == hoists.end() ? nullptr : &hoist->second;
	}

	// Puts counts in the place of symbols that are multiples of them.
	Sum expand(const Sum &sum) const
	{
		Sum result;
		for (const auto &[chord, factor] : sum) {
			const auto multiple = multiples.find(chord);
			if (multiple == multiples.end())
				add_sum(result, {{chord, factor}});
			else
				add_sum(result, multiple->second, factor);
		}
		return result;
	}

	// A header that runs a known number of times: as often as its preheader, times that. Not
	// where the preheader's count was going to be worked out from the header's.
	void make_multiple(uint32_t chord)
	{
		const Hoist *hoist = hoist_of(*chords[chord]);
		if (!hoist || !hoist->constant)
			return;
		const Sum count = expand(flow.of_block(hoist->loop->getLoopPreheader()));
		if (count.count(chord) || count.size() > SUM_MAX)
			return;
		Sum multiple;
		add_sum(multiple, count, *hoist->constant);
		for (auto &[other, sum] : multiples) {
			const auto use = sum.find(chord);
			if (use == sum.end())
				continue;
			const int64_t factor = use->second;
			sum.erase(use);
			add_sum(sum, multiple, factor);
		}
		multiples[chord] = multiple;
	}

	Sum final_sum(const Sum &sum) const
	{
		Sum result;
		for (const auto &[chord, factor] : expand(sum)) {
			if (chords[chord]->known)
				add_sum(result, *shape.entries, factor);
			else
				add_sum(result, {{counters[chord], factor}});
		}
		return result;
	}

	const Shape &shape;
	const Hoists &hoists;
	Flow &flow;
	std::vector<Arc *> chords;
	std::map<uint32_t, Sum> multiples; // by chord; of symbols that have counters
	std::vector<uint32_t> counters;
};

// A branch over a loop, or over what leads to one, is written for the case that it has nothing to
// do: it is taken to be taken so much more rarely than its frequency says, which is a guess.
constexpr uint64_t BYPASS_RARE = 4;
// And an exchange is tried again when another thread came in between.
constexpr uint64_t RETRY_RARE = 32;

// Finds edges that are taken more rarely than is thought.
class Rare
{
      public:
	explicit Rare(const Shape &shape) : shape(shape)
	{
		for (const Loop *loop : shape.loops.getLoopsInPreorder())
			add_way_to(*loop);
	}

	uint64_t divisor(const BasicBlock *from, const BasicBlock *to) const
	{
		const auto *jump = dyn_cast<BranchInst>(from->getTerminator());
		if (!jump || !jump->isConditional() ||
			jump->getSuccessor(0) == jump->getSuccessor(1))
			return 1;
		const BasicBlock *other = jump->getSuccessor(jump->getSuccessor(0) == to);
		if (exchange_of(*jump))
			return to == jump->getSuccessor(1) ? RETRY_RARE : 1;
		const Loop *loop = shape.loops.getLoopFor(from);
		const bool is_within =
			!loop || (loop->contains(to) && loop->contains(other) &&
					 to != loop->getHeader() && other != loop->getHeader());
		return is_within && leads(*other) && !leads(*to) ? BYPASS_RARE : 1;
	}

      private:
	// To a loop, and from nowhere else.
	bool leads(const BasicBlock &block) const
	{
		return ways.count(&block) && block.getSinglePredecessor();
	}

	// Marks the blocks that come before a loop in every run, in the loop around it.
	void add_way_to(const Loop &loop)
	{
		const Loop *around = loop.getParentLoop();
		for (const auto *node = shape.dominators.getNode(loop.getHeader())->getIDom();
			node && (!around || around->contains(node->getBlock()));
			node = node->getIDom()) {
			const BasicBlock *block = node->getBlock();
			if (shape.loops.getLoopFor(block) == around && !ways.insert(block).second)
				return; // as for another loop
		}
	}

	const Shape &shape;
	DenseSet<const BasicBlock *> ways;
};

bool count_tree(const Shape &shape, const Hoists &hoists, Table &table, Counts &counts)
{
	DenseMap<const BasicBlock *, uint64_t> cheap;
	for (const auto &[header, hoist] : hoists) {
		const uint64_t each = hoist.constant ? 1 : HOIST_COST;
		const uint64_t own = frequency(shape, header);
		cheap[header] = std::min(own, frequency(shape, hoist.place) * each);
	}
	const auto block_cost = [&](const BasicBlock *block) { return frequency(shape, block); };
	const Rare rare(shape);
	const auto edge_cost = [&](const BasicBlock *from, const BasicBlock *to) {
		const uint64_t often = (shape.frequencies.getBlockFreq(from) *
					shape.probabilities.getEdgeProbability(from, to))
					       .getFrequency();
		return often / rare.divisor(from, to);
	};
	const FlowCosts costs = {block_cost, edge_cost, cheap, shape.breaks.cut_after,
		shape.breaks.entered_again, shape.breaks.may_leave, shape.entries != nullptr};
	Flow flow(shape.function, costs);
	return flow.span() && Tree(shape, hoists, flow).solve(table, counts);
}

// Blocks of one set: the first comes before the others in every run, they after it, and all in the
// same loop.
void count_sets(const Shape &shape, const Hoists &hoists, Table &table, Counts &counts)
{
	PostDominatorTree after(shape.function);
	std::vector<BasicBlock *> leaders;
	for (BasicBlock *block : depth_first(&shape.function)) {
		BasicBlock *leader = nullptr;
		// A set's first is on the way up the tree of those that come before.
		for (const auto *node = shape.dominators.getNode(block)->getIDom(); node && !leader;
			node = node->getIDom()) {
			BasicBlock *other = node->getBlock();
			if (shape.loops.getLoopFor(other) == shape.loops.getLoopFor(block) &&
				after.dominates(block, other) && counts.sums.count(other))
				leader = other;
		}
		if (leader) {
			counts.sums[block] = counts.sums[leader];
			continue;
		}
		const uint32_t counter = table.add_counter();
		counts.sums[block][counter] = 1;
		Update update = {counter, block, block, true, {}};
		const auto hoist = hoists.find(block);
		if (hoist != hoists.end())
			update.hoist = hoist->second;
		counts.updates.push_back(update);
	}
}

} // namespace

const Sum &Counts::of(const BasicBlock *block) const
{
	static const Sum none;
	const auto place = sums.find(block);
	return place == sums.end() ? none : place->second;
}

Sum Counts::of(const Update &update) const
{
	if (update.hoist)
		return of(update.hoist->place);
	return {{update.counter, 1}};
}

Counts make_counts(const Shape &shape, Hoister &hoister, const Options &options, Table &table,
	function_ref<bool(const BasicBlock *)> is_needed)
{
	Counts counts;
	const bool has_breaks = !shape.breaks.cut_after.empty() ||
				!shape.breaks.entered_again.empty() ||
				!shape.breaks.may_leave.empty();
	if ((options.mode == Mode::TREE || options.mode == Mode::CLONE) &&
		count_tree(shape, plan_hoists(shape, hoister, options), table, counts))
		return counts;
	if (options.mode == Mode::SETS && !has_breaks)
		count_sets(shape, plan_hoists(shape, hoister, options), table, counts);
	else
		count_blocks(shape, table, is_needed, counts);
	return counts;
}

} // namespace mperf
