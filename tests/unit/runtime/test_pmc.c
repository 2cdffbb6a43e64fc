/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pages of events as a kernel would leave them, and a counter that is not a processor's: no machine
 * here has one that programs may read.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "runtime/grant.h"
#include "runtime/pmc.h"
#include "tests/unit/test.h"

static struct perf_event_mmap_page page;
static uint32_t asked;    /* number of the counter that was read last */
static uint64_t holds;    /* what it holds */
static unsigned switched; /* how often the thread is switched while it reads */

static uint64_t counter(uint32_t number)
{
	asked = number;
	if (switched > 0) {
		switched--;
		page.lock += 2;
		page.offset += 1000;
	}
	return holds;
}

static void page_reset(void)
{
	memset(&page, 0, sizeof(page));
	page.cap_user_rdpmc = 1;
	page.index = 3;
	page.pmc_width = 48;
	page.offset = 5000;
	page.time_enabled = 70;
	page.time_running = 60;
	asked = UINT32_MAX;
	holds = 17;
	switched = 0;
}

TEST(a_counter_in_use_is_read_with_what_was_counted_before)
{
	struct grant_reading r = {0};
	page_reset();
	ck_assert(mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(asked, 2); /* the index less 1 */
	ck_assert_uint_eq(r.value, 5017);
	ck_assert_uint_eq(r.enabled_ns, 70);
	ck_assert_uint_eq(r.running_ns, 60);
}

TEST(a_counter_is_a_signed_number_of_its_width)
{
	static const struct {
		unsigned bits;
		uint64_t holds, value;
	} cases[] = {
		{48, UINT64_C(0xffffffffffff), 4999},           /* -1 */
		{48, UINT64_C(0x7fffffffffff), 0x800000001387}, /* the largest */
		{48, UINT64_C(0xabcd000000000001), 5001},       /* bits beyond it say nothing */
		{32, UINT64_C(0x80000000), 5000 - (UINT64_C(1) << 31)}, /* the least */
		{1, 1, 4999},
		{64, UINT64_MAX, 4999},
		{0, 17, 5017}, /* a kernel that does not say */
		{77, 17, 5017},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct grant_reading r = {0};
		page_reset();
		page.pmc_width = (uint16_t)cases[i].bits;
		holds = cases[i].holds;
		ck_assert(mperf_pmc_read(&page, counter, &r));
		ck_assert_msg(
			r.value == cases[i].value, "%zu: %#llx", i, (unsigned long long)r.value);
	}
}

TEST(an_event_that_is_in_no_counter_is_not_read)
{
	struct grant_reading r = {.value = 7};
	page_reset();
	page.index = 0;
	ck_assert(!mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(asked, UINT32_MAX);
	ck_assert_uint_eq(r.value, 7);
}

TEST(a_counter_that_programs_may_not_read_is_not_read)
{
	struct grant_reading r = {.value = 7};
	page_reset();
	page.cap_user_rdpmc = 0;
	ck_assert(!mperf_pmc_possible(&page));
	ck_assert(!mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(asked, UINT32_MAX);
}

TEST(a_thread_that_is_switched_while_it_reads_reads_again)
{
	struct grant_reading r = {0};
	page_reset();
	switched = 3;
	ck_assert(mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(r.value, 8017);
}

TEST(a_page_that_never_rests_is_given_up)
{
	struct grant_reading r = {.value = 7};
	page_reset();
	switched = UINT32_MAX;
	ck_assert(!mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(r.value, 7);
	page_reset();
	page.lock = 1; /* a change has begun */
	ck_assert(!mperf_pmc_read(&page, counter, &r));
	ck_assert_uint_eq(r.value, 7);
}

TEST(what_a_thread_read_by_itself_is_scaled_by_nothing)
{
	/* Times of the last start: they differ by less than what passed, alike. */
	const struct grant_reading from[MPERF_GRANTS_MAX] = {{10, 100, 90, true}};
	const struct grant_reading to[MPERF_GRANTS_MAX] = {{40, 150, 140, true}};
	uint64_t counts[MPERF_GRANTS_MAX];
	ck_assert(mperf_grant_counts(from, to, counts));
	ck_assert_uint_eq(counts[0], 30);
}

TEST(an_event_that_began_to_share_the_pmu_while_read_directly_is_dropped)
{
	const struct grant_reading from[MPERF_GRANTS_MAX] = {{10, 100, 100, true}};
	const struct grant_reading to[MPERF_GRANTS_MAX] = {{40, 300, 200, false}};
	uint64_t counts[MPERF_GRANTS_MAX];
	ck_assert(!mperf_grant_counts(from, to, counts));
}
