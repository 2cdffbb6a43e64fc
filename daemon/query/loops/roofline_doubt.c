/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Counts of the hardware that cannot be: they are left out of the rows. */

#include "daemon/count/plausible.h"
#include "daemon/query/loops/roofline.h"

static uint32_t doubt_granted(const struct roofline *r, uint32_t group)
{
	struct plausible_count counts[MPERF_GRANTS_MAX];
	char text[PLAUSIBLE_TEXT_BYTES];
	const double *value = r->total[group].value;
	unsigned n = r->facts.n_granted;
	uint32_t doubts = 0;
	for (unsigned i = 0; i < n; i++)
		counts[i] = (struct plausible_count){
			.event = text_of(&r->facts.texts, r->facts.granted[i]),
			.count = value[LOOP_GRANTED + i],
			.ns = value[LOOP_GRANTED_NS],
			.is_scaled =
				true, /* where they shared a counter, which is not known here */
		};
	for (unsigned i = 0; i < n; i++)
		if (plausible_doubt(counts, n, i, text))
			doubts |= 1u << i;
	return doubts;
}

static uint32_t doubt_samples(const struct roofline *r, uint32_t group)
{
	const struct roof_sums *s = &r->total[group];
	const struct plausible_count counts[] = {
		{.event = "cycles", .count = s->cycles, .ns = s->sampled_ns, .is_scaled = true},
		{.event = "instructions",
			.count = s->instructions,
			.ns = s->sampled_ns,
			.is_scaled = true},
	};
	char text[PLAUSIBLE_TEXT_BYTES];
	bool doubted = s->cycles > 0 &&
		       (plausible_doubt(counts, 2, 0, text) || plausible_doubt(counts, 2, 1, text));
	return doubted ? ROOF_DOUBT_SAMPLES : 0;
}

uint32_t roofline_doubts(const struct roofline *r, uint32_t group)
{
	return r->q.by == ROOFLINE_REGION ? doubt_granted(r, group) : doubt_samples(r, group);
}
