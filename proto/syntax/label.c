/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "proto/syntax/label.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

static void json_unref(json_t **json)
{
	json_decref(*json);
}
#define _cleanup_json_ _cleanup_(json_unref)

static bool begins_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_key(const char *key)
{
	if (!begins_key(*key) || strlen(key) > LABEL_KEY_BYTES_MAX)
		return false;
	for (const char *p = key; *p; p++)
		if (!begins_key(*p) && !(*p >= '0' && *p <= '9') && *p != '.' && *p != '-')
			return false;
	return true;
}

static bool has_control(const char *value)
{
	for (const unsigned char *p = (const unsigned char *)value; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return true;
	return false;
}

static int wrong(struct label_fault *fault, const char *key, const char *what)
{
	/* the key may be anything: jansson decides what is UTF-8 */
	json_t *shown = json_string(key);
	snprintf(fault->text, sizeof(fault->text), "label '%.*s' %s", LABEL_KEY_BYTES_MAX,
		shown ? key : "?", what);
	json_decref(shown);
	return LABELS_WRONG;
}

bool label_is_of_cgroup(const char *text)
{
	static const char *const keys[] = {"unit", "container", "slurm_job", "runner"};
	const size_t n = strcspn(text, "=");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strlen(keys[i]) == n && strncmp(keys[i], text, n) == 0)
			return true;
	return false;
}

bool label_is_reserved(const char *key)
{
	static const char *const words[] = {"since", "until", "last", "user", "uid"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(words[i], key) == 0)
			return true;
	return false;
}

int label_make(
	const char *key, const char *value, struct label *ret_label, struct label_fault *ret_fault)
{
	_cleanup_json_ json_t *text = json_string(value);

	if (!is_key(key))
		return wrong(ret_fault, key,
			"is not a name of at most 64 letters, digits, '_', '.' and '-'");
	if (strlen(value) > LABEL_VALUE_BYTES_MAX)
		return wrong(ret_fault, key, "has a value of more than 256 bytes");
	if (!text)
		return wrong(ret_fault, key, "has a value that is not UTF-8");
	if (has_control(value))
		return wrong(ret_fault, key, "has a value with a control character");
	snprintf(ret_label->key, sizeof(ret_label->key), "%s", key);
	snprintf(ret_label->value, sizeof(ret_label->value), "%s", value);
	return 0;
}

int label_parse(const char *text, struct label *ret_label, struct label_fault *ret_fault)
{
	const char *equals = strchr(text, '=');
	char key[LABEL_KEY_BYTES_MAX + 2];

	if (!equals) {
		snprintf(ret_fault->text, sizeof(ret_fault->text),
			"label '%.64s' is not of the form KEY=VALUE", text);
		return LABELS_WRONG;
	}
	size_t n = (size_t)(equals - text);
	snprintf(key, sizeof(key), "%.*s", (int)(n < sizeof(key) ? n : sizeof(key) - 1), text);
	if (label_is_reserved(key))
		return wrong(ret_fault, key,
			"has a reserved name: since, until, last, user and uid select by time and "
			"user");
	return label_make(key, equals + 1, ret_label, ret_fault);
}

int labels_write(
	const struct label *label, size_t n, char **ret_json, struct label_fault *ret_fault)
{
	_cleanup_json_ json_t *set = json_object();

	if (!set)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (json_object_set_new(set, label[i].key, json_string(label[i].value)) < 0)
			return -ENOMEM;
	if (json_object_size(set) > LABELS_MAX) {
		snprintf(ret_fault->text, sizeof(ret_fault->text),
			"a job has at most %d labels, but this one has %zu", LABELS_MAX,
			json_object_size(set));
		return LABELS_WRONG;
	}
	char *json = json_dumps(set, JSON_COMPACT | JSON_SORT_KEYS);
	if (!json)
		return -ENOMEM;
	*ret_json = json;
	return 0;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

size_t labels_read(const char *json, struct label *ret_label)
{
	struct label_fault fault;
	const char *key;
	json_t *value;
	size_t n = 0;

	if (!json || strnlen(json, LABELS_BYTES_MAX + 1) > LABELS_BYTES_MAX)
		return 0;
	_cleanup_json_ json_t *set = json_loads(json, 0, NULL);
	json_object_foreach(set, key, value) if (n < LABELS_MAX && json_is_string(value) &&
						 label_make(key, json_string_value(value),
							 &ret_label[n], &fault) == 0) n++;
	if (n > 1)
		qsort(ret_label, n, sizeof(*ret_label), by_key);
	return n;
}

/* Bytes of the character of UTF-8 that begins there; 1 if there is none, and 0 at the end. */
static size_t character(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	const size_t n = *p >= 0xf0 && *p < 0xf8   ? 4
			 : *p >= 0xe0 && *p < 0xf0 ? 3
			 : *p >= 0xc0 && *p < 0xe0 ? 2
						   : *p != '\0';
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 1;
	return n;
}

#define CHARACTER_BYTES_MAX 4
#define PLACE_WORDS (LABEL_VALUE_BYTES_MAX / 64 + 1)

/* Places in a value: a bit for each of its bytes, and one for its end. */
struct places {
	uint64_t word[PLACE_WORDS];
};

struct places_of {
	struct places byte[256]; /* places with that byte */
	/* places where a character of that many bytes begins */
	struct places length[CHARACTER_BYTES_MAX + 1];
	/* places where a character begins, or the value ends */
	struct places begin;
};

static void place_add(struct places *p, size_t at)
{
	p->word[at / 64] |= UINT64_C(1) << at % 64;
}

static bool place_is(const struct places *p, size_t at)
{
	return p->word[at / 64] >> at % 64 & 1;
}

static void find_places(const char *text, size_t n, struct places_of *ret_of)
{
	memset(ret_of, 0, sizeof(*ret_of));
	for (size_t at = 0; at < n; at++)
		place_add(&ret_of->byte[(unsigned char)text[at]], at);
	for (size_t at = 0; at < n; at += character(text + at)) {
		place_add(&ret_of->length[character(text + at)], at);
		place_add(&ret_of->begin, at);
	}
	place_add(&ret_of->begin, n);
}

/* Add the places n bytes behind those of `from` that are in `where`. False: there are none. */
static bool go_on(
	const struct places *from, const struct places *where, size_t n, struct places *to)
{
	uint64_t over = 0, any = 0;
	for (size_t i = 0; i < PLACE_WORDS; i++) {
		const uint64_t word = from->word[i] & where->word[i];
		to->word[i] |= word << n | over;
		over = word >> (64 - n);
		any |= word;
	}
	return any;
}

/* Any number of characters. */
static struct places any_behind(const struct places *from, const struct places *begin)
{
	struct places to;
	uint64_t all = 0;
	for (size_t i = 0; i < PLACE_WORDS; i++) {
		const uint64_t lowest = from->word[i] & -from->word[i];
		to.word[i] = (all | -lowest) & begin->word[i];
		all |= lowest ? UINT64_MAX : 0;
	}
	return to;
}

/* Match a literal character of n bytes. */
static bool take_literal(const struct places_of *of, const char *bytes, size_t n, struct places *at)
{
	const bool is_ascii = (unsigned char)*bytes < 0x80; /* one character at any place */
	for (size_t i = 0; i < PLACE_WORDS && !is_ascii; i++)
		at->word[i] &= of->length[n].word[i];
	for (size_t i = 0; i < n; i++) {
		struct places next = {{0}};
		if (!go_on(at, &of->byte[(unsigned char)bytes[i]], 1, &next))
			return false;
		*at = next;
	}
	return true;
}

static bool take_any_one(const struct places_of *of, struct places *at)
{
	struct places next = {{0}};
	bool any = false;
	for (size_t n = 1; n <= CHARACTER_BYTES_MAX; n++)
		any |= go_on(at, &of->length[n], n, &next);
	*at = next;
	return any;
}

/* Match by tracking all places that the pattern's beginning may reach, at once: a user chooses both texts,
 * and may have thousands of them compared. */
static bool value_matches(const char *pattern, const char *text)
{
	const size_t n = strlen(text);
	struct places_of of;
	struct places at = {{1}};
	if (!pattern[strcspn(pattern, "*?\\")] || n > LABEL_VALUE_BYTES_MAX)
		return strcmp(pattern, text) == 0;
	find_places(text, n, &of);
	for (size_t n_taken; *pattern; pattern += n_taken) {
		n_taken = 1;
		if (*pattern == '*') {
			at = any_behind(&at, &of.begin);
		} else if (*pattern == '?') {
			if (!take_any_one(&of, &at))
				return false;
		} else {
			pattern += *pattern == '\\';
			n_taken = character(pattern);
			if (n_taken == 0 || !take_literal(&of, pattern, n_taken, &at))
				return false;
		}
	}
	return place_is(&at, n);
}

bool label_matches(const struct label *wanted, const struct label *label, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(label[i].key, wanted->key) == 0 &&
			value_matches(wanted->value, label[i].value))
			return true;
	return false;
}

bool labels_match(const struct label *wanted, size_t n_wanted, const struct label *label, size_t n)
{
	size_t i = 0;
	while (i < n_wanted && label_matches(&wanted[i], label, n))
		i++;
	return i == n_wanted;
}

const char *label_escape(const char *value, char *text, size_t size)
{
	size_t n = 0;

	for (; *value; value++) {
		const bool special = strchr("*?,\\", *value);
		if (n + special + 1 >= size)
			break;
		if (special)
			text[n++] = '\\';
		text[n++] = *value;
	}
	text[n] = '\0';
	return text;
}

/* Drop the last character of a text that was cut at a byte, if a part of that character may be
 * missing. */
static void drop_last(char *text)
{
	size_t n = strlen(text);
	if (n == 0 || (unsigned char)text[n - 1] < 0x80)
		return;
	while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0)
		text[n - 1] = '\0';
}

bool label_pattern_is_whole(const char *value)
{
	while (*value) {
		if (value[0] == '\\' && value[1] == '\0')
			return false;
		value += value[0] == '\\' ? 2 : 1;
	}
	return true;
}

static const char *say(const struct label *label, size_t n, bool escape, char *text, size_t size)
{
	char value[2 * LABEL_VALUE_BYTES_MAX + 1];
	size_t at = 0;

	*text = '\0';
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s=%s", i ? ", " : "", label[i].key,
			escape ? label_escape(label[i].value, value, sizeof(value))
			       : label[i].value);
	if (at >= size)
		drop_last(text);
	return text;
}

const char *labels_say(const struct label *label, size_t n, char *text, size_t size)
{
	return say(label, n, true, text, size);
}

const char *labels_say_json(const char *json, char *text, size_t size)
{
	struct label label[LABELS_MAX];
	const size_t n = labels_read(json, label);
	return labels_say(label, n, text, size);
}

const char *labels_say_wanted(const struct label *label, size_t n, char *text, size_t size)
{
	return say(label, n, false, text, size);
}
