/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answer one question about one file */

#include "daemon/code/table.h"
#include "proto/code/code.h"

/* Answer a request, whose samples are sorted here. *ret_loops: reply->n_loops of them, the caller's.
 * 0, -errno. */
int code_answer(const struct table *t, int file_fd, const struct code_request *request,
	struct code_sample *samples, struct code_reply *ret_reply, struct code_loop **ret_loops);
