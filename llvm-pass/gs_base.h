// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The segment %gs of x86-64, through which code of an executable reaches its counters

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// The address space of accesses through it.
// Source: LLVM, CodeGenerator, "X86 address spaces supported".
constexpr unsigned GS_ADDRESS_SPACE = 256;

// May the module's code use %gs for counting? If the program uses it, that is a compilation error,
// which says what to do.
bool gs_base_is_free(llvm::Module &module);

} // namespace mperf
