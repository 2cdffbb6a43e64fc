/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A child says by its exit status which file was at fault, and writes why to the pipe's other end,
 * standard error, which is the journal. Roll-ups are idempotent (a target notes its sources), so a
 * segment that was interrupted, or done already by the run before, is simply done again.
 */
#include "daemon/service/roller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/child/offload.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/base/array.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000ull
/* Time after a period's end for which a segment of it may still be waiting for names. */
#define SEAL_AFTER_NS (600 * SECOND_NS)
#define SEAL_LOOK_NS (60 * SECOND_NS)
/* Interval between two searches for segments that are in no roll-up and were not announced:
 * recovered late, or their roll-up failed or was set aside. The interval doubles after each
 * failure, so that a segment that can never be added costs little. */
#define LOOK_NS (60 * SECOND_NS)
#define LOOK_NS_MAX (3600 * SECOND_NS)
#define ROLLED_WHOLLY (1u << TIER_MINUTE | 1u << TIER_HOUR)

enum { ENDED_WELL, ENDED_SOURCE, ENDED_TARGET, ENDED_TROUBLE = ENDED_TARGET + N_TIERS };

struct task_of_roller {
	char *source;          /* path of a sealed window segment; NULL: seal the target */
	char *target[N_TIERS]; /* path; NULL: not asked for */
};

struct roller {
	struct store *store;
	char **waiting; /* paths, first come first */
	size_t n_waiting, size;
	struct task_of_roller task; /* of the child */
	struct offload *child;
	uint64_t next_seal_ns, next_look_ns, look_ns;
	bool failed;               /* since the last look */
	uint64_t n_done, n_failed; /* children; tests read them */
	struct shares *
		shares; /* users' shares of the minute tier; in shared memory, since children charge them */
};

static void task_clear(struct task_of_roller *t)
{
	free(t->source);
	for (int tier = 0; tier < N_TIERS; tier++)
		free(t->target[tier]);
	*t = (struct task_of_roller){0};
}

static struct store_file *find(const struct store *s, const char *path)
{
	size_t n = strlen(s->path);
	if (strncmp(path, s->path, n) != 0 || path[n] != '/')
		return NULL;
	for (size_t i = 0; i < s->n_files; i++)
		if (strcmp(s->file[i].name, path + n + 1) == 0)
			return &s->file[i];
	return NULL;
}

/* --- in the child ----------------------------------------------------------------------------- */

static int ended(int r, enum tier tier, const char *target, const struct store_error *error)
{
	if (r == 0 || r == ROLLUP_DONE_BEFORE)
		return ENDED_WELL;
	if (*error->text)
		fprintf(stderr, "mperfd: a roll-up failed: %s\n", error->text);
	else
		fprintf(stderr, "mperfd: the roll-up %s failed: %s\n", target,
			r < 0 ? strerror(-r) : "for an unknown reason");
	return r == ROLLUP_SOURCE_BROKEN   ? ENDED_SOURCE
	       : r == ROLLUP_TARGET_BROKEN ? ENDED_TARGET + (int)tier
					   : ENDED_TROUBLE;
}

static int run_child(void *userdata)
{
	struct roller *r = userdata;
	int status = ENDED_WELL;
	for (int tier = TIER_MINUTE; tier < N_TIERS && status == ENDED_WELL; tier++) {
		struct store_error error = {"", ""};
		const char *target = r->task.target[tier];
		if (!target)
			continue;
		struct shares *shares = tier == TIER_MINUTE ? r->shares : NULL;
		int outcome = r->task.source ? rollup_add_within(r->task.source, target,
						       (enum tier)tier, shares, &error)
					     : rollup_seal(target, &error);
		status = ended(outcome, (enum tier)tier, target, &error);
	}
	return status;
}

/* --- in the daemon ---------------------------------------------------------------------------- */

int roller_add(struct roller *r, const char *path)
{
	if (r->n_waiting >= ROLLER_WAITING_MAX)
		return 0;
	int e = array_grow_long(&r->waiting, &r->size, r->n_waiting + 1, sizeof(*r->waiting));
	if (e < 0)
		return e;
	r->waiting[r->n_waiting] = strdup(path);
	return r->waiting[r->n_waiting] ? (r->n_waiting++, 0) : -ENOMEM;
}

/* Everything in the store that is not rolled up yet, oldest first. */
static int add_unrolled(struct roller *r)
{
	for (size_t i = 0; i < r->store->n_files; i++) {
		const struct store_file *f = &r->store->file[i];
		if (f->tier != TIER_WINDOW || !f->sealed || f->corrupt || f->other_version ||
			(f->rolled & ROLLED_WHOLLY) == ROLLED_WHOLLY)
			continue;
		_cleanup_(freep) char *path = NULL;
		if (asprintf(&path, "%s/%s", r->store->path, f->name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		int result = roller_add(r, path);
		if (result < 0)
			return result;
	}
	return 0;
}

void roller_allow(struct roller *r, uint64_t budget_bytes, uint64_t keep_ns)
{
	const struct share_room room = {
		.budget = budget_bytes,
		.used = store_tier_bytes(r->store, TIER_MINUTE),
		.keep_ns = keep_ns,
		.file_ns = tier_period_ns(TIER_MINUTE),
	};
	/* a child has it too, and reads what others made */
	if (r->child)
		return;
	if (r->shares->n_users > SHARE_USERS_MAX)
		*r->shares = (struct shares){0};
	shares_allow(r->shares, &room);
	shares_refill(r->shares, clock_ns(CLOCK_MONOTONIC));
}

static int look(struct roller *r, uint64_t now_ns)
{
	if (r->n_waiting > 0 || r->task.source || now_ns < r->next_look_ns)
		return 0;
	r->look_ns = !r->failed                     ? LOOK_NS
		     : r->look_ns < LOOK_NS_MAX / 2 ? 2 * r->look_ns
						    : LOOK_NS_MAX;
	r->next_look_ns = now_ns + r->look_ns;
	r->failed = false;
	return add_unrolled(r);
}

int roller_new(struct store *s, struct roller **ret_roller)
{
	struct roller *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	void *shares = mmap(NULL, sizeof(*r->shares), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shares == MAP_FAILED) {
		free(r);
		return -ENOMEM;
	}
	r->shares = shares;
	r->store = s;
	r->look_ns = LOOK_NS;
	r->next_look_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	if (add_unrolled(r) < 0) {
		roller_free(r);
		return -ENOMEM;
	}
	*ret_roller = r;
	return 0;
}

/* Start the child. A start fails for want of processes, memory or descriptors: false, and the next
 * dispatch tries again. */
static bool start(struct roller *r)
{
	return offload_run(run_child, r, &r->child) == 0;
}

/* The next segment that is still there. */
static int start_add(struct roller *r)
{
	while (r->n_waiting > 0 && !r->task.source) {
		char *path = r->waiting[0];
		memmove(r->waiting, r->waiting + 1, --r->n_waiting * sizeof(*r->waiting));
		const struct store_file *f = find(r->store, path);
		if (!f || f->corrupt) {
			free(path); /* retention has removed it already */
			continue;
		}
		r->task.source = path;
		for (int tier = TIER_MINUTE; tier < N_TIERS; tier++) {
			int result = store_target_path(
				r->store, f, (enum tier)tier, &r->task.target[tier]);
			if (result < 0)
				return result;
		}
	}
	if (r->task.source)
		(void)start(r);
	return 0;
}

/* A file whose period is over, if there is one. */
static int start_seal(struct roller *r, uint64_t now_ns)
{
	int64_t realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	if (r->n_waiting > 0 || now_ns < r->next_seal_ns)
		return 0;
	r->next_seal_ns = now_ns + SEAL_LOOK_NS;
	for (size_t i = 0; i < r->store->n_files; i++) {
		const struct store_file *f = &r->store->file[i];
		int64_t over_ns = tier_start_ns(f->tier, f->start_ns) +
				  (int64_t)(tier_period_ns(f->tier) + SEAL_AFTER_NS);
		if (f->tier == TIER_WINDOW || f->sealed || f->corrupt || over_ns > realtime_ns)
			continue;
		if (asprintf(&r->task.target[f->tier], "%s/%s", r->store->path, f->name) < 0) {
			r->task.target[f->tier] = NULL;
			return -ENOMEM;
		}
		if (!start(r))
			task_clear(&r->task);
		return 0;
	}
	return 0;
}

static void set_aside(struct roller *r, const char *path)
{
	const struct store_file *f = path ? find(r->store, path) : NULL;
	if (f)
		(void)store_set_aside(r->store, f->name);
}

static void take_end(struct roller *r, const struct offload_end *end)
{
	bool well = end->signal == 0 && end->status == ENDED_WELL;
	r->n_done += well;
	r->n_failed += !well;
	r->failed |= !well;
	for (int tier = TIER_MINUTE; tier < N_TIERS; tier++) {
		if (r->task.target[tier])
			(void)store_note(r->store, r->task.target[tier]);
		if (end->signal == 0 && end->status == ENDED_TARGET + tier)
			set_aside(r, r->task.target[tier]);
	}
	if (end->signal == 0 && end->status == ENDED_SOURCE)
		set_aside(r, r->task.source);
	task_clear(&r->task);
	r->child = offload_free(r->child);
}

int roller_dispatch(struct roller *r, uint64_t now_ns)
{
	if (r->child) {
		struct offload_end end;
		int result = offload_poll(r->child, &end);
		if (result != 0)
			return result < 0 ? result : 0;
		take_end(r, &end);
	}
	int result = look(r, now_ns);
	if (result < 0)
		return result;
	if (r->task.source)
		(void)start(r);
	else
		result = start_add(r);
	return result == 0 && !r->child && !r->task.source ? start_seal(r, now_ns) : result;
}

size_t roller_fds(const struct roller *r, struct pollfd *fds, size_t n)
{
	if (!r->child || n == 0)
		return 0;
	fds[0] = (struct pollfd){.fd = offload_fd(r->child), .events = POLLIN};
	return 1;
}

struct roller *roller_free(struct roller *r)
{
	if (!r)
		return NULL;
	offload_free(r->child);
	task_clear(&r->task);
	for (size_t i = 0; i < r->n_waiting; i++)
		free(r->waiting[i]);
	free(r->waiting);
	munmap(r->shares, sizeof(*r->shares));
	free(r);
	return NULL;
}
