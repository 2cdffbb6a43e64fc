/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counted: one module laid out by hand, as the compiler's part lays it out
 *
 * COUNTED(n) makes a module of n counters, of which the first four are a nest's words, with a table
 * that is made when the object registers: one function, each counter one of its entries. COUNT(i,
 * n) adds to a counter of the calling thread.
 */

#include <stdint.h>
#include <string.h>

#include "runtime/abi.h"

#define COUNTED_FIRST 4       /* counter behind the nest's words */
#define COUNTED_HEAD_BYTES 32 /* at most, of what is before a table's body */
#define COUNTED_TABLE_BYTES(n) (COUNTED_HEAD_BYTES + 64 + 8 * (n))

#define HIDDEN __attribute__((visibility("hidden")))

extern const struct mperf_module __start_mperf_modules[] HIDDEN, __stop_mperf_modules[] HIDDEN;
extern uint64_t __start_mperf_counters[] HIDDEN, __stop_mperf_counters[] HIDDEN;
extern const char __ehdr_start[] HIDDEN;
extern __thread int64_t __mperf_bias HIDDEN __attribute__((tls_model("initial-exec")));
extern struct mperf_object counted_object HIDDEN;

static inline uint8_t *counted_number(uint8_t *to, uint64_t value)
{
	for (; value > 127; value >>= 7)
		*to++ = (uint8_t)(value | 128);
	*to++ = (uint8_t)value;
	return to;
}

/* What is packed in tables, here as it is. Its bytes. */
static inline uint64_t counted_body(uint8_t *body, uint64_t n)
{
	static const char name[] = "counted";
	uint8_t *to = body;
	*to++ = 2; /* strings */
	*to++ = 0;
	*to++ = sizeof(name) - 1;
	memcpy(to, name, sizeof(name) - 1);
	to += sizeof(name) - 1;
	*to++ = 0; /* functions that others may call */
	*to++ = 1; /* scopes */
	for (int i = 0; i < 10; i++)
		*to++ = i == 0 ? MPERF_SCOPE_FUNCTION : i == 2 ? 1 : 0;
	to = counted_number(to, n);
	for (uint64_t i = 0; i < n; i++) {
		int metric = i == MPERF_TIMED_NS        ? MPERF_METRIC_TIME_NS
			     : i == MPERF_TIMED_ENTRIES ? MPERF_METRIC_TIMED_ENTRIES
							: MPERF_METRIC_ENTRIES;
		int is_state = i < MPERF_TIMED_ENTRIES;
		*to++ = is_state ? 0 : 1;
		if (is_state)
			continue;
		*to++ = 0;
		to = counted_number(to, (uint64_t)metric << MPERF_VARIANT_BITS);
		*to++ = 1;
	}
	return (uint64_t)(to - body);
}

/* Its bytes. */
static inline uint64_t counted_table(uint8_t *table, uint64_t n)
{
	const uint64_t behind = n - MPERF_TIMED_WORDS;
	uint8_t *to = table;
	*to++ = MPERF_TABLE_VERSION;
	*to++ = behind > 0 ? 4 : 3; /* runs */
	*to++ = MPERF_USE_NONE;
	*to++ = MPERF_TIMED_ENTRIES;
	*to++ = MPERF_USE_SUM;
	*to++ = 1;
	*to++ = MPERF_USE_TIME;
	*to++ = 1;
	if (behind > 0) {
		*to++ = MPERF_USE_SUM;
		to = counted_number(to, behind);
	}
	*to++ = MPERF_PACKING_NONE;
	uint8_t *body = table + COUNTED_HEAD_BYTES;
	const uint64_t bytes = counted_body(body, n);
	to = counted_number(to, bytes);
	memmove(to, body, bytes);
	return (uint64_t)(to - table) + bytes;
}

#define COUNTED(n)                                                                                 \
	__thread int64_t __mperf_bias HIDDEN;                                                      \
	static uint8_t counted_bytes[COUNTED_TABLE_BYTES(n)];                                      \
	static uint64_t counted_words[n]                                                           \
		__attribute__((section("mperf_counters"), used, aligned(8)));                      \
	static struct mperf_module counted_module                                                  \
		__attribute__((section("mperf_modules"), used)) = {                                \
			.abi = MPERF_ABI_VERSION,                                                  \
			.counters = counted_words,                                                 \
			.n_counters = (n),                                                         \
			.table = counted_bytes,                                                    \
	};                                                                                         \
	static int64_t *counted_bias(void)                                                         \
	{                                                                                          \
		return &__mperf_bias;                                                              \
	}                                                                                          \
	struct mperf_object counted_object HIDDEN = {                                              \
		.abi = MPERF_ABI_VERSION,                                                          \
		.modules = __start_mperf_modules,                                                  \
		.modules_end = __stop_mperf_modules,                                               \
		.counters = __start_mperf_counters,                                                \
		.counters_end = __stop_mperf_counters,                                             \
		.bias = counted_bias,                                                              \
		.elf = __ehdr_start,                                                               \
	};                                                                                         \
	__attribute__((constructor(101))) static void counted_begin(void)                          \
	{                                                                                          \
		counted_module.table_bytes = counted_table(counted_bytes, n);                      \
		__mperf_object_register(&counted_object);                                          \
	}                                                                                          \
	__attribute__((destructor(101))) static void counted_end(void)                             \
	{                                                                                          \
		__mperf_object_unregister(&counted_object);                                        \
	}                                                                                          \
	static uint64_t *counted_word(unsigned i)                                                  \
	{                                                                                          \
		int64_t bias = __mperf_bias;                                                       \
		if (bias == 0)                                                                     \
			bias = __mperf_thread_enter(&counted_object);                              \
		return (uint64_t *)((uintptr_t)&counted_words[i] + (uintptr_t)bias);               \
	}

/* Not atomic against the thread's own signal handlers, as compiled code is not. */
#define COUNT(i, n)                                                                                \
	do {                                                                                       \
		uint64_t *word_ = counted_word(i);                                                 \
		__atomic_store_n(                                                                  \
			word_, __atomic_load_n(word_, __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED);  \
	} while (0)

/* An entry into the nest, as compiled code makes it. */
#define NEST(published, body)                                                                      \
	do {                                                                                       \
		uint64_t *words_ = counted_word(0);                                                \
		uint64_t begin_ = 0;                                                               \
		if ((int64_t)--words_[MPERF_TIMED_COUNTDOWN] < 1)                                  \
			begin_ = __mperf_loop_begin(words_, published);                            \
		body;                                                                              \
		if (begin_)                                                                        \
			__mperf_loop_end(words_, begin_);                                          \
	} while (0)
