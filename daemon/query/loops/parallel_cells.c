/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A table per way to group: its columns, and what fills their cells.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/query/loops/parallel_private.h"

#define TEXT_BYTES 600

struct cells {
	struct answer_value value[24];
	size_t n;
	char text[4][TEXT_BYTES];
	size_t n_texts;
};

static void put_text(struct cells *c, const char *text)
{
	char *copy = c->text[c->n_texts++];
	snprintf(copy, TEXT_BYTES, "%s", text ? text : "");
	c->value[c->n++] = *copy ? (struct answer_value){.kind = ANSWER_TEXT, .text = copy}
				 : (struct answer_value){.kind = ANSWER_ABSENT};
}

static void put_count(struct cells *c, double n)
{
	c->value[c->n++] = (struct answer_value){.kind = ANSWER_INTEGER, .integer = integer_of(n)};
}

static void put_share(struct cells *c, double part, double of)
{
	c->value[c->n++] = of > 0 ? (struct answer_value){.kind = ANSWER_REAL, .real = part / of}
				  : (struct answer_value){.kind = ANSWER_ABSENT};
}

static void put_id(struct cells *c, int32_t id)
{
	if (id > 0)
		put_count(c, id);
	else
		c->value[c->n++] = (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Of one thread there is none. */
static void put_imbalance(struct cells *c, const struct parallel_row *row)
{
	double mean = row->n_threads > 0 ? row->work / row->n_threads : 0;
	if (row->n_threads > 1)
		put_share(c, row->most_work - mean, mean);
	else
		c->value[c->n++] = (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Is the region of another function than that of its call? */
static bool is_of_body(const struct loop_facts *f, const struct fact_site *s)
{
	const char *name = text_of(&f->texts, s->readable), *body = text_of(&f->texts, s->body);
	return body && (!name || strcmp(name, body) != 0);
}

/* The function of a place; without a name, where it is in its file. */
static void put_function(struct cells *c, const struct loop_facts *f, uint32_t site)
{
	char text[TEXT_BYTES];
	if (!site) {
		put_text(c, "[outside regions]");
		return;
	}
	const struct fact_site *s = &f->site[site - 1];
	if (is_of_body(f, s)) {
		put_text(c, text_of(&f->texts, s->body));
		return;
	}
	const char *name = text_of(&f->texts, s->readable), *nest = text_of(&f->texts, s->nest);
	if (name && *name) {
		put_text(c, name);
		return;
	}
	const char *at = nest ? strchr(nest, '@') : NULL;
	const char *path = text_of(&f->texts, s->source);
	const char *slash = path ? strrchr(path, '/') : NULL;
	if (at)
		snprintf(text, sizeof(text), "[%.500s+0x%s]",
			slash           ? slash + 1
			: path && *path ? path
					: "unknown",
			at + 1);
	else
		snprintf(text, sizeof(text), "%s",
			s->kind == LOOP_SITE_PARALLEL ? "[other regions]" : "");
	put_text(c, text);
}

static void put_source(struct cells *c, const struct loop_facts *f, uint32_t site)
{
	const struct fact_site *s = site ? &f->site[site - 1] : NULL;
	char text[TEXT_BYTES];
	bool of_body = s && is_of_body(f, s);
	uint32_t line = !s ? 0 : of_body ? s->body_line : s->line;
	if (line == 0) {
		put_text(c, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.500s:%u",
		text_of(&f->texts, of_body ? s->body_source : s->source), line);
	put_text(c, text);
}

/* "critical": the nest up to the offset. */
static void put_what(struct cells *c, const struct loop_facts *f, uint32_t site)
{
	char text[LOOP_PLACE_NEST_BYTES];
	snprintf(text, sizeof(text), "%s", text_of(&f->texts, f->site[site - 1].nest));
	text[strcspn(text, "@")] = '\0';
	put_text(c, text);
}

static void put_process(struct cells *c, const struct loop_facts *f, uint32_t who)
{
	put_id(c, who ? f->who[who - 1].pid : 0);
}

static void put_thread(struct cells *c, const struct loop_facts *f, uint32_t who)
{
	put_process(c, f, who);
	put_id(c, who ? f->who[who - 1].tid : 0);
}

/* --- kinds of rows ---------------------------------------------------------------------------- */

#define COUNT MPERF__UNIT__UNIT_COUNT
#define NS MPERF__UNIT__UNIT_NS
#define SHARE MPERF__UNIT__UNIT_SHARE

static const struct answer_column region_columns[] = {
	{"function", "Region", 0},
	{"source", "Source", 0},
	{"pid", "PID", 0},
	{"threads", "Threads", COUNT},
	{"calls", "Calls", COUNT},
	{"elapsed_ns", "Elapsed", NS},
	{"time_ns", "Of threads", NS},
	{"work", "Work", SHARE},
	{"wait", "Waits", SHARE},
	{"lock", "Locks", SHARE},
	{"imbalance", "Imbalance", SHARE},
	{"sampled_ns", "Sampled", NS},
	{"samples", "Samples", COUNT},
	{"inside", "Inside", 0},
};

static void region_cells(const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	uint32_t around = row->site ? f->site[row->site - 1].parent : 0;
	put_function(c, f, row->site);
	put_source(c, f, row->site);
	put_process(c, f, row->who);
	put_count(c, row->n_threads);
	put_count(c, row->calls);
	put_count(c, row->longest_ns);
	put_count(c, row->time_ns);
	put_share(c, row->work, row->time_ns);
	put_share(c, row->wait_ns, row->time_ns);
	put_share(c, row->lock_ns, row->time_ns);
	put_imbalance(c, row);
	put_count(c, row->sampled_ns);
	put_count(c, row->samples);
	if (around)
		put_function(c, f, around);
	else
		put_text(c, NULL);
}

static const struct answer_column thread_columns[] = {
	{"function", "Region", 0},
	{"source", "Source", 0},
	{"pid", "PID", 0},
	{"tid", "TID", 0},
	{"entries", "Entries", COUNT},
	{"time_ns", "Time", NS},
	{"work_ns", "Work", NS},
	{"wait_ns", "Waits", NS},
	{"lock_ns", "Locks", NS},
	{"sampled_ns", "Sampled", NS},
	{"samples", "Samples", COUNT},
};

static void thread_cells(const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	put_function(c, f, row->site);
	put_source(c, f, row->site);
	put_thread(c, f, row->who);
	put_count(c, row->entries);
	put_count(c, row->time_ns);
	put_count(c, row->work);
	put_count(c, row->wait_ns);
	put_count(c, row->lock_ns);
	put_count(c, row->sampled_ns);
	put_count(c, row->samples);
}

static const struct answer_column place_columns[] = {
	{"what", "What", 0},
	{"source", "Source", 0},
	{"function", "Region", 0},
	{"pid", "PID", 0},
	{"threads", "Threads", COUNT},
	{"entries", "Entries", COUNT},
	{"time_ns", "Time", NS},
	{"longest_ns", "Longest", NS},
	{"imbalance", "Imbalance", SHARE},
};

static void place_cells(const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	bool is_work = f->site[row->site - 1].kind == LOOP_SITE_WORK;
	put_what(c, f, row->site);
	put_source(c, f, row->site);
	put_function(c, f, row->region);
	put_process(c, f, row->who);
	put_count(c, row->n_threads);
	put_count(c, row->entries);
	put_count(c, row->time_ns);
	put_count(c, row->longest_ns);
	if (is_work)
		put_imbalance(c, row);
	else /* that threads wait for different times is the other side of it */
		c->value[c->n++] = (struct answer_value){.kind = ANSWER_ABSENT};
}

static const struct answer_column wait_columns[] = {
	{"what", "What", 0},
	{"source", "Source", 0},
	{"function", "Region", 0},
	{"pid", "PID", 0},
	{"tid", "TID", 0},
	{"entries", "Waits", COUNT},
	{"time_ns", "Waited", NS},
};

static void wait_cells(const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	put_what(c, f, row->site);
	put_source(c, f, row->site);
	put_function(c, f, row->region);
	put_thread(c, f, row->who);
	put_count(c, row->entries);
	put_count(c, row->time_ns);
}

static const struct answer_column loop_columns[] = {
	{"function", "Region", 0},
	{"source", "Loop", 0},
	{"nest", "Nest", 0},
	{"pid", "PID", 0},
	{"threads", "Threads", COUNT},
	{"iterations", "Iterations", COUNT},
	{"fp_ops", "FLOP", COUNT},
	{"bytes", "Bytes", MPERF__UNIT__UNIT_BYTES},
	{"imbalance", "Imbalance", SHARE},
};

static void loop_cells(const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	put_function(c, f, row->region);
	put_source(c, f, row->site);
	put_text(c, text_of(&f->texts, f->site[row->site - 1].nest));
	put_process(c, f, row->who);
	put_count(c, row->n_threads);
	put_count(c, row->iterations);
	put_count(c, row->fp_ops);
	put_count(c, row->bytes);
	put_imbalance(c, row);
}

static const struct answer_column function_columns[] = {
	{"region", "Region", 0},
	{"source", "Source", 0},
	{"function", "Function", 0},
	{"module", "Module", 0},
	{"pid", "PID", 0},
	{"share", "Share", SHARE},
	{"sampled_ns", "Sampled", NS},
	{"samples", "Samples", COUNT},
};

static void function_cells(
	const struct parallel *p, const struct parallel_row *row, struct cells *c)
{
	const struct loop_facts *f = &p->facts;
	put_function(c, f, row->region);
	put_source(c, f, row->region);
	put_text(c, row->function ? text_of(&f->texts, row->function) : "[other functions]");
	put_text(c, text_of(&f->texts, row->module));
	put_process(c, f, row->who);
	put_share(c, row->sampled_ns, f->sampled_ns);
	put_count(c, row->sampled_ns);
	put_count(c, row->samples);
}

#define TABLE(columns, cells)                                                                      \
	{                                                                                          \
		columns, sizeof(columns) / sizeof(*(columns)), cells                               \
	}
static const struct {
	const struct answer_column *columns;
	size_t n;
	void (*cells)(const struct parallel *p, const struct parallel_row *row, struct cells *c);
} tables[N_PARALLEL_BY] = {
	[PARALLEL_BY_REGION] = TABLE(region_columns, region_cells),
	[PARALLEL_BY_THREAD] = TABLE(thread_columns, thread_cells),
	[PARALLEL_BY_PLACE] = TABLE(place_columns, place_cells),
	[PARALLEL_BY_WAIT] = TABLE(wait_columns, wait_cells),
	[PARALLEL_BY_LOOP] = TABLE(loop_columns, loop_cells),
	[PARALLEL_BY_FUNCTION] = TABLE(function_columns, function_cells),
};

int parallel_tell_columns(const struct parallel *p, const struct answer *answer)
{
	return answer->columns(answer->userdata, tables[p->q.by].columns, tables[p->q.by].n);
}

int parallel_tell_row(
	const struct parallel *p, const struct parallel_row *row, const struct answer *answer)
{
	struct cells c = {.n = 0};
	tables[p->q.by].cells(p, row, &c);
	return answer->row(answer->userdata, c.value, c.n);
}
