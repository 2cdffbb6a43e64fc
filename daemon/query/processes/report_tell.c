/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The tables of a report
 *
 * A build's chain has thousands of stretches, most of them of a make between two compilers. The longest are rows of
 * their own, and what is shorter between two of them is one row.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/query/processes/report_private.h"
#include "proto/base/memory.h"

/* With a limit, stretches that are shorter than this part of the whole are no rows of their own. */
#define SHORT_PART 100
#define NAMES_SAID 3 /* programs named in a row of several stretches */
#define NAME_BYTES 64
/* Each takes a replay of all processes: 50 ms of a kernel's build. */
#define WITHOUT_MAX 64u
/* What waited less is rather a look that happened to see it. */
#define WAITED_SHARE 0.05

#define NOBODY "(none of its processes)"

static const char *const kind_names[] = {
#define X(kind, name, says) [kind] = name,
#include "daemon/kernel/offcpu.inc"
#undef X
};

static const char *name_of(const struct report *r, uint32_t at)
{
	const struct process *p = report_process(r, at);
	return p ? text_of(&r->texts, p->comm) : NOBODY;
}

/* --- run -------------------------------------------------------------------------------------- */

#define RUN_TABLE(COLUMN, KNOWN_IF)                                                                \
	COLUMN(job, "Run", text, r->of->says)                                                      \
	COLUMN(begin, "Begin", time, r->of->begin_ns)                                              \
	COLUMN(ns, "Took", ns, took_ns)                                                            \
	COLUMN(cpu_ns, "CPU time", ns, integer_of(r->cpu_ns))                                      \
	KNOWN_IF(harts, "Harts at work", ratio, took_ns > 0, r->cpu_ns / (double)took_ns)          \
	COLUMN(idle_ns, "Nothing worked", ns, integer_of((double)took_ns - r->wall.ns))            \
	COLUMN(processes, "Processes", count, r->n_wanted)                                         \
	COLUMN(state, "State", text, r->of->unfinished ? "has not ended: so far" : "ended")

static int tell_run(const struct report *r, const struct answer *to)
{
	const int64_t took_ns = r->end_ns - r->begin_ns;
	return TABLE_OF_ONE(to, "run", RUN_TABLE);
}

/* --- sums by program -------------------------------------------------------------------------- */

struct report_program {
	uint32_t comm; /* text; 0: none of the processes */
	uint32_t n;
	int64_t chain_ns;
	double cpu_ns, wall_ns;
};

static int by_comm(const void *a, const void *b)
{
	const struct report_program *x = a, *y = b;
	return (x->comm > y->comm) - (x->comm < y->comm);
}

static int by_chain(const void *a, const void *b)
{
	const struct report_program *x = a, *y = b;
	if (x->chain_ns != y->chain_ns)
		return x->chain_ns < y->chain_ns ? 1 : -1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return by_comm(a, b);
}

/* Returns the number of programs, from n_tree of one process each. */
static uint32_t sum_up(struct report_program *program, uint32_t n)
{
	uint32_t n_programs = 0;
	qsort(program, n, sizeof(*program), by_comm);
	for (uint32_t i = 0; i < n; i++) {
		struct report_program *last = n_programs ? &program[n_programs - 1] : NULL;
		if (!last || last->comm != program[i].comm) {
			program[n_programs++] = program[i];
			continue;
		}
		last->n += program[i].n;
		last->chain_ns += program[i].chain_ns;
		last->cpu_ns += program[i].cpu_ns;
		last->wall_ns += program[i].wall_ns;
	}
	qsort(program, n_programs, sizeof(*program), by_chain);
	return n_programs;
}

/* --- chain ------------------------------------------------------------------------------------ */

/* Stretches `from` to before `to`, as one row. */
struct shown {
	uint32_t from, to;
	struct spent spent;
	char name[NAMES_SAID * NAME_BYTES];
	char waits[64];
	double waited_ns;
};

static void add_spent(struct spent *to, const struct spent *from)
{
	to->cpu_ns += from->cpu_ns;
	to->alone_ns += from->alone_ns;
	for (int k = 0; k < N_OFFCPU_KINDS; k++)
		to->waited_ns[k] += from->waited_ns[k];
}

/* Write to `name`: "12 shorter: cc1 71 %, sh 20 %, make, …". 0 or -ENOMEM. */
static int name_several(const struct report *r, struct shown *s)
{
	const uint32_t n_parts = s->to - s->from;
	_cleanup_(freep) struct report_program *program = calloc(n_parts, sizeof(*program));
	double ns = 0;
	if (!program)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_parts; i++) {
		const struct chain_part *part = &r->part[s->from + i];
		const struct process *p = report_process(r, part->process);
		program[i].comm = p ? p->comm : 0;
		program[i].chain_ns = part->to_ns - part->from_ns;
		ns += (double)program[i].chain_ns;
	}
	const uint32_t n = sum_up(program, n_parts);
	size_t at = (size_t)snprintf(s->name, sizeof(s->name), "%u shorter:", n_parts);
	for (uint32_t i = 0; i < n && i < NAMES_SAID && at < sizeof(s->name); i++) {
		const char *name = program[i].comm ? text_of(&r->texts, program[i].comm) : NOBODY;
		at += (size_t)snprintf(
			s->name + at, sizeof(s->name) - at, "%s %.40s", i ? "," : "", name);
		if (n > 1 && at < sizeof(s->name))
			at += (size_t)snprintf(s->name + at, sizeof(s->name) - at, " %.0f %%",
				100 * (double)program[i].chain_ns / ns);
	}
	if (n > NAMES_SAID && at < sizeof(s->name))
		snprintf(s->name + at, sizeof(s->name) - at, ", …");
	return 0;
}

/* What it mostly waited for. */
static void find_waits(struct shown *s, int64_t took_ns)
{
	int most = -1;
	for (int k = 0; k < N_OFFCPU_KINDS; k++)
		if (s->spent.waited_ns[k] > 0 &&
			(most < 0 || s->spent.waited_ns[k] > s->spent.waited_ns[most]))
			most = k;
	s->waited_ns = most < 0 ? 0 : (double)s->spent.waited_ns[most];
	/* a look stands for more time than a short stretch has */
	if (s->waited_ns > (double)took_ns)
		s->waited_ns = (double)took_ns;
	if (most < 0 || s->waited_ns < WAITED_SHARE * (double)took_ns)
		s->waited_ns = 0;
	else
		snprintf(s->waits, sizeof(s->waits), "%s", kind_names[most]);
}

#define CHAIN_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(start_ns, "Start", ns, from_ns - r->begin_ns)                                       \
	COLUMN(ns, "Took", ns, to_ns - from_ns)                                                    \
	KNOWN_IF(cpu_ns, "CPU time", ns, process || is_many, integer_of(s->spent.cpu_ns))          \
	KNOWN_IF(alone_ns, "Alone", ns, process || is_many, integer_of(s->spent.alone_ns))         \
	KNOWN_IF(waited_ns, "Waited", ns, *s->waits, integer_of(s->waited_ns))                     \
	KNOWN_IF(waits, "For", text, *s->waits, s->waits)                                          \
	COLUMN(comm, "Process", text, is_many ? s->name : name_of(r, first->process))              \
	KNOWN_IF(pid, "PID", number, process && !is_many, process->pid)                            \
	KNOWN_IF(argv, "Arguments", text, process && !is_many, text_of(&r->texts, process->argv))

static int tell_shown(const struct report *r, const struct answer *to, struct shown *s)
{
	const struct chain_part *first = &r->part[s->from];
	const bool is_many = s->to - s->from > 1;
	const struct process *process = report_process(r, first->process);
	const int64_t from_ns = first->from_ns, to_ns = r->part[s->to - 1].to_ns;
	for (uint32_t i = s->from; i < s->to; i++)
		add_spent(&s->spent, &r->spent[i]);
	int result = is_many ? name_several(r, s) : 0;
	find_waits(s, to_ns - from_ns);
	return result == 0 ? TABLE_ROW(to, CHAIN_TABLE) : result;
}

static int by_length(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* The length from which on a stretch is a row of its own. -ENOMEM. */
static int64_t least_length(const struct report *r, uint32_t limit)
{
	const int64_t part_ns = (r->end_ns - r->begin_ns) / SHORT_PART;
	if (limit == 0 || r->n_parts <= limit)
		return limit ? part_ns : 0;
	const uint32_t n =
		limit / 2 + (limit == 1); /* between two of them there may be a row of others */
	_cleanup_(freep) int64_t *length = calloc(r->n_parts, sizeof(*length));
	if (!length)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_parts; i++)
		length[i] = r->part[i].to_ns - r->part[i].from_ns;
	qsort(length, r->n_parts, sizeof(*length), by_length);
	return length[n - 1] > part_ns ? length[n - 1] : part_ns;
}

static int tell_chain(const struct report *r, uint32_t limit, const struct answer *to)
{
	const int64_t least_ns = least_length(r, limit);
	int result = least_ns < 0 ? (int)least_ns : TABLE_BEGIN(to, "chain", CHAIN_TABLE);
	for (uint32_t i = 0, next; i < r->n_parts && result == 0; i = next) {
		struct shown s = {.from = i};
		for (next = i;
			next < r->n_parts && r->part[next].to_ns - r->part[next].from_ns < least_ns;
			next++)
			;
		next += next == i;
		s.to = next;
		result = tell_shown(r, to, &s);
	}
	return result;
}

/* --- programs --------------------------------------------------------------------------------- */

#define PROGRAM_TABLE(COLUMN, KNOWN_IF)                                                            \
	COLUMN(chain_ns, "On the chain", ns, p->chain_ns)                                          \
	KNOWN_IF(share, "Share", share, took_ns > 0, (double)p->chain_ns / (double)took_ns)        \
	KNOWN_IF(without_ns, "Without it", ns, is_replayed, without_ns)                            \
	KNOWN_IF(processes, "Processes", count, p->n, p->n)                                        \
	KNOWN_IF(cpu_ns, "CPU time", ns, p->n, integer_of(p->cpu_ns))                              \
	KNOWN_IF(wall_ns, "Wall time", ns, p->n, integer_of(p->wall_ns))                           \
	COLUMN(comm, "Program", text, p->comm ? text_of(&r->texts, p->comm) : NOBODY)

static int tell_programs(const struct report *r, uint32_t limit, const struct answer *to)
{
	_cleanup_(freep) struct report_program *program = calloc(r->n_tree, sizeof(*program));
	const int64_t took_ns = r->end_ns - r->begin_ns;
	if (!program)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_tree; i++) {
		const struct process *p = report_process(r, i);
		program[i].comm = p ? p->comm : 0;
		program[i].n = p != NULL;
		program[i].cpu_ns = p ? p->cpu_ns : 0;
		program[i].wall_ns = p ? p->wall_ns : 0;
	}
	for (uint32_t i = 0; i < r->n_parts; i++)
		program[r->part[i].process].chain_ns += r->part[i].to_ns - r->part[i].from_ns;
	const uint32_t n = sum_up(program, r->n_tree), n_shown = limit && limit < n ? limit : n;
	const struct report_program *p = program;
	bool is_replayed = false;
	int64_t without_ns = 0;
	int result = TABLE_BEGIN(to, "program", PROGRAM_TABLE);
	for (uint32_t i = 0; i < n_shown && result == 0; i++) {
		p = &program[i];
		if (p->comm == 0 && p->chain_ns == 0)
			continue;
		is_replayed = p->comm != 0 && i < WITHOUT_MAX;
		without_ns = is_replayed ? chain_without_ns(r->chain, p->comm) : 0;
		result = TABLE_ROW(to, PROGRAM_TABLE);
	}
	return result;
}

/* --- notes ------------------------------------------------------------------------------------ */

static int note(struct report *r, const char *text)
{
	struct provenance *p = &r->provenance;
	if (p->n_notes == PROVENANCE_NOTES_MAX)
		return 0;
	int result = text_get(&r->texts, text, &p->note[p->n_notes]);
	p->n_notes += result == 0;
	return result == KEY_TABLE_FULL ? 0 : result;
}

static int add_notes(struct report *r)
{
	char text[256];
	int result = note(r,
		"'Without it' is an estimate: the program does nothing itself, others start in the "
		"same order, each when as many have ended as then, and none waits for a hart");
	if (result == 0 && r->of->unfinished)
		result = note(r, "The job has not ended: the report is of what it did so far");
	if (r->n_endless > 0 && result == 0) {
		snprintf(text, sizeof(text),
			"%u of its processes have no known end: they run on, or left the job",
			r->n_endless);
		result = note(r, text);
	}
	if (result == 0 && r->other_boot)
		result = note(r, "Processes of another boot with the same labels are left out");
	if (chain_left_out(r->chain) > 0 && result == 0) {
		snprintf(text, sizeof(text), "%u processes with impossible times are left out",
			chain_left_out(r->chain));
		result = note(r, text);
	}
	return result;
}

int report_tell(struct report *r, uint32_t limit, const struct answer *answer)
{
	int result = tell_run(r, answer);
	if (result == 0)
		result = tell_chain(r, limit, answer);
	if (result == 0)
		result = tell_programs(r, limit, answer);
	if (result == 0)
		result = add_notes(r);
	return result == 0 ? provenance_tell(&r->provenance, &r->texts, answer) : result;
}
