// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counter promotion: counters that stay in a register while a loop runs

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

class CounterPromoter
{
      public:
	// Construct it before edges are split, while loops have dedicated exits.
	CounterPromoter(llvm::Function &function, Hoister &hoister, const llvm::LoopInfo &loops);

	// The outermost loop for which a counter may be promoted; null: none. innermost: the loop
	// of its block, or null.
	llvm::Loop *register_loop(llvm::Loop *innermost);

	// Adds an amount to the counter's register in a loop from register_loop().
	void add(llvm::IRBuilder<> &builder, llvm::Loop &loop, uint32_t counter,
		llvm::Value *amount);

	// Adds the set lanes of a mask to a vector register of the counter, with one subtraction.
	// Lanes have `bits` bits, which must hold the largest sum.
	void add_lanes(llvm::IRBuilder<> &builder, llvm::Loop &loop, uint32_t counter,
		llvm::Value *mask, unsigned bits);

	// Adds registers to counters at the loops' exits. `address` gives a counter's.
	void finish(llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &, uint32_t)> address);

      private:
	// The turn-th register of that type.
	llvm::AllocaInst *register_of(
		llvm::Loop &loop, uint32_t counter, llvm::Type *type, unsigned turn);

	// By loop and counter, in order of creation.
	llvm::MapVector<std::pair<llvm::Loop *, uint32_t>, llvm::SmallVector<llvm::AllocaInst *, 1>>
		registers;
	// The number of masks of a block that were added to a counter.
	llvm::DenseMap<std::pair<const llvm::BasicBlock *, uint32_t>, unsigned> turns;
	llvm::Function &function;
	Hoister &hoister;
	llvm::DenseSet<const llvm::Loop *> shaped; // have a preheader and dedicated exits
};

} // namespace mperf
