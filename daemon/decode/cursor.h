/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A cursor in the bytes of a record: it only moves forward, stays inside them, and remembers the first error. After an
 * error every take returns zeros. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/decode/record.h"

struct cursor {
	const uint8_t *at, *end;
	int outcome; /* of the first take that failed */
	/* the raw part of a sample; NULL: none */
	const uint8_t *raw;
	uint32_t n_raw;
};

static inline size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline void fail(struct cursor *c, int outcome)
{
	if (!c->outcome)
		c->outcome = outcome;
	c->at = c->end;
}

static inline void take(struct cursor *c, void *ret, size_t n)
{
	memset(ret, 0, n);
	if (left(c) < n)
		return fail(c, RECORD_TRUNCATED);
	memcpy(ret, c->at, n);
	c->at += n;
}

static inline uint64_t take_u64(struct cursor *c)
{
	uint64_t v;
	take(c, &v, sizeof(v));
	return v;
}

static inline uint32_t take_u32(struct cursor *c)
{
	uint32_t v;
	take(c, &v, sizeof(v));
	return v;
}

static inline uint16_t take_u16(struct cursor *c)
{
	uint16_t v;
	take(c, &v, sizeof(v));
	return v;
}

/* Borrow an array whose length the record itself gives. */
static inline const uint8_t *take_array(struct cursor *c, uint64_t n, size_t element_bytes)
{
	if (n > left(c) / element_bytes) {
		fail(c, RECORD_HOSTILE);
		return NULL;
	}

	const uint8_t *p = c->at;
	c->at += n * element_bytes;
	return p;
}

/* Borrow the string that fills the rest of the body. */
static inline const char *take_string(struct cursor *c)
{
	const char *s = (const char *)c->at;
	if (!memchr(s, '\0', left(c))) {
		fail(c, left(c) ? RECORD_HOSTILE : RECORD_TRUNCATED);
		return "";
	}
	c->at = c->end;
	return s;
}
