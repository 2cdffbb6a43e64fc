/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* One sample of a program of known depth, with registers and a copied stack: support code of the
 * unit tests. The program is tests/system/depth.c, built as the test wants it and sampled at its
 * bottom. */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/unwind.h"

#define SAMPLED_STACK_BYTES 65528u /* Source: man perf_event_open, sample_stack_user: < 64 KiB */
#define SAMPLED_MAPS_MAX 64
#define SAMPLED_PROGRAM 1 /* file id of the program; the others follow */

/* SAMPLED_MACHINE is not defined where perf's registers are not known to us.
 * Source: arch/ARCH/include/uapi/asm/perf_regs.h. */
#if defined(__x86_64__)
#define SAMPLED_MACHINE EM_X86_64
#define SAMPLED_REGS 0xff0fffull /* not DS, ES, FS, GS */
#define SAMPLED_SP_BIT 7
#define SAMPLED_MACHINE_NARROW EM_386
#elif defined(__riscv) && __riscv_xlen == 64
#define SAMPLED_MACHINE EM_RISCV
#define SAMPLED_REGS 0xffffffffull
#define SAMPLED_SP_BIT 2
#elif defined(__aarch64__)
#define SAMPLED_MACHINE EM_AARCH64
#define SAMPLED_REGS 0x1ffffffffull
#define SAMPLED_SP_BIT 31
#else
#define SAMPLED_REGS 0ull
#define SAMPLED_SP_BIT 0
#endif

struct sampled {
	uint64_t regs[64]; /* those of SAMPLED_REGS */
	uint8_t stack[SAMPLED_STACK_BYTES];
	size_t n_stack;
	uint64_t ip;
	/* what was executable then, each with a descriptor of its file, -1 where it has none */
	struct unwind_map maps[SAMPLED_MAPS_MAX];
	char paths[SAMPLED_MAPS_MAX][256];
	size_t n_maps;
	char folder[32]; /* of the program */
	uint32_t
		n_readings; /* of the mappings: they are read again for a sample outside all of them */
	bool narrow;        /* set by the test: the program is tests/system/narrow.c, of 32 bits */
};

/* Make the folder. Aborts the test if that fails. */
void sampled_begin(struct sampled *s);

/* Build depth with these flags, start it with these arguments (mode may be NULL), and take one
 * sample in the mapping whose path contains where. NULL, or a sentence why there is none: skip
 * then. */
const char *sampled_take(struct sampled *s, const char *flags, const char *depth, const char *mode,
	const char *where);

/* Run that program for so long, without its output, and call on_sample for each sample of its first process. NULL, or
 * a sentence why there is none: skip then. */
const char *sampled_run(struct sampled *s, char *const argv[], int seconds,
	void (*on_sample)(void *userdata, const struct sampled *s), void *userdata);

/* Close what is open, remove the folder. */
void sampled_end(struct sampled *s);
