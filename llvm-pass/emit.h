// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the pass adds to a module: counters, table, registration, and a function's way to its block

#include "table.h"

#include "llvm/IR/IRBuilder.h"

namespace llvm
{
class AllocaInst;
class Function;
class FunctionCallee;
class GlobalVariable;
class Module;
} // namespace llvm

namespace mperf
{

// Of one module. Names that begin with __mperf_ are the program's and the runtime's in common.
class Emitter
{
      public:
	explicit Emitter(llvm::Module &module);

	// The address that a counter of the module has without a bias. It has a name of its own:
	// code that must not know its own place reaches no other by an offset in one step.
	llvm::Constant *counter_address(uint32_t counter);
	llvm::GlobalVariable *bias();
	llvm::GlobalVariable *object();
	// What is called rarely, of preserve_most where the target has that.
	llvm::FunctionCallee enter();
	llvm::FunctionCallee nest_begin();
	llvm::FunctionCallee nest_end();
	llvm::FunctionCallee draw();
	// The word by which entries into a function choose, and the names that the runtime chooses
	// it by (struct mperf_choice).
	llvm::Constant *add_choice(llvm::ArrayRef<std::string> names);

	// Ends the module's instrumentation: makes the array of all counters, the table, and the
	// functions that register them. flags: enum mperf_module_flag.
	void finish(const Table &table, uint32_t flags);

	llvm::Module &module;

      private:
	// From a constructor and a destructor of which the linker keeps one, with these arguments.
	void add_registration(llvm::StringRef what, llvm::ArrayRef<llvm::Constant *> arguments);
	llvm::Function *make_function(llvm::StringRef name, llvm::FunctionType *type);
	llvm::FunctionCallee rare_call(llvm::StringRef name, llvm::StringRef outside,
		llvm::Type *result, llvm::ArrayRef<llvm::Type *> parameters);
	bool preserves_most() const;

	llvm::GlobalVariable *counters; // placeholder until finish()
	bool has_choices = false;
};

// Where one function's counters are: an address that its thread's bias leads to. Made of uses
// first; place() then finds where it is best computed.
class Base
{
      public:
	Base(Emitter &emitter, llvm::Function &function, uint32_t first_counter);

	// The address of a counter, for code at the builder's place.
	llvm::Value *address(llvm::IRBuilder<> &builder, uint32_t counter);

	// Makes sure that the thread has its block before that instruction.
	void use_before(llvm::Instruction &instruction);

	// Computes the base where all uses can see it, and anew after each of `anew` (regions that
	// begin or end). trusted: a counted caller is certain, which gave its thread a block.
	void place(llvm::ArrayRef<llvm::Instruction *> anew, bool trusted, uint32_t n_counters);

      private:
	void compute_at(llvm::Instruction *before, bool trusted, llvm::Constant *place);
	llvm::Instruction *find_place();

	Emitter &emitter;
	llvm::Function &function;
	llvm::AllocaInst *slot; // becomes a register
	uint32_t first;
	// What address() made, whose distance from the base is known at last.
	std::vector<std::pair<llvm::GetElementPtrInst *, uint32_t>> addresses;
};

} // namespace mperf
