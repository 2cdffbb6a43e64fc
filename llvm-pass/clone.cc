// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If counting is expensive, it need not happen always. A function then has two bodies, and each
// entry chooses one:
//
//      entries += 1 ─▶ chosen? ─ no ────────────────────────▶ the original body
//                        │                                      ▲
//                        └ yes ─▶ each? ─ no ─▶ its turn? ─ no ─┘
//                                  │ yes          │ yes
//                                  └──────────────┴─────────▶ the counting body
//
// An unselected entry costs a load of one word and a branch beside the count of entries. The word
// belongs to the function, for the whole process, and the runtime writes it (runtime/select.c), so
// a choice takes effect with the next entry; each thread counts down to its own turn.
//
// Both bodies are in one function: no call is added, its name in profiles stays, and locals have
// one place. The copy also counts how often each outermost loop is entered, and times it like the
// other body, so that two runs can be compared. Callees choose for themselves: each function is
// scaled by its own entries over counted entries, and no state passes through calls that may throw,
// jump, or come from uninstrumented code.

#include "clone.h"
#include "base.h"
#include "emit.h"
#include "timed_loop.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Instructions that may not be duplicated, or whose position in the function matters.
bool is_unique(const Instruction &instruction)
{
	if (isa<IndirectBrInst>(instruction) || isa<CallBrInst>(instruction))
		return true;
	const auto *call = dyn_cast<CallBase>(&instruction);
	if (!call)
		return false;
	const auto *intrinsic = dyn_cast<IntrinsicInst>(call);
	return call->cannotDuplicate() || call->isConvergent() ||
	       (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::localescape);
}

bool is_static_local(const Instruction &instruction)
{
	const auto *local = dyn_cast<AllocaInst>(&instruction);
	return local && local->isStaticAlloca();
}

void add_one(IRBuilder<> &builder, Value *location)
{
	Value *old = builder.CreateLoad(builder.getInt64Ty(), location);
	builder.CreateStore(builder.CreateAdd(old, builder.getInt64(1)), location);
}

void count_entries(uint32_t scope, BasicBlock &before, Base &base, Table &table)
{
	const uint32_t entries = table.add_counter();
	table.add_term(entries, scope, metric_key(MPERF_METRIC_ENTRIES), 1);
	table.add_term(entries, scope, metric_key(MPERF_METRIC_UPDATES), 1);
	IRBuilder<> builder(before.getTerminator());
	add_one(builder, base.address(builder, entries));
}

} // namespace

// A function without branches is already counted by its entries.
bool is_cloned(const Function &function, const LoopInfo &loops)
{
	bool has_memory = false;
	for (const BasicBlock &block : function) {
		if (block.hasAddressTaken())
			return false;
		for (const Instruction &instruction : block) {
			if (is_unique(instruction))
				return false;
			has_memory = has_memory || instruction.mayReadOrWriteMemory();
		}
	}
	return !loops.empty() || (has_memory && function.size() > 1);
}

Clone::Clone(Function &function) : function(function)
{
	holder = Function::Create(function.getFunctionType(), GlobalValue::InternalLinkage,
		function.getAddressSpace(), "mperf.plain", function.getParent());
#if LLVM_VERSION_MAJOR >= 19
	holder->setIsNewDbgInfoFormat(function.IsNewDbgInfoFormat);
#endif
	SmallVector<BasicBlock *, 16> blocks;
	for (BasicBlock &block : function) {
		BasicBlock *copy = CloneBasicBlock(&block, copies, ".plain", holder);
		copies[&block] = copy;
		blocks.push_back(copy);
	}
	// Both bodies share the locals.
	for (Instruction &instruction : function.getEntryBlock()) {
		if (!is_static_local(instruction))
			continue;
		cast<Instruction>(copies[&instruction])->eraseFromParent();
		copies[&instruction] = &instruction;
	}
	remapInstructionsInBlocks(blocks, copies);
}

void Clone::add_nest(const Loop &loop, uint32_t scope, bool timed)
{
	nests.push_back({cast<BasicBlock>(copies[loop.getHeader()]), scope, timed});
}

void Clone::enter_with_function(uint32_t scope)
{
	for (Nest &nest : nests)
		nest.with_function = nest.with_function || nest.scope == scope;
}

void Clone::map(SmallVectorImpl<Instruction *> &instructions)
{
	for (Instruction *&instruction : instructions)
		instruction = cast<Instruction>(copies[instruction]);
}

// Counts each entry, whichever body it takes.
void Clone::add_choice(BasicBlock &insertion_point, BasicBlock &counting, uint32_t scope,
	ArrayRef<std::string> names, Emitter &emitter, Base &base, Table &table)
{
	const uint32_t entries = table.add_counter();
	table.add_term(entries, scope, metric_key(MPERF_METRIC_ENTRIES), 1);
	table.add_term(entries, scope, metric_key(MPERF_METRIC_UPDATES), 1);
	for (const Nest &nest : nests) {
		if (nest.with_function)
			table.add_term(entries, nest.scope, metric_key(MPERF_METRIC_ENTRIES), 1);
	}
	const uint32_t turn = table.add_counter(MPERF_COUNTER_STATE);
	for (uint32_t word = 1; word < MPERF_TURN_WORDS; word++)
		table.add_counter(MPERF_COUNTER_STATE);

	LLVMContext &context = function.getContext();
	BasicBlock &plain = *cast<BasicBlock>(copies[&counting]);
	auto *chosen = BasicBlock::Create(context, "mperf.chosen", &function);
	auto *some = BasicBlock::Create(context, "mperf.some", &function);
	auto *draw = BasicBlock::Create(context, "mperf.draw", &function);

	IRBuilder<> builder(&insertion_point);
	add_one(builder, base.address(builder, entries));
	LoadInst *one_in = builder.CreateLoad(builder.getInt32Ty(), emitter.add_choice(names));
	one_in->setAtomic(AtomicOrdering::Monotonic);
	builder.CreateCondBr(builder.CreateIsNull(one_in), &plain, chosen);
	builder.SetInsertPoint(chosen);
	builder.CreateCondBr(builder.CreateICmpSLT(one_in, builder.getInt32(0)), &counting, some);

	// Without overflow, addition in memory and branch are two instructions of x86.
	builder.SetInsertPoint(some);
	Value *words = base.address(builder, turn);
	Value *left = builder.CreateLoad(builder.getInt64Ty(), words);
	left = builder.CreateNSWAdd(left, builder.getInt64(-1));
	builder.CreateStore(left, words);
	MDBuilder weights(context);
	builder.CreateCondBr(builder.CreateICmpSLT(left, builder.getInt64(1)), draw, &plain,
		weights.createBranchWeights(1, 1 << 10));

	builder.SetInsertPoint(draw);
	Value *drawn = emitter.call_draw(builder, function, base.address(builder, turn), one_in);
	builder.CreateCondBr(builder.CreateIsNull(drawn), &plain, &counting);
}

void Clone::count_nests(Emitter &emitter, Base &base, Table &table)
{
	DominatorTree dominators(function);
	LoopInfo loops(dominators);
	const LoopTimer timer = {emitter, base, table, loops};
	for (const Nest &nest : nests) {
		Loop *loop = loops.getLoopFor(nest.header);
		BasicBlock *before = loop ? loop->getLoopPreheader() : nullptr;
		if (!before)
			continue;
		if (!nest.with_function)
			count_entries(nest.scope, *before, base, table);
		if (nest.timed)
			timer.add(*loop, nest.scope);
	}
}

void Clone::join(
	uint32_t scope, ArrayRef<std::string> names, Emitter &emitter, Base &base, Table &table)
{
	BasicBlock &counting = function.getEntryBlock();
	function.splice(function.end(), holder);
	holder->eraseFromParent();
	auto *insertion_point =
		BasicBlock::Create(function.getContext(), "mperf.choice", &function, &counting);
	add_choice(*insertion_point, counting, scope, names, emitter, base, table);
	// Allocas of fixed size must stay in the entry block.
	Instruction *first = &insertion_point->front();
	for (Instruction &instruction : make_early_inc_range(counting)) {
		const auto *local = dyn_cast<AllocaInst>(&instruction);
		if (local && isa<ConstantInt>(local->getArraySize()))
			instruction.moveBefore(first);
	}
	count_nests(emitter, base, table);
}

} // namespace mperf
