/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Finds places of OpenMP in their process. A program reports an address, and the file and offset
 * that it has there. The frame that we find at the address names the place only if file and offset
 * agree.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/attribute.h"
#include "daemon/loops/feed_private.h"

/* Is this the file and offset that the program reported for the address? If not, the frame does not name
 * the place. */
static bool is_frame_of(const struct loop_site *site, const struct frame *frame)
{
	const struct loop_site_key *key = &site->key;
	const struct file *file = frame->file;
	char offset[LOOP_PLACE_NEST_BYTES];
	const char *at = strchr(key->nest, '@');
	snprintf(offset, sizeof(offset), "@%" PRIx64, frame->offset + 1);
	bool same_id = file->n_build_id == 0 || key->n_build_id == 0 ||
		       (key->n_build_id == file->n_build_id &&
			       memcmp(key->build_id, file->build_id, file->n_build_id) == 0);
	return same_id && at && strcmp(at, offset) == 0;
}

int feed_find_frame(struct feed *f, struct task *task, const struct loop_counts *c)
{
	struct frame *frame;
	if (!c->address || c->site->frame || !task || !f->o.attribute)
		return 0;
	int r = attribute_call(f->o.attribute, task, c->address, &frame);
	if (r == 0 && is_frame_of(c->site, frame))
		c->site->frame = frame;
	return r < 0 ? r : 0;
}
