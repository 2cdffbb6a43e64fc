/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Labels of tasks: a process has them, and its threads the same
 *
 * Segments from before there were labels have no tables for them.
 */

#include "daemon/query/load_part.h"
#include "daemon/store/segment/version.h"

static int take_labels(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_tasks);
	if (id == 0 || !l->task[id].known)
		return 0;
	l->task[id].labels_uid = (uint32_t)cursor_integer(c, 2);
	return cursor_text(c, 1, &l->task[id].labels);
}

int load_labels(struct loaded *l)
{
	int version = SEGMENT_VERSION;
	(void)segment_version(l->db, &version); /* where it fails, the next statement does too */
	if (version < SEGMENT_HAS_LABELS)
		return 0;
	int r = load_each(l,
		"SELECT task, labels, uid FROM task_label_set JOIN label_set s ON s.id = label_set "
		"ORDER BY task",
		false, take_labels);
	for (uint32_t i = 1; i <= l->n_tasks && r == 0; i++) {
		l->task[i].labels = l->task[l->task[i].process].labels;
		l->task[i].labels_uid = l->task[l->task[i].process].labels_uid;
	}
	return r;
}
