/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A table per way to group.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/query/loops/cells.h"
#include "daemon/query/loops/parallel_private.h"

#define TEXT_BYTES 600

/* Texts of a row. */
struct texts {
	char text[4][TEXT_BYTES];
	size_t n;
};

static struct answer_value text(struct texts *t, const char *from)
{
	char *copy = t->text[t->n++];
	snprintf(copy, TEXT_BYTES, "%s", from ? from : "");
	return cell_text(known_text(copy));
}

/* By how much the busiest thread's work exceeds the mean; absent with one thread. */
static double imbalance(const struct parallel_row *row)
{
	double mean = row->n_threads > 0 ? row->work / row->n_threads : 0;
	return row->n_threads > 1 ? ratio_of(row->most_work - mean, mean) : NAN;
}

/* Is the region's body in another function than its call? *ret_body: the body. */
static bool is_of_body(const struct loop_facts *f, uint32_t site, struct region_body *ret_body)
{
	*ret_body = loop_facts_body_of(f, site);
	const char *name = text_of(&f->texts, f->sites.site[site - 1].readable);
	const char *function = text_of(&f->texts, ret_body->function);
	return function && (!name || strcmp(name, function) != 0);
}

/* The function of a place; without a name, where it is in its file. */
static struct answer_value function(struct texts *t, const struct loop_facts *f, uint32_t site)
{
	char made[TEXT_BYTES];
	struct region_body body;
	if (!site)
		return text(t, "[outside regions]");
	const struct fact_site *s = &f->sites.site[site - 1];
	if (is_of_body(f, site, &body))
		return text(t, text_of(&f->texts, body.function));
	const char *name = text_of(&f->texts, s->readable), *nest = text_of(&f->texts, s->nest);
	if (name && *name)
		return text(t, name);
	const char *at = nest ? strchr(nest, '@') : NULL;
	const char *path = text_of(&f->texts, s->source);
	const char *slash = path ? strrchr(path, '/') : NULL;
	if (at)
		snprintf(made, sizeof(made), "[%.500s+0x%s]",
			slash           ? slash + 1
			: path && *path ? path
					: "unknown",
			at + 1);
	else
		snprintf(made, sizeof(made), "%s",
			s->kind == LOOP_SITE_PARALLEL ? "[other regions]" : "");
	return text(t, made);
}

static struct answer_value source(struct texts *t, const struct loop_facts *f, uint32_t site)
{
	const struct fact_site *s = site ? &f->sites.site[site - 1] : NULL;
	char made[TEXT_BYTES];
	struct region_body body;
	bool of_body = s && is_of_body(f, site, &body);
	uint32_t line = !s ? 0 : of_body ? body.line : s->line;
	if (line == 0)
		return cell_absent();
	snprintf(made, sizeof(made), "%.500s:%u",
		text_of(&f->texts, of_body ? body.source : s->source), line);
	return text(t, made);
}

/* "critical": the nest up to the offset. */
static struct answer_value what(struct texts *t, const struct loop_facts *f, uint32_t site)
{
	char made[LOOP_PLACE_NEST_BYTES];
	snprintf(made, sizeof(made), "%s", text_of(&f->texts, f->sites.site[site - 1].nest));
	made[strcspn(made, "@")] = '\0';
	return text(t, made);
}

/* The region that this one is in. */
static struct answer_value inside(struct texts *t, const struct loop_facts *f, uint32_t site)
{
	uint32_t around = site ? f->sites.site[site - 1].parent : 0;
	return around ? function(t, f, around) : cell_absent();
}

/* Only for work-sharing constructs: the threads with less work wait while the others work. */
static double place_imbalance(const struct loop_facts *f, const struct parallel_row *row)
{
	return f->sites.site[row->site - 1].kind == LOOP_SITE_WORK ? imbalance(row) : NAN;
}

static int32_t pid_of(const struct loop_facts *f, uint32_t who)
{
	return who ? f->whos.who[who - 1].pid : 0;
}

static int32_t tid_of(const struct loop_facts *f, uint32_t who)
{
	return who ? f->whos.who[who - 1].tid : 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

#define REGION_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(function, "Region", cell, function(t, f, row->site))                                \
	COLUMN(source, "Source", cell, source(t, f, row->site))                                    \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	COLUMN(threads, "Threads", count, integer_of(row->n_threads))                              \
	COLUMN(calls, "Calls", count, integer_of(row->calls))                                      \
	COLUMN(elapsed_ns, "Elapsed", ns, integer_of(row->longest_ns))                             \
	COLUMN(time_ns, "Of threads", ns, integer_of(row->time_ns))                                \
	COLUMN(work, "Work", share, ratio_of(row->work, row->time_ns))                             \
	COLUMN(wait, "Waits", share, ratio_of(row->wait_ns, row->time_ns))                         \
	COLUMN(lock, "Locks", share, ratio_of(row->lock_ns, row->time_ns))                         \
	COLUMN(imbalance, "Imbalance", share, imbalance(row))                                      \
	COLUMN(sampled_ns, "Sampled", ns, integer_of(row->sampled_ns))                             \
	COLUMN(samples, "Samples", count, integer_of(row->samples))                                \
	COLUMN(inside, "Inside", cell, inside(t, f, row->site))

#define THREAD_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(function, "Region", cell, function(t, f, row->site))                                \
	COLUMN(source, "Source", cell, source(t, f, row->site))                                    \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	KNOWN_IF(tid, "TID", number, tid_of(f, row->who) > 0, tid_of(f, row->who))                 \
	COLUMN(entries, "Entries", count, integer_of(row->entries))                                \
	COLUMN(time_ns, "Time", ns, integer_of(row->time_ns))                                      \
	COLUMN(work_ns, "Work", ns, integer_of(row->work))                                         \
	COLUMN(wait_ns, "Waits", ns, integer_of(row->wait_ns))                                     \
	COLUMN(lock_ns, "Locks", ns, integer_of(row->lock_ns))                                     \
	COLUMN(sampled_ns, "Sampled", ns, integer_of(row->sampled_ns))                             \
	COLUMN(samples, "Samples", count, integer_of(row->samples))

#define PLACE_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(what, "What", cell, what(t, f, row->site))                                          \
	COLUMN(source, "Source", cell, source(t, f, row->site))                                    \
	COLUMN(function, "Region", cell, function(t, f, row->region))                              \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	COLUMN(threads, "Threads", count, integer_of(row->n_threads))                              \
	COLUMN(entries, "Entries", count, integer_of(row->entries))                                \
	COLUMN(time_ns, "Time", ns, integer_of(row->time_ns))                                      \
	COLUMN(longest_ns, "Longest", ns, integer_of(row->longest_ns))                             \
	COLUMN(imbalance, "Imbalance", share, place_imbalance(f, row))

#define WAIT_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(what, "What", cell, what(t, f, row->site))                                          \
	COLUMN(source, "Source", cell, source(t, f, row->site))                                    \
	COLUMN(function, "Region", cell, function(t, f, row->region))                              \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	KNOWN_IF(tid, "TID", number, tid_of(f, row->who) > 0, tid_of(f, row->who))                 \
	COLUMN(entries, "Waits", count, integer_of(row->entries))                                  \
	COLUMN(time_ns, "Waited", ns, integer_of(row->time_ns))

#define LOOP_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(function, "Region", cell, function(t, f, row->region))                              \
	COLUMN(source, "Loop", cell, source(t, f, row->site))                                      \
	COLUMN(nest, "Nest", cell, text(t, text_of(&f->texts, f->sites.site[row->site - 1].nest))) \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	COLUMN(threads, "Threads", count, integer_of(row->n_threads))                              \
	COLUMN(iterations, "Iterations", count, integer_of(row->iterations))                       \
	COLUMN(fp_ops, "FLOP", count, integer_of(row->fp_ops))                                     \
	COLUMN(bytes, "Bytes", bytes, integer_of(row->bytes))                                      \
	COLUMN(imbalance, "Imbalance", share, imbalance(row))

#define FUNCTION_TABLE(COLUMN, KNOWN_IF)                                                           \
	COLUMN(region, "Region", cell, function(t, f, row->region))                                \
	COLUMN(source, "Source", cell, source(t, f, row->region))                                  \
	COLUMN(function, "Function", cell,                                                         \
		text(t, row->function ? text_of(&f->texts, row->function) : "[other functions]"))  \
	COLUMN(module, "Module", cell, text(t, text_of(&f->texts, row->module)))                   \
	KNOWN_IF(pid, "PID", number, pid_of(f, row->who) > 0, pid_of(f, row->who))                 \
	COLUMN(share, "Share", share, ratio_of(row->sampled_ns, f->samples.taken.ns))              \
	COLUMN(sampled_ns, "Sampled", ns, integer_of(row->sampled_ns))                             \
	COLUMN(samples, "Samples", count, integer_of(row->samples))

int parallel_tell_columns(const struct parallel *p, const struct answer *answer)
{
	switch (p->q.by) {
	case PARALLEL_BY_THREAD:
		return TABLE_BEGIN(answer, NULL, THREAD_TABLE);
	case PARALLEL_BY_PLACE:
		return TABLE_BEGIN(answer, NULL, PLACE_TABLE);
	case PARALLEL_BY_WAIT:
		return TABLE_BEGIN(answer, NULL, WAIT_TABLE);
	case PARALLEL_BY_LOOP:
		return TABLE_BEGIN(answer, NULL, LOOP_TABLE);
	case PARALLEL_BY_FUNCTION:
		return TABLE_BEGIN(answer, NULL, FUNCTION_TABLE);
	default:
		return TABLE_BEGIN(answer, NULL, REGION_TABLE);
	}
}

int parallel_tell_row(
	const struct parallel *p, const struct parallel_row *row, const struct answer *answer)
{
	const struct loop_facts *f = &p->facts;
	struct texts texts = {.n = 0}, *t = &texts;
	switch (p->q.by) {
	case PARALLEL_BY_THREAD:
		return TABLE_ROW(answer, THREAD_TABLE);
	case PARALLEL_BY_PLACE:
		return TABLE_ROW(answer, PLACE_TABLE);
	case PARALLEL_BY_WAIT:
		return TABLE_ROW(answer, WAIT_TABLE);
	case PARALLEL_BY_LOOP:
		return TABLE_ROW(answer, LOOP_TABLE);
	case PARALLEL_BY_FUNCTION:
		return TABLE_ROW(answer, FUNCTION_TABLE);
	default:
		return TABLE_ROW(answer, REGION_TABLE);
	}
}
