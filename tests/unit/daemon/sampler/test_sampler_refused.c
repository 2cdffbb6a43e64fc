/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of what a session that may not sample at all is told: which sysctl, its value, what to do;
 * in a sentence that is whole, and about nothing that only we know of
 */

#include "daemon/sampler/sampler_private.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static struct event_error refused(const char *machine, const struct sampler_options *o)
{
	struct replay *r = case_load(machine);
	struct sampler *s = NULL;
	struct event_error error = {""};

	ck_assert_int_eq(sampler_new(replay_kernel(r), o, &s, &error), SAMPLER_REFUSED);
	case_end(r, NULL);
	return error;
}

TEST(debians_level_is_told_whole)
{
	struct event_error e = refused("paranoid3", &(struct sampler_options){.hz = 99});

	ck_assert(strncmp(e.text, "kernel.perf_event_paranoid = 3 ", 31) == 0);
	ck_assert_ptr_nonnull(strstr(e.text, "; sysctl kernel.perf_event_paranoid=2"));
	ck_assert_str_eq(e.text + strlen(e.text) - 22, " or give CAP_SYS_ADMIN");
	ck_assert_ptr_null(strstr(e.text, "dummy"));
}

TEST(level_two_is_told_whole)
{
	struct event_error e = refused("paranoid2", &(struct sampler_options){.hz = 99});

	ck_assert(strncmp(e.text, "kernel.perf_event_paranoid = 2 ", 31) == 0);
	ck_assert_str_eq(e.text + strlen(e.text) - 19, " without the kernel");
}

TEST(an_event_that_was_asked_for_is_named)
{
	const pid_t pids[] = {100};
	struct replay *r = case_load("paranoid2");
	struct event_list events = case_events(r, "cpu-clock:k");
	replay_free(r);
	struct event_error e = refused("paranoid2",
		&(struct sampler_options){
			.hz = 99, .per_task = true, .pids = pids, .n_pids = 1, .events = &events});

	ck_assert(strncmp(e.text, "cpu-clock:k: kernel.perf_event_paranoid = 2 ", 44) == 0);
}

TEST(the_first_refusal_is_kept_and_cut_at_its_end_alone)
{
	struct event_error e = {""};
	char longer[2 * EVENT_ERROR_BYTES];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	opening_explain(&e, "%s", longer);
	ck_assert_uint_eq(strlen(e.text), EVENT_ERROR_BYTES - 1);
	opening_explain(&e, "second");
	ck_assert_int_eq(e.text[0], 'x');
}
