// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Iterations of a loop in the source, computed from the blocks of the optimised loop

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

// The blocks whose runs add up to the iterations of a loop: of the loop in the source, if the
// copies made by the vectoriser and the unroller can be recognised; otherwise of the optimised
// loop.
llvm::SmallVector<Round, 2> find_rounds(const llvm::Loop &loop);

} // namespace mperf
