/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copied stacks. Most are walked at once, by the tables of the files that they pass through (tables.c). A stack whose
 * table is missing waits until the parser has made it, or cannot. One with a frame that only elfutils can leave goes
 * to the parser. Stacks of one process share a snapshot of its mappings, which the parser is sent once, with the
 * files' descriptors; there a stack waits until the opener has answered for all of these files, found or not, since
 * an unwinder of elfutils never adds a file later.
 *
 * If the parser dies on a stack, the responsible file is not known, so the process is charged:
 * after NAMER_DEATHS_MAX deaths none of its stacks goes there for a while. Its user is charged too,
 * since a user may have many processes.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "daemon/naming/reply.h"

#define NO_SPACE_MAX 3 /* consecutive times that the parser may drop a space before its stack */
/* Tables that are made for one stack; then it goes to the parser. Either its files are very many, or their tables do
 * not fit into memory together, and would be made again and again. */
#define JOB_TABLES_MAX 64u

/* A process may run both 32-bit and 64-bit code (Wine), but an unwinder has one machine.
 * Generations count up from 1. */
#define GENERATION_32 (UINT64_C(1) << 63)

static void snapshot_drop(struct namer *n, struct snapshot *s)
{
	if (!s || --s->n_users > 0)
		return;
	HASH_DEL(n->unwinding.snapshots, s);
	free(s->map);
	free(s);
}

void jobs_begin(struct unwinding *w)
{
	w->job_bytes_max = part_of_memory(NAMER_UNWIND_BYTES_MAX, NAMER_UNWIND_SHARE);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Deliver the result (NULL: failed) and finish the job. */
static void job_finish(struct namer *n, struct job *j, struct unwind_result *result)
{
	struct unwinding *w = &n->unwinding;
	struct unwind_result failed = {.failed = true};

	if (!result)
		result = &failed;
	else
		w->n_unwound += j->needs_elfutils;
	result->ticket = j->ticket;
	size_t bytes = sizeof(*j) + j->n_regs * sizeof(uint64_t) + j->n_stack;
	w->n_waiting--;
	w->job_bytes -= bytes;
	j->user->job_bytes -= bytes;
	strings_give_room(&n->strings, bytes);
	if (w->trial == j)
		w->trial = NULL;
	snapshot_drop(n, j->snapshot);
	explicit_bzero(j->bytes, bytes - sizeof(*j)); /* a stack holds secrets */
	free(j);
	if (n->options.unwound)
		n->options.unwound(n->options.userdata, result);
}

static void job_enqueue(struct namer *n, struct job *j, bool first)
{
	naming_user_joins(&n->users, j->user);
	if (first)
		TAILQ_INSERT_HEAD(&j->user->jobs, j, queued);
	else
		TAILQ_INSERT_TAIL(&j->user->jobs, j, queued);
	naming_user_queued(&n->users, j->user, QUEUED_STACK);
}

static void job_dequeue(struct namer *n, struct job *j)
{
	TAILQ_REMOVE(&j->user->jobs, j, queued);
	naming_user_dequeued(&n->users, j->user, QUEUED_STACK);
}

static struct barred *barred_find(struct unwinding *w, pid_t pid, uid_t uid)
{
	for (uint32_t i = 0; i < w->n_barred; i++)
		if (w->barred[i].pid == pid && w->barred[i].uid == uid)
			return &w->barred[i];
	return NULL;
}

static bool is_barred(struct namer *n, pid_t pid, const struct naming_user *u)
{
	const struct barred *b = barred_find(&n->unwinding, pid, u->uid);

	return account_is_refused(&u->stacks, n->now_ns) ||
	       (b && account_is_refused(&b->account, n->now_ns));
}

static void count_death(struct namer *n, pid_t pid, struct naming_user *u)
{
	struct unwinding *w = &n->unwinding;
	struct barred *b = barred_find(w, pid, u->uid);

	blame_count(n);
	account_charge(&u->stacks, NAMER_STACKS_USER_MAX, n->now_ns);
	if (!b) {
		b = &w->barred[w->next_barred];
		*b = (struct barred){.pid = pid, .uid = u->uid};
		w->next_barred = (w->next_barred + 1) % NAMER_BARRED_MAX;
		if (w->n_barred < NAMER_BARRED_MAX)
			w->n_barred++;
	}
	account_charge(&b->account, NAMER_DEATHS_MAX, n->now_ns);
}

/* --- queueing --------------------------------------------------------------------------------- */

static int want_files(struct namer *n, struct snapshot *s, struct naming_user *u)
{
	for (uint32_t i = 0; i < s->n_maps; i++) {
		struct file *f = s->map[i].file;
		struct slot *slot;
		if (!f || (f->kind != FILE_ELF && f->kind != FILE_VDSO))
			continue;
		int r = slot_get(n, f, &slot);
		if (r == 0)
			r = slot_want(n, slot, u);
		if (r < 0)
			return r;
	}
	s->asked = true;
	return 0;
}

static int snapshot_get(struct namer *n, const struct unwind_job *job, struct naming_user *u,
	struct snapshot **ret_snapshot)
{
	struct snapshot *s = NULL;
	bool narrow = job->regs_abi == PERF_SAMPLE_REGS_ABI_32;
	uint64_t generation = job->space->generation | (narrow ? GENERATION_32 : 0);

	HASH_FIND(hh, n->unwinding.snapshots, &generation, sizeof(generation), s);
	if (s) {
		s->n_users++;
		*ret_snapshot = s;
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->n_maps = job->space->n_maps < MESSAGE_SPACE_MAPS_MAX ? job->space->n_maps
								: MESSAGE_SPACE_MAPS_MAX;
	s->map = calloc(s->n_maps ? s->n_maps : 1, sizeof(*s->map));
	if (!s->map) {
		free(s);
		return -ENOMEM;
	}
	if (s->n_maps)
		memcpy(s->map, job->space->map, s->n_maps * sizeof(*s->map));
	s->generation = generation;
	s->machine = callers_machine(job->regs_abi);
	s->pid = job->pid;
	s->n_users = 1;
	HASH_ADD(hh, n->unwinding.snapshots, generation, sizeof(s->generation), s);
	if (!s->hh.tbl) {
		free(s->map);
		free(s);
		return -ENOMEM;
	}
	*ret_snapshot = s;
	return want_files(n, s, u);
}

/* Walk a queued stack as far as tables go. True: it is done, and is gone. */
static bool job_walk(struct namer *n, struct job *j)
{
	const struct unwind_sample sample = {.registers = unwind_registers_of(j->snapshot->machine),
		.regs = (const uint64_t *)j->bytes,
		.regs_mask = j->regs_mask,
		.stack = j->bytes + j->n_regs * sizeof(uint64_t),
		.n_stack = j->n_stack};
	const struct space space = {.map = j->snapshot->map, .n_maps = j->snapshot->n_maps};
	struct unwind_result result = {0};
	struct file *missing;
	struct slot *s;

	j->wants = NULL;
	switch (callers_find(n, &space, &sample, j->queued_ns, &result, &missing)) {
	case UNWIND_WALKED:
		break;
	case UNWIND_NEEDS_ELFUTILS:
		j->needs_elfutils = true;
		return false;
	case UNWIND_WANTS:
		j->needs_elfutils = j->n_tables++ == JOB_TABLES_MAX;
		if (j->needs_elfutils)
			return false;
		if (slot_get(n, missing, &s) == 0 && slot_want_table(n, s, j->user) == 0) {
			j->wants = s;
			return false;
		}
		result.failed = true; /* out of memory */
		break;
	}
	job_dequeue(n, j);
	job_finish(n, j, &result);
	return true;
}

void jobs_walk(struct namer *n)
{
	struct naming_user *u;

	if (!tables_take_change(n))
		return;
	for (uint32_t i = 0; (u = naming_user_at(&n->users, i)); i++) {
		struct job *j, *next;
		for (j = TAILQ_FIRST(&u->jobs); j; j = next) {
			next = TAILQ_NEXT(j, queued);
			if (j->snapshot && !j->needs_elfutils &&
				(!j->wants || j->wants->table_state != TABLE_WANTED))
				(void)job_walk(n, j);
		}
	}
}

int namer_unwind(struct namer *n, const struct unwind_job *job)
{
	uint32_t n_regs = (uint32_t)__builtin_popcountll(job->regs_mask);
	uint32_t n_stack = job->n_stack < MESSAGE_STACK_BYTES_MAX ? (uint32_t)job->n_stack
								  : MESSAGE_STACK_BYTES_MAX;
	struct naming_user *u = naming_user_get(&n->users, job->uid);
	bool hopeless = n->off || !job->space || job->space->n_maps == 0 ||
			callers_machine(job->regs_abi) == EM_NONE || is_barred(n, job->pid, u);

	if (hopeless)
		n_regs = n_stack = 0;
	size_t bytes = sizeof(struct job) + n_regs * sizeof(uint64_t) + n_stack;
	/* Half of the remainder is left, so there is always room for a new user. */
	if (n->unwinding.job_bytes + u->job_bytes + bytes > n->unwinding.job_bytes_max)
		return NAMER_FULL;
	if (!strings_take_room(&n->strings, bytes))
		return NAMER_FULL;
	struct job *j = calloc(1, bytes);
	if (j)
		j->user = u;
	int r = !j ? -ENOMEM : hopeless ? 0 : snapshot_get(n, job, u, &j->snapshot);
	if (r < 0) {
		strings_give_room(&n->strings, bytes);
		if (j)
			snapshot_drop(n, j->snapshot);
		free(j);
		return r;
	}
	j->ticket = job->ticket;
	j->queued_ns = n->now_ns;
	j->regs_mask = job->regs_mask;
	j->n_regs = n_regs;
	j->n_stack = n_stack;
	if (n_regs)
		memcpy(j->bytes, job->regs, n_regs * sizeof(uint64_t));
	if (n_stack)
		memcpy(j->bytes + n_regs * sizeof(uint64_t), job->stack, n_stack);
	n->unwinding.job_bytes += bytes;
	u->job_bytes += bytes;
	n->unwinding.n_waiting++;
	queue_note(n);
	job_enqueue(n, j, false);
	if (!j->snapshot || !unwind_registers_of(j->snapshot->machine))
		return 0;
	j->needs_elfutils = j->snapshot->machine != UNWIND_MACHINE;
	if (!j->needs_elfutils)
		tables_note(n); /* the next dispatch looks what it needs */
	return 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* The parser has a request for the stack. */
static void sent(struct namer *n, struct job *j)
{
	job_dequeue(n, j);
	n->unwinding.job = j;
	naming_users_serve(&n->users, WORKER_PARSER, j->user);
}

static int ask(
	struct namer *n, struct job *j, enum message_type type, struct iovec *iov, size_t n_iov)
{
	if (parser_ask(n, type, iov, n_iov, -1) == 0)
		sent(n, j);
	return 0;
}

static bool is_waiting(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_maps; i++) {
		const struct slot *slot = s->map[i].file ? s->map[i].file->namer_slot : NULL;
		if (slot && slot_is_awaited(slot))
			return true;
	}
	return false;
}

static bool give_next(struct namer *n, struct job *j)
{
	struct snapshot *s = j->snapshot;

	while (s->next_file < s->n_maps) {
		struct file *f = s->map[s->next_file++].file;
		struct slot *slot = f ? f->namer_slot : NULL;
		if (!slot || slot->fd[PART_MAIN] < 0 || f->kind > FILE_VDSO)
			continue;
		slot_touch(n, slot);
		if (slot_is_given(n, slot) || slot_look(slot) == SLOT_REWRITTEN)
			continue;
		if (slot->unproved) { /* for the stacks of the next snapshot */
			(void)slot_push_none(n, slot, j->user);
			continue;
		}
		if (slot_give(n, slot, PART_MAIN) == 0)
			sent(n, j);
		return true;
	}
	return false;
}

static int send_maps(struct namer *n, struct job *j)
{
	struct snapshot *s = j->snapshot;
	struct message_space m = {.generation = s->generation,
		.n_total = s->n_maps,
		.first = s->n_sent,
		.machine = s->machine};
	struct message_map *map = n->unwinding.maps;

	while (m.n < MESSAGE_MAPS_MAX && s->n_sent + m.n < s->n_maps) {
		const struct map *from = &s->map[s->n_sent + m.n];
		const struct slot *slot = from->file ? from->file->namer_slot : NULL;
		bool given = slot && slot_is_given(n, slot);
		map[m.n++] = (struct message_map){
			.start = from->start,
			.end = from->end,
			.file_offset = from->file_offset,
			.file = given ? from->file->id : 0,
		};
	}
	n->unwinding.n_asked_maps = m.n;
	struct iovec iov[] = {{&m, sizeof(m)}, {map, m.n * sizeof(*map)}};
	return ask(n, j, MESSAGE_SPACE, iov, 2);
}

static int job_step(struct namer *n, struct job *j)
{
	struct snapshot *s = j->snapshot;

	if (s->progress != worker_generation(&n->parser)) {
		s->progress = worker_generation(&n->parser);
		s->n_sent = s->next_file = 0;
	}
	if (s->sent != worker_generation(&n->parser)) {
		if (give_next(n, j))
			return 0;
		return send_maps(n, j);
	}
	struct message_unwind m = {.generation = s->generation,
		.regs_mask = j->regs_mask,
		.n_regs = j->n_regs,
		.n_stack = j->n_stack};
	struct iovec iov[] = {
		{&m, sizeof(m)}, {j->bytes, j->n_regs * sizeof(uint64_t) + j->n_stack}};
	parser_saw(n, j->user->uid);
	return ask(n, j, MESSAGE_UNWIND, iov, 2);
}

/* Take a step of the user's first stack that need not wait for the opener; or find the wish of a slot whose table it
 * needs. */
static int user_feed(struct namer *n, struct naming_user *u, struct wish **ret_wish, bool *ret_fed)
{
	struct job *j = n->unwinding.trial ? n->unwinding.trial : TAILQ_FIRST(&u->jobs);

	for (uint32_t i = 0; j && i < NAMER_JOBS_LOOKED_AT; i++, j = TAILQ_NEXT(j, queued)) {
		struct snapshot *s = j->snapshot;
		if (!s || (j->needs_elfutils && s->refused) || is_barred(n, s->pid, u)) {
			*ret_fed = true;
			job_dequeue(n, j);
			job_finish(n, j, NULL);
			return 0;
		}
		if (!j->needs_elfutils) {
			if (j->wants && (*ret_wish = slot_wish(j->wants, u)))
				return 0;
			continue;
		}
		if (!s->asked) {
			int r = want_files(n, s, u);
			if (r < 0)
				return r;
		}
		if (is_waiting(s))
			continue;
		*ret_fed = true;
		return job_step(n, j);
	}
	return 0;
}

int job_feed(struct namer *n, struct wish **ret_wish, bool *ret_fed)
{
	bool passed[NAMER_USERS_MAX] = {false};

	if (n->unwinding.trial)
		return user_feed(n, n->unwinding.trial->user, ret_wish, ret_fed);
	for (uint32_t i = 0; i < NAMER_JOBS_USERS_MAX && !*ret_fed && !*ret_wish; i++) {
		struct naming_user *u =
			naming_users_next(&n->users, QUEUED_STACK, passed, n->now_ns);
		int r = u ? user_feed(n, u, ret_wish, ret_fed) : 0;
		if (!u || r < 0)
			return r;
		passed[u->index] = true;
	}
	return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The parser has answered for the stack, or ended. */
static struct job *take_back(struct namer *n)
{
	struct job *j = n->unwinding.job;

	n->unwinding.job = NULL;
	return j;
}

void job_step_done(struct namer *n, int error)
{
	struct job *j = take_back(n);
	struct snapshot *s = j->snapshot;

	if (parser_asked(n) == MESSAGE_SPACE) {
		s->n_sent += n->unwinding.n_asked_maps;
		s->refused = error < 0;
		if (s->n_sent == s->n_maps)
			s->sent = worker_generation(&n->parser);
	}
	job_enqueue(n, j, true);
}

static struct file *file_of(const struct snapshot *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->n_maps; i++)
		if (s->map[i].file && s->map[i].file->id == id)
			return s->map[i].file;
	return NULL;
}

/* An address without a file in the unwinder may still be in a mapping: code of a JIT, or of a file
 * that could not be opened. */
static bool fill_frame(const struct snapshot *s, const struct message_frame *from,
	struct file **ret_file, uint64_t *ret_offset)
{
	struct file *file = from->file ? file_of(s, from->file) : NULL;
	uint64_t offset = from->offset;

	if (from->file && !file)
		return false;
	if (!from->file) {
		const struct space space = {.map = s->map, .n_maps = s->n_maps};
		const struct map *m = space_find(&space, offset);
		file = m ? m->file : NULL;
		if (file && (file->kind == FILE_ELF || file->kind == FILE_VDSO))
			offset = offset - m->start + m->file_offset;
	}
	*ret_file = file;
	*ret_offset = offset;
	return true;
}

int job_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct job *j = n->unwinding.job;
	struct reply_unwound reply;
	struct unwind_result result = {0};

	if (!j || reply_unwound(bytes, n_bytes, &reply) < 0)
		return -EBADMSG;
	struct snapshot *s = j->snapshot;
	if (reply.unwound.outcome == UNWINDING_NO_SPACE && j->retries++ < NO_SPACE_MAX) {
		s->sent = s->progress = 0;
		s->asked = false;
		job_enqueue(n, take_back(n), true);
		return 0;
	}
	for (uint32_t i = 0; i < reply.unwound.n; i++)
		if (!fill_frame(s, &reply.frame[i], &result.frame[i].file, &result.frame[i].offset))
			return -EBADMSG;
	result.n_frames = reply.unwound.n;
	result.truncated = result.deep = reply.unwound.truncated; /* mostly */
	job_finish(n, take_back(n), reply.unwound.outcome == UNWINDING_DONE ? &result : NULL);
	return 0;
}

void job_ended(struct namer *n, enum worker_end end)
{
	struct job *j = take_back(n);

	if (!job_is_proven(n, j) || (end == WORKER_KILLED && j->retries++ == 0)) {
		job_enqueue(n, j, true);
		n->unwinding.trial = j;
		return;
	}
	count_death(n, j->snapshot->pid, j->user);
	job_finish(n, j, NULL);
}

bool job_is_asked(const struct namer *n)
{
	return n->unwinding.job;
}

bool job_is_on_trial(const struct namer *n)
{
	return n->unwinding.trial;
}

size_t jobs_waiting(const struct namer *n)
{
	return n->unwinding.n_waiting;
}

uint64_t jobs_unwound(const struct namer *n)
{
	return n->unwinding.n_unwound + callers_found(n);
}

void jobs_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (const struct snapshot *s = n->unwinding.snapshots; s; s = s->hh.next)
		for (uint32_t i = 0; i < s->n_maps; i++)
			file_marks_keep(m, s->map[i].file);
}

void jobs_fail(struct namer *n)
{
	struct naming_user *u;
	struct job *j;

	for (uint32_t i = 0; (u = naming_user_at(&n->users, i)); i++)
		while ((j = TAILQ_FIRST(&u->jobs))) {
			job_dequeue(n, j);
			job_finish(n, j, NULL);
		}
}

void jobs_free(struct namer *n)
{
	if (n->unwinding.job)
		job_finish(n, take_back(n), NULL);
	jobs_fail(n);
}
