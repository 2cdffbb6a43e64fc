/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/control/record_private.h"

#include <errno.h>

#include "daemon/query/sources.h"

struct end {
	const struct answer *to;
	const char *note;
};

static int ignore_columns(void *userdata, const struct answer_column *c, size_t n)
{
	(void)userdata;
	(void)c;
	(void)n;
	return 0;
}

static int ignore_row(void *userdata, const struct answer_value *v, size_t n)
{
	(void)userdata;
	(void)v;
	(void)n;
	return 0;
}

static int pass_provenance(void *userdata, const struct answer_provenance *p)
{
	const struct end *end = userdata;
	struct answer_provenance told = *p;
	if (end->note && told.n_notes < ANSWER_NOTES_MAX)
		told.note[told.n_notes++] = end->note;
	return end->to->provenance(end->to->userdata, &told);
}

int record_tell(const char *path, int fd, const struct answer *to, const char *note)
{
	sqlite3 *db;
	struct segment_error broken;
	struct segment_identity ours; /* the hash that we have just written need not be compared */
	int r = segment_identify(fd, &ours);
	if (r == 0)
		r = segment_open_known(path, &ours, &db, &broken);
	if (r != 0)
		return r < 0 ? r : -EIO; /* we have just sealed it */

	struct end end = {to, note};
	const struct answer answer = {ignore_columns, ignore_row, pass_provenance, &end};
	const struct query_question by_hart = {
		.by = QUERY_BY_HART, .filter = &(struct query_filter){0}};
	struct query_error error;
	r = query_hotspots(&(struct query_source){.db = db}, 1, &by_hart, &answer, &error);
	sqlite3_close(db);
	return r;
}
