// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The segment %gs of x86-64, by which code of an executable reaches its counters

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// The address space of what is reached through it.
// Source: LLVM, CodeGenerator, "X86 address spaces supported".
constexpr unsigned SEGMENT_GS = 256;

// May the module's code use %gs for counting? Where the program has a use of its own for it, that
// is an error of the compilation, which says what to do.
bool segment_is_free(llvm::Module &module);

} // namespace mperf
