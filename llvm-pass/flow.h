// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Which blocks and edges of a function to count, so that all others follow

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
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

// A count as the signed sum of counters.
using Sum = std::map<uint32_t, int64_t>;

void add_sum(Sum &into, const Sum &other, int64_t times = 1);

struct Arc {
	llvm::BasicBlock *from, *to; // null: outside of the function; the same: within that block
	bool within;                 // the block itself, from its begin to its end
	bool countable;              // may be given a counter
	uint64_t weight;             // how dear that would be
	bool in_tree = false;
	bool known = false; // its count comes from elsewhere
	Sum sum = {};       // what its count is, when all is solved
};

// What a flow graph is made with. Functions borrowed, called by the constructor alone.
struct FlowCosts {
	// How often a block runs, an edge is taken, in any unit.
	llvm::function_ref<uint64_t(const llvm::BasicBlock *)> block;
	llvm::function_ref<uint64_t(const llvm::BasicBlock *, const llvm::BasicBlock *)> edge;
	// What counting the block costs, where it is not its frequency (a loop's header which is
	// counted from without).
	llvm::DenseMap<const llvm::BasicBlock *, uint64_t> cheap;
	// Blocks between which control does not flow in one count: one ends where another count
	// begins (regions), or control comes a second time (setjmp).
	llvm::ArrayRef<const llvm::BasicBlock *> cut_after;
	llvm::ArrayRef<const llvm::BasicBlock *> entered_again;
	// Blocks from whose end control may leave the function, unseen.
	llvm::ArrayRef<const llvm::BasicBlock *> may_leave;
	// How often the function is entered is told from outside.
	bool entries_known = false;
};

class Flow
{
      public:
	Flow(llvm::Function &function, const FlowCosts &costs);

	// Chooses what to count. False: what cannot be counted forms a ring, so that blocks must
	// be.
	bool span();

	// Arcs to count, after span(): those out of the tree.
	std::vector<Arc> arcs;

	// Works out all sums, from `sum` of the arcs out of the tree. False: it takes too many
	// terms.
	bool solve();

	const Sum &of_block(const llvm::BasicBlock *block) const;
	const Sum *of_edge(const llvm::BasicBlock *from, const llvm::BasicBlock *to) const;

      private:
	unsigned begin_of(const llvm::BasicBlock *block) const;
	unsigned end_of(const llvm::BasicBlock *block) const;
	unsigned tail_node(const Arc &arc) const;
	unsigned head_node(const Arc &arc) const;
	void add_arc(const Arc &arc);
	void add_block(llvm::BasicBlock &block, const FlowCosts &costs);

	llvm::DenseMap<const llvm::BasicBlock *, unsigned> numbers;
	llvm::DenseMap<const llvm::BasicBlock *, unsigned> within;
	std::map<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>, unsigned> edges;
	std::vector<std::vector<unsigned>> arcs_at; // by node
};

} // namespace mperf
