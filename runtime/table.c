/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon reads tables; here we only need the counters' uses. The table is
 * from our own compiler, in read-only memory, and yet we check each step against its end: a module
 * of a broken build must not break its program.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/abi.h"
#include "runtime/table.h"

/* kind parent function source line line_last column nest inlined_at flags */
#define SCOPE_NUMBERS 10
/* scope metric factor */
#define TERM_NUMBERS 3

struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool broken;
};

/* A LEB128 number; of a signed one, its low bits. Source: DWARF 5, section 7.6. */
static uint64_t number(struct cursor *c)
{
	if (c->at != c->end && *c->at < 0x80)
		return *c->at++;
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (c->at == c->end)
			break;
		uint8_t byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->broken = true;
	return 0;
}

/* Skip n numbers by counting their last bytes, which are below 0x80, eight bytes at a time. The
 * tables of a large program have millions of numbers, and all are skipped here at its start. */
static void skip_numbers(struct cursor *c, uint64_t n)
{
	const uint64_t tops = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
	while (n > 0 && (size_t)(c->end - c->at) >= sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, c->at, sizeof(word));
		uint64_t lasts = ~word & tops;
		uint64_t n_lasts = (lasts >> 7) * ones >> 56;
		if (n_lasts >= n) {
			while (--n > 0)
				lasts &= lasts - 1;
			c->at += (unsigned)__builtin_ctzll(lasts) / 8 + 1;
			return;
		}
		n -= n_lasts;
		c->at += sizeof(word);
	}
	while (n > 0 && c->at != c->end)
		n -= *c->at++ < 0x80;
	c->broken |= n > 0;
}

static void skip_strings(struct cursor *c)
{
	for (uint64_t n = number(c); n > 0 && !c->broken; n--) {
		uint64_t bytes = number(c);
		if (bytes > (uint64_t)(c->end - c->at))
			c->broken = true;
		else
			c->at += bytes;
	}
}

static void skip_scopes(struct cursor *c)
{
	uint64_t n = number(c);
	if (n > (uint64_t)(c->end - c->at) / SCOPE_NUMBERS)
		c->broken = true;
	else
		skip_numbers(c, n * SCOPE_NUMBERS);
}

/* Parse a counter, and return its use: by its kind and its last term. */
static uint8_t counter(struct cursor *c)
{
	uint64_t kind = number(c);
	uint64_t metric = 0;
	uint64_t n = number(c);
	if (n > (uint64_t)(c->end - c->at) / TERM_NUMBERS) {
		c->broken = true;
	} else if (n > 0) {
		skip_numbers(c, n * TERM_NUMBERS - 2);
		metric = number(c) >> MPERF_VARIANT_BITS;
		skip_numbers(c, 1);
	}
	if (kind != MPERF_COUNTER_SUM)
		return MPERF_USE_NONE;
	return metric == MPERF_METRIC_TIME_NS ? MPERF_USE_TIME : MPERF_USE_SUM;
}

/* Are a timed loop's other words before its time? */
static bool timed_before(const uint8_t *uses, size_t i)
{
	return i >= MPERF_TIMED_NS && uses[i - 1] == MPERF_USE_SUM &&
	       uses[i - 2] == MPERF_USE_NONE && uses[i - 3] == MPERF_USE_NONE;
}

/* Version 2 has the uses at the front, as runs. */
static int take_runs(struct cursor *c, uint8_t *uses, size_t n)
{
	size_t at = 0;
	for (uint64_t n_runs = number(c); n_runs > 0 && !c->broken; n_runs--) {
		uint64_t use = number(c), length = number(c);
		if (use > MPERF_USE_TIME || length > n - at)
			return -EBADMSG;
		if (length > 0)
			memset(uses + at, (int)use, (size_t)length);
		at += (size_t)length;
	}
	return c->broken || at != n ? -EBADMSG : 0;
}

/* Version 1 has them at the end. */
static int take_counters(struct cursor *c, uint8_t *uses, size_t n)
{
	skip_strings(c);
	skip_scopes(c);
	if (number(c) != n)
		return -EBADMSG;
	for (size_t i = 0; i < n && !c->broken; i++)
		uses[i] = counter(c);
	return c->broken ? -EBADMSG : 0;
}

static int walk(struct cursor *c, uint8_t *uses, size_t n)
{
	uint64_t version = number(c);
	int r = -EBADMSG;
	if (version == MPERF_TABLE_VERSION_FIRST)
		r = take_counters(c, uses, n);
	else if (version == MPERF_TABLE_VERSION)
		r = take_runs(c, uses, n);
	for (size_t i = 0; i < n && r == 0; i++)
		if (uses[i] == MPERF_USE_TIME && !timed_before(uses, i))
			uses[i] = MPERF_USE_SUM;
	return r;
}

int mperf_table_uses(const uint8_t *table, size_t bytes, uint8_t *uses, size_t n)
{
	struct cursor c = {.at = table, .end = table + bytes};
	int r = walk(&c, uses, n);
	if (r < 0 && n > 0)
		memset(uses, MPERF_USE_NONE, n);
	return r;
}
