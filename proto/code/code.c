/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "proto/code/code.h"

#include <math.h>
#include <string.h>

static bool is_estimate(const struct code_estimate *e)
{
	if (!isfinite(e->value))
		return true;
	return e->value >= 0 && e->low >= 0 && e->low <= e->value && e->value <= e->high;
}

static bool is_loop(const struct code_loop *l)
{
	bool sound = l->start <= l->last && isfinite(l->ns) && l->ns >= 0 &&
		     isfinite(l->instructions) && is_estimate(&l->bytes_loaded) &&
		     is_estimate(&l->bytes_stored);
	for (size_t i = 0; i < N_CODE_OPS; i++)
		sound = sound && is_estimate(&l->operations[i]) && is_estimate(&l->intensity[i]);
	return sound;
}

bool code_reply_check(const void *bytes, size_t n, uint32_t n_samples)
{
	struct code_reply r;
	struct code_loop l;
	uint64_t samples = 0;
	if (n < sizeof(r))
		return false;
	memcpy(&r, bytes, sizeof(r));
	if (r.magic != CODE_MAGIC || r.version != CODE_VERSION || r.state < CODE_READ ||
		r.state > CODE_UNKNOWN_ISA || r.n_loops > n_samples ||
		n != sizeof(r) + r.n_loops * sizeof(l) || r.outside > r.samples)
		return false;
	for (uint32_t i = 0; i < r.n_loops; i++) {
		memcpy(&l, (const char *)bytes + sizeof(r) + i * sizeof(l), sizeof(l));
		samples += l.samples;
		if (!is_loop(&l) || l.samples > r.samples || samples > r.samples)
			return false;
	}
	return true;
}
