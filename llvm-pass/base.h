// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How a function reaches its counters

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

#include <vector>

namespace llvm
{
class AllocaInst;
class Constant;
class Function;
class GetElementPtrInst;
} // namespace llvm

namespace mperf
{

class Emitter;

// How often blocks run, in any unit.
using Frequencies = llvm::DenseMap<const llvm::BasicBlock *, uint64_t>;

// The address of one function's counters, derived from its thread's bias. First collects uses;
// finish() then finds where it is best computed.
class Base
{
      public:
	Base(Emitter &emitter, llvm::Function &function, uint32_t first_counter);

	// The address of a counter, for code at the builder's position.
	llvm::Value *address(llvm::IRBuilder<> &builder, uint32_t counter);

	// The thread must have its block at that instruction.
	void require_at(llvm::Instruction &instruction);

	// Computes the base before all its uses, at the places that run least often, and again
	// after each of `again_at` (regions that begin or end). trusted: the thread certainly has
	// its block.
	void finish(llvm::ArrayRef<llvm::Instruction *> again_at, bool trusted, uint32_t n_counters,
		const Frequencies &frequencies);

      private:
	llvm::Value *load_bias(llvm::IRBuilder<> &builder);
	llvm::Value *find_bias(llvm::IRBuilder<> &builder);
	void compute_at(llvm::Instruction *before, bool trusted);
	void place_behind_gs(llvm::ArrayRef<llvm::Instruction *> again_at, bool trusted,
		int64_t middle, const Frequencies &frequencies);
	bool use_segment();
	std::vector<llvm::Instruction *> first_uses(const Frequencies &frequencies);
	std::vector<llvm::BasicBlock *> find_insertion_points(const Frequencies &frequencies);
	llvm::Instruction *first_use(llvm::BasicBlock &block);
	void keep_locals_first();
	void drop_unused();

	Emitter &emitter;
	llvm::Function &function;
	llvm::AllocaInst *slot; // becomes a register
	uint32_t first;
	// Results of address(), whose distance from the base is set at the end.
	std::vector<std::pair<llvm::GetElementPtrInst *, uint32_t>> addresses;
	llvm::Constant *origin = nullptr; // the base, without a bias
	size_t n_using = 2;               // blocks that use it, as far as known
	llvm::DominatorTree dominators;   // after finish()
};

} // namespace mperf
