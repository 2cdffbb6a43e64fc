// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Brings a function into the shape that counting assumes

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace llvm
{
class BasicBlock;
class DominatorTree;
class Function;
class Module;
class Instruction;
class LoopInfo;
} // namespace llvm

namespace mperf
{

// Should the function be counted? Not if it has no room for counters (naked), has no code here
// (available elsewhere), or must not be touched (no_profile, and functions of excluded.h).
bool is_counted(const llvm::Function &function);

// Makes markers call the runtime without checking that it is linked. For counted modules, which
// cannot be linked without it.
void link_markers(llvm::Module &module);

// Replaces comments that mark regions by calls.
void replace_markers(llvm::Function &function);

// Breaks in a function's control flow
struct Breaks {
	llvm::SmallVector<llvm::Instruction *, 4> marks; // calls that begin or end a region
	llvm::SmallVector<const llvm::BasicBlock *, 4> cut_after;     // blocks that end with a mark
	llvm::SmallVector<const llvm::BasicBlock *, 4> entered_again; // blocks after a setjmp
	llvm::SmallVector<const llvm::BasicBlock *, 4>
		may_leave;      // blocks whose last call may not return
	bool split_all = false; // split at all such calls
};

// Splits blocks after calls that end one count or return twice; and, if the function itself calls
// setjmp, or with all_escapes, after calls that may throw or jump out.
Breaks split_at_breaks(llvm::Function &function, bool all_escapes);

// Gives indirect jumps, whose edges cannot be counted, target blocks of their own. Does not change
// any loop, and runs before loops are found.
void part_indirect_jumps(llvm::Function &function);

// Gives loops preheaders and dedicated exits, if possible.
void shape_loops(llvm::DominatorTree &dominators, llvm::LoopInfo &loops);

} // namespace mperf
