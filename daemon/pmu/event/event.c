/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The shape of an -e argument:
 *
 *      list     = item { "," item }
 *      item     = event | "{" event { "," event } "}" [ ":" letters ]
 *      event    = name [ ":" letters ]
 *               | pmu "/" terms "/" [ [ ":" ] letters ]
 *               | subsystem ":" tracepoint [ ":" letters ]
 *               | bank ":" expression [ ":" letters ]
 *               | selector "/" [ bank "/" ] terms "/" [ [ ":" ] letters ]
 *
 * One pass over the text, by a cursor. A colon is ambiguous: after a known name it begins
 * modifiers, after any other it makes a tracepoint, or events of a bank of counters (selector.c). A name is first looked for among the generic
 * ones, then as a raw code, in sysfs, and last in the platform database. All is done on a copy of
 * the list, so that a bad argument changes nothing.
 *
 * Modifiers add up: with any of u, k, h the modes that are not named are excluded, and those of a
 * group are added to those of its members ({a:u,b}:k counts a in both modes).
 */
#include "daemon/pmu/event/event.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/event/event_private.h"
#include "platform-db/platform.h"
#include "proto/base/memory.h"
#include "proto/syntax/nearest.h"

#define PRECISE_MAX 3 /* Source: man perf_event_open, precise_ip */

/* rNNN, as the core's manual gives the code. Source: man perf-list, "RAW HARDWARE EVENT". */
static bool raw_find(struct event_word w, struct event *e)
{
	if (w.n < 2 || w.start[0] != 'r')
		return false;
	struct event_word digits = {w.start + 1, w.n - 1};
	if (digits.n > 2 && digits.start[0] == '0' && digits.start[1] == 'x')
		digits = (struct event_word){digits.start + 2, digits.n - 2};
	if (!event_word_hex(digits, &e->config))
		return false;
	snprintf(e->pmu, sizeof(e->pmu), "raw");
	e->type = PERF_TYPE_RAW;
	return true;
}

static bool has_any(struct event_word w, const char *letters)
{
	for (size_t i = 0; i < w.n; i++)
		if (strchr(letters, w.start[i]))
			return true;
	return false;
}

/* Apply modifier letters to one event. */
static int modifiers_apply(const struct event_scan *s, struct event_word letters, struct event *e)
{
	unsigned precise = 0;
	if (letters.n == 0)
		return event_fail(s, EVENT_MALFORMED, letters.start,
			"modifiers are missing after ':' (u k h p G H)");
	if (!e->exclude_user && !e->exclude_kernel && !e->exclude_hv && has_any(letters, "ukh"))
		e->exclude_user = e->exclude_kernel = e->exclude_hv = true;
	if (!e->exclude_host && !e->exclude_guest && has_any(letters, "GH"))
		e->exclude_host = e->exclude_guest = true;

	for (size_t i = 0; i < letters.n; i++) {
		char letter = letters.start[i];
		if (letter == 'u')
			e->exclude_user = false;
		else if (letter == 'k')
			e->exclude_kernel = false;
		else if (letter == 'h')
			e->exclude_hv = false;
		else if (letter == 'G')
			e->exclude_guest = false;
		else if (letter == 'H')
			e->exclude_host = false;
		else if (letter == 'p' && ++precise <= PRECISE_MAX)
			continue;
		else
			return event_fail(s, EVENT_MALFORMED, letters.start + i,
				"'%c' is not a modifier (u k h G H, and p up to three times)",
				letter);
	}
	if (precise > e->precise)
		e->precise = (uint8_t)precise;
	return 0;
}

static bool all_modifiers(struct event_word w)
{
	for (size_t i = 0; i < w.n; i++)
		if (!strchr("ukhpGH", w.start[i]))
			return false;
	return w.n > 0;
}

static int unknown_event(const struct event_scan *s, struct event_word name)
{
	struct nearest near;
	char guess[96];
	const char *generic;
	if (event_word_copy(name, guess, sizeof(guess)) &&
		platform_generic_name(guess, &generic) != PLATFORM_ARCH_UNKNOWN)
		return event_fail(s, EVENT_UNKNOWN, name.start,
			"'%.*s' is the name on another architecture: here it is '%s'", (int)name.n,
			name.start, generic);
	nearest_start(&near, name.start, name.n);
	for (size_t i = 0; i < n_event_names; i++) {
		nearest_offer(&near, event_names[i].name);
		if (event_names[i].alias)
			nearest_offer(&near, event_names[i].alias);
	}
	event_platform_offer(s, &near);
	return event_fail(s, EVENT_UNKNOWN, name.start, "unknown event '%.*s'%s", (int)name.n,
		name.start, nearest_says(&near, guess, sizeof(guess)));
}

/* The part of w before the first c, and the part after it (start NULL if there is none). */
static struct event_word split(struct event_word w, char c, struct event_word *ret_rest)
{
	const char *at = memchr(w.start, c, w.n);
	*ret_rest = (struct event_word){0};
	if (!at)
		return w;
	*ret_rest = (struct event_word){at + 1, (size_t)(w.start + w.n - at - 1)};
	return (struct event_word){w.start, (size_t)(at - w.start)};
}

/* Modifiers after the last slash, if any. */
static int letters_apply(const struct event_scan *s, struct event_word letters, struct event *e)
{
	if (letters.n == 0)
		return 0;
	if (letters.start[0] == ':')
		letters = (struct event_word){letters.start + 1, letters.n - 1};
	return modifiers_apply(s, letters, e);
}

/* selector/fields/letters, selector/bank/expression/letters */
static int selector_event(const struct event_scan *s, struct event_word selector,
	struct event_word rest, struct event *e)
{
	struct event_word letters, more, second = {0};
	struct event_word first = split(rest, '/', &letters);
	struct event_word expression = split(letters, '/', &more);
	if (more.start) {
		second = expression;
		letters = more;
	}
	if (first.n == 0 || (second.start && second.n == 0))
		return event_fail(s, EVENT_MALFORMED, first.n ? second.start : first.start,
			"an event or field is missing between the slashes");
	int r = event_selector_parse(s, selector, first, second, e);
	return r == 0 ? letters_apply(s, letters, e) : r;
}

/* pmu/terms/letters: the word is known to have two slashes, after a selector two or three. */
static int slashed_event(const struct event_scan *s, struct event_word w, struct event *e)
{
	struct event_word rest, letters;
	struct event_word pmu = split(w, '/', &rest);
	if (event_selector_is(s, pmu))
		return selector_event(s, pmu, rest, e);
	struct event_word terms = split(rest, '/', &letters);
	if (pmu.n == 0)
		return event_fail(
			s, EVENT_MALFORMED, w.start, "a PMU's name is missing before '/'");
	if (terms.n == 0)
		return event_fail(s, EVENT_MALFORMED, terms.start,
			"an event or field is missing between the slashes");
	int r = event_pmu_parse(s, pmu, terms, e);
	return r == 0 ? letters_apply(s, letters, e) : r;
}

/* "bank:expression", where a core has that bank; else a tracepoint. */
static int colon_event(
	const struct event_scan *s, struct event_word name, struct event_word rest, struct event *e)
{
	struct event_word letters;
	struct event_word after = split(rest, ':', &letters);
	if (after.n == 0)
		return event_fail(s, EVENT_MALFORMED, rest.start, "a name is missing after ':'");
	int r = event_bank_is(s, name) ? event_bank_parse(s, name, after, e)
				       : event_tracepoint_parse(s, name, after, e);
	if (r || !letters.start)
		return r;
	return modifiers_apply(s, letters, e);
}

/* Resolve one event. */
static int event_resolve(const struct event_scan *s, struct event_word w, struct event *e)
{
	if (memchr(w.start, '/', w.n))
		return slashed_event(s, w, e);

	struct event_word rest;
	struct event_word name = split(w, ':', &rest);
	if (name.n == 0)
		return event_fail(s, EVENT_MALFORMED, w.start, "a name is missing before ':'");
	if (event_generic_find(name, e) || raw_find(name, e) || event_alias_find(s, name, e) ||
		event_platform_find(s, name, e) || event_arch_find(s, name, e))
		return rest.start ? modifiers_apply(s, rest, e) : 0;
	if (!rest.start || all_modifiers(rest))
		return unknown_event(s, name);
	return colon_event(s, name, rest, e);
}

/* The word from at to the comma or brace that ends it; commas between slashes do not. */
static int event_extent(const struct event_scan *s, const char *at, struct event_word *ret_word)
{
	const char *slash = NULL, *end = at;
	int n_slashes = 0, n_most = 2;
	for (; *end; end++) {
		if (*end == '/' && n_slashes == n_most)
			return event_fail(s, EVENT_MALFORMED, end, "a %s '/' in one event",
				n_most == 2 ? "third" : "fourth");
		if (*end == '/') {
			slash = end;
			if (n_slashes++ == 0 && /* selector/bank/expression/ */
				event_selector_is(s, (struct event_word){at, (size_t)(end - at)}))
				n_most = 3;
			continue;
		}
		if (n_slashes != 1 && strchr(",{}", *end))
			break;
		if (isspace((unsigned char)*end))
			return event_fail(
				s, EVENT_MALFORMED, end, "no spaces are allowed in an event");
	}
	if (n_slashes == 1)
		return event_fail(s, EVENT_MALFORMED, slash, "this '/' has no closing '/'");
	if (end == at)
		return event_fail(s, EVENT_MALFORMED, at, "an event is missing");
	if (end - at >= EVENT_NAME_BYTES_MAX)
		return event_fail(s, EVENT_MALFORMED, at, "an event's name has at most %d bytes",
			EVENT_NAME_BYTES_MAX - 1);
	*ret_word = (struct event_word){at, (size_t)(end - at)};
	return 0;
}

/* Parse an event at *at and append it to the list. */
static int event_take(
	const struct event_scan *s, const char **at, struct event_list *list, int group)
{
	struct event_word w = {0};
	int r = event_extent(s, *at, &w);
	if (r)
		return r;
	if (list->n_events == EVENTS_MAX)
		return event_fail(s, EVENT_TOO_MANY, *at, "more than %d events", EVENTS_MAX);

	struct event e = {.group = group};
	event_word_copy(w, e.name, sizeof(e.name));
	r = event_resolve(s, w, &e);
	if (r)
		return r;
	list->event[list->n_events++] = e;
	*at += w.n;
	return 0;
}

bool event_leads(const struct event_list *list, int i)
{
	for (int first = 0; first < i && list->event[i].group >= 0; first++)
		if (list->event[first].group == list->event[i].group)
			return false;
	return true;
}

bool event_has_modifiers(const struct event *e)
{
	const char *slash = strrchr(e->name, '/');
	if (slash)
		return slash[1] != '\0';
	const char *colon = strchr(e->name, ':');
	if (colon && (e->type == PERF_TYPE_TRACEPOINT || e->by_bank))
		colon = strchr(colon + 1, ':');
	return colon != NULL;
}

/* Add a group's modifiers to a member and to its displayed name. */
static int member_modify(const struct event_scan *s, struct event_word letters, struct event *e)
{
	int r = modifiers_apply(s, letters, e);
	if (r)
		return r;
	bool has = event_has_modifiers(e);
	size_t n = strlen(e->name);
	if (n + letters.n + !has >= sizeof(e->name))
		return event_fail(s, EVENT_MALFORMED, letters.start,
			"the name '%.40s…' is too long with the group's modifiers", e->name);
	snprintf(e->name + n, sizeof(e->name) - n, "%s%.*s", has ? "" : ":", (int)letters.n,
		letters.start);
	return 0;
}

/* "{a,b}:letters" at *at. */
static int group_take(const struct event_scan *s, const char **at, struct event_list *list)
{
	const char *open = (*at)++;
	int first = list->n_events, group = list->n_groups;
	if (**at == '}')
		return event_fail(s, EVENT_MALFORMED, open, "a group needs at least one event");
	for (;;) {
		if (**at == '{')
			return event_fail(s, EVENT_MALFORMED, *at, "a group cannot hold a group");
		if (!**at)
			return event_fail(s, EVENT_MALFORMED, open, "this '{' has no '}'");
		if (list->n_events - first == EVENT_GROUP_MAX)
			return event_fail(s, EVENT_TOO_MANY, *at,
				"more than %d events in one group", EVENT_GROUP_MAX);
		int r = event_take(s, at, list, group);
		if (r)
			return r;
		if (**at != ',')
			break;
		(*at)++;
	}
	if (**at != '}')
		return event_fail(s, EVENT_MALFORMED, open, "this '{' has no '}'");
	(*at)++;
	list->n_groups++;
	if (**at != ':')
		return 0;

	struct event_word letters = {*at + 1, strcspn(*at + 1, ",{}")};
	*at += 1 + letters.n;
	for (int i = first; i < list->n_events; i++) {
		int r = member_modify(s, letters, &list->event[i]);
		if (r)
			return r;
	}
	return 0;
}

int event_parse_for(const struct kernel *k, const struct cores *c, const char *text,
	struct event_list *list, struct event_error *ret_error)
{
	struct event_list parsed = *list;
	struct event_scan s = {.kernel = k, .cores = c, .text = text, .error = ret_error};
	const char *at = text;
	for (;;) {
		int r = *at == '{' ? group_take(&s, &at, &parsed)
				   : event_take(&s, &at, &parsed, -1);
		if (r)
			return r;
		if (!*at)
			break;
		if (*at == '}')
			return event_fail(&s, EVENT_MALFORMED, at, "this '}' closes no group");
		if (*at != ',')
			return event_fail(&s, EVENT_MALFORMED, at, "a ',' is missing here");
		at++;
	}
	*list = parsed;
	return 0;
}

int event_parse(const struct kernel *k, const char *text, struct event_list *list,
	struct event_error *ret_error)
{
	return event_parse_for(k, NULL, text, list, ret_error);
}

void event_to_attr(const struct event *e, struct perf_event_attr *attr)
{
	attr->type = e->type;
	attr->config = e->config;
	attr->config1 = e->config1;
	attr->config2 = e->config2;
	attr->exclude_user = e->exclude_user;
	attr->exclude_kernel = e->exclude_kernel;
	attr->exclude_hv = e->exclude_hv;
	attr->exclude_host = e->exclude_host;
	attr->exclude_guest = e->exclude_guest;
	attr->precise_ip = e->precise;
}

bool event_is_kernel_only(const struct event *e)
{
	return e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
							e->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
							e->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

bool event_is_clock(const struct event *e)
{
	return e->type == PERF_TYPE_SOFTWARE &&
	       (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
}
