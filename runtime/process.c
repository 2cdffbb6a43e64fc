/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One thread sends, with all signals blocked, so that none of the program's signals is delivered
 * there. The C library creates it, so setuid(2) and the like include it.
 *
 * A process ends with its last thread, and the sender must not prevent that: if main has ended by
 * pthread_exit and no other thread is left, it returns, and the C library ends the process as it
 * would without us. An ended main thread stays as a zombie, and is counted as a thread. Source:
 * proc(5), pthread_exit(3).
 *
 * A fork's child has its parent's memory and none of its threads: it drops the connection, zeros
 * the counts that its parent reports, and gets its own sender when it enters its first loop or
 * region. Most children exec another program before that, and a thread would cost them as much as
 * the fork.
 *
 * At the end, the thread that ends the program sends the last round, whatever happened to the
 * sender, which is stopped then, since dlclose unmaps its code. A thread that is confined lets the sender do that
 * (confined.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/ask.h"
#include "runtime/closing.h"
#include "runtime/confined.h"
#include "runtime/copies.h"
#include "runtime/grant.h"
#include "runtime/message.h"
#include "runtime/process.h"
#include "runtime/round.h"
#include "runtime/state.h"

#define MS_NS UINT64_C(1000000)
/* so that we do not poll a kernel that has no memory for packets */
#define FULL_PAUSE_MS 1u
#define MAIN_ENDED_MS 50u /* interval of looking for other threads after main ended */
#define STOP_WAIT_S 1     /* for the sender to stop; its rounds are much shorter */
#define STATUS_BYTES 4096 /* all of it, unless the thread has hundreds of groups */
/* The interval of looking at the main thread. It doubles from the start of the sender: most programs that put
 * themselves under a filter do so early, and may end soon after. */
#define LOOK_MS_MIN 10u
#define LOOK_MS_MAX 1000u

/* Whether and how the main thread of a process has ended. */
enum main_thread {
	MAIN_RUNS,  /* or unknown, without /proc */
	MAIN_ENDED, /* by pthread_exit, while other threads continue */
	MAIN_LAST,  /* only the calling thread is left */
};

/* Status of a thread of the calling process; both 0 where it cannot be read. */
struct thread_status {
	bool is_zombie;
	unsigned n_filters; /* of seccomp; before Linux 5.9: its mode */
};

/* Source: proc(5), /proc/pid/status. */
static struct thread_status status_of(pid_t tid)
{
	static const char filters[] = "\nSeccomp_filters:", mode[] = "\nSeccomp:";
	char path[64], text[STATUS_BYTES + 1];
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (struct thread_status){.n_filters = 0};
	ssize_t n = read(fd, text, STATUS_BYTES);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *has = strstr(text, filters), *in = strstr(text, mode);
	return (struct thread_status){
		.is_zombie = strstr(text, "\nState:\tZ") != NULL,
		.n_filters = has  ? (unsigned)strtoul(has + sizeof(filters) - 1, NULL, 10)
			     : in ? (unsigned)strtoul(in + sizeof(mode) - 1, NULL, 10)
				  : 0,
	};
}

/* How the calling process's main thread is. */
static enum main_thread main_look(const struct thread_status *of_main)
{
	if (!of_main->is_zombie)
		return MAIN_RUNS;
	/* A directory has two links, and one for each subdirectory. */
	struct stat st;
	if (stat("/proc/self/task", &st) < 0)
		return MAIN_RUNS;
	return st.st_nlink - 2 <= 2 ? MAIN_LAST : MAIN_ENDED;
}

static void rest(struct state *s, uint64_t ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * MS_NS)};
	syscall(SYS_futex, &s->stop, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}

/* Time until the next round, after one with this result. */
static uint64_t pause_ms(const struct state *s, int outcome)
{
	uint64_t ms = outcome == MPERF_SINK_NONE ? mperf_sink_retry_ms(&s->sink) : s->period_ms;
	if (s->n_forgotten > MPERF_FORGOTTEN_MAX)
		ms = ms * MPERF_FORGOTTEN_MAX / s->n_forgotten;
	return ms > MPERF_PERIOD_MS_MIN ? ms : MPERF_PERIOD_MS_MIN;
}

/* Wait until the next round is due, the daemon sends something, or, after an incomplete round, it
 * can take more. */
static void wait_for(struct state *s, int fd, bool full, uint64_t until_ns)
{
	uint64_t now_ns = mperf_now_ns();
	uint64_t ms = until_ns > now_ns ? (until_ns - now_ns) / MS_NS + 1 : 0;
	if (fd < 0) {
		rest(s, ms);
		return;
	}
	if (full)
		rest(s, FULL_PAUSE_MS);
	struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (full ? POLLOUT : 0))};
	if (ms > 0 && poll(&p, 1, (int)ms) < 0)
		rest(s, ms);
}

/* No thread waits in the kernel for our lock, so unlocking needs no system call. */
static void lock_confined(struct state *s)
{
	while (pthread_mutex_trylock(&s->lock) != 0)
		rest(s, MPERF_CONFINED_NEXT_MS);
}

/* When to check next for a round requested by a confined thread; `asked`: in the last check, there
 * was a request. */
static uint64_t request_ns(uint64_t now_ns, uint64_t asked_ns)
{
	bool soon = asked_ns && now_ns - asked_ns < MPERF_CONFINED_SOON_MS * MS_NS;
	return now_ns + (soon ? MPERF_CONFINED_NEXT_MS : MPERF_CONFINED_MS) * MS_NS;
}

static void *sender(void *data)
{
	struct state *s = data;
	uint64_t due_ns = 0, asked_ns = 0, look_ms = LOOK_MS_MIN;
	unsigned n_filters = status_of((pid_t)syscall(SYS_gettid)).n_filters;
	enum main_thread main_thread = MAIN_RUNS;
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		sigset_t mask;
		bool confined = mperf_confined(s);
		if (confined)
			lock_confined(s);
		else
			mperf_lock(s, &mask);
		uint32_t wanted = __atomic_load_n(&s->rounds_wanted, __ATOMIC_ACQUIRE);
		bool asked = wanted != s->rounds_made;
		bool now = mperf_ask_read(s);
		uint64_t now_ns = mperf_now_ns();
		bool looks = !confined || now_ns >= due_ns;
		if (asked) {
			mperf_round_through(s, __atomic_load_n(&s->exiting, __ATOMIC_ACQUIRE));
			due_ns = now_ns + pause_ms(s, 0) * MS_NS;
			asked_ns = now_ns;
		} else if (now || s->unfinished || now_ns >= due_ns || s->sink.fd < 0) {
			int r = mperf_round(s, false);
			due_ns = now_ns + pause_ms(s, r) * MS_NS;
		} else if (due_ns > now_ns + pause_ms(s, 0) * MS_NS) {
			due_ns = now_ns + pause_ms(s, 0) * MS_NS; /* asked for a shorter period */
		}
		/* an answer is overdue by then */
		if (s->late && due_ns > now_ns + MPERF_ANSWER_MS * MS_NS)
			due_ns = now_ns + MPERF_ANSWER_MS * MS_NS;
		if (looks) {
			struct thread_status of_main = status_of(s->pid);
			main_thread = main_look(&of_main);
			if (of_main.n_filters > n_filters)
				__atomic_store_n(&s->confined, 1, __ATOMIC_RELEASE);
		}
		if (main_thread != MAIN_RUNS && due_ns > now_ns + MAIN_ENDED_MS * MS_NS)
			due_ns = now_ns + MAIN_ENDED_MS * MS_NS;
		bool socket = s->sink.fd >= 0 && !s->sink.is_file;
		int fd = socket ? s->sink.fd : -1;
		bool full = s->unfinished;
		if (confined)
			mperf_confined_unlock(s);
		else
			mperf_unlock(s, &mask);
		__atomic_store_n(&s->rounds_made, wanted, __ATOMIC_RELEASE);
		if (main_thread == MAIN_LAST)
			break;
		uint64_t until_ns =
			mperf_confined(s) ? request_ns(now_ns, asked_ns) : now_ns + look_ms * MS_NS;
		look_ms = look_ms < LOOK_MS_MAX / 2 ? look_ms * 2 : LOOK_MS_MAX;
		if (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
			wait_for(s, fd, full, until_ns < due_ns ? until_ns : due_ns);
	}
	__atomic_store_n(&s->sender_ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Signals are blocked here, so a thread created here also has them blocked. */
static void sender_begin(struct state *s)
{
	if (!mperf_sink_wanted(&s->sink))
		return;
	s->stop = s->sender_ended = 0;
	pthread_attr_t attributes;
	if (pthread_attr_init(&attributes) != 0)
		return;
	if (pthread_attr_setstacksize(&attributes, MPERF_SENDER_STACK_BYTES) == 0)
		s->has_sender = pthread_create(&s->sender, &attributes, sender, s) == 0;
	pthread_attr_destroy(&attributes);
	if (!s->has_sender)
		s->has_sender = pthread_create(&s->sender, NULL, sender, s) == 0;
	if (s->has_sender)
		pthread_setname_np(s->sender, "mperf");
}

/* False: it did not end in time. */
static bool sender_stop(struct state *s)
{
	if (!s->has_sender)
		return true;
	s->has_sender = false;
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s->stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	/* The sender's poll sees end of file; the socket can still send. */
	if (!s->sink.is_file && mperf_sink_ours(&s->sink))
		shutdown(s->sink.fd, SHUT_RD);

	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_WAIT_S;
	return pthread_timedjoin_np(s->sender, NULL, &until) == 0;
}

/* --- fork ------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
	sigset_t mask;
	mperf_lock(&mperf_state, &mask);
	mperf_state.fork_mask = mask;
}

static void fork_parent(void)
{
	sigset_t mask = mperf_state.fork_mask;
	mperf_unlock(&mperf_state, &mask);
}

static void fork_child(void)
{
	struct state *s = &mperf_state;
	int error = errno;
	s->pid = getpid();
	s->begin_ns = mperf_now_ns();
	s->has_sender = false;
	s->unfinished = false;
	mperf_sink_close(&s->sink);
	s->sink.tried = s->sink.busy = s->sink.waited = s->sink.hopeless = false;
	s->sink.listens = mperf_sink_wanted(&s->sink);

	for (struct thread *t = s->threads; t; t = t->next) {
		if (t == mperf_thread_self())
			mperf_thread_forked(t, s->begin_ns);
		else if (t->state != MPERF_THREAD_FREE)
			mperf_thread_forget(t);
		t->busy = 0;
	}
	mperf_threads_count(s);
	mperf_grant_sweep(s);
	s->n_grant_pages = 0; /* which a child does not inherit */
	/* a confined child may create no thread either */
	__atomic_store_n(&s->sender_due, mperf_sink_wanted(&s->sink) && !mperf_confined(s),
		__ATOMIC_RELEASE);
	errno = error;
	fork_parent();
}

/* Do not create a thread in a signal handler, which may have interrupted the allocator. In a
 * handler, more signals are blocked than when the child began. */
void mperf_process_resume(struct state *s)
{
	int error = errno;
	sigset_t now;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	bool as_forked = true;
	for (int i = 1; i < NSIG; i++)
		as_forked = as_forked && sigismember(&now, i) == sigismember(&s->fork_mask, i);
	if (as_forked && __atomic_exchange_n(&s->sender_due, 0, __ATOMIC_ACQ_REL)) {
		sigset_t mask;
		mperf_lock(s, &mask);
		sender_begin(s);
		mperf_unlock(s, &mask);
	}
	errno = error;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The last round, in the thread that ends the program. False: this is not our process, since it was
 * forked without the C library; or we never started; or there is no sink. */
static bool last_round(void)
{
	struct state *s = &mperf_state;
	if (s->silent) {
		__atomic_store_n(&s->exiting, 1, __ATOMIC_RELEASE);
		return false;
	}
	if (mperf_confined(s)) {
		__atomic_store_n(&s->exiting, 1, __ATOMIC_RELEASE);
		mperf_confined_round(s);
		return false;
	}
	if (!s->started || s->pid != getpid())
		return false;
	int error = errno;
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	__atomic_store_n(&s->exiting, 1, __ATOMIC_RELEASE);
	sigset_t mask;
	mperf_lock(s, &mask);
	mperf_round_through(s, true);
	mperf_unlock(s, &mask);
	pthread_setcancelstate(cancel, NULL);
	errno = error;
	return true;
}

static void quick_exit_round(void)
{
	last_round();
}

/* Late among destructors; even later ones that count send again (entry.c). */
__attribute__((destructor(101))) static void end(void)
{
	struct state *s = &mperf_state;
	bool sent = last_round();
	if (!sent && mperf_confined(s))
		mperf_confined_end(s);
	else if ((!sent || sender_stop(s)) && mperf_closing() && s->started && s->pid == getpid())
		mperf_closing_release(s);
}

void mperf_process_begin(struct state *s)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	mperf_closing_begin();
	/* It would be called even after dlclose, which withdraws only the handlers of exit(3). */
	if (mperf_copy_stays)
		(void)at_quick_exit(quick_exit_round);
	/* Lock the file before a child can try to. */
	if (s->sink.output[0])
		mperf_sink_open(&s->sink, s->begin_ns);
	sender_begin(s);
}
