// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry into an outermost loop counts down, and when the countdown expires, it asks the runtime
// to start the clock; the runtime sets the countdown by the length of such entries. An untimed
// entry costs a subtraction in memory, a branch, and one more where the loop ends. We keep the
// word's address from begin to end, since a region may change in between.

#include "timed_loop.h"
#include "base.h"
#include "emit.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace mperf
{

namespace
{

constexpr uint32_t RARE = 1, USUAL = 1 << 10;
constexpr DomTreeUpdater *NOT_UPDATED = nullptr; // dominators: not used afterwards

// If a loop calls its own function recursively, its time would contain itself.
bool calls_itself(const Loop &loop)
{
	const Function *function = loop.getHeader()->getParent();
	return any_of(function->users(), [&](const User *user) {
		const auto *call = dyn_cast<CallBase>(user);
		return call && loop.contains(call);
	});
}

// Is it certain that no exception leaves the loop except through its exits? To a reader of running
// times, a loop left that way would seem to run on. A jump (longjmp) cannot be predicted; if we
// expected one in each C call, the loops of main, which run as long as the program, would have no
// time until they end.
bool keeps_exits(const Loop &loop)
{
	for (const BasicBlock *block : loop.blocks()) {
		for (const Instruction &instruction : *block) {
			if (!isa<InvokeInst>(instruction) && instruction.mayThrow())
				return false; // an invoke's landing pad is in the loop, or an exit
		}
	}
	return true;
}

// The first of a timed loop's words.
uint32_t add_words(Table &table, uint32_t scope)
{
	const uint32_t first = table.n_counters();
	for (uint32_t word = 0; word < MPERF_TIMED_WORDS; word++)
		table.add_counter(
			word < MPERF_TIMED_ENTRIES ? MPERF_COUNTER_STATE : MPERF_COUNTER_SUM);
	table.add_term(
		first + MPERF_TIMED_ENTRIES, scope, metric_key(MPERF_METRIC_TIMED_ENTRIES), 1);
	table.add_term(first + MPERF_TIMED_NS, scope, metric_key(MPERF_METRIC_TIME_NS), 1);
	return first;
}

} // namespace

bool LoopTimer::add(Loop &loop, uint32_t scope) const
{
	BasicBlock *before = loop.getLoopPreheader();
	if (!before || !loop.hasDedicatedExits() || calls_itself(loop))
		return false;
	SmallVector<BasicBlock *, 8> exits;
	loop.getUniqueExitBlocks(exits);
	for (BasicBlock *exit : exits) {
		if (exit->getFirstInsertionPt() == exit->end())
			return false;
	}
	const bool published = keeps_exits(loop);
	const uint32_t words = add_words(table, scope);
	MDNode *weights = MDBuilder(before->getContext()).createBranchWeights(RARE, USUAL);

	IRBuilder<> builder(before->getTerminator());
	Value *location = base.address(builder, words);
	Value *left = builder.CreateLoad(builder.getInt64Ty(), location);
	// An addition in memory that cannot overflow, and the branch, are two instructions of x86;
	// for a subtraction, the compiler no longer knows here that it cannot overflow.
	left = builder.CreateNSWAdd(left, builder.getInt64(-1));
	builder.CreateStore(left, location);
	Value *is_timed = builder.CreateICmpSLT(left, builder.getInt64(1));
	Instruction *header_jump = before->getTerminator();
	Instruction *end = SplitBlockAndInsertIfThen(
		is_timed, header_jump, false, weights, NOT_UPDATED, &loops);
	builder.SetInsertPoint(end);
	const Function &function = *before->getParent();
	Value *begun =
		emitter.call_loop_begin(builder, function, base.address(builder, words), published);
	auto *since = PHINode::Create(builder.getInt64Ty(), 2, "mperf.since");
	since->insertBefore(&header_jump->getParent()->front());
	since->addIncoming(builder.getInt64(0), before);
	since->addIncoming(begun, end->getParent());

	for (BasicBlock *exit : exits) {
		Instruction *first = &*exit->getFirstInsertionPt();
		builder.SetInsertPoint(first);
		Value *was_timed = builder.CreateIsNotNull(since);
		end = SplitBlockAndInsertIfThen(
			was_timed, first, false, weights, NOT_UPDATED, &loops);
		builder.SetInsertPoint(end);
		emitter.call_loop_end(builder, function, base.address(builder, words), since);
	}
	return true;
}

} // namespace mperf
