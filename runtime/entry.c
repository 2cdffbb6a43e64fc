/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The entry points that compiled code calls when a program, an object or a thread begins, and when
 * an object is closed. Those called while it counts are in timed_loop.c, marker.c and select.c.
 *
 * The runtime starts with the first object that registers, or with its own constructor if there are
 * only regions. Each library linked with the archive contains a copy, whose constructor starts the
 * one that serves (copies.c).
 *
 * Objects come and go with dlopen and dlclose. A closing object sends its counts while its tables
 * are still mapped, and waits a moment for a slow daemon. An object of another ABI is ignored: its
 * biases stay 0, and it counts into its own words, which nobody reads.
 *
 * With MPERF_FEED= and no file the process is silent. Such a process may be confined by seccomp, in
 * whose strict mode the clock is forbidden too: it makes no system call after its start, other than
 * for objects and threads that come later. So the thread in which an object registers gets its
 * block for it then, the clock is not read, and there is no last round.
 */
#include <errno.h>
#include <unistd.h>

#include "runtime/begin.h"
#include "runtime/confined.h"
#include "runtime/copies.h"
#include "runtime/gs_base.h"
#include "runtime/message.h"
#include "runtime/object.h"
#include "runtime/process.h"
#include "runtime/region.h"
#include "runtime/round.h"
#include "runtime/state.h"
#include "runtime/timed_loop.h"

/* Visible names resolve to the first visible copy; in the first copy, to its own. */
__attribute__((used, visibility("hidden"))) const struct copy mperf_copy_here = {
	.abi = MPERF_ABI_VERSION,
	.bytes = sizeof(struct copy),
	.start = __mperf_start,
	.object_register = __mperf_object_register,
	.object_unregister = __mperf_object_unregister,
	.thread_enter = __mperf_thread_enter,
	.loop_begin = __mperf_loop_begin,
	.loop_end = __mperf_loop_end,
	.region_begin = __mperf_region_begin,
	.region_end = __mperf_region_end,
	.choices_register = __mperf_choices_register,
	.choices_unregister = __mperf_choices_unregister,
	.turn_draw = __mperf_turn_draw,
};

__asm__(".pushsection .note.mperf,\"a\",%note\n"
	".balign 4\n"
	".long 6, 8, 1\n"
	".asciz \"" MPERF_COPY_NOTE_NAME "\"\n"
	".balign 4\n"
	"1: .quad mperf_copy_here - 1b\n"
	".popsection\n");
_Static_assert(
	MPERF_COPY_NOTE_TYPE == 1 && sizeof(MPERF_COPY_NOTE_NAME) == 6, "as the note has it");

void __mperf_start(void)
{
	mperf_copies_look(&mperf_copy_here);
	if (mperf_elsewhere) {
		mperf_elsewhere->start();
		return;
	}
	mperf_marker_start();
	struct state *s = &mperf_state;
	sigset_t mask;
	mperf_lock(s, &mask);
	mperf_begin(s);
	mperf_unlock(s, &mask);
}

__attribute__((constructor(101))) static void begin(void)
{
	__mperf_start();
}

__attribute__((visibility("default"))) void __mperf_object_register(struct mperf_object *o)
{
	struct state *s = &mperf_state;
	int error = errno;
	__mperf_start();
	if (mperf_elsewhere) {
		mperf_elsewhere->object_register(o);
		return;
	}
	sigset_t mask;
	mperf_lock(s, &mask);
	if (o->abi == MPERF_ABI_VERSION && !o->runtime && o->counters < o->counters_end)
		mperf_object_open(s, o);
	if (o->runtime && s->sink.fd >= 0 && !s->sink.is_file && s->greeted == s->sink.serial)
		(void)mperf_message_objects(s);
	bool enters = s->silent && o->runtime;
	mperf_unlock(s, &mask);
	if (enters)
		__mperf_thread_enter(o);
	errno = error;
}

/* Run a round, then close the object. Its counts since that round are lost. */
static void unregister_confined(struct state *s, struct mperf_object *o)
{
	mperf_confined_round(s);
	struct object *object = o->runtime;
	if (object && mperf_confined_lock(s)) {
		mperf_object_close(s, object, o);
		mperf_confined_unlock(s);
	}
}

__attribute__((visibility("default"))) void __mperf_object_unregister(struct mperf_object *o)
{
	if (mperf_elsewhere) {
		mperf_elsewhere->object_unregister(o);
		return;
	}
	struct state *s = &mperf_state;
	bool quiet = s->silent || mperf_confined(s);
	if (quiet && __atomic_load_n(&s->exiting, __ATOMIC_ACQUIRE))
		return;
	if (mperf_confined(s)) {
		unregister_confined(s, o);
		return;
	}
	int error = errno;
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigset_t mask;
	mperf_lock(s, &mask);
	struct object *object = o->runtime;
	if (object && s->pid == getpid()) {
		bool exits = __atomic_load_n(&s->exiting, __ATOMIC_ACQUIRE);
		mperf_round_through(s, exits);
		/* At the end of the program, other threads may still run in the object. */
		if (!exits) {
			if (object->serial == s->sink.serial)
				mperf_round_gone(s, MPERF_GONE_OBJECT, object->id);
			mperf_object_close(s, object, o);
		}
	}
	mperf_unlock(s, &mask);
	pthread_setcancelstate(cancel, NULL);
	errno = error;
}

__attribute__((visibility("default"), noinline)) int64_t __mperf_thread_enter(
	struct mperf_object *o)
{
	if (mperf_elsewhere)
		return mperf_elsewhere->thread_enter(o);
	struct state *s = &mperf_state;
	struct object *object = __atomic_load_n(&o->runtime, __ATOMIC_ACQUIRE);
	if (!object)
		return 0;

	int error = errno;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int64_t *bias = o->bias();
	if (*bias == 0) {
		struct thread *t = mperf_thread_make();
		struct block *b = t ? mperf_thread_enter(t, object) : NULL;
		int64_t lost =
			(int64_t)((uintptr_t)object->lost->counters - (uintptr_t)object->counters);
		if (!mperf_bias_set(object, bias, b ? b->distance : lost) || !b)
			__atomic_add_fetch(&s->threads_lost, 1, __ATOMIC_RELAXED);
	}
	int64_t value = *bias;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return value;
}

__attribute__((visibility("default"))) void __mperf_choices_register(
	struct mperf_choice *first, struct mperf_choice *end)
{
	struct state *s = &mperf_state;
	int error = errno;
	__mperf_start();
	if (mperf_choices_elsewhere()) {
		mperf_elsewhere->choices_register(first, end);
		return;
	}
	sigset_t mask;
	mperf_lock(s, &mask);
	if (mperf_elsewhere)
		mperf_select_init(&s->selection);
	mperf_select_add(s, first, end);
	mperf_unlock(s, &mask);
	errno = error;
}

__attribute__((visibility("default"))) void __mperf_choices_unregister(
	struct mperf_choice *first, struct mperf_choice *end)
{
	struct state *s = &mperf_state;
	if (mperf_choices_elsewhere()) {
		mperf_elsewhere->choices_unregister(first, end);
		return;
	}
	int error = errno;
	sigset_t mask;
	mperf_lock(s, &mask);
	mperf_select_remove(s, first);
	mperf_unlock(s, &mask);
	errno = error;
}
