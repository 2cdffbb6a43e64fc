/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"

static const char *const isa_names[N_ISAS] = {"x86-64", "aarch64", "riscv64"};

static const struct {
	const char *word;
	enum element element;
} elements[] = {
	{"fp16", ELEMENT_FP16},
	{"fp32", ELEMENT_FP32},
	{"fp64", ELEMENT_FP64},
	{"fp80", ELEMENT_FP80},
	{"fp", ELEMENT_FP},
	{"int8", ELEMENT_INT8},
	{"int16", ELEMENT_INT16},
	{"int32", ELEMENT_INT32},
	{"int64", ELEMENT_INT64},
	{"int", ELEMENT_INT},
};

static const struct {
	const char *word;
	enum flow flow;
	uint16_t flags;
	uint8_t bytes;
} words[] = {
	{.word = "jump", .flow = FLOW_JUMP},
	{.word = "branch", .flow = FLOW_BRANCH},
	{.word = "call", .flow = FLOW_CALL},
	{.word = "return", .flow = FLOW_RETURN},
	{.word = "load", .flags = ROW_LOAD},
	{.word = "store", .flags = ROW_STORE},
	{.word = "update", .flags = ROW_LOAD | ROW_STORE},
	{.word = "packed", .flags = ROW_PACKED},
	{.word = "pair", .flags = ROW_PAIR},
	{.word = "gather", .flags = ROW_GATHER},
	{.word = "masked", .flags = ROW_MASKED},
	{.word = "vector", .flags = ROW_VECTOR},
	{.word = "wide", .flags = ROW_WIDE},
	{.word = "whole", .flags = ROW_WHOLE},
	{.word = "unknown", .flags = ROW_UNKNOWN},
	{.word = "address", .flags = ROW_ADDRESS},
	{.word = "none"},
	{.word = "b1", .bytes = 1},
	{.word = "b2", .bytes = 2},
	{.word = "b4", .bytes = 4},
	{.word = "b8", .bytes = 8},
	{.word = "b16", .bytes = 16},
};

/* "fp64:2": an element and the operations on each. */
static bool take_element(struct row *row, const char *word)
{
	const char *colon = strchr(word, ':');
	size_t n = colon ? (size_t)(colon - word) : 0;
	if (!colon || colon[1] < '1' || colon[1] > '9' || colon[2] || row->element)
		return false;
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
		if (strlen(elements[i].word) == n && memcmp(elements[i].word, word, n) == 0)
			row->element = elements[i].element;
	row->operations = (uint8_t)(colon[1] - '0');
	return row->element != ELEMENT_NONE;
}

static bool take_word(struct row *row, const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(words[i].word, word) != 0)
			continue;
		if ((words[i].flow && row->flow) || (words[i].bytes && row->bytes))
			return false;
		row->flow = words[i].flow ? words[i].flow : row->flow;
		row->bytes = words[i].bytes ? words[i].bytes : row->bytes;
		row->flags |= words[i].flags;
		return true;
	}
	return take_element(row, word);
}

/* Cut the line at blanks, in place: its next word, or NULL. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t");
	if (!*word)
		return NULL;
	char *end = word + strcspn(word, " \t");
	*at = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static int add(struct table *t, const struct row *row)
{
	if (t->n == TABLE_ROWS_MAX)
		return TABLE_MALFORMED;
	int r = array_grow(&t->row, &t->size, t->n + 1, sizeof(*t->row));
	if (r < 0)
		return r;
	t->row[t->n++] = *row;
	return 0;
}

/* ISA PATTERNS WORDS…; patterns are separated by commas. isa: that of the lines before. */
static int take_line(struct table *t, char *line, int *isa)
{
	struct row row = {.flow = FLOW_NEXT};
	char *comment = strchr(line, '#'), *at = line, *save = NULL;
	if (comment)
		*comment = '\0';
	const char *name = next_word(&at), *word;
	if (!name)
		return 0;
	int named = 0;
	while (named < N_ISAS && strcmp(isa_names[named], name) != 0)
		named++;
	char *patterns = next_word(&at);
	if (named == N_ISAS || named < *isa || !patterns)
		return TABLE_MALFORMED;
	while (*isa < named)
		t->first[++*isa] = t->n;
	unsigned n_words = 0;
	for (; (word = next_word(&at)); n_words++)
		if (!take_word(&row, word))
			return TABLE_MALFORMED;
	int r = n_words > 0 ? 0 : TABLE_MALFORMED;
	for (char *p = strtok_r(patterns, ",", &save); p && r == 0;
		p = strtok_r(NULL, ",", &save)) {
		if (strlen(p) >= sizeof(row.pattern))
			return TABLE_MALFORMED;
		memset(row.pattern, 0, sizeof(row.pattern));
		strcpy(row.pattern, p);
		r = add(t, &row);
	}
	return r;
}

int table_parse(struct table *t, const char *text, size_t n, unsigned *ret_line)
{
	int isa = 0, r = 0;
	unsigned line_number = 0;
	*t = (struct table){.row = NULL};
	while (n > 0 && r == 0) {
		char line[1024];
		const char *end = memchr(text, '\n', n);
		size_t length = end ? (size_t)(end - text) : n;
		line_number++;
		if (length >= sizeof(line) || memchr(text, '\0', length)) {
			r = TABLE_MALFORMED;
			break;
		}
		memcpy(line, text, length);
		line[length] = '\0';
		r = take_line(t, line, &isa);
		length += end ? 1 : 0;
		text += length;
		n -= length;
	}
	while (isa < N_ISAS)
		t->first[++isa] = t->n;
	if (r != 0)
		table_clear(t);
	if (r > 0)
		*ret_line = line_number;
	return r;
}

static const char text_of_table[] =
#include "daemon/code/mnemonics.txt.inc"
	;

int table_load(struct table *t)
{
	unsigned line;
	int r = table_parse(t, text_of_table, sizeof(text_of_table) - 1, &line);
	return r > 0 ? -EINVAL : r;
}

void table_clear(struct table *t)
{
	free(t->row);
	*t = (struct table){.row = NULL};
}

/* Linear, except for patterns with several stars; rows have two at most. */
static bool matches(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			resume = text;
		} else if (*pattern == *text || *pattern == '?') {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

const struct row *table_find(const struct table *t, enum isa isa, const char *mnemonic)
{
	for (uint32_t i = t->first[isa]; i < t->first[isa + 1]; i++)
		if (matches(t->row[i].pattern, mnemonic))
			return &t->row[i];
	return NULL;
}
