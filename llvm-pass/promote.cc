// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter in memory costs a load, an addition and a store each time, and a chain through the
// store buffer; in a register it is one addition, and the memory's turn comes where the loop is
// left. Control must be certain to get there (what throws or jumps would lose the register), and it
// stays within the outermost loop of a nest, so that what runs long is seen.

#include "promote.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace mperf
{

Promoter::Promoter(Function &function, Hoister &hoister, const LoopInfo &loops)
    : function(function), hoister(hoister)
{
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		if (loop->getLoopPreheader() && loop->hasDedicatedExits())
			shaped.insert(loop);
	}
}

Loop *Promoter::room_for(Loop *innermost)
{
	Loop *room = nullptr;
	for (Loop *loop = innermost; loop; loop = loop->getParentLoop()) {
		const bool is_nest = !loop->getParentLoop() && !loop->isInnermost();
		if (is_nest || !shaped.count(loop) || !hoister.passes_control(*loop))
			break;
		room = loop;
	}
	return room;
}

void Promoter::add(IRBuilder<> &builder, Loop &loop, uint32_t counter, Value *amount)
{
	AllocaInst *&sum = registers[{&loop, counter}];
	if (!sum) {
		IRBuilder<> entry(&*function.getEntryBlock().begin());
		sum = entry.CreateAlloca(entry.getInt64Ty(), nullptr, "mperf.sum");
		IRBuilder<> before(loop.getLoopPreheader()->getTerminator());
		before.CreateStore(before.getInt64(0), sum);
	}
	Value *old = builder.CreateLoad(builder.getInt64Ty(), sum);
	builder.CreateStore(builder.CreateAdd(old, amount), sum);
}

void Promoter::finish(function_ref<Value *(IRBuilder<> &, uint32_t)> address)
{
	SmallVector<AllocaInst *, 8> sums;
	for (const auto &[key, sum] : registers) {
		SmallVector<BasicBlock *, 8> exits;
		key.first->getUniqueExitBlocks(exits);
		for (BasicBlock *exit : exits) {
			IRBuilder<> builder(&*exit->getFirstInsertionPt());
			Value *place = address(builder, key.second);
			Value *old = builder.CreateLoad(builder.getInt64Ty(), place);
			Value *add = builder.CreateLoad(builder.getInt64Ty(), sum);
			builder.CreateStore(builder.CreateAdd(old, add), place);
		}
		sums.push_back(sum);
	}
	if (sums.empty())
		return;
	DominatorTree dominators(function);
	PromoteMemToReg(sums, dominators);
}

} // namespace mperf
