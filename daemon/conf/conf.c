/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * conf/conf.inc is the one list of keys. Its limits and defaults are texts as an administrator would
 * write them, read by the same function that reads his: a complaint can quote the limit as it is
 * documented, and the defaults cannot be what the file could not say. The first mistake ends the
 * parse: a configuration is taken whole or not at all, so that a slip of the pen while the service
 * runs changes nothing.
 */
#include "daemon/conf/conf.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/conf/conf_value.h"
#include "proto/base/memory.h"
#include "proto/syntax/ini.h"
#include "proto/syntax/nearest.h"

#define CONF_COLUMNS 78  /* of comments that we write */
#define N_SECTIONS_MAX 8 /* there are three */

/* Pairs of keys of one kind; the first may not be larger than the second. */
static const struct order {
	const char *less, *more;
} orders[] = {
	{"rate", "rate-max"},
	{"top-rate", "rate-max"},
	{"keep-windows", "keep-minutes"},
	{"keep-minutes", "keep-hours"},
};

struct parse {
	const char *name;
	unsigned line;
	const char *section;              /* NULL: before the first */
	unsigned set_at[N_CONF_ROWS_MAX]; /* line; 0: the default applies */
	struct {
		const char *name;
		unsigned line;
	} opened[N_SECTIONS_MAX];
	size_t n_opened;
	struct conf c;
	struct conf_error error;
};

static int __attribute__((format(printf, 2, 3))) wrong(struct parse *p, const char *format, ...)
{
	char text[sizeof(p->error.text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (p->line > 0)
		snprintf(p->error.text, sizeof(p->error.text), "%.200s:%u: %.290s", p->name,
			p->line, text);
	else
		snprintf(p->error.text, sizeof(p->error.text), "%.200s: %.300s", p->name, text);
	return CONF_WRONG;
}

/* --- lines ------------------------------------------------------------------------------------ */

static const struct conf_row *row_named(const char *section, const char *key)
{
	for (size_t i = 0; i < n_conf_rows; i++)
		if ((!section || strcmp(conf_rows[i].section, section) == 0) &&
			strcmp(conf_rows[i].key, key) == 0)
			return &conf_rows[i];
	return NULL;
}

/* The names of all sections, each once; returns how many. */
static size_t section_names(const char *ret_names[static N_SECTIONS_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < n_conf_rows && n < N_SECTIONS_MAX; i++)
		if (n == 0 || strcmp(ret_names[n - 1], conf_rows[i].section) != 0)
			ret_names[n++] = conf_rows[i].section;
	return n;
}

static int unknown_key(struct parse *p, const char *key)
{
	const char *names[N_CONF_ROWS_MAX];
	size_t n = 0;
	const struct conf_row *elsewhere = row_named(NULL, key);
	if (elsewhere)
		return wrong(p, "'%s' is not a key of [%s]; it belongs in [%s]", key, p->section,
			elsewhere->section);

	for (size_t i = 0; i < n_conf_rows; i++)
		if (strcmp(conf_rows[i].section, p->section) == 0)
			names[n++] = conf_rows[i].key;
	const char *near = nearest_name(key, names, n);
	if (near)
		return wrong(p, "unknown key '%s' in [%s]; did you mean '%s'?",
			ini_quoted(key).text, p->section, near);
	return wrong(p, "unknown key '%s' in [%s]; mperf.conf(5) lists the keys",
		ini_quoted(key).text, p->section);
}

static int wrong_text(struct parse *p, const struct conf_row *row, const char *text, int why)
{
	if (why == CONF_VALUE_OUT_OF_RANGE)
		return wrong(p, "%s is %zu bytes long, but must be at most %zu", row->key,
			strlen(text), conf_length_max(row));
	static const char *const forms[] = {
		[KIND_PATH] = "an absolute path, such as /var/lib/mperf",
		[KIND_GROUP] = "the name of a group: letters, digits, '_', '-' and '.'",
		[KIND_VARIABLES] = "a list of variables without spaces, as LABEL=VARIABLE or "
				   "VARIABLE, or none; no VARIABLE may be named like a secret, and "
				   "no LABEL since, until, last, user or uid",
		[KIND_PINS] = "rules of the form KEY=VALUE[,KEY=VALUE...],keep=N, with a space "
			      "between them; or none",
		[KIND_URLS] = "a list of URLs without spaces, such as "
			      "https://debuginfod.debian.net, or none",
		[KIND_EVENTS] = "a list of names without spaces, such as cycles,instructions",
	};
	return wrong(
		p, "%s is '%s', but must be %s", row->key, ini_quoted(text).text, forms[row->kind]);
}

static int wrong_value(struct parse *p, const struct conf_row *row, const char *text, int why)
{
	static const char *const forms[] = {
		[KIND_COUNT] = "a whole number",
		[KIND_SWITCH] = "yes or no",
		[KIND_CALLERS] = "tables, fp or no",
		[KIND_DURATION] = "a time such as 500ms, 5s, 2min, 12h or 14d",
		[KIND_BYTES] = "a size such as 4096, 512M or 2G",
		[KIND_SHARE] = "a percentage such as 1% or 0.5%",
	};
	const char *space = *row->unit ? " " : "";

	if (conf_is_text(row))
		return wrong_text(p, row, text, why);
	if (row->kind == KIND_SWITCH || row->kind == KIND_CALLERS)
		return wrong(p, "%s is '%s', but must be %s", row->key, ini_quoted(text).text,
			forms[row->kind]);
	if (why == CONF_VALUE_OUT_OF_RANGE)
		return wrong(p, "%s is %s, but must be between %s and %s%s%s", row->key,
			ini_quoted(text).text, row->min, row->max, space, row->unit);
	return wrong(p, "%s is '%s', but must be %s between %s and %s%s%s", row->key,
		ini_quoted(text).text, forms[row->kind], row->min, row->max, space, row->unit);
}

static int take_value(struct parse *p, const char *key, const char *value)
{
	if (!p->section) {
		const struct conf_row *meant = row_named(NULL, key);
		return wrong(p, "'%s' comes before any section; put [%s] on a line above it",
			ini_quoted(key).text, meant ? meant->section : conf_rows[0].section);
	}
	const struct conf_row *row = row_named(p->section, key);
	if (!row)
		return unknown_key(p, key);
	unsigned *set_at = &p->set_at[row - conf_rows];
	if (*set_at > 0)
		return wrong(
			p, "'%s' was already set at line %u; keep one of the two", key, *set_at);
	if (!*value)
		return wrong(p, "'%s' has no value; its default is %s", key, row->preset);
	if (ini_has_comment(value))
		return wrong(
			p, "a comment follows the value of '%s'; put it on a line of its own", key);
	int r = conf_value_set(row, value, &p->c);
	if (r != 0)
		return wrong_value(p, row, value, r);
	*set_at = p->line;
	return 0;
}

static int take_section(struct parse *p, const char *name)
{
	const char *names[N_SECTIONS_MAX];
	size_t n = section_names(names), i = 0;
	while (i < n && strcmp(names[i], name) != 0)
		i++;
	if (i == n) {
		const char *near = nearest_name(name, names, n);
		return wrong(p, "unknown section [%s]; %s%s%s", ini_quoted(name).text,
			near ? "did you mean [" : "mperf.conf(5) lists the sections",
			near ? near : "", near ? "]?" : "");
	}
	for (size_t k = 0; k < p->n_opened; k++)
		if (p->opened[k].name == names[i])
			return wrong(p, "section [%s] already began at line %u; put its keys there",
				name, p->opened[k].line);
	p->opened[p->n_opened].name = names[i];
	p->opened[p->n_opened++].line = p->line;
	p->section = names[i];
	return 0;
}

static int take_line(void *userdata, const char *bytes, size_t n, unsigned number)
{
	struct parse *p = userdata;
	struct ini_line line;
	char fault[INI_FAULT_BYTES];
	p->line = number;
	if (ini_read(bytes, n, p->line == 1, &line, fault) != 0)
		return wrong(p, "%s", fault);
	switch (line.kind) {
	case INI_SECTION:
		return take_section(p, line.name);
	case INI_KEY:
		return take_value(p, line.name, line.value);
	default:
		return 0;
	}
}

/* Check that no key exceeds its partner. The error names the later line of the two. */
static int check_orders(struct parse *p)
{
	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		const struct conf_row *less = row_named(NULL, orders[i].less);
		const struct conf_row *more = row_named(NULL, orders[i].more);
		if (conf_value_get(less, &p->c) <= conf_value_get(more, &p->c))
			continue;

		unsigned less_at = p->set_at[less - conf_rows],
			 more_at = p->set_at[more - conf_rows];
		bool last_is_less = less_at > more_at;
		const struct conf_row *last = last_is_less ? less : more;
		const struct conf_row *other = last_is_less ? more : less;
		unsigned other_at = last_is_less ? more_at : less_at;
		char where[32] = "the default";
		if (other_at > 0)
			snprintf(where, sizeof(where), "line %u", other_at);
		p->line = last_is_less ? less_at : more_at;
		return wrong(p, "%s is %s, but %s is %s (%s); %s must not be larger than %s",
			last->key, conf_value_print(last, &p->c).text, other->key,
			conf_value_print(other, &p->c).text, where, less->key, more->key);
	}
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

void conf_defaults(struct conf *ret_conf)
{
	*ret_conf = (struct conf){0};
	for (size_t i = 0; i < n_conf_rows; i++)
		conf_value_set(&conf_rows[i], conf_rows[i].preset, ret_conf);
}

static int parse_lines(struct parse *p, const char *text, size_t n)
{
	if (n > CONF_BYTES_MAX)
		return wrong(p, "the file has more than %d bytes, which no configuration needs",
			CONF_BYTES_MAX);
	int r = ini_each_line(text, n, take_line, p);
	return r == 0 ? check_orders(p) : r;
}

int conf_parse(const char *text, size_t n, const char *name, struct conf *ret_conf,
	struct conf_error *ret_error)
{
	struct parse p = {.name = name};
	conf_defaults(&p.c);
	int r = parse_lines(&p, text, n);
	if (r == 0)
		*ret_conf = p.c;
	else
		*ret_error = p.error;
	return r;
}

int conf_read(const char *path, struct conf *ret_conf, struct conf_error *ret_error)
{
	_cleanup_(freep) char *text = NULL;
	char fault[INI_FAULT_BYTES];
	size_t n;
	int r = ini_read_file(path, &text, &n, fault);
	switch (r) {
	case 0:
		return conf_parse(text, n, path, ret_conf, ret_error);
	case INI_ABSENT:
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%.200s does not exist; name another file with --config, or leave out "
			"--config for the defaults",
			path);
		return CONF_ABSENT;
	case INI_REFUSED:
	case INI_UNREADABLE:
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%.200s cannot be read: %.200s; %s", path, fault,
			r == INI_REFUSED ? "let the user that mperfd runs as read it, or name "
					   "another file"
					 : "name a text file with --config");
		return CONF_UNREADABLE;
	default:
		return r;
	}
}

/* Write text as comment lines. */
static void print_comment(const char *words, FILE *f)
{
	while (*words) {
		size_t n = strlen(words);
		if (n > CONF_COLUMNS)
			for (n = CONF_COLUMNS; n > 1 && words[n] != ' ';)
				n--;
		fprintf(f, "# %.*s\n", (int)n, words);
		words += n;
		words += *words == ' ';
	}
}

static void print_range(const struct conf_row *row, FILE *f)
{
	if (row->kind == KIND_COUNT || row->kind == KIND_DURATION || row->kind == KIND_BYTES ||
		row->kind == KIND_SHARE)
		fprintf(f, "# From %s to %s%s%s.", row->min, row->max, *row->unit ? " " : "",
			row->unit);
	else
		fputs(row->kind == KIND_SWITCH      ? "# yes or no."
			: row->kind == KIND_CALLERS ? "# tables, fp or no."
			: row->kind == KIND_PATH    ? "# A path."
			: row->kind == KIND_PINS    ? "# A list of rules, separated by spaces."
			: row->kind == KIND_URLS    ? "# A list of URLs, separated by commas."
			: row->kind == KIND_EVENTS  ? "# A list of names, separated by commas."
			: row->kind == KIND_VARIABLES
				? "# A list of VARIABLE or LABEL=VARIABLE, separated by commas."
				: "# A name.",
			f);
	fputs(row->restart ? " A change waits for the next start.\n" : "\n", f);
}

void conf_print(const struct conf *c, FILE *f)
{
	const char *section = "";
	for (size_t i = 0; i < n_conf_rows; i++) {
		const struct conf_row *row = &conf_rows[i];
		if (strcmp(row->section, section) != 0)
			fprintf(f, "%s[%s]\n", i > 0 ? "\n" : "", row->section);
		else
			fputs("\n", f);
		section = row->section;
		print_comment(row->says, f);
		print_range(row, f);
		fprintf(f, "%s = %s\n", row->key, conf_value_print(row, c).text);
	}
}

void conf_need_restart(const struct conf *now, const struct conf *next, char *ret_text, size_t n)
{
	size_t used = 0;
	if (n > 0)
		*ret_text = '\0';
	for (size_t i = 0; i < n_conf_rows; i++) {
		struct conf_value_text a = conf_value_print(&conf_rows[i], now),
				       b = conf_value_print(&conf_rows[i], next);
		if (!conf_rows[i].restart || strcmp(a.text, b.text) == 0 || used >= n)
			continue;
		used += (size_t)snprintf(
			ret_text + used, n - used, "%s%s", used > 0 ? ", " : "", conf_rows[i].key);
	}
}
