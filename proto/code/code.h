/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Messages between mperfctl and mperf-code, which reads machine code for it
 *
 * One request and one reply through a socket pair; the file goes with it as another descriptor. Both
 * ends come from the same build and run on the same machine: plain structs, native byte order. The
 * reply comes from a process that parsed an untrusted file, so code_reply_check checks every value.
 *
 *      mperfctl   code_request, n_samples times code_sample ▶
 *      mperf-code ◀ code_reply, n_loops times code_loop
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_MAGIC 0x6d70636fu /* "mpco" */
#define CODE_VERSION 2u
#define CODE_BUILD_ID_BYTES 20u
/* Addresses of one file in one question: a compiler's 30 MB of text had 40,000 in a minute. */
#define CODE_SAMPLES_MAX 65536u

enum code_state {
	CODE_READ = 1,
	CODE_MALFORMED,   /* not an ELF file with code to run */
	CODE_OTHER_FILE,  /* its build id is another */
	CODE_UNKNOWN_ISA, /* no table of the ISA's mnemonics, or LLVM was built without the ISA */
};

/* Operations that count, as --ops names them. */
enum code_ops {
	CODE_OPS_FP,
	CODE_OPS_INT,
	CODE_OPS_SP,
	CODE_OPS_DP,
	N_CODE_OPS,
};

struct code_request {
	uint32_t magic, version;
	uint32_t n_samples;
	uint32_t vector_bits; /* of SVE and RVV on the machine that ran; 0: not known */
	uint8_t n_build_id;   /* 0: any */
	uint8_t build_id[CODE_BUILD_ID_BYTES];
	uint8_t zero[3];
};
_Static_assert(sizeof(struct code_request) == 40, "request");

struct code_sample {
	uint64_t offset; /* in the file */
	uint64_t samples;
	double ns;
	double instructions; /* negative: not counted */
};
_Static_assert(sizeof(struct code_sample) == 32, "sample");

struct code_reply {
	uint32_t magic, version;
	uint32_t state;
	uint32_t n_loops;
	uint64_t samples; /* all samples of the request */
	uint64_t outside; /* samples outside all functions found */
};
_Static_assert(sizeof(struct code_reply) == 32, "reply");

/* Range of vector registers of SVE and RVV, in bits. Source: Arm ARM, SVE; RISC-V "V" 1.0, 2. */
#define CODE_VECTOR_BITS_LEAST 128u
#define CODE_VECTOR_BITS_MOST_SVE 2048u
#define CODE_VECTOR_BITS_MOST_RVV 65536u

/* An estimate, with its 95 % interval. Not finite: not known. */
struct code_estimate {
	double value, low, high;
};

/* Reasons why figures of a loop are only bounds, or incomplete. */
enum {
	CODE_MASKED = 1,     /* low: no lane is active; high and value: all lanes are */
	CODE_SCALABLE = 2,   /* low and high: for any vector length; the value is for 128 bits */
	CODE_CALLS = 4,      /* functions that it calls are not included */
	CODE_INCOMPLETE = 8, /* instructions without a row in the table */
	CODE_INDIRECT =
		16, /* the function jumps to addresses that it computes: loops may be missed */
};

/* A loop without the loops inside; or the code of a function outside all loops. */
struct code_loop {
	uint64_t function;    /* file offset where its function starts */
	uint64_t start, last; /* first and last instruction */
	uint64_t hottest;     /* the requested offset with the most time */
	uint64_t samples;
	double ns;
	double instructions; /* negative: not counted for all of its samples */
	uint32_t depth;      /* 1: an outermost loop; 0: no loop */
	uint32_t flags;
	uint32_t n_instructions, n_blocks;
	struct code_estimate bytes_loaded, bytes_stored; /* per instruction */
	struct code_estimate operations[N_CODE_OPS];     /* per instruction */
	struct code_estimate intensity[N_CODE_OPS];      /* operations per byte */
};

/* Do these n bytes hold a complete reply to a request of n_samples samples, with every value in its
 * range? */
bool code_reply_check(const void *bytes, size_t n, uint32_t n_samples);
