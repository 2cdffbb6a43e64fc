/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One row per key has the parser of its value; combinations of keys are checked once all lines were
 * read. The first mistake ends the parse: a schedule is taken whole or not at all.
 */
#include "proto/syntax/schedule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/memory.h"
#include "proto/syntax/ini.h"
#include "proto/syntax/nearest.h"
#include "proto/syntax/unit.h"

#define SECTION "Schedule"
#define SECOND_NS 1000000000ull
#define DAY_NS (86400 * SECOND_NS)
#define PPM_ALL 1000000u

/* Default durations of recordings: a build is over in an hour; ten minutes suffice for one at
 * night. */
#define DURATION_CALENDAR_NS (600 * SECOND_NS)
#define DURATION_JOB_NS (3600 * SECOND_NS)
#define KEEP_DEFAULT 10
#define MAX_USE_DEFAULT (256ull << 20)
/* The maximum that mperf.conf(5) has for rate. */
#define HZ_MAX 50000
#define KEEP_MAX 100
#define MAX_USE_MIN (1ull << 20)
#define MAX_USE_MAX (1ull << 40)

enum key {
	KEY_CALENDAR,
	KEY_UNIT,
	KEY_LABEL,
	KEY_SHARE,
	KEY_DURATION,
	KEY_FREQUENCY,
	KEY_CALL_GRAPH,
	KEY_KEEP,
	KEY_MAX_USE,
	N_KEYS
};

static const char *const key_names[N_KEYS] = {
	[KEY_CALENDAR] = "OnCalendar",
	[KEY_UNIT] = "Unit",
	[KEY_LABEL] = "Label",
	[KEY_SHARE] = "Share",
	[KEY_DURATION] = "Duration",
	[KEY_FREQUENCY] = "Frequency",
	[KEY_CALL_GRAPH] = "CallGraph",
	[KEY_KEEP] = "Keep",
	[KEY_MAX_USE] = "MaxUse",
};

struct parse {
	const char *path;
	unsigned line;
	unsigned section_at;     /* line; 0: not yet */
	unsigned set_at[N_KEYS]; /* line of the last; 0: not set */
	struct schedule s;
	struct schedule_error error;
};

static int __attribute__((format(printf, 2, 3))) wrong(struct parse *p, const char *format, ...)
{
	char text[sizeof(p->error.text) - 224];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *c = text; *c; c++) /* for a label, which is quoted unchanged */
		if (*c == '\t')
			*c = ' ';
	if (p->line > 0)
		snprintf(p->error.text, sizeof(p->error.text), "%.200s:%u: %s", p->path, p->line,
			text);
	else
		snprintf(p->error.text, sizeof(p->error.text), "%.200s: %s", p->path, text);
	return SCHEDULE_WRONG;
}

static int malformed(struct parse *p, enum key key, const char *value, const char *form)
{
	return wrong(p, "%s is '%s', but must be %s", key_names[key], ini_quoted(value).text, form);
}

/* --- values ----------------------------------------------------------------------------------- */

/* Take a text in systemd's syntax, or a pattern: it is copied unchanged. */
static int take_text(struct parse *p, enum key key, const char *value, char *to)
{
	size_t n = strlen(value);
	if (n >= SCHEDULE_TEXT_BYTES)
		return wrong(p, "%s has %zu bytes, but may have at most %d", key_names[key], n,
			SCHEDULE_TEXT_BYTES - 1);
	if (strchr(value, '\t'))
		return wrong(p, "the value of '%s' holds a tab; write a space", key_names[key]);
	memcpy(to, value, n + 1);
	return 0;
}

static int take_calendar(struct parse *p, const char *value)
{
	struct schedule *s = &p->s;
	if (s->n_calendars == SCHEDULE_CALENDARS_MAX)
		return wrong(p, "there are more than %d OnCalendar=; use another schedule",
			SCHEDULE_CALENDARS_MAX);
	return take_text(p, KEY_CALENDAR, value, s->calendar[s->n_calendars++]);
}

static int take_unit(struct parse *p, const char *value)
{
	for (const char *c = value; *c; c++)
		if (*c == '/' || *c == ' ' || (unsigned char)*c >= 0x80)
			return malformed(p, KEY_UNIT, value,
				"the name of a unit, such as ci-*.service; * and ? stand for any");
	return take_text(p, KEY_UNIT, value, p->s.unit);
}

static int take_label(struct parse *p, const char *value)
{
	struct label_fault fault;
	if (p->s.n_labels == SCHEDULE_LABELS_MAX)
		return wrong(p, "there are more than %d Label=", SCHEDULE_LABELS_MAX);
	if (label_parse(value, &p->s.label[p->s.n_labels], &fault) != 0)
		return wrong(p, "Label must be KEY=VALUE: %s", fault.text);
	const struct label *l = &p->s.label[p->s.n_labels];
	for (size_t i = 0; i < p->s.n_labels; i++)
		if (strcmp(p->s.label[i].key, l->key) == 0)
			return wrong(p,
				"Label=%s is given twice, but a job has only one value of a label",
				l->key);
	if (!label_pattern_is_whole(l->value))
		return wrong(p, "Label=%s ends with a backslash that nothing follows", l->key);
	p->s.n_labels++;
	return 0;
}

static int take_share(struct parse *p, const char *value)
{
	uint32_t ppm;
	if (unit_parse_share(value, &ppm) != 0 || ppm == 0)
		return malformed(p, KEY_SHARE, value, "a percentage from 0.0001% to 100%");
	p->s.share_ppm = ppm;
	return 0;
}

static int take_duration(struct parse *p, const char *value)
{
	uint64_t ns;
	if (unit_parse_duration(value, &ns) != 0 || ns < SECOND_NS || ns > DAY_NS)
		return malformed(p, KEY_DURATION, value, "a time from 1s to 24h, such as 10min");
	p->s.duration_ns = ns;
	return 0;
}

static int take_number(struct parse *p, enum key key, const char *value, uint32_t max, uint32_t *to)
{
	uint32_t n = 0;
	const char *c = value;
	for (; *c >= '0' && *c <= '9' && n <= max; c++)
		n = n * 10 + (uint32_t)(*c - '0');
	if (*c || n == 0 || n > max)
		return wrong(p, "%s is '%s', but must be a whole number from 1 to %u",
			key_names[key], ini_quoted(value).text, max);
	*to = n;
	return 0;
}

static int take_call_graph(struct parse *p, const char *value)
{
	const bool callers = strcmp(value, "fp") == 0 || strcmp(value, "tables") == 0;
	if (!callers && strcmp(value, "no") != 0)
		return malformed(p, KEY_CALL_GRAPH, value,
			"tables, fp or no; they are found as callers in mperf.conf says");
	p->s.callers = callers;
	return 0;
}

static int take_max_use(struct parse *p, const char *value)
{
	uint64_t bytes;
	if (unit_parse_bytes(value, &bytes) != 0 || bytes < MAX_USE_MIN || bytes > MAX_USE_MAX)
		return malformed(p, KEY_MAX_USE, value, "a size from 1M to 1T, such as 512M");
	p->s.max_use = bytes;
	return 0;
}

static int take_value(struct parse *p, enum key key, const char *value)
{
	switch (key) {
	case KEY_CALENDAR:
		return take_calendar(p, value);
	case KEY_UNIT:
		return take_unit(p, value);
	case KEY_LABEL:
		return take_label(p, value);
	case KEY_SHARE:
		return take_share(p, value);
	case KEY_DURATION:
		return take_duration(p, value);
	case KEY_FREQUENCY:
		return take_number(p, key, value, HZ_MAX, &p->s.hz);
	case KEY_CALL_GRAPH:
		return take_call_graph(p, value);
	case KEY_KEEP:
		return take_number(p, key, value, KEEP_MAX, &p->s.keep);
	default:
		return take_max_use(p, value);
	}
}

/* --- lines ------------------------------------------------------------------------------------ */

static int take_key(struct parse *p, const char *name, const char *value)
{
	size_t key = 0;
	if (!p->section_at)
		return wrong(p,
			"'%s' comes before any section; put [" SECTION "] on a line above it",
			ini_quoted(name).text);
	while (key < N_KEYS && strcmp(key_names[key], name) != 0)
		key++;
	if (key == N_KEYS) {
		const char *near = nearest_name(name, key_names, N_KEYS);
		return wrong(p, "unknown key '%s'%s%s%s", ini_quoted(name).text,
			near ? "; did you mean '" : "; mperf-schedule(5) lists the keys",
			near ? near : "", near ? "'?" : "");
	}
	if (p->set_at[key] > 0 && key != KEY_CALENDAR && key != KEY_LABEL)
		return wrong(p, "'%s' was already set at line %u; keep one of the two", name,
			p->set_at[key]);
	if (!*value)
		return wrong(p, "'%s' has no value; leave out the line for the default", name);
	if (ini_has_comment(value))
		return wrong(p, "a comment follows the value of '%s'; put it on a line of its own",
			name);
	p->set_at[key] = p->line;
	return take_value(p, (enum key)key, value);
}

static int take_line(void *userdata, const char *bytes, size_t n, unsigned number)
{
	struct parse *p = userdata;
	struct ini_line line;
	char fault[INI_FAULT_BYTES];
	p->line = number;
	if (ini_read(bytes, n, p->line == 1, &line, fault) != 0)
		return wrong(p, "%.250s", fault);
	if (line.kind == INI_BLANK)
		return 0;
	if (line.kind == INI_KEY)
		return take_key(p, line.name, line.value);
	if (strcmp(line.name, SECTION) != 0)
		return wrong(p, "unknown section [%s]; a schedule has one, [" SECTION "]",
			ini_quoted(line.name).text);
	if (p->section_at)
		return wrong(p,
			"section [" SECTION "] already began at line %u; put its keys there",
			p->section_at);
	p->section_at = p->line;
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Require exactly one of a time and jobs, and for jobs units or labels. */
static int check_kind(struct parse *p)
{
	const unsigned *at = p->set_at;
	unsigned jobs_at = at[KEY_UNIT]    ? at[KEY_UNIT]
			   : at[KEY_LABEL] ? at[KEY_LABEL]
					   : at[KEY_SHARE];
	p->line = 0;
	if (!at[KEY_CALENDAR] && !jobs_at)
		return wrong(p, "it names neither a time nor jobs to record; set OnCalendar=, or "
				"Unit=, Label= or Share=");
	if (at[KEY_CALENDAR] && jobs_at) {
		p->line = jobs_at;
		return wrong(p,
			"it is for jobs, but OnCalendar= in line %u is for the whole system; use "
			"two schedules",
			at[KEY_CALENDAR]);
	}
	if (at[KEY_UNIT] && at[KEY_LABEL]) {
		p->line = at[KEY_LABEL];
		return wrong(p,
			"Label= selects jobs by label, but Unit= in line %u selects jobs of units; "
			"use two schedules",
			at[KEY_UNIT]);
	}
	return 0;
}

static void fill_defaults(struct parse *p)
{
	struct schedule *s = &p->s;
	s->kind = p->set_at[KEY_CALENDAR] ? SCHEDULE_CALENDAR : SCHEDULE_JOBS;
	if (!s->duration_ns)
		s->duration_ns =
			s->kind == SCHEDULE_CALENDAR ? DURATION_CALENDAR_NS : DURATION_JOB_NS;
}

bool schedule_is_name(const char *name, size_t n)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	if (n == 0 || n > SCHEDULE_NAME_BYTES_MAX || !name[0] || !strchr(letters, name[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!name[i] || (!strchr(letters, name[i]) && !strchr("_.-", name[i])))
			return false;
	return true;
}

/* The file's name without its folder and suffix. 0; SCHEDULE_WRONG. */
static int take_name(struct parse *p)
{
	const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path;
	size_t n = strlen(name), n_suffix = sizeof(SCHEDULE_SUFFIX) - 1;
	if (n <= n_suffix || strcmp(name + n - n_suffix, SCHEDULE_SUFFIX) != 0)
		return wrong(p, "its name does not end in " SCHEDULE_SUFFIX);
	if (!schedule_is_name(name, n - n_suffix))
		return wrong(p,
			"its name must begin with a letter or digit, contain only letters, digits, "
			"_, . and -, and have at most %d bytes; rename it",
			SCHEDULE_NAME_BYTES_MAX);
	memcpy(p->s.name, name, n - n_suffix);
	return 0;
}

static int parse_lines(struct parse *p, const char *text, size_t n)
{
	if (n > INI_FILE_BYTES)
		return wrong(p, "the file has more than %d bytes, which no schedule needs",
			INI_FILE_BYTES);
	int r = ini_each_line(text, n, take_line, p);
	return r == 0 ? check_kind(p) : r;
}

int schedule_parse(const char *text, size_t n, const char *path, struct schedule *ret_schedule,
	struct schedule_error *ret_error)
{
	struct parse p = {.path = path,
		.s = {.share_ppm = PPM_ALL,
			.callers = true,
			.keep = KEEP_DEFAULT,
			.max_use = MAX_USE_DEFAULT}};
	int r = take_name(&p);
	if (r == 0 && n == 0)
		return SCHEDULE_MASKED;
	if (r == 0)
		r = parse_lines(&p, text, n);
	if (r != 0) {
		*ret_error = p.error;
		return r;
	}
	fill_defaults(&p);
	*ret_schedule = p.s;
	return 0;
}

int schedule_read(const char *path, struct schedule *ret_schedule, struct schedule_error *ret_error)
{
	_cleanup_(freep) char *text = NULL;
	char fault[INI_FAULT_BYTES];
	size_t n = 0;
	int r = ini_read_file(path, &text, &n, fault);
	if (r < 0)
		return r;
	if (r == 0)
		return schedule_parse(text, n, path, ret_schedule, ret_error);
	snprintf(ret_error->text, sizeof(ret_error->text), "%.200s cannot be read: %.200s", path,
		r == INI_ABSENT ? "there is no such file" : fault);
	return SCHEDULE_WRONG;
}
