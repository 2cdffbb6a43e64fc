/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events that the running kernel describes itself: PMUs in /sys/bus/event_source and tracepoints
 * in tracefs.
 *
 *      /sys/bus/event_source/devices/cpu/type            4
 *                                       /format/umask    config:8-15
 *                                       /events/mem-loads  event=0xcd,umask=0x1,ldlat=3
 *
 * A format says to which bits a field's value goes, lowest bits first, over one or more ranges.
 * An alias is a list of fields. Names become parts of paths here, so only letters, digits and a
 * few signs pass; "/" cannot, since it ends the name, and "." cannot begin one.
 * Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.
 */
#include "daemon/pmu/event/event_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/syntax/nearest.h"

#define DEVICES "/sys/bus/event_source/devices"
#define PATH_BYTES_MAX 256
#define TEXT_BYTES_MAX 512 /* bytes of one line: room for more than a dozen fields of an alias */

/* The two usual mount points of tracefs. Source: Documentation/trace/ftrace.rst. */
static const char *const tracefs[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

struct format {
	unsigned config;    /* 0, 1, 2: which of the config words */
	uint64_t mask;      /* the field's bits */
	const char *ranges; /* "0-7,21", after the colon */
};

static bool name_is_safe(struct event_word w)
{
	for (size_t i = 0; i < w.n; i++)
		if (!isalnum((unsigned char)w.start[i]) && !strchr("_-.:@", w.start[i]))
			return false;
	return w.n > 0 && w.start[0] != '.';
}

/* Read a short file below the PMU's folder, without the newline. */
static int read_entry(const struct event_scan *s, const char *folder, struct event_word name,
	char *buffer, size_t size)
{
	char path[PATH_BYTES_MAX];
	int n = snprintf(path, sizeof(path), "%s/%.*s", folder, (int)name.n, name.start);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;

	ssize_t bytes = s->kernel->read_text(s->kernel->userdata, path, buffer, size);
	if (bytes < 0)
		return (int)bytes;
	buffer[strcspn(buffer, "\n")] = '\0';
	return 0;
}

/* Parse "0-7" or "21"; moves *at past it and a comma. */
static bool range_take(const char **at, unsigned *ret_low, unsigned *ret_high)
{
	char *end;
	if (!isdigit((unsigned char)**at))
		return false;
	unsigned long low = strtoul(*at, &end, 10), high = low;
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return false;
		high = strtoul(end + 1, &end, 10);
	}
	if (low > high || high > 63 || (*end != ',' && *end != '\0'))
		return false;
	*at = *end == ',' ? end + 1 : end;
	*ret_low = (unsigned)low;
	*ret_high = (unsigned)high;
	return true;
}

static uint64_t range_mask(unsigned low, unsigned high)
{
	return (UINT64_MAX >> (63 - (high - low))) << low;
}

static bool format_parse(const char *text, struct format *ret_format)
{
	static const char *const words[] = {"config:", "config1:", "config2:"};
	struct format f = {0};
	while (f.config < 3 && strncmp(text, words[f.config], strlen(words[f.config])) != 0)
		f.config++;
	if (f.config == 3)
		return false;

	f.ranges = text + strlen(words[f.config]);
	const char *at = f.ranges;
	do {
		unsigned low, high;
		if (!range_take(&at, &low, &high) || (f.mask & range_mask(low, high)))
			return false;
		f.mask |= range_mask(low, high);
	} while (*at);
	*ret_format = f;
	return true;
}

/* Spread value over the field's ranges. False if bits are left over. */
static bool format_apply(const struct format *f, uint64_t value, struct event *e)
{
	uint64_t *const word[] = {&e->config, &e->config1, &e->config2};
	uint64_t bits = 0;
	unsigned low, high;
	for (const char *at = f->ranges; *at && range_take(&at, &low, &high);) {
		uint64_t mask = range_mask(low, high);
		bits |= (value << low) & mask;
		value = high - low == 63 ? 0 : value >> (high - low + 1);
	}
	if (value)
		return false;
	*word[f->config] = (*word[f->config] & ~f->mask) | bits;
	return true;
}

static int unknown_field(const struct event_scan *s, struct event_word name, const struct event *e)
{
	struct nearest near;
	char path[PATH_BYTES_MAX], guess[96];
	nearest_start(&near, name.start, name.n);
	nearest_offer(&near, "config");
	nearest_offer(&near, "config1");
	nearest_offer(&near, "config2");
	snprintf(path, sizeof(path), DEVICES "/%s/format", e->pmu);
	s->kernel->list(s->kernel->userdata, path, nearest_offer, &near);
	snprintf(path, sizeof(path), DEVICES "/%s/events", e->pmu);
	s->kernel->list(s->kernel->userdata, path, nearest_offer, &near);
	return event_fail(s, EVENT_UNKNOWN, name.start, "PMU '%s' has no field or event '%.*s'%s",
		e->pmu, (int)name.n, name.start, nearest_says(&near, guess, sizeof(guess)));
}

/* Set a field that the PMU's format folder describes. */
static int field_set(
	const struct event_scan *s, struct event_word name, uint64_t value, struct event *e)
{
	char folder[PATH_BYTES_MAX], text[TEXT_BYTES_MAX];
	snprintf(folder, sizeof(folder), DEVICES "/%s/format", e->pmu);
	if (!name_is_safe(name) || read_entry(s, folder, name, text, sizeof(text)) < 0)
		return unknown_field(s, name, e);

	struct format f;
	if (!format_parse(text, &f))
		return event_fail(s, EVENT_UNKNOWN, name.start,
			"the kernel describes field '%.*s' as '%.40s', a form that mperf does not "
			"know",
			(int)name.n, name.start, text);
	if (!format_apply(&f, value, e))
		return event_fail(s, EVENT_MALFORMED, name.start,
			"0x%llx does not fit into the %d bits of field '%.*s'",
			(unsigned long long)value, __builtin_popcountll(f.mask), (int)name.n,
			name.start);
	return 0;
}

/* True if the user's own terms give a value to the field: "…,name=…". */
static bool terms_name(struct event_word terms, struct event_word name)
{
	for (size_t i = 0; i + name.n < terms.n; i++)
		if ((i == 0 || terms.start[i - 1] == ',') && terms.start[i + name.n] == '=' &&
			memcmp(terms.start + i, name.start, name.n) == 0)
			return true;
	return false;
}

/* field=value */
static int value_set(const struct event_scan *s, struct event_word name, struct event_word number,
	struct event *e)
{
	uint64_t value;
	if (!event_word_number(number, &value))
		return event_fail(s, EVENT_MALFORMED, number.start,
			"'%.*s' is not a number (12 or 0x1f) for field '%.*s'", (int)number.n,
			number.start, (int)name.n, name.start);
	if (event_word_is(name, "config"))
		e->config = value;
	else if (event_word_is(name, "config1"))
		e->config1 = value;
	else if (event_word_is(name, "config2"))
		e->config2 = value;
	else
		return field_set(s, name, value, e);
	return 0;
}

/* The next term of a comma list, split at "=". */
static struct event_word term_take(struct event_word *list, struct event_word *ret_value)
{
	struct event_word w = {list->start, 0};
	while (w.n < list->n && w.start[w.n] != ',')
		w.n++;
	size_t step = w.n + (w.n < list->n);
	list->start += step;
	list->n -= step;

	const char *equals = memchr(w.start, '=', w.n);
	*ret_value = (struct event_word){0};
	if (equals) {
		ret_value->start = equals + 1;
		ret_value->n = (size_t)(w.start + w.n - ret_value->start);
		w.n = (size_t)(equals - w.start);
	}
	return w;
}

/* Set the fields of an alias from the kernel's text; errors point at the alias in the user's text.
 * The user must give a value for "?". */
static int alias_apply(const struct event_scan *s, struct event_word alias, const char *text,
	struct event_word user_terms, struct event *e)
{
	struct event_scan inner = *s;
	inner.pinned = alias.start;
	struct event_word rest = {text, strlen(text)};
	while (rest.n > 0) {
		struct event_word value, name = term_take(&rest, &value);
		if (event_word_is(value, "?")) {
			if (terms_name(user_terms, name))
				continue;
			return event_fail(&inner, EVENT_MALFORMED, name.start,
				"event '%.*s' needs a value: add ',%.*s=…'", (int)alias.n,
				alias.start, (int)name.n, name.start);
		}
		int r = value.start ? value_set(&inner, name, value, e)
				    : field_set(&inner, name, 1, e);
		if (r)
			return r;
	}
	return 0;
}

/* The folder also has files about events that are not events: energy-pkg.scale. */
static bool is_side_file(struct event_word w)
{
	static const char *const ends[] = {".scale", ".unit", ".snapshot", ".per-pkg"};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i]);
		if (w.n > n && memcmp(w.start + w.n - n, ends[i], n) == 0)
			return true;
	}
	return false;
}

/* A word without a value: an alias if there is one, else a field of one bit. */
static int word_set(
	const struct event_scan *s, struct event_word w, struct event_word terms, struct event *e)
{
	char folder[PATH_BYTES_MAX], text[TEXT_BYTES_MAX];
	snprintf(folder, sizeof(folder), DEVICES "/%s/events", e->pmu);
	if (name_is_safe(w) && !is_side_file(w) && !read_entry(s, folder, w, text, sizeof(text)))
		return alias_apply(s, w, text, terms, e);
	return field_set(s, w, 1, e);
}

/* The PMUs that have an alias of that name. */
struct alias_search {
	const struct event_scan *scan;
	struct event_word alias;
	char pmu[EVENT_PMU_BYTES_MAX];
	int n_pmus;
};

static void alias_look(void *userdata, const char *pmu)
{
	struct alias_search *search = userdata;
	char folder[PATH_BYTES_MAX], text[TEXT_BYTES_MAX];
	if (strlen(pmu) >= sizeof(search->pmu))
		return;
	snprintf(folder, sizeof(folder), DEVICES "/%s/events", pmu);
	if (read_entry(search->scan, folder, search->alias, text, sizeof(text)) < 0)
		return;
	if (search->n_pmus++ == 0)
		snprintf(search->pmu, sizeof(search->pmu), "%s", pmu);
}

bool event_alias_find(const struct event_scan *s, struct event_word name, struct event *e)
{
	struct alias_search search = {.scan = s, .alias = name};
	if (!name_is_safe(name) || is_side_file(name))
		return false;
	s->kernel->list(s->kernel->userdata, DEVICES, alias_look, &search);
	if (search.n_pmus != 1)
		return false; /* if several have it, the platform knows which hart has which */
	struct event found = *e;
	struct event_word pmu = {search.pmu, strlen(search.pmu)};
	if (event_pmu_parse(s, pmu, name, &found) != 0)
		return false;
	s->error->text[0] = '\0';
	*e = found;
	return true;
}

static int unknown_pmu(const struct event_scan *s, struct event_word pmu)
{
	struct nearest near;
	char guess[96];
	nearest_start(&near, pmu.start, pmu.n);
	s->kernel->list(s->kernel->userdata, DEVICES, nearest_offer, &near);
	return event_fail(s, EVENT_UNKNOWN, pmu.start, "this machine has no PMU '%.*s'%s",
		(int)pmu.n, pmu.start, nearest_says(&near, guess, sizeof(guess)));
}

int event_pmu_parse(
	const struct event_scan *s, struct event_word pmu, struct event_word terms, struct event *e)
{
	char folder[PATH_BYTES_MAX], text[TEXT_BYTES_MAX];
	uint64_t type;
	if (!name_is_safe(pmu) || !event_word_copy(pmu, e->pmu, sizeof(e->pmu)))
		return unknown_pmu(s, pmu);
	snprintf(folder, sizeof(folder), DEVICES "/%s", e->pmu);
	if (read_entry(s, folder, (struct event_word){"type", 4}, text, sizeof(text)) < 0 ||
		!event_word_number((struct event_word){text, strlen(text)}, &type) ||
		type > UINT32_MAX)
		return unknown_pmu(s, pmu);
	e->type = (uint32_t)type;

	struct event_word rest = terms;
	while (rest.n > 0) {
		struct event_word value, name = term_take(&rest, &value);
		if (name.n == 0)
			return event_fail(
				s, EVENT_MALFORMED, name.start, "a field's name is missing");
		int r = value.start ? value_set(s, name, value, e) : word_set(s, name, terms, e);
		if (r)
			return r;
	}
	if (terms.n > 0 && terms.start[terms.n - 1] == ',')
		return event_fail(s, EVENT_MALFORMED, terms.start + terms.n, "a field is missing");
	return 0;
}

/* Explain why the tracepoint was not found: no tracefs, no access, or no such name. */
static int unknown_tracepoint(
	const struct event_scan *s, struct event_word subsystem, struct event_word name, int error)
{
	if (error == -EACCES || error == -EPERM)
		return event_fail(s, EVENT_UNKNOWN, subsystem.start,
			"this user may not read tracefs: tracepoints need root, or "
			"'mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing'");

	struct nearest near;
	char path[PATH_BYTES_MAX], guess[96];
	for (size_t i = 0; i < sizeof(tracefs) / sizeof(tracefs[0]); i++) {
		snprintf(path, sizeof(path), "%s/events", tracefs[i]);
		nearest_start(&near, subsystem.start, subsystem.n);
		if (s->kernel->list(s->kernel->userdata, path, nearest_offer, &near) < 0)
			continue;
		if (near.best[0] && near.distance > 0)
			return event_fail(s, EVENT_UNKNOWN, subsystem.start,
				"no tracepoint subsystem '%.*s'%s", (int)subsystem.n,
				subsystem.start, nearest_says(&near, guess, sizeof(guess)));

		nearest_start(&near, name.start, name.n);
		snprintf(path, sizeof(path), "%s/events/%.*s", tracefs[i],
			(int)(subsystem.n < 64 ? subsystem.n : 64), subsystem.start);
		if (name_is_safe(subsystem))
			s->kernel->list(s->kernel->userdata, path, nearest_offer, &near);
		return event_fail(s, EVENT_UNKNOWN, name.start, "no tracepoint '%.*s:%.*s'%s",
			(int)subsystem.n, subsystem.start, (int)name.n, name.start,
			nearest_says(&near, guess, sizeof(guess)));
	}
	return event_fail(s, EVENT_UNKNOWN, subsystem.start,
		"'%.*s:%.*s' is a tracepoint, but tracefs is not mounted: mount -t tracefs tracefs "
		"/sys/kernel/tracing",
		(int)subsystem.n, subsystem.start, (int)name.n, name.start);
}

int event_tracepoint_parse(const struct event_scan *s, struct event_word subsystem,
	struct event_word name, struct event *e)
{
	char path[PATH_BYTES_MAX], text[TEXT_BYTES_MAX];
	int r = -ENOENT;
	if (!name_is_safe(subsystem) || !name_is_safe(name))
		return unknown_tracepoint(s, subsystem, name, r);

	for (size_t i = 0; i < sizeof(tracefs) / sizeof(tracefs[0]); i++) {
		int n = snprintf(path, sizeof(path), "%s/events/%.*s/%.*s", tracefs[i],
			(int)subsystem.n, subsystem.start, (int)name.n, name.start);
		if (n < 0 || (size_t)n >= sizeof(path))
			break;
		uint64_t id;
		int failed = read_entry(s, path, (struct event_word){"id", 2}, text, sizeof(text));
		if (!failed && event_word_number((struct event_word){text, strlen(text)}, &id)) {
			snprintf(e->pmu, sizeof(e->pmu), "tracepoint");
			e->type = PERF_TYPE_TRACEPOINT;
			e->config = id;
			return 0;
		}
		/* Keep the most specific refusal: "no access" over "not found". */
		if (failed == -EACCES || failed == -EPERM)
			r = failed;
	}
	return unknown_tracepoint(s, subsystem, name, r);
}
