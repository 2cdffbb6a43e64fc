// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Facts from a function's callers: how often it is entered, and whether its thread has a block

#include "flow.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace llvm
{
class CallBase;
class DominatorTree;
class Function;
class Module;
} // namespace llvm

namespace mperf
{

// The counted functions of one module; query them in their order().
class Callers
{
      public:
	// known: functions for which it is known whether control leaves them midway; counted: the
	// counted ones among them; telling: derive entries from counts of calls
	Callers(llvm::Module &module, llvm::ArrayRef<llvm::Function *> known,
		llvm::ArrayRef<llvm::Function *> counted, bool telling);

	// Callers before callees, unless they call each other.
	llvm::ArrayRef<llvm::Function *> order() const
	{
		return in_order;
	}

	// May control leave the function at a call without the function knowing? Then its counts do
	// not show how often later code was reached. A call of a function that the module does not
	// define, and that cannot throw, is assumed to return.
	bool is_left_midway(const llvm::Function &function) const;

	// Notes how often a call runs, if the callee needs to know.
	void add_calls(const llvm::CallBase &call, const Sum &times);

	// How often the function is entered, if all its calls are known; null: its callers do not
	// show it, or only by too many counters.
	const Sum *entries_of(const llvm::Function &function) const;

	// Does each thread have its block on entry? All callers ensure it: the function is called
	// only from counted code, by its name, and uses the block.
	bool is_trusted(const llvm::Function &function) const
	{
		return trusted.count(&function) != 0;
	}

      private:
	struct Calls {
		unsigned told = 0;
		Sum sum;
	};

	void find_local(llvm::ArrayRef<llvm::Function *> counted);
	void find_leaving(llvm::ArrayRef<llvm::Function *> known);
	void find_trusted(bool telling);
	bool may_leave(const llvm::CallBase &call) const;
	bool leaves(const llvm::Function &function) const;

	std::vector<llvm::Function *> in_order;
	llvm::DenseMap<const llvm::Function *, Calls> local;
	llvm::DenseSet<const llvm::Function *> leaving, trusted;
};

} // namespace mperf
