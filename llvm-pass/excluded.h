// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Functions that are not counted, though they could be

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// The attribute of such functions. Calls of them count as calls of what is not seen.
constexpr char NOT_COUNTED[] = "no_mperf";

// Gives it to functions that the source annotates so, and to the resolvers of indirect functions
// and all that these call within the module.
void exclude_functions(llvm::Module &module);

} // namespace mperf
