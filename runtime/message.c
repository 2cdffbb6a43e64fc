/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Things are announced before their first figures, and again on each new connection: an
 * announcement is marked with the connection's number. Tables go in pieces as large as a packet.
 */
#include <string.h>

#include "runtime/image.h"
#include "runtime/message.h"
#include "runtime/region.h"
#include "runtime/state.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the feed is little endian, and structs are sent unconverted"
#endif

int mperf_message_put(struct state *s, uint16_t type, size_t bytes)
{
	struct mperf_feed_head head = {.type = type, .bytes = (uint32_t)bytes};
	memcpy(s->packet, &head, sizeof(head));
	return mperf_sink_put(&s->sink, s->packet, bytes);
}

int mperf_message_hello(struct state *s)
{
	if (s->greeted == s->sink.serial)
		return 0;
	struct mperf_feed_hello m = {.magic = MPERF_FEED_MAGIC,
		.abi = MPERF_ABI_VERSION,
		.begin_ns = s->begin_ns,
		.vscale = s->vscale,
		.period_ms = s->period_ms};
	memcpy(s->packet, &m, sizeof(m));
	int r = mperf_message_put(s, MPERF_HELLO, sizeof(m));
	if (r == 0)
		s->greeted = s->sink.serial;
	return r;
}

static int object(struct state *s, const struct image *image)
{
	uint8_t id[MPERF_BUILD_ID_BYTES_MAX];
	size_t id_bytes = mperf_image_build_id(image->object->elf, id);
	struct mperf_feed_object m = {.object = image->id,
		.n_counters = image->n_counters,
		.n_modules = image->n_modules,
		.build_id_bytes = (uint32_t)id_bytes};
	memcpy(s->packet, &m, sizeof(m));
	memcpy(s->packet + sizeof(m), id, id_bytes);
	return mperf_message_put(s, MPERF_OBJECT, sizeof(m) + id_bytes);
}

/* The next piece of the current table. */
static int table(struct state *s, struct image *image)
{
	const struct mperf_module *module = mperf_image_module(image, image->n_tables);
	struct mperf_feed_table m = {.object = image->id,
		.module = image->n_tables,
		.counter_first = (uint32_t)(module->counters - image->counters),
		.n_counters = (uint32_t)module->n_counters,
		.table_bytes = (uint32_t)module->table_bytes,
		.offset = image->offset};
	size_t rest = module->table_bytes - image->offset;
	size_t n = MPERF_PACKET_BYTES_MAX - sizeof(m);
	if (n > rest)
		n = rest;
	memcpy(s->packet, &m, sizeof(m));
	memcpy(s->packet + sizeof(m), module->table + image->offset, n);
	int r = mperf_message_put(s, MPERF_TABLE, sizeof(m) + n);
	if (r != 0)
		return r;
	image->offset += (uint32_t)n;
	if (n == rest) {
		image->n_tables++;
		image->offset = 0;
	}
	return 0;
}

int mperf_message_object(struct state *s, struct image *image)
{
	if (image->serial != s->sink.serial) {
		int r = object(s, image);
		if (r != 0)
			return r;
		image->serial = s->sink.serial;
		image->n_tables = image->offset = 0;
	}
	while (image->n_tables < image->n_modules) {
		int r = table(s, image);
		if (r != 0)
			return r;
	}
	return 0;
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
