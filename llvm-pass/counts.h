// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How each mode derives the counts of a function's blocks from counters

#include "flow.h"
#include "hoist.h"
#include "options.h"
#include "prepare.h"
#include "wanted.h"

#include <optional>
#include <vector>

namespace llvm
{
class BlockFrequencyInfo;
class BranchProbabilityInfo;
} // namespace llvm

namespace mperf
{

class Table;

// A place where a counter is updated: by 1 within a block or on an edge, or by a loop's trip count
// outside the loop.
struct Update {
	uint32_t counter;
	llvm::BasicBlock *from, *to;
	bool within;
	std::optional<Hoist> hoist;

	// The block whose scope the update is charged to.
	const llvm::BasicBlock *block() const
	{
		return hoist ? hoist->insertion_point : from;
	}
};

struct Counts {
	std::vector<const llvm::Loop *> hoisted; // loops whose counts are added at once
	std::vector<Update> updates;
	llvm::DenseMap<const llvm::BasicBlock *, Sum> sums; // of blocks
	// How often the exchanges ran on whose success their blocks' ends depend; if known.
	llvm::DenseMap<const llvm::Value *, Sum> exchanges;

	const Sum &of(const llvm::BasicBlock *block) const;
	// How often an update runs.
	Sum of(const Update &update) const;
};

// A function and its analyses, borrowed.
struct Shape {
	llvm::Function &function;
	llvm::LoopInfo &loops;
	llvm::DominatorTree &dominators;
	llvm::BlockFrequencyInfo &frequencies;
	llvm::BranchProbabilityInfo &probabilities;
	const Breaks &breaks;
	const Blocks &dropped; // blocks that are not counted
	const Sum *entries;    // its entries, by counters of its callers; null: unknown
};

// Chooses counters (added to the table) from which the counts of all needed blocks follow.
Counts make_counts(const Shape &shape, Hoister &hoister, const Options &options, Table &table,
	llvm::function_ref<bool(const llvm::BasicBlock *)> is_needed);

} // namespace mperf
