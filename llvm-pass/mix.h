// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The mix of a basic block, and its parts

#include "quantity.h"

#include <list>

namespace mperf
{

// A callee without counts, and the place of the call in a block
struct Callee {
	std::string name, source;
	uint32_t line = 0, line_last = 0; // 0: not known
};

struct BlockMix {
	Mix mix;
	std::vector<Callee> callees;
	std::list<Quantity> quantities; // a list, since others point to its elements
	bool assembly = false;
};

// The number of elements of an operation, in the vector's own unit (1, or vscale)
struct Extent {
	uint64_t issued = 1;
	uint64_t active = 1;          // if no quantity gives it
	Quantity *quantity = nullptr; // gives the number of active elements
	bool vector = false;
	bool scalable = false;
};

// The number of a type's elements, as if all were active.
Extent extent_of(const llvm::Type *type);

// The metric of floating operations on a type's elements.
uint32_t float_metric(const llvm::Type *type);

// Finds or adds a quantity of a block; null if its value is not suitable.
Quantity *find_quantity(
	BlockMix &into, Unit unit, llvm::Value *value, llvm::Value *length, llvm::Instruction &at);

// The elements of `all` that a mask selects. Constant masks make no quantity.
Extent masked(
	BlockMix &into, Extent all, llvm::Value *mask, llvm::Value *length, llvm::Instruction &at);

// The owner of the counts of a call of that function, besides the call itself.
Owner find_callee(BlockMix &into, llvm::StringRef name, const llvm::Instruction &call);

// Adds the lanes of an operation or access on a vector.
void add_lanes(BlockMix &into, const Extent &extent);

// Adds `each` operations per active lane.
void add_operations(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent);

// Adds an access of element_bytes per element of an extent.
void add_access(BlockMix &into, bool is_store, uint64_t element_bytes, const Extent &extent,
	const llvm::Value *pointer);

// Does the pointer lead to one of the function's locals?
bool is_local(const llvm::Value *pointer);

} // namespace mperf
