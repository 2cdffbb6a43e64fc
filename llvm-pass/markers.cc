// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions marked by comments in inline assembly, as Examem does (section III.A), which any compiler
// accepts and which need no header:
//
//      __asm__ volatile("# mperf begin solve");   …   __asm__ volatile("# mperf end solve");
//
// They become the calls that runtime/mperf.h makes. If the compiler assumes that calls of markers
// throw, we mark them as non-throwing.

#include "prepare.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace mperf
{

namespace
{

// struct mperf_region: name, source, line, reserved
Constant *make_region(IRBuilder<> &builder, Constant *name, const DILocation *location)
{
	Constant *source = builder.CreateGlobalStringPtr(
		location ? location->getFilename() : "", "mperf.region.source");
	Constant *members[] = {name, source, builder.getInt32(location ? location->getLine() : 0),
		builder.getInt32(0)};
	Constant *value = ConstantStruct::getAnon(members);
	Module &module = *builder.GetInsertBlock()->getModule();
	return new GlobalVariable(
		module, value->getType(), true, GlobalValue::PrivateLinkage, value, "mperf.region");
}

// The words after the comment sign, of any assembler; empty: not a marker.
bool is_marker(StringRef text, bool &ret_begins, StringRef &ret_name)
{
	text = text.ltrim("#;/@! \t").trim();
	if (!text.consume_front("mperf "))
		return false;
	const bool begins = text.consume_front("begin ");
	if (!begins && !text.consume_front("end "))
		return false;
	ret_begins = begins;
	ret_name = text.trim();
	return !ret_name.empty() && !ret_name.contains('\n');
}

void replace_marker(CallInst &comment, bool begins, StringRef name)
{
	IRBuilder<> builder(&comment);
	Module &module = *comment.getModule();
	Constant *text = builder.CreateGlobalStringPtr(name, "mperf.region.name");
	Constant *argument =
		begins ? make_region(builder, text, comment.getDebugLoc().get()) : text;
	FunctionCallee marker =
		module.getOrInsertFunction(begins ? "__mperf_region_begin" : "__mperf_region_end",
			builder.getVoidTy(), argument->getType());
	builder.CreateCall(marker, {argument})->setDoesNotThrow();
	comment.eraseFromParent();
}

} // namespace

// The constant to which the branch's condition folds, or null.
static Constant *known_condition(const BranchInst &jump, const DataLayout &layout)
{
	if (auto *compare = dyn_cast<ICmpInst>(jump.getCondition()))
		return ConstantFoldInstruction(compare, layout);
	if (auto *value = dyn_cast<ConstantExpr>(jump.getCondition()))
		return ConstantFoldConstant(value, layout);
	return nullptr;
}

// Markers of mperf.h test whether the runtime is linked. A counted module always has the runtime,
// so drop the test.
void link_markers(Module &module)
{
	bool is_weak = false;
	for (const char *name : {"__mperf_region_begin", "__mperf_region_end"}) {
		Function *marker = module.getFunction(name);
		if (!marker || !marker->hasExternalWeakLinkage())
			continue;
		marker->setLinkage(GlobalValue::ExternalLinkage);
		is_weak = true;
	}
	if (!is_weak)
		return;
	for (Function &function : module) {
		for (BasicBlock &block : function) {
			auto *jump = dyn_cast<BranchInst>(block.getTerminator());
			if (!jump || !jump->isConditional())
				continue;
			Constant *known = known_condition(*jump, module.getDataLayout());
			if (!isa_and_nonnull<ConstantInt>(known))
				continue;
			Value *condition = jump->getCondition();
			jump->setCondition(known);
			ConstantFoldTerminator(&block);
			RecursivelyDeleteTriviallyDeadInstructions(condition);
		}
	}
}

void replace_markers(Function &function)
{
	for (BasicBlock &block : function) {
		for (Instruction &instruction : make_early_inc_range(block)) {
			auto *call = dyn_cast<CallInst>(&instruction);
			const auto *assembly =
				call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
			bool begins = false;
			StringRef name;
			if (assembly && is_marker(assembly->getAsmString(), begins, name))
				replace_marker(*call, begins, name.str());
		}
		auto *end = dyn_cast<InvokeInst>(block.getTerminator());
		const Function *callee = end ? end->getCalledFunction() : nullptr;
		if (callee && callee->getName().starts_with("__mperf_region_"))
			changeToCall(end);
	}
}

} // namespace mperf
