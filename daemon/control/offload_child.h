/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Children of offload.h: how one is made, for the two kinds of them
 */

#include "daemon/control/offload.h"

/* Exit status of a child that could not be made safe to run: nothing was run. */
#define CHILD_UNSETTLED 125
/* Of one whose answer could not be written. */
#define CHILD_UNWRITTEN 124

struct child_options {
	int (*run)(void *userdata, int fd); /* its value is the exit status */
	void *userdata;
	const char *name;                   /* as ps shows it; at most 15 bytes */
	bool keeps_capabilities;
	int nice;                           /* added to its priority; 0: none */
	uint64_t file_bytes;                /* that it may write into one file; 0: no limit */
};

/* Fork; the child keeps fd alone (-1: none). 0, -errno. */
int child_fork(const struct child_options *o, int fd, struct offload **ret_offload);

/* Kill it, without waiting until it is gone. */
void offload_kill(struct offload *o);
