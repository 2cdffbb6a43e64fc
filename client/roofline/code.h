/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Machine code, as mperf-code reads it
 *
 * Files are opened here, with the caller's rights, and read by mperf-code in a sandbox: a process
 * per file, which ends with its answer.
 */

#include "proto/code/code.h"

enum {
	CODE_NO_PROGRAM = 1, /* mperf-code is not installed */
	CODE_NO_FILE,        /* cannot be opened, or is no regular file: errno in *ret_error */
	CODE_FAILED,         /* it did not answer: it crashed, or took too long */
};

struct code_question {
	const char *path;  /* where it ran */
	const char *symfs; /* the folder to look in, by path, then by name; NULL: at path itself */
	uint32_t vector_bits; /* 0: not known */
	const uint8_t *build_id;
	uint8_t n_build_id; /* 0: any */
	const struct code_sample *sample;
	uint32_t n_samples; /* CODE_SAMPLES_MAX at most */
};

struct code_found {
	struct code_reply reply;
	struct code_loop *loop; /* the caller's */
};

/* Ask, for at most a minute. 0, the outcomes above, -errno. */
int code_ask(const struct code_question *q, struct code_found *ret_found, int *ret_error);
