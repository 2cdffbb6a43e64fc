// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The identity of a function and its loops, as rows of the table

#include "quantity.h"

#include "llvm/ADT/DenseMap.h"

namespace llvm
{
class BasicBlock;
class Function;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

// Is it the vectoriser's own loop, and not the remainder?
bool is_vectorised(const llvm::Loop &loop);

class Scopes
{
      public:
	// Adds a scope for the function and one for each of its loops.
	Scopes(const llvm::Function &function, const llvm::LoopInfo &loops, Table &table);

	// The innermost scope of a block.
	uint32_t of(const llvm::BasicBlock *block) const;
	uint32_t of(const llvm::Loop *loop) const;
	// The scope to which a block's quantity is charged.
	uint32_t of(const llvm::BasicBlock *block, Owner owner) const
	{
		return owner == OWN ? of(block) : owner - 1;
	}
	uint32_t of_function() const
	{
		return function_scope;
	}

	// Adds scopes for blocks, below the loops and the function; `of` then returns these.
	void add_blocks(const llvm::Function &function, Table &table);

      private:
	const llvm::LoopInfo &loops;
	uint32_t function_scope;
	llvm::DenseMap<const llvm::Loop *, uint32_t> loop_scopes;
	llvm::DenseMap<const llvm::BasicBlock *, uint32_t> block_scopes;
};

} // namespace mperf
