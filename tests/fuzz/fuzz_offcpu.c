/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a look at threads without a hart: what is decoded lies in them. */

#include <stdlib.h>

#include "daemon/decode/offcpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct offcpu_thread t;
	size_t used;
	for (size_t at = 0; offcpu_decode(data + at, size - at, &t, &used) == 0; at += used) {
		const struct record_sample *s = &t.record.sample;
		if (used == 0 || used > size - at || t.kind >= N_OFFCPU_KINDS)
			abort();
		if (s->n_stack &&
			(s->stack < data + at || s->stack + s->n_stack > data + at + used))
			abort();
		if (s->n_callchain > OFFCPU_CHAIN_MAX + 1)
			abort();
	}
	return 0;
}
