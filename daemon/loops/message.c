/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A row per type gives the size of its struct; the lengths in a struct must add up exactly to the
 * size of the packet.
 */
#include "daemon/loops/message.h"

#include <string.h>

#include "daemon/loops/cause.h"

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the feed is little endian, and so are we");

static size_t struct_bytes(unsigned type)
{
	static const size_t bytes[] = {
		[MPERF_HELLO] = sizeof(struct mperf_feed_hello),
		[MPERF_OBJECT] = sizeof(struct mperf_feed_object),
		[MPERF_TABLE] = sizeof(struct mperf_feed_table),
		[MPERF_REGION] = sizeof(struct mperf_feed_region),
		[MPERF_THREAD] = sizeof(struct mperf_feed_thread),
		[MPERF_DELTAS] = sizeof(struct mperf_feed_deltas),
		[MPERF_SPENT] = sizeof(struct mperf_feed_spent),
		[MPERF_PLACE] = sizeof(struct mperf_feed_place),
		[MPERF_TALLY] = sizeof(struct mperf_feed_tally),
		[MPERF_GONE] = sizeof(struct mperf_feed_gone),
		[MPERF_ROUND] = sizeof(struct mperf_feed_round),
	};
	return type < sizeof(bytes) / sizeof(*bytes) ? bytes[type] : 0;
}

/* A text of n bytes that ends in its only NUL. */
static int is_text(const uint8_t *bytes, size_t n)
{
	return n > 0 && memchr(bytes, '\0', n) == bytes + n - 1;
}

static int rest_is_right(const struct feed_message *m)
{
	const struct mperf_feed_region *region = &m->region;
	const struct mperf_feed_place *place = &m->place;
	switch (m->type) {
	case MPERF_OBJECT:
		return m->n_rest == m->object.build_id_bytes &&
		       m->n_rest <= MPERF_BUILD_ID_BYTES_MAX;
	case MPERF_TABLE:
		return m->n_rest > 0;
	case MPERF_REGION:
		return (uint64_t)region->name_bytes + region->source_bytes == m->n_rest &&
		       is_text(m->rest, region->name_bytes) &&
		       is_text(m->rest + region->name_bytes, region->source_bytes);
	case MPERF_PLACE:
		return place->build_id_bytes <= MPERF_BUILD_ID_BYTES_MAX &&
		       (uint64_t)place->build_id_bytes + place->path_bytes == m->n_rest &&
		       is_text(m->rest + place->build_id_bytes, place->path_bytes);
	case MPERF_DELTAS:
		return m->n_rest / sizeof(struct mperf_delta) == m->deltas.n &&
		       m->n_rest % sizeof(struct mperf_delta) == 0;
	default:
		return m->n_rest == 0;
	}
}

int feed_message_parse(const uint8_t *bytes, size_t n, struct feed_message *ret_message)
{
	struct feed_message m = {0};
	struct mperf_feed_head head;
	if (n < sizeof(head) || n > MPERF_PACKET_BYTES_MAX)
		return FEED_LENGTH;
	memcpy(&head, bytes, sizeof(head));
	if (head.bytes != n)
		return FEED_LENGTH;
	size_t fixed = struct_bytes(head.type);
	if (fixed == 0)
		return FEED_MESSAGE;
	if (head.type == MPERF_SPENT && n == MPERF_SPENT_SHORT_BYTES)
		fixed = n; /* all entries were measured */
	if (n < fixed)
		return FEED_LENGTH;
	memcpy(&m.spent, bytes, fixed); /* each member of the union begins where the union begins */
	m.type = head.type;
	m.rest = bytes + fixed;
	m.n_rest = n - fixed;
	if (!rest_is_right(&m))
		return FEED_LENGTH;
	*ret_message = m;
	return 0;
}

struct mperf_delta feed_message_delta(const struct feed_message *m, uint32_t i)
{
	struct mperf_delta delta;
	memcpy(&delta, m->rest + i * sizeof(delta), sizeof(delta));
	return delta;
}

bool feed_message_begins_file(const uint8_t *bytes, size_t n)
{
	struct mperf_feed_hello hello;
	if (n < sizeof(hello))
		return false;
	memcpy(&hello, bytes, sizeof(hello));
	return hello.head.type == MPERF_HELLO && hello.magic == MPERF_FEED_MAGIC;
}
