// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs on Linux may use %gs freely and hardly any does: the runtime sets its base to the
// thread's bias, and an addition to a counter needs no register for an address. Only one object of
// a process can have that, the executable: -fPIE or -fno-pic say that code will be part of one. A
// program that uses %gs itself (Wine, emulators) must be built without this, or either would write
// where the other reads.

#include "gs_base.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace mperf
{

namespace
{

bool is_of_executable(const Module &module)
{
	return module.getPIELevel() != PIELevel::Default ||
	       module.getPICLevel() == PICLevel::NotPIC;
}

bool names_segment(StringRef assembly)
{
	return assembly.contains("%gs") || assembly.contains("gsbase");
}

bool uses_segment(const Instruction &instruction)
{
	if (const auto *call = dyn_cast<CallBase>(&instruction)) {
		const auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
		return assembly && names_segment(assembly->getAsmString());
	}
	const Value *pointer = getLoadStorePointerOperand(&instruction);
	return pointer && pointer->getType()->getPointerAddressSpace() == GS_ADDRESS_SPACE;
}

const Function *find_user(const Module &module)
{
	for (const Function &function : module) {
		for (const Instruction &instruction : instructions(function)) {
			if (uses_segment(instruction))
				return &function;
		}
	}
	return nullptr;
}

} // namespace

bool gs_base_is_free(Module &module)
{
	const Triple triple(module.getTargetTriple());
	const CodeModel::Model model = module.getCodeModel().value_or(CodeModel::Small);
	// A kernel, or its stack protector, uses it itself.
	if (triple.getArch() != Triple::x86_64 || triple.isX32() || !triple.isOSLinux() ||
		model != CodeModel::Small || module.getStackProtectorGuardReg() == "gs" ||
		!is_of_executable(module))
		return false;
	const Function *user = find_user(module);
	if (!user && !names_segment(module.getModuleInlineAsm()))
		return true;
	const std::string text =
		"mperf counts through the segment %gs, which " + module.getName().str() +
		" uses itself" + (user ? " (in " + user->getName().str() + ")" : "") +
		": build all of the program with segment=0 in MPERF_PASS, see mperf-cc(1)";
	module.getContext().emitError(text);
	return false;
}

} // namespace mperf
