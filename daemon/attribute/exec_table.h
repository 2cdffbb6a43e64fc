/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Execs that were reported early and have not come through the merge
 *
 * They are found by process, and by what is still to be done for them. Each step is constant in their number, but
 * for the execs of one process that are out of order.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/rights.h"
#include "proto/base/hash_table.h"

struct task;

/* Memory for all of them: 20,000 of usual length, more than two harts run in a second, or 1,900 of the greatest.
 * Further ones are treated as not reported. */
#define EXECS_BYTES_MAX (8u << 20)
/* Bytes of an exec besides its arguments, with its part of the table. */
#define EXEC_BYTES 320u

#define EXEC_NEVER UINT64_MAX

/* The arguments and rights of a process after an exec. */
struct exec_text {
	char *argv; /* as in struct task; NULL: not read */
	uint32_t n_argv;
	struct rights rights;
	bool has_rights; /* the arguments were read */
	bool from_stack; /* copied by the kernel, not read from /proc; only then are these valid: */
	bool secure;     /* setuid and the like */
	uint32_t own_uid; /* as the process sees it, in its user namespace */
};

/* An exec that was reported early. */
struct exec {
	pid_t pid;
	uint64_t time_ns; /* of its record */
	uint64_t read_ns; /* when the last read ended */
	uint64_t due_ns;  /* time of the next read; EXEC_NEVER: read or given up */
	uint32_t n_again; /* reads planned after the first */
	struct exec_text text;
	struct task *process; /* the process, if its record came while reads are due; else NULL */
	int hart;             /* of that record */
	size_t bytes;         /* what it was charged */
	struct exec *prev, *next;           /* of its process, by time */
	struct exec *all_prev, *all_next;   /* of all, as they were reported */
	struct exec *open_prev, *open_next; /* of those that are open */
	bool open;                          /* a read is due, or its process waits for one */
};

/* The execs of one process: some run many programs in turn. */
struct exec_chain {
	pid_t pid;
	struct exec *first; /* by time */
	UT_hash_handle hh;
};

struct exec_table {
	struct exec_chain *chains; /* uthash by pid */
	struct exec *all;          /* as they were reported */
	struct exec *open;
	size_t n, bytes;
};

/* Take a copy of the exec, with its text. False: there is no room; the text stays the caller's. */
bool exec_table_add(struct exec_table *t, const struct exec *e);
/* Remove the exec and free it with its text. */
void exec_table_remove(struct exec_table *t, struct exec *e);
/* Nothing is left to be done for the exec until its record comes. */
void exec_table_close(struct exec_table *t, struct exec *e);

/* The execs of a process; NULL: none. */
struct exec_chain *exec_chain_find(const struct exec_table *t, pid_t pid);
/* The last exec of the chain (which may be NULL) that is not later; NULL: none. Most are reported in order of time,
 * so it is the last one or close to it. */
struct exec *exec_chain_before(const struct exec_chain *c, uint64_t time_ns);
