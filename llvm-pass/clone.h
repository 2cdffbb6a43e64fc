// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A function in two bodies: one that counts, and one that only counts its entries

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

#include <cstdint>
#include <string>

namespace llvm
{
class BasicBlock;
class Function;
class Instruction;
class Loop;
class LoopInfo;
} // namespace llvm

namespace mperf
{

class Base;
class Emitter;
class Table;

// Can a function be copied, and does it do enough that two bodies cost less than counting? It must
// be in shape (prepare.h).
bool is_cloned(const llvm::Function &function, const llvm::LoopInfo &loops);

class Clone
{
      public:
	// Copies the body before anything is added to it. Until join(), a separate function holds
	// the copy.
	explicit Clone(llvm::Function &function);

	// An outermost loop with a preheader, and its scope in the table. The copy counts its
	// entries, and times it if `timed`.
	void add_nest(const llvm::Loop &loop, uint32_t scope, bool timed);

	// Each entry into the function enters that loop once, so both have the same count.
	void enter_with_function(uint32_t scope);

	// Replaces these instructions by those of the copy.
	void map(llvm::SmallVectorImpl<llvm::Instruction *> &instructions);

	// Puts the copy beside the counting body, and the choice in front of both. names: the names
	// by which the function is selected.
	void join(uint32_t scope, llvm::ArrayRef<std::string> names, Emitter &emitter, Base &base,
		Table &table);

      private:
	struct Nest {
		llvm::BasicBlock *header; // of the copy
		uint32_t scope;
		bool timed;
		bool with_function = false;
	};

	void add_choice(llvm::BasicBlock &insertion_point, llvm::BasicBlock &counting,
		uint32_t scope, llvm::ArrayRef<std::string> names, Emitter &emitter, Base &base,
		Table &table);
	void count_nests(Emitter &emitter, Base &base, Table &table);

	llvm::Function &function;
	llvm::Function *holder; // holds the copy until join()
	llvm::ValueToValueMapTy copies;
	llvm::SmallVector<Nest, 4> nests;
};

} // namespace mperf
