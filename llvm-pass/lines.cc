// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table has the lines of all loops, and the code generator would carry those of each
// instruction to its end, only to write none.

#include "lines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mperf
{

namespace
{

// Name of the metadata of pseudo probes. Source: LLVM 16 and 19, PseudoProbe.h,
// PseudoProbeDescMetadataName.
constexpr char PROBES[] = "llvm.pseudo_probe_desc";

bool is_only_tracked(const Module &module)
{
	const NamedMDNode *units = module.getNamedMetadata("llvm.dbg.cu");
	return units && all_of(units->operands(), [](const MDNode *unit) {
		return cast<DICompileUnit>(unit)->getEmissionKind() == DICompileUnit::NoDebug;
	});
}

// Remarks have lines. The pattern that mperf-cc adds matches the empty name alone, so we ask by the
// names of passes behind ours that have remarks. Source: LLVM 16 and 19, DEBUG_TYPE and PASS_KEY of
// lib/CodeGen; all names are strings of both libLLVM.so.
bool has_remarks_behind(LLVMContext &context)
{
	static constexpr const char *PASSES[] = {"asm-printer", "atomic-expand",
		"gisel-irtranslator", "gisel-legalize", "gisel-select", "hardware-loops",
		"interleaved-load-combine", "machine-outliner", "pipeliner", "prologepilog",
		"regalloc", "sdagisel", "select-optimize", "shrink-wrap", "size-info",
		"stack-frame-layout", "stack-protector"};
	const DiagnosticHandler *handler = context.getDiagHandlerPtr();
	if (context.getLLVMRemarkStreamer())
		return true;
	return handler && any_of(PASSES, [&](const char *pass) {
		return handler->isAnalysisRemarkEnabled(pass) ||
		       handler->isMissedOptRemarkEnabled(pass) ||
		       handler->isPassedOptRemarkEnabled(pass);
	});
}

} // namespace

bool drop_tracked_lines(Module &module)
{
	if (!is_only_tracked(module) || module.getNamedMetadata(PROBES) ||
		has_remarks_behind(module.getContext()))
		return false;
	return StripDebugInfo(module);
}

} // namespace mperf
