/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/kernel/switch_bpf.c, switch.bpf.c and switch_sums.bpf.c on the kernel that runs here, with software
 * events, which every machine counts
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef MPERF_BPF
#include <bpf/bpf.h>
#endif

#include "daemon/doctor/switch_check.h"
#include "daemon/kernel/switch_bpf.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define NAPS 30
#define PAGES 50
#define COMPARISONS_MAX 30 /* of some 50 ms each */

/* Whether that program can be had; says why not. */
static bool may_load_way(const char *test, enum switch_way way)
{
	struct switch_bpf *b = NULL;
	int error = 0;
	if (!kernel_real.switch_new) {
		printf("SKIP %s: built without BPF\n", test);
		return false;
	}
	int r = kernel_real.switch_new(NULL, way, 1, &b, &error);
	if (r == SWITCH_BPF_REFUSED) {
		printf("SKIP %s: BPF is refused: %s\n", test, strerror(error));
		return false;
	}
	ck_assert_int_eq(r, 0);
	kernel_real.switch_free(NULL, b);
	return true;
}

static bool may_load(const char *test)
{
	return may_load_way(test, SWITCH_RECORDS);
}

static struct sampler *opened(enum sampler_switches switches)
{
	struct sampler *s = NULL;
	struct event_error error = {""};
	struct event_list events = case_events(NULL, "{cpu-clock,page-faults}");
	struct sampler_options o = {.hz = 500, .events = &events, .switches = switches};
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &error) == 0, "%s", error.text);
	return s;
}

static unsigned n_descriptors(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void touch_and_nap(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	size_t page = (size_t)getpagesize();
	for (int i = 0; i < NAPS; i++) {
		volatile char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne((void *)p, MAP_FAILED);
		madvise((void *)p, PAGES * page, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < PAGES * page; at += page)
			p[at] = 1;
		munmap((void *)p, PAGES * page);
		nanosleep(&nap, NULL);
	}
}

EACH_TEST(.seconds = 60);

TEST(each_switch_brings_the_groups_values)
{
	if (!may_load("each_switch_brings_the_groups_values"))
		return;
	struct sampler *s = opened(SAMPLER_SWITCHES_BPF);
	ck_assert_uint_eq(sampler_cut(s), CUT_BPF);
	ck_assert_int_eq(sampler_start(s), 0);
	touch_and_nap();
	ck_assert_int_eq(sampler_stop(s), 0);

	unsigned n_mine = 0;
	for (size_t i = 0; i < s->n_rings; i++) {
		struct ring *ring = &s->ring[i];
		uint64_t last_ns = 0, last[2] = {0}, last_enabled = 0;
		const uint8_t *bytes;
		size_t n;
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record r;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
			ck_assert_int_ne(r.stream->role, STREAM_SWITCH);
			if (r.kind != RECORD_SAMPLE)
				continue;
			/* samples and switches speak of one group, whose values only rise */
			ck_assert_uint_eq(r.sample.n_read, 2);
			ck_assert_uint_eq(r.sample.read[0].id, r.stream->leader);
			for (int j = 0; j < 2; j++) {
				ck_assert_uint_ge(r.sample.read[j].value, last[j]);
				last[j] = r.sample.read[j].value;
			}
			ck_assert_uint_ge(r.sample.enabled_ns, last_enabled);
			last_enabled = r.sample.enabled_ns;
			if (r.stream->role != STREAM_SWITCH_BPF)
				continue;
			ck_assert_int_eq((int)r.cpu, ring->hart);
			ck_assert_uint_eq(r.sample.n_missed, 0);
			ck_assert_uint_ge(r.time_ns, last_ns);
			last_ns = r.time_ns;
			n_mine += r.tid == (uint32_t)getpid();
		}
		ring_release(ring);
	}
	ck_assert_uint_ge(n_mine, NAPS);
	sampler_free(s);
}

/* Add what both ways say of one stretch. */
static void compare_ways(struct switch_verdict *sum)
{
	struct switch_check *c = NULL;
	struct switch_verdict v;
	struct sampler *s = opened(SAMPLER_SWITCHES_BOTH);
	ck_assert_int_eq(switch_check_new(&s->streams, &s->events, &c), 0);
	ck_assert_int_eq(sampler_start(s), 0);
	touch_and_nap();
	ck_assert_int_eq(sampler_stop(s), 0);
	for (size_t i = 0; i < s->n_rings; i++) {
		struct ring *ring = &s->ring[i];
		const uint8_t *bytes;
		size_t n;
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record r;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
			ck_assert_int_eq(switch_check_record(c, &r, ring->hart), 0);
		}
		ring_release(ring);
	}
	switch_check_judge(c, &v);
	ck_assert_msg(v.n_apart == 0, "thread %u: %llu by the sibling, %llu by BPF", v.worst.tid,
		(unsigned long long)v.worst.by_sibling, (unsigned long long)v.worst.by_bpf);
	switch_check_free(c);
	sampler_free(s);
	sum->n_switches += v.n_switches;
	sum->n_unpaired += v.n_unpaired;
	sum->n_sums += v.n_sums;
}

TEST(both_ways_agree_on_page_faults)
{
	if (!may_load("both_ways_agree_on_page_faults"))
		return;
	/* A group that is throttled is compared little at a time: who tests the kernel's limit
	 * (kernel.perf_event_max_sample_rate) on this machine meanwhile has it throttle us too. */
	struct switch_verdict v = {0};
	for (int n = 0; n < COMPARISONS_MAX && (v.n_switches < NAPS || v.n_sums == 0); n++)
		compare_ways(&v);
	ck_assert_msg(v.n_switches >= NAPS && v.n_sums > 0 && 4 * v.n_unpaired <= v.n_switches,
		"%llu switches told by both, %llu by one alone, %u sums",
		(unsigned long long)v.n_switches, (unsigned long long)v.n_unpaired, v.n_sums);
}

TEST(sessions_leave_no_descriptor_open)
{
	if (!may_load("sessions_leave_no_descriptor_open"))
		return;
	unsigned before = n_descriptors();
	for (int i = 0; i < 5; i++) {
		struct sampler *s = opened(SAMPLER_SWITCHES_BPF);
		ck_assert_uint_gt(n_descriptors(), before);
		ck_assert_int_eq(sampler_start(s), 0);
		sampler_free(s);
	}
	ck_assert_uint_eq(n_descriptors(), before);
}

TEST(two_sessions_do_not_disturb_one_another)
{
	if (!may_load("two_sessions_do_not_disturb_one_another"))
		return;
	struct sampler *a = opened(SAMPLER_SWITCHES_BPF), *b = opened(SAMPLER_SWITCHES_BPF);
	ck_assert_int_eq(sampler_start(a), 0);
	ck_assert_int_eq(sampler_start(b), 0);
	touch_and_nap();
	sampler_free(a);
	touch_and_nap();
	struct case_tally t = case_drain(b);
	ck_assert_uint_ge(t.n_reads, 2 * 2 * NAPS);
	sampler_free(b);
}

static struct switch_group two_events(int hart, int output_fd, int fd)
{
	return (struct switch_group){
		.hart = hart, .output_fd = output_fd, .n_members = 2, .fd = {fd, fd}, .id = {1, 2}};
}

TEST(what_is_no_event_is_refused)
{
	struct switch_bpf *b = NULL;
	int error;
	if (!may_load("what_is_no_event_is_refused"))
		return;
	ck_assert_int_eq(kernel_real.switch_new(NULL, SWITCH_RECORDS, 2, &b, &error), 0);
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct switch_group g = two_events(0, null_fd, null_fd);
	ck_assert_int_lt(kernel_real.switch_watch(NULL, b, &g), 0);
	g = two_events(0, -1, -1);
	ck_assert_int_lt(kernel_real.switch_watch(NULL, b, &g), 0);
	g = two_events(2, null_fd, null_fd);
	ck_assert_int_eq(kernel_real.switch_watch(NULL, b, &g), -EINVAL);
	g = two_events(-1, null_fd, null_fd);
	ck_assert_int_eq(kernel_real.switch_watch(NULL, b, &g), -EINVAL);
	g = two_events(0, null_fd, null_fd);
	g.n_members = 0;
	ck_assert_int_eq(kernel_real.switch_watch(NULL, b, &g), -EINVAL);
	g.n_members = SWITCH_MEMBERS_MAX + 1;
	ck_assert_int_eq(kernel_real.switch_watch(NULL, b, &g), SWITCH_BPF_FULL);
	kernel_real.switch_forget(NULL, b, 0, 0);
	kernel_real.switch_forget(NULL, b, -1, 0);
	kernel_real.switch_forget(NULL, b, 2, 0);
	kernel_real.switch_free(NULL, b);
	close(null_fd);
}

TEST(a_hart_has_room_for_some_groups)
{
	struct sampler *s = NULL;
	struct event_error error = {""};
	if (!may_load("a_hart_has_room_for_some_groups"))
		return;
	struct event_list events = case_events(NULL,
		"{cpu-clock,page-faults},{cpu-clock,page-faults},{cpu-clock,page-faults},"
		"{cpu-clock,page-faults},{cpu-clock,page-faults}");
	struct sampler_options o = {.hz = 99, .events = &events, .switches = SAMPLER_SWITCHES_BPF};
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &error) == 0, "%s", error.text);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), SWITCH_GROUPS_MAX * s->n_rings);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "bpf, counted");
	ck_assert_int_eq(s->programs.error[SWITCH_RECORDS], E2BIG);
	sampler_free(s);
}

/* As many as -e takes, and the sibling beside them. */
TEST(the_largest_group_decodes_whatever_cuts_it, .times = 2)
{
	static const enum sampler_switches ways[] = {
		SAMPLER_SWITCHES_SIBLING, SAMPLER_SWITCHES_BPF};
	struct sampler *s = NULL;
	struct event_error error = {""};
	if (!may_load("the_largest_group_decodes_whatever_cuts_it"))
		return;
	struct event_list events = case_events(NULL,
		"{cpu-clock,page-faults,cpu-migrations,minor-faults,major-faults,alignment-faults,"
		"emulation-faults,task-clock,context-switches,cpu-clock:k,page-faults:u,page-"
		"faults:k,"
		"minor-faults:u,minor-faults:k,major-faults:u,major-faults:k}");
	ck_assert_int_eq(events.n_events, EVENT_GROUP_MAX);
	struct sampler_options o = {.hz = 500, .events = &events, .switches = ways[_i]};
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &error) == 0, "%s", error.text);
	ck_assert_int_eq(sampler_start(s), 0);
	touch_and_nap();
	ck_assert_int_eq(sampler_stop(s), 0);
	struct case_tally t = case_drain(s); /* all of which must decode */
	ck_assert_uint_ge(t.n_reads, EVENT_GROUP_MAX * NAPS);
	sampler_free(s);
}

/* What the records of sums say of one thread's page faults, and what they are. */
struct sums_seen {
	unsigned n_records, n_samples;
	unsigned n_unannounced; /* samples without a record of their task just before */
	uint64_t page_faults, enabled_ns;
};

static struct sums_seen see_sums(struct sampler *s, uint32_t tid)
{
	struct sums_seen seen = {0};
	for (size_t i = 0; i < s->n_rings; i++) {
		struct ring *ring = &s->ring[i];
		const uint8_t *bytes;
		uint32_t announced = 0;
		size_t n;
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record r;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
			if (r.kind != RECORD_SAMPLE)
				continue;
			if (r.stream->role == STREAM_SAMPLER) {
				seen.n_samples += r.tid == tid;
				seen.n_unannounced += r.tid == tid && announced != tid;
				announced = 0;
				continue;
			}
			ck_assert_int_eq(r.stream->role, STREAM_SWITCH_SUMS);
			ck_assert_int_eq((int)r.cpu, ring->hart);
			announced = r.tid;
			if (r.tid != tid)
				continue;
			ck_assert_uint_eq(r.sample.n_read, 2);
			seen.n_records++;
			seen.page_faults += r.sample.read[1].value;
			seen.enabled_ns += r.sample.enabled_ns;
		}
		ring_release(ring);
	}
	return seen;
}

static void *touch_in_thread(void *ret_tid)
{
	struct timespec ran;
	*(uint32_t *)ret_tid = (uint32_t)gettid();
	touch_and_nap();
	do /* until it was sampled for sure, at 500 Hz */
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	while (ran.tv_sec == 0 && ran.tv_nsec < 50000000);
	touch_and_nap();
	return NULL;
}

/* Some of it comes with its samples, and what it counted after the last one at its end. */
TEST(a_thread_that_ends_has_all_that_it_counted)
{
	if (!may_load_way("a_thread_that_ends_has_all_that_it_counted", SWITCH_SUMS))
		return;
	struct sampler *s = opened(SAMPLER_SWITCHES_SUMS);
	uint32_t tid = 0;
	pthread_t thread;
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, touch_in_thread, &tid), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	/* it leaves its hart for good after it is joined, on a busy machine much later */
	const struct timespec nap = {.tv_nsec = 300000000};
	nanosleep(&nap, NULL);
	ck_assert_int_eq(sampler_stop(s), 0);
	struct sums_seen seen = see_sums(s, tid);
	ck_assert_uint_ge(seen.n_samples, 1);
	ck_assert_uint_gt(seen.n_records, seen.n_samples);
	ck_assert_uint_eq(seen.n_unannounced, 0);
	ck_assert_uint_ge(seen.page_faults, 2 * NAPS * PAGES);
	/* its stack, and a sanitizer's shadow of that, are a few more; told twice, it were thousands */
	ck_assert_uint_le(seen.page_faults, 2 * NAPS * PAGES + 10 * PAGES);
	ck_assert_uint_gt(seen.enabled_ns, 0);
	sampler_free(s);
}

TEST(switches_alone_bring_no_record_of_sums)
{
	if (!may_load_way("switches_alone_bring_no_record_of_sums", SWITCH_SUMS))
		return;
	struct sampler *s = opened(SAMPLER_SWITCHES_SUMS);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_SUMS), s->n_rings);
	ck_assert_int_eq(sampler_start(s), 0);
	touch_and_nap();
	ck_assert_int_eq(sampler_stop(s), 0);
	struct sums_seen seen = see_sums(s, (uint32_t)getpid());
	ck_assert_uint_eq(seen.n_unannounced, 0);
	/* one before each sample, and no other */
	ck_assert_uint_eq(seen.n_records, seen.n_samples);
	sampler_free(s);
}

#ifdef MPERF_BPF
/* This process's map of that name; -1: there is none. The caller closes it. */
static int map_of(const char *name)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct bpf_map_info info = {0};
		uint32_t size = sizeof(info);
		char path[64], is[64] = "";
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, is, sizeof(is) - 1) > 0 && strstr(is, "bpf-map") &&
			bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
			strcmp(info.name, name) == 0)
			return dup(fd);
	}
	return -1;
}

/* Tasks of a user, or of all (-1), that have a sum. */
static int n_sums(int64_t uid)
{
	int fd = map_of("sums"), n = 0;
	uint64_t key, next; /* struct sum_key */
	ck_assert_int_ge(fd, 0);
	for (void *after = NULL; bpf_map_get_next_key(fd, after, &next) == 0; after = &key) {
		struct task_sum sum;
		key = next;
		if (bpf_map_lookup_elem(fd, &key, &sum) == 0)
			n += uid < 0 || sum.uid == uid;
	}
	close(fd);
	return n;
}

/* Nobody would see that a task ended, whose tid may be another's by then. */
TEST(what_is_not_cut_any_longer_leaves_no_sums)
{
	if (!may_load_way("what_is_not_cut_any_longer_leaves_no_sums", SWITCH_SUMS))
		return;
	struct sampler *s = opened(SAMPLER_SWITCHES_SUMS);
	ck_assert_int_eq(sampler_start(s), 0);
	touch_and_nap();
	ck_assert_int_gt(n_sums(-1), 0);
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		kernel_real.switch_forget(NULL, s->programs.program[SWITCH_SUMS], hart, 0);
	ck_assert_int_eq(n_sums(-1), 0);
	sampler_free(s);
}

#define CROWD (SWITCH_USER_TASKS_MAX + 100)
#define STACK_BYTES 65536
#define CROWD_UID 40001 /* nobody's */
#define OTHER_UID 40002

static sem_t arrived;

static void *stay(void *userdata)
{
	ck_assert_int_eq(sem_post(&arrived), 0);
	return pthread_mutex_lock(userdata) ? userdata : NULL;
}

/* A process of that user with so many threads that wait; the end that keeps it alive. */
static int crowd(uid_t uid, int n_threads)
{
	int ready[2], stop[2];
	char byte = 0;
	ck_assert_int_eq(pipe(ready) | pipe(stop), 0);
	if (fork() == 0) {
		pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
		pthread_attr_t attr;
		pthread_t thread;
		close(stop[1]);
		pthread_mutex_lock(&held);
		if (sem_init(&arrived, 0, 0) || setuid(uid) || pthread_attr_init(&attr) ||
			pthread_attr_setstacksize(&attr, STACK_BYTES))
			_exit(1);
		for (int i = 0; i < n_threads; i++)
			if (pthread_create(&thread, &attr, stay, &held) || sem_wait(&arrived))
				_exit(1);
		byte = 1;
		_exit(write(ready[1], &byte, 1) != 1 || read(stop[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(stop[0]);
	ck_assert_msg(read(ready[0], &byte, 1) == 1, "the threads do not start");
	close(ready[0]);
	return stop[1];
}

/* Are sums counted for that user? */
static bool is_known_user(uint32_t uid)
{
	uint32_t n;
	int fd = map_of("users");
	ck_assert_int_ge(fd, 0);
	bool known = bpf_map_lookup_elem(fd, &uid, &n) == 0;
	close(fd);
	return known;
}

TEST(a_user_with_many_threads_leaves_room_for_others)
{
	if (!may_load_way("a_user_with_many_threads_leaves_room_for_others", SWITCH_SUMS))
		return;
	struct sampler *s = opened(SAMPLER_SWITCHES_SUMS);
	ck_assert_int_eq(sampler_start(s), 0);
	int many = crowd(CROWD_UID, CROWD), few = crowd(OTHER_UID, 10);
	int n = n_sums(CROWD_UID);
	/* the threads that begin at once on several harts may exceed it */
	ck_assert_int_le(n, SWITCH_USER_TASKS_MAX + s->machine.n_harts);
	ck_assert_int_ge(n, SWITCH_USER_TASKS_MAX / 2);
	ck_assert_int_ge(n_sums(OTHER_UID), 5);
	/* what ends gives its place back */
	const struct timespec nap = {.tv_nsec = 10000000};
	close(many);
	close(few);
	for (int i = 0; i < 2000 && n_sums(CROWD_UID) > 0; i++)
		nanosleep(&nap, NULL);
	ck_assert_int_eq(n_sums(CROWD_UID), 0);
	ck_assert(!is_known_user(CROWD_UID));
	many = crowd(CROWD_UID, 10);
	ck_assert_int_ge(n_sums(CROWD_UID), 5);
	close(many);
	sampler_free(s);
}
#endif

TEST(a_program_is_attached_while_it_has_groups_to_read, .times = 2)
{
	const enum switch_way way = _i ? SWITCH_SUMS : SWITCH_RECORDS;
	if (!may_load_way("a_program_is_attached_while_it_has_groups_to_read", way))
		return;
	struct sampler *s =
		opened(way == SWITCH_SUMS ? SAMPLER_SWITCHES_SUMS : SAMPLER_SWITCHES_BPF);
	unsigned attached = n_descriptors();
	for (int hart = 0; hart < s->machine.n_harts; hart++) {
		ck_assert_uint_eq(n_descriptors(), attached);
		kernel_real.switch_forget(NULL, s->programs.program[way], hart, 0);
	}
	ck_assert_uint_eq(n_descriptors(), attached - 1);
	sampler_free(s);
}

TEST(sums_leave_no_descriptor_open)
{
	if (!may_load_way("sums_leave_no_descriptor_open", SWITCH_SUMS))
		return;
	unsigned before = n_descriptors();
	for (int i = 0; i < 3; i++) {
		struct sampler *s = opened(SAMPLER_SWITCHES_SUMS);
		ck_assert_int_eq(sampler_start(s), 0);
		sampler_free(s);
	}
	ck_assert_uint_eq(n_descriptors(), before);
}

TEST(a_machine_without_harts_is_refused)
{
	struct switch_bpf *b = NULL;
	int error;
	if (!may_load("a_machine_without_harts_is_refused"))
		return;
	ck_assert_int_eq(kernel_real.switch_new(NULL, SWITCH_RECORDS, 0, &b, &error), -EINVAL);
	ck_assert_int_eq(kernel_real.switch_new(NULL, SWITCH_RECORDS, -1, &b, &error), -EINVAL);
	ck_assert_ptr_null(b);
}
