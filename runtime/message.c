/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Things are announced before their first figures, and again on each new connection: an
 * announcement is marked with the connection's number. Tables go in pieces as large as a packet,
 * and only if the daemon wants them, since it knows those of an earlier program of the same build
 * id. Counts mean nothing without tables, so they stay where they are until the daemon has
 * answered.
 */
#include <string.h>

#include "runtime/message.h"
#include "runtime/object.h"
#include "runtime/region.h"
#include "runtime/state.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the feed is little endian, and structs are sent unconverted"
#endif

int mperf_message_put(struct state *s, uint16_t type, size_t bytes)
{
	struct mperf_feed_head head = {.type = type, .bytes = (uint32_t)bytes};
	memcpy(s->packet, &head, sizeof(head));
	return mperf_sink_put(
		&s->sink, &(struct iovec){.iov_base = s->packet, .iov_len = bytes}, 1);
}

int mperf_message_hello(struct state *s)
{
	if (s->greeted == s->sink.serial)
		return 0;
	struct mperf_feed_hello m = {.magic = MPERF_FEED_MAGIC,
		.version = s->tallies        ? MPERF_FEED_PLACES
			   : s->sink.is_file ? MPERF_FEED_UNASKED
					     : MPERF_FEED_ON_REQUEST,
		.begin_ns = s->begin_ns,
		.vscale = s->vscale,
		.period_ms = s->period_ms};
	memcpy(s->packet, &m, sizeof(m));
	int r = mperf_message_put(s, MPERF_HELLO, sizeof(m));
	if (r == 0)
		s->greeted = s->sink.serial;
	return r;
}

static int object_message(struct state *s, struct object *object)
{
	if (object->serial == s->sink.serial)
		return 0;
	uint8_t id[MPERF_BUILD_ID_BYTES_MAX];
	size_t id_bytes = mperf_object_build_id(object->registration->elf, id);
	struct mperf_feed_object m = {.object = object->id,
		.n_counters = object->n_counters,
		.n_modules = object->n_modules,
		.build_id_bytes = (uint32_t)id_bytes};
	memcpy(s->packet, &m, sizeof(m));
	memcpy(s->packet + sizeof(m), id, id_bytes);
	int r = mperf_message_put(s, MPERF_OBJECT, sizeof(m) + id_bytes);
	if (r != 0)
		return r;
	object->serial = s->sink.serial;
	object->asked_ns = mperf_now_ns();
	object->answered = s->sink.is_file;
	object->n_tables = object->offset = 0;
	return 0;
}

int mperf_message_objects(struct state *s)
{
	int r = 0;
	for (struct object *i = s->objects; i && r == 0; i = i->next)
		if (i->open)
			r = object_message(s, i);
	return r;
}

/* The next piece of the current table. */
static int table(struct state *s, struct object *object)
{
	const struct mperf_module *module = mperf_object_module(object, object->n_tables);
	struct mperf_feed_table m = {.object = object->id,
		.module = object->n_tables,
		.counter_first = (uint32_t)(module->counters - object->counters),
		.n_counters = (uint32_t)module->n_counters,
		.table_bytes = (uint32_t)module->table_bytes,
		.offset = object->offset};
	size_t rest = module->table_bytes - object->offset;
	size_t n = MPERF_PACKET_BYTES_MAX - sizeof(m);
	if (n > rest)
		n = rest;
	m.head = (struct mperf_feed_head){.type = MPERF_TABLE, .bytes = (uint32_t)(sizeof(m) + n)};
	const struct iovec piece[] = {{.iov_base = &m, .iov_len = sizeof(m)},
		{.iov_base = (void *)(module->table + object->offset), .iov_len = n}};
	int r = mperf_sink_put(&s->sink, piece, 2);
	if (r != 0)
		return r;
	object->offset += (uint32_t)n;
	if (n == rest) {
		object->n_tables++;
		object->offset = 0;
	}
	return 0;
}

int mperf_message_object(struct state *s, struct object *object)
{
	int r = object_message(s, object);
	if (r == 0 && !object->answered && !s->hurry &&
		mperf_now_ns() - object->asked_ns < MPERF_ANSWER_MS * UINT64_C(1000000))
		return MPERF_SINK_LATER;
	while (object->n_tables < object->n_modules && r == 0) {
		object->answered = true; /* the answer comes too late */
		r = table(s, object);
	}
	return r;
}

int mperf_message_thread(struct state *s, struct thread *t)
{
	if (t->serial == s->sink.serial)
		return 0;
	struct mperf_feed_thread m = {.thread = t->id, .tid = t->tid, .begin_ns = t->begin_ns};
	memcpy(s->packet, &m, sizeof(m));
	int r = mperf_message_put(s, MPERF_THREAD, sizeof(m));
	if (r == 0)
		t->serial = s->sink.serial;
	return r;
}

int mperf_message_region(struct state *s, struct region *region)
{
	while (region && region->serial != s->sink.serial) {
		/* The outermost region not announced yet; paths are no deeper than frames are. */
		struct region *first = region;
		while (first->parent && first->parent->serial != s->sink.serial)
			first = first->parent;

		size_t text = first->name_bytes + first->source_bytes;
		struct mperf_feed_region m = {.region = first->id,
			.parent = first->parent ? first->parent->id : 0,
			.line = first->line,
			.name_bytes = first->name_bytes,
			.source_bytes = first->source_bytes};
		memcpy(s->packet, &m, sizeof(m));
		memcpy(s->packet + sizeof(m), first->text, text);
		int r = mperf_message_put(s, MPERF_REGION, sizeof(m) + text);
		if (r != 0)
			return r;
		first->serial = s->sink.serial;
	}
	return 0;
}
