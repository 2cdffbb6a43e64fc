// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flow into a block equals flow out of it. So it is enough to count the edges outside a spanning
// tree of the flow graph (Knuth and Stevenson 1973). The tree is the one that LLVM's own profiles
// call the minimum spanning tree (CFGMST.h): the edges with the highest weight go in first, so that
// those left to count are the rarest.
//
//      outside → begin(entry) ═ end(entry) → begin(b) ═ end(b) → … → outside
//
// A loop, with the counters that -O1 needs; n is the trip count. `═` is in the tree:
//
//      outside ═ entry ══ preheader ══ body ═╗      c0: edge entry → cleanup
//                  │                   │  ╚══╝      c1: body, added as n in the preheader
//                  c0                  c2           c2: edge body → exit
//                  │                   │
//      outside ═ cleanup ═════════════ exit         preheader = c2, entry = c0 + c2
//
// Each block is two nodes with an edge between them, since counting in a block is cheaper than on a
// critical edge, which must be split for it (a loop of one block is counted in the block, not in a
// new block on its back edge). Edges from and to the outside are never counted themselves: the
// block is. If the number of entries is known, that edge is left out of the tree without a counter,
// and the tree has one more of the others. Blocks whose counts nobody needs are part of the outside:
// that leaves fewer nodes, and with them fewer edges to count.

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
// Limit of the terms of all counts of a function. Above it, the table would be larger than the
// code, so such functions (generated switches) count blocks. Lua's interpreter has 40,000.
constexpr uint64_t SUM_TERMS_MAX = 2000000;

bool has_insertion_point(const BasicBlock &block)
{
	return block.getFirstInsertionPt() != block.end();
}

// A critical edge, with other edges at both ends, is split, which adds a jump.
void judge_edge(Edge &edge)
{
	const Instruction *end = edge.from->getTerminator();
	if (edge.from->getUniqueSuccessor() && !isa<InvokeInst>(end))
		return;
	if (edge.to->getUniquePredecessor()) {
		edge.countable = has_insertion_point(*edge.to);
		return;
	}
	const Instruction *first = edge.to->getFirstNonPHI();
	const bool unsplittable_pad = first->isEHPad() && !isa<LandingPadInst>(first);
	edge.countable = !isa<IndirectBrInst>(end) && !isa<CallBrInst>(end) && !unsplittable_pad;
	edge.weight += edge.weight / 2 + 1;
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
		const auto found = into.try_emplace(counter, 0).first;
		found->second += factor * times;
		if (found->second == 0)
			into.erase(found);
	}
}

unsigned Flow::begin_of(const BasicBlock *block) const
{
	const auto number = numbers.find(block);
	return number != numbers.end() ? 1 + 2 * number->second : OUTSIDE;
}

unsigned Flow::end_of(const BasicBlock *block) const
{
	const auto number = numbers.find(block);
	return number != numbers.end() ? 2 + 2 * number->second : OUTSIDE;
}

unsigned Flow::tail_node(const Edge &edge) const
{
	return edge.within ? begin_of(edge.from) : end_of(edge.from);
}

unsigned Flow::head_node(const Edge &edge) const
{
	return edge.within ? end_of(edge.to) : begin_of(edge.to);
}

void Flow::add_edge(const Edge &edge)
{
	if (tail_node(edge) == OUTSIDE && head_node(edge) == OUTSIDE)
		return;
	edges_at[tail_node(edge)].push_back(edges.size());
	edges_at[head_node(edge)].push_back(edges.size());
	if (edge.within)
		within[edge.from] = edges.size();
	else
		between[{edge.from, edge.to}] = edges.size();
	edges.push_back(edge);
}

void Flow::add_block(BasicBlock &block, const FlowCosts &costs)
{
	const auto cheap = costs.cheap.find(&block);
	const uint64_t frequency = costs.block(&block);
	add_edge({&block, &block, true, has_insertion_point(block),
		cheap != costs.cheap.end() ? cheap->second : frequency});
	if (is_contained(costs.entered_again, &block))
		add_edge({nullptr, &block, false, false, frequency});
	const bool is_cut = is_contained(costs.cut_after, &block);
	if (is_cut || succ_empty(&block) || is_contained(costs.may_leave, &block))
		add_edge({&block, nullptr, false, false, frequency});

	SmallPtrSet<BasicBlock *, 8> seen;
	for (BasicBlock *next : successors(&block)) {
		if (!seen.insert(next).second)
			continue;
		if (is_cut) {
			add_edge({nullptr, next, false, false, frequency});
			continue;
		}
		Edge edge = {&block, next, false, true, costs.edge(&block, next)};
		judge_edge(edge);
		if (is_contained(costs.entered_again, next))
			edge.countable = false; // its place runs again too
		add_edge(edge);
	}
}

Flow::Flow(Function &function, const FlowCosts &costs)
{
	for (BasicBlock &block : function)
		if (!costs.dropped.count(&block))
			numbers.try_emplace(&block, numbers.size());
	edges_at.resize(1 + 2 * numbers.size());
	Edge entry = {nullptr, &function.getEntryBlock(), false, false, 0};
	entry.known = costs.entries_known;
	add_edge(entry);
	for (BasicBlock &block : function)
		add_block(block, costs);
}

bool Flow::build_mst()
{
	std::vector<unsigned> order(edges.size());
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [this](unsigned a, unsigned b) {
		if (edges[a].countable != edges[b].countable)
			return !edges[a].countable;
		return edges[a].weight > edges[b].weight;
	});
	Components components(edges_at.size());
	for (unsigned i : order) {
		if (edges[i].known)
			continue;
		edges[i].in_mst = components.join(tail_node(edges[i]), head_node(edges[i]));
		if (!edges[i].in_mst && !edges[i].countable)
			return false;
	}
	return true;
}

// Leaves of the tree first: then all edges of a node are known, except the one towards the root.
bool Flow::solve()
{
	std::vector<unsigned> order = {OUTSIDE};
	std::vector<int> up(edges_at.size(), -1); // the edge towards the root
	std::vector<bool> seen(edges_at.size(), false);
	seen[OUTSIDE] = true;
	for (size_t i = 0; i < order.size(); i++) {
		for (unsigned edge : edges_at[order[i]]) {
			const unsigned tail = tail_node(edges[edge]), head = head_node(edges[edge]);
			const unsigned other = tail == order[i] ? head : tail;
			if (!edges[edge].in_mst || seen[other])
				continue;
			seen[other] = true;
			up[other] = edge;
			order.push_back(other);
		}
	}
	uint64_t n_terms = 0;
	for (size_t i = order.size(); i-- > 1;) {
		const unsigned node = order[i];
		Edge &unknown = edges[up[node]];
		const bool goes_in = head_node(unknown) == node;
		for (unsigned edge : edges_at[node]) {
			if ((int)edge == up[node] ||
				tail_node(edges[edge]) == head_node(edges[edge]))
				continue;
			const bool other_goes_in = head_node(edges[edge]) == node;
			add_sum(unknown.sum, edges[edge].sum, goes_in == other_goes_in ? -1 : 1);
		}
		n_terms += unknown.sum.size();
		if (n_terms > SUM_TERMS_MAX)
			return false;
	}
	return true;
}

const Sum &Flow::of_block(const BasicBlock *block) const
{
	return edges[within.lookup(block)].sum;
}

const Sum *Flow::of_edge(const BasicBlock *from, const BasicBlock *to) const
{
	const auto found = between.find({from, to});
	return found == between.end() ? nullptr : &edges[found->second].sum;
}

} // namespace mperf
