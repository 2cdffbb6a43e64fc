// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the code generator is going to load, where it is not what the program's text says

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

// So many loads of so many bytes each time that block runs; a negative number takes back what
// another block was charged with. `of` is the block that they are made for.
struct LoweredLoad {
	const llvm::BasicBlock *when;
	const llvm::BasicBlock *of;
	int64_t n;
	uint64_t bytes;
};

// How many bytes are loaded where the target needs but a part of the value; none: all.
std::optional<uint64_t> narrowed_bytes(const llvm::LoadInst &load);

// Tells what the target is expected to load for jump tables, and for constants that its
// instructions cannot hold.
void find_lowered_loads(const llvm::Function &function, const llvm::LoopInfo &loops,
	const llvm::TargetTransformInfo &target,
	llvm::function_ref<void(const LoweredLoad &)> found);

} // namespace mperf
