// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Iterations of a loop as the source has it, from the blocks of what the optimiser made of it

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace llvm
{
class BasicBlock;
class Loop;
} // namespace llvm

namespace mperf
{

// Iterations for each run of the block.
struct Round {
	const llvm::BasicBlock *block;
	int64_t n;
	bool scalable; // times vscale
};

// The blocks whose runs add up to the iterations of a loop: of the source's where the copies that
// the vectoriser and the unroller made can be recognised, else of the loop as it is.
llvm::SmallVector<Round, 2> find_rounds(const llvm::Loop &loop);

} // namespace mperf
