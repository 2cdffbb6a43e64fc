// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reader of the instructions of a basic block: makes their mix

#include "merging.h"
#include "mix.h"

#include <optional>

namespace llvm
{
class CallBase;
class DataLayout;
class IntrinsicInst;
class TargetLibraryInfo;
class TargetTransformInfo;
} // namespace llvm

namespace mperf
{

class MixReader
{
      public:
	MixReader(const llvm::DataLayout &layout, const llvm::TargetTransformInfo &target,
		const llvm::TargetLibraryInfo &library)
	    : layout(layout), target(target), library(library)
	{
	}

	// Counts of a block's instructions, excluding callees.
	BlockMix read(llvm::BasicBlock &block);

      private:
	void read(llvm::Instruction &instruction, Form form);
	void read_memory(llvm::Instruction &instruction);
	void read_call(llvm::CallBase &call);
	void add_call(llvm::CallBase &call, bool is_unseen);
	void add_callee(const llvm::CallBase &call, llvm::StringRef name);
	bool read_library_call(llvm::CallBase &call, llvm::StringRef symbol);
	bool read_intrinsic(llvm::IntrinsicInst &call);
	void find_tail(llvm::BasicBlock &block);

	const llvm::DataLayout &layout;
	const llvm::TargetTransformInfo &target;
	const llvm::TargetLibraryInfo &library;
	BlockMix *into = nullptr;
	std::optional<Merging> merging;
	const llvm::BasicBlock *last = nullptr; // block that was read
	// Says how many lanes of this block's unmasked arithmetic are meant, for vectors of
	// tail_lanes.
	Quantity *tail = nullptr;
	uint64_t tail_lanes = 0;
};

} // namespace mperf
