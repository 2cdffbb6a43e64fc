// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Loads that the code generator will add or narrow

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>

namespace llvm
{
class BasicBlock;
class Function;
class LoadInst;
class LoopInfo;
class SwitchInst;
class TargetTransformInfo;
} // namespace llvm

namespace mperf
{

// n loads of `bytes` bytes each time block `when` runs; a negative number cancels loads charged to
// another block. `of` is the block that needs them.
struct LoweredLoad {
	const llvm::BasicBlock *when;
	const llvm::BasicBlock *of;
	int64_t n;
	uint64_t bytes;
};

// Bytes loaded if the target needs only a part of the value; none: all.
std::optional<uint64_t> narrowed_bytes(const llvm::LoadInst &load);

// Reports the loads expected for jump tables, and for constants that the target's instructions
// cannot hold.
void find_lowered_loads(const llvm::Function &function, const llvm::LoopInfo &loops,
	const llvm::TargetTransformInfo &target,
	llvm::function_ref<void(const LoweredLoad &)> found);

} // namespace mperf
