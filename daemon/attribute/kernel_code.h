/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Code that the kernel generates: BPF programs and trampolines, by address and time
 *
 * The kernel reports when it makes such code and when it drops it, with its name (PERF_RECORD_KSYMBOL);
 * addresses are used again. Code from before the events were open is listed once
 * (kernel/programs_bpf.h). Samples and these records come in order of time, so the table has the code
 * that exists at the sample's time.
 */

#include <stddef.h>
#include <stdint.h>

/* Pieces of code known at a time; a host of many containers has some hundreds. More stay without a name. */
#define KERNEL_CODE_MAX 8192u
/* Bytes of a name; longer ones are cut. Source: KSYM_NAME_LEN is 512, but names of BPF programs come to 21 + 128:
 * bpf_get_prog_name in kernel/bpf/core.c of Linux 6.12. */
#define KERNEL_CODE_NAME_BYTES 192u

struct kernel_code_piece {
	uint64_t start, end;
	char *name; /* "bpf_prog_6deef7357e7b4530_sd_devices" */
};

struct kernel_code {
	struct kernel_code_piece *piece; /* sorted, disjoint */
	size_t n, size;
};

/* Add a piece of code, which replaces all pieces that it overlaps. 0, KERNEL_CODE_FULL, -ENOMEM. */
enum { KERNEL_CODE_FULL = 1 };
int kernel_code_add(struct kernel_code *c, uint64_t start, uint64_t bytes, const char *name);
/* Remove the pieces that overlap [start, start + bytes): their code is gone. */
void kernel_code_drop(struct kernel_code *c, uint64_t start, uint64_t bytes);
/* Find the piece at an address. NULL: none. O(log n). */
const struct kernel_code_piece *kernel_code_find(const struct kernel_code *c, uint64_t addr);
void kernel_code_clear(struct kernel_code *c);
