// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Operations of a block that the code generator merges

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace llvm
{
class BasicBlock;
class Instruction;
class Value;
} // namespace llvm

namespace mperf
{

// Form of an operation in machine code
enum class Form {
	OWN,      // an instruction of its own
	REPEATED, // none: an equal one is above it in its block
	SCALAR,   // an operation on one lane, whose result is copied to the others
};

class Merging
{
      public:
	// For a block of a function that is optimised, or not.
	explicit Merging(bool optimised) : optimised(optimised)
	{
	}

	// Takes the instructions of the block in order, each once.
	Form add(const llvm::Instruction &instruction);

      private:
	using Known = llvm::DenseMap<uint64_t, llvm::SmallVector<const llvm::Instruction *, 1>>;

	bool is_broadcast(const llvm::Value *value) const;
	bool is_scalar(const llvm::Instruction &instruction) const;
	const llvm::Value *first_of(const llvm::Value *value) const;
	uint64_t hash_of(const llvm::Instruction &instruction) const;
	bool are_equal(const llvm::Instruction &one, const llvm::Instruction &other) const;
	bool is_repeated(const llvm::Instruction &instruction, Known &known);

	const bool optimised;
	Known values, loads; // loads since the last write
	// The first of equal ones, for each of the others.
	llvm::DenseMap<const llvm::Value *, const llvm::Value *> firsts;
	llvm::SmallPtrSet<const llvm::Value *, 8> broadcasts;
};

} // namespace mperf
