/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Board: what Embench's programs want of the machine that they run on; board.c has the functions */

/* How often a program does its work. They call it the clock's rate, by which they stretch it. */
extern int board_rounds;
#define CPU_MHZ board_rounds
#define WARMUP_HEAT 1
