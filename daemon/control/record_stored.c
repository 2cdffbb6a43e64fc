/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * record --since: a part of the service's store as a recording. It is a question of the store like others
 * (question.h), which waits for its turn and whose child chooses windows and tasks by the filter of queries: so it has
 * what the peer's own queries of the store would show, and nothing else. The child writes the segment in a folder of
 * the daemon's, sends its bytes as the answer, and the daemon removes the folder, also if the child was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/give.h"
#include "daemon/control/peer.h"
#include "daemon/control/question.h"
#include "daemon/control/record_private.h"
#include "daemon/query/chosen.h"
#include "daemon/query/sources.h"
#include "daemon/store/rollup/extract.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Bytes of one recording: as of an answer (offload_job.h), a quarter of what its user has left in the cache folder,
 * within this range. It is there twice for a moment, as a file and as the answer, and both are charged. */
#define STORED_BYTES_MIN (1u << 20)
#define STORED_BYTES_MAX (256u << 20)
#define STORED_ROOM_PART 4
/* Part of an answer's file that is left for frames and for what follows the recording. */
#define ANSWER_REST_PART 32

/* Resources that the daemon holds for one, from the choice of files on. */
struct stored {
	struct record_hold hold;
	uint64_t bytes_max;
	char *folder, *path;
	char missing[448]; /* what of that time the store lacks; "": nothing */
};

static void stored_free(void *known)
{
	struct stored *s = known;
	record_hold_end(&s->hold);
	if (s->path)
		extract_remove(s->path);
	if (s->folder)
		rmdir(s->folder);
	free(s->path);
	free(s->folder);
	free(s);
}

/* --- in the child ----------------------------------------------------------------------------- */

struct saving {
	struct question *a;
	struct request *q;
	struct query_chosen chosen; /* of the source being read */
	size_t n_left_out;          /* sources that could not be read */
	struct query_error *error;
};

static bool is_narrowed(const struct question *a)
{
	const struct query_filter *f = &a->filter;
	return f->only_uid || f->n_pids + f->n_comms + f->n_cgroups + f->n_labels > 0;
}

static void leave_out(struct saving *s, size_t i, enum query_outcome why)
{
	s->a->source[i].outcome = why;
	s->n_left_out += why != QUERY_GONE;
	*s->error = (struct query_error){"", "", 0};
}

/* Choose the rows of an open source. Returns as extract's choose, or QUERY_FAILED. */
static int choose_rows(struct saving *s, sqlite3 *db, size_t i, struct extract_choice *ret_choice)
{
	struct query_source *source = &s->a->source[i];
	query_chosen_clear(&s->chosen);
	int r = query_choose(db, source, &s->a->filter, &s->chosen, s->error);
	const Mperf__FailureKind kind = s->error->kind;
	if (r == QUERY_FAILED && (kind == MPERF__FAILURE_KIND__FAILURE_BROKEN ||
					 kind == MPERF__FAILURE_KIND__FAILURE_REFUSED)) {
		leave_out(s, i,
			kind == MPERF__FAILURE_KIND__FAILURE_BROKEN ? QUERY_BROKEN : QUERY_HELD);
		return EXTRACT_SKIP;
	}
	*ret_choice = (struct extract_choice){
		.window = s->chosen.window,
		.n_windows = s->chosen.n_windows,
		.task = s->chosen.task,
		.n_tasks = s->chosen.n_tasks,
	};
	return r;
}

static int choose(void *userdata, size_t i, struct extract_choice *ret_choice)
{
	struct saving *s = userdata;
	struct question *a = s->a;
	sqlite3 *db;
	/* a file has one boot: the last one's */
	if (!store_is_same_boot(a->source[i].path, a->source[a->n_sources - 1].path))
		return EXTRACT_SKIP;
	int r = request_progress(s->q, "reading files of the store", i, a->n_sources);
	if (r != 0)
		return r;
	r = source_open(&a->source[i], &db, s->error);
	if (r != 0) {
		if (r > 0)
			leave_out(s, i, source_outcome(r));
		return r > 0 ? EXTRACT_SKIP : r;
	}
	r = choose_rows(s, db, i, ret_choice);
	sqlite3_close(db);
	return r;
}

static void note_broken(void *userdata, size_t i)
{
	leave_out(userdata, i, QUERY_BROKEN);
}

/* What the recording may have: the child's file of answers has a limit, too. */
static uint64_t bytes_max(const struct stored *k)
{
	struct rlimit answer;
	uint64_t most = k->bytes_max;
	if (getrlimit(RLIMIT_FSIZE, &answer) == 0 && answer.rlim_cur != RLIM_INFINITY &&
		answer.rlim_cur - answer.rlim_cur / ANSWER_REST_PART < most)
		most = answer.rlim_cur - answer.rlim_cur / ANSWER_REST_PART;
	return most;
}

static int write_segment(struct saving *s, struct store_error *error)
{
	struct question *a = s->a;
	const struct stored *k = a->known;
	const char *command = a->request->record->command;
	_cleanup_(freep) const char **path = calloc(a->n_sources + 1, sizeof(*path));
	const struct extract_note note[] = {
		{"all", NULL, !is_narrowed(a)},
		{"command", command, 0},
	};
	const struct extract e = {
		.hide_kernel = a->filter.hide_kernel,
		.source = path,
		.n_sources = a->n_sources,
		.choose = choose,
		.broken = note_broken,
		.userdata = s,
		.bytes_max = bytes_max(k),
		.note = note,
		.n_notes = command && *command ? 2 : 1,
	};
	if (!path)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_sources; i++)
		path[i] = a->source[i].path;
	int r = extract_write(&e, k->path, error);
	query_chosen_clear(&s->chosen);
	return r;
}

static int fail_empty(const struct saving *s)
{
	if (s->n_left_out > 0)
		return query_fail(s->error, MPERF__FAILURE_KIND__FAILURE_BROKEN,
			"See mperfd's journal, and ask for another time.",
			"the files of the store that have that time cannot be read");
	const struct stored *k = s->a->known;
	const char *what = s->a->filter.only_uid ? "such samples of your processes"
			   : is_narrowed(s->a)   ? "such samples"
						 : "samples";
	return query_fail(s->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
		s->a->filter.only_uid
			? "Ask for another time (--since, --until), or as root or a member "
			  "of the group for those of others."
			: "Ask for another time (--since, --until).",
		"the store has no %s of that time%s%s", what, *k->missing ? "; " : "", k->missing);
}

static int fail(const struct saving *s, int outcome, const struct store_error *error)
{
	const struct stored *k = s->a->known;
	switch (outcome) {
	case EXTRACT_EMPTY:
		return fail_empty(s);
	case EXTRACT_TOO_LARGE:
		return query_fail(s->error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Save a shorter time (--since, --until), or fewer processes (--comm, "
			"--pid, "
			"--label).",
			"the recording would be larger than the %llu MB that you may use now",
			(unsigned long long)(bytes_max(k) >> 20));
	case STORE_NO_SPACE:
		return query_fail(s->error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Free some space, or save a shorter time.",
			"no space left for the recording in mperfd's cache folder");
	default:
		return query_fail(s->error, MPERF__FAILURE_KIND__FAILURE_BROKEN, error->remedy,
			"%s", error->text);
	}
}

/* Say what is missing, before the recording itself. */
static int tell_missing(const struct saving *s)
{
	const struct stored *k = s->a->known;
	char note[sizeof(k->missing) + 96];
	if (s->n_left_out == 0)
		return request_ready(s->q, k->missing);
	snprintf(note, sizeof(note), "%s%s%zu file%s of the store could not be read", k->missing,
		*k->missing ? "; " : "", s->n_left_out, s->n_left_out == 1 ? "" : "s");
	return request_ready(s->q, note);
}

static int send_segment(const struct saving *s, const struct answer *to)
{
	const struct stored *k = s->a->known;
	_cleanup_(closep) int fd = open(k->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint64_t offset = 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	int r = tell_missing(s);
	if (r == 0)
		r = give_bytes(s->q, fd, &offset, (uint64_t)st.st_size);
	return r == 0 ? record_tell(k->path, fd, to, NULL) : r;
}

static int run(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	struct row_stream *stream = to->userdata;
	struct store_error error = {"", ""};
	struct saving s = {.a = a, .q = stream->request, .error = ret_error};
	int r = write_segment(&s, &error);
	if (r == QUERY_FAILED && *ret_error->text)
		return r;
	if (r != 0)
		return r < 0 ? r : fail(&s, r, &error);
	return send_segment(&s, to);
}

/* --- in the daemon ---------------------------------------------------------------------------- */

/* 0 or -errno. */
static int make_folder(struct stored *k)
{
	const char *parent = getenv("TMPDIR");
	if (asprintf(&k->folder, "%s/mperf-XXXXXX", parent && *parent ? parent : "/tmp") < 0) {
		k->folder = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(k->folder)) {
		int r = -errno;
		free(k->folder);
		k->folder = NULL;
		return r;
	}
	if (asprintf(&k->path, "%s/segment.mprf", k->folder) < 0) {
		k->path = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Charge the recording to its user. Returns as question_make. */
static int hold(struct request *q, struct stored *k)
{
	int r = record_hold_begin(&k->hold, q, true);
	if (r != 0)
		return r;
	uint64_t bytes = user_room(q->peer->user, USER_CACHE) / STORED_ROOM_PART;
	bytes = bytes < STORED_BYTES_MIN   ? STORED_BYTES_MIN
		: bytes > STORED_BYTES_MAX ? STORED_BYTES_MAX
					   : bytes;
	if (user_room(q->peer->user, USER_CACHE) < bytes)
		return request_refuse_limit(q, USER_CACHE) ?: 1;
	(void)record_hold_bytes(&k->hold, bytes);
	k->bytes_max = bytes;
	return 0;
}

/* When files are chosen: find what they lack, and make room for the recording. */
static int prepare(struct request *q, struct question *a)
{
	const Mperf__Filter *f = a->wanted;
	struct stored *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	a->known = k;
	int r = record_missing(q, f->since_ns, f->until_ns, k->missing, sizeof(k->missing));
	if (r == 0)
		r = hold(q, k);
	if (r != 0)
		return r;
	r = make_folder(k);
	return r == 0 || r == -ENOMEM
		       ? r
		       : request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
				 "See mperfd's journal, and the disc of its cache folder.",
				 "mperfd cannot make a folder for the recording: %s", strerror(-r))
				 ?: 1;
}

/* Pins are not read: the windows of a job are, as long as the store has them. */
static size_t no_labels(const Mperf__Request *m, size_t i, char *const **ret_label)
{
	(void)m;
	(void)i;
	(void)ret_label;
	return 0;
}

static int refuse(struct request *q, const char *remedy, const char *what)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, remedy, "%s", what) ?: 1;
}

static bool measures(const Mperf__RecordRequest *m)
{
	return (m->target && (m->target->all || m->target->n_pid > 0)) || m->n_event > 0 ||
	       m->n_metric > 0 || m->n_label > 0 || m->user_only || m->wakers || m->period > 0 ||
	       m->hz > 0;
}

static int make(struct request *q, struct question *a)
{
	const Mperf__RecordRequest *m = a->request->record;
	const Mperf__Filter *f = m->stored;
	const int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	if (measures(m))
		return refuse(q, "Leave out what to measure, or --since.",
			"what the store keeps was already measured: target, event and rate cannot "
			"be "
			"chosen");
	if (f->since_ns <= 0)
		return refuse(q, "Give --since.", "the time to save has no beginning");
	if (f->until_ns && f->until_ns <= f->since_ns)
		return refuse(q, "Give a later --until.", "the time to save ends before it begins");
	if (f->since_ns > now_ns)
		return refuse(q, "Give an earlier --since.", "the time to save is in the future");
	if (f->n_cpu > 0 || (f->event && *f->event))
		return refuse(q, "Choose harts and events when you read the recording.",
			"all harts and events of that time are saved");
	question_about_files(q, a, NULL, 0, f);
	a->coarsest = TIER_WINDOW;
	question_ask_programs(q, a);
	a->fresh = !f->until_ns || f->until_ns > now_ns;
	a->labels = no_labels;
	a->know = prepare;
	a->forget = stored_free;
	a->run = run;
	return 0;
}

int record_stored(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make);
}
