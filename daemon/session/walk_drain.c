/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We drain in slices of the loop's time, with a pause as long as the slice after each. So whatever comes, the loop
 * has half of its time for other work, and records that come faster than that are lost in their own ring. A drain
 * that takes more than one slice keeps its first end, so that it ends. A caller that needs all samples so far gets
 * those of the session's own events at once, and those of raises for some slices' time: rings of raises may not be
 * emptied then, and their samples reach a tap late.
 */
#include "daemon/sampler/effort.h"
#include "daemon/session/walk_private.h"

#include "proto/base/clock.h"

/* Between two looks at the execs, and at the clock: a drain of many samples takes longer than some processes live,
 * and a stack of which no frame has been seen before takes a millisecond. In records, and in frames (RECORD_UNITS). */
#define EXEC_LOOK_RECORDS 32
#define LOOK_UNITS 256
/* Limit of cuts in one slice after a stall, before the loop continues with its other work; some
 * seconds' worth. */
#define CUTS_DUE_MAX 64
/* CPU time for samples of raises when all samples so far are needed at once. */
#define RAISED_AT_ONCE_NS (3 * DRAIN_SLICE_NS)
/* Eighths of a ring: drain before the beat; drain at once, since samples are about to be lost. */
#define RING_FILLS 1
#define RING_IS_SHORT 4
/* Cost of a record besides the frames of its stack, expressed in frames; bytes of a copied stack in which one frame
 * more is expected. */
#define RECORD_UNITS 4u
#define BYTES_PER_FRAME 256

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void walk_spend(struct walk *w, enum walk_work on)
{
	uint64_t now_ns = thread_cpu_ns();
	if (on < N_WALK_WORKS)
		w->cpu_ns[on] += now_ns - w->inner->spent_ns;
	w->inner->spent_ns = now_ns;
}

bool walk_is_woken_by_execs(const struct walk *w)
{
	const struct sampler *s = w->sampler;
	return w->inner->execs.wakes_max && s->n_exec_rings > 0 &&
	       hart_set_count(&s->exec_records) < s->machine.n_harts;
}

void walk_put_off_execs(struct walk *w, bool put_off)
{
	if (w->inner->execs.wakes_max)
		w->inner->execs.put_off = put_off;
}

static void count_told(struct walk *w, const struct record *r)
{
	w->n_sideband[TASK_FORK] += r->kind == RECORD_FORK;
	w->n_sideband[TASK_EXEC] += r->kind == RECORD_COMM && r->comm.exec;
	w->n_sideband[TASK_MAPPING] += r->kind == RECORD_MMAP;
}

static uint64_t units_of(const struct record *r)
{
	if (r->kind != RECORD_SAMPLE)
		return RECORD_UNITS;
	return RECORD_UNITS + r->sample.n_callchain + r->sample.n_stack / BYTES_PER_FRAME;
}

static int take_record(struct walk *w, const struct record *record, int hart)
{
	struct walk_inner *in = w->inner;
	const bool is_sample = record->kind == RECORD_SAMPLE;
	const uint64_t units = units_of(record);
	if (is_sample && record->stream->role == STREAM_RAISED &&
		!raises_admit(w, record->stream->raise, units))
		return 0;
	in->raises.units += units;
	if (record->stream &&
		(record->stream->role == STREAM_WAITS || record->stream->raise == RAISE_OF_WAITS))
		return switch_waits_record(in->waits, record, hart);
	if (is_sample && record->stream->role == STREAM_SAMPLER)
		stalled_sample(&in->stalled, hart);
	in->throttled |= record->kind == RECORD_THROTTLE;
	count_told(w, record);
	return attribute_record(w->attribute, record, hart);
}

/* A drain's time, divided between records of the session's own samples and switches and all others. The thread's CPU clock is a system
 * call, so it is read at both ends alone, and divided as wall time is, which is read where one kind follows the
 * other. A neighbour that takes the CPU in between enters only the division. */
struct division {
	uint64_t began_cpu_ns, began_ns, last_ns, samples_ns;
	bool is_sample; /* the record in hand */
};

static void division_begin(struct division *d)
{
	*d = (struct division){
		.began_cpu_ns = thread_cpu_ns(), .began_ns = clock_ns(CLOCK_MONOTONIC)};
	d->last_ns = d->began_ns;
}

static void division_turn(struct division *d, bool is_sample)
{
	if (is_sample == d->is_sample)
		return;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	d->samples_ns += d->is_sample ? now_ns - d->last_ns : 0;
	d->last_ns = now_ns;
	d->is_sample = is_sample;
}

static void division_end(struct walk *w, struct division *d)
{
	division_turn(d, !d->is_sample);
	uint64_t all_ns = d->last_ns - d->began_ns, cpu = thread_cpu_ns() - d->began_cpu_ns;
	uint64_t samples =
		all_ns ? (uint64_t)((double)cpu * (double)d->samples_ns / (double)all_ns) : 0;
	w->cpu_ns[WALK_SAMPLES] += samples;
	w->cpu_ns[WALK_SIDEBAND] += cpu - samples;
}

/* Deliver the records before cut_ns, in order, until the thread has used this much time. 0; -errno;
 * WALK_MORE: there are more. */
static int drain(struct walk *w, uint64_t cut_ns, uint64_t until_cpu_ns)
{
	struct walk_inner *in = w->inner;
	in->merge.ring = w->sampler->ring;
	in->merge.n_rings = w->sampler->n_rings;
	while (in->leaves_raised && in->merge.n_rings > 0 &&
		in->merge.ring[in->merge.n_rings - 1].raise > 0 &&
		in->merge.ring[in->merge.n_rings - 1].raise <= RAISES_MAX)
		in->merge.n_rings--;
	exec_watch_resume(&in->execs);
	struct division division;
	division_begin(&division);
	int r = merge_begin(&in->merge, cut_ns);
	if (r < 0)
		return r;
	for (uint64_t n = 0, units = 0; r == 0; n++) {
		if (n % EXEC_LOOK_RECORDS == 0 || units >= LOOK_UNITS) {
			units = 0;
			division_turn(&division, false);
			exec_watch_dispatch(&in->execs, clock_ns(CLOCK_MONOTONIC));
			if (n > 0 && thread_cpu_ns() >= until_cpu_ns)
				break;
		}
		struct record record;
		int hart;
		r = merge_next(&in->merge, &record, &hart);
		if (r != 0)
			break;
		const bool is_sample = record.kind == RECORD_SAMPLE && !record.stream->raise;
		division_turn(&division, is_sample);
		w->n_sample_records += is_sample;
		units += units_of(&record);
		r = take_record(w, &record, hart);
	}
	merge_end(&in->merge);
	division_turn(&division, false);
	attribute_drained(w->attribute);
	division_end(w, &division);
	if (r == MERGE_END && !in->leaves_raised)
		sampler_drained(w->sampler, cut_ns);
	return r == 0 ? WALK_MORE : r == MERGE_END ? 0 : r;
}

/* The same, with the looks at threads without a hart up to then. */
static int drain_with_looks(struct walk *w, uint64_t cut_ns, uint64_t until_cpu_ns)
{
	struct offcpu *offcpu = w->inner->offcpu;
	for (uint64_t look_ns = offcpu_next_ns(offcpu); look_ns < cut_ns;
		look_ns = offcpu_next_ns(offcpu)) {
		int r = drain(w, look_ns, until_cpu_ns);
		if (r == 0)
			r = offcpu_feed(offcpu, until_cpu_ns);
		if (r != 0)
			return r < 0 ? r : WALK_MORE;
	}
	return drain(w, cut_ns, until_cpu_ns);
}

static struct tap *first_cut(const struct walk *w)
{
	struct tap *first = NULL;
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->cut_ns != UINT64_MAX && (!first || tap->cut_ns < first->cut_ns))
			first = tap;
	return first;
}

/* Cut all windows that had ended by then, after a stall as many as one slice may, and drain up to
 * then; otherwise later records would get into these windows. Returns as drain does. */
static int cut_and_drain(struct walk *w, uint64_t by_ns, uint64_t until_cpu_ns)
{
	struct tap *tap = first_cut(w);
	for (int n = 0; tap && tap->cut_ns <= by_ns; n++, tap = first_cut(w)) {
		uint64_t cut_ns = tap->cut_ns;
		if (n == CUTS_DUE_MAX)
			return WALK_MORE;
		int r = drain_with_looks(w, cut_ns, until_cpu_ns);
		if (r == 0) {
			/* rows of threads that rest can be late in the store, but not in a top */
			offcpu_give(w->inner->offcpu, !tap->is_always);
			switch_waits_give(w->inner->waits, cut_ns - 1, false);
			tap->cut_ns = UINT64_MAX;
			r = tap->cut(tap->userdata, cut_ns);
		}
		if (r != 0)
			return r;
	}
	return drain_with_looks(w, by_ns, until_cpu_ns);
}

/* Time for threads that wait, which no raise pays for. */
static uint64_t fed_ns_of(const struct walk *w)
{
	return offcpu_state(w->inner->offcpu).caller_ns;
}

int walk_drain_slice(struct walk *w, uint64_t by_ns, uint64_t now_ns)
{
	struct walk_inner *in = w->inner;
	const uint64_t began_ns = thread_cpu_ns(), goal_ns = in->goal_ns ? in->goal_ns : by_ns;
	const uint64_t fed_ns = fed_ns_of(w);
	int r = cut_and_drain(w, goal_ns, began_ns + DRAIN_SLICE_NS);
	const uint64_t took_ns = thread_cpu_ns() - began_ns;
	raises_charge(w, took_ns - (fed_ns_of(w) - fed_ns), now_ns);
	in->pause_end_ns = clock_ns(CLOCK_MONOTONIC) + took_ns;
	in->goal_ns = r == WALK_MORE ? goal_ns : 0;
	if (r == WALK_MORE)
		in->next_drain_ns = in->pause_end_ns;
	return r;
}

int walk_drain_uncut(struct walk *w, uint64_t cut_ns)
{
	return drain(w, cut_ns, UINT64_MAX);
}

int walk_drain_all(struct walk *w, uint64_t by_ns)
{
	struct walk_inner *in = w->inner;
	const uint64_t began_ns = thread_cpu_ns(), fed_ns = fed_ns_of(w);
	int r = cut_and_drain(w, by_ns, began_ns + RAISED_AT_ONCE_NS);
	in->leaves_raised = true;
	while (r == WALK_MORE)
		r = cut_and_drain(w, by_ns, UINT64_MAX);
	in->leaves_raised = false;
	if (r == 0) {
		offcpu_give(in->offcpu, true);
		switch_waits_give(in->waits, by_ns - 1, true);
	}
	raises_charge(
		w, thread_cpu_ns() - began_ns - (fed_ns_of(w) - fed_ns), clock_ns(CLOCK_MONOTONIC));
	return r;
}

/* A LOST record comes once another record fits, which may be after the samples of what was lost. So the kernel's counts
 * are read. They fall when a hart goes, which may hide a loss: any change counts as one. */
static void look_for_lost_execs(struct walk *w, uint64_t now_ns)
{
	for (int apart = 0; apart < 2; apart++) {
		const uint64_t n = sampler_execs_lost(w->sampler, apart);
		if (n != w->inner->n_execs_lost[apart])
			attribute_execs_lost(w->attribute, now_ns, apart);
		w->inner->n_execs_lost[apart] = n;
	}
}

void walk_check_owners(struct walk *w)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!w->sampler->options.per_task) /* which has too many events */
		look_for_lost_execs(w, now_ns);
	attribute_check_owners(w->attribute, now_ns);
}

int walk_tend_copies(struct walk *w, uint64_t now_ns)
{
	struct sampler *s = w->sampler;
	const struct copy_depths found = attribute_take_depths(w->attribute);
	const uint32_t bytes = copies_next(
		&w->inner->copies, &found, s->copy_bytes, s->options.stack_bytes, now_ns);

	return sampler_set_copy(s, bytes, s->hz);
}

/* How full is the fullest ring, in eighths? A ring wakes us at each quarter of it, wherever its tail is, so a ring that
 * is a quarter full may be half full before it wakes us again. */
static uint64_t eighths_full(struct walk *w)
{
	uint64_t most = 0;
	for (size_t i = 0; i < w->sampler->n_rings; i++) {
		struct ring *ring = &w->sampler->ring[i];
		ring_snapshot(ring);
		const uint64_t full = (ring->head - ring->tail) / (ring->data_bytes / 8);
		most = full > most ? full : most;
	}
	return most;
}

/* The time at which the first prompt tap is to be cut, and its records have arrived. */
static uint64_t prompt_ns(const struct walk *w)
{
	uint64_t first_ns = UINT64_MAX;
	for (const struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->prompt && tap->cut_ns < first_ns)
			first_ns = tap->cut_ns;
	return first_ns < UINT64_MAX - MERGE_SLACK_NS ? first_ns + MERGE_SLACK_NS : UINT64_MAX;
}

static bool is_unlooked(const struct walk *w)
{
	return !w->inner->looked && namer_has_sampled(w->namer);
}

/* Is a drain due? An exec alone is no reason. A ring that hung up wakes us until run() has noticed. */
bool walk_drain_is_due(struct walk *w, uint64_t now_ns)
{
	struct walk_inner *in = w->inner;
	if (now_ns >= in->next_drain_ns || w->sampler->options.per_task)
		return true;
	if (now_ns >= in->pause_end_ns && prompt_ns(w) <= now_ns)
		return true;
	const uint64_t full = eighths_full(w);
	if (full < RING_FILLS)
		return false;
	if (now_ns < in->pause_end_ns) {
		in->next_drain_ns = earlier(in->next_drain_ns, in->pause_end_ns);
		return false;
	}
	if (full >= RING_IS_SHORT || !is_unlooked(w))
		return true;
	/* files of generated code are looked at first */
	in->next_drain_ns = earlier(in->next_drain_ns, now_ns + DRAIN_LOOK_NS);
	return false;
}

static uint64_t due_ns(const struct walk *w)
{
	const struct walk_inner *in = w->inner;
	uint64_t prompt = prompt_ns(w);
	prompt = prompt > in->pause_end_ns ? prompt : in->pause_end_ns;
	return earlier(in->next_drain_ns, prompt);
}

bool walk_look_is_due(const struct walk *w, uint64_t now_ns)
{
	return is_unlooked(w) && now_ns + DRAIN_LOOK_NS >= due_ns(w);
}

uint64_t walk_drain_deadline_ns(const struct walk *w)
{
	return due_ns(w) - (is_unlooked(w) ? DRAIN_LOOK_NS : 0);
}
