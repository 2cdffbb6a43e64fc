/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The OpenMP tool: a library that LLVM's OpenMP runtime finds by its one name, ompt_start_tool, in a
 * program that was linked with it or preloads it, or through OMP_TOOL_LIBRARIES. It has a runtime of
 * its own inside, without the compiler's part, whose thread sends what strands count.
 *
 * There is one tool per process, and the program's comes first. One in the executable is found before
 * us, one in a library behind us we ask ourselves; and where OMP_TOOL_LIBRARIES names others, preloaded
 * we stay out.
 *
 * Nothing is started before the OpenMP runtime asks, so preloading us into programs without one costs
 * them the loading.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/begin.h"
#include "runtime/ompt/ompt.h"
#include "runtime/ompt/strand.h"
#include "runtime/process.h"
#include "runtime/state.h"

#define OUR_NAME "libmperf-ompt"

static void *memory(void *thread, size_t bytes)
{
	return mperf_thread_memory(thread, bytes);
}

/* The first event of a thread. NULL: no memory. */
static struct strand *strand_make(uint64_t now_ns)
{
	sigset_t all, mask;
	int error = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	struct thread *t = mperf_thread_make();
	struct strand *s = t ? mperf_thread_memory(t, sizeof(*s)) : NULL;
	if (s && strand_init(s, memory, t, now_ns))
		__atomic_store_n(&t->tallies, s, __ATOMIC_RELEASE);
	else
		s = NULL;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return s;
}

/* NULL: the thread has none yet. */
static struct strand *strand_present(void)
{
	struct thread *t = mperf_thread_self();
	return t ? t->tallies : NULL;
}

static struct strand *strand_here(uint64_t now_ns)
{
	struct strand *s = strand_present();
	return s ? s : strand_make(now_ns);
}

/* --- callbacks -------------------------------------------------------------------------------- */

static void parallel_begin(union ompt_data *task, const void *frame, union ompt_data *parallel,
	unsigned requested, int flags, const void *address)
{
	(void)task, (void)frame, (void)requested, (void)flags;
	mperf_process_look(&mperf_state);
	struct strand *s = strand_here(mperf_now_ns());
	parallel->ptr = s ? strand_begin(s, address) : NULL;
}

/* The data may be another region's already: LLVM's runtime frees the team that has it before it calls
 * this. So we know by the thread which region ends. Source: LLVM 19, openmp/runtime/src/kmp_runtime.cpp,
 * __kmp_join_call. */
static void parallel_end(
	union ompt_data *parallel, union ompt_data *task, int flags, const void *address)
{
	(void)parallel, (void)task, (void)flags, (void)address;
	struct strand *s = strand_present();
	if (s)
		strand_end(s, mperf_now_ns());
}

static void implicit_task(int endpoint, union ompt_data *parallel, union ompt_data *task,
	unsigned n_threads, unsigned index, int flags)
{
	(void)task, (void)n_threads;
	if (flags & OMPT_TASK_INITIAL)
		return;
	uint64_t now_ns = mperf_now_ns();
	struct strand *s = strand_here(now_ns);
	if (s && endpoint == OMPT_SCOPE_BEGIN && parallel && parallel->ptr)
		strand_enter(s, parallel->ptr, index == 0, now_ns);
	else if (s && endpoint == OMPT_SCOPE_END)
		strand_leave(s, now_ns);
}

static uint32_t work_kind(int work)
{
	switch (work) {
	case OMPT_WORK_LOOP:
		return MPERF_PLACE_LOOP;
	case OMPT_WORK_SECTIONS:
		return MPERF_PLACE_SECTIONS;
	case OMPT_WORK_SINGLE_EXECUTOR:
		return MPERF_PLACE_SINGLE;
	case OMPT_WORK_SINGLE_OTHER:
		return 0; /* what others do of it is to wait */
	default:
		return work >= OMPT_WORK_LOOP_STATIC && work <= OMPT_WORK_LOOP_OTHER
			       ? MPERF_PLACE_LOOP
			       : MPERF_PLACE_WORKSHARE;
	}
}

static void work(int type, int endpoint, union ompt_data *parallel, union ompt_data *task,
	uint64_t count, const void *address)
{
	(void)parallel, (void)task, (void)count;
	uint32_t kind = work_kind(type);
	if (!kind)
		return;
	uint64_t now_ns = mperf_now_ns();
	struct strand *s = strand_here(now_ns);
	if (s && endpoint == OMPT_SCOPE_BEGIN)
		strand_work_begin(s, kind, address, now_ns);
	else if (s && endpoint == OMPT_SCOPE_END)
		strand_work_end(s, now_ns);
}

static uint32_t wait_kind(int sync, const void *address)
{
	switch (sync) {
	case OMPT_SYNC_BARRIER_PARALLEL:
	case OMPT_SYNC_BARRIER_TEAMS:
		return MPERF_PLACE_BARRIER_OF_REGION;
	case OMPT_SYNC_BARRIER_WORKSHARE:
		return MPERF_PLACE_BARRIER_OF_WORK;
	case OMPT_SYNC_BARRIER_IMPLICIT:
		return address ? MPERF_PLACE_BARRIER_OF_WORK : MPERF_PLACE_BARRIER_OF_REGION;
	case OMPT_SYNC_TASKWAIT:
		return MPERF_PLACE_TASKWAIT;
	case OMPT_SYNC_TASKGROUP:
		return MPERF_PLACE_TASKGROUP;
	case OMPT_SYNC_REDUCTION:
		return 0; /* part of the barrier that it is done in */
	default:
		return MPERF_PLACE_BARRIER;
	}
}

static void sync_wait(int sync, int endpoint, union ompt_data *parallel, union ompt_data *task,
	const void *address)
{
	(void)parallel;
	uint32_t kind = wait_kind(sync, address);
	if (!kind || !task)
		return;
	uint64_t now_ns = mperf_now_ns();
	struct strand *s = strand_here(now_ns);
	bool of_region = kind == MPERF_PLACE_BARRIER_OF_REGION;
	/* of a league: its threads wait here until another begins, and no team says when this one ended */
	if (!s || (of_region && endpoint == OMPT_SCOPE_BEGIN && !strand_place(s)))
		return;
	/* the end of a region has another address in each thread, and none in most */
	if (endpoint == OMPT_SCOPE_BEGIN)
		strand_wait_begin(s, kind, of_region ? NULL : address, task, now_ns);
	else if (endpoint == OMPT_SCOPE_END)
		strand_wait_end(s, task, now_ns);
}

static void task_schedule(union ompt_data *from, int status, union ompt_data *to)
{
	(void)status;
	struct strand *s = strand_present();
	if (s && s->n_waits)
		strand_switch(s, from, to, mperf_now_ns());
}

static uint32_t lock_kind(int mutex)
{
	switch (mutex) {
	case OMPT_MUTEX_CRITICAL:
		return MPERF_PLACE_CRITICAL;
	case OMPT_MUTEX_ATOMIC:
		return MPERF_PLACE_ATOMIC;
	case OMPT_MUTEX_ORDERED:
		return MPERF_PLACE_ORDERED;
	default:
		return MPERF_PLACE_LOCK;
	}
}

/* Never NULL, whatever the runtime calls its locks. */
static const void *lock_of(uint64_t wait_id)
{
	return (const void *)(uintptr_t)(wait_id | UINT64_C(1));
}

/* It takes the lock or leaves it, and never waits; where it fails, nothing else is heard of it. */
static bool is_attempt(int mutex)
{
	return mutex == OMPT_MUTEX_TEST_LOCK || mutex == OMPT_MUTEX_TEST_NEST_LOCK;
}

static void mutex_acquire(
	int kind, unsigned hint, unsigned implementation, uint64_t wait_id, const void *address)
{
	(void)hint, (void)implementation;
	uint64_t now_ns = mperf_now_ns();
	struct strand *s = strand_here(now_ns);
	if (s && !is_attempt(kind))
		strand_lock_begin(s, lock_kind(kind), address, lock_of(wait_id), now_ns);
}

static void mutex_acquired(int kind, uint64_t wait_id, const void *address)
{
	uint64_t now_ns = mperf_now_ns();
	struct strand *s = strand_here(now_ns);
	if (s && is_attempt(kind))
		strand_lock_begin(s, lock_kind(kind), address, lock_of(wait_id), now_ns);
	if (s)
		strand_lock_end(s, lock_of(wait_id), now_ns);
}

/* Callback for a lock that the thread has already, in place of the one for a lock that it gets. */
static void nest_lock(int endpoint, uint64_t wait_id, const void *address)
{
	(void)address;
	struct strand *s = strand_present();
	if (s && endpoint == OMPT_SCOPE_BEGIN)
		strand_lock_end(s, lock_of(wait_id), mperf_now_ns());
}

/* --- start ------------------------------------------------------------------------------------ */

static const struct {
	int which;
	ompt_function function;
} callbacks[] = {
	{OMPT_PARALLEL_BEGIN, (ompt_function)parallel_begin},
	{OMPT_PARALLEL_END, (ompt_function)parallel_end},
	{OMPT_IMPLICIT_TASK, (ompt_function)implicit_task},
	{OMPT_WORK, (ompt_function)work},
	{OMPT_SYNC_REGION_WAIT, (ompt_function)sync_wait},
	{OMPT_TASK_SCHEDULE, (ompt_function)task_schedule},
	{OMPT_MUTEX_ACQUIRE, (ompt_function)mutex_acquire},
	{OMPT_MUTEX_ACQUIRED, (ompt_function)mutex_acquired},
	{OMPT_NEST_LOCK, (ompt_function)nest_lock},
};

/* 0: the OpenMP runtime goes on without a tool. */
static int initialize(ompt_lookup lookup, int device, union ompt_data *tool)
{
	(void)device, (void)tool;
	ompt_set_callback_function set = (ompt_set_callback_function)lookup("ompt_set_callback");
	if (!set)
		return 0;
	struct state *s = &mperf_state;
	sigset_t mask;
	int error = errno;
	mperf_lock(s, &mask);
	s->tallies = &mperf_tally_calls;
	mperf_begin(s);
	mperf_unlock(s, &mask);
	errno = error;
	if (s->silent)
		return 0;
	for (size_t i = 0; i < sizeof(callbacks) / sizeof(*callbacks); i++)
		(void)set(callbacks[i].which, callbacks[i].function);
	return 1;
}

/* The last round is sent where the process ends. */
static void finalize(union ompt_data *tool)
{
	(void)tool;
}

/* Was another tool asked for by name, and not us? */
static bool others_are_asked_for(void)
{
	const char *libraries = getenv("OMP_TOOL_LIBRARIES");
	return libraries && *libraries && !strstr(libraries, OUR_NAME);
}

__attribute__((visibility("default"))) struct ompt_start *ompt_start_tool(
	unsigned omp_version, const char *runtime_version);

struct ompt_start *ompt_start_tool(unsigned omp_version, const char *runtime_version)
{
	static struct ompt_start start = {.initialize = initialize, .finalize = finalize};
	struct ompt_start *(*next)(unsigned, const char *) =
		(struct ompt_start * (*)(unsigned, const char *))
			dlsym(RTLD_NEXT, "ompt_start_tool");
	struct ompt_start *others = next ? next(omp_version, runtime_version) : NULL;
	if (others)
		return others;
	return others_are_asked_for() ? NULL : &start;
}
