/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Told: messages of the feed and tables of counters, made by hand */

#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

#define TOLD_BYTES_MAX 4096

/* Bytes under construction. */
struct told {
	uint8_t bytes[TOLD_BYTES_MAX];
	size_t n;
};

void told_put(struct told *t, const void *bytes, size_t n);
void told_byte(struct told *t, uint8_t byte);
void told_unsigned(struct told *t, uint64_t value); /* LEB128 */
void told_signed(struct told *t, int64_t value);
void told_string(struct told *t, const char *text);

/* A table of two scopes, a function and a loop in it, and two counters: calls, each of which is two
 * iterations less than the second counter, and ten bytes loaded for each of these. */
void told_table(struct told *t);
#define TOLD_COUNTERS 2

/* Messages, complete with their heads. */
void told_hello(struct told *t, uint64_t begin_ns, uint32_t vscale);
void told_version(struct told *t, uint32_t version); /* a hello of that version of the feed */
void told_object(struct told *t, uint32_t object, uint32_t n_counters, uint32_t n_modules);
void told_table_message(struct told *t, uint32_t object, uint32_t module, uint32_t first,
	uint32_t n_counters, const struct told *table);
void told_thread(struct told *t, uint32_t thread, uint32_t tid);
void told_region(struct told *t, uint32_t region, uint32_t parent, const char *name);
/* Counter first counted `one`, the next `two` more. */
void told_deltas(struct told *t, uint32_t thread, uint32_t region, uint64_t one, uint64_t two,
	uint64_t at_ns);
/* One counter of no region counted n. */
void told_delta(struct told *t, uint32_t thread, uint32_t counter, uint64_t n, uint64_t at_ns);
/* One entry of a nanosecond each, with these words of what was granted. */
void told_spent(struct told *t, uint32_t thread, uint32_t region, const uint64_t granted[static 4]);
/* A place of that kind in a file of build id "id" at that offset; address 0: none. */
void told_place(struct told *t, uint32_t place, uint32_t parent, uint32_t kind, uint64_t offset);
/* One entry, of which all was waited. */
void told_tally(struct told *t, uint32_t thread, uint32_t place, uint64_t time_ns);
void told_gone(struct told *t, uint32_t kind, uint32_t id);
void told_round(struct told *t, uint64_t until_ns);
