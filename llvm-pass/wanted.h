// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Parts of a function that a roofline asks for; they are counted unless the option `functions` asks
// for all of it

#include "llvm/ADT/DenseSet.h"

namespace llvm
{
class BasicBlock;
class Function;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

struct Meaning;
class Scopes;
class Table;

using Blocks = llvm::DenseSet<const llvm::BasicBlock *>;

// Does it have a cycle, or operations on floats or vectors? Other functions are left as they are.
bool is_wanted(const llvm::Function &function);

// The blocks whose counts no row of a loop needs: those outside of loops, but for what leads into
// one. Takes what they and their function count out of the meaning, so the row of the function is
// empty. None, and nothing is taken out, if there are operations on floats or vectors outside of
// loops: that function is counted whole, since loops may call it, and the rows of these have the time
// that it takes.
Blocks drop_outside_loops(llvm::Function &function, const llvm::LoopInfo &loops,
	const Scopes &scopes, Table &table, Meaning &meaning);

// Does a loop have values that are floats or vectors, or copies and fills of memory? The time of
// others is left to samples unless the option `all-nests` asks for it.
bool is_timed(const llvm::Loop &loop);

} // namespace mperf
