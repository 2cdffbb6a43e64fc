// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counters that stay in a register while a loop runs

#include "hoist.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm
{
class AllocaInst;
class DominatorTree;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

class Promoter
{
      public:
	// Made before edges are split, while loops have exits of their own.
	Promoter(llvm::Function &function, Hoister &hoister, const llvm::LoopInfo &loops);

	// The outermost loop around which a counter of that block may stay in a register; null:
	// none.
	llvm::Loop *room_for(llvm::Loop *innermost);

	// Adds an amount to the counter's register in a loop that room_for() gave.
	void add(llvm::IRBuilder<> &builder, llvm::Loop &loop, uint32_t counter,
		llvm::Value *amount);

	// Adds the set lanes of a mask to a vector register of the counter's, with one subtraction
	// for all: lanes of `bits` each, which must hold how often that may be.
	void add_lanes(llvm::IRBuilder<> &builder, llvm::Loop &loop, uint32_t counter,
		llvm::Value *mask, unsigned bits);

	// Adds registers to counters where their loops are left. `address` gives a counter's.
	void finish(llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &, uint32_t)> address);

      private:
	// The one of that number among those of that type.
	llvm::AllocaInst *register_of(
		llvm::Loop &loop, uint32_t counter, llvm::Type *type, unsigned turn);

	// By loop and counter, in the order in which they came.
	llvm::MapVector<std::pair<llvm::Loop *, uint32_t>, llvm::SmallVector<llvm::AllocaInst *, 1>>
		registers;
	// How many masks of a block were added for a counter.
	llvm::DenseMap<std::pair<const llvm::BasicBlock *, uint32_t>, unsigned> turns;
	llvm::Function &function;
	Hoister &hoister;
	llvm::DenseSet<const llvm::Loop *> shaped; // have a preheader and exits of their own
};

} // namespace mperf
