/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The BPF programs are optional: a session without them still counts, and its plans say that switches
 * are only counted. Each is loaded once, when the first group needs it; a refusal is remembered, so
 * that not every hart tries again.
 */

#include <errno.h>
#include <string.h>

#include "daemon/kernel/switch_bpf.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

_Static_assert(SWITCH_MEMBERS_MAX == EVENT_GROUP_MAX, "the program reads whole groups");

int sampler_switches_parse(const char *name, enum sampler_switches *ret_switches)
{
	static const char *const names[] = {
		[SAMPLER_SWITCHES_BEST] = "best",
		[SAMPLER_SWITCHES_SIBLING] = "sibling",
		[SAMPLER_SWITCHES_BPF] = "bpf",
		[SAMPLER_SWITCHES_NONE] = "none",
		[SAMPLER_SWITCHES_SUMS] = "sums",
		[SAMPLER_SWITCHES_CHEAPEST] = "cheapest",
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*ret_switches = (enum sampler_switches)i;
		return 0;
	}
	return -EINVAL;
}

int switch_bpf_load(struct sampler *s, enum switch_way way)
{
	const struct kernel *k = s->kernel;
	int error = 0;
	if (s->programs.program[way])
		return 0;
	if (s->programs.error[way] == 0 && !k->switch_new)
		s->programs.error[way] = ENOTSUP;
	if (s->programs.error[way])
		return HART_REFUSED;
	int r = k->switch_new(
		k->userdata, way, s->machine.n_harts, &s->programs.program[way], &error);
	if (r > 0)
		s->programs.error[way] = error ? error : EIO;
	return r > 0 ? HART_REFUSED : r;
}

void switch_bpf_close(struct sampler *s, int hart)
{
	for (int way = 0; way < N_SWITCH_WAYS; way++)
		if (s->programs.program[way])
			s->kernel->switch_forget(
				s->kernel->userdata, s->programs.program[way], hart, 0);
}

bool sampler_may_sum(const struct sampler *s)
{
	const enum sampler_switches asked = sampler_switches_asked(s);
	bool wished = asked == SAMPLER_SWITCHES_CHEAPEST || asked == SAMPLER_SWITCHES_SUMS;
	return wished && !s->options.some_tasks && !s->options.per_task && s->kernel->switch_new &&
	       !s->programs.error[SWITCH_SUMS];
}

/* This group cannot be read; other groups may still be. */
static int refuse(struct sampler *s, enum switch_way way, int r)
{
	if (opening_exhausted(r))
		return r;
	s->programs.error[way] = -r;
	return HART_REFUSED;
}

/* The members of a leader's group, as a read of it lists them: in the order in which they were
 * opened, which is that of their ids, by which streams are sorted. */
static int group_collect(
	const struct sampler *s, const struct stream *leader, struct switch_group *g)
{
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		bool member = t->role == STREAM_SAMPLER || t->role == STREAM_SIBLING;
		if (t->leader != leader->id || !member)
			continue;
		if (g->n_members == SWITCH_MEMBERS_MAX)
			return SWITCH_BPF_FULL;
		g->fd[g->n_members] = t->fd;
		g->event[g->n_members] = t->event;
		g->id[g->n_members++] = t->id;
	}
	return 0;
}

int switch_bpf_open(struct sampler *s, const struct stream *leader, enum switch_way way)
{
	const struct kernel *k = s->kernel;
	struct perf_event_attr attr;
	struct stream output = {
		.leader = leader->id,
		.role = way == SWITCH_SUMS ? STREAM_SWITCH_SUMS : STREAM_SWITCH_BPF,
		.rung = leader->rung,
		.hart = leader->hart,
		.event = -1,
		.period = 1,
	};
	int r = switch_bpf_load(s, way);
	if (r != 0)
		return r;
	attr_bpf_output(s, &attr);
	r = stream_open(s, &attr, -1, -1, &output);
	if (r < 0)
		return refuse(s, way, r);

	struct switch_group g = {.hart = leader->hart, .output_fd = output.fd};
	r = group_collect(s, leader, &g);
	if (r == 0)
		r = k->switch_watch(k->userdata, s->programs.program[way], &g);
	if (r == 0 && way == SWITCH_SUMS)
		stream_table_set_summed(&s->streams, leader->id);
	if (r == 0)
		return 0;
	stream_close(s, &output);
	return refuse(s, way, r > 0 ? -E2BIG : r);
}

void switch_programs_free(struct sampler *s)
{
	for (int way = 0; way < N_SWITCH_WAYS; way++)
		if (s->programs.program[way])
			s->kernel->switch_free(s->kernel->userdata, s->programs.program[way]);
}

struct switch_bpf *sampler_switch_program(const struct sampler *s, enum switch_way way)
{
	return s->programs.program[way];
}

int sampler_switch_error(const struct sampler *s, enum switch_way way)
{
	return s->programs.error[way];
}
