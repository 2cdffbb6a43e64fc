// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counted function learns once where its counters are: the bias of its thread, which is 0 before
// the thread's first counted function, and then for good. That costs a load, a test and an
// addition, so it stands where all uses can see it, and not above: a function that returns early,
// on a path that counts nothing, pays nothing. Functions that only counted functions of the module
// call need no test.
//
// The address is made an integer and back, since a counter's block is no part of the array that the
// linker knows: to the optimiser, an address derived from the array would stay within it.
//
// Counters of one function are reached by short offsets, of both signs, around the base.

#include "emit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr uint32_t COUNTER_BYTES = 8;
constexpr uint32_t COLD_WEIGHT = 1, WARM_WEIGHT = 1 << 20;

// By how many counters the base may stand behind the first: as far as the shortest offset reaches.
// x86 has a signed byte for it, RISC-V 12 bits.
uint32_t reach(const Module &module)
{
	return Triple(module.getTargetTriple()).isX86() ? 128 / COUNTER_BYTES
							: 2048 / COUNTER_BYTES;
}

} // namespace

Base::Base(Emitter &emitter, Function &function, uint32_t first_counter)
    : emitter(emitter), function(function), first(first_counter)
{
	IRBuilder<> builder(&*function.getEntryBlock().begin());
	slot = builder.CreateAlloca(builder.getPtrTy(), nullptr, "mperf.base");
}

Value *Base::address(IRBuilder<> &builder, uint32_t counter)
{
	Value *base = builder.CreateLoad(slot->getAllocatedType(), slot);
	Value *distance[] = {builder.getInt64(0)};
	auto *place = GetElementPtrInst::Create(builder.getInt8Ty(), base, distance);
	builder.Insert(place, "mperf.counter");
	addresses.emplace_back(place, counter);
	return place;
}

void Base::use_before(Instruction &instruction)
{
	IRBuilder<> builder(&instruction);
	builder.CreateLoad(slot->getAllocatedType(), slot);
}

void Base::compute_at(Instruction *before, bool trusted, Constant *place)
{
	IRBuilder<> builder(before);
	Value *bias = builder.CreateLoad(builder.getInt64Ty(),
		builder.CreateThreadLocalAddress(emitter.bias()), "mperf.bias");
	if (!trusted) {
		Value *none = builder.CreateIsNull(bias);
		MDNode *weights = MDBuilder(function.getContext())
					  .createBranchWeights(COLD_WEIGHT, WARM_WEIGHT);
		BasicBlock *warm = before->getParent();
		Instruction *end = SplitBlockAndInsertIfThen(none, before, false, weights);
		FunctionCallee enter = emitter.enter();
		builder.SetInsertPoint(end);
		CallInst *given = builder.CreateCall(enter);
		given->setCallingConv(cast<Function>(enter.getCallee())->getCallingConv());
		if (function.getSubprogram()) // of no line: it belongs to none
			given->setDebugLoc(DebugLoc(DILocation::get(
				function.getContext(), 0, 0, function.getSubprogram())));
		builder.SetInsertPoint(before);
		PHINode *either = PHINode::Create(builder.getInt64Ty(), 2, "mperf.bias");
		either->insertBefore(&before->getParent()->front());
		either->addIncoming(bias, warm);
		either->addIncoming(given, end->getParent());
		bias = either;
	}
	Constant *origin = ConstantExpr::getPtrToInt(place, builder.getInt64Ty());
	builder.CreateStore(
		builder.CreateIntToPtr(builder.CreateAdd(bias, origin), builder.getPtrTy()), slot);
}

// The block that all uses come after, out of loops, and there before the first of them.
Instruction *Base::find_place()
{
	DominatorTree dominators(function);
	LoopInfo loops(dominators);
	BasicBlock *block = nullptr;
	for (User *user : slot->users()) {
		BasicBlock *used = cast<Instruction>(user)->getParent();
		if (dominators.isReachableFromEntry(used))
			block = block ? dominators.findNearestCommonDominator(block, used) : used;
	}
	if (!block)
		return nullptr;
	while (loops.getLoopFor(block) || block->getFirstInsertionPt() == block->end() ||
		block->isEHPad())
		block = dominators.getNode(block)->getIDom()->getBlock();

	Instruction *before = block->getTerminator();
	for (Instruction &instruction : *block) {
		if (is_contained(slot->users(), &instruction)) {
			before = &instruction;
			break;
		}
	}
	if (CallInst *last = block->getTerminatingMustTailCall(); last && before->isTerminator())
		before = last;
	return before;
}

void Base::place(ArrayRef<Instruction *> anew, bool trusted, uint32_t n_counters)
{
	const uint32_t middle = std::min(n_counters / 2, reach(emitter.module));
	for (const auto &[place, counter] : addresses)
		place->setOperand(1, ConstantInt::get(Type::getInt64Ty(function.getContext()),
					     ((int64_t)counter - first - middle) * COUNTER_BYTES));

	Constant *middle_place = nullptr;
	Instruction *before = find_place();
	if (before && !anew.empty())
		before = &*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
	// Locals of fixed size must stay in the block that the function begins with.
	BasicBlock &entry = function.getEntryBlock();
	if (before && before->getParent() == &entry) {
		for (Instruction &instruction : make_early_inc_range(entry)) {
			auto *local = dyn_cast<AllocaInst>(&instruction);
			if (local && local != slot && isa<ConstantInt>(local->getArraySize()))
				local->moveBefore(slot);
		}
	}
	if (before || !anew.empty())
		middle_place = emitter.counter_address(first + middle);
	if (before)
		compute_at(before, trusted, middle_place);
	for (Instruction *mark : anew)
		compute_at(mark->getNextNode(), true, middle_place);
	for (User *user : make_early_inc_range(slot->users())) {
		if (user->use_empty() && isa<LoadInst>(user))
			cast<Instruction>(user)->eraseFromParent();
	}
	DominatorTree dominators(function);
	PromoteMemToReg({slot}, dominators);
}

} // namespace mperf
