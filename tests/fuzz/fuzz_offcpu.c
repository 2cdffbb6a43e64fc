/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a look at threads without a hart, or as the record of a waker: what is decoded lies in them. The first
 * byte says which. */

#include <stdlib.h>

#include "daemon/decode/offcpu.h"

static void check(const struct offcpu_thread *t, const uint8_t *data, size_t size)
{
	const struct record_sample *s = &t->record.sample;
	if (t->kind >= N_OFFCPU_KINDS || s->n_callchain > OFFCPU_CHAIN_MAX + 1)
		abort();
	if (s->n_stack && (s->stack < data || s->stack + s->n_stack > data + size))
		abort();
}

static void take_waker(const uint8_t *data, size_t size)
{
	struct offcpu_thread t;
	if (offcpu_decode_waking(data, size, &t) != 0)
		return;
	check(&t, data, size);
	if (t.same || t.wakee <= 0 || t.wait == 0 || (t.is_interrupt && t.record.tid != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct offcpu_thread t;
	size_t used;
	if (size == 0)
		return 0;
	const bool is_waker = *data++ & 1;
	size--;
	if (is_waker) {
		take_waker(data, size);
		return 0;
	}
	for (size_t at = 0; offcpu_decode(data + at, size - at, &t, &used) == 0; at += used) {
		if (used == 0 || used > size - at || t.wakee != 0)
			abort();
		check(&t, data + at, used);
	}
	return 0;
}
