// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Late passes fold the empty blocks away that loop passes want; they are made again, and cost
// nothing: a block that only jumps is gone in the machine code.

#include "prepare.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Blocks, beyond which a function is not counted: machine-made, and dear to analyse. The largest of
// SQLite has 3,000.
constexpr size_t BLOCKS_MAX = 50000;

bool is_resolver(const Function &function)
{
	for (const GlobalIFunc &indirect : function.getParent()->ifuncs()) {
		if (indirect.getResolverFunction() == &function)
			return true;
	}
	return false;
}

bool is_mark(const Instruction &instruction)
{
	const auto *call = dyn_cast<CallInst>(&instruction);
	const Function *callee = call ? call->getCalledFunction() : nullptr;
	return callee && callee->getName().starts_with("__mperf_region_");
}

bool returns_twice(const Instruction &instruction)
{
	const auto *call = dyn_cast<CallInst>(&instruction);
	return call && call->hasFnAttr(Attribute::ReturnsTwice);
}

} // namespace

bool is_counted(const Function &function)
{
	return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
	       !function.hasFnAttribute(Attribute::Naked) &&
	       !function.hasFnAttribute(Attribute::NoProfile) &&
	       !function.getName().starts_with("__mperf_") && !is_resolver(function) &&
	       function.size() <= BLOCKS_MAX;
}

bool is_trusted(const Function &function)
{
	if (!function.hasLocalLinkage() || function.use_empty())
		return false;
	for (const Use &use : function.uses()) {
		const auto *call = dyn_cast<CallBase>(use.getUser());
		if (!call || !call->isCallee(&use) || !is_counted(*call->getFunction()) ||
			call->getFunction() == &function)
			return false;
	}
	return true;
}

Breaks split_at_breaks(Function &function)
{
	SmallVector<Instruction *, 8> at;
	for (BasicBlock &block : function) {
		for (Instruction &instruction : block) {
			if (is_mark(instruction) || returns_twice(instruction))
				at.push_back(&instruction);
		}
	}
	Breaks breaks;
	for (Instruction *instruction : at) {
		BasicBlock *rest = SplitBlock(instruction->getParent(), instruction->getNextNode());
		if (is_mark(*instruction)) {
			breaks.marks.push_back(instruction);
			breaks.cut_after.push_back(instruction->getParent());
		} else {
			breaks.entered_again.push_back(rest);
		}
	}
	return breaks;
}

void shape_loops(DominatorTree &dominators, LoopInfo &loops)
{
	for (Loop *loop : loops.getLoopsInPreorder()) {
		if (!loop->getLoopPreheader())
			InsertPreheaderForLoop(loop, &dominators, &loops, nullptr, false);
		formDedicatedExitBlocks(loop, &dominators, &loops, nullptr, false);
	}
}

} // namespace mperf
