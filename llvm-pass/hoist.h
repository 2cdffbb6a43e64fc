// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Hoisting: counting a loop's iterations once, outside it, by its trip count

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

#include <cstdint>
#include <optional>

namespace llvm
{
class BasicBlock;
class DominatorTree;
class Loop;
class LoopInfo;
class PHINode;
class SCEV;
class SCEVExpander;
class ScalarEvolution;
class TargetTransformInfo;
class Value;
} // namespace llvm

namespace mperf
{

struct Hoist {
	llvm::Loop *loop;
	llvm::BasicBlock *insertion_point; // its end adds the amount
	const llvm::SCEV *
		amount; // how often the loop's header runs for one run of `insertion_point`; 64 bits
	std::optional<uint64_t>
		constant; // the same, if constant and insertion_point is the preheader
	// A value whose 2^shift-th part, rounded down, is the amount: the distance that the loop
	// covers, which it often has computed already. Null: only the amount.
	const llvm::SCEV *distance = nullptr;
	unsigned shift = 0;
	// If the amount is known only in the loop's exits: an induction variable whose distance
	// from its start, in steps, is the amount. Each exit block adds it.
	llvm::PHINode *induction = nullptr;
	int64_t step = 0;
};

class Hoister
{
      public:
	Hoister(llvm::ScalarEvolution &evolution, const llvm::DominatorTree &dominators,
		const llvm::TargetTransformInfo &target, llvm::SCEVExpander &expander)
	    : evolution(evolution), dominators(dominators), target(target), expander(expander)
	{
	}

	// Plans how to count the iterations of a loop without counting each; or nothing.
	std::optional<Hoist> plan(llvm::Loop &loop);

	// Does control certainly continue from each instruction of the loop, and stay in the
	// function?
	bool passes_control(const llvm::Loop &loop);

	// Does a block, in `innermost` and no loop inside that, certainly run fewer than 2^31 times
	// per run of `outermost`?
	bool is_short(const llvm::BasicBlock &block, const llvm::Loop &innermost,
		const llvm::Loop &outermost);

	// Emits the code that computes the amount, at its insertion point.
	llvm::Value *expand(const Hoist &hoist);

	// The same for a hoist with an induction variable, in an exit block of its loop.
	llvm::Value *expand_in_exit(const Hoist &hoist, llvm::IRBuilder<> &builder);

      private:
	bool covers_step(
		const llvm::SCEV *distance, const llvm::APInt &step, const llvm::Loop &loop);
	void set_amount(Hoist &hoist, const llvm::SCEV *backedges_taken);
	llvm::Value *last_of(const Hoist &hoist, llvm::BasicBlock &exit, llvm::Value *&more);
	std::optional<Hoist> plan_in_exits(llvm::Loop &loop);
	static bool repeats_within(const llvm::BasicBlock &block, const llvm::Loop &loop);
	const llvm::SCEV *runs_of(const llvm::BasicBlock *insertion_point, const llvm::Loop &loop);
	const llvm::SCEV *sum_over(
		const llvm::SCEV *amount, const llvm::Loop &loop, const llvm::SCEV *runs);
	bool can_expand(const llvm::SCEV *amount, const llvm::BasicBlock &insertion_point,
		llvm::Loop &loop);

	llvm::ScalarEvolution &evolution;
	const llvm::DominatorTree &dominators;
	const llvm::TargetTransformInfo &target;
	llvm::SCEVExpander &expander;
	llvm::DenseMap<const llvm::Loop *, bool> passing;
};

} // namespace mperf
