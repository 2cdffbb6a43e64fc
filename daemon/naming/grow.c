/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Files that describe generated code, and grow. We look at them shortly before samples are taken from
 * the rings. The parser reads the new entries, and reports the code that they replace; samples after the
 * time of the replacement then get separate frames. A jitdump has that time. A perf map does not: its new
 * lines are valid from the file's last modification. If a file was written twice between two looks, all new
 * lines are valid from the second time.
 *
 *      look 1            written         look 2   samples are taken
 *      ───┼─────────────────┼──────────────┼────────┼───▶
 *           the former name │ the new one
 */
#include "daemon/naming/namer_private.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/naming/reply.h"
#include "proto/base/clock.h"

static uint64_t monotonic_of(int64_t realtime_ns, uint64_t now_ns)
{
	int64_t ago_ns = (int64_t)clock_ns(CLOCK_REALTIME) - realtime_ns;

	return ago_ns > 0 && (uint64_t)ago_ns < now_ns ? now_ns - (uint64_t)ago_ns : now_ns;
}

/* Was the file written to since the last look? Then it has unread entries. */
static void look(struct slot *s)
{
	struct statx x;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (s->fd[PART_MAIN] < 0 || !slot_grows(s) ||
		statx(s->fd[PART_MAIN], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			STATX_MTIME | STATX_SIZE, &x) < 0)
		return;
	int64_t written_ns = x.stx_mtime.tv_sec * 1000000000ll + x.stx_mtime.tv_nsec;
	if (!s->growth.looked_ns || x.stx_size != s->growth.seen_bytes ||
		written_ns != s->growth.seen_ns) {
		uint64_t from_ns = monotonic_of(written_ns, now_ns);
		s->growth.unread = true;
		/* its writer can set this time */
		s->growth.from_ns = from_ns > s->growth.looked_ns ? from_ns : s->growth.looked_ns;
		s->growth.seen_bytes = x.stx_size;
		s->growth.seen_ns = written_ns;
	}
	s->growth.looked_ns = now_ns;
}

void namer_sampled(struct namer *n, struct file *file)
{
	if (file->sampled || n->growing.n_sampled == NAMER_SAMPLED_MAX)
		return;
	file->sampled = true;
	n->growing.sampled[n->growing.n_sampled++] = file;
}

bool namer_has_sampled(const struct namer *n)
{
	return n->growing.n_sampled > 0;
}

/* The file did not exist, and frames wait for it. */
static bool may_have_come(const struct namer *n, const struct slot *s)
{
	return s->file->kind == FILE_PERF_MAP && s->file->state == FILE_VANISHED && s->n_late > 0 &&
	       !s->paused && n->now_ns >= s->retry_ns;
}

static int file_look(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;

	if (!s || n->off || file->replaced)
		return 0;
	if (may_have_come(n, s)) {
		s->retry_ns = n->now_ns + NAMER_RETRY_NS;
		file->state = FILE_UNSEEN;
		return slot_resume(n, s);
	}
	slot_touch(n, s);
	look(s);
	bool waits = s->queue == QUEUE_OPEN || s->queue >= QUEUE_OPENER;
	bool evicted = s->fd[PART_MAIN] < 0 && s->growth.counted && n->now_ns >= s->retry_ns;
	if ((!s->growth.unread && !evicted) || waits || slot_is_dead(s))
		return 0;
	return slot_push_none(n, s, naming_user_get(&n->users, s->asker));
}

int growing_look(struct namer *n)
{
	int r = 0;

	while (n->growing.n_sampled > 0 && r == 0) {
		struct file *file = n->growing.sampled[--n->growing.n_sampled];
		file->sampled = false;
		r = file_look(n, file);
	}
	return r;
}

void growing_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (uint32_t i = 0; i < n->growing.n_sampled; i++)
		file_marks_keep(m, n->growing.sampled[i]);
}

void slot_begin_growth(struct slot *s)
{
	s->growth.unread = slot_grows(s);
	s->growth.read_on = false;
}

bool slot_must_read_on(struct slot *s)
{
	bool just_read = s->growth.read_on;

	s->growth.read_on = false;
	if (just_read)
		return false;
	look(s);
	return s->growth.unread;
}

int slot_ask_grow(struct namer *n, struct slot *s)
{
	/* a jitdump's earlier entries have times; a perf map has only its present entries */
	uint32_t past = s->file->kind == FILE_JITDUMP ? 0 : UINT32_MAX;
	struct message_grow m = {.file = s->file->id,
		.after = s->growth.counted ? s->growth.order : past,
		.mark_at = s->growth.mark_at,
		.mark = s->growth.mark};
	struct iovec iov = {&m, sizeof(m)};
	int r = parser_ask(n, MESSAGE_GROW, &iov, 1, -1);

	if (r < 0)
		return r;
	s->growth.asked_from_ns = s->growth.from_ns;
	s->growth.unread = false;
	return 0;
}

uint32_t slot_order(const struct slot *s, const struct frame *frame)
{
	uint32_t version = frame_version(frame);

	if (!slot_grows(s) || !s->growth.counted)
		return UINT32_MAX;
	if (version == 0)
		return s->growth.lost_order ? 0 : s->growth.first_order;
	return version > s->growth.lost_order ? version - s->growth.lost_order : 0;
}

static void enter_changes(
	struct namer *n, struct slot *s, const struct message_change *c, uint32_t n_changes)
{
	struct version_change change[MESSAGE_CHANGES_MAX];
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), from_ns = 0;

	for (uint32_t i = 0; i < n_changes; i++, c++) {
		uint64_t at_ns = c->from_ns ? c->from_ns : s->growth.asked_from_ns;
		at_ns = at_ns < now_ns ? at_ns : now_ns;
		from_ns = at_ns > from_ns ? at_ns : from_ns;
		change[i] = (struct version_change){
			c->start, c->end, from_ns, s->growth.lost_order + c->order};
	}
	versions_change(n->options.files, s->file, change, n_changes);
}

static void take_changes(struct namer *n, struct slot *s, const struct reply_grown *r)
{
	if (r->grown.n == MESSAGE_CHANGES_MAX)
		versions_change_all(s->file, s->growth.lost_order + r->grown.order);
	else
		enter_changes(n, s, r->change, r->grown.n);
}

/* Take the first reading. Code from before the first sample is valid from the beginning. Code that came between
 * that sample and this reading is valid from its own time on, if the file has times and there is not too much
 * such code. */
static void begin(struct namer *n, struct slot *s, const struct reply_grown *r)
{
	uint32_t i = 0;

	s->growth.first_order = r->grown.order;
	if (r->grown.n == MESSAGE_CHANGES_MAX)
		return;
	while (i < r->grown.n && r->change[i].from_ns <= s->file->first_ns)
		i++;
	if (i == r->grown.n)
		return;
	s->growth.first_order = r->change[i].order - 1;
	enter_changes(n, s, &r->change[i], r->grown.n - i);
}

/* The parser was restarted, or had no room, and the file no longer has its former contents. Named frames stay
 * named, and all others are named by the present contents. */
static void begin_again(struct slot *s, uint32_t order)
{
	s->growth.lost_order += s->growth.order;
	versions_change_all(s->file, s->growth.lost_order + order);
}

/* Code that the table describes may have been replaced. */
static void outdate_table(struct slot *s, const struct reply_grown *r, bool lost)
{
	if (lost || r->grown.n_rewrites != s->growth.n_rewrites ||
		r->grown.n == MESSAGE_CHANGES_MAX)
		slot_outdate_whole_table(s);
	else
		for (uint32_t i = 0; i < r->grown.n; i++)
			slot_outdate_table(s, r->change[i].start, r->change[i].end);
}

int slot_hear_grown(struct namer *n, struct slot *s, const uint8_t *bytes, size_t n_bytes)
{
	struct reply_grown r;

	if (reply_grown(bytes, n_bytes, &r) < 0 || r.grown.file != s->file->id)
		return -EBADMSG;
	if (r.grown.state != STATE_READY)
		return (int)r.grown.state;
	bool lost = s->growth.counted && (r.grown.lost || r.grown.order < s->growth.order ||
						 r.grown.n_rewrites < s->growth.n_rewrites);
	bool grew = !s->growth.counted || lost || r.grown.order != s->growth.order;
	if (!s->growth.counted)
		begin(n, s, &r);
	else if (lost)
		begin_again(s, r.grown.order);
	else
		take_changes(n, s, &r);
	outdate_table(s, &r, lost);
	s->growth.counted = true;
	s->growth.order = r.grown.order;
	s->growth.n_rewrites = r.grown.n_rewrites;
	s->growth.mark_at = r.grown.mark_at;
	s->growth.mark = r.grown.mark;
	s->growth.read_on = true;
	if (!grew || s->n_late == 0 || s->paused || n->now_ns < s->retry_ns)
		return 0;
	s->retry_ns = n->now_ns + NAMER_RETRY_NS;
	return slot_resume(n, s);
}
