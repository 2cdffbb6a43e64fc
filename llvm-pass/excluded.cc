// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A resolver of an indirect function runs while the program is relocated: in a static program,
// before the C library has set up thread-local storage, where a counted function looks for its
// counters. Nothing that a resolver calls may be counted. What it calls in other modules, or by
// addresses, only the source knows: __attribute__((annotate("no_mperf"))). The functions between
// which it chooses run later, and are counted.
//
// Source: glibc 2.36, csu/libc-start.c: apply_irel() comes before __libc_setup_tls() on some targets,
// and after it on others.

#include "excluded.h"
#include "remarks.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mperf
{

namespace
{

// A function's body, through casts and aliases; null: none here.
Function *body_of(Value *value)
{
	auto *function = dyn_cast<Function>(value->stripPointerCastsAndAliases());
	return function && !function->isDeclaration() ? function : nullptr;
}

// Functions that a function calls, and functions that it passes to its callees, which may call them
// (pthread_once).
SmallVector<Function *, 8> callees_of(Function &function)
{
	SmallVector<Function *, 8> callees;
	for (BasicBlock &block : function) {
		for (Instruction &instruction : block) {
			auto *call = dyn_cast<CallBase>(&instruction);
			if (!call)
				continue;
			for (Value *operand : call->operands()) {
				if (Function *callee = operand->getType()->isPointerTy()
							       ? body_of(operand)
							       : nullptr)
					callees.push_back(callee);
			}
		}
	}
	return callees;
}

void exclude_reached(Function &resolver)
{
	SmallVector<Function *, 8> open = {&resolver};
	while (!open.empty()) {
		Function *function = open.pop_back_val();
		if (function->hasFnAttribute(NOT_COUNTED))
			continue;
		function->addFnAttr(NOT_COUNTED);
		if (function != &resolver)
			remark_reached(*function, resolver);
		open.append(callees_of(*function));
	}
}

// The text of an annotation; empty: none.
StringRef text_of(Value *value)
{
	const auto *variable = dyn_cast<GlobalVariable>(value->stripPointerCasts());
	const auto *text = variable && variable->hasInitializer()
				   ? dyn_cast<ConstantDataArray>(variable->getInitializer())
				   : nullptr;
	return text && text->isCString() ? text->getAsCString() : "";
}

// Source: clang 19, CodeGenModule::EmitAnnotateAttr: { what, text, file, line, arguments }
void exclude_annotated(Module &module)
{
	const GlobalVariable *list = module.getGlobalVariable("llvm.global.annotations");
	const auto *rows = list && list->hasInitializer()
				   ? dyn_cast<ConstantArray>(list->getInitializer())
				   : nullptr;
	if (!rows)
		return;
	for (const Use &use : rows->operands()) {
		const auto *row = dyn_cast<ConstantStruct>(use.get());
		if (!row || row->getNumOperands() < 2)
			continue;
		Function *function = body_of(row->getOperand(0));
		if (function && text_of(row->getOperand(1)) == NOT_COUNTED)
			function->addFnAttr(NOT_COUNTED);
	}
}

} // namespace

void exclude_functions(Module &module)
{
	// Resolvers first, so that functions which they call through an annotated function are
	// reached too.
	for (GlobalIFunc &indirect : module.ifuncs()) {
		if (Function *resolver = body_of(indirect.getResolver()))
			exclude_reached(*resolver);
	}
	exclude_annotated(module);
}

} // namespace mperf
