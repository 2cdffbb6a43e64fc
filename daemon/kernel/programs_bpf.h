/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The BPF programs that the kernel has now
 *
 * Records report programs that are loaded while events are open. A BPF program of ours (programs.bpf.c) lists
 * those that were loaded before. It needs CAP_BPF and CAP_PERFMON: bpf(2) itself gives programs to CAP_SYS_ADMIN
 * alone, and /proc/kallsyms does not say where they end. Called only through struct kernel: absent if built
 * without BPF (make BPF=no).
 */

#include <stdint.h>

struct kernel_program {
	uint64_t start, bytes; /* address of its code */
	uint64_t loaded_ns;    /* CLOCK_MONOTONIC */
	const char *name;      /* as in /proc/kallsyms; borrowed for the call */
};

/* Call each for all programs and subprograms whose code the kernel compiled and names, in no order: 100 of one
 * program at most. Takes some 20 ms, most of it in the child that
 * loads the program (load_child.h). 0 or -errno: the kernel has no BTF, or we lack
 * the right. */
int programs_bpf_list(void (*each)(void *userdata, const struct kernel_program *p), void *userdata);
