// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the pass adds to a module: counters, table, registration, and a function's way to its block

#include "table.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm
{
class AllocaInst;
class CallInst;
class Function;
class GlobalVariable;
class Module;
} // namespace llvm

namespace mperf
{

// Of one module. Names that begin with __mperf_ are the program's and the runtime's in common.
class Emitter
{
      public:
	// use_segment: counters may be reached through %gs where that can be.
	Emitter(llvm::Module &module, bool use_segment);

	// The address that a counter of the module has without a bias. It has a name of its own:
	// code that must not know its own place reaches no other by an offset in one step.
	llvm::Constant *counter_address(uint32_t counter);
	llvm::GlobalVariable *bias();
	llvm::GlobalVariable *object();
	// Calls of the runtime, which are rare. `in`: whose line they are not of.
	llvm::Value *call_enter(llvm::IRBuilder<> &builder, const llvm::Function &in);
	llvm::Value *call_nest_begin(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Value *words, bool published);
	void call_nest_end(llvm::IRBuilder<> &builder, const llvm::Function &in, llvm::Value *words,
		llvm::Value *since);
	// Whose turn it is to count. 32 bits, 0: not this entry's.
	llvm::Value *call_draw(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Value *words, llvm::Value *one_in);
	// The word by which entries into a function choose, and the names that the runtime chooses
	// it by (struct mperf_choice).
	llvm::Constant *add_choice(llvm::ArrayRef<std::string> names);

	// Ends the module's instrumentation: makes the array of all counters, the table, and the
	// functions that register them. flags: enum mperf_module_flag.
	void finish(const Table &table, uint32_t flags);

	llvm::Module &module;
	// An address without a bias is good for loads and stores in the segment %gs.
	const bool has_segment;

      private:
	// From a constructor and a destructor of which the linker keeps one, with these arguments.
	void add_registration(llvm::StringRef what, llvm::ArrayRef<llvm::Constant *> arguments);
	llvm::Function *make_function(llvm::StringRef name, llvm::FunctionType *type);
	llvm::Function *rare_function(
		llvm::StringRef name, llvm::StringRef outside, llvm::FunctionType *type);
	llvm::CallInst *call_rarely(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Function *callee, llvm::ArrayRef<llvm::Value *> arguments, bool is_frameless);
	bool preserves_most() const;

	llvm::GlobalVariable *counters; // placeholder until finish()
	bool has_choices = false;
};

// How often blocks run, in any unit.
using Frequencies = llvm::DenseMap<const llvm::BasicBlock *, uint64_t>;

// Where one function's counters are: an address that its thread's bias leads to. Made of uses
// first; place() then finds where it is best computed.
class Base
{
      public:
	Base(Emitter &emitter, llvm::Function &function, uint32_t first_counter);

	// The address of a counter, for code at the builder's place.
	llvm::Value *address(llvm::IRBuilder<> &builder, uint32_t counter);

	// The thread is to have its block when it comes to that instruction.
	void require_at(llvm::Instruction &instruction);

	// Computes the base before all that uses it, where that is rarest, and anew after each of
	// `anew` (regions that begin or end). trusted: the thread is certain to have its block.
	void place(llvm::ArrayRef<llvm::Instruction *> anew, bool trusted, uint32_t n_counters,
		const Frequencies &frequencies);

      private:
	llvm::Value *load_bias(llvm::IRBuilder<> &builder);
	llvm::Value *find_bias(llvm::IRBuilder<> &builder);
	void compute_at(llvm::Instruction *before, bool trusted);
	void place_in_segment(llvm::ArrayRef<llvm::Instruction *> anew, bool trusted,
		int64_t middle, const Frequencies &frequencies);
	bool use_segment();
	std::vector<llvm::Instruction *> first_uses(const Frequencies &frequencies);
	std::vector<llvm::BasicBlock *> find_places(const Frequencies &frequencies);
	llvm::Instruction *first_use(llvm::BasicBlock &block);
	void keep_locals_first();
	void drop_unused();

	Emitter &emitter;
	llvm::Function &function;
	llvm::AllocaInst *slot; // becomes a register
	uint32_t first;
	// What address() made, whose distance from the base is known at last.
	std::vector<std::pair<llvm::GetElementPtrInst *, uint32_t>> addresses;
	llvm::Constant *origin = nullptr; // the base, without a bias
	size_t n_using = 2;               // blocks that use it, as far as that is known
	llvm::DominatorTree dominators;   // of what place() left
};

} // namespace mperf
