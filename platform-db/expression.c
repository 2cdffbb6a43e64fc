/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Expressions from text to tree. Each token is cut as perf's scanner cuts it: a name may begin with
 * digits ("4K_LOADS") or be all digits and dots, so the longest match wins, and of equally long
 * ones the number. Operators are parsed by their precedence; all nesting goes through parse_if(),
 * which counts the depth.
 */
#include "platform-db/expression.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/pool.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_CHARACTERS DIGITS LETTERS "_.:@?"
#define CONSTANT_CHARACTERS DIGITS LETTERS "_.-"
#define ESCAPED_CHARACTERS "-,="

enum token {
	TOKEN_END,
	TOKEN_NUMBER,
	TOKEN_NAME,
	TOKEN_CONSTANT,
	TOKEN_IF,
	TOKEN_ELSE,
	TOKEN_CALL,     /* a function's name */
	TOKEN_OPERATOR, /* one character, also ( ) and , */
};

struct parser {
	struct pool *pool;
	const char *text;
	size_t n_nodes;
	int depth;
	/* The token in hand. */
	enum token token;
	const char *at; /* its first byte */
	size_t n;       /* and how many */
	struct expression_error *ret_error;
};

static const struct function {
	const char *name;
	enum expression_kind kind;
	int n_operands; /* 0: a name instead */
} functions[] = {
	{"min", EXPRESSION_MIN, 2},
	{"max", EXPRESSION_MAX, 2},
	{"d_ratio", EXPRESSION_RATIO, 2},
	{"source_count", EXPRESSION_SOURCE_COUNT, 0},
	{"has_event", EXPRESSION_HAS_EVENT, 0},
	{"strcmp_cpuid_str", EXPRESSION_CPUID, 0},
};

static const struct operation {
	char character;
	int level; /* higher levels bind more tightly */
	enum expression_kind kind;
} operations[] = {
	{'|', 1, EXPRESSION_OR},
	{'^', 2, EXPRESSION_XOR},
	{'&', 3, EXPRESSION_AND},
	{'<', 4, EXPRESSION_LESS},
	{'>', 4, EXPRESSION_GREATER},
	{'+', 5, EXPRESSION_ADD},
	{'-', 5, EXPRESSION_SUBTRACT},
	{'*', 6, EXPRESSION_MULTIPLY},
	{'/', 6, EXPRESSION_DIVIDE},
	{'%', 6, EXPRESSION_REMAINDER},
};

#define N(table) (sizeof(table) / sizeof((table)[0]))

__attribute__((format(printf, 2, 3))) static int wrong(
	const struct parser *p, const char *format, ...)
{
	va_list arguments;
	p->ret_error->column = (int)(p->at - p->text) + 1;
	va_start(arguments, format);
	vsnprintf(p->ret_error->text, sizeof(p->ret_error->text), format, arguments);
	va_end(arguments);
	return EXPRESSION_WRONG;
}

/* --- tokens ----------------------------------------------------------------------------------- */

/* Bytes of a number at `at`: digits with a point among them, and an exponent. */
static size_t number_length(const char *at)
{
	size_t whole = strspn(at, DIGITS), n = whole;
	if (at[n] == '.') {
		size_t part = strspn(at + n + 1, DIGITS);
		if (whole + part == 0)
			return 0;
		n += 1 + part;
	}
	if (n > 0 && at[n] == 'e') {
		size_t sign = at[n + 1] == '-', digits = strspn(at + n + 1 + sign, DIGITS);
		n += digits ? 1 + sign + digits : 0;
	}
	return n;
}

static size_t name_length(const char *at)
{
	size_t n = 0;
	for (;;) {
		if (at[n] && strchr(NAME_CHARACTERS, at[n]))
			n++;
		else if (at[n] == '\\' && at[n + 1] && strchr(ESCAPED_CHARACTERS, at[n + 1]))
			n += 2;
		else
			return n;
	}
}

static bool token_is(const struct parser *p, const char *word)
{
	return strlen(word) == p->n && memcmp(p->at, word, p->n) == 0;
}

static const struct function *token_function(const struct parser *p)
{
	for (size_t i = 0; i < N(functions); i++)
		if (token_is(p, functions[i].name))
			return &functions[i];
	return NULL;
}

static enum token name_kind(const struct parser *p)
{
	if (token_is(p, "if"))
		return TOKEN_IF;
	if (token_is(p, "else"))
		return TOKEN_ELSE;
	return token_function(p) ? TOKEN_CALL : TOKEN_NAME;
}

static int take(struct parser *p, enum token token, size_t n)
{
	p->n = n;
	p->token = token;
	return 0;
}

static int next_token(struct parser *p)
{
	p->at += p->n;
	p->at += strspn(p->at, " \t\r\n");
	size_t name = name_length(p->at), number = number_length(p->at);
	if (*p->at == '\0')
		return take(p, TOKEN_END, 0);
	if (number > 0 && number >= name)
		return take(p, TOKEN_NUMBER, number);
	if (name > 0) {
		p->n = name;
		return take(p, name_kind(p), name);
	}
	if (*p->at == '#') {
		size_t n = strspn(p->at + 1, CONSTANT_CHARACTERS);
		return n ? take(p, TOKEN_CONSTANT, n + 1)
			 : wrong(p, "the name of a constant is missing behind '#'");
	}
	if (strchr("()+-*/%|^&<>,", *p->at))
		return take(p, TOKEN_OPERATOR, 1);
	p->n = 1;
	if ((unsigned char)*p->at < 0x20 || (unsigned char)*p->at >= 0x7f)
		return wrong(p, "a character that is not allowed in an expression");
	return wrong(p, "'%c' is not allowed in an expression", *p->at);
}

static bool token_is_operator(const struct parser *p, char character)
{
	return p->token == TOKEN_OPERATOR && *p->at == character;
}

/* Text of the current token, for an error. */
static const char *token_says(const struct parser *p, char says[64])
{
	if (p->token == TOKEN_END)
		return "the end";
	snprintf(says, 64, "'%.*s'", (int)(p->n < 48 ? p->n : 48), p->at);
	return says;
}

static int expect(struct parser *p, char character)
{
	char says[64];
	if (!token_is_operator(p, character))
		return wrong(p, "'%c' is missing before %s", character, token_says(p, says));
	return next_token(p);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int node_new(
	struct parser *p, enum expression_kind kind, const char *at, struct expression **ret_node)
{
	if (p->n_nodes++ == EXPRESSION_NODES_MAX)
		return wrong(p, "more than %d operators and operands", EXPRESSION_NODES_MAX);
	struct expression *e = pool_take(p->pool, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->kind = kind;
	e->column = (int)(at - p->text) + 1;
	*ret_node = e;
	return 0;
}

/* The text of the token, without backslashes and "#". */
static int take_name(struct parser *p, struct expression *e)
{
	char name[EXPRESSION_NAME_MAX + 1];
	size_t n = 0;
	for (size_t i = p->token == TOKEN_CONSTANT; i < p->n; i++) {
		if (p->at[i] == '\\')
			continue;
		if (n == EXPRESSION_NAME_MAX)
			return wrong(p, "a name of more than %d bytes", EXPRESSION_NAME_MAX);
		name[n++] = p->at[i];
	}
	name[n] = '\0';
	e->name = pool_text(p->pool, name);
	return e->name ? next_token(p) : -ENOMEM;
}

static int take_number(struct parser *p, struct expression *e)
{
	char digits[64];
	if (p->n >= sizeof(digits))
		return wrong(p, "a number of more than %zu characters", sizeof(digits) - 1);
	memcpy(digits, p->at, p->n);
	digits[p->n] = '\0';
	e->number = strtod(digits, NULL);
	if (!isfinite(e->number))
		return wrong(p, "%s is too large", digits);
	return next_token(p);
}

static int parse_if(struct parser *p, const struct expression **ret_node);

static int parse_call(struct parser *p, const struct expression **ret_node)
{
	const struct function *f = token_function(p);
	struct expression *e;
	char says[64];
	int error = node_new(p, f->kind, p->at, &e);
	if (!error)
		error = next_token(p);
	if (!error)
		error = expect(p, '(');
	if (!error && f->n_operands == 0)
		error = p->token == TOKEN_NAME || p->token == TOKEN_NUMBER
				? take_name(p, e)
				: wrong(p, "%s needs a name, not %s", f->name, token_says(p, says));
	for (int i = 0; i < f->n_operands && !error; i++) {
		error = i > 0 ? expect(p, ',') : 0;
		if (!error)
			error = parse_if(p, &e->operand[i]);
	}
	if (!error)
		error = expect(p, ')');
	if (!error)
		*ret_node = e;
	return error;
}

static int parse_leaf(struct parser *p, const struct expression **ret_node)
{
	static const enum expression_kind kinds[] = {
		[TOKEN_NUMBER] = EXPRESSION_NUMBER,
		[TOKEN_NAME] = EXPRESSION_NAME,
		[TOKEN_CONSTANT] = EXPRESSION_CONSTANT,
	};
	struct expression *e;
	int error = node_new(p, kinds[p->token], p->at, &e);
	if (!error)
		error = p->token == TOKEN_NUMBER ? take_number(p, e) : take_name(p, e);
	if (!error)
		*ret_node = e;
	return error;
}

static int parse_operand(struct parser *p, const struct expression **ret_node)
{
	char says[64];
	if (p->token == TOKEN_NUMBER || p->token == TOKEN_NAME || p->token == TOKEN_CONSTANT)
		return parse_leaf(p, ret_node);
	if (p->token == TOKEN_CALL)
		return parse_call(p, ret_node);
	if (!token_is_operator(p, '('))
		return wrong(p, "a value is missing before %s", token_says(p, says));
	int error = next_token(p);
	if (!error)
		error = parse_if(p, ret_node);
	return error ? error : expect(p, ')');
}

/* Any number of minus signs, then an operand. */
static int parse_signed(struct parser *p, const struct expression **ret_node)
{
	const char *sign = p->at;
	bool is_negative = false, has_sign = false;
	int error = 0;
	for (; !error && token_is_operator(p, '-'); error = next_token(p)) {
		is_negative = !is_negative;
		has_sign = true;
	}
	if (!error)
		error = parse_operand(p, ret_node);
	if (error || !has_sign || !is_negative)
		return error;
	struct expression *e;
	error = node_new(p, EXPRESSION_NEGATE, sign, &e);
	if (error)
		return error;
	e->operand[0] = *ret_node;
	*ret_node = e;
	return 0;
}

static const struct operation *token_operation(const struct parser *p)
{
	for (size_t i = 0; i < N(operations); i++)
		if (token_is_operator(p, operations[i].character))
			return &operations[i];
	return NULL;
}

/* Operators of that level and above. Levels are few, so this recursion needs no limit. */
static int parse_operators(struct parser *p, int level, const struct expression **ret_node)
{
	const struct operation *o;
	int error = parse_signed(p, ret_node);
	while (!error && (o = token_operation(p)) && o->level >= level) {
		struct expression *e;
		error = node_new(p, o->kind, p->at, &e);
		if (!error)
			error = next_token(p);
		if (error)
			return error;
		e->operand[0] = *ret_node;
		error = parse_operators(p, o->level + 1, &e->operand[1]);
		*ret_node = e;
	}
	return error;
}

static int parse_if(struct parser *p, const struct expression **ret_node)
{
	struct expression *e;
	char says[64];
	if (p->depth == EXPRESSION_DEPTH_MAX)
		return wrong(p, "nested deeper than %d", EXPRESSION_DEPTH_MAX);
	p->depth++;
	int error = parse_operators(p, 1, ret_node);
	if (!error && p->token == TOKEN_IF) {
		error = node_new(p, EXPRESSION_IF, p->at, &e);
		if (!error)
			error = next_token(p);
		if (!error)
			error = parse_operators(p, 1, &e->operand[1]);
		if (!error)
			error = p->token == TOKEN_ELSE ? next_token(p)
						       : wrong(p, "'else' is missing before %s",
								 token_says(p, says));
		if (!error)
			error = parse_if(p, &e->operand[2]);
		if (error)
			return error;
		e->operand[0] = *ret_node;
		*ret_node = e;
	}
	p->depth--;
	return error;
}

int expression_parse(struct pool *pool, const char *text, const struct expression **ret_expression,
	struct expression_error *ret_error)
{
	struct parser p = {.pool = pool, .text = text, .at = text, .ret_error = ret_error};
	const struct expression *e = NULL;
	char says[64];
	if (strnlen(text, EXPRESSION_BYTES_MAX + 1) > EXPRESSION_BYTES_MAX)
		return wrong(&p, "longer than %d bytes", EXPRESSION_BYTES_MAX);
	int error = next_token(&p);
	if (!error)
		error = parse_if(&p, &e);
	if (!error && p.token != TOKEN_END)
		error = wrong(&p, "an operator is missing before %s", token_says(&p, says));
	if (!error)
		*ret_expression = e;
	return error;
}
