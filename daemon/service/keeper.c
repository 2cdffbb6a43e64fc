/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Storing is a state; we log each change: "stored in …", "not stored: why". Whatever the reason for
 * not storing (no space, read-only, another daemon, a budget that is too small), we do the same:
 * count the samples in memory as lost, leave the segment to be recovered, and try again RETRY_NS
 * later. If only room is missing, the store stays open, so that clients can still query what it
 * has.
 *
 * Every loss is recorded in a segment: a new segment counts losses from where the last one ended,
 * so the losses of a time without a store are in the first window after it.
 */
#include "daemon/service/keeper_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000u
#define RETRY_NS (10ull * SECOND_NS)
/* How long to wait for names of the last windows when the daemon ends. */
#define STOP_NAMES_NS SECOND_NS
/* Names come promptly for this long after a client asked. */
#define ASKED_LATELY_NS (10ull * SECOND_NS)
/* A segment is closed early at this fraction of the budget, so that there are always several to
 * choose from when room has to be made. */
#define SEGMENT_BUDGET_PART 8
/* Space to free in advance: as much as a second can need. */
#define HEADROOM_BUDGET_PART 64
#define HEADROOM_BYTES_MIN (1u << 20)
/* Starting a segment takes this many times that, so that a store at its limit does not keep
 * stopping and starting. */
#define HEADROOMS_TO_BEGIN 4
/* Call sites of one segment. Each has 112 bytes in our memory and keeps a frame of as many: 27 MB.
 * An hour of a build machine has some 100,000; generated code at a high rate, more in minutes. */
#define STACK_NODES_CROWDED 120000u
/* If the clock moves by more than NTP slews in an hour (500 ppm), it was set. */
#define CLOCK_STEP_NS (5ll * SECOND_NS)

static void __attribute__((format(printf, 3, 4))) say(
	const struct keeper *k, int level, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	k->o.say(k->o.userdata, level, text);
}

static void report(const struct keeper *k)
{
	k->o.report(k->o.owner, k->store, k->trouble);
}

static void set_trouble(struct keeper *k, const char *why)
{
	snprintf(k->trouble, sizeof(k->trouble), "%s", why);
	report(k);
}

static void take(void *userdata, const struct attribution *a)
{
	struct keeper *k = userdata;
	if (!k->recording)
		k->lost[a->hart][LOSS_STORE] += attribution_samples(a);
}

static int lose_loops(void *userdata, struct task *task, const struct loop_counts *c)
{
	struct keeper *k = userdata;
	(void)task, (void)c;
	if (!k->recording)
		k->lost[0][LOSS_LOOPS]++; /* of no hart */
	return 0;
}

/* --- the store comes and goes ----------------------------------------------------------------- */

static struct store_limits limits_of(const struct conf *c)
{
	return (struct store_limits){
		.budget_bytes = c->budget_bytes,
		.min_free_bytes = c->min_free_bytes,
		.keep_ns = {[TIER_WINDOW] = c->keep_windows_ns,
			[TIER_MINUTE] = c->keep_minutes_ns,
			[TIER_HOUR] = c->keep_hours_ns},
	};
}

/* Free a recording whose samples are stored or counted. A file that it could not seal is recovered when there is
 * room. */
static void drop(struct keeper *k, struct recording *g)
{
	struct recording_state state;
	recording_state(g, &state);
	k->n_stored += state.n_stored;
	k->n_passed += state.n_passed;
	_cleanup_(freep) char *path = strdup(state.path);
	recording_free(g);
	if (path)
		(void)store_note(k->store, path);
}

static void drop_recording(struct keeper *k)
{
	if (k->recording)
		drop(k, TAKE_PTR(k->recording));
	free(TAKE_PTR(k->path));
}

static void close_store(struct keeper *k)
{
	drop_recording(k);
	for (size_t i = 0; i < ENDING_MAX; i++)
		if (k->ending[i])
			drop(k, TAKE_PTR(k->ending[i]));
	k->pinner = pinner_free(k->pinner);
	k->roller = roller_free(k->roller);
	k->account = account_free(k->account);
	struct store *closed = TAKE_PTR(k->store);
	report(k);
	store_free(closed);
}

/* Stop storing, and log why, once for each reason. */
static void stop_storing(struct keeper *k, const char *why, const char *remedy)
{
	char before[sizeof(k->trouble)];
	memcpy(before, k->trouble, sizeof(before));
	set_trouble(k, why);
	if (!k->said_trouble || strcmp(before, k->trouble) != 0)
		say(k, LOG_ERR,
			"samples are not stored: %s; sampling and top continue, storing is "
			"tried again every %llu s%s%s",
			why, (unsigned long long)(RETRY_NS / SECOND_NS), *remedy ? ". " : "",
			remedy);
	k->said_trouble = true;
	drop_recording(k);
	k->next_try_ns = clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
}

static void stop_for_space(struct keeper *k)
{
	char why[512];
	snprintf(why, sizeof(why), "the file system of %s has no space left above min-free",
		k->o.conf->store_path);
	stop_storing(k, why, "Free some space, or lower min-free in mperf.conf.");
}

/* Act on the outcome of a segment: SEGMENT_* or -errno. */
static void stop_for(struct keeper *k, int outcome)
{
	const char *path = k->o.conf->store_path;
	char why[512];
	if (outcome == SEGMENT_NO_SPACE) {
		stop_for_space(k);
		return;
	}
	if (outcome == SEGMENT_CORRUPT)
		snprintf(why, sizeof(why), "the file being written in %s is damaged", path);
	else if (outcome == SEGMENT_HELD)
		snprintf(
			why, sizeof(why), "a reader has held a file of %s open for too long", path);
	else
		snprintf(why, sizeof(why), "%s accepts no more writes: %s", path,
			outcome < 0 ? strerror(-outcome) : "it is now read-only");
	stop_storing(k, why,
		outcome == -EFBIG ? "Raise LimitFSIZE= of the unit."
				  : "Let the daemon's user write there.");
}

/* Fractions of the budget without pins that windows and minutes may take. Hours have the remainder,
 * and bounds of their own (ROLLUP_HOUR_ROWS). */
#define WINDOW_BUDGET_PART 11 / 16
#define MINUTE_BUDGET_PART 3 / 16

/* Set how much users may write, so that windows fit into the budget for as long as mperf.conf keeps
 * them. */
static void allow(struct keeper *k)
{
	uint64_t pins = store_pins_bytes(k->store), budget = k->o.conf->budget_bytes;
	budget = budget > pins ? budget - pins : 0;
	const struct share_room room = {
		.budget = budget * WINDOW_BUDGET_PART,
		.used = store_tier_bytes(k->store, TIER_WINDOW),
		.keep_ns = k->o.conf->keep_windows_ns,
		.file_ns = tier_period_ns(TIER_WINDOW),
	};
	shares_allow(&k->shares, &room);
	if (k->roller)
		roller_allow(k->roller, budget * MINUTE_BUDGET_PART, k->o.conf->keep_minutes_ns);
	if (k->pinner)
		pinner_allow(k->pinner, k->o.conf);
}

/* Make room. False: nothing is left to remove, and that was logged. */
static bool make_room(struct keeper *k, uint64_t n_headrooms)
{
	struct store_limits limits = limits_of(k->o.conf);
	uint64_t headroom = limits.budget_bytes / HEADROOM_BUDGET_PART;
	if (headroom < HEADROOM_BYTES_MIN)
		headroom = HEADROOM_BYTES_MIN;
	headroom *= n_headrooms;
	bool fits = true;
	if (store_measure(k->store) == 0)
		(void)store_retain(k->store, &limits, (int64_t)clock_ns(CLOCK_REALTIME), headroom,
			k->path, &fits);
	allow(k);
	if (fits)
		return true;
	if (k->store->bytes + headroom <= limits.budget_bytes) {
		stop_for_space(k);
		return false;
	}
	char why[512];
	snprintf(why, sizeof(why), "the budget of %s is used up and nothing is left to remove",
		k->store->path);
	stop_storing(k, why,
		k->store->n_pins > 0 ? "Raise budget in mperf.conf, or unpin jobs (mperfctl store "
				       "lists them)."
				     : "Raise budget in mperf.conf.");
	return false;
}

/* 0, RECORDING_*, -errno. */
static int begin_segment(struct keeper *k, uint64_t start_ns)
{
	int64_t realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	char boot_id[KERNEL_BOOT_ID_BYTES];
	kernel_boot_id(&kernel_real, boot_id);
	_cleanup_(freep) char *path = NULL;
	int r = store_new_path(k->store, realtime_ns, boot_id, &path);
	if (r != 0)
		return r;
	struct recording_options o = {
		.walk = k->o.walk,
		.shared = true,
		.targets = {.all = true},
		.start_ns = start_ns,
		.window_ns = keeper_window_ns(k),
		.path = path,
		.live = true,
		.lost = k->lost,
		.recorded = k->recorded,
		.shares = &k->shares,
		.hz = k->o.conf->rate,
		.counts = k->counts,
		.taken = k->account ? account_taken(k->account) : NULL,
	};
	struct event_error error = {""};
	r = recording_new(&o, &k->recording, &error);
	if (r != 0)
		return r;
	k->path = TAKE_PTR(path);
	k->period = realtime_ns / (int64_t)tier_period_ns(TIER_WINDOW);
	k->offset_ns = (int64_t)k->o.walk->realtime_offset_ns;
	k->flushed_ns = clock_ns(CLOCK_MONOTONIC);
	k->rotate = false;
	if (k->account)
		account_begin(k->account, k->path);
	return store_note(k->store, k->path);
}

/* Make room, and begin. 0, also if nothing can be stored, which is logged; -ENOMEM. */
static int begin_storing(struct keeper *k, uint64_t start_ns)
{
	if (!make_room(k, HEADROOMS_TO_BEGIN))
		return 0;
	int r = begin_segment(k, start_ns);
	if (r == 0 || r == -ENOMEM)
		return r;
	stop_for(k, r == RECORDING_FULL ? SEGMENT_NO_SPACE : r < 0 ? r : SEGMENT_READ_ONLY);
	/* a new folder may have replaced it */
	if (r != RECORDING_FULL)
		close_store(k);
	return 0;
}

/* Enter the losses of a run that was killed, once for each store: later losses of this run go into
 * its next segment. */
static void settle(struct keeper *k)
{
	uint64_t lost = 0;
	int r = account_open(k->store, k->n_harts, &k->account);
	if (r == 0 && strcmp(k->settled, k->store->path) != 0)
		r = account_settle(k->account, k->store, &lost);
	snprintf(k->settled, sizeof(k->settled), "%s", k->store->path);
	if (r < 0)
		say(k, LOG_WARNING,
			"the samples that the last run had not yet stored cannot be counted: %s",
			strerror(-r));
	else if (r > 0)
		say(k, LOG_WARNING,
			"the last run was killed before it had stored its last %llu samples",
			(unsigned long long)lost);
}

/* 0; 1: not available, which was logged; -ENOMEM. */
static int open_store(struct keeper *k)
{
	struct store_error error = {"", ""};
	int r = store_open(k->o.conf->store_path, &k->store, &error);
	if (r == -ENOMEM)
		return r;
	if (r != 0) {
		stop_storing(k, r > 0 ? error.text : strerror(-r), error.remedy);
		return 1;
	}
	if (k->store->n_corrupt > 0)
		say(k, LOG_WARNING, "%llu damaged files of the store were set aside in %s/corrupt",
			(unsigned long long)k->store->n_corrupt, k->store->path);
	settle(k);
	report(k);
	r = roller_new(k->store, &k->roller);
	const struct pinner_options pins = {.store = k->store,
		.tasks = &k->o.walk->tasks,
		.say = k->o.say,
		.userdata = k->o.userdata};
	return r == 0 ? pinner_new(&pins, &k->pinner) : r;
}

/* Open the store, if it is not open, and record into it. 0, also if that fails; -ENOMEM. */
static int try_to_store(struct keeper *k)
{
	k->next_try_ns = clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
	if (!k->o.conf->store) {
		set_trouble(k, "mperf.conf says keep = no");
		return 0;
	}
	int r = k->store ? 0 : open_store(k);
	if (r == 0)
		r = begin_storing(k, 0);
	if (r < 0 || !k->recording)
		return r < 0 ? r : 0;
	if (k->said_trouble)
		say(k, LOG_NOTICE, "samples are stored again in %s", k->store->path);
	k->said_trouble = false;
	set_trouble(k, "");
	return 0;
}

/* --- one segment after another ---------------------------------------------------------------- */

/* True if there is a place for a segment that waits for its names. */
static bool may_end(const struct keeper *k)
{
	for (size_t i = 0; i < ENDING_MAX; i++)
		if (!k->ending[i])
			return true;
	return false;
}

static int end_segment(struct keeper *k, uint64_t now_ns)
{
	size_t slot = 0;
	while (k->ending[slot])
		slot++;
	int r = recording_finish(k->recording, now_ns);
	if (r < 0)
		return r;
	k->ending[slot] = TAKE_PTR(k->recording);
	free(TAKE_PTR(k->path));
	return 0;
}

/* End the segment and begin another at the same moment: nothing is drained between the two. */
static int rotate(struct keeper *k, uint64_t now_ns)
{
	k->rotate = true;
	if (!may_end(k))
		return 0; /* later: the oldest of them is about to be sealed */
	int r = end_segment(k, now_ns);
	return r < 0 ? r : begin_storing(k, now_ns);
}

static bool rotation_is_due(struct keeper *k)
{
	if (k->rotate)
		return true;
	struct recording_state state;
	recording_state(k->recording, &state);
	int64_t realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	int64_t step_ns = (int64_t)k->o.walk->realtime_offset_ns - k->offset_ns;
	if (step_ns > CLOCK_STEP_NS || step_ns < -CLOCK_STEP_NS) {
		say(k, LOG_NOTICE, "the clock was changed by %+.1f s: the store begins a new file",
			(double)step_ns / SECOND_NS);
		return true;
	}
	return realtime_ns / (int64_t)tier_period_ns(TIER_WINDOW) != k->period ||
	       state.n_stack_nodes > STACK_NODES_CROWDED ||
	       (state.bytes > 0 &&
		       (uint64_t)state.bytes > k->o.conf->budget_bytes / SEGMENT_BUDGET_PART);
}

/* Check which of the ended segments are sealed. */
static int tend_ending(struct keeper *k, uint64_t now_ns)
{
	for (size_t i = 0; i < ENDING_MAX; i++) {
		if (!k->ending[i])
			continue;
		int r = recording_dispatch(k->ending[i], now_ns);
		if (r == 0)
			continue;
		if (r < 0)
			return r;
		if (r == RECORDING_SEALED) {
			struct recording_state state;
			recording_state(k->ending[i], &state);
			r = roller_add(k->roller, state.path);
		}
		drop(k, TAKE_PTR(k->ending[i]));
		if (r < 0)
			return r;
	}
	return 0;
}

static int tend_recording(struct keeper *k, uint64_t now_ns)
{
	if (!k->recording)
		return now_ns >= k->next_try_ns ? try_to_store(k) : 0;
	int r = recording_dispatch(k->recording, now_ns);
	if (r != RECORDING_LOST_STORE)
		return r < 0 ? r : 0;
	struct recording_state state;
	recording_state(k->recording, &state);
	stop_for(k, state.outcome);
	/* another file has no reader yet */
	return state.outcome == SEGMENT_HELD ? try_to_store(k) : 0;
}

/* Once a second. */
static int look(struct keeper *k, uint64_t now_ns)
{
	k->next_look_ns = now_ns + SECOND_NS;
	if (!k->recording || !make_room(k, 1))
		return 0;
	return rotation_is_due(k) ? rotate(k, now_ns) : 0;
}

/* Who asked lately may ask again, for the names that have come; a pin waits for all. */
static bool wants_names(const struct keeper *k, uint64_t now_ns)
{
	return now_ns < k->flushed_ns + ASKED_LATELY_NS || keeper_awaits_pin(k);
}

int keeper_dispatch(struct keeper *k, uint64_t now_ns)
{
	if (k->account)
		account_write(k->account);
	k->tap.is_patient = !wants_names(k, now_ns);
	int r = tend_recording(k, now_ns);
	if (r == 0 && k->store)
		r = tend_ending(k, now_ns);
	if (r == 0 && k->roller)
		r = roller_dispatch(k->roller, now_ns);
	if (r == 0 && k->pinner)
		r = keeper_tend_pins(k, now_ns);
	if (r == 0 && now_ns >= k->next_look_ns)
		r = look(k, now_ns);
	return r;
}

int keeper_new(const struct keeper_options *o, struct keeper **ret_keeper)
{
	struct keeper *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->o = *o;
	k->n_harts = o->walk->sampler->machine.n_harts;
	k->lost = calloc((size_t)k->n_harts, sizeof(*k->lost));
	k->recorded = calloc((size_t)k->n_harts, sizeof(*k->recorded));
	k->tap = (struct tap){.userdata = k,
		.take = take,
		.take_loops = lose_loops,
		.cut_ns = UINT64_MAX,
		.is_always = true};
	walk_add(o->walk, &k->tap);
	int r = k->lost && k->recorded ? try_to_store(k) : -ENOMEM;
	if (r < 0) {
		keeper_free(k);
		return r;
	}
	*ret_keeper = k;
	return 0;
}

size_t keeper_fds(const struct keeper *k, struct pollfd *fds, size_t n)
{
	size_t filled = k->roller ? roller_fds(k->roller, fds, n) : 0;
	return filled + (k->pinner ? pinner_fds(k->pinner, fds + filled, n - filled) : 0);
}

int keeper_reload(struct keeper *k)
{
	const struct conf *c = k->o.conf;
	if (k->store && (!c->store || strcmp(k->store->path, c->store_path) != 0)) {
		keeper_stop(k);
		close_store(k);
	}
	/* the flush interval may have changed */
	return k->recording ? rotate(k, clock_ns(CLOCK_MONOTONIC)) : try_to_store(k);
}

/* Seal segments that have ended, without waiting for names; takes as long as sealing takes. */
static void seal_now(struct keeper *k)
{
	int r = 0;
	while (r == 0 && keeper_any_ending(k))
		r = tend_ending(k, UINT64_MAX);
}

/* Wait a second for the names of segments that have ended; then seal them with the names they
 * have. */
static void seal_ending(struct keeper *k)
{
	uint64_t now_ns, until_ns = clock_ns(CLOCK_MONOTONIC) + STOP_NAMES_NS;
	int r = 0;
	namer_be_patient(k->o.walk->namer, false);
	while (r == 0 && keeper_any_ending(k) && (now_ns = clock_ns(CLOCK_MONOTONIC)) < until_ns) {
		struct pollfd fds[NAMER_FDS_MAX];
		(void)poll(fds, (nfds_t)namer_fds(k->o.walk->namer, fds), 50);
		r = namer_dispatch(k->o.walk->namer, now_ns);
		if (r == 0)
			r = tend_ending(k, now_ns);
	}
	seal_now(k);
}

void keeper_stop(struct keeper *k)
{
	if (!may_end(k))
		seal_now(k);
	struct recording *last = k->recording;
	struct recording_state state = {.outcome = 0};
	int r = last ? end_segment(k, clock_ns(CLOCK_MONOTONIC)) : 0;
	while (r == 0 && last && recording_is_writing(last))
		/* the state has the result */
		(void)recording_dispatch(last, clock_ns(CLOCK_MONOTONIC));
	if (last)
		recording_state(last, &state);
	seal_ending(k);
	if (!last || !k->account)
		return;
	if (r == 0 && state.outcome == 0)
		account_end(k->account);
	else
		account_write(k->account); /* the next run reports the missing samples */
}

int keeper_select(struct keeper *k, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	if (!k->store) {
		*ret_part = NULL;
		*ret_n_parts = 0;
		return 0;
	}
	/* keep answers up to date, but let no client make us write more than once a second */
	if (k->recording && now_ns - k->flushed_ns >= KEEPER_FRESH_NS) {
		k->flushed_ns = now_ns;
		int r = recording_flush(k->recording, now_ns);
		if (r < 0)
			return r;
	}
	return store_select(k->store, since_ns, until_ns, coarsest, ret_part, ret_n_parts);
}

struct keeper *keeper_free(struct keeper *k)
{
	if (!k)
		return NULL;
	walk_remove(k->o.walk, &k->tap);
	close_store(k);
	free(k->lost);
	free(k->recorded);
	free(k);
	return NULL;
}
