/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What threads wait for, by the kernel's functions in their chains
 *
 * The namer names a function a moment after it was first seen, but once for all: the first waits in it are held until
 * then.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/sweep.h"

/* Waits that are held, and for how long; then, and beyond it, their kind is OFFCPU_OTHER. */
#define WAITS_HELD_MAX 4096u
#define WAITS_HELD_NS 5000000000u

struct sampler;
struct wait_kinds;

typedef void wait_kinds_sink(void *userdata, const struct attribution *a);
/* sampler and tasks are borrowed. 0 or -ENOMEM. */
int wait_kinds_new(const struct sampler *sampler, const struct task_table *tasks,
	wait_kinds_sink *take, void *userdata, struct wait_kinds **ret_kinds);

/* Hand out a wait of the event OFFCPU_HART as it is, one of OFFCPU_OTHER as an event of its kind, as soon as that is
 * known. */
void wait_kinds_take(struct wait_kinds *k, const struct attribution *a);
/* Hand out what is known by now. */
void wait_kinds_dispatch(struct wait_kinds *k, uint64_t now_ns);
/* Is anything held? */
bool wait_kinds_held(const struct wait_kinds *k);
void wait_kinds_mark(const struct wait_kinds *k, struct sweep *s);

struct wait_kinds *wait_kinds_free(struct wait_kinds *k);
