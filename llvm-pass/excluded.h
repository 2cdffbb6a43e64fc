// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Functions that are not counted, though they could be

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// The attribute of such functions. Calls of them count as calls of functions that are not seen.
constexpr char NOT_COUNTED[] = "no_mperf";

// Adds the attribute to functions annotated in the source, and to resolvers of indirect functions
// and everything that these call within the module.
void exclude_functions(llvm::Module &module);

} // namespace mperf
