/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Registered object: the runtime's record of an executable or shared library, until it is closed
 * */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

struct area;
struct state;

struct object {
	struct object *next; /* never changes */
	bool open;
	uint32_t id;
	const struct mperf_object *registration;
	uint64_t *counters; /* the object's own counters, which no thread uses */
	uint32_t n_counters;
	uint32_t n_modules; /* of our ABI */
	bool has_gs_base;   /* its code counts through %gs */
	bool stays;         /* it is the executable, which no dlclose closes */
	struct area *lost;  /* where threads without memory count */

	/* the round's */
	uint8_t *uses;     /* enum mperf_counter_use of each counter; NULL: not read yet */
	uint32_t serial;   /* number of the connection to which it was announced */
	uint64_t asked_ns; /* when it was announced */
	bool answered;     /* the daemon has said whether it wants the tables */
	uint32_t n_tables; /* sent completely, or not wanted */
	uint32_t offset;   /* in the next */
};

/* Make a record for an object that registers, and let its code find it: o->runtime. Without memory
 * it does nothing. Under the lock, as the next. */
void mperf_object_open(struct state *s, struct mperf_object *o);

/* Hide a closing object from all threads, and give its areas back. Waits, at most a second, until
 * no thread uses it. */
void mperf_object_close(struct state *s, struct object *object, struct mperf_object *o);

/* The n-th module of our ABI; n below n_modules. */
const struct mperf_module *mperf_object_module(const struct object *object, uint32_t n);

/* How each counter is used, found at the first call. NULL: no memory. Under the lock. */
const uint8_t *mperf_object_uses(struct object *object);

/* Copy the build id from an object's ELF header and notes in memory into id. Returns its bytes, at
 * most MPERF_BUILD_ID_BYTES_MAX; 0: it has none. */
size_t mperf_object_build_id(const void *elf, uint8_t id[MPERF_BUILD_ID_BYTES_MAX]);
