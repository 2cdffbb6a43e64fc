// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Intrinsics of one target (RVV, x86), by name

#include "mix.h"

namespace llvm
{
class CallBase;
} // namespace llvm

namespace mperf
{

// Adds the intrinsic's counts. False: it is not counted.
bool read_riscv_intrinsic(BlockMix &into, llvm::CallBase &call);
bool read_x86_intrinsic(BlockMix &into, llvm::CallBase &call);
bool read_aarch64_intrinsic(BlockMix &into, llvm::CallBase &call);

} // namespace mperf
