// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses blocks and edges of a function to count, so that all other counts follow

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <map>
#include <vector>

namespace llvm
{
class BasicBlock;
class Function;
} // namespace llvm

namespace mperf
{

// A count as a signed sum of counters.
using Sum = std::map<uint32_t, int64_t>;

void add_sum(Sum &into, const Sum &other, int64_t times = 1);

// An edge of the flow graph: from block to block, or from a block's begin to its end.
struct Edge {
	llvm::BasicBlock *from, *to; // null: outside of the function; the same: within that block
	bool within;                 // the block itself, from its begin to its end
	bool countable;              // may get a counter
	uint64_t weight;             // the cost of counting it
	bool in_mst = false;         // in the minimum spanning tree
	bool known = false;          // its count comes from elsewhere
	Sum sum = {};                // its count, after solve()
};

// Inputs of a flow graph. The functions are borrowed; only the constructor calls them.
struct FlowCosts {
	// How often a block runs or an edge is taken, in any unit.
	llvm::function_ref<uint64_t(const llvm::BasicBlock *)> block;
	llvm::function_ref<uint64_t(const llvm::BasicBlock *, const llvm::BasicBlock *)> edge;
	// The cost of counting a block, if it differs from its frequency (a loop's header that is
	// counted outside the loop).
	llvm::DenseMap<const llvm::BasicBlock *, uint64_t> cheap;
	// Pairs of blocks without flow between them: one count ends and another begins there
	// (regions), or control arrives a second time (setjmp).
	llvm::ArrayRef<const llvm::BasicBlock *> cut_after;
	llvm::ArrayRef<const llvm::BasicBlock *> entered_again;
	// Blocks from whose end control may leave the function unseen.
	llvm::ArrayRef<const llvm::BasicBlock *> may_leave;
	// Blocks that are not counted: they are treated as outside of the function.
	const llvm::DenseSet<const llvm::BasicBlock *> &dropped;
	// The number of entries is known from outside.
	bool entries_known = false;
};

class Flow
{
      public:
	Flow(llvm::Function &function, const FlowCosts &costs);

	// Builds the minimum spanning tree, and so chooses what to count. False: edges that cannot
	// be counted form a cycle, so blocks must be counted.
	bool build_mst();

	// All edges; after build_mst(), those outside the tree are counted.
	std::vector<Edge> edges;

	// Computes all sums, from `sum` of the edges outside the tree. False: too many terms.
	bool solve();

	// Sum of a block that was not dropped.
	const Sum &of_block(const llvm::BasicBlock *block) const;
	const Sum *of_edge(const llvm::BasicBlock *from, const llvm::BasicBlock *to) const;

      private:
	unsigned begin_of(const llvm::BasicBlock *block) const;
	unsigned end_of(const llvm::BasicBlock *block) const;
	unsigned tail_node(const Edge &edge) const;
	unsigned head_node(const Edge &edge) const;
	void add_edge(const Edge &edge);
	void add_block(llvm::BasicBlock &block, const FlowCosts &costs);

	llvm::DenseMap<const llvm::BasicBlock *, unsigned> numbers;
	llvm::DenseMap<const llvm::BasicBlock *, unsigned> within;
	std::map<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>, unsigned> between;
	std::vector<std::vector<unsigned>> edges_at; // by node
};

} // namespace mperf
