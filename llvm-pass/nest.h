// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Takes the time of outermost loops

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm
{
class DominatorTree;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

class Emitter;

// Surrounds a loop by the code that times it, with its MPERF_NEST_WORDS at `words`. certain:
// control is sure to leave by an exit. False: the loop has no preheader or no exits of its own.
bool time_nest(llvm::Loop &loop, Emitter &emitter,
	llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &)> words, bool certain,
	llvm::DominatorTree &dominators, llvm::LoopInfo &loops);

} // namespace mperf
