/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The arguments are stored one after the other, so they begin at the first pointer and end with the
 * last argument. The kernel wrote the pointers, the caller of exec the texts; both may be cut off
 * by the end of the copy, and neither is trusted outside it. A program without arguments has argc 0
 * on kernels before 5.18, and is malformed here.
 */

#include "daemon/attribute/exec_stack.h"

#include <linux/auxvec.h>
#include <string.h>

struct words {
	const uint8_t *bytes;
	size_t n; /* of words */
	size_t word_bytes;
	size_t at;
};

static bool next_word(struct words *w, uint64_t *ret)
{
	if (w->at >= w->n || w->at >= EXEC_STACK_VECTORS_MAX)
		return false;
	const uint8_t *from = w->bytes + w->at++ * w->word_bytes;
	uint32_t narrow;
	if (w->word_bytes == sizeof(*ret)) {
		memcpy(ret, from, sizeof(*ret));
	} else {
		memcpy(&narrow, from, sizeof(narrow));
		*ret = narrow;
	}
	return true;
}

/* Read argc and the pointers, of which only the first and the last are kept. */
static int take_arguments(struct words *w, uint64_t *ret_first, uint64_t *ret_last)
{
	uint64_t argc, addr = 0;
	if (!next_word(w, &argc))
		return EXEC_STACK_CUT;
	if (argc == 0 || argc > INT32_MAX)
		return EXEC_STACK_MALFORMED;
	for (uint64_t i = 0; i < argc; i++) {
		if (!next_word(w, &addr))
			return EXEC_STACK_CUT;
		if (i == 0)
			*ret_first = addr;
	}
	*ret_last = addr;
	if (!next_word(w, &addr))
		return EXEC_STACK_CUT;
	return addr || *ret_last < *ret_first ? EXEC_STACK_MALFORMED : 0;
}

static int pass_environment(struct words *w)
{
	uint64_t addr;
	do
		if (!next_word(w, &addr))
			return EXEC_STACK_CUT;
	while (addr);
	return 0;
}

static int take_auxv(struct words *w, struct exec_stack *e)
{
	uint64_t type, value;
	for (;;) {
		if (!next_word(w, &type) || !next_word(w, &value))
			return EXEC_STACK_CUT;
		switch (type) {
		case AT_NULL:
			return 0;
		case AT_UID:
			e->has_uid = true;
			e->uid = (uint32_t)value;
			break;
		case AT_SECURE:
			e->secure = value;
			break;
		}
	}
}

/* first and last: where the first and the last argument begin, from sp on. */
static int take_texts(
	const uint8_t *bytes, size_t n, uint64_t first, uint64_t last, struct exec_stack *e)
{
	if (first >= n)
		return EXEC_STACK_CUT;
	const uint8_t *end = last < n ? memchr(bytes + last, '\0', n - last) : NULL;
	size_t there = (end ? (size_t)(end - bytes) : n) - first;
	if (!end && there <= e->n_argv)
		return EXEC_STACK_CUT;

	e->argv = (const char *)bytes + first;
	e->whole = there <= e->n_argv;
	if (e->whole)
		e->n_argv = there;
	return 0;
}

int exec_stack_parse(const uint8_t *bytes, size_t n, uint64_t sp, size_t word_bytes, size_t n_max,
	struct exec_stack *ret)
{
	struct words w = {.bytes = bytes, .n = n / word_bytes, .word_bytes = word_bytes};
	struct exec_stack e = {.n_argv = n_max};
	uint64_t first = 0, last = 0;

	int r = take_arguments(&w, &first, &last);
	if (!r && first < sp)
		r = EXEC_STACK_MALFORMED;
	if (!r)
		r = pass_environment(&w);
	if (!r)
		r = take_auxv(&w, &e);
	if (!r)
		r = take_texts(bytes, n, first - sp, last - sp, &e);
	if (!r)
		*ret = e;
	return r;
}
