// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A function in two bodies: one that counts, and one that counts its entries alone

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

// Can a function be copied, and does it do enough that two bodies cost less than counting? It has
// its shape (prepare.h).
bool is_cloned(const llvm::Function &function, const llvm::LoopInfo &loops);

class Clone
{
      public:
	// Copies the body before anything was added to it. The copy is kept in a function of its
	// own until join().
	explicit Clone(llvm::Function &function);

	// An outermost loop that has a preheader, and its scope in the table. The copy counts how
	// often it is entered, and if `timed` takes its time.
	void add_nest(const llvm::Loop &loop, uint32_t scope, bool timed);

	// That loop is entered once in each entry into the function, whose count is its own, too.
	void enter_with_function(uint32_t scope);

	// What the copy has in the place of these instructions.
	void map(llvm::SmallVectorImpl<llvm::Instruction *> &instructions);

	// Puts the copy beside the body that counts by now, and in front of both the choice. names:
	// the functions by whose names it is chosen.
	void join(uint32_t scope, llvm::ArrayRef<std::string> names, Emitter &emitter, Base &base,
		Table &table);

      private:
	struct Nest {
		llvm::BasicBlock *header; // of the copy
		uint32_t scope;
		bool timed;
		bool with_function = false;
	};

	void add_choice(llvm::BasicBlock &place, llvm::BasicBlock &counting, uint32_t scope,
		llvm::ArrayRef<std::string> names, Emitter &emitter, Base &base, Table &table);
	void count_nests(Emitter &emitter, Base &base, Table &table);

	llvm::Function &function;
	llvm::Function *room; // where the copy waits
	llvm::ValueToValueMapTy copies;
	llvm::SmallVector<Nest, 4> nests;
};

} // namespace mperf
