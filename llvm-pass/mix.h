// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What instructions count: the mix of a basic block
//
// A mix is what one execution adds to which metrics. What is known only while the program runs (the
// length of a copy, how many lanes a mask lets through) is a quantity: the program sums it up in a
// counter of its own, and its mix says what one unit of it adds.

#include "runtime/abi.h"
#include "table.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

#include <list>
#include <map>

namespace llvm
{
class CallBase;
class IntrinsicInst;
class TargetLibraryInfo;
class TargetTransformInfo;
} // namespace llvm

namespace mperf
{

class Mix
{
      public:
	void add(uint32_t metric, int64_t n, uint32_t variant = 0)
	{
		if (n != 0)
			terms[metric_key(metric, variant)] += n;
	}

	std::map<uint32_t, int64_t> terms; // by metric_key
};

enum class Unit {
	VALUE,      // an integer, unsigned
	WORDS,      // of 8 bytes, begun ones included, that an integer of bytes makes
	SIGN_LANES, // elements of a vector whose highest bit is set
	LANES,      // elements of a mask that are set; of the first `length`, where there is one
};

struct Quantity {
	Unit unit;
	llvm::Value *value;
	llvm::Value *length;   // for LANES, or null
	llvm::Instruction *at; // before it the value is known
	Mix mix;               // of one unit
};

struct BlockMix {
	Mix mix;
	std::list<Quantity> quantities; // a list, since what counts by them points at them
	bool assembly = false;
};

// How many elements an operation works on, in the vector's own unit (1, or vscale)
struct Extent {
	uint64_t issued = 1;
	uint64_t active = 1;          // where no quantity says it
	Quantity *quantity = nullptr; // says how many are active
	bool vector = false;
	bool scalable = false;
};

class MixReader
{
      public:
	MixReader(const llvm::DataLayout &layout, const llvm::TargetTransformInfo &target,
		const llvm::TargetLibraryInfo &library)
	    : layout(layout), target(target), library(library)
	{
	}

	// What the instructions of a block count, calls' callees excluded.
	BlockMix read(llvm::BasicBlock &block);

      private:
	friend class IntrinsicMix;

	void read(llvm::Instruction &instruction);
	void read_memory(llvm::Instruction &instruction);
	void read_call(llvm::CallBase &call);
	bool read_library_call(llvm::CallBase &call, llvm::StringRef name);
	bool read_intrinsic(llvm::IntrinsicInst &call);
	void find_tail(llvm::BasicBlock &block);

	const llvm::DataLayout &layout;
	const llvm::TargetTransformInfo &target;
	const llvm::TargetLibraryInfo &library;
	BlockMix *into = nullptr;
	// What says how many lanes of this block's unmasked arithmetic are meant: of a vector of
	// tail_lanes.
	Quantity *tail = nullptr;
	uint64_t tail_lanes = 0;
};

// How many elements a type has, all active.
Extent extent_of(const llvm::Type *type);

// The metric of floating operations on a type's elements.
uint32_t float_metric(const llvm::Type *type);

// Finds or adds a quantity of a block; null where its value is no such thing.
Quantity *find_quantity(
	BlockMix &into, Unit unit, llvm::Value *value, llvm::Value *length, llvm::Instruction &at);

// What a mask lets through of `all`. Constant masks make no quantity.
Extent masked(
	BlockMix &into, Extent all, llvm::Value *mask, llvm::Value *length, llvm::Instruction &at);

// Adds operations, one for each active lane and `each`.
void add_operations(BlockMix &into, uint32_t metric, uint64_t each, const Extent &extent);

// Adds an access of `bytes` an element, of an extent.
void add_access(BlockMix &into, bool is_store, uint64_t element_bytes, const Extent &extent,
	const llvm::Value *pointer);

// Is that memory one of the function's locals?
bool is_local(const llvm::Value *pointer);

// Makes the code that computes a quantity, as 64 bits, in units.
llvm::Value *compute_quantity(llvm::IRBuilder<> &builder, const Quantity &quantity);

// Intrinsics of one target (RVV, x86), by name. False: it is none that is counted.
bool read_riscv_intrinsic(BlockMix &into, llvm::CallBase &call);
bool read_x86_intrinsic(BlockMix &into, llvm::CallBase &call);

} // namespace mperf
