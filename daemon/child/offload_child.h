/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Children of offload.h: creation, for both kinds */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/child/offload.h"

/* Exit status of a child that could not drop its rights or set its limits: it has run nothing. */
#define CHILD_UNSETTLED 125
/* Exit status of a child whose answer could not be written. */
#define CHILD_UNWRITTEN 124

struct child_options {
	int (*run)(void *userdata, int fd); /* returns the exit status */
	void *userdata;
	const char *name; /* as ps shows it; at most 15 bytes */
	bool keeps_capabilities;
	int nice;            /* added to its priority; 0: none */
	uint64_t file_bytes; /* maximum size of a file it writes; 0: no limit */
};

/* Fork; the child keeps only fd (-1: none). 0, -errno. */
int child_fork(const struct child_options *o, int fd, struct offload **ret_offload);

/* Kill it, without waiting for its end. */
void offload_kill(struct offload *o);
