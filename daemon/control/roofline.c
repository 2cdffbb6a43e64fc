/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * roofline, blocks and parallel. A running program holds the counts since its last round in its own
 * memory. So before we query the service's store, we ask programs for a round, and wait for them so
 * briefly that the answer still seems prompt. A file gets no more counts, so it is read at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"
#include "daemon/control/store_query.h"
#include "daemon/loops/message.h"
#include "daemon/query/loops/blocks.h"
#include "daemon/query/loops/parallel.h"
#include "daemon/query/loops/roofline.h"
#include "daemon/service/service.h"
#include "proto/base/memory.h"

/* Bytes of a file that MPERF_OUTPUT named; a program of a thousand threads writes some MB. */
#define OUTPUT_BYTES_MAX (1ll << 30)
/* Programs answer within a millisecond, unless they are not running at all. */
#define ROUND_NS 300000000u

/* --- the questions ---------------------------------------------------------------------------- */

/* Answers run's request, of `from`. Returns as query_roofline. */
typedef int loops_of(const struct loop_origin *from, const struct store_question_run *run);

static int of_store(const struct store_question_run *run, loops_of *of)
{
	const struct loop_origin from = {.source = run->source, .n_sources = run->n_sources};
	return of(&from, run);
}

/* by and ops are -1 if there is no such word. */
static struct roofline_question roofline_question_of(
	const Mperf__RooflineRequest *m, const struct query_filter *filter)
{
	return (struct roofline_question){
		.by = (enum roofline_by)roofline_by_parse(*m->by ? m->by : "loop"),
		.ops = (enum roofline_ops)roofline_ops_parse(*m->ops ? m->ops : "fp"),
		.limit = m->limit,
		.inclusive = m->inclusive,
		.explains = m->explain,
		.filter = filter,
	};
}

static int roofline_of(const struct loop_origin *from, const struct store_question_run *run)
{
	struct roofline_question question =
		roofline_question_of(run->request->roofline, run->filter);
	question.cores = run->cores;
	return query_roofline(from, &question, run->to, run->error);
}

static int roofline_run(const struct store_question_run *run)
{
	return of_store(run, roofline_of);
}

static const Mperf__Filter *roofline_filter(const Mperf__Request *m)
{
	return m->roofline->filter;
}

static enum tier roofline_coarsest_of(const Mperf__Request *m, const struct query_filter *filter)
{
	const struct roofline_question question = roofline_question_of(m->roofline, filter);
	return roofline_coarsest(&question);
}

static const struct store_question roofline_store = {
	roofline_filter, roofline_coarsest_of, roofline_run};

static int blocks_of(const struct loop_origin *from, const struct store_question_run *run)
{
	const Mperf__BlocksRequest *m = run->request->blocks;
	const struct blocks_question question = {
		.every_ns = (uint64_t)m->every_ms * 1000000u,
		.limit = m->limit,
		.series = m->series,
		.cores = run->cores,
		.filter = run->filter,
	};
	return query_blocks(from, &question, run->to, run->error);
}

static int blocks_run(const struct store_question_run *run)
{
	return of_store(run, blocks_of);
}

static const Mperf__Filter *blocks_filter(const Mperf__Request *m)
{
	return m->blocks->filter;
}

/* Threads are in windows alone. */
static enum tier windows_only(const Mperf__Request *m, const struct query_filter *filter)
{
	(void)m, (void)filter;
	return TIER_WINDOW;
}

static const struct store_question blocks_store = {blocks_filter, windows_only, blocks_run};

static enum parallel_by parallel_by_of(const Mperf__ParallelRequest *m)
{
	return (enum parallel_by)parallel_by_parse(*m->by ? m->by : "region");
}

static int parallel_of(const struct loop_origin *from, const struct store_question_run *run)
{
	const Mperf__ParallelRequest *m = run->request->parallel;
	const struct parallel_question question = {
		.by = parallel_by_of(m),
		.limit = m->limit,
		.filter = run->filter,
	};
	return query_parallel(from, &question, run->to, run->error);
}

static int parallel_run(const struct store_question_run *run)
{
	return of_store(run, parallel_of);
}

static const Mperf__Filter *parallel_filter(const Mperf__Request *m)
{
	return m->parallel->filter;
}

static const struct store_question parallel_store = {parallel_filter, windows_only, parallel_run};

static struct feed *feed_of(const struct request *q)
{
	const struct service *service = q->peer->options->service;
	return service && service->walk ? service->walk->feed : NULL;
}

/* --- choosing what counts --------------------------------------------------------------------- */

/* Globs, each with its NUL, into a buffer of FEED_GLOBS_BYTES_MAX. False: they do not fit. */
static bool pack_globs(const Mperf__Selection *m, char *globs, uint32_t *ret_bytes)
{
	uint32_t at = 0;
	for (size_t i = 0; i < m->n_glob; i++) {
		size_t n = strlen(m->glob[i]) + 1;
		if (n > FEED_GLOBS_BYTES_MAX - at)
			return false;
		memcpy(globs + at, m->glob[i], n);
		at += (uint32_t)n;
	}
	*ret_bytes = at;
	return true;
}

/* 0; positive after an error was sent; -errno. */
static int choose(struct request *q, const Mperf__RooflineRequest *m)
{
	char globs[FEED_GLOBS_BYTES_MAX];
	struct feed_selection selection = {.one_in = m->select->one_in, .globs = globs};
	struct feed *feed = feed_of(q);
	if (!feed || !m->filter || m->filter->n_pid != 1)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Name one running program with --pid.",
			       "--loops and --sample work on one program at a time")
			       ?: 1;
	if (!pack_globs(m->select, globs, &selection.globs_bytes))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give fewer.",
			       "the names of --loops have more than %u bytes", FEED_GLOBS_BYTES_MAX)
			       ?: 1;
	pid_t pid = m->filter->pid[0];
	switch (feed_select(feed, pid, q->peer->uid, &selection)) {
	case 0:
		return 0;
	case FEED_NOT_YOURS:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			       "Ask its owner, or be root.",
			       "process %d belongs to another user, and only they may choose "
			       "what it counts",
			       pid)
			       ?: 1;
	default:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			       "Build it with mperf-cc and MPERF_PASS=mode=clone, and start it "
			       "after mperfd.",
			       "process %d does not report its counts to this service", pid)
			       ?: 1;
	}
}

/* --- waiting for a round ---------------------------------------------------------------------- */

struct round_job {
	struct job job;
	const struct store_question *question;
	Mperf__Request *request; /* a copy */
	uint64_t n_rounds;       /* that there are when all have answered */
	uint64_t until_ns;
};

static void round_free(struct job *job)
{
	struct round_job *j = (struct round_job *)job;
	if (j->request)
		mperf__request__free_unpacked(j->request, NULL);
	free(j);
}

/* The service's loop turns some times a second, and whenever a program's round arrives. */
static uint64_t round_deadline_ns(struct job *job, const struct request *q)
{
	const struct round_job *j = (const struct round_job *)job;
	const struct feed *feed = feed_of(q);
	if (!feed)
		return 0;
	uint64_t fresh_ns = service_fresh_ns(q->peer->options->service);
	uint64_t round_ns = feed_rounds(feed) >= j->n_rounds ? 0 : j->until_ns;
	return round_ns > fresh_ns ? round_ns : fresh_ns;
}

static int round_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct round_job *j = (struct round_job *)job;
	if (now_ns < round_deadline_ns(job, q))
		return 0;
	q->job = NULL;
	int r = store_query_start(q, j->request, j->question);
	round_free(job);
	return r < 0 ? r : q->job ? 0 : JOB_DONE;
}

static const struct job_kind round_kind = {
	.deadline_ns = round_deadline_ns,
	.dispatch = round_dispatch,
	.free = round_free,
};

/* Ask programs to report (only one if the query names one), then query the store. */
static int ask_store(
	struct request *q, const Mperf__Request *m, const struct store_question *question)
{
	const Mperf__Filter *filter = question->filter(m);
	struct feed *feed = feed_of(q);
	bool ended = filter && filter->until_ns;
	uint32_t n = 0;
	uint64_t before = feed ? feed_rounds(feed) : 0;
	const struct feed_reach reach = request_feed_reach(q);
	if (feed && !ended)
		n = feed_ask(feed, &reach, filter && filter->n_pid == 1 ? filter->pid[0] : 0);
	if (n == 0)
		return store_query_start(q, m, question);
	struct round_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct round_job){
		.job.kind = &round_kind,
		.question = question,
		.request = request_copy(&m->base),
		.n_rounds = before + n,
		.until_ns = kernel_real.now_ns(NULL) + ROUND_NS,
	};
	if (!j->request) {
		free(j);
		return -ENOMEM;
	}
	q->job = &j->job;
	return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Does it begin like a file that MPERF_OUTPUT named? */
static bool is_output(int fd)
{
	uint8_t bytes[FEED_HELLO_BYTES];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	return n > 0 && feed_message_begins_file(bytes, (size_t)n);
}

/* Read the whole file. 0; positive after a refusal was sent; -errno. */
static int read_whole(
	struct request *q, int fd, const char *path, uint8_t **ret_bytes, size_t *ret_n)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > OUTPUT_BYTES_MAX)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			       "Run the program for a shorter time.",
			       "%s has more than the %lld bytes that mperf reads", path,
			       OUTPUT_BYTES_MAX)
			       ?: 1;
	_cleanup_(freep) uint8_t *bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	size_t n = 0;
	ssize_t got = 1;
	while (n < (size_t)st.st_size && got > 0) {
		got = pread(fd, bytes + n, (size_t)st.st_size - n, (off_t)n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		return -errno;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_n = n;
	return 0;
}

/* A file of one of the two kinds. */
struct input {
	uint8_t *output; /* what MPERF_OUTPUT named; NULL: a segment */
	struct loop_output file;
	sqlite3 *db;
};

static void input_clear(struct input *in)
{
	free(in->output);
	sqlite3_close(in->db);
}

/* Such a file is of one program from its beginning to its end, and says no pid, name, label or date. */
static bool narrows(const Mperf__Filter *f)
{
	return f && (f->n_pid || f->n_comm || f->n_cgroup || f->n_label || f->n_cpu ||
			    f->since_ns || f->until_ns);
}

static int open_input(
	struct request *q, const char *path, const Mperf__Filter *filter, struct input *in)
{
	_cleanup_(closep) int fd = -1;
	if (q->peer->options->private && *path)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && is_output(fd)) {
		size_t n = 0;
		if (narrows(filter))
			return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
				       "Leave out --pid, --comm, --label, --since and --until.",
				       "%s covers one program from start to end, and cannot be "
				       "filtered by process, label or time",
				       path)
				       ?: 1;
		int r = read_whole(q, fd, path, &in->output, &n);
		in->file = (struct loop_output){in->output, n, path};
		return r;
	}
	return request_open_segment(q, path, &in->db);
}

/* --- commands --------------------------------------------------------------------------------- */

static int refuse_word(struct request *q, const char *what, const char *word, const char *remedy)
{
	return request_fail(
		q, MPERF__FAILURE_KIND__FAILURE_USAGE, remedy, "there is no %s '%s'", what, word);
}

/* From the store, or from the file at that path. */
static int answer(struct request *q, const Mperf__Request *request, const char *path,
	const struct store_question *store, loops_of *of)
{
	if (query_asks_store(q, path))
		return ask_store(q, request, store);
	const Mperf__Filter *m = store->filter(request);
	_cleanup_(input_clear) struct input in = {.output = NULL};
	int r = open_input(q, path, m, &in);
	if (r != 0)
		return r < 0 ? r : 0;
	struct machine machine; /* reads the platform database, whose formulas are asked for */
	if (in.db)
		r = request_read_machine(q, &machine);
	if (r != 0)
		return r < 0 ? r : 0;
	struct query_error error = {"", "", 0};
	struct query_filter filter = query_filter_of(q, m);
	struct row_stream stream;
	struct answer to = row_stream_answer(&stream, q);
	const struct loop_origin from = {.output = in.output ? &in.file : NULL, .db = in.db};
	const struct store_question_run run = {.request = request,
		.filter = &filter,
		.cores = q->peer->options->cores,
		.to = &to,
		.error = &error};
	return query_answer_end(q, &stream, of(&from, &run), &error);
}

int control_roofline(struct request *q, const Mperf__Request *request)
{
	const Mperf__RooflineRequest *m = request->roofline;
	const struct roofline_question question = roofline_question_of(m, NULL);
	if ((int)question.by < 0)
		return refuse_word(
			q, "way to group by", m->by, "Use loop, function, region or thread.");
	if ((int)question.ops < 0)
		return refuse_word(q, "kind of operations", m->ops, "Use fp, int, sp or dp.");
	int r = m->select ? choose(q, m) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	return answer(q, request, m->path, &roofline_store, roofline_of);
}

int control_blocks(struct request *q, const Mperf__Request *request)
{
	return answer(q, request, request->blocks->path, &blocks_store, blocks_of);
}

int control_parallel(struct request *q, const Mperf__Request *request)
{
	const Mperf__ParallelRequest *m = request->parallel;
	if ((int)parallel_by_of(m) < 0)
		return refuse_word(q, "way to group by", m->by,
			"Use region, thread, place, wait, loop or function.");
	return answer(q, request, m->path, &parallel_store, parallel_of);
}
