/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Places of OpenMP: what a program says of them, and what of that is taken.
 */

#include "daemon/loops/program.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

struct rig {
	struct program *program;
	struct loop_sites sites;
	struct budget all;
	uint64_t causes[N_FEED_CAUSES];
	struct loop_site_key key; /* of the last that came out; its texts are below */
	char nest[LOOP_PLACE_NEST_BYTES], parent_nest[LOOP_PLACE_NEST_BYTES];
	uint64_t value[N_LOOP_VALUES];
	uint64_t address;
	unsigned n_taken;
};

static int take(void *userdata, const struct loop_counts *c)
{
	struct rig *g = userdata;
	g->n_taken++;
	g->key = c->site->key;
	g->address = c->address;
	snprintf(g->nest, sizeof(g->nest), "%s", c->site->key.nest);
	snprintf(g->parent_nest, sizeof(g->parent_nest), "%s",
		c->site->parent ? c->site->parent->key.nest : "");
	memcpy(g->value, c->value, sizeof(g->value));
	return 0;
}

static int tell(struct rig *g, const struct told *t)
{
	uint8_t *copy = malloc(t->n);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, t->bytes, t->n);
	int r = program_take(g->program, copy, t->n);
	free(copy);
	return r;
}

/* A program of that user with thread 3. */
static void program_of(struct rig *g, uid_t uid)
{
	struct told t;
	const struct program_options o = {
		.sites = &g->sites,
		.uid = uid,
		.causes = g->causes,
		.budget = &g->all,
		.memory_max = 1 << 20,
		.take = take,
		.userdata = g,
	};
	ck_assert_int_eq(program_new(&o, &g->program), 0);
	told_version(&t, MPERF_FEED_PLACES);
	ck_assert_int_eq(tell(g, &t), 0);
	told_thread(&t, 3, 77);
	ck_assert_int_eq(tell(g, &t), 0);
}

static void rig_make(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	g->all.max = 1 << 21;
	program_of(g, 1000);
}

static void rig_clear(struct rig *g)
{
	program_free(g->program);
	ck_assert_uint_eq(g->all.used, 0);
	ck_assert_uint_eq(g->sites.n_sites, 0);
	loop_sites_clear(&g->sites);
}

static void place(struct rig *g, uint32_t id, uint32_t parent, uint32_t kind, uint64_t offset)
{
	struct told t;
	told_place(&t, id, parent, kind, offset);
	ck_assert_int_eq(tell(g, &t), 0);
}

static void tally(struct rig *g, uint32_t id, uint64_t ns)
{
	struct told t;
	told_tally(&t, 3, id, ns);
	ck_assert_int_eq(tell(g, &t), 0);
}

TEST(a_barrier_is_a_site_in_its_region)
{
	struct rig g;
	rig_make(&g);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 0x11a0);
	place(&g, 2, 1, MPERF_PLACE_BARRIER, 0x1200);
	tally(&g, 2, 50);
	ck_assert_uint_eq(g.n_taken, 1);
	ck_assert_int_eq(g.key.kind, LOOP_SITE_WAIT);
	ck_assert_str_eq(g.nest, "barrier@1200");
	ck_assert_str_eq(g.parent_nest, "parallel@11a0");
	ck_assert_uint_eq(g.address, 0x401200);
	ck_assert_uint_eq(g.value[LOOP_VALUE(LOOP_ENTRIES, false)], 1);
	ck_assert_uint_eq(g.value[LOOP_VALUE(LOOP_TIME_NS, false)], 50);
	ck_assert_uint_eq(g.value[LOOP_VALUE(LOOP_WAIT_NS, false)], 50);
	rig_clear(&g);
}

TEST(a_place_without_address_is_its_word_alone)
{
	struct rig g;
	rig_make(&g);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 0);
	tally(&g, 1, 5);
	ck_assert_str_eq(g.nest, "parallel");
	ck_assert_uint_eq(g.address, 0);
	rig_clear(&g);
}

TEST(users_do_not_share_places)
{
	struct rig g;
	rig_make(&g);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 0x11a0);
	struct program *first = g.program;
	program_of(&g, 1001);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 0x11a0);
	ck_assert_uint_eq(g.sites.n_sites, 2);
	struct program *second = g.program;
	program_of(&g, 1000); /* of one user they are the same */
	place(&g, 9, 0, MPERF_PLACE_PARALLEL, 0x11a0);
	ck_assert_uint_eq(g.sites.n_sites, 2);
	program_free(first);
	program_free(second);
	rig_clear(&g);
}

TEST(each_kind_has_a_word)
{
	struct rig g;
	rig_make(&g);
	place(&g, 100, 0, MPERF_PLACE_PARALLEL, 0x11a0);
	char words[MPERF_PLACE_KINDS * LOOP_PLACE_NEST_BYTES] = "/";
	for (uint32_t kind = MPERF_PLACE_LOOP; kind < MPERF_PLACE_KINDS; kind++) {
		place(&g, kind, 100, kind, 0x1000 + kind);
		tally(&g, kind, 1);
		ck_assert_int_eq(loop_site_is_place(g.key.kind), 1);
		char *at = strchr(g.nest, '@');
		ck_assert_ptr_nonnull(at);
		*at = '\0';
		ck_assert_ptr_null(strstr(words, g.nest)); /* nor has another that word */
		strcat(strcat(words, g.nest), "/");
	}
	ck_assert_uint_eq(g.n_taken, MPERF_PLACE_KINDS - MPERF_PLACE_LOOP);
	rig_clear(&g);
}

TEST(nonsense_is_passed_over_and_counted)
{
	struct rig g;
	rig_make(&g);
	place(&g, 0, 0, MPERF_PLACE_PARALLEL, 1); /* no id */
	place(&g, 1, 7, MPERF_PLACE_BARRIER, 1);  /* an unknown region */
	place(&g, 1, 0, 0, 1);                    /* no kind */
	place(&g, 1, 0, MPERF_PLACE_KINDS, 1);
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], 4);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 1);
	place(&g, 1, 0, MPERF_PLACE_PARALLEL, 1);
	ck_assert_uint_eq(g.causes[FEED_TWICE], 1);
	tally(&g, 2, 1); /* an unknown place */
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], 5);
	ck_assert_uint_eq(g.n_taken, 0);
	rig_clear(&g);
}

TEST(regions_inside_themselves_end_at_a_depth)
{
	struct rig g;
	rig_make(&g);
	for (uint32_t i = 1; i <= PROGRAM_REGION_DEPTH_MAX + 5; i++)
		place(&g, i, i - 1, MPERF_PLACE_PARALLEL, 0x11a0);
	/* those inside the one that is refused have no parent */
	ck_assert_uint_eq(g.sites.n_sites, PROGRAM_REGION_DEPTH_MAX);
	ck_assert_uint_eq(g.causes[FEED_REGIONS], 1);
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], 4);
	rig_clear(&g);
}

TEST(places_are_limited)
{
	struct rig g;
	rig_make(&g);
	g.program->budget.max = g.all.max = 1 << 30;
	for (uint32_t i = 1; i <= PROGRAM_PLACES_MAX + 3; i++)
		place(&g, i, 0, MPERF_PLACE_PARALLEL, i);
	ck_assert_uint_eq(g.causes[FEED_REGIONS], 3);
	ck_assert_uint_eq(g.sites.n_sites, PROGRAM_PLACES_MAX);
	rig_clear(&g);
}

TEST(lengths_that_do_not_add_up_disconnect)
{
	struct told t;
	for (size_t off = 0; off < 2; off++) {
		struct rig g;
		rig_make(&g);
		told_place(&t, 1, 0, MPERF_PLACE_PARALLEL, 1);
		struct mperf_feed_place *m = (void *)t.bytes;
		if (off)
			m->build_id_bytes = UINT32_MAX;
		else
			m->path_bytes--;
		ck_assert_int_eq(tell(&g, &t), FEED_LENGTH);
		rig_clear(&g);
	}
}
