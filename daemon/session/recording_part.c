/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The shares are computed over the whole time of the recording, since a copied stack is counted some time
 * after its sample came. */

#include "daemon/session/recording_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/attribute.h"

struct part_hart {
	uint64_t n_before, n_mine; /* samples: of all before it began; taken */
	uint64_t lost_before[N_LOSSES], recorded[N_LOSSES]; /* recorded: at the last look */
};

struct recording_part {
	const struct attribute *attribute;
	struct part_hart hart[];
};

int recording_part_new(const struct attribute *a, int n_harts, uint64_t (*lost)[N_LOSSES],
	struct recording_part **ret_part)
{
	struct recording_part *p = calloc(1, sizeof(*p) + (size_t)n_harts * sizeof(*p->hart));
	if (!p)
		return -ENOMEM;
	p->attribute = a;
	for (int hart = 0; hart < n_harts; hart++) {
		p->hart[hart].n_before = attribute_n_fired(a, hart);
		memcpy(p->hart[hart].lost_before, lost[hart], sizeof(*lost));
		memcpy(p->hart[hart].recorded, lost[hart], sizeof(*lost));
	}
	*ret_part = p;
	return 0;
}

void recording_part_take(struct recording_part *p, int hart, uint64_t n_samples)
{
	if (p)
		p->hart[hart].n_mine += n_samples;
}

uint64_t recording_part_lost(struct recording_part *p, int hart, enum loss cause, uint64_t lost)
{
	if (!p || !loss_kinds[cause].samples || lost <= p->hart[hart].lost_before[cause])
		return lost;
	struct part_hart *h = &p->hart[hart];
	uint64_t n_all = attribute_n_fired(p->attribute, hart) - h->n_before;
	uint64_t since = lost - h->lost_before[cause];
	/* if no samples came, all of the losses may be ours */
	if (h->n_mine < n_all)
		since = (uint64_t)((double)since * (double)h->n_mine / (double)n_all + 0.5);
	if (h->lost_before[cause] + since > h->recorded[cause])
		h->recorded[cause] = h->lost_before[cause] + since;
	return h->recorded[cause];
}

struct recording_part *recording_part_free(struct recording_part *p)
{
	free(p);
	return NULL;
}
