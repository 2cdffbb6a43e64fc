// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts of one execution: a mix, and quantities known only at run time
//
// A mix lists the amounts that one execution adds to metrics. A quantity is known only at run time
// (the length of a copy, the number of active lanes of a mask): the program sums it up in a
// separate counter, and its mix lists the amounts that one unit of it adds.

#include "table.h"

#include "llvm/IR/IRBuilder.h"

#include <map>

namespace mperf
{

// Owner of a count: OWN, or a callee: its index among the block's callees (BlockMix) plus 1; once
// the block is read, its scope's number plus 1.
using Owner = uint32_t;
constexpr Owner OWN = 0;

class Mix
{
      public:
	void add(uint32_t metric, int64_t n, uint32_t variant = 0, Owner owner = OWN)
	{
		if (n != 0)
			terms[{owner, metric_key(metric, variant)}] += n;
	}

	std::map<std::pair<Owner, uint32_t>, int64_t> terms; // by metric_key
};

enum class Unit {
	VALUE,      // an integer, unsigned
	WORDS,      // a byte count in words of 8 bytes, rounded up
	SIGN_LANES, // elements of a vector whose highest bit is set
	LANES,      // set elements of a mask; of the first `length`, if any
};

struct Quantity {
	Unit unit;
	llvm::Value *value;
	llvm::Value *length;   // for LANES, or null
	llvm::Instruction *at; // the value is known before it
	Mix mix;               // of one unit
};

// Emits the code that computes a quantity in units, as 64 bits.
llvm::Value *compute_quantity(llvm::IRBuilder<> &builder, const Quantity &quantity);

} // namespace mperf
