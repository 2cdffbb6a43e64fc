// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Placement of the code of a function's counters

#include "promote.h"

namespace llvm
{
class BasicBlock;
class DominatorTree;
class Function;
class Instruction;
class Loop;
class LoopInfo;
class Value;
} // namespace llvm

namespace mperf
{

class Base;
class Scopes;
class Table;
struct Breaks;
struct Counts;
struct Meaning;
struct Options;
struct Quantity;
struct Update;

// For one function; its inputs are borrowed.
class Placer
{
      public:
	// Construct it before edges are split.
	Placer(llvm::Function &function, llvm::LoopInfo &loops, Hoister &hoister, Base &base,
		const Options &options)
	    : function(function), loops(loops), hoister(hoister), base(base), options(options),
	      promoter(function, hoister, loops)
	{
	}

	// Gives quantities their own counters, and rows to these.
	void add_quantities(const Meaning &meaning, const Scopes &scopes, Table &table);

	// Adds the code of all updates. Splits edges; dominators are then out of date.
	void add_counters(const Counts &counts, const Breaks &breaks);

	// Finishes after all additions: recomputes dominators, and adds promoted counters to
	// memory.
	void finish(llvm::DominatorTree &dominators);

      private:
	bool is_promoted(const llvm::BasicBlock &block, bool is_mask) const;
	unsigned lane_bits(const Quantity &quantity, llvm::Loop *outer) const;
	void add_update(
		llvm::Instruction *before, uint32_t counter, llvm::Value *amount, llvm::Loop *loop);
	void add_hoisted(const Update &update);

	llvm::Function &function;
	llvm::LoopInfo &loops;
	Hoister &hoister;
	Base &base;
	const Options &options;
	CounterPromoter promoter;
};

} // namespace mperf
