/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdint.h>

/* LLVM's vscale on this hart: the length of a scalable vector in units of 64 bits (RISC-V) or 128
 * bits (SVE). 0: there are no such vectors. */
uint32_t mperf_vscale(void);
