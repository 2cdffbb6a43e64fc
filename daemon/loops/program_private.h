/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A program's internals: objects with their modules, and the sums */

#include "daemon/loops/message.h"
#include "daemon/loops/program.h"
#include "daemon/loops/table_cache.h"

/* An executable or library, as announced. */
struct program_object {
	uint32_t id;
	struct object_tables *tables; /* its own until they are complete, then maybe shared */
	UT_hash_handle hh;
};

/* Counts of one thread in one scope of a module, in one region. */
struct sum_row {
	struct sum_row *next, *next_touched;
	uint32_t scope;
	bool touched;
	bool is_elsewhere;  /* of a callee: another module counts it; valid as of */
	uint64_t looked_up; /* program.n_tables; 0: never looked up */
	int64_t value[2 * LOOP_METRICS_OF_PROGRAMS];
};

struct program_sum {
	struct sum_key {
		uint32_t thread, region, object, module;
	} key;
	struct program_thread *thread;
	struct program_region *region; /* NULL: none */
	struct program_module *module;
	struct sum_row **row;    /* by scope */
	struct sum_row *rows;    /* all, */
	struct sum_row *touched; /* the rows of this round */
	uint64_t until_ns;
	size_t memory;
	UT_hash_handle hh;
};

/* Charge n bytes more. 0, FEED_MEMORY, FEED_MEMORY_ALL. */
int program_charge(struct program *p, size_t n);
void program_discharge(struct program *p, size_t n);

/* Work done before other programs are served: about 3 ms. */
#define PROGRAM_SLICE_SCOPES 4096u
#define PROGRAM_SLICE_ROWS 2048u
/* Objects that can be searched for a callee in the time of one row. */
#define PROGRAM_OBJECTS_A_ROW 32u

/* program_table.c. 0, FEED_*, -errno. */
int program_take_object(struct program *p, const struct feed_message *m);
int program_take_table(struct program *p, const struct feed_message *m);
/* Continue a table that was turned into sites in part. */
int program_work_table(struct program *p);
/* Its sums must be freed before. */
void program_object_free(struct program *p, struct program_object *o);
/* The module that has this counter, or NULL. */
struct program_module *program_module_find(const struct program_object *o, uint32_t counter);

/* program_sum.c. 0, FEED_*, -errno. */
int program_take_deltas(struct program *p, const struct feed_message *m);
int program_take_spent(struct program *p, const struct feed_message *m);
/* Hand out the counts that are not negative: of all sums, some in each call (p->work.round is set while more
 * remain), or of one thread or one object. */
int program_hand_out(struct program *p);
/* Hand out and free the sums of p->work.ended or p->work.gone, some in each call. *ret_more: some
 * remain. */
int program_end_sums(struct program *p, bool *ret_more);
void program_sums_clear(struct program *p);

/* program_place.c. 0, FEED_*, -errno. */
int program_take_place(struct program *p, const struct feed_message *m);
int program_take_tally(struct program *p, const struct feed_message *m);
void program_places_clear(struct program *p);
