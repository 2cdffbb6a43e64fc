/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Chain: the processes that bounded how long a tree of processes took
 *
 * A process ends when its own work is done and the children that it waited for have ended. So the chain is found
 * backwards from the end of the first process: up to its end it worked alone since the last of its children ended; until
 * then that child bounded it, in the same way; and when that child started, its parent was as far as its earlier
 * children let it be.
 *
 *      make   ██─┐       ┌█─┐           ┌██      bounds what is drawn as █, where no child of it is on the chain
 *      cc        ├███    │  ├███████████┘        the second bounds all of its time
 *      cc        └███████┘  └█████               the first bounds all of its time
 *
 * Starts and ends of processes are all that is known: a process is taken to wait for each child that ends within its
 * life. Where it works meanwhile, that work counts for the child.
 */

#include <stdint.h>

#define CHAIN_NONE UINT32_MAX
/* At some 250 bytes each: 250 MB. A kernel's build has 100,000 processes. */
#define CHAIN_PROCESSES_MAX 1000000u

struct chain_process {
	int64_t start_ns, end_ns; /* not negative */
	uint32_t parent;  /* index; CHAIN_NONE: none. Anything else is no error, and means none */
	uint32_t program; /* the caller's number of it */
};

/* The stretch (from_ns, to_ns] in which a process bounded the whole. */
struct chain_part {
	uint32_t process;
	int64_t from_ns, to_ns;
};

struct chain;

/* Find the chain of n processes, of which the first is the one that starts all others; at least 1, at most
 * CHAIN_PROCESSES_MAX. Processes that do not descend from it are left out, also those that start before their parent or
 * end before their start. Borrows the processes. O(n log n). 0 or -ENOMEM. */
int chain_new(const struct chain_process *process, uint32_t n, struct chain **ret_chain);
struct chain *chain_free(struct chain *c);

/* The stretches in order of time, without gaps from the first process's start to its end. Borrowed. */
const struct chain_part *chain_parts(const struct chain *c, uint32_t *ret_n);
/* Processes that were left out. */
uint32_t chain_left_out(const struct chain *c);

/* How long the whole would take if the processes of a program did nothing themselves, but still started their children
 * and waited for them. Each process starts its children in the same order as it did, each of them as soon as as many of
 * the earlier ones have ended as then, whichever they are; and none waits for a hart. O(n log n). */
int64_t chain_without_ns(struct chain *c, uint32_t program);
