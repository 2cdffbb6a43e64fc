// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Debug information that only the pass wanted

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// Drops a module's debug information if nothing behind the pass uses it; call it when the table is
// made. mperf-cc asks clang to track lines, which then writes none of it to the object file. Kept if
// a unit of the module has debug information of its own, if remarks of later passes are requested,
// or if the module has pseudo probes, which are found by their lines. True if it dropped any.
bool drop_tracked_lines(llvm::Module &module);

} // namespace mperf
