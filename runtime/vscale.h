/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdint.h>

/* What LLVM's vscale is on this hart: how many times 64 bits (RISC-V) or 128 bits (SVE) a scalable
 * vector has. 0: there are no such vectors. */
uint32_t mperf_vscale(void);
