// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Debug information that only the pass wanted

namespace llvm
{
class Module;
} // namespace llvm

namespace mperf
{

// Drops a module's debug information if nothing after the pass uses it; call it once the table is
// made. mperf-cc makes clang track lines without writing them to the object file. The information
// is kept if a unit of the module has its own debug information, if remarks of later passes are
// requested, or if the module has pseudo probes, which are found by their lines. True if it dropped
// any.
bool drop_tracked_lines(llvm::Module &module);

} // namespace mperf
