/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Values of expressions. A missing count is not zero: an expression that needs it has no value, and
 * the missing name is returned. Operators on whole numbers refuse what C would leave undefined.
 */
#include "platform-db/expression.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "platform-db/pool.h"

#define OPERANDS_MAX 3
#define WHOLE_LIMIT 9223372036854775808.0 /* 2^63 */

static bool is_leaf(const struct expression *e)
{
	return e->operand[0] == NULL;
}

static int leaf_value(
	const struct expression *e, const struct expression_source *source, double *ret_value)
{
	if (e->kind == EXPRESSION_NUMBER) {
		*ret_value = e->number;
		return 0;
	}
	return source->value ? source->value(source->userdata, e->kind, e->name, ret_value)
			     : EXPRESSION_MISSING;
}

/* A whole number that int64_t holds; fractions are cut off, as in perf. */
static bool whole(double value, int64_t *ret_whole)
{
	if (!(fabs(value) < WHOLE_LIMIT))
		return false;
	*ret_whole = (int64_t)value;
	return true;
}

static int whole_operation(enum expression_kind kind, double a, double b, double *ret_value)
{
	int64_t x, y;
	if (!whole(a, &x) || !whole(b, &y))
		return EXPRESSION_UNDEFINED;
	if (kind == EXPRESSION_REMAINDER && y == 0)
		return EXPRESSION_UNDEFINED;
	/* INT64_MIN % -1 overflows in C; it cannot be reached, since whole() excludes -2^63. */
	*ret_value = (double)(kind == EXPRESSION_AND   ? x & y
			      : kind == EXPRESSION_OR  ? x | y
			      : kind == EXPRESSION_XOR ? x ^ y
						       : x % y);
	return 0;
}

static int operation(enum expression_kind kind, double a, double b, double *ret_value)
{
	double value = 0;
	switch (kind) {
	case EXPRESSION_NEGATE:
		value = -a;
		break;
	case EXPRESSION_ADD:
		value = a + b;
		break;
	case EXPRESSION_SUBTRACT:
		value = a - b;
		break;
	case EXPRESSION_MULTIPLY:
		value = a * b;
		break;
	case EXPRESSION_DIVIDE:
		value = b != 0 ? a / b : NAN;
		break;
	case EXPRESSION_RATIO:
		value = b != 0 ? a / b : 0;
		break;
	case EXPRESSION_LESS:
		value = a < b;
		break;
	case EXPRESSION_GREATER:
		value = a > b;
		break;
	case EXPRESSION_MIN:
		value = a < b ? a : b;
		break;
	case EXPRESSION_MAX:
		value = a > b ? a : b;
		break;
	default:
		return whole_operation(kind, a, b, ret_value);
	}
	if (!isfinite(value))
		return EXPRESSION_UNDEFINED;
	*ret_value = value;
	return 0;
}

/* The branch that an "if" takes. */
static int choose(const struct expression *e, const struct expression_source *source,
	const struct expression **ret_branch, const struct expression **ret_at)
{
	double condition;
	int error = expression_value(e->operand[1], source, &condition, ret_at);
	if (!error)
		*ret_branch = e->operand[condition != 0 ? 0 : 2];
	return error;
}

int expression_value(const struct expression *e, const struct expression_source *source,
	double *ret_value, const struct expression **ret_at)
{
	const struct expression *branch;
	double value[2] = {0, 0};
	int error = 0;
	if (e->kind == EXPRESSION_IF) {
		error = choose(e, source, &branch, ret_at);
		return error ? error : expression_value(branch, source, ret_value, ret_at);
	}
	for (int i = 0; i < 2 && e->operand[i] && !error; i++)
		error = expression_value(e->operand[i], source, &value[i], ret_at);
	if (error)
		return error;
	error = is_leaf(e) ? leaf_value(e, source, ret_value)
			   : operation(e->kind, value[0], value[1], ret_value);
	if (error)
		*ret_at = e;
	return error;
}

/* --- folding ---------------------------------------------------------------------------------- */

struct fold {
	struct pool *pool;
	const struct expression_source *source;
};

static bool is_number(const struct expression *e, double number)
{
	return e->kind == EXPRESSION_NUMBER && e->number == number;
}

/* Replace *e by a number. */
static int fold_number(const struct fold *f, const struct expression *e, double value,
	const struct expression **ret_expression)
{
	struct expression *number = pool_take(f->pool, sizeof(*number));
	if (!number)
		return -ENOMEM;
	*number = (struct expression){EXPRESSION_NUMBER, e->column, .number = value};
	*ret_expression = number;
	return 0;
}

/* The operand that an "if" with folded operands selects; NULL if that is not decided. */
static const struct expression *fold_if(const struct expression *const operand[OPERANDS_MAX])
{
	if (operand[1]->kind == EXPRESSION_NUMBER)
		return operand[operand[1]->number != 0 ? 0 : 2];
	if (operand[0]->kind == EXPRESSION_NUMBER && is_number(operand[2], operand[0]->number))
		return operand[0];
	return NULL;
}

static int fold(
	const struct fold *f, const struct expression *e, const struct expression **ret_expression);

static int fold_operands(const struct fold *f, const struct expression *e,
	const struct expression *ret_operand[OPERANDS_MAX], bool *ret_changed, bool *ret_numbers)
{
	*ret_changed = false;
	*ret_numbers = true;
	for (int i = 0; i < OPERANDS_MAX && e->operand[i]; i++) {
		int error = fold(f, e->operand[i], &ret_operand[i]);
		if (error)
			return error;
		*ret_changed |= ret_operand[i] != e->operand[i];
		*ret_numbers &= ret_operand[i]->kind == EXPRESSION_NUMBER;
	}
	return 0;
}

static int fold_operation(
	const struct fold *f, const struct expression *e, const struct expression **ret_expression)
{
	const struct expression *operand[OPERANDS_MAX] = {NULL};
	bool has_changed, are_numbers;
	double value;
	int error = fold_operands(f, e, operand, &has_changed, &are_numbers);
	if (error)
		return error;
	if (e->kind == EXPRESSION_IF) {
		const struct expression *decided = fold_if(operand);
		if (decided) {
			*ret_expression = decided;
			return 0;
		}
	} else if (e->kind == EXPRESSION_RATIO && is_number(operand[1], 0)) {
		return fold_number(f, e, 0, ret_expression);
	} else if (are_numbers) {
		error = operation(
			e->kind, operand[0]->number, operand[1] ? operand[1]->number : 0, &value);
		if (!error)
			return fold_number(f, e, value, ret_expression);
	}
	*ret_expression = e;
	if (!has_changed)
		return 0;
	struct expression *copy = pool_copy(f->pool, e, sizeof(*e));
	if (!copy)
		return -ENOMEM;
	for (int i = 0; i < OPERANDS_MAX; i++)
		copy->operand[i] = operand[i];
	*ret_expression = copy;
	return 0;
}

static int fold(
	const struct fold *f, const struct expression *e, const struct expression **ret_expression)
{
	double value;
	*ret_expression = e;
	if (!is_leaf(e))
		return fold_operation(f, e, ret_expression);
	if (e->kind == EXPRESSION_NUMBER || leaf_value(e, f->source, &value) != 0)
		return 0;
	return fold_number(f, e, value, ret_expression);
}

int expression_fold(struct pool *pool, const struct expression *e,
	const struct expression_source *source, const struct expression **ret_expression)
{
	const struct fold f = {pool, source};
	return fold(&f, e, ret_expression);
}

int expression_each(const struct expression *e,
	int (*each)(void *userdata, const struct expression *e), void *userdata)
{
	int result = each(userdata, e);
	for (int i = 0; i < OPERANDS_MAX && e->operand[i] && !result; i++)
		result = expression_each(e->operand[i], each, userdata);
	return result;
}
