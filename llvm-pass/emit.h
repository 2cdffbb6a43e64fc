// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Additions of the pass to a module: counters, table, registration

#include "options.h"
#include "table.h"

#include "llvm/IR/IRBuilder.h"

namespace llvm
{
class CallInst;
class Function;
class GlobalVariable;
class Module;
} // namespace llvm

namespace mperf
{

// Emits into one module. Names that begin with __mperf_ are shared by the program and the runtime.
class Emitter
{
      public:
	Emitter(llvm::Module &module, const Options &options);

	// The address of a counter of the module without a bias. It has its own symbol, since
	// position-independent code can reach only symbols of the module by one offset.
	llvm::Constant *counter_address(uint32_t counter);
	llvm::GlobalVariable *bias();
	llvm::GlobalVariable *object();
	// Calls of the runtime, which are rare. `in`: the calling function; the calls have no
	// source lines.
	llvm::Value *call_enter(llvm::IRBuilder<> &builder, const llvm::Function &in);
	llvm::Value *call_loop_begin(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Value *words, bool published);
	void call_loop_end(llvm::IRBuilder<> &builder, const llvm::Function &in, llvm::Value *words,
		llvm::Value *since);
	// Does this entry count? 32 bits, 0: no.
	llvm::Value *call_draw(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Value *words, llvm::Value *one_in);
	// The variable by which entries into a function choose, and the names by which the runtime
	// selects it (struct mperf_choice).
	llvm::Constant *add_choice(llvm::ArrayRef<std::string> names);

	// Completes the module's instrumentation: makes the array of all counters, the table, and
	// the functions that register them. flags: enum mperf_module_flag.
	void finish(const Table &table, uint32_t flags);

	llvm::Module &module;
	// Are addresses without a bias valid for loads and stores in the segment %gs?
	const bool has_segment;
	// Does reading the bias take a call in libraries?
	const bool has_dynamic_tls;

      private:
	// Called with these arguments by a constructor and a destructor, of which the linker keeps
	// one.
	void add_registration(llvm::StringRef what, llvm::ArrayRef<llvm::Constant *> arguments);
	llvm::Function *make_function(llvm::StringRef name, llvm::FunctionType *type);
	llvm::Function *rare_function(
		llvm::StringRef name, llvm::StringRef outside, llvm::FunctionType *type);
	llvm::CallInst *call_rarely(llvm::IRBuilder<> &builder, const llvm::Function &in,
		llvm::Function *callee, llvm::ArrayRef<llvm::Value *> arguments, bool is_frameless);
	bool preserves_most() const;
	bool is_frameless(const llvm::Function &function);

	const llvm::Function *looked_through = nullptr; // and has_frame is its
	bool has_frame = false;
	llvm::GlobalVariable *counters; // placeholder until finish()
	bool has_choices = false;
};

} // namespace mperf
