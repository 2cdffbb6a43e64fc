/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * roofline, blocks and parallel. A running program holds the counts since its last round in its own
 * memory, so before we query the service's store, we request a round from the programs. A file gets no
 * more counts, so it is read at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/control/peer.h"
#include "daemon/control/question.h"
#include "daemon/loops/message.h"
#include "daemon/query/loops/blocks.h"
#include "daemon/query/loops/parallel.h"
#include "daemon/query/loops/roofline.h"
#include "daemon/service/service.h"
#include "proto/base/memory.h"

/* Bytes of a file that MPERF_OUTPUT named; a program of a thousand threads writes some MB. */
#define OUTPUT_BYTES_MAX (1ll << 30)

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

/* --- files ------------------------------------------------------------------------------------ */

/* Does it begin like a file that MPERF_OUTPUT named? */
static bool is_output(int fd)
{
	uint8_t bytes[FEED_HELLO_BYTES];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	return n > 0 && feed_message_begins_file(bytes, (size_t)n);
}

/* Read the whole file that MPERF_OUTPUT named. Returns as question_make. */
static int read_whole(struct request *q, int fd, struct question *a)
{
	const char *path = a->path[0];
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
	a->output = (struct loop_output){bytes, n, path};
	a->known = TAKE_PTR(bytes);
	a->forget = free;
	return 0;
}

/* Does the filter restrict the answer? Such a file covers one program's whole run, and has no pid,
 * name, label or date. */
static bool narrows(const struct query_filter *f)
{
	return f->n_pids || f->n_comms || f->n_cgroups || f->n_labels || f->n_cpus || f->since_ns ||
	       f->until_ns;
}

/* Read the file that the question names, if a program wrote it for MPERF_OUTPUT. */
static int read_output(struct request *q, struct question *a)
{
	const char *path = a->path[0];
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || !is_output(fd))
		return 0;
	if (narrows(&a->filter))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Leave out --pid, --comm, --label, --since and --until.",
			       "%s covers one program from start to end, and cannot be "
			       "filtered by process, label or time",
			       path)
			       ?: 1;
	return read_whole(q, fd, a);
}

/* --- commands --------------------------------------------------------------------------------- */

static int refuse_word(struct request *q, const char *what, const char *word, const char *remedy)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, remedy, "there is no %s '%s'",
		       what, word)
		       ?: 1;
}

/* Find the source of the counts: reports of programs, their file, or a recording. Returns as
 * question_make. */
static int find_counts(struct request *q, struct question *a)
{
	struct machine machine; /* reads the platform database, whose formulas are needed */
	if (question_is_of_store(q, a)) {
		question_ask_programs(q, a);
		return 0;
	}
	if (!q->peer->options->private)
		return 0; /* the request will be refused */
	int r = read_output(q, a);
	return r == 0 && !a->output.bytes ? request_read_machine(q, &machine) : r;
}

/* by and ops: -1 if the word is unknown. */
static struct roofline_question roofline_question_of(const struct question *a)
{
	const Mperf__RooflineRequest *m = a->request->roofline;
	return (struct roofline_question){
		.by = (enum roofline_by)roofline_by_parse(*m->by ? m->by : "loop"),
		.ops = (enum roofline_ops)roofline_ops_parse(*m->ops ? m->ops : "fp"),
		.limit = m->limit,
		.inclusive = m->inclusive,
		.explains = m->explain,
		.cores = a->cores,
		.filter = &a->filter,
	};
}

static int run_roofline(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const struct roofline_question question = roofline_question_of(a);
	return query_roofline(a->source, a->n_sources, &question, to, ret_error);
}

static int make_roofline(struct request *q, struct question *a)
{
	const Mperf__RooflineRequest *m = a->request->roofline;
	question_about(q, a, &m->path, m->filter);
	const struct roofline_question question = roofline_question_of(a);
	if ((int)question.by < 0)
		return refuse_word(
			q, "way to group by", m->by, "Use loop, function, region or thread.");
	if ((int)question.ops < 0)
		return refuse_word(q, "kind of operations", m->ops, "Use fp, int, sp or dp.");
	a->coarsest = roofline_coarsest(&question);
	a->run = run_roofline;
	int r = m->select ? choose(q, m) : 0;
	return r == 0 ? find_counts(q, a) : r;
}

int control_roofline(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_roofline);
}

static int run_blocks(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__BlocksRequest *m = a->request->blocks;
	const struct blocks_question question = {
		.every_ns = (uint64_t)m->every_ms * 1000000u,
		.limit = m->limit,
		.series = m->series,
		.cores = a->cores,
		.filter = &a->filter,
	};
	return query_blocks(a->source, a->n_sources, &question, to, ret_error);
}

static int make_blocks(struct request *q, struct question *a)
{
	const Mperf__BlocksRequest *m = a->request->blocks;
	question_about(q, a, &m->path, m->filter);
	a->coarsest = TIER_WINDOW; /* only windows have threads */
	a->run = run_blocks;
	return find_counts(q, a);
}

int control_blocks(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_blocks);
}

static int parallel_by_of(const Mperf__ParallelRequest *m)
{
	return parallel_by_parse(*m->by ? m->by : "region");
}

static int run_parallel(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__ParallelRequest *m = a->request->parallel;
	const struct parallel_question question = {
		.by = (enum parallel_by)parallel_by_of(m),
		.limit = m->limit,
		.filter = &a->filter,
	};
	return query_parallel(a->source, a->n_sources, &question, to, ret_error);
}

static int make_parallel(struct request *q, struct question *a)
{
	const Mperf__ParallelRequest *m = a->request->parallel;
	if (parallel_by_of(m) < 0)
		return refuse_word(q, "way to group by", m->by,
			"Use region, thread, place, wait, loop or function.");
	question_about(q, a, &m->path, m->filter);
	a->coarsest = TIER_WINDOW; /* only windows have threads */
	a->run = run_parallel;
	return find_counts(q, a);
}

int control_parallel(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_parallel);
}
