/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The parts of the runtime that work on memory alone: areas, nests, regions, build ids. Processes of
 * all kinds are in tests/system/test_runtime.py.
 */
#include <elf.h>
#include <sys/mman.h>

#include "runtime/area.h"
#include "runtime/grant.h"
#include "runtime/object.h"
#include "runtime/region.h"
#include "runtime/state.h"
#include "runtime/timed_loop.h"
#include "tests/unit/test.h"

/* --- areas ------------------------------------------------------------------------------------ */

static struct area_pool pool;

static void pool_empty(void)
{
	pool = (struct area_pool){.bytes_max = MPERF_AREA_BYTES_MAX};
}

TEST(an_area_is_zeros_and_its_own, .begin = pool_empty)
{
	struct area *a = mperf_area_take(&pool, 1000);
	struct area *b = mperf_area_take(&pool, 1000);
	ck_assert(a && b && a != b);
	for (size_t i = 0; i < 1000; i++)
		a->counters[i] = mperf_area_sent(a, 1000)[i] = 1;
	for (size_t i = 0; i < 1000; i++)
		ck_assert(b->counters[i] == 0 && mperf_area_sent(b, 1000)[i] == 0);
	ck_assert_uint_eq((uintptr_t)a->counters % 64, 0);
}

TEST(areas_are_placed_above_the_address_that_was_given, .begin = pool_empty)
{
	char *free_place = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(free_place, MAP_FAILED);
	ck_assert_int_eq(munmap(free_place, 64 << 20), 0);
	mperf_area_above(&pool, free_place);
	struct area *a = mperf_area_take(&pool, 1000), *b = mperf_area_take(&pool, 1000);
	ck_assert((char *)a > free_place && (char *)b > (char *)a);
	ck_assert((char *)b < free_place + (64 << 20));
	mperf_area_give(&pool, a);
	ck_assert_ptr_eq(mperf_area_take(&pool, 1000), a);
}

TEST(an_area_that_was_given_back_is_taken_again_as_zeros, .begin = pool_empty)
{
	static const size_t sizes[] = {1, 8, 250, 1000, 5000};
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k];
		struct area *a = mperf_area_take(&pool, n);
		ck_assert_ptr_nonnull(a);
		for (size_t i = 0; i < n; i++)
			a->counters[i] = mperf_area_sent(a, n)[i] = UINT64_MAX;
		uint64_t bytes = pool.bytes;
		mperf_area_give(&pool, a);
		ck_assert_ptr_eq(mperf_area_take(&pool, n), a);
		ck_assert_uint_eq(pool.bytes, bytes);
		for (size_t i = 0; i < n; i++)
			ck_assert(a->counters[i] == 0 && mperf_area_sent(a, n)[i] == 0);
	}
}

TEST(an_area_much_too_large_is_left_for_others, .begin = pool_empty)
{
	struct area *large = mperf_area_take(&pool, 100000);
	mperf_area_give(&pool, large);
	ck_assert_ptr_ne(mperf_area_take(&pool, 10), large);
	ck_assert_ptr_eq(mperf_area_take(&pool, 100000), large);
}

TEST(beyond_the_limit_there_is_no_area, .begin = pool_empty)
{
	pool.bytes_max = 16 << 10;
	ck_assert_ptr_nonnull(mperf_area_take(&pool, 100));
	ck_assert_ptr_null(mperf_area_take(&pool, 100000));
	ck_assert_ptr_null(mperf_area_take(&pool, SIZE_MAX));
	ck_assert_ptr_null(mperf_area_take(&pool, SIZE_MAX / 16));
	ck_assert_ptr_nonnull(mperf_area_take(&pool, 100));
	while (mperf_area_take(&pool, 100))
		;
	ck_assert_uint_le(pool.bytes, pool.bytes_max);
}

/* --- nests ------------------------------------------------------------------------------------ */

#define COST_NS 60

/* Entries here may have begun before the process did. Times are taken as for a feed, which there is none
 * of: no thread is to be started here. */
static void no_begin(void)
{
	mperf_state.silent = false;
	mperf_state.sink.listens = 1;
	mperf_state.begin_ns = 0;
	mperf_state.timing_ns = COST_NS;
}

/* The sum that sampling makes of n entries of that length, driven as compiled code drives it. */
static uint64_t sampled_ns(uint64_t *words, unsigned n, unsigned *ret_timed)
{
	for (unsigned i = 0; i < n; i++) {
		if ((int64_t)--words[MPERF_TIMED_COUNTDOWN] >= 1)
			continue;
		uint64_t begin = __mperf_loop_begin(words, 1);
		ck_assert_uint_ne(begin, 0);
		__mperf_loop_end(words, begin);
	}
	*ret_timed = (unsigned)words[MPERF_TIMED_ENTRIES];
	return words[MPERF_TIMED_NS];
}

TEST(the_first_entry_is_timed_and_long_ones_all_are, .begin = no_begin)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	for (unsigned i = 1; i <= 10; i++) {
		ck_assert_int_lt((int64_t)--words[MPERF_TIMED_COUNTDOWN], 1);
		uint64_t begin = __mperf_loop_begin(words, 0);
		/* A second ago: the clock cannot spoil it. */
		__mperf_loop_end(words, begin - 1000000000);
		ck_assert_uint_eq(words[MPERF_TIMED_ENTRIES], i);
		ck_assert_uint_ge(words[MPERF_TIMED_NS], i * UINT64_C(999000000));
	}
}

TEST(windows_grow_for_short_entries_up_to_a_bound, .begin = no_begin)
{
	unsigned log2 = 0;
	for (unsigned i = 1; i <= 30; i++) {
		log2 = mperf_timed_window(log2, 1, COST_NS);
		ck_assert_uint_eq(log2, i < MPERF_WINDOW_LOG2_MAX ? i : MPERF_WINDOW_LOG2_MAX);
	}
	ck_assert_uint_eq(
		mperf_timed_window(MPERF_WINDOW_LOG2_MAX, 0, COST_NS), MPERF_WINDOW_LOG2_MAX);
}

TEST(windows_shrink_for_long_entries, .begin = no_begin)
{
	unsigned log2 = MPERF_WINDOW_LOG2_MAX;
	for (unsigned i = 0; i < 5; i++)
		log2 = mperf_timed_window(log2, UINT64_C(1) << 40, COST_NS);
	ck_assert_uint_eq(log2, 0);
}

TEST(windows_are_as_large_as_timing_may_cost, .begin = no_begin)
{
	for (uint64_t ns = 20; ns < 100000; ns = ns * 5 / 4) {
		unsigned log2 = 0;
		for (unsigned i = 0; i < 30; i++)
			log2 = mperf_timed_window(log2, ns, COST_NS);
		uint64_t window_ns = ns << log2;
		ck_assert(
			window_ns >= COST_NS * MPERF_TIMING_SHARE || log2 == MPERF_WINDOW_LOG2_MAX);
		ck_assert(log2 == 0 || window_ns / 2 < COST_NS * MPERF_TIMING_SHARE);
	}
}

TEST(short_entries_are_sampled, .begin = no_begin)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	unsigned timed = 0;
	sampled_ns(words, 1000000, &timed);
	ck_assert_uint_gt(timed, 500);
	ck_assert_uint_lt(timed, 500000);
}

/* The weights: each timed entry is made to last as long as the state says, so that the sum of
 * weights, which is the sum of time where all entries last 1 s, must come near the entries. */
TEST(timed_entries_stand_for_all, .begin = no_begin)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	uint64_t entries = 0, weights = 0;
	unsigned log2 = 0, windows = 0;
	for (unsigned round = 0; round < 20000; round++) {
		while ((int64_t)--words[MPERF_TIMED_COUNTDOWN] >= 1)
			entries++;
		entries++;
		uint64_t word = words[MPERF_TIMED_OPEN_NS];
		log2 = word & MPERF_TIMED_CLOSED ? word & 15 : 0;
		weights += UINT64_C(1) << log2;
		uint64_t begin = __mperf_loop_begin(words, 0);
		/* Of any length: chance says whether windows grow or shrink. */
		uint64_t ns = rand() % 4 ? 0 : 1000000;
		uint64_t before = words[MPERF_TIMED_NS];
		__mperf_loop_end(words, begin - ns);
		ck_assert_uint_ge(words[MPERF_TIMED_NS] - before, (ns ? ns - 1000 : 0) << log2);
		windows += log2 != 0;
	}
	ck_assert_uint_gt(windows, 5000);
	/* What is missing of the last window, and nothing else. */
	ck_assert_uint_le(entries, weights + 1024);
	ck_assert_uint_ge(entries + 1024, weights);
}

TEST(an_open_nest_says_since_when, .begin = no_begin)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	uint64_t begin = __mperf_loop_begin(words, 1);
	ck_assert_uint_eq(mperf_timed_open(words[MPERF_TIMED_OPEN_NS]), begin);
	__mperf_loop_end(words, begin);
	ck_assert_uint_eq(mperf_timed_open(words[MPERF_TIMED_OPEN_NS]), 0);
	memset(words, 0, sizeof(words));
	__mperf_loop_begin(words, 0);
	ck_assert_uint_eq(mperf_timed_open(words[MPERF_TIMED_OPEN_NS]), 0);
}

TEST(a_nest_that_never_ended_is_begun_anew, .begin = no_begin)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	uint64_t left = __mperf_loop_begin(words, 1);
	words[MPERF_TIMED_COUNTDOWN]--;
	uint64_t begin = __mperf_loop_begin(words, 1);
	ck_assert_uint_ge(begin, left);
	ck_assert_uint_eq(mperf_timed_open(words[MPERF_TIMED_OPEN_NS]), begin);
	__mperf_loop_end(words, begin);
	ck_assert_uint_eq(words[MPERF_TIMED_ENTRIES], 1);
}

/* A thread that has a record, whose stack of entries shows recursion. */
static void one_thread(void)
{
	no_begin();
	ck_assert_ptr_nonnull(mperf_thread_make());
}

/* As compiled code enters the nest, and again inside it, so deep; or leaves it without its end. */
__attribute__((noinline)) static void enter(uint64_t *words, unsigned depth, bool leaves)
{
	uint64_t begin = 0;
	if ((int64_t)--words[MPERF_TIMED_COUNTDOWN] < 1)
		begin = __mperf_loop_begin(words, 0);
	if (depth > 0)
		enter(words, depth - 1, leaves);
	if (begin && !leaves)
		__mperf_loop_end(words, begin);
	__asm__ volatile(""); /* no tail call */
}

TEST(of_a_recursive_nest_the_outermost_entries_are_timed, .begin = one_thread)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	mperf_state.timing_ns = 0; /* each may be timed */
	for (unsigned i = 1; i <= 100; i++) {
		enter(words, 5000, false);
		ck_assert_uint_eq(words[MPERF_TIMED_ENTRIES], i);
	}
	/* Also those that have none inside, however short they are. */
	for (unsigned i = 101; i <= 200; i++) {
		enter(words, 0, false);
		ck_assert_uint_eq(words[MPERF_TIMED_ENTRIES], i);
	}
}

/* Timing is made to cost 1 ms, and each outermost entry to last as long, with none to three inside. */
TEST(bursts_of_a_recursive_nest_stand_for_all, .begin = one_thread)
{
	const unsigned n = 1600000, ms = 1000000;
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	mperf_state.timing_ns = ms;
	enter(words, 1, false);
	for (unsigned i = 0; i < n; i++) {
		uint64_t begin = 0;
		if ((int64_t)--words[MPERF_TIMED_COUNTDOWN] < 1)
			begin = __mperf_loop_begin(words, 0);
		for (int inside = rand() % 4; inside > 0; inside--)
			enter(words, 0, false);
		if (!begin)
			continue;
		const uint64_t before = words[MPERF_TIMED_NS];
		mperf_thread_self()->timed[0].begin_ns = begin - ms;
		__mperf_loop_end(words, begin - ms);
		ck_assert_uint_ge(words[MPERF_TIMED_NS] - before, ms - 1000);
	}
	ck_assert_uint_lt(words[MPERF_TIMED_ENTRIES], n / 20);
	ck_assert_uint_gt(words[MPERF_TIMED_ENTRIES], n / 1000);
	ck_assert_double_eq_tol((double)words[MPERF_TIMED_NS] / ms / n, 1, 0.1);
}

TEST(timing_costs_more_than_two_looks_at_the_clock, .begin = no_begin)
{
	uint64_t look_ns = UINT64_MAX;
	for (int i = 0; i < 1000; i++) {
		const uint64_t before = mperf_now_ns(), took = mperf_now_ns() - before;
		look_ns = took < look_ns ? took : look_ns;
	}
	/* from before the first to behind the second: three times from one look to the next */
	ck_assert_uint_gt(mperf_timed_cost_ns(0), 2 * look_ns);
	ck_assert_uint_lt(mperf_timed_cost_ns(0), 1000000);
}

TEST(nests_in_one_another_are_all_timed, .begin = one_thread)
{
	uint64_t outer[MPERF_TIMED_WORDS] = {0}, inner[MPERF_TIMED_WORDS] = {0};
	uint64_t begin = __mperf_loop_begin(outer, 0);
	enter(inner, 0, false);
	__mperf_loop_end(outer, begin);
	ck_assert_uint_eq(outer[MPERF_TIMED_ENTRIES], 1);
	ck_assert_uint_eq(inner[MPERF_TIMED_ENTRIES], 1);
	ck_assert_uint_eq(mperf_thread_self()->n_timed, 0);
}

TEST(an_entry_that_was_left_is_not_taken_for_recursion, .begin = one_thread)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0};
	enter(words, 0, true);
	ck_assert_uint_eq(mperf_thread_self()->n_timed, 1);
	words[MPERF_TIMED_COUNTDOWN] = 0;
	enter(words, 0, false);
	ck_assert_uint_eq(words[MPERF_TIMED_ENTRIES], 1);
	ck_assert_uint_eq(mperf_thread_self()->n_timed, 0);
}

TEST(more_nests_than_a_thread_notes_are_timed, .begin = one_thread)
{
	static uint64_t words[2 * MPERF_TIMED_MAX][MPERF_TIMED_WORDS];
	uint64_t begin[2 * MPERF_TIMED_MAX];
	for (unsigned i = 0; i < 2 * MPERF_TIMED_MAX; i++)
		begin[i] = __mperf_loop_begin(words[i], 1);
	for (unsigned i = 2 * MPERF_TIMED_MAX; i-- > 0;)
		__mperf_loop_end(words[i], begin[i]);
	for (unsigned i = 0; i < 2 * MPERF_TIMED_MAX; i++)
		ck_assert_uint_eq(words[i][MPERF_TIMED_ENTRIES], 1);
	ck_assert_uint_eq(mperf_thread_self()->n_timed, 0);
}

TEST(a_nest_that_a_thread_does_not_note_pauses_none, .begin = one_thread)
{
	static uint64_t words[MPERF_TIMED_MAX + 1][MPERF_TIMED_WORDS];
	uint64_t begin[MPERF_TIMED_MAX + 1];
	for (unsigned i = 0; i <= MPERF_TIMED_MAX; i++)
		begin[i] = __mperf_loop_begin(words[i], 1);
	uint64_t *last = words[MPERF_TIMED_MAX - 1];
	ck_assert_uint_eq(last[MPERF_TIMED_OPEN_NS], begin[MPERF_TIMED_MAX - 1]);
	__mperf_loop_end(words[MPERF_TIMED_MAX], begin[MPERF_TIMED_MAX]);
	ck_assert_uint_eq(last[MPERF_TIMED_OPEN_NS], begin[MPERF_TIMED_MAX - 1]);
}

/* --- regions ---------------------------------------------------------------------------------- */

TEST(a_region_is_its_path)
{
	struct mperf_region a = {"a", "a.c", 1, 0}, b = {"b", "a.c", 2, 0};
	struct region *outer = mperf_region_get(&mperf_state, NULL, &a);
	struct region *inner = mperf_region_get(&mperf_state, outer, &b);
	ck_assert(outer && inner);
	ck_assert_ptr_eq(mperf_region_get(&mperf_state, NULL, &a), outer);
	ck_assert_ptr_eq(mperf_region_get(&mperf_state, outer, &b), inner);
	ck_assert_ptr_ne(mperf_region_get(&mperf_state, NULL, &b), inner);
	ck_assert_str_eq(inner->text, "b");
	ck_assert_str_eq(inner->text + inner->name_bytes, "a.c");
}

TEST(markers_of_the_same_text_are_the_same_region)
{
	char name[] = "a", source[] = "a.c";
	struct mperf_region a = {"a", "a.c", 1, 0}, copy = {name, source, 1, 0};
	struct region *r = mperf_region_get(&mperf_state, NULL, &a);
	ck_assert_ptr_eq(mperf_region_get(&mperf_state, NULL, &copy), r);
	memset(name, 'x', 1);
	ck_assert_str_eq(r->text, "a");
	copy.line = 2;
	ck_assert_ptr_ne(mperf_region_get(&mperf_state, NULL, &copy), r);
}

TEST(texts_that_are_missing_or_too_long_are_cut)
{
	char text[4 * MPERF_REGION_TEXT_MAX];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct mperf_region site = {text, text, 1, 0}, none = {NULL, NULL, 0, 0};
	struct region *r = mperf_region_get(&mperf_state, NULL, &site);
	ck_assert_uint_eq(r->name_bytes, MPERF_REGION_TEXT_MAX);
	ck_assert_uint_eq(strlen(r->text), MPERF_REGION_TEXT_MAX - 1);
	r = mperf_region_get(&mperf_state, NULL, &none);
	ck_assert(r->name_bytes == 1 && r->source_bytes == 1);
}

TEST(regions_beyond_the_limit_are_not_entered)
{
	struct mperf_region site = {"n", "n.c", 0, 0};
	unsigned n = 0;
	for (; n < 2 * MPERF_REGIONS_MAX; n++) {
		site.line = n + 100;
		if (!mperf_region_get(&mperf_state, NULL, &site))
			break;
	}
	ck_assert_uint_le(n, MPERF_REGIONS_MAX);
	ck_assert_uint_gt(n, MPERF_REGIONS_MAX / 2);
	site.line = 100;
	ck_assert_ptr_nonnull(mperf_region_get(&mperf_state, NULL, &site));
}

/* --- build ids -------------------------------------------------------------------------------- */

struct elf_made {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	struct {
		Elf64_Nhdr other;
		char other_name[4], other_bytes[4];
		Elf64_Nhdr id;
		char name[4];
		uint8_t bytes[20];
	} notes;
};

static struct elf_made elf_good(void)
{
	struct elf_made e = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
			.e_phoff = offsetof(struct elf_made, segments),
			.e_phnum = 3},
		.segments = {{.p_type = PT_LOAD, .p_offset = 4096, .p_vaddr = 0x403000},
			{.p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x400000},
			{.p_type = PT_NOTE,
				.p_vaddr = 0x400000 + offsetof(struct elf_made, notes),
				.p_memsz = sizeof(e.notes)}},
		.notes = {.other = {.n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_ABI_TAG},
			.other_name = "GNU",
			.id = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
			.name = "GNU",
			.bytes = "0123456789abcdefghi"},
	};
	return e;
}

static uint8_t id[MPERF_BUILD_ID_BYTES_MAX];

TEST(a_build_id_is_found_behind_other_notes)
{
	struct elf_made e = elf_good();
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 20);
	ck_assert_mem_eq(id, "0123456789abcdefghi", 20);
}

TEST(what_is_no_elf_has_no_build_id)
{
	struct elf_made e = elf_good();
	ck_assert_uint_eq(mperf_object_build_id(NULL, id), 0);
	e.header.e_ident[EI_CLASS] = ELFCLASS32;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.header.e_ident[1] = 'X';
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.header.e_phnum = UINT16_MAX;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
}

TEST(notes_that_overrun_are_not_followed)
{
	struct elf_made e = elf_good();
	e.notes.other.n_descsz = UINT32_MAX;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.notes.other.n_namesz = UINT32_MAX - 2;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.notes.id.n_descsz = 24;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.segments[2].p_memsz = UINT64_MAX;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.segments[2].p_memsz = sizeof(Elf64_Nhdr) - 1;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
}

TEST(somebody_elses_note_is_no_build_id)
{
	struct elf_made e = elf_good();
	memcpy(e.notes.name, "ABC", 4);
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
	e = elf_good();
	e.notes.id.n_descsz = 0;
	ck_assert_uint_eq(mperf_object_build_id(&e, id), 0);
}

/* --- granted counters ------------------------------------------------------------------------- */

TEST(a_counter_that_shared_the_pmu_is_scaled)
{
	const struct grant_reading from[MPERF_GRANTS_MAX] = {
		{10, 100, 100}, {10, 100, 50}, {10, 0, 0}};
	const struct grant_reading to[MPERF_GRANTS_MAX] = {
		{40, 300, 300}, {40, 300, 100}, {40, 0, 0}};
	uint64_t counts[MPERF_GRANTS_MAX];
	ck_assert(mperf_grant_counts(from, to, counts));
	ck_assert_uint_eq(counts[0], 30);
	ck_assert_uint_eq(counts[1], 120); /* it ran a quarter of the time */
	ck_assert_uint_eq(counts[2], 30);  /* it tells no time */
	ck_assert_uint_eq(counts[3], 0);   /* there is none */
}

TEST(of_counters_that_did_not_all_run_nothing_is_known)
{
	const struct grant_reading from[MPERF_GRANTS_MAX] = {{10, 100, 100}, {10, 100, 50}};
	const struct grant_reading to[MPERF_GRANTS_MAX] = {{40, 300, 300}, {10, 300, 50}};
	uint64_t counts[MPERF_GRANTS_MAX];
	ck_assert(!mperf_grant_counts(from, to, counts));
}
