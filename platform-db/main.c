/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperf-platform-check: the product's own parser over folders of platforms. It reports errors, and
 * with --list or --show the parsed data, so that errors in a new core are found before mperfd reads
 * it.
 */
#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/platform.h"
#include "platform-db/selector.h"

#define FOLDERS_MAX 8
#define EXIT_USAGE 2

const char *argp_program_version = "mperf-platform-check " MPERF_VERSION;

static const struct argp_option options[] = {
	{"list", 'l', NULL, 0, "list the platforms", 0},
	{"show", 's', "PLATFORM", 0, "print everything known about one platform", 0},
	{"decode", 'd', "RAW", 0,
		"with --show: print only what the fields of this raw code mean there, such as 0x22",
		0},
	{0},
};

struct arguments {
	const char *folder[FOLDERS_MAX];
	size_t n_folders;
	bool list;
	const char *show;
	bool decodes;
	uint64_t code;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case 'l':
		a->list = true;
		return 0;
	case 's':
		a->show = arg;
		return 0;
	case 'd':
		a->decodes = true;
		if (!selector_code_parse(arg, &a->code))
			argp_error(state, "'%s' is not a raw code, such as r22 or 0x22", arg);
		return 0;
	case ARGP_KEY_END:
		if (a->decodes && !a->show)
			argp_error(state, "--decode needs --show, the platform whose code it is");
		return 0;
	case ARGP_KEY_ARG:
		if (a->n_folders == FOLDERS_MAX)
			argp_error(state, "more than %d folders", FOLDERS_MAX);
		a->folder[a->n_folders++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_origin(const struct platform_origin *o)
{
	printf("    %s:%d; source: %s; verified: %s\n", o->file, o->line, o->source, o->verified);
}

static void print_leader(const char *mode, const struct platform_event *e)
{
	if (e)
		printf("  leader for %s: %s (0x%llx)\n", mode, e->name,
			(unsigned long long)e->code);
}

static void print_quirks(const struct platform *p)
{
	static const char *const overflow[] = {
		"not known", "all counters", "the programmable counters alone", "none"};
	printf("  overflow interrupts: %s\n", overflow[p->overflow]);
	print_leader("user", p->leader_user);
	print_leader("kernel", p->leader_kernel);
	print_leader("machine", p->leader_machine);
	if (p->counters)
		printf("  programmable counters: 0x%llx\n", (unsigned long long)p->counters);
	if (p->vector_bits)
		printf("  vector registers: %u bits %s\n", p->vector_bits, p->vector_says);
	if (p->issue_width || p->slots)
		printf("  issue width %u, slots %u (0: not known)\n", p->issue_width, p->slots);
	for (size_t i = 0; i < p->n_caches; i++) {
		const struct platform_cache *c = &p->cache[i];
		printf("  cache L%d%c: %llu KiB, line %u, shared by %u (0: not known)\n", c->level,
			c->kind, (unsigned long long)c->bytes >> 10, c->line_bytes, c->shared_by);
	}
	for (size_t i = 0; i < p->n_peaks; i++)
		printf("  peak %s %s: %g operations a cycle\n", p->peak[i].unit,
			p->peak[i].precision, p->peak[i].ops_per_cycle);
	for (size_t i = 0; i < p->n_lacks; i++) {
		printf("  lacks %s: %s\n", p->lack[i].metric, p->lack[i].says);
		print_origin(&p->lack[i].origin);
	}
	for (size_t i = 0; i < p->n_notes; i++) {
		printf("  note: %s\n", p->note[i].says);
		print_origin(&p->note[i].origin);
	}
}

static void print_fields(const struct platform *p)
{
	char bits[SELECTOR_BITS_BYTES];
	for (size_t i = 0; i < p->n_fields; i++) {
		const struct platform_field *f = &p->field[i];
		printf("  field %s%s%s: bits %s", p->selector, *p->selector ? "/" : "", f->name,
			selector_bits_say(f->mask, bits));
		for (size_t j = 0; j < f->n_values; j++)
			printf("%s%s=0x%llx", j ? ", " : "; ", f->value[j].name,
				(unsigned long long)f->value[j].number);
		if (f->kind == PLATFORM_FIELD_OPERATION)
			printf("; joins %s and %s", p->field[f->joins[0]].name,
				p->field[f->joins[1]].name);
		printf("%s%s\n", *f->says ? ": " : "", f->says);
	}
}

/* Print a line for each event or expression that the code means, then one for each field. */
static void print_decoded(const struct platform *p, uint64_t code)
{
	char text[SELECTOR_TEXT_BYTES], bits[SELECTOR_BITS_BYTES];
	const char *bank;
	uint64_t left = code;
	for (size_t i = 0; i < p->n_events; i++)
		if (p->event[i].code == code && !p->event[i].config1)
			printf("  code %s\n", p->event[i].name);
	for (size_t i = 0; (bank = selector_bank(p, i)); i++)
		if (*selector_says(p, bank, code, text))
			printf("  code %s\n", text);
	for (size_t i = 0; i < p->n_fields; i++) {
		const struct platform_field *f = &p->field[i];
		uint64_t value = selector_value(f, code);
		if (value)
			printf("  field %s (%s) = 0x%llx: %s\n", f->name,
				selector_bits_say(f->mask, bits), (unsigned long long)value,
				selector_means(p, f, code, text));
		left &= ~f->mask;
	}
	if (left)
		printf("  0x%llx in bits of no field\n", (unsigned long long)left);
}

static void print_events(const struct platform *p)
{
	for (size_t i = 0; i < p->n_events; i++) {
		const struct platform_event *e = &p->event[i];
		printf("  %-10s 0x%-10llx %s", e->topic, (unsigned long long)e->code, e->name);
		for (size_t j = 0; j < e->n_aliases; j++)
			printf(", %s", e->aliases[j]);
		if (e->counters)
			printf(" [counters 0x%llx]", (unsigned long long)e->counters);
		printf("%s%s%s\n", e->ignores_exclude_kernel ? " [counts all modes]" : "",
			*e->says ? ": " : "", e->says);
	}
}

static void print_metrics(const struct platform *p)
{
	for (size_t i = 0; i < p->n_metrics; i++) {
		const struct platform_metric *m = &p->metric[i];
		printf("  metric %s", m->name);
		for (size_t j = 0; j < m->n_groups; j++)
			printf("%s%s", j ? "; " : " [", m->group[j]);
		printf("%s%s%s = %s", m->n_groups ? "]" : "", *m->says ? ": " : "", m->says,
			m->text);
		if (m->scale != 1 || *m->unit)
			printf(" x %g %s", m->scale, m->unit);
		putchar('\n');
	}
}

static int show(struct platform_db *db, const struct arguments *a)
{
	const char *name = a->show;
	const struct platform *p = platform_db_find(db, name);
	if (!p) {
		fprintf(stderr,
			"mperf-platform-check: no platform is named '%s'; --list shows them\n",
			name);
		return EXIT_FAILURE;
	}
	printf("%s: %s\n", p->name, p->title);
	if (a->decodes) {
		print_decoded(p, a->code);
		return EXIT_SUCCESS;
	}
	print_origin(&p->origin);
	print_quirks(p);
	print_fields(p);
	print_events(p);
	print_metrics(p);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[FOLDER…]",
		.doc = "Read platforms as mperfd does, and report errors in them. Later folders "
		       "override earlier ones; the default is mperf's own data "
		       "and " PLATFORM_FOLDER_OVERRIDES ".\v"
		       "Examples:\n"
		       "  mperf-platform-check\n"
		       "  mperf-platform-check --show spacemit-x60\n"
		       "  mperf-platform-check --show xiangshan-kunminghu --decode 0x40000002007\n"
		       "  mperf-platform-check platform-db/platforms ./mine\n\n"
		       "Exit status: 0 if all files are valid, 1 if one is not, 2 on wrong usage.",
	};
	struct arguments a = {0};
	char own[PATH_MAX];
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.n_folders == 0 && platform_folder_find(own, sizeof(own)) == 0) {
		a.folder[a.n_folders++] = own;
		a.folder[a.n_folders++] = PLATFORM_FOLDER_OVERRIDES;
	}

	_cleanup_(platform_db_freep) struct platform_db *db = NULL;
	if (platform_db_load(a.folder, a.n_folders, &db) < 0) {
		fprintf(stderr, "mperf-platform-check: out of memory\n");
		return EXIT_FAILURE;
	}
	const char *error;
	size_t n_errors = 0;
	for (; (error = platform_db_error(db, n_errors)); n_errors++)
		fprintf(stderr, "%s\n", error);
	const struct platform *p;
	size_t n = 0;
	for (; (p = platform_db_at(db, n)); n++)
		if (a.list)
			printf("%-20s %4zu events %4zu metrics  %s\n", p->name, p->n_events,
				p->n_metrics, p->title);
	if (n_errors == 0 && !a.list && !a.show)
		printf("%zu platforms; no errors\n", n);
	int status = a.show ? show(db, &a) : EXIT_SUCCESS;
	return n_errors > 0 ? EXIT_FAILURE : status;
}
