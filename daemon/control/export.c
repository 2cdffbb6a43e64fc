/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * export: parts of a profile become answers as they come. A private daemon reads the file itself.
 * It has one client, and waits whenever that client has not read what was sent: so a recording of
 * any size takes little memory on both sides. A child reads the store, and its answer is a file
 * (offload_job.h).
 */
#include <errno.h>

#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"
#include "daemon/control/store_query.h"
#include "daemon/query/samples/export.h"

static int send_part(void *userdata, const Mperf__Profile *part)
{
	struct request *q = userdata;
	int r = request_profile(q, part);
	return r == 0 && q->peer->options->private ? peer_flush(q->peer) : r;
}

static int send_provenance(void *userdata, const struct answer_provenance *p)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, userdata);
	int r = to.provenance(to.userdata, p);
	int ended = row_stream_end(&stream);
	return r == 0 ? ended : r;
}

static struct export_answer answer_of(struct request *q)
{
	return (struct export_answer){
		.part = send_part, .provenance = send_provenance, .userdata = q};
}

static const Mperf__Filter *export_filter(const Mperf__Request *m)
{
	return m->export->filter;
}

static enum tier export_coarsest(const Mperf__Request *m, const struct query_filter *filter)
{
	const struct query_question question = {.by = QUERY_BY_THREAD, .filter = filter};
	(void)m;
	return query_coarsest(&question);
}

static int export_run(const struct store_question_run *run)
{
	/* its answer is that of rows, which go to the same request */
	struct row_stream *stream = run->to->userdata;
	const struct export_answer to = answer_of(stream->request);
	return query_store_export(run->source, run->n_sources, run->filter, &to, run->error);
}

int control_export(struct request *q, const Mperf__Request *request)
{
	static const struct store_question store = {export_filter, export_coarsest, export_run};
	const Mperf__ExportRequest *m = request->export;
	if (query_asks_store(q, m->path))
		return store_query_start(q, request, &store);
	sqlite3 *db;
	int r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct query_filter filter = query_filter_of(q, m->filter);
	struct row_stream stream = {.request = q};
	const struct export_answer to = answer_of(q);
	r = query_export(&db, 1, &filter, &to, &error);
	sqlite3_close(db);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0; /* the next thing that is written to it finds that, too */
	return query_answer_end(q, &stream, r, &error);
}
