/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Good, look or doubtful, and why. */

#include "client/report/trust.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

static Mperf__Provenance p;
static char *text;

static void begin(void)
{
	mperf__provenance__init(&p);
	p.samples = 100000;
	p.named_share = p.placed_share = 0.99;
}

static void end(void)
{
	free(text);
	text = NULL;
}

EACH_TEST(.begin = begin, .end = end);

static enum trust judged(void)
{
	size_t n;
	end();
	FILE *f = open_memstream(&text, &n);
	ck_assert_ptr_nonnull(f);
	const enum trust t = trust_write(&p, f);
	fclose(f);
	return t;
}

static void verdict_is(const char *wanted)
{
	char *said = NULL;
	size_t n;
	FILE *f = open_memstream(&said, &n);
	ck_assert_ptr_nonnull(f);
	trust_write_verdict(&p, f);
	fclose(f);
	ck_assert_str_eq(said, wanted);
	free(said);
}

TEST(many_named_samples_are_good)
{
	ck_assert_int_eq(judged(), TRUST_GOOD);
	verdict_is("100,000 samples: what is 50 % may be 49.8 to 50.2 %; no sample was lost; "
		   "99.0 % of the samples have a name "
		   "or a place");
}

TEST(few_samples_are_not)
{
	p.samples = 400;
	ck_assert_int_eq(judged(), TRUST_LOOK);
	verdict_is("400 samples: what is 50 % may be 48 to 52 %");
	p.samples = 99;
	ck_assert_int_eq(judged(), TRUST_DOUBTFUL);
	p.samples = 0;
	ck_assert_int_eq(judged(), TRUST_DOUBTFUL);
	verdict_is("there are no samples");
}

TEST(losses_count_if_they_are_samples)
{
	Mperf__Loss loss = MPERF__LOSS__INIT, *list[] = {&loss};
	p.loss = list;
	p.n_loss = 1;
	loss.cause = (char *)"ring full";
	loss.count = 6000;
	ck_assert_int_eq(judged(), TRUST_GOOD);
	loss.samples = true;
	ck_assert_int_eq(judged(), TRUST_DOUBTFUL);
	verdict_is("5.66 % of the samples were lost");
	loss.count = 1000;
	ck_assert_int_eq(judged(), TRUST_LOOK);
}

TEST(names_and_cost_count)
{
	p.placed_share = p.named_share = 0.6;
	ck_assert_int_eq(judged(), TRUST_LOOK);
	p.placed_share = 0.95; /* a place is as good */
	ck_assert_int_eq(judged(), TRUST_GOOD);
	p.cost_share = 0.03;
	ck_assert_int_eq(judged(), TRUST_LOOK);
	p.coming_share = 0.6;
	ck_assert_int_eq(judged(), TRUST_DOUBTFUL);
	verdict_is("names of 60.0 % of the samples are still coming");
}

TEST(the_worst_comes_first_and_notes_are_no_markup)
{
	char *note[] = {(char *)"<b>note</b>"};
	p.samples = 99;
	p.note = note;
	p.n_note = 1;
	judged();
	ck_assert_ptr_eq(strstr(text, "<li>99 samples"), text);
	ck_assert_ptr_nonnull(strstr(text, "<li>&lt;b&gt;note&lt;/b&gt;</li>"));
}
