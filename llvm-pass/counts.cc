// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The modes. `tree` counts the edges outside a minimum spanning tree; `block` counts each block, as
// a reference for the others; `sets` counts one block of each set that runs equally often in every
// run (Examem, section III.D: there, blocks that come after each other, which is approximate).
//
// In tree and sets, a loop's header may be counted outside the loop. If the trip count is a
// constant, it needs no counter at all: its count is its preheader's times that constant.

#include "counts.h"
#include "remarks.h"
#include "table.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Adding a computed amount costs as much as this many additions of 1. From 1 to 8 the choice moves the
// instructions of bench-instrument's kernels by 0.04 points (x86-64, geometric mean of 32).
constexpr uint64_t HOIST_COST = 3;
// Limit of a count's terms when other counts are substituted for counters.
constexpr size_t SUM_MAX = 4096;

// The exchange whose success decides that branch: successor 0 if it succeeded; or null.
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
		auto hoist = hoister.plan(*loop);
		if (!hoist)
			continue;
		remark_hoist(shape.function, *hoist);
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

// Gives counters to the chords, the edges outside the tree. Symbols represent the counters until we
// know which are only multiples of others.
class Tree
{
      public:
	Tree(const Shape &shape, const Hoists &hoists, Flow &flow)
	    : shape(shape), hoists(hoists), flow(flow)
	{
	}

	bool solve(Table &table, Counts &counts)
	{
		for (Edge &edge : flow.edges) {
			if (edge.in_mst)
				continue;
			edge.sum[chords.size()] = 1;
			chords.push_back(&edge);
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
			const Edge &edge = *chords[chord];
			Update update = {counters[chord], edge.from, edge.to, edge.within, {}};
			if (const Hoist *hoist = hoist_of(edge))
				update.hoist = *hoist;
			counts.updates.push_back(update);
		}
		for (BasicBlock &block : shape.function) {
			if (shape.dropped.count(&block))
				continue;
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
	const Hoist *hoist_of(const Edge &edge) const
	{
		const auto hoist = edge.within ? hoists.find(edge.from) : hoists.end();
		return hoist == hoists.end() ? nullptr : &hoist->second;
	}

	// Substitutes counts for symbols that are multiples of them.
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

	// If a header runs a known number of times per run of its preheader, its count is the
	// preheader's count times that number, unless the preheader's count is derived from the
	// header's.
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
	std::vector<Edge *> chords;
	std::map<uint32_t, Sum> multiples; // by chord; of symbols that have counters
	std::vector<uint32_t> counters;
};

// A branch around a loop, or around the code that leads to one, usually handles the case without
// work. We guess that it is taken this much more rarely than its frequency says.
constexpr uint64_t BYPASS_RARE = 4;
// The same for the retry of an exchange, which happens if another thread interfered.
constexpr uint64_t RETRY_RARE = 32;

// Finds edges that are taken more rarely than estimated.
class Rare
{
      public:
	explicit Rare(const Shape &shape) : shape(shape)
	{
		for (const Loop *loop : shape.loops.getLoopsInPreorder())
			add_path_to(*loop);
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
	// Does the block lead only to a loop?
	bool leads(const BasicBlock &block) const
	{
		return leading.count(&block) && block.getSinglePredecessor();
	}

	// Marks the blocks that precede a loop in every run, in the loop around it.
	void add_path_to(const Loop &loop)
	{
		const Loop *around = loop.getParentLoop();
		for (const auto *node = shape.dominators.getNode(loop.getHeader())->getIDom();
			node && (!around || around->contains(node->getBlock()));
			node = node->getIDom()) {
			const BasicBlock *block = node->getBlock();
			if (shape.loops.getLoopFor(block) == around &&
				!leading.insert(block).second)
				return; // already done for another loop
		}
	}

	const Shape &shape;
	DenseSet<const BasicBlock *> leading;
};

bool count_tree(const Shape &shape, const Hoists &hoists, Table &table, Counts &counts)
{
	DenseMap<const BasicBlock *, uint64_t> cheap;
	for (const auto &[header, hoist] : hoists) {
		const uint64_t each = hoist.constant ? 1 : HOIST_COST;
		const uint64_t own = frequency(shape, header);
		cheap[header] = std::min(own, frequency(shape, hoist.insertion_point) * each);
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
		shape.breaks.entered_again, shape.breaks.may_leave, shape.dropped,
		shape.entries != nullptr};
	Flow flow(shape.function, costs);
	if (!flow.build_mst())
		return false;
	remark_tree(shape.function, flow);
	return Tree(shape, hoists, flow).solve(table, counts);
}

// Blocks of one set have the same count in every flow: the same sum over the edges outside a spanning
// tree. (Dominance is not enough: even if one block dominates another, and that one post-dominates it in
// the same loop, the loop may begin its next iteration between the two.) A set with a header that may be counted outside its
// loop is counted there, and others in their first block.
bool count_sets(const Shape &shape, const Hoists &hoists, Table &table, Counts &counts)
{
	const auto block_cost = [&](const BasicBlock *block) { return frequency(shape, block); };
	const auto edge_cost = [](const BasicBlock *, const BasicBlock *) { return 0; };
	const DenseMap<const BasicBlock *, uint64_t> none_cheap;
	Flow flow(shape.function,
		{block_cost, edge_cost, none_cheap, {}, {}, {}, shape.dropped, false});
	const bool has_insertion_point = all_of(shape.function,
		[](BasicBlock &block) { return block.getFirstInsertionPt() != block.end(); });
	if (!has_insertion_point || !flow.build_mst())
		return false;
	uint32_t n_symbols = 0;
	for (Edge &edge : flow.edges) {
		if (!edge.in_mst)
			edge.sum[n_symbols++] = 1;
	}
	if (!flow.solve())
		return false;
	std::map<Sum, size_t> sets; // to the update that counts it
	for (BasicBlock *block : depth_first(&shape.function)) {
		if (shape.dropped.count(block))
			continue;
		const Sum &sum = flow.of_block(block);
		size_t update = counts.updates.size();
		// There is no flow: control enters a loop that never ends.
		if (!sum.empty())
			update = sets.try_emplace(sum, update).first->second;
		if (update == counts.updates.size())
			counts.updates.push_back({table.add_counter(), block, block, true, {}});
		counts.sums[block][counts.updates[update].counter] = 1;
		const auto hoist = hoists.find(block);
		if (hoist != hoists.end()) {
			counts.updates[update].from = counts.updates[update].to = block;
			counts.updates[update].hoist = hoist->second;
		}
	}
	return true;
}

} // namespace

const Sum &Counts::of(const BasicBlock *block) const
{
	static const Sum none;
	const auto found = sums.find(block);
	return found == sums.end() ? none : found->second;
}

Sum Counts::of(const Update &update) const
{
	if (update.hoist)
		return of(update.hoist->insertion_point);
	return {{update.counter, 1}};
}

Counts make_counts(const Shape &shape, Hoister &hoister, const Options &options, Table &table,
	function_ref<bool(const BasicBlock *)> is_needed)
{
	Counts counts;
	const bool has_breaks = !shape.breaks.cut_after.empty() ||
				!shape.breaks.entered_again.empty() ||
				!shape.breaks.may_leave.empty();
	const bool is_tree = options.mode == Mode::TREE || options.mode == Mode::CLONE;
	const bool is_sets = options.mode == Mode::SETS && !has_breaks;
	const Hoists hoists = is_tree || is_sets ? plan_hoists(shape, hoister, options) : Hoists();
	if ((is_tree && count_tree(shape, hoists, table, counts)) ||
		(is_sets && count_sets(shape, hoists, table, counts))) {
		for (const auto &[header, hoist] : hoists)
			counts.hoisted.push_back(hoist.loop);
		return counts;
	}
	count_blocks(shape, table, is_needed, counts);
	return counts;
}

} // namespace mperf
