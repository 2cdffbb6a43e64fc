/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a program would say, byte by byte.
 */
#include "tests/unit/daemon/loops/told.h"

#include <check.h>
#include <string.h>

void told_put(struct told *t, const void *bytes, size_t n)
{
	ck_assert_uint_le(t->n + n, sizeof(t->bytes));
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

void told_byte(struct told *t, uint8_t byte)
{
	told_put(t, &byte, 1);
}

void told_unsigned(struct told *t, uint64_t value)
{
	do {
		told_byte(t, (uint8_t)((value & 127) | (value > 127 ? 128 : 0)));
		value >>= 7;
	} while (value);
}

void told_signed(struct told *t, int64_t value)
{
	for (;;) {
		uint8_t byte = value & 127;
		value >>= 7;
		if (value == (byte & 64 ? -1 : 0)) {
			told_byte(t, byte);
			return;
		}
		told_byte(t, byte | 128);
	}
}

void told_string(struct told *t, const char *text)
{
	told_unsigned(t, strlen(text));
	told_put(t, text, strlen(text));
}

static void term(struct told *t, uint64_t scope, unsigned metric, int64_t factor)
{
	told_unsigned(t, scope);
	told_unsigned(t, (uint64_t)metric << MPERF_VARIANT_BITS);
	told_signed(t, factor);
}

void told_table(struct told *t)
{
	static const uint8_t scopes[2][10] = {
		/* kind, parent, function, source, line, last, column, nest, inlined at, flags */
		{MPERF_SCOPE_FUNCTION, 0, 1, 2, 10, 20, 0, 0, 0, 0},
		{MPERF_SCOPE_LOOP, 1, 1, 2, 12, 14, 2, 3, 0, MPERF_SCOPE_VECTORISED},
	};
	t->n = 0;
	told_byte(t, MPERF_TABLE_VERSION_FIRST);
	told_byte(t, 4);
	told_string(t, "");
	told_string(t, "walk");
	told_string(t, "walk.c");
	told_string(t, "1");
	told_byte(t, 2);
	told_put(t, scopes, sizeof(scopes));
	told_byte(t, TOLD_COUNTERS);
	told_byte(t, MPERF_COUNTER_SUM);
	told_byte(t, 2);
	term(t, 0, MPERF_METRIC_ENTRIES, 1);
	term(t, 1, MPERF_METRIC_ITERATIONS, -2);
	told_byte(t, MPERF_COUNTER_SUM);
	told_byte(t, 2);
	term(t, 1, MPERF_METRIC_ITERATIONS, 1);
	term(t, 1, MPERF_METRIC_BYTES_LOADED, 10);
}

/* Put a message whose struct is filled but for its head; more of it follows. */
static void begin(struct told *t, uint16_t type, void *message, size_t n, size_t n_rest)
{
	const struct mperf_feed_head head = {.type = type, .bytes = (uint32_t)(n + n_rest)};
	memcpy(message, &head, sizeof(head));
	t->n = 0;
	told_put(t, message, n);
}

void told_hello(struct told *t, uint64_t begin_ns, uint32_t vscale)
{
	struct mperf_feed_hello m = {.magic = MPERF_FEED_MAGIC,
		.version = MPERF_FEED_UNASKED,
		.begin_ns = begin_ns,
		.vscale = vscale,
		.period_ms = MPERF_PERIOD_MS};
	begin(t, MPERF_HELLO, &m, sizeof(m), 0);
}

void told_version(struct told *t, uint32_t version)
{
	told_hello(t, 1, 0);
	memcpy(t->bytes + offsetof(struct mperf_feed_hello, version), &version, sizeof(version));
}

void told_object(struct told *t, uint32_t object, uint32_t n_counters, uint32_t n_modules)
{
	struct mperf_feed_object m = {.object = object,
		.n_counters = n_counters,
		.n_modules = n_modules,
		.build_id_bytes = 2};
	begin(t, MPERF_OBJECT, &m, sizeof(m), 2);
	told_put(t, "\xbe\xef", 2);
}

void told_table_message(struct told *t, uint32_t object, uint32_t module, uint32_t first,
	uint32_t n_counters, const struct told *table)
{
	struct mperf_feed_table m = {.object = object,
		.module = module,
		.counter_first = first,
		.n_counters = n_counters,
		.table_bytes = (uint32_t)table->n};
	begin(t, MPERF_TABLE, &m, sizeof(m), table->n);
	told_put(t, table->bytes, table->n);
}

void told_thread(struct told *t, uint32_t thread, uint32_t tid)
{
	struct mperf_feed_thread m = {.thread = thread, .tid = tid, .begin_ns = 1};
	begin(t, MPERF_THREAD, &m, sizeof(m), 0);
}

void told_region(struct told *t, uint32_t region, uint32_t parent, const char *name)
{
	struct mperf_feed_region m = {.region = region,
		.parent = parent,
		.line = 7,
		.name_bytes = (uint32_t)strlen(name) + 1,
		.source_bytes = 1};
	begin(t, MPERF_REGION, &m, sizeof(m), m.name_bytes + 1u);
	told_put(t, name, m.name_bytes);
	told_byte(t, 0);
}

void told_deltas(struct told *t, uint32_t thread, uint32_t region, uint64_t one, uint64_t two,
	uint64_t at_ns)
{
	struct mperf_feed_deltas m = {
		.thread = thread, .region = region, .n = 2, .from_ns = at_ns, .until_ns = at_ns};
	const struct mperf_delta delta[2] = {
		{.counter = 0, .delta = one}, {.counter = 1, .delta = two}};
	begin(t, MPERF_DELTAS, &m, sizeof(m), sizeof(delta));
	told_put(t, delta, sizeof(delta));
}

void told_delta(struct told *t, uint32_t thread, uint32_t counter, uint64_t n, uint64_t at_ns)
{
	struct mperf_feed_deltas m = {
		.thread = thread, .n = 1, .from_ns = at_ns, .until_ns = at_ns};
	const struct mperf_delta delta = {.counter = counter, .delta = n};
	begin(t, MPERF_DELTAS, &m, sizeof(m), sizeof(delta));
	told_put(t, &delta, sizeof(delta));
}

void told_gone(struct told *t, uint32_t kind, uint32_t id)
{
	struct mperf_feed_gone m = {.kind = kind, .id = id};
	begin(t, MPERF_GONE, &m, sizeof(m), 0);
}

void told_spent(struct told *t, uint32_t thread, uint32_t region, const uint64_t granted[static 4])
{
	struct mperf_feed_spent m = {
		.thread = thread,
		.region = region,
		.entries = 1,
		.counted_entries = 1,
		.time_ns = 1,
		.counted_ns = 1,
		.granted = granted[0],
		.granted_1 = granted[1],
		.granted_2 = granted[2],
		.granted_3 = granted[3],
		.granted_ns = 1,
	};
	begin(t, MPERF_SPENT, &m, sizeof(m), 0);
}

void told_place(struct told *t, uint32_t place, uint32_t parent, uint32_t kind, uint64_t offset)
{
	static const char path[] = "/program";
	struct mperf_feed_place m = {
		.place = place,
		.parent = parent,
		.kind = kind,
		.build_id_bytes = 2,
		.address = offset ? 0x400000 + offset : 0,
		.offset = offset,
		.path_bytes = sizeof(path),
	};
	begin(t, MPERF_PLACE, &m, sizeof(m), m.build_id_bytes + sizeof(path));
	told_put(t, "id", m.build_id_bytes);
	told_put(t, path, sizeof(path));
}

void told_tally(struct told *t, uint32_t thread, uint32_t place, uint64_t time_ns)
{
	struct mperf_feed_tally m = {
		.thread = thread,
		.place = place,
		.from_ns = 100,
		.until_ns = 200,
		.entries = 1,
		.time_ns = time_ns,
		.wait_ns = time_ns,
	};
	begin(t, MPERF_TALLY, &m, sizeof(m), 0);
}

void told_round(struct told *t, uint64_t until_ns)
{
	struct mperf_feed_round m = {.until_ns = until_ns};
	begin(t, MPERF_ROUND, &m, sizeof(m), 0);
}
