// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Brings a function into the shape that counting takes for granted

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace llvm
{
class BasicBlock;
class DominatorTree;
class Function;
class Instruction;
class LoopInfo;
} // namespace llvm

namespace mperf
{

// Is it to be counted? Not what has no room for it (naked), is no code here (available elsewhere),
// must not be touched (no_profile), or runs before there are threads (resolvers of ifuncs).
bool is_counted(const llvm::Function &function);

// Makes calls of comments that mark regions.
void replace_markers(llvm::Function &function);

// Breaks in a function's flow
struct Breaks {
	llvm::SmallVector<llvm::Instruction *, 4> marks; // calls that begin or end a region
	llvm::SmallVector<const llvm::BasicBlock *, 4> cut_after;     // blocks that end with a mark
	llvm::SmallVector<const llvm::BasicBlock *, 4> entered_again; // blocks after a setjmp
	llvm::SmallVector<const llvm::BasicBlock *, 4>
		may_leave;      // that end with what may not return
	bool split_all = false; // at all such calls
};

// Splits blocks after calls that end one count, or return twice; and after those that may throw or
// jump out, where the function calls setjmp itself, or all_escapes.
Breaks split_at_breaks(llvm::Function &function, bool all_escapes);

// Has jumps whose edges cannot be counted lead to blocks of their own. Changes no loop's meaning,
// and comes before loops are found.
void part_indirect_jumps(llvm::Function &function);

// Gives loops a preheader and exits of their own, where they can have them.
void shape_loops(llvm::DominatorTree &dominators, llvm::LoopInfo &loops);

} // namespace mperf
