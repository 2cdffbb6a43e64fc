// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The parts of a function that a roofline needs; only these are counted unless the option
// `functions` is set

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

// The blocks whose counts no row of a loop needs: blocks outside of loops that do not lead into
// one. Removes the counts of these blocks and of the function from the meaning, so the row of the
// function is empty. Returns none, and removes nothing, if there are operations on floats or
// vectors outside of loops: such a function is counted completely, since loops may call it, and the
// time of the call is part of their rows.
Blocks drop_outside_loops(llvm::Function &function, const llvm::LoopInfo &loops,
	const Scopes &scopes, Table &table, Meaning &meaning);

// Does a loop have values that are floats or vectors, or copies and fills of memory? Other loops
// get their time from samples unless the option `all-nests` is set.
bool is_timed(const llvm::Loop &loop);

} // namespace mperf
