/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The share of a walk's lost samples that belongs to a recording of selected tasks
 *
 * A walk samples whole harts, and the task of a sample lost to a full ring is not known. So a
 * recording takes the same share of a hart's lost samples as it has of the samples since it began:
 * never more than its tasks can have had.
 */

#include <stdint.h>

#include "daemon/sampler/stream.h"

struct attribute;
struct recording_part;

/* lost: per hart, the walk's losses so far, none of which are the recording's. 0 or -ENOMEM. */
int recording_part_new(const struct attribute *a, int n_harts, uint64_t (*lost)[N_LOSSES],
	struct recording_part **ret_part);

/* Count samples of that hart as the recording's; p may be NULL. */
void recording_part_take(struct recording_part *p, int hart, uint64_t n_samples);

/* The recording's share of the walk's losses: all losses until the recording began, and its share of the
 * later ones. Losses that cost no samples count in full. The result never falls. p NULL: all losses. */
uint64_t recording_part_lost(struct recording_part *p, int hart, enum loss cause, uint64_t lost);

struct recording_part *recording_part_free(struct recording_part *p);
