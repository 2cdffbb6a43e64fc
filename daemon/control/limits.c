/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * protobuf-c describes its messages, so one walk serves all of them, and a field that is added to
 * mperf.proto cannot be forgotten.
 */
#include "daemon/control/limits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/compare.h"
#include "daemon/control/request.h"
#include "daemon/kernel/machine.h"
#include "daemon/metric/metric_plan.h"
#include "daemon/pmu/event/event.h"

/* Nested messages of a request: Request, a command, its Filter or Target. */
#define LIMITS_DEPTH_MAX 8

const struct field_limit field_limits[] = {
	/* each costs a look into /proc, and a descriptor or a comparison for each task */
	{"mperf.Target", "pid", REQUEST_PIDS_MAX, false, "processes",
		"Name their common parent, or use -a."},
	{"mperf.Filter", "pid", 256, false, "processes", "Filter by name or cgroup."},
	/* each is compared with the names of every task of every segment */
	{"mperf.Filter", "comm", 64, false, "names of processes",
		"Filter by cgroup, or ask twice."},
	{"mperf.Filter", "cgroup", 64, false, "cgroups", "Name one above them, with / at its end."},
	{"mperf.Filter", "cpu", HARTS_MAX, false, "harts", ""},
	{"mperf.Filter", "label", LABELS_MAX, true, "labels", "A job has no more."},
	{"mperf.JobRequest", "label", LABELS_MAX, true, "labels", "Leave some out."},
	{"mperf.RecordRequest", "label", LABELS_MAX, true, "labels", "Leave some out."},
	/* grammar: a group may be asked for twice */
	{"mperf.RecordRequest", "event", EVENTS_MAX, true, "events", "Record twice."},
	{"mperf.StatRequest", "event", EVENTS_MAX, true, "events", "Count twice."},
	{"mperf.RecordRequest", "metric", METRICS_MAX, false, "metrics", "Name a group."},
	{"mperf.HotspotsRequest", "metric", METRICS_MAX, false, "metrics", "Name a group."},
	{"mperf.CompareRequest", "metric", METRICS_MAX, false, "metrics", "Name a group."},
	{"mperf.StatRequest", "metric", METRICS_MAX, false, "metrics",
		"Name a group, or count twice."},
	/* each is read whole */
	{"mperf.CompareRequest", "baseline", COMPARE_SIDE_MAX, true, "recordings",
		"Compare fewer of them."},
	{"mperf.CompareRequest", "candidate", COMPARE_SIDE_MAX, true, "recordings",
		"Compare fewer of them."},
	{"mperf.HotspotsRequest", "path", COMPARE_SIDE_MAX, true, "recordings",
		"Sum up fewer of them."},
	{"mperf.FlamegraphRequest", "path", COMPARE_SIDE_MAX, true, "recordings",
		"Sum up fewer of them."},
	{"mperf.TimelineRequest", "path", COMPARE_SIDE_MAX, true, "recordings",
		"Sum up fewer of them."},
	{"mperf.ExportRequest", "path", COMPARE_SIDE_MAX, true, "recordings",
		"Sum up fewer of them."},
	/* each looks through all labels of the store */
	{"mperf.CompareRequest", "baseline_run", COMPARE_SELECTIONS_MAX, true, "selections",
		"Use * and ? in the values of labels."},
	{"mperf.CompareRequest", "candidate_run", COMPARE_SELECTIONS_MAX, true, "selections",
		"Use * and ? in the values of labels."},
	{"mperf.RunSelection", "label", LABELS_MAX, true, "labels", "A job has no more."},
	{"mperf.RunSelection", "uid", 64, false, "users", "Compare fewer of them."},
	/* each is compared with the name of every function of a program */
	{"mperf.Selection", "glob", 64, false, "patterns", "Use * and ? for several names."},
};
const size_t n_field_limits = sizeof(field_limits) / sizeof(field_limits[0]);

/* A field that the table lacks may not be repeated at all. */
static const struct field_limit unknown = {
	"", "", 0, true, "values of a field that has no limit", ""};

static const struct field_limit *limit_of(
	const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	for (size_t i = 0; i < n_field_limits; i++)
		if (strcmp(field_limits[i].message, m->descriptor->name) == 0 &&
			strcmp(field_limits[i].field, f->name) == 0)
			return &field_limits[i];
	return &unknown;
}

static void *member(ProtobufCMessage *m, size_t offset)
{
	return (uint8_t *)m + offset;
}

static void drop_repeated_texts(char **text, size_t *n)
{
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		size_t same = 0;
		while (same < kept && strcmp(text[same], text[i]) != 0)
			same++;
		if (same < kept)
			free(text[i]);
		else
			text[kept++] = text[i];
	}
	*n = kept;
}

static void drop_repeated_numbers(uint32_t *number, size_t *n)
{
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		size_t same = 0;
		while (same < kept && number[same] != number[i])
			same++;
		if (same == kept)
			number[kept++] = number[i];
	}
	*n = kept;
}

static void drop_repeated(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	size_t *n = member(m, f->quantifier_offset);
	void *values = *(void **)member(m, f->offset);
	if (f->type == PROTOBUF_C_TYPE_STRING)
		drop_repeated_texts(values, n);
	else if (f->type == PROTOBUF_C_TYPE_INT32 || f->type == PROTOBUF_C_TYPE_UINT32)
		drop_repeated_numbers(values, n);
}

/* Is the field, in a oneof or not, a message that is present? */
static ProtobufCMessage *message_in(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->label == PROTOBUF_C_LABEL_REPEATED)
		return NULL;
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
		*(uint32_t *)member(m, f->quantifier_offset) != f->id)
		return NULL;
	return *(ProtobufCMessage **)member(m, f->offset);
}

static const struct field_limit *look(ProtobufCMessage *m, int depth, size_t *ret_n);

/* The messages of a repeated field, whose number is within its limit. */
static const struct field_limit *look_into(
	ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, int depth, size_t *ret_n)
{
	const struct field_limit *exceeded = NULL;
	if (f->type != PROTOBUF_C_TYPE_MESSAGE || depth >= LIMITS_DEPTH_MAX)
		return NULL;
	const size_t n = *(size_t *)member(m, f->quantifier_offset);
	ProtobufCMessage **inner = *(ProtobufCMessage ***)member(m, f->offset);
	for (size_t i = 0; i < n && !exceeded; i++)
		exceeded = look(inner[i], depth + 1, ret_n);
	return exceeded;
}

static const struct field_limit *look(ProtobufCMessage *m, int depth, size_t *ret_n)
{
	const struct field_limit *exceeded = NULL;
	for (unsigned i = 0; i < m->descriptor->n_fields && !exceeded; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		ProtobufCMessage *inner = message_in(m, f);
		if (inner && depth < LIMITS_DEPTH_MAX)
			exceeded = look(inner, depth + 1, ret_n);
		if (f->label != PROTOBUF_C_LABEL_REPEATED)
			continue;
		const struct field_limit *limit = limit_of(m, f);
		*ret_n = *(size_t *)member(m, f->quantifier_offset);
		if (*ret_n > limit->most)
			return limit;
		if (!limit->keep)
			drop_repeated(m, f);
		exceeded = look_into(m, f, depth, ret_n);
	}
	return exceeded;
}

const struct field_limit *limits_exceeded(ProtobufCMessage *m, size_t *ret_n)
{
	return look(m, 0, ret_n);
}
