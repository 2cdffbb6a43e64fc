/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * State of a program from its messages, and the order in which these must come. A message out of
 * order is skipped and counted as a fault. Only a program that does not speak the feed's protocol
 * at all is disconnected.
 */
#include "daemon/loops/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/program_private.h"
#include "proto/base/memory.h"

int program_new(const struct program_options *o, struct program **ret_program)
{
	struct program *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->o = *o;
	p->budget = (struct budget){.max = o->memory_max, .above = o->budget};
	*ret_program = p;
	return 0;
}

static int take_hello(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_hello *h = &m->hello;
	if (p->greeted)
		return FEED_TWICE;
	if (h->magic != MPERF_FEED_MAGIC)
		return FEED_NO_HELLO;
	if (h->version < MPERF_FEED_UNASKED || h->version > MPERF_FEED_VERSION)
		return FEED_VERSION;
	p->greeted = true;
	p->begin_ns = h->begin_ns;
	p->version = h->version;
	p->vscale = h->vscale;
	p->period_ms = h->period_ms;
	return 0;
}

static int take_thread(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_thread *sent = &m->thread;
	struct program_thread *t;
	HASH_FIND(hh, p->threads, &sent->thread, sizeof(sent->thread), t);
	if (t)
		return FEED_TWICE;
	if (HASH_COUNT(p->threads) >= PROGRAM_THREADS_MAX)
		return FEED_THREADS;
	int r = program_charge(p, sizeof(*t));
	if (r != 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->id = sent->thread;
	t->tid = sent->tid;
	t->begin_ns = t->until_ns = sent->begin_ns;
	HASH_ADD(hh, p->threads, id, sizeof(t->id), t);
	if (!t->hh.tbl) {
		free(t);
		return -ENOMEM;
	}
	return 0;
}

static int region_new(struct program *p, const struct feed_message *m,
	const struct program_region *parent, struct program_region **ret_region)
{
	const struct mperf_feed_region *sent = &m->region;
	struct loop_site_key key = {
		.kind = LOOP_SITE_REGION,
		.owner = (uint64_t)p->o.uid + 1,
		.line = sent->line,
		.subprogram = (const char *)m->rest,
		.source = (const char *)m->rest + sent->name_bytes,
		.nest = "",
		.inlined_at = "",
	};
	const struct loop_site_more more = {0};
	struct loop_site *site;
	if (m->n_rest > 2 * LOOP_TEXT_BYTES_MAX)
		return FEED_REGIONS;
	const size_t memory = sizeof(**ret_region) + loop_site_memory(&key);
	int r = program_charge(p, memory);
	if (r != 0)
		return r;
	r = loop_site_get(p->o.sites, &key, parent ? parent->site : NULL, &more, &site);
	if (r != 0) {
		program_discharge(p, memory);
		return r;
	}
	struct program_region *region = calloc(1, sizeof(*region));
	if (!region) {
		loop_site_unref(p->o.sites, site);
		return -ENOMEM;
	}
	*region = (struct program_region){
		.id = sent->region,
		.depth = parent ? parent->depth + 1 : 0,
		.site = site,
	};
	*ret_region = region;
	return 0;
}

static int take_region(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_region *sent = &m->region;
	struct program_region *region, *parent = NULL;
	HASH_FIND(hh, p->regions, &sent->region, sizeof(sent->region), region);
	if (region)
		return FEED_TWICE;
	if (sent->parent)
		HASH_FIND(hh, p->regions, &sent->parent, sizeof(sent->parent), parent);
	if (sent->region == 0 || (sent->parent && !parent))
		return FEED_UNANNOUNCED;
	if (HASH_COUNT(p->regions) >= PROGRAM_REGIONS_MAX ||
		(parent && parent->depth + 1 >= PROGRAM_REGION_DEPTH_MAX))
		return FEED_REGIONS;
	int r = region_new(p, m, parent, &region);
	if (r != 0)
		return r;
	HASH_ADD(hh, p->regions, id, sizeof(region->id), region);
	if (!region->hh.tbl) {
		loop_site_unref(p->o.sites, region->site);
		free(region);
		return -ENOMEM;
	}
	return 0;
}

static void thread_free(struct program *p, struct program_thread *t)
{
	if (p->o.thread_gone)
		p->o.thread_gone(p->o.userdata, t);
	HASH_DEL(p->threads, t);
	program_discharge(p, sizeof(*t));
	free(t);
}

/* Hand out the remaining sums of a thread or object, some in each call; then free it. */
static int work_gone(struct program *p)
{
	struct program_work *w = &p->work;
	bool more = false;
	int r = program_end_sums(p, &more);
	if (more)
		return 0;
	struct program_thread *t = TAKE_PTR(w->ended);
	struct program_object *o = TAKE_PTR(w->gone);
	w->until_ns = 0;
	if (t && r == 0)
		thread_free(p, t);
	if (o && r == 0)
		program_object_free(p, o);
	return r;
}

static int take_gone(struct program *p, const struct feed_message *m)
{
	uint32_t id = m->gone.id;
	int r = FEED_UNANNOUNCED;
	if (m->gone.kind == MPERF_GONE_THREAD) {
		struct program_thread *t;
		HASH_FIND(hh, p->threads, &id, sizeof(id), t);
		p->work.ended = t;
		r = t ? work_gone(p) : r;
	} else if (m->gone.kind == MPERF_GONE_OBJECT) {
		struct program_object *o;
		HASH_FIND(hh, p->objects, &id, sizeof(id), o);
		p->work.gone = o;
		r = o ? work_gone(p) : r;
	}
	return r;
}

static int take_round(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_round *sent = &m->round;
	if (sent->until_ns < p->until_ns)
		return FEED_TIME;
	p->until_ns = sent->until_ns;
	p->n_rounds++;
	p->last = sent->last != 0;
	if (sent->threads_lost > p->threads_lost) {
		p->o.causes[FEED_THREAD_LOST] += sent->threads_lost - p->threads_lost;
		p->threads_lost = sent->threads_lost;
	}
	return program_hand_out(p);
}

static int take(struct program *p, const struct feed_message *m)
{
	if (!p->greeted && m->type != MPERF_HELLO)
		return FEED_NO_HELLO;
	switch (m->type) {
	case MPERF_HELLO:
		return take_hello(p, m);
	case MPERF_OBJECT:
		return program_take_object(p, m);
	case MPERF_TABLE:
		return program_take_table(p, m);
	case MPERF_REGION:
		return take_region(p, m);
	case MPERF_THREAD:
		return take_thread(p, m);
	case MPERF_DELTAS:
		return program_take_deltas(p, m);
	case MPERF_SPENT:
		return program_take_spent(p, m);
	case MPERF_PLACE:
		return program_take_place(p, m);
	case MPERF_TALLY:
		return program_take_tally(p, m);
	case MPERF_GONE:
		return take_gone(p, m);
	case MPERF_ROUND:
		return take_round(p, m);
	default:
		return FEED_MESSAGE;
	}
}

/* Was a table refused, or all tables of an object? */
static bool is_of_tables(int r)
{
	return r == FEED_TABLE_LIMIT || r == FEED_OBJECTS || r == FEED_MODULES ||
	       r == FEED_COUNTERS;
}

/* Did a limit of ours refuse the message? Then neither it nor later messages that refer to it count
 * as invalid. */
static bool is_limit(int r)
{
	return is_of_tables(r) || r == FEED_THREADS || r == FEED_REGIONS || r == FEED_ROWS ||
	       r == FEED_SITES;
}

/* Count the fault. 0; FEED_* if the program must be disconnected; -errno. */
static int outcome(struct program *p, int r)
{
	if (r <= 0 || r >= N_FEED_CAUSES)
		return r;
	p->o.causes[r]++;
	if (p->o.lost_tables && is_of_tables(r))
		++*p->o.lost_tables;
	if (feed_causes[r].severity == FEED_HANG_UP)
		return r;
	p->limited |= is_limit(r);
	if (is_limit(r) || (p->limited && r == FEED_UNANNOUNCED))
		return 0;
	if (++p->n_faults < PROGRAM_FAULTS_MAX)
		return 0;
	p->o.causes[FEED_FAULTS]++;
	return FEED_FAULTS;
}

int program_take(struct program *p, const uint8_t *bytes, size_t n)
{
	struct feed_message m;
	int r = feed_message_parse(bytes, n, &m);
	if (r == FEED_MESSAGE && !p->greeted)
		r = FEED_NO_HELLO;
	if (r == 0)
		r = take(p, &m);
	return outcome(p, r);
}

int program_work(struct program *p)
{
	const struct program_work *w = &p->work;
	int r = w->object             ? program_work_table(p)
		: w->round            ? program_hand_out(p)
		: w->ended || w->gone ? work_gone(p)
				      : 0;
	return outcome(p, r);
}

struct program *program_free(struct program *p)
{
	if (!p)
		return NULL;
	struct program_object *o, *next_object;
	struct program_thread *t, *next_thread;
	struct program_region *region, *next_region;
	program_sums_clear(p);
	HASH_ITER (hh, p->objects, o, next_object) {
		program_object_free(p, o);
	}
	HASH_ITER (hh, p->threads, t, next_thread) {
		thread_free(p, t);
	}
	HASH_ITER (hh, p->regions, region, next_region) {
		HASH_DEL(p->regions, region);
		loop_site_unref(p->o.sites, region->site);
		free(region);
	}
	program_places_clear(p);
	loop_site_unref(p->o.sites, p->outside);
	for (struct budget *b = p->budget.above; b; b = b->above)
		b->used -= p->budget.used;
	free(p);
	return NULL;
}
