/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The opener's side of the namer: choosing the next file, and handling the answer. The daemon takes
 * descriptors and only closes them; even fstat can hang on some file systems, so the opener reports
 * the size.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/naming/reply.h"
#include "proto/base/memory.h"

_Static_assert((int)KIND_ELF == (int)FILE_ELF && (int)KIND_KERNEL == (int)FILE_KERNEL &&
		       (int)KIND_MODULE == (int)FILE_MODULE && (int)KIND_VDSO == (int)FILE_VDSO &&
		       (int)KIND_PERF_MAP == (int)FILE_PERF_MAP &&
		       (int)KIND_JITDUMP == (int)FILE_JITDUMP,
	"kinds travel as numbers");
_Static_assert((int)STATE_READY == (int)FILE_READY && (int)STATE_VANISHED == (int)FILE_VANISHED &&
		       (int)STATE_REFUSED == (int)FILE_REFUSED &&
		       (int)STATE_NO_SYMBOLS == (int)FILE_NO_SYMBOLS &&
		       (int)STATE_MALFORMED == (int)FILE_MALFORMED &&
		       (int)STATE_OVERSIZE == (int)FILE_OVERSIZE,
	"states travel as numbers");
_Static_assert(FILE_KIN == MESSAGE_KIN, "all kin are sent");
_Static_assert(WORKER_FILE_BYTES_MAX == NAMER_FILE_BYTES_MAX, "one limit of file size");
_Static_assert(WORKER_DATA_BYTES_MAX == NAMER_PARSER_BYTES_MAX, "one limit of memory");
_Static_assert(PARSER_FILES_MAX >= 2 * NAMER_FILES_OPEN_MAX, "the parser holds what we hold");

static size_t fill_question(
	const struct namer *n, const struct slot *s, struct message_open *m, struct iovec iov[3])
{
	const struct file *f = s->file;
	const char *path = f->path ? f->path : "";
	const char *link = "";
	size_t n_iov = 1;

	*m = (struct message_open){
		.part = s->part,
		.kind = f->kind,
		.pid = f->pid,
		.first = s->part == PART_MAIN ? s->first : 0,
		.pid_start_ns = f->pid_start_ns,
		.has_uid = f->uid != (uid_t)-1,
		.own = n->options.own,
		.uid = f->uid,
		.not_after_ns =
			s->part == PART_MAIN && f->inode && !slot_grows(s) ? f->mapped_ns : 0,
		.not_before_ns = slot_grows(s) ? f->generation : 0,
		.map_start = f->map_start,
		.map_end = f->map_end,
		.inode = f->inode,
		.generation = slot_grows(s) ? 0 : f->generation,
		.major = f->major,
		.minor = f->minor,
		.first_mapper = f->pid > 0 && f->pid == f->mapper,
		.n_build_id = f->n_build_id,
		.deleted = f->deleted,
	};
	for (size_t i = 0; i < FILE_KIN; i++)
		m->kin[i] = (struct message_kin){f->kin[i].pid, 0, f->kin[i].start_ns};
	memcpy(m->build_id, f->build_id, sizeof(m->build_id));
	if (s->part == PART_ALT && s->found)
		path = s->found;
	else if (s->part == PART_SPLIT)
		path = s->split ? s->split : "";
	if (s->part == PART_DEBUG || s->part == PART_PACKAGE) {
		m->fetched = slot_part_is_fetched(s, s->part);
		link = m->fetched ? f->debug_path : s->part == PART_DEBUG ? s->wants.debuglink : "";
		m->n_build_id = s->wants.n_build_id;
		memcpy(m->build_id, s->wants.build_id, sizeof(m->build_id));
	} else if (s->part == PART_ALT) {
		link = s->wants.alt_link;
		m->n_build_id = s->wants.n_alt_build_id;
		memcpy(m->build_id, s->wants.alt_build_id, sizeof(m->build_id));
	}
	m->n_path = (uint16_t)strnlen(path, MESSAGE_PATH_BYTES_MAX);
	m->n_link = (uint16_t)strlen(link);
	iov[0] = (struct iovec){m, sizeof(*m)};
	if (m->n_path)
		iov[n_iov++] = (struct iovec){(void *)path, m->n_path};
	if (m->n_link)
		iov[n_iov++] = (struct iovec){(void *)link, m->n_link};
	return n_iov;
}

int opener_feed(struct namer *n, bool *ret_fed)
{
	struct slot *s = queue_next_open(n);
	struct message_open m;
	struct iovec iov[3];

	if (s && s->file->replaced && s->part == PART_MAIN) {
		*ret_fed = true;
		return slot_fail(n, s, FILE_VANISHED);
	}
	if (!worker_is_idle(&n->opener) || !s || !slots_make_room(n, s))
		return 0;
	*ret_fed = true;
	size_t n_iov = fill_question(n, s, &m, iov);
	uint64_t timeout_ns = namer_timeout(n->options.open_timeout_ns, NAMER_OPEN_TIMEOUT_NS);
	if (worker_ask(&n->opener, MESSAGE_OPEN, iov, n_iov, -1, n->now_ns + timeout_ns) < 0)
		return 0;
	slot_send(n, s, QUEUE_OPENER);
	naming_users_serve(&n->users, WORKER_OPENER, s->opens);
	if (s->part == PART_MAIN)
		s->asker = s->opens->uid;
	n->opening.slot = s;
	return 0;
}

/* The opener has answered, or ended. Returns the slot of its request, or NULL. */
static struct slot *take_back(struct namer *n)
{
	struct slot *s = n->opening.slot;

	n->opening.slot = NULL;
	naming_users_serve(&n->users, WORKER_OPENER, NULL);
	if (s)
		slot_dequeue(n, s);
	return s;
}

bool opener_is_asked(const struct namer *n)
{
	return n->opening.slot;
}

uint64_t namer_missed_ns(const struct namer *n)
{
	return n->opening.missed_ns;
}

/* Give the slot back to the parser if a frame waits, else make it idle. */
static void settle(struct namer *n, struct slot *s)
{
	if (!TAILQ_EMPTY(&s->wishes))
		slot_enqueue_name(n, s);
	if (s->part != PART_MAIN && slot_is_loaded(n, s))
		queue_put_first(n, s); /* the parser goes on with it */
	queue_note(n);                 /* a stack may have waited for it */
}

/* Does a file that was not found wait for the next process that runs it? That process may live longer. */
static bool may_come_back(struct namer *n, struct slot *s, enum file_state state)
{
	const struct file *f = s->file;

	s->absent = f->kind == FILE_ELF && f->pid > 0 && f->inode && state == FILE_VANISHED &&
		    !f->replaced && f->state == FILE_OPENING && !n->ending &&
		    s->n_absent < NAMER_ABSENT_MAX;
	if (s->absent)
		s->retry_ns = n->now_ns + (NAMER_RETRY_ABSENT_NS << s->n_absent++);
	return s->absent;
}

static int main_missing(struct namer *n, struct slot *s, enum file_state state)
{
	/* A JIT writes its first line some time after its first mapping. */
	if (s->renewing) {
		s->renewing = false;
		s->file->state = FILE_READY;
		settle(n, s);
		return 0;
	}
	if (s->file->kind == FILE_PERF_MAP && state == FILE_VANISHED) {
		s->retry_ns = n->now_ns + NAMER_RETRY_NS;
		if (s->n_frames == 0) {
			s->file->state = FILE_UNSEEN;
			return 0;
		}
	}
	if (state == FILE_VANISHED) {
		if (s->file->kind == FILE_ELF)
			n->opening.missed_ns = n->now_ns;
		s->file->look_again_ns = n->now_ns + NAMER_ABSENT_NS;
	}
	if (may_come_back(n, s, state)) {
		int r = slot_postpone(n, s);
		return r < 0 ? r : slot_fail(n, s, state);
	}
	return slot_fail(n, s, state);
}

static void note_seen(const struct namer *n, struct file *f, const struct message_opened *m)
{
	struct file_seen now = {(uint64_t)m->major << 32 | m->minor, m->inode, m->bytes,
		m->changed_ns, m->status_ns, 0};
	const struct file_seen *was = &f->seen;

	if (was->device == now.device && was->inode == now.inode && was->bytes == now.bytes &&
		was->changed_ns == now.changed_ns && was->status_ns == now.status_ns)
		now.for_ns = was->for_ns ? 2 * was->for_ns : NAMER_SEEN_NS;
	if (now.for_ns > NAMER_SEEN_MAX_NS)
		now.for_ns = NAMER_SEEN_MAX_NS;
	f->seen = now;
	f->look_again_ns = m->copied ? n->now_ns + now.for_ns : 0;
}

static void note_origin(struct slot *s, const struct message_opened *m)
{
	s->origin[s->part] = (struct origin){
		.device = (uint64_t)m->major << 32 | m->minor,
		.inode = m->inode,
		.bytes = m->bytes,
		.changed_ns = m->changed_ns,
		.owner = m->owner,
		.sole = m->sole,
	};
}

/* Handle a file that is known to be faulty: it is not parsed again, under any name. */
static int open_faulty(struct namer *n, struct slot *s, enum file_state state)
{
	if (s->part == PART_MAIN)
		return slot_fail(n, s, state);
	settle(n, s);
	return 0;
}

int opener_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes, int fd)
{
	_cleanup_(closep) int given = fd;
	struct slot *s = n->opening.slot;
	struct message_opened m;
	enum file_state faulty;
	const char *path;

	if (!s || reply_opened(bytes, n_bytes, &m, &path) < 0 ||
		(m.state == STATE_READY) != (given >= 0))
		return -EBADMSG;
	(void)take_back(n);
	s->retries = 0;
	s->tried |= 1u << s->part;
	if (given < 0 && m.error == ESTALE && s->part == PART_MAIN && !slot_grows(s))
		/* processes that map this path from now on run another file */
		s->file->replaced = true;
	if (s->part == PART_MAIN && s->file->replaced)
		return main_missing(n, s, FILE_VANISHED); /* this may be the new file */
	if (given < 0 && s->part == PART_MAIN)
		return main_missing(n, s, (enum file_state)m.state);
	if (given >= 0)
		note_origin(s, &m);
	if (given >= 0 && origin_is_faulty(n, &s->origin[s->part], &faulty))
		return open_faulty(n, s, faulty);
	if (given >= 0) {
		if (s->renewing) {
			slot_forget_copies(n, s);
			s->renewing = false;
		}
		slot_hold(n, s, s->part, TAKE_FD(given), m.bytes);
		s->joined &= ~(1u << s->part); /* not joined yet: the former split unit was */
		s->leaves = m.leaves || (s->leaves && s->part != PART_MAIN);
		if (s->part == PART_MAIN) {
			s->absent = false;
			s->n_absent = 0;
			s->written_ns = m.written_ns;
			s->status_ns = m.status_ns;
			note_seen(n, s->file, &m);
		}
		if (m.copied)
			slot_note_copy(n, s, m.bytes);
	}
	if (s->part == PART_MAIN) {
		if (s->file->state != FILE_NO_SYMBOLS)
			s->file->state = FILE_READY;
		s->first = m.first;
	} else if (s->part == PART_DEBUG && s->fd[PART_DEBUG] >= 0) {
		free(s->found);
		s->found = strndup(path, m.n_path);
	}
	settle(n, s);
	return 0;
}

/* Find the cause. A file that hangs is not tried again; after a kill from outside the file is tried
 * once more. */
int opener_ended(struct namer *n, enum worker_end end)
{
	struct slot *s = take_back(n);

	if (!s)
		return 0;
	if (end != WORKER_OVER_TIME && s->retries++ == 0) {
		slot_enqueue_open(n, s, s->part, s->opens);
		return 0;
	}
	blame_count(n);
	if (!slot_part_is_fetched(s, s->part)) /* nor is he to blame who runs the program */
		account_charge(&s->opens->opens, NAMER_DEATHS_USER_MAX, n->now_ns);
	if (s->part == PART_MAIN)
		return slot_fail(n, s, end == WORKER_OVER_TIME ? FILE_HUNG : FILE_CRASHED);
	/* The file itself is fine; it is named without its debug file. */
	s->tried |= 1u << s->part;
	settle(n, s);
	return 0;
}
