/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Places of OpenMP. Unlike loops they have no table that the compiler made: a program reports an
 * address, and the file and offset that it has there. The feed's owner finds the address in the
 * process and has it named; the file and offset that the program reports identify the place, and
 * are shown if the address is not found.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/program_private.h"

static const struct {
	enum loop_site_kind kind;
	const char *word;
} kinds[MPERF_PLACE_KINDS] = {
	[MPERF_PLACE_PARALLEL] = {LOOP_SITE_PARALLEL, "parallel"},
	[MPERF_PLACE_LOOP] = {LOOP_SITE_WORK, "loop"},
	[MPERF_PLACE_SECTIONS] = {LOOP_SITE_WORK, "sections"},
	[MPERF_PLACE_SINGLE] = {LOOP_SITE_WORK, "single"},
	[MPERF_PLACE_WORKSHARE] = {LOOP_SITE_WORK, "other work"},
	[MPERF_PLACE_BARRIER] = {LOOP_SITE_WAIT, "barrier"},
	[MPERF_PLACE_BARRIER_OF_WORK] = {LOOP_SITE_WAIT, "end of work"},
	[MPERF_PLACE_BARRIER_OF_REGION] = {LOOP_SITE_WAIT, "end of region"},
	[MPERF_PLACE_TASKWAIT] = {LOOP_SITE_WAIT, "taskwait"},
	[MPERF_PLACE_TASKGROUP] = {LOOP_SITE_WAIT, "taskgroup"},
	[MPERF_PLACE_LOCK] = {LOOP_SITE_LOCK, "lock"},
	[MPERF_PLACE_CRITICAL] = {LOOP_SITE_LOCK, "critical"},
	[MPERF_PLACE_ATOMIC] = {LOOP_SITE_LOCK, "atomic"},
	[MPERF_PLACE_ORDERED] = {LOOP_SITE_LOCK, "ordered"},
};

static int site_get(struct program *p, const struct feed_message *m, struct loop_site *parent,
	struct loop_site **ret_site)
{
	const struct mperf_feed_place *sent = &m->place;
	const struct loop_site_more more = {0};
	char nest[LOOP_PLACE_NEST_BYTES];
	struct loop_site_key key = {
		.kind = (uint8_t)kinds[sent->kind].kind,
		.owner = (uint64_t)p->o.uid + 1,
		.n_build_id = (uint8_t)sent->build_id_bytes,
		.subprogram = "",
		.source = (const char *)m->rest + sent->build_id_bytes,
		.nest = nest,
		.inlined_at = "",
	};
	memcpy(key.build_id, m->rest, sent->build_id_bytes);
	if (sent->address)
		snprintf(nest, sizeof(nest), "%s@%" PRIx64, kinds[sent->kind].word, sent->offset);
	else
		snprintf(nest, sizeof(nest), "%s", kinds[sent->kind].word);
	const size_t memory = sizeof(struct program_place) + loop_site_memory(&key);
	int r = program_charge(p, memory);
	if (r != 0)
		return r;
	r = loop_site_get(p->o.sites, &key, parent, &more, ret_site);
	if (r != 0)
		program_discharge(p, memory);
	return r;
}

int program_take_place(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_place *sent = &m->place;
	struct program_place *place, *parent = NULL;
	struct loop_site *site;
	HASH_FIND(hh, p->places, &sent->place, sizeof(sent->place), place);
	if (place)
		return FEED_TWICE;
	if (sent->parent)
		HASH_FIND(hh, p->places, &sent->parent, sizeof(sent->parent), parent);
	if (sent->place == 0 || (sent->parent && !parent) || sent->kind >= MPERF_PLACE_KINDS ||
		!kinds[sent->kind].word)
		return FEED_UNANNOUNCED;
	if (HASH_COUNT(p->places) >= PROGRAM_PLACES_MAX ||
		(parent && parent->site->depth + 1 >= PROGRAM_REGION_DEPTH_MAX) ||
		m->n_rest > LOOP_TEXT_BYTES_MAX)
		return FEED_REGIONS;
	int r = site_get(p, m, parent ? parent->site : NULL, &site);
	if (r != 0)
		return r;
	place = calloc(1, sizeof(*place));
	if (!place) {
		loop_site_unref(p->o.sites, site);
		return -ENOMEM;
	}
	*place = (struct program_place){.id = sent->place, .address = sent->address, .site = site};
	HASH_ADD(hh, p->places, id, sizeof(place->id), place);
	if (!place->hh.tbl) {
		loop_site_unref(p->o.sites, site);
		free(place);
		return -ENOMEM;
	}
	return 0;
}

int program_take_tally(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_tally *sent = &m->tally;
	struct program_thread *thread;
	struct program_place *place;
	HASH_FIND(hh, p->threads, &sent->thread, sizeof(sent->thread), thread);
	HASH_FIND(hh, p->places, &sent->place, sizeof(sent->place), place);
	if (!thread || !place)
		return FEED_UNANNOUNCED;
	if (sent->from_ns > sent->until_ns)
		return FEED_TIME;
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(LOOP_ENTRIES, false)] = sent->entries;
	value[LOOP_VALUE(LOOP_CALLS, false)] = sent->calls;
	value[LOOP_VALUE(LOOP_TIME_NS, false)] = sent->time_ns;
	value[LOOP_VALUE(LOOP_WAIT_NS, false)] = sent->wait_ns;
	value[LOOP_VALUE(LOOP_LOCK_NS, false)] = sent->lock_ns;
	const struct loop_counts counts = {
		.thread = thread,
		.site = place->site,
		.value = value,
		.until_ns = sent->until_ns,
		.address = place->address,
	};
	return p->o.take(p->o.userdata, &counts);
}

void program_places_clear(struct program *p)
{
	struct program_place *place, *next;
	HASH_ITER (hh, p->places, place, next) {
		HASH_DEL(p->places, place);
		loop_site_unref(p->o.sites, place->site);
		free(place);
	}
}
