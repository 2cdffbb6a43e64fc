/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/disassemble.h"

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <string.h>

/* Enable all features that LLVM can print: a file says which CPU it was built for, but a library
 * may also have faster code for others. x86-64 needs none. RISC-V's features are listed, since
 * "all" includes some with equal encodings. */
static const struct {
	const char *triple, *features;
} isas[N_ISAS] = {
	[ISA_X86_64] = {"x86_64-linux-gnu", ""},
	[ISA_AARCH64] = {"aarch64-linux-gnu", "+all"},
	[ISA_RISCV64] = {"riscv64-linux-gnu", "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbc,+zbs,+zfh,+zicbom,"
					      "+zicbop,+zicboz"},
};

int disassembler_open(struct disassembler **ret_disassembler, enum isa isa)
{
	LLVMInitializeAllTargetInfos();
	LLVMInitializeAllTargetMCs();
	LLVMInitializeAllDisassemblers();
	LLVMDisasmContextRef d = LLVMCreateDisasmCPUFeatures(
		isas[isa].triple, "", isas[isa].features, NULL, 0, NULL, NULL);
	if (!d)
		return 1;
	if (isa == ISA_X86_64) /* Intel's syntax, which shows the width of memory operands */
		LLVMSetDisasmOptions(d, LLVMDisassembler_Option_AsmPrinterVariant);
	*ret_disassembler = (struct disassembler *)d;
	return 0;
}

size_t disassemble(
	struct disassembler *d, const uint8_t *bytes, size_t n, char text[DISASSEMBLE_TEXT_BYTES])
{
	text[0] = '\0';
	return LLVMDisasmInstruction(
		(LLVMDisasmContextRef)d, (uint8_t *)bytes, n, 0, text, DISASSEMBLE_TEXT_BYTES);
}

struct disassembler *disassembler_close(struct disassembler *d)
{
	if (d)
		LLVMDisasmDispose((LLVMDisasmContextRef)d);
	return NULL;
}
