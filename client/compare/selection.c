/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A branch's name may have commas, and the author of a branch chooses its name, so commas can be escaped.
 */
#include "client/compare/selection.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

static const char key_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

bool selection_is_one(const char *text)
{
	return *text && !strchr("0123456789.-=", *text) && text[strspn(text, key_bytes)] == '=';
}

static int __attribute__((format(printf, 2, 3))) wrong(
	struct selection_fault *fault, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return SELECTION_WRONG;
}

/* --- parts ------------------------------------------------------------------------------------ */

static int take_time(const char *key, const char *value, int64_t now_ns, int64_t *ret_ns,
	struct selection_fault *fault)
{
	if (*ret_ns)
		return wrong(fault, "%s= is given twice", key);
	if (unit_parse_time(value, now_ns, ret_ns) != 0 || *ret_ns <= 0)
		return wrong(fault,
			"%s= takes a time like 10:30, yesterday, 2026-11-21T10:00 or -5m, not "
			"'%.100s'",
			key, value);
	return 0;
}

/* A number from 0 to max; -1: it is not such a number. */
static int64_t number(const char *text, uint32_t max)
{
	char *end;
	if (*text < '0' || *text > '9' || strlen(text) > 10)
		return -1;
	long long n = strtoll(text, &end, 10);
	return *end || n > max ? -1 : n;
}

static int take_last(struct selection *s, const char *value, struct selection_fault *fault)
{
	const int64_t n = number(value, UINT32_MAX);
	if (s->last)
		return wrong(fault, "last= is given twice");
	if (n <= 0)
		return wrong(fault, "last= takes a number of jobs from 1, not '%.100s'", value);
	s->last = (uint32_t)n;
	return 0;
}

/* Remove each backslash that escapes a character. */
static void unescape(char *text)
{
	char *to = text;
	for (; *text; text++) {
		text += *text == '\\' && text[1];
		*to++ = *text;
	}
	*to = '\0';
}

/* Find a user by name, or else by number. */
static int take_user(struct selection *s, char *value, bool by_name, struct selection_fault *fault)
{
	const bool escaped = strchr(value, '\\') != NULL;
	unescape(value);
	const struct passwd *user = by_name ? getpwnam(value) : NULL;
	/* the last uid means "none" to system calls. Source: chown(2) */
	const int64_t n = by_name ? -1 : number(value, UINT32_MAX - 1);
	if (by_name && !user)
		return wrong(fault, "there is no user '%.100s'%s", value,
			escaped ? " (a backslash is written \\\\)" : "");
	if (!by_name && n < 0)
		return wrong(fault, "uid= takes a user's number, not '%.100s'", value);
	if (s->n_uids == SELECTION_UIDS_MAX)
		return wrong(fault, "a selection takes at most %d users", SELECTION_UIDS_MAX);
	s->uid[s->n_uids++] = user ? user->pw_uid : (uint32_t)n;
	return 0;
}

static int take_label(struct selection *s, const char *part, struct selection_fault *fault)
{
	struct label label, other;
	struct label_fault says;
	if (label_parse(part, &label, &says) != 0)
		return wrong(fault, "%s", says.text);
	if (!label_pattern_is_whole(label.value))
		return wrong(fault,
			"the value of label '%s' ends with a backslash that nothing follows",
			label.key);
	for (size_t i = 0; i < s->n_labels; i++)
		if (label_parse(s->label[i], &other, &says) == 0 &&
			strcmp(other.key, label.key) == 0)
			return wrong(fault, "label '%s' is given twice", label.key);
	if (s->n_labels == LABELS_MAX)
		return wrong(fault, "a job has at most %d labels", LABELS_MAX);
	s->label[s->n_labels] = strdup(part);
	return s->label[s->n_labels++] ? 0 : -ENOMEM;
}

static int take_part(struct selection *s, char *part, int64_t now_ns, struct selection_fault *fault)
{
	const size_t n = strcspn(part, "=");
	char *value = part[n] ? part + n + 1 : part + n;
	char key[8] = "";
	if (n < sizeof(key) && part[n])
		memcpy(key, part, n);
	if (strcmp(key, "since") == 0)
		return take_time(key, value, now_ns, &s->since_ns, fault);
	if (strcmp(key, "until") == 0)
		return take_time(key, value, now_ns, &s->until_ns, fault);
	if (strcmp(key, "last") == 0)
		return take_last(s, value, fault);
	if (strcmp(key, "uid") == 0 || strcmp(key, "user") == 0)
		return take_user(s, value, key[1] == 's', fault);
	return take_label(s, part, fault);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* The end of the part that begins at text: a comma that is not escaped, or the end of the text. */
static char *end_of_part(char *text)
{
	for (; *text && *text != ','; text++)
		if (*text == '\\' && text[1])
			text++;
	return text;
}

static int check(const struct selection *s, struct selection_fault *fault)
{
	if (s->since_ns && s->until_ns && s->until_ns <= s->since_ns)
		return wrong(fault, "until= must be later than since=");
	if (s->n_labels)
		return 0;
	if (!s->since_ns)
		return wrong(fault,
			"it needs a label, to select jobs, or since=, to select a time range");
	if (s->last || s->n_uids)
		return wrong(fault, "last=, user= and uid= need a label: without one, a time range "
				    "is one run of everything that you may see");
	return 0;
}

int selection_parse(const char *text, int64_t now_ns, struct selection *ret_selection,
	struct selection_fault *ret_fault)
{
	_cleanup_(freep) char *copy = strdup(text);
	struct selection s = {.n_labels = 0};
	int r = copy ? 0 : -ENOMEM;
	for (char *at = copy, *end; r == 0 && at; at = end) {
		end = end_of_part(at);
		const bool more = *end;
		*end = '\0';
		end = more ? end + 1 + strspn(end + 1, " ") : NULL;
		r = *at ? take_part(&s, at, now_ns, ret_fault)
			: wrong(ret_fault, "an item is empty: leave out one comma");
	}
	if (r == 0)
		r = check(&s, ret_fault);
	if (r == 0)
		*ret_selection = s;
	else
		selection_clear(&s);
	return r;
}

void selection_clear(struct selection *s)
{
	for (size_t i = 0; i < s->n_labels; i++)
		free(s->label[i]);
	*s = (struct selection){.n_labels = 0};
}
