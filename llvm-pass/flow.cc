// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What flows into a block flows out of it. So it is enough to count the arcs that a spanning tree
// of the flow graph leaves out (Knuth and Stevenson 1973); the tree is chosen to hold the arcs that
// are taken most often, and what is counted is what is rare.
//
//      outside → begin(entry) ═ end(entry) → begin(b) ═ end(b) → … → outside
//
// Each block is two nodes with an arc between them, since counting in a block is cheaper than on an
// edge that must be split for it (a loop of one block is counted in the block, not in a new block
// on its back edge). Arcs from and to the outside are never counted themselves: the block is. Where
// it is known how often the function is entered, that arc is left out of the tree without a
// counter, and the tree holds one more of the others.

#include "flow.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>
#include <numeric>

using namespace llvm;

namespace mperf
{

namespace
{

constexpr unsigned OUTSIDE = 0;
// A count that is the sum of so many counters, over all of a function, would make its table larger
// than its code; such functions (machine-made switches) count blocks. Lua's interpreter has 40,000.
constexpr uint64_t SUM_TERMS_MAX = 2000000;

unsigned count_distinct(const BasicBlock &block, bool successors)
{
	SmallPtrSet<const BasicBlock *, 8> distinct;
	if (successors)
		distinct.insert(succ_begin(&block), succ_end(&block));
	else
		distinct.insert(pred_begin(&block), pred_end(&block));
	return distinct.size();
}

bool has_room(const BasicBlock &block)
{
	return block.getFirstInsertionPt() != block.end();
}

// Where both ends have other edges, the edge is split, which adds a jump.
void judge_edge(Arc &arc)
{
	const Instruction *end = arc.from->getTerminator();
	if (count_distinct(*arc.from, true) == 1 && !isa<InvokeInst>(end))
		return;
	if (count_distinct(*arc.to, false) == 1) {
		arc.countable = has_room(*arc.to);
		return;
	}
	const Instruction *first = arc.to->getFirstNonPHI();
	const bool unsplittable_pad = first->isEHPad() && !isa<LandingPadInst>(first);
	arc.countable = !isa<IndirectBrInst>(end) && !isa<CallBrInst>(end) && !unsplittable_pad;
	arc.weight += arc.weight / 2 + 1;
}

struct Components {
	std::vector<unsigned> parent;

	explicit Components(unsigned n) : parent(n)
	{
		std::iota(parent.begin(), parent.end(), 0);
	}

	unsigned find(unsigned node)
	{
		while (parent[node] != node)
			node = parent[node] = parent[parent[node]];
		return node;
	}

	bool join(unsigned a, unsigned b)
	{
		a = find(a);
		b = find(b);
		parent[a] = b;
		return a != b;
	}
};

} // namespace

void add_sum(Sum &into, const Sum &other, int64_t times)
{
	for (const auto &[counter, factor] : other) {
		const auto place = into.try_emplace(counter, 0).first;
		place->second += factor * times;
		if (place->second == 0)
			into.erase(place);
	}
}

unsigned Flow::begin_of(const BasicBlock *block) const
{
	return block ? 1 + 2 * numbers.lookup(block) : OUTSIDE;
}

unsigned Flow::end_of(const BasicBlock *block) const
{
	return block ? 2 + 2 * numbers.lookup(block) : OUTSIDE;
}

unsigned Flow::tail_node(const Arc &arc) const
{
	return arc.within ? begin_of(arc.from) : end_of(arc.from);
}

unsigned Flow::head_node(const Arc &arc) const
{
	return arc.within ? end_of(arc.to) : begin_of(arc.to);
}

void Flow::add_arc(const Arc &arc)
{
	arcs_at[tail_node(arc)].push_back(arcs.size());
	arcs_at[head_node(arc)].push_back(arcs.size());
	if (arc.within)
		within[arc.from] = arcs.size();
	else
		edges[{arc.from, arc.to}] = arcs.size();
	arcs.push_back(arc);
}

void Flow::add_block(BasicBlock &block, const FlowCosts &costs)
{
	const auto cheap = costs.cheap.find(&block);
	const uint64_t frequency = costs.block(&block);
	add_arc({&block, &block, true, has_room(block),
		cheap != costs.cheap.end() ? cheap->second : frequency});
	if (is_contained(costs.entered_again, &block))
		add_arc({nullptr, &block, false, false, frequency});
	const bool is_cut = is_contained(costs.cut_after, &block);
	if (is_cut || succ_empty(&block) || is_contained(costs.may_leave, &block))
		add_arc({&block, nullptr, false, false, frequency});

	SmallPtrSet<BasicBlock *, 8> seen;
	for (BasicBlock *next : successors(&block)) {
		if (!seen.insert(next).second)
			continue;
		if (is_cut) {
			add_arc({nullptr, next, false, false, frequency});
			continue;
		}
		Arc arc = {&block, next, false, true, costs.edge(&block, next)};
		judge_edge(arc);
		if (is_contained(costs.entered_again, next))
			arc.countable = false; // its place runs again too
		add_arc(arc);
	}
}

Flow::Flow(Function &function, const FlowCosts &costs)
{
	for (BasicBlock &block : function)
		numbers.try_emplace(&block, numbers.size());
	arcs_at.resize(1 + 2 * numbers.size());
	add_arc({nullptr, &function.getEntryBlock(), false, false, 0});
	arcs.front().known = costs.entries_known;
	for (BasicBlock &block : function)
		add_block(block, costs);
}

bool Flow::span()
{
	std::vector<unsigned> order(arcs.size());
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [this](unsigned a, unsigned b) {
		if (arcs[a].countable != arcs[b].countable)
			return !arcs[a].countable;
		return arcs[a].weight > arcs[b].weight;
	});
	Components components(arcs_at.size());
	for (unsigned i : order) {
		if (arcs[i].known)
			continue;
		arcs[i].in_tree = components.join(tail_node(arcs[i]), head_node(arcs[i]));
		if (!arcs[i].in_tree && !arcs[i].countable)
			return false;
	}
	return true;
}

// Leaves of the tree first: at each node, all arcs but the one towards the root are known.
bool Flow::solve()
{
	std::vector<unsigned> order = {OUTSIDE};
	std::vector<int> up(arcs_at.size(), -1); // the arc towards the root
	std::vector<bool> seen(arcs_at.size(), false);
	seen[OUTSIDE] = true;
	for (size_t i = 0; i < order.size(); i++) {
		for (unsigned arc : arcs_at[order[i]]) {
			const unsigned tail = tail_node(arcs[arc]), head = head_node(arcs[arc]);
			const unsigned other = tail == order[i] ? head : tail;
			if (!arcs[arc].in_tree || seen[other])
				continue;
			seen[other] = true;
			up[other] = arc;
			order.push_back(other);
		}
	}
	uint64_t n_terms = 0;
	for (size_t i = order.size(); i-- > 1;) {
		const unsigned node = order[i];
		Arc &unknown = arcs[up[node]];
		const bool goes_in = head_node(unknown) == node;
		for (unsigned arc : arcs_at[node]) {
			if ((int)arc == up[node] || tail_node(arcs[arc]) == head_node(arcs[arc]))
				continue;
			const bool other_goes_in = head_node(arcs[arc]) == node;
			add_sum(unknown.sum, arcs[arc].sum, goes_in == other_goes_in ? -1 : 1);
		}
		n_terms += unknown.sum.size();
		if (n_terms > SUM_TERMS_MAX)
			return false;
	}
	return true;
}

const Sum &Flow::of_block(const BasicBlock *block) const
{
	return arcs[within.lookup(block)].sum;
}

const Sum *Flow::of_edge(const BasicBlock *from, const BasicBlock *to) const
{
	const auto place = edges.find({from, to});
	return place == edges.end() ? nullptr : &arcs[place->second].sum;
}

} // namespace mperf
