// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Like LLVM's InstrProfiling promotes its counters: in memory a counter costs a load, an addition
// and a store each time, and a dependency through the store buffer; in a register it is one
// addition, and the loop's exits update memory. Control must certainly reach them (a throw or jump
// would lose the register), and promotion stays within the outermost loop of a nest, so that long
// work is visible.
//
// Masks of an unrolled loop are added to several vectors in turn: in one vector, the additions
// would form a chain longer than the rest of an iteration.

#include "promote.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace mperf
{

// Each exit updates memory, which makes the code longer.
static constexpr size_t PROMOTED_EXITS_MAX = 3;
// Vectors per counter: the usual unroll factor.
static constexpr unsigned TURNS_MAX = 4;

CounterPromoter::CounterPromoter(Function &function, Hoister &hoister, const LoopInfo &loops)
    : function(function), hoister(hoister)
{
	for (const Loop *loop : loops.getLoopsInPreorder()) {
		if (loop->getLoopPreheader() && loop->hasDedicatedExits())
			shaped.insert(loop);
	}
}

Loop *CounterPromoter::register_loop(Loop *innermost)
{
	Loop *outer = nullptr;
	for (Loop *loop = innermost; loop; loop = loop->getParentLoop()) {
		const bool is_nest = !loop->getParentLoop() && !loop->isInnermost();
		if (is_nest || !shaped.count(loop) || !hoister.passes_control(*loop))
			break;
		SmallVector<BasicBlock *, 8> exits;
		loop->getUniqueExitBlocks(exits);
		if (exits.size() > PROMOTED_EXITS_MAX)
			break;
		outer = loop;
	}
	return outer;
}

AllocaInst *CounterPromoter::register_of(Loop &loop, uint32_t counter, Type *type, unsigned turn)
{
	auto &sums = registers[{&loop, counter}];
	for (AllocaInst *sum : sums) {
		if (sum->getAllocatedType() == type && turn-- == 0)
			return sum;
	}
	IRBuilder<> entry(&*function.getEntryBlock().begin());
	AllocaInst *sum = entry.CreateAlloca(type, nullptr, "mperf.sum");
	IRBuilder<> before(loop.getLoopPreheader()->getTerminator());
	before.CreateStore(Constant::getNullValue(type), sum);
	sums.push_back(sum);
	return sum;
}

void CounterPromoter::add(IRBuilder<> &builder, Loop &loop, uint32_t counter, Value *amount)
{
	AllocaInst *sum = register_of(loop, counter, builder.getInt64Ty(), 0);
	Value *old = builder.CreateLoad(builder.getInt64Ty(), sum);
	builder.CreateStore(builder.CreateAdd(old, amount), sum);
}

void CounterPromoter::add_lanes(
	IRBuilder<> &builder, Loop &loop, uint32_t counter, Value *mask, unsigned bits)
{
	Type *lanes = VectorType::get(builder.getIntNTy(bits), cast<VectorType>(mask->getType()));
	const unsigned turn = turns[{builder.GetInsertBlock(), counter}]++ % TURNS_MAX;
	AllocaInst *sum = register_of(loop, counter, lanes, turn);
	Value *old = builder.CreateLoad(lanes, sum);
	builder.CreateStore(builder.CreateSub(old, builder.CreateSExt(mask, lanes)), sum);
}

// All of a counter's registers, of any type.
static Value *add_up(IRBuilder<> &builder, ArrayRef<AllocaInst *> sums)
{
	MapVector<Type *, Value *> of_type;
	for (AllocaInst *sum : sums) {
		Type *type = sum->getAllocatedType();
		Value *&all = of_type[type];
		Value *one = builder.CreateLoad(type, sum);
		all = all ? builder.CreateAdd(all, one) : one;
	}
	Value *total = nullptr;
	for (auto [type, one] : of_type) {
		if (auto *lanes = dyn_cast<VectorType>(type))
			one = builder.CreateAddReduce(builder.CreateZExt(
				one, VectorType::get(builder.getInt64Ty(), lanes)));
		total = total ? builder.CreateAdd(total, one) : one;
	}
	return total;
}

void CounterPromoter::finish(function_ref<Value *(IRBuilder<> &, uint32_t)> address)
{
	SmallVector<AllocaInst *, 8> all;
	for (const auto &[key, sums] : registers) {
		SmallVector<BasicBlock *, 8> exits;
		key.first->getUniqueExitBlocks(exits);
		for (BasicBlock *exit : exits) {
			IRBuilder<> builder(&*exit->getFirstInsertionPt());
			Value *location = address(builder, key.second);
			Value *old = builder.CreateLoad(builder.getInt64Ty(), location);
			builder.CreateStore(
				builder.CreateAdd(old, add_up(builder, sums)), location);
		}
		all.append(sums.begin(), sums.end());
	}
	if (all.empty())
		return;
	DominatorTree dominators(function);
	PromoteMemToReg(all, dominators);
}

} // namespace mperf
