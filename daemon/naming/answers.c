/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/naming/answers.h"

#include <stdlib.h>
#include <string.h>

/* The first answer that begins after the offset. */
static uint32_t first_after(const struct naming_answers *a, uint64_t offset)
{
	uint32_t low = 0, high = a->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (a->answer[middle].from <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct naming_answer *answers_find(const struct naming_answers *a, uint64_t offset)
{
	const uint32_t i = first_after(a, offset);
	const struct naming_answer *before = i > 0 ? &a->answer[i - 1] : NULL;

	return before && offset - before->from < before->n_bytes ? before : NULL;
}

static bool grow(struct naming_answers *a)
{
	const uint32_t size = a->size ? 2 * a->size : 16;

	if (a->n < a->size)
		return true;
	struct naming_answer *grown = reallocarray(a->answer, size, sizeof(*grown));
	if (!grown)
		return false;
	a->answer = grown;
	a->size = size;
	return true;
}

bool answers_add(struct naming_answers *a, const struct naming_answer *new)
{
	const uint32_t i = first_after(a, new->from);
	const bool overlaps = answers_find(a, new->from) ||
			      (i < a->n && a->answer[i].from - new->from < new->n_bytes);

	if (overlaps || a->n >= ANSWERS_OF_FILE_MAX || !grow(a))
		return false;
	memmove(&a->answer[i + 1], &a->answer[i], (a->n - i) * sizeof(*a->answer));
	a->answer[i] = *new;
	a->n++;
	return true;
}

void answers_clear(struct naming_answers *a)
{
	free(a->answer);
	*a = (struct naming_answers){0};
}
