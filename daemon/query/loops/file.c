/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A file named by MPERF_OUTPUT holds the messages that the program would have sent to the feed, one
 * after the other, so the same code reads it, without a way to verify threads. If the process
 * executed another program, that program's messages follow, beginning with a HELLO.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts_private.h"
#include "proto/base/memory.h"

/* The memory limit for one file's program; the feed's default is 32 MB. */
#define FILE_PROGRAM_BYTES_MAX (1ull << 30)

static void program_freep(struct program **p)
{
	program_free(*p);
}

/* The site and its parents, outermost first, so that a parent comes before its children. Tables of
 * one build id may continue each other's nests, so that each is shallow but together they are deep.
 * 0, FEED_TABLE_MALFORMED, -errno. */
static int site_of(struct loop_facts *f, const struct loop_site *site, uint32_t *ret_site)
{
	const struct loop_site *chain[LOOP_DEPTH_MAX];
	char build_id[2 * MPERF_BUILD_ID_BYTES_MAX + 1] = "";
	unsigned n = 0;
	for (; site && n < LOOP_DEPTH_MAX; site = site->parent)
		chain[n++] = site;
	*ret_site = 0;
	int r = 0;
	while (n > 0 && r == 0) {
		const struct loop_site *s = chain[--n];
		if (*ret_site && f->sites.site[*ret_site - 1].depth >= LOOP_DEPTH_MAX)
			return FEED_TABLE_MALFORMED;
		for (unsigned i = 0; i < s->key.n_build_id; i++)
			snprintf(build_id + 2 * i, 3, "%02x", s->key.build_id[i]);
		const struct fact_site_key key = {
			.kind = s->key.kind,
			.flags = s->flags,
			.subprogram = s->key.subprogram,
			.source = s->key.source,
			.nest = s->key.nest,
			.inlined_at = s->key.inlined_at,
			.build_id = s->key.n_build_id ? build_id : "",
			.line = s->key.line,
			.line_last = s->line_last,
			.parent = *ret_site,
		};
		r = loop_facts_site(f, &key, ret_site);
	}
	return r;
}

static int take(void *userdata, const struct loop_counts *c)
{
	struct loop_facts *f = userdata;
	uint32_t site, region = 0, who = 0;
	struct fact *fact;
	bool is_place = loop_site_is_place(c->site->key.kind);
	if (is_place ? !f->q.places : f->q.places_only)
		return 0;
	int r = site_of(f, c->site, &site);
	if (r == 0 && c->region && f->q.by_region)
		r = site_of(f, c->region, &region);
	if (r == 0 && (f->q.by_thread || f->q.by_region))
		r = loop_facts_who(f,
			&(struct fact_who_key){
				.tid = (int32_t)c->thread->tid, .start_ns = c->thread->begin_ns},
			&who);
	if (r == 0 && c->value[LOOP_VALUE(LOOP_INSTRUCTIONS, false)] > 0)
		loop_facts_was_in(f, who, c->region != NULL);
	if (!f->q.by_thread)
		who = 0;
	const struct key key = FACT_KEY(site, region, who, 0);
	if (r == 0)
		r = loop_facts_get(f, &key, &fact);
	for (unsigned i = 0; i < N_LOOP_VALUES && r == 0; i++)
		loop_facts_add(fact, i, c->value[i]);
	return r;
}

static int fail(struct query_error *error, const char *path, const char *what)
{
	return query_fail(error, MPERF__FAILURE_KIND__FAILURE_BROKEN,
		"Run the program again, with MPERF_OUTPUT naming another file", "%s is damaged: %s",
		path, what);
}

static void note(struct loop_facts *f, const char *says)
{
	uint32_t text;
	if (f->provenance.n_notes < PROVENANCE_NOTES_MAX && text_get(&f->texts, says, &text) == 0)
		f->provenance.note[f->provenance.n_notes++] = text;
}

/* Note the messages that were refused, by cause: their loops or counts are missing, which nothing
 * else would show. */
static void note_causes(struct loop_facts *f, const uint64_t causes[N_FEED_CAUSES])
{
	char says[128];
	for (unsigned i = 0; i < N_FEED_CAUSES; i++) {
		if (causes[i] == 0)
			continue;
		snprintf(says, sizeof(says), "Left out %llu times: %s.",
			(unsigned long long)causes[i], feed_causes[i].name);
		note(f, says);
	}
}

/* Take a message, and do all the work that follows from it. */
static int take_message(struct program *p, const uint8_t *bytes, size_t n)
{
	int r = program_take(p, bytes, n);
	while (r == 0 && program_is_at_work(p))
		r = program_work(p);
	return r;
}

/* Free a program whose messages are complete; add its time to the file's. */
static struct program *end(struct loop_facts *f, struct program *p)
{
	if (p->until_ns > p->begin_ns)
		f->provenance.seconds += (double)(p->until_ns - p->begin_ns) / 1e9;
	return program_free(p);
}

/* Take all messages in order. A file that ends within a message was truncated; the messages before
 * are valid. */
static int take_all(struct loop_facts *f, const struct program_options *o,
	const struct loop_output *file, struct query_error *error)
{
	_cleanup_(program_freep) struct program *p = NULL;
	bool executed = false;
	const uint8_t *bytes = file->bytes;
	size_t n = file->n;
	struct mperf_feed_head head;
	size_t at = 0;
	f->provenance.seconds = 0;
	int r = program_new(o, &p);
	while (r == 0 && n - at >= sizeof(head)) {
		memcpy(&head, bytes + at, sizeof(head));
		if (head.bytes < sizeof(head) || head.bytes > MPERF_PACKET_BYTES_MAX)
			return fail(error, file->path, feed_causes[FEED_LENGTH].name);
		if (head.bytes > n - at)
			break;
		if (head.type == MPERF_HELLO && p->greeted) {
			executed = true;
			p = end(f, p);
			r = program_new(o, &p);
		}
		if (r == 0)
			r = take_message(p, bytes + at, head.bytes);
		at += head.bytes;
	}
	if (r > 0)
		return fail(error, file->path, feed_causes[r].name);
	if (r < 0)
		return r;
	if (!p->last)
		note(f, "The program had not ended when this was written.");
	if (executed)
		note(f, "The program executed another one: the figures are for both, without what "
			"the first counted after its last report.");
	p = end(f, p);
	return 0;
}

int loop_facts_add_file(
	struct loop_facts *f, const struct loop_output *file, struct query_error *ret_error)
{
	struct loop_sites sites = {0};
	uint64_t causes[N_FEED_CAUSES] = {0};
	const struct program_options o = {
		.sites = &sites,
		.causes = causes,
		.memory_max = FILE_PROGRAM_BYTES_MAX,
		.take = take,
		.userdata = f,
	};
	int r = take_all(f, &o, file, ret_error);
	if (r == 0)
		note_causes(f, causes);
	loop_sites_clear(&sites);
	return r;
}
