// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Late passes fold the empty blocks that loop passes want; we make them again, at no cost: a block
// that only jumps disappears in the machine code.

#include "prepare.h"
#include "excluded.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#if LLVM_VERSION_MAJOR < 17
#include "llvm/Analysis/EHPersonalities.h"
#else
#include "llvm/IR/EHPersonalities.h"
#endif

using namespace llvm;

namespace mperf
{

namespace
{

// Functions with more blocks are not counted: they are generated, and expensive to analyse.
// SQLite's largest has 3,000.
constexpr size_t BLOCKS_MAX = 50000;

// Exception handling of Windows and WebAssembly, where each block belongs to a pad.
bool has_funclets(const Function &function)
{
	return function.hasPersonalityFn() &&
	       isScopedEHPersonality(classifyEHPersonality(function.getPersonalityFn()));
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

// Calls that may not return to the next instruction. After a call at its block's end, there is
// nothing left to count.
bool may_leave(const Instruction &instruction)
{
	const auto *call = dyn_cast<CallInst>(&instruction);
	return call && !call->isMustTailCall() && !call->doesNotReturn() &&
	       !isa<UnreachableInst>(call->getNextNode()) &&
	       !isGuaranteedToTransferExecutionToSuccessor(call);
}

} // namespace

bool is_counted(const Function &function)
{
	return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
	       !function.hasFnAttribute(Attribute::Naked) &&
	       !function.hasFnAttribute(Attribute::NoProfile) &&
	       !function.hasFnAttribute(NOT_COUNTED) &&
	       !function.getName().starts_with("__mperf_") && !has_funclets(function) &&
	       function.size() <= BLOCKS_MAX;
}

Breaks split_at_breaks(Function &function, bool all_escapes)
{
	SmallVector<Instruction *, 8> at;
	const bool escapes = all_escapes || function.callsFunctionThatReturnsTwice();
	for (BasicBlock &block : function) {
		for (Instruction &instruction : block) {
			if (is_mark(instruction) || returns_twice(instruction) ||
				(escapes && may_leave(instruction)))
				at.push_back(&instruction);
		}
	}
	Breaks breaks;
	breaks.split_all = escapes;
	for (Instruction *instruction : at) {
		BasicBlock *block = instruction->getParent();
		BasicBlock *rest = SplitBlock(block, instruction->getNextNode());
		if (is_mark(*instruction)) {
			breaks.marks.push_back(instruction);
			breaks.cut_after.push_back(block);
		} else if (returns_twice(*instruction)) {
			breaks.entered_again.push_back(rest);
		} else {
			breaks.may_leave.push_back(block);
		}
	}
	return breaks;
}

// If an indirect jump may lead to a block with other predecessors (labels without code of their own
// are an example), we insert a block for that jump: the edge cannot be counted.
static void part_indirect(BasicBlock &block, ArrayRef<BasicBlock *> others)
{
	BasicBlock *rest = block.splitBasicBlock(block.getFirstNonPHI());
	Instruction *first = &rest->front();
	for (PHINode &phi : block.phis()) {
		auto *both = PHINode::Create(phi.getType(), others.size() + 1, phi.getName());
		both->insertBefore(first);
		phi.replaceAllUsesWith(both);
		both->addIncoming(&phi, &block);
		for (BasicBlock *other : others) {
			both->addIncoming(phi.getIncomingValueForBlock(other), other);
			phi.removeIncomingValue(other, false);
		}
	}
	for (BasicBlock *other : others)
		other->getTerminator()->replaceSuccessorWith(&block, rest);
}

void part_indirect_jumps(Function &function)
{
	for (BasicBlock &block : make_early_inc_range(function)) {
		SmallSetVector<BasicBlock *, 8> others;
		bool is_target = false, is_other = true;
		for (BasicBlock *from : predecessors(&block)) {
			const Instruction *end = from->getTerminator();
			is_target |= isa<IndirectBrInst>(end);
			// Several edges from one block would need several entries in a phi.
			is_other &= isa<IndirectBrInst>(end) ||
				    (isa<BranchInst>(end) && others.insert(from));
		}
		if (is_target && is_other && !others.empty())
			part_indirect(block, others.getArrayRef());
	}
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
