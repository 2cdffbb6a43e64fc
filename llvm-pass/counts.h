// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How the counts of a function's blocks follow from counters, by mode

#include "flow.h"
#include "hoist.h"
#include "options.h"
#include "prepare.h"

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

// One place where a counter is updated: by 1 within a block, or on an edge, or by a loop's trip
// count without it.
struct Update {
	uint32_t counter;
	llvm::BasicBlock *from, *to;
	bool within;
	std::optional<Hoist> hoist;

	// To whose scope it is charged.
	const llvm::BasicBlock *block() const
	{
		return hoist ? hoist->place : from;
	}
};

struct Counts {
	std::vector<Update> updates;
	llvm::DenseMap<const llvm::BasicBlock *, Sum> sums; // of blocks
	// How often exchanges took place on whose success their blocks' ends depend; where known.
	llvm::DenseMap<const llvm::Value *, Sum> exchanges;

	const Sum &of(const llvm::BasicBlock *block) const;
	// How often an update takes place.
	Sum of(const Update &update) const;
};

// What a function looks like, borrowed.
struct Shape {
	llvm::Function &function;
	llvm::LoopInfo &loops;
	llvm::DominatorTree &dominators;
	llvm::BlockFrequencyInfo &frequencies;
	llvm::BranchProbabilityInfo &probabilities;
	const Breaks &breaks;
	const Sum *entries; // how often it is entered, by counters of its callers; null: not known
};

// Chooses counters (added to the table) so that the counts of all blocks that are needed follow.
Counts make_counts(const Shape &shape, Hoister &hoister, const Options &options, Table &table,
	llvm::function_ref<bool(const llvm::BasicBlock *)> is_needed);

} // namespace mperf
