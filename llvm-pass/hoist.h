// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counting a loop's rounds from without: once, by its trip count, before it begins

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
	llvm::BasicBlock *place; // at whose end the amount is added
	const llvm::SCEV
		*amount; // how often the loop's header runs for one run of `place`; 64 bits
	std::optional<uint64_t> constant; // the same, where it is a number and place the preheader
	// A value of which the amount is the 2^shift-th part, rounded down: how far the loop goes,
	// which it often has computed already. Null: the amount alone.
	const llvm::SCEV *way = nullptr;
	unsigned shift = 0;
	// Where the amount is not known before the loop, but behind it: by how far that value went
	// from its start, in steps. It is added in each block that the loop is left to.
	llvm::PHINode *walker = nullptr;
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

	// How the rounds of a loop can be counted without counting each, or nothing.
	std::optional<Hoist> plan(llvm::Loop &loop);

	// Is control certain to go on from each instruction of the loop, and not out of the
	// function?
	bool passes_control(const llvm::Loop &loop);

	// Is a block of `innermost` certain to run fewer than 2^31 times for one run of
	// `outermost`?
	bool is_short(const llvm::Loop &innermost, const llvm::Loop &outermost);

	// Makes the code that computes the amount, at the end of its place.
	llvm::Value *expand(const Hoist &hoist);

	// The same for one with a walker, in a block that its loop is left to.
	llvm::Value *expand_behind(const Hoist &hoist, llvm::IRBuilder<> &builder);

      private:
	bool goes_way(const llvm::SCEV *way, const llvm::APInt &step, const llvm::Loop &loop);
	void set_amount(Hoist &hoist, const llvm::SCEV *back);
	llvm::Value *last_of(const Hoist &hoist, llvm::BasicBlock &exit, llvm::Value *&more);
	std::optional<Hoist> plan_behind(llvm::Loop &loop);
	const llvm::SCEV *runs_of(const llvm::BasicBlock *place, const llvm::Loop &loop);
	const llvm::SCEV *sum_over(
		const llvm::SCEV *amount, const llvm::Loop &loop, const llvm::SCEV *runs);
	bool can_expand(const llvm::SCEV *amount, const llvm::BasicBlock &place, llvm::Loop &loop);

	llvm::ScalarEvolution &evolution;
	const llvm::DominatorTree &dominators;
	const llvm::TargetTransformInfo &target;
	llvm::SCEVExpander &expander;
	llvm::DenseMap<const llvm::Loop *, bool> passing;
};

} // namespace mperf
