/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/kernel/offcpu_bpf.c and offcpu.bpf.c on the kernel that runs here: what a look tells of threads whose
 * doings we know */

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/decode/offcpu.h"
#include "daemon/kernel/wakers_bpf.h"
#include "proto/base/clock.h"
#include "tests/unit/test.h"

#define SECRET 0x5ca1ab1e0ddba11ull
#define LOOK_BYTES (16u << 20)

static struct offcpu_bpf bpf = {-1, -1, -1, -1};
static uint8_t *look;
static size_t n_look;
static pid_t child;
static struct wakers_bpf *wakers;

static bool loaded(const char *test)
{
	int error = 0;
	if (geteuid() != 0) {
		printf("SKIP %s: not root\n", test);
		return false;
	}
	if (offcpu_bpf_load(&bpf, &error) != 0) {
		printf("SKIP %s: BPF is refused: %s\n", test, strerror(error));
		return false;
	}
	look = mmap(NULL, LOOK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(look != MAP_FAILED);
	return true;
}

static void teardown(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	wakers = wakers_bpf_free(wakers);
	if (bpf.link_fd >= 0)
		offcpu_bpf_close(&bpf);
	bpf.link_fd = -1;
}

EACH_TEST(.end = teardown, .seconds = 60);

static void look_once(void)
{
	int fd;
	ssize_t n;
	usleep(1000);
	ck_assert_int_eq(offcpu_bpf_look(bpf.link_fd, &fd), 0);
	for (n_look = 0; (n = read(fd, look + n_look, 65536)) > 0; n_look += (size_t)n)
		ck_assert_uint_lt(n_look, LOOK_BYTES - 65536);
	ck_assert_int_eq(n, 0);
	close(fd);
}

/* Where what the look tells of that thread begins; NULL: nothing. The whole look is decoded. */
static const uint8_t *find(pid_t tid, struct offcpu_thread *ret_thread)
{
	const uint8_t *found = NULL;
	struct offcpu_thread t;
	size_t at = 0, used = 0;
	int r;
	while ((r = offcpu_decode(look + at, n_look - at, &t, &used)) == 0) {
		if (t.record.tid == (uint32_t)tid) {
			ck_assert_ptr_null(found);
			found = look + at;
			(void)offcpu_decode(found, n_look - at, ret_thread, &used);
		}
		at += used;
	}
	ck_assert_int_eq(r, OFFCPU_ENDS);
	ck_assert_uint_eq(at + sizeof(struct offcpu_head), n_look);
	return found;
}

static void on_signal(int number)
{
	(void)number;
}

/* A child with something to find on its stack, which sleeps. */
static void begin_child(void)
{
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child > 0) {
		char path[64], state = 'R';
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
		while (state != 'S') {
			usleep(1000);
			FILE *f = fopen(path, "re");
			ck_assert(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
			fclose(f);
		}
		return;
	}
	volatile uint64_t secret[64];
	for (int i = 0; i < 64; i++)
		secret[i] = SECRET;
	signal(SIGUSR1, on_signal);
	while (secret[63] == SECRET)
		pause();
	_exit(1);
}

TEST(a_thread_that_sleeps_is_told_with_its_stack_and_then_in_short)
{
	struct offcpu_thread t;
	if (!loaded(__func__))
		return;
	begin_child();
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert_int_eq(t.kind, OFFCPU_SLEEP);
	ck_assert_uint_eq(t.record.pid, (uint32_t)child);
	ck_assert_uint_ge(t.record.sample.n_callchain, 3);
	unsigned n = 0;
	for (size_t i = 0; i < t.record.sample.n_stack / 8; i++) {
		uint64_t word;
		memcpy(&word, t.record.sample.stack + 8 * i, 8);
		n += word == SECRET;
	}
	ck_assert_uint_ge(n, 64);

	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert(t.same);
	/* it ran in between */
	ck_assert_int_eq(kill(child, SIGUSR1), 0);
	usleep(100000);
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert(!t.same && !t.again);
	/* and is told once more in one of so many looks */
	unsigned n_again = 0;
	for (unsigned i = 0; i < OFFCPU_TELL_AGAIN; i++) {
		look_once();
		ck_assert_ptr_nonnull(find(child, &t));
		n_again += t.again;
	}
	ck_assert_uint_eq(n_again, 1);
}

TEST(what_stops_and_who_looks_are_told_apart)
{
	struct offcpu_thread t;
	if (!loaded(__func__))
		return;
	begin_child();
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, NULL, WUNTRACED), child);
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert_int_eq(t.kind, OFFCPU_STOPPED);
	ck_assert_ptr_null(find(getpid(), &t));
}

/* What leaves the kernel has no bytes that somebody else left there: the threads of a look are told in one and the same
 * memory, one after the other. */
TEST(what_is_not_used_is_zero)
{
	struct offcpu_record whole;
	struct offcpu_thread t;
	unsigned n_full = 0, n_short = 0;
	size_t used;
	if (!loaded(__func__))
		return;
	begin_child();
	for (int i = 0; i < 3; i++) {
		look_once();
		for (size_t at = 0; offcpu_decode(look + at, n_look - at, &t, &used) == 0;
			at += used) {
			memcpy(&whole, look + at, used < sizeof(whole) ? used : sizeof(whole));
			ck_assert_uint_le(whole.head.file, 15);
			if (t.same)
				continue;
			n_full++;
			n_short += whole.head.n_chain < OFFCPU_CHAIN_MAX;
			for (unsigned k = whole.head.n_chain; k < OFFCPU_CHAIN_MAX; k++)
				ck_assert_uint_eq(whole.chain[k], 0);
			for (unsigned k = 0;
				k < OFFCPU_REGS && whole.head.flags & OFFCPU_KERNEL_THREAD; k++)
				ck_assert_uint_eq(whole.regs[k], 0);
		}
	}
	ck_assert_uint_ge(n_full, 2);
	ck_assert_uint_ge(n_short, 2);
}

TEST(after_a_look_that_was_lost_threads_are_told_again)
{
	struct offcpu_thread t;
	if (!loaded(__func__))
		return;
	begin_child();
	look_once();
	offcpu_bpf_tell_again(&bpf);
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert(!t.same);
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	ck_assert(t.same);
	/* nothing is being copied for longer than a moment */
	ck_assert(!offcpu_bpf_bar(&bpf, SECOND, clock_ns(CLOCK_MONOTONIC)));
}

/* --- wakers ----------------------------------------------------------------------------------- */

static struct offcpu_waking waking; /* of the child, the last */
static struct offcpu_thread of_waking;
static unsigned n_wakings, n_of_child, n_dirty;

static bool take_waking(void *userdata, const uint8_t *bytes, size_t n)
{
	(void)userdata;
	struct offcpu_thread t;
	ck_assert_int_eq(offcpu_decode_waking(bytes, n, &t), 0);
	struct offcpu_waking whole;
	memcpy(&whole, bytes, sizeof(whole));
	const struct offcpu_record *r = &whole.record;
	ck_assert_uint_eq(n, sizeof(whole) + r->head.n_stack);
	n_wakings++;
	for (unsigned k = r->head.n_chain; k < OFFCPU_CHAIN_MAX; k++)
		n_dirty += r->chain[k] != 0;
	for (unsigned k = 0;
		k < OFFCPU_REGS && r->head.flags & (OFFCPU_INTERRUPT | OFFCPU_KERNEL_THREAD); k++)
		n_dirty += r->regs[k] != 0;
	if (t.wakee == child) {
		n_of_child++;
		waking = whole;
		of_waking = t;
	}
	return true;
}

static bool watches_wakers(const char *test)
{
	int error = 0;
	if (!loaded(test))
		return false;
	if (wakers_bpf_new(&bpf, &wakers, &error) != 0) {
		printf("SKIP %s: BPF is refused: %s\n", test, strerror(error));
		return false;
	}
	n_wakings = n_of_child = n_dirty = 0;
	return true;
}

static void wake_child(void)
{
	ck_assert_int_eq(kill(child, SIGUSR1), 0);
	usleep(100000);
	wakers_bpf_read(wakers, take_waking, NULL);
}

TEST(who_ends_a_wait_that_a_look_found_is_recorded_once)
{
	struct offcpu_thread t;
	if (!watches_wakers(__func__))
		return;
	begin_child();
	wake_child();
	ck_assert_uint_eq(n_of_child, 0); /* no look has found it */
	look_once();
	ck_assert_ptr_nonnull(find(child, &t));
	wake_child();
	wake_child();
	ck_assert_uint_eq(n_of_child, 1);
	ck_assert_uint_eq(of_waking.record.tid, (uint32_t)gettid());
	ck_assert_uint_eq(of_waking.wait, t.wait);
	ck_assert(!of_waking.is_interrupt);
	ck_assert_uint_ge(of_waking.record.sample.n_callchain, 3);
	ck_assert_uint_gt(of_waking.record.sample.n_stack, 0);
	ck_assert_uint_le(waking.time_ns, clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_eq(wakers_bpf_lost(wakers), 0);
}

/* Its records are made in the same memory, one after the other: first of this process, with a stack, then of timers. */
TEST(of_an_interrupt_nothing_is_recorded_of_whom_it_interrupts)
{
	if (!watches_wakers(__func__))
		return;
	begin_child();
	for (int i = 0; i < 20; i++) {
		look_once();
		wake_child();
	}
	ck_assert_uint_ge(n_of_child, 15);
	const pid_t waits = child;
	child = fork();
	if (child == 0)
		for (;;)
			usleep(30000);
	const unsigned n_before = n_of_child;
	for (int i = 0; i < 20; i++) {
		look_once();
		usleep(50000);
		wakers_bpf_read(wakers, take_waking, NULL);
		ck_assert(n_of_child == n_before || of_waking.is_interrupt);
		ck_assert(n_of_child == n_before || waking.record.head.n_chain == 0);
	}
	kill(waits, SIGKILL);
	waitpid(waits, NULL, 0);
	ck_assert_uint_ge(n_of_child, n_before + 10);
	ck_assert_uint_eq(n_dirty, 0);
}

static bool leave(void *userdata, const uint8_t *bytes, size_t n)
{
	(void)bytes, (void)n;
	++*(unsigned *)userdata;
	return false;
}

TEST(a_ring_that_nobody_reads_counts_what_it_loses)
{
	unsigned n_seen = 0;
	if (!watches_wakers(__func__))
		return;
	begin_child();
	/* a record has a kilobyte at least */
	for (unsigned i = 0; i < 2 * OFFCPU_WAKINGS_BYTES / sizeof(struct offcpu_waking) &&
			     wakers_bpf_lost(wakers) == 0;
		i++) {
		look_once();
		ck_assert_int_eq(kill(child, SIGUSR1), 0);
		usleep(500);
	}
	ck_assert_uint_gt(wakers_bpf_lost(wakers), 0);
	/* what is not taken stays */
	wakers_bpf_read(wakers, leave, &n_seen);
	wakers_bpf_read(wakers, leave, &n_seen);
	ck_assert_uint_eq(n_seen, 2);
	wakers_bpf_read(wakers, take_waking, NULL);
	ck_assert_uint_ge(n_wakings, 100);
	const unsigned n_before = n_wakings;
	wakers_bpf_read(wakers, take_waking, NULL);
	ck_assert_uint_le(n_wakings, n_before + 50);
}
