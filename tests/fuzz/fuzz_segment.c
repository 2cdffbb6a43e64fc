/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A file that claims to be a segment is opened and asked about in every way. Whatever it is, we
 * answer or refuse; the corpus is a real one, with small pages so that few bytes reach everything.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/compare/gather.h"
#include "daemon/query/loops/blocks.h"
#include "daemon/query/loops/roofline.h"
#include "daemon/query/processes/report.h"
#include "daemon/query/samples/timeline.h"
#include "daemon/store/segment/trailer.h"
#include "tests/fuzz/mutate.h"

MUTATE_ALSO_BY(mutate_sqlite)

static char path[] = "/dev/shm/fuzz_segment.XXXXXX";

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	(void)u, (void)c, (void)n;
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	(void)u, (void)v, (void)n;
	return 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	(void)u, (void)p;
	return 0;
}

/* Both sides of a comparison are this file. */
static void compare_by(int by, sqlite3 *db, const struct query_filter *filter)
{
	const struct query_question question = {.filter = filter};
	const struct gathered_column *column;
	const struct compare_runs *runs;
	struct query_error error;
	struct gather *g;
	double value[2], off[2];
	if (gather_new(by, &g) != 0)
		abort();
	int r = gather_run(g, false, db, &question, &error);
	if (r == 0)
		r = gather_run(g, true, db, &question, &error);
	if (r == 0)
		r = gather_table(g, &runs);
	for (size_t row = 0; r == 0 && row < runs->n_functions; row++) {
		const char *names[GATHER_PARTS];
		gather_names(g, row, names);
		for (size_t i = 0; i < gather_value_columns(g, &column); i++)
			gather_values(g, row, i, value, off);
	}
	gather_free(g);
}

static void forget(void)
{
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	if (fd < 0) {
		fd = mkstemp(path);
		if (fd < 0)
			abort();
		atexit(forget);
	}
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();

	/* An attacker who damages a file seals it, too. */
	if (trailer_write(fd) != 0)
		abort();
	sqlite3 *db;
	struct segment_error refusal;
	/* a file with a wrong seal is refused; here the rest is tested, too */
	if (segment_open(path, &db, &refusal) != 0 &&
		(trailer_write(fd) < 0 || segment_open(path, &db, &refusal) != 0))
		return 0;
	const struct answer answer = {take_columns, take_row, take_provenance, NULL};
	struct query_source source = {.db = db};
	const struct query_filter all = {0}, some = {.since_ns = 1, .event = "cycles"},
				  waits = {.event = "waiting", .by_wait = true},
				  wall = {.wall = true};
	struct query_error error;
	for (int by = 0; by < N_QUERY_BY; by++)
		query_hotspots(&source, 1,
			&(struct query_question){.by = (enum query_by)by,
				.limit = 3,
				.inlined = by % 2,
				.filter = &all},
			&answer, &error);
	for (int by = QUERY_BY_FUNCTION; by < N_QUERY_BY; by++)
		query_hotspots(&source, 1,
			&(struct query_question){
				.by = (enum query_by)by, .limit = 3, .filter = &wall},
			&answer, &error);
	query_report(&source, 1, &(struct query_question){.limit = 3, .filter = &all},
		&(struct report_of){.says = "run", .is_recording = true}, &answer, &error);
	static const enum query_by lines[] = {QUERY_BY_HART, QUERY_BY_PROCESS, QUERY_BY_JOB};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		query_timeline(&source, 1,
			&(struct query_question){
				.by = lines[i], .limit = 3, .filter = i ? &all : &some},
			&(struct timeline_of){.every_ns = i ? 0 : 1000000000}, &answer, &error);
	query_flamegraph(&source, 1, &all, &answer, &error);
	query_flamegraph(&source, 1, &wall, &answer, &error);
	query_flamegraph(&source, 1, &some, &answer, &error);
	query_flamegraph(&source, 1, &waits, &answer, &error);
	for (int by = 0; by < N_ROOFLINE_BY; by++) {
		const struct roofline_question question = {
			.by = (enum roofline_by)by, .limit = 3, .filter = &all};
		query_roofline(&source, 1, &question, &answer, &error);
	}
	const struct blocks_question blocks = {.every_ns = 1, .filter = &all};
	query_blocks(&source, 1, &blocks, &answer, &error);
	compare_by(QUERY_BY_LINE, db, &all);
	compare_by(GATHER_BY_LOOP, db, &all);
	sqlite3_close(db);
	return 0;
}
