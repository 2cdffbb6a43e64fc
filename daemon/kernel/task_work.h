/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Fixed work that makes the kernel write records of tasks and mappings */

#include <stdint.h>

enum task_work {
	TASK_FORK,    /* a fork, and the exit of the child */
	TASK_EXEC,    /* an exec of /bin/true, the mappings of its libraries, and its exit */
	TASK_MAPPING, /* of executable memory */
	N_TASK_WORKS,
};

/* Do the work n times. *ret_ns: CPU time of this thread and of the children; the caller must have no
 * others. 0; -errno of a refused call. */
int task_work_do(enum task_work what, unsigned n, uint64_t *ret_ns);
