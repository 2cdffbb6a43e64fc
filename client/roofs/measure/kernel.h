/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kernels: loops whose operations and bytes are known, in assembly
 *
 * A kernel that computes runs chains of dependent instructions, more chains than the latency times the
 * number of pipes. A kernel that moves data walks over one to three streams. Each returns a number
 * of steps, each of `per` operations or streams. It depends on the length of vectors where that is known
 * only at run time, so that work is counted, not assumed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/roofs/roofs.h"

/* Streams are whole blocks of this many bytes: 8 vectors of the longest SVE. RVV may have longer
 * ones; its kernels leave out the rest of a stream. */
#define KERNEL_BLOCK_BYTES 2048
/* Operands are this far apart, and as many bytes are filled with each: a register of AVX-512. */
#define KERNEL_OPERAND_BYTES 64
/* Results of all chains: 32 vector registers of 65536 bits, the longest of RVV. */
#define KERNEL_RESULT_BYTES (32 * 8192)

/* What a hart must have. */
enum need {
	NEED_NOTHING, /* the architecture's baseline */
	NEED_FMA,
	NEED_AVX2,
	NEED_AVX512,
	NEED_AVX512_FP16,
	NEED_FP16,
	NEED_SVE,
	NEED_ZFH,
	NEED_RVV,
	NEED_ZVFH,
	N_NEEDS,
};

/* For `passes` passes over all chains: x = x OP1 a, x = x OP2 b; fused: x = x * a + b twice (NEON: x
 * = x + a * b, x = x - a * a). Whole numbers wrap. `in` has x, a and b, each
 * at a multiple of KERNEL_OPERAND_BYTES. The last x of all chains goes to `out`. */
typedef uint64_t kernel_compute(uint64_t passes, const void *in, void *out);

/* For `passes` passes over `bytes` bytes of each stream, by pattern: load a; store a[0] to a; copy b to a;
 * copy b to a and load c; a = b + 3 c. Returns the bytes of one stream. */
typedef uint64_t kernel_memory(uint64_t passes, uint64_t bytes, void *a, void *b, void *c);

struct kernel {
	const char *name; /* "avx2_f64_fma" */
	enum roof_limit limit;
	const char *unit;
	uint32_t lmul; /* of RVV, else 0 */
	enum need need;
	kernel_compute *compute;
	kernel_memory *memory;
	const char *precision; /* of computing */
	const char *operation; /* or the pattern of memory */
	uint32_t per;          /* operations, or streams, of each step that is returned */
	bool nontemporal;
};

/* The kernels of this architecture. */
extern const struct kernel kernels[];
extern const size_t n_kernels;

/* Runs 128 dependent additions of general registers a pass, each a cycle on every core known to us;
 * returns their number. */
uint64_t roof_clock(uint64_t passes);

/* Fill x, a and b of `precision` with values that `k` keeps near 1. */
void kernel_operands(const struct kernel *k, void *ret_in);

/* Run `k` with small values whose result shows how often it computed, and compare its results and
 * its return value with plain C. Returns 0, or 1 with what is wrong written to `fault`; -ENOMEM.
 * */
int kernel_check(const struct kernel *k, char fault[static ROOF_NOTE_BYTES]);
