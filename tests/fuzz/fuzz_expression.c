/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as the expression of a metric. What is refused is so with a column inside the text and
 * one plain line; what is taken has the same value before and after it is folded, whether its names
 * have counts or not.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/expression.h"
#include "platform-db/pool.h"

/* A value for each name, made of its bytes; only constants where *userdata is set. */
static int value_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const bool *constants_only = userdata;
	if (strlen(name) % 4 == 3 || (*constants_only && kind == EXPRESSION_NAME))
		return EXPRESSION_MISSING;
	*ret_value = (double)(name[0] % 3);
	return 0;
}

static void must_say_where(const struct expression_error *e, size_t n)
{
	if (e->column < 1 || (size_t)e->column > n + 1 || !*e->text)
		abort();
	for (const char *at = e->text; *at; at++)
		if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
			abort();
}

static void must_be_equal(const struct expression *a, const struct expression *b)
{
	bool constants_only = false;
	const struct expression_source all = {value_of, &constants_only};
	const struct expression *at_a = NULL, *at_b = NULL;
	double x = 0, y = 0;
	int result_a = expression_value(a, &all, &x, &at_a);
	int result_b = expression_value(b, &all, &y, &at_b);
	if (result_a == 0 && !isfinite(x))
		abort();
	if (result_a != 0 && !at_a)
		abort();
	/* What needed a value that is not there may have become a number: then it was not needed. */
	if (result_a == 0 && (result_b != 0 || x != y))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(pool_freep) struct pool *pool = pool_new();
	_cleanup_(freep) char *text = calloc(1, size + 1);
	const struct expression *e = NULL, *folded = NULL;
	struct expression_error error = {0};
	if (!pool || !text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	int result = expression_parse(pool, text, &e, &error);
	if (result == EXPRESSION_WRONG)
		must_say_where(&error, strlen(text));
	if (result != 0)
		return 0;
	bool constants_only = true;
	const struct expression_source constants = {value_of, &constants_only};
	if (expression_fold(pool, e, &constants, &folded) == 0)
		must_be_equal(e, folded);
	return 0;
}
