/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A sorted array: it is searched for every record and changed only when events open or close, so
 * insertion may cost a move and the search must not cost a pointer chase.
 */
#include "daemon/sampler/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/loss.h"

static const struct {
	const char *letter, *says;
} rungs[] = {
	[RUNG_NONE] = {"-", "nothing samples"},
	[RUNG_CYCLES] = {"a", "hardware cycles that interrupt on overflow"},
	[RUNG_LEADER] = {"b", "the core's own sampling event leads cycles and instructions"},
	[RUNG_CLOCK_LEADER] = {"c", "cpu-clock leads hardware counters"},
	[RUNG_CLOCK] = {"d", "cpu-clock alone"},
	[RUNG_ASKED] = {"e", "the requested events"},
};

/* A rung may come from a stored file, so it is not trusted to be valid. */
static size_t rung_row(enum rung rung)
{
	size_t row = (size_t)rung;
	return row < sizeof(rungs) / sizeof(rungs[0]) ? row : RUNG_NONE;
}

const char *rung_letter(enum rung rung)
{
	return rungs[rung_row(rung)].letter;
}

const char *rung_says(enum rung rung)
{
	return rungs[rung_row(rung)].says;
}

const struct loss_kind loss_kinds[N_LOSSES] = {
	[LOSS_RING] = {"ring overrun", true},
	[LOSS_RING_SAMPLES] = {"samples lost by the kernel", true},
	[LOSS_THROTTLE] = {"throttled", false},
	[LOSS_RECORD] = {"malformed record", true},
	[LOSS_STREAM] = {"record of a closed event", true},
	[LOSS_LATE] = {"late record", false},
	[LOSS_TASK] = {"unknown task", false},
	[LOSS_STACK_TRUNCATED] = {"truncated stack", false},
	[LOSS_DEEP] = {"stack deeper than its copy", false},
	[LOSS_UNWIND] = {"not unwound", false},
	[LOSS_NAMER] = {"not named", false},
	[LOSS_MEMORY] = {"memory limit", true},
	[LOSS_ROOM] = {"no room in a table", false},
	[LOSS_STORE] = {"not stored", true},
	[LOSS_HOTPLUG] = {"hart came or went", false},
	[LOSS_SIBLING] = {"counter that did not open", false},
	[LOSS_ARGV] = {"arguments not read", false},
	[LOSS_KILLED] = {"daemon killed", true},
	[LOSS_SWITCH] = {"switch without counts", false},
	[LOSS_LOOPS] = {"counts of loops not stored", false},
	[LOSS_BLIND] = {LOSS_CAUSE_BLIND, false},
	[LOSS_SHARE] = {"over a user's share", false},
	[LOSS_SPARSE] = {"busy second with few samples", false},
	[LOSS_TABLE] = {"loops of too large a table", false},
	[LOSS_COST] = {LOSS_CAUSE_COST, false},
	[LOSS_PAUSED] = {"second with lowered sampling", false},
	[LOSS_SIDEBAND] = {"side band overrun", false},
	[LOSS_SILENT] = {"process that did not answer", false},
	[LOSS_OUTSIDE] = {"task outside the pid namespace", true},
	[LOSS_WAITS] = {"switch of a thread that waits", false},
};

const char *cut_name(unsigned cut)
{
	static const char *const names[CUTS] = {"", "sibling", "bpf", "sibling, bpf", "none",
		"sibling, none", "bpf, none", "sibling, bpf, none", "counted", "sibling, counted",
		"bpf, counted", "sibling, bpf, counted", "counted, none", "sibling, counted, none",
		"bpf, counted, none", "sibling, bpf, counted, none"};
	return names[cut % CUTS];
}

/* Index of the first stream whose id is not below id. */
/* The kernel counts ids up, and we open events one after the other, so ids are close together. A
 * stream's distance from the first and from the last is at most the difference of their ids, so the
 * range to search is as large as the gaps. */
static size_t lower_bound(const struct stream_table *t, uint64_t id)
{
	size_t low = 0, high = t->n_streams;
	if (high == 0 || id <= t->stream[0].id)
		return 0;
	uint64_t last = t->stream[high - 1].id;
	if (id > last)
		return high;
	if (last - id < high - 1)
		low = high - 1 - (size_t)(last - id);
	if (id - t->stream[0].id < high)
		high = (size_t)(id - t->stream[0].id);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->stream[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int grow(struct stream_table *t)
{
	if (t->n_streams < t->size)
		return 0;
	size_t size = t->size ? t->size * 2 : 16;
	struct stream *stream = reallocarray(t->stream, size, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	t->stream = stream;
	t->size = size;
	return 0;
}

int stream_table_add(struct stream_table *t, const struct stream *s)
{
	size_t at = lower_bound(t, s->id);
	if (at < t->n_streams && t->stream[at].id == s->id)
		return -EEXIST;
	struct stream copy = *s; /* s may point into the growing table */
	int r = grow(t);
	if (r < 0)
		return r;

	memmove(t->stream + at + 1, t->stream + at, (t->n_streams - at) * sizeof(*t->stream));
	t->stream[at] = copy;
	t->n_streams++;
	return 0;
}

void stream_table_remove(struct stream_table *t, uint64_t id)
{
	size_t at = lower_bound(t, id);
	if (at == t->n_streams || t->stream[at].id != id)
		return;
	t->n_streams--;
	memmove(t->stream + at, t->stream + at + 1, (t->n_streams - at) * sizeof(*t->stream));
}

void stream_table_set_timed(struct stream_table *t, uint64_t id)
{
	t->stream[lower_bound(t, id)].timed = true;
}

void stream_table_set_uncut(struct stream_table *t, uint64_t id)
{
	t->stream[lower_bound(t, id)].uncut = true;
}

void stream_table_set_summed(struct stream_table *t, uint64_t id)
{
	t->stream[lower_bound(t, id)].summed = true;
}

const struct stream *stream_table_find(const struct stream_table *t, uint64_t id)
{
	size_t at = lower_bound(t, id);
	if (at < t->n_streams && t->stream[at].id == id)
		return &t->stream[at];
	return t->closed ? stream_table_find(t->closed, id) : NULL;
}

int stream_table_keep(struct stream_table *t, const struct stream *s)
{
	struct stream copy = *s;
	copy.closed = true;
	copy.fd = -1;
	if (!t->closed && !(t->closed = calloc(1, sizeof(*t->closed))))
		return -ENOMEM;
	return stream_table_add(t->closed, &copy);
}

void stream_table_forget(struct stream_table *t)
{
	if (!t->closed)
		return;
	stream_table_clear(t->closed);
	free(t->closed);
	t->closed = NULL;
}

void stream_table_clear(struct stream_table *t)
{
	stream_table_forget(t);
	free(t->stream);
	*t = (struct stream_table){0};
}
