/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The running kernel behind the table: system calls with their errors turned into -errno, without any
 * decision. The exception is spin, which has to give a probe something to count: it walks over fresh
 * memory with unpredictable branches, calculates, and throws lines out of all caches, so that not only
 * cycles move, but also cache, TLB, branch and floating-point events.
 */
#include "daemon/kernel/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/kernel/switch_bpf.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SPIN_BYTES (512u << 10) /* beyond a first-level cache; a power of two */
#define SPIN_STEPS 256u         /* between two reads of the clock: a few microseconds */
#define USUAL_READINGS 256u     /* of the clock, to know how long one takes: some microseconds */
#define ALARM_NS 2000000        /* an exec waits less long than this for the kernel's own work */
#define LIST_NAMES_MAX 65536u   /* more than tracefs or a PMU has; stops at an endless folder */

static void on_alarm(int number)
{
	(void)number;
}

/* Send this thread a signal every ALARM_NS, which interrupts its waiting. False without a timer. */
static bool alarm_begin(timer_t *ret_timer)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
		._sigev_un._tid = gettid(),
	};
	struct timespec every = {0, ALARM_NS};
	struct itimerspec when = {every, every};
	struct sigaction action = {
		.sa_handler = on_alarm}; /* interrupted calls do not restart by themselves */
	return sigaction(SIGALRM, &action, NULL) == 0 &&
	       timer_create(CLOCK_MONOTONIC, &event, ret_timer) == 0 &&
	       timer_settime(*ret_timer, 0, &when, NULL) == 0;
}

/* The kernel waits for an exec of the task, which takes as long as a FUSE file that it closes. If it takes too
 * long, we treat the task as gone. Source: kernel/events/core.c, perf_event_open (exec_update_lock), and fs/exec.c,
 * begin_new_exec, of Linux 6.12. */
static int real_event_open(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
	unsigned long flags)
{
	(void)u;
	timer_t timer;
	bool alarmed = pid > 0 && alarm_begin(&timer);
	long fd = syscall(SYS_perf_event_open, attr, pid, hart, group_fd, flags);
	int error = fd < 0 ? errno : 0;
	if (alarmed)
		timer_delete(timer);
	return fd >= 0 ? (int)fd : alarmed && error == EINTR ? -ESRCH : -error;
}

static int real_event_ioctl(void *u, int fd, unsigned long request, uintptr_t arg)
{
	(void)u;
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static ssize_t real_event_read(void *u, int fd, void *buffer, size_t n)
{
	(void)u;
	ssize_t got;
	do
		got = read(fd, buffer, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static void *real_ring_map(void *u, int fd, size_t data_bytes, int *ret_error)
{
	(void)u;
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		*ret_error = -errno;
		return NULL;
	}
	return map;
}

static void real_ring_unmap(void *u, void *map, size_t data_bytes)
{
	(void)u;
	munmap(map, (size_t)sysconf(_SC_PAGESIZE) + data_bytes);
}

static void real_event_close(void *u, int fd)
{
	(void)u;
	close(fd);
}

static uint64_t real_now_ns(void *u)
{
	(void)u;
	return clock_ns(CLOCK_MONOTONIC);
}

/* The coarse clocks move once per tick. Source: posix_get_coarse_res in
 * kernel/time/posix-timers.c of Linux 6.12: KTIME_LOW_RES, which is TICK_NSEC. */
static uint32_t real_tick_hz(void *u)
{
	(void)u;
	struct timespec tick;
	if (clock_getres(CLOCK_REALTIME_COARSE, &tick) < 0 || tick.tv_sec > 0 || tick.tv_nsec <= 0)
		return 0;
	return (uint32_t)((1000000000 + tick.tv_nsec / 2) / tick.tv_nsec);
}

/* Source: perf_mmap in kernel/events/core.c of Linux 6.12; man capget, which has no wrapper in libc. */
static uint64_t real_locked_bytes(void *u)
{
	(void)u;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
		(syscall(SYS_capget, &header, data) == 0 &&
			data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)))
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* Evict the line from all caches, where user space may do so: the next access comes from memory. */
static void evict(uint8_t *line)
{
#if defined(__x86_64__)
	__builtin_ia32_clflush(line);
#elif defined(__aarch64__)
	__asm__ volatile("dc civac, %0\n\tdsb ish" : : "r"(line) : "memory");
#else
	(void)line;
#endif
}

/* Spin in user space until the time has come. Without memory, spin in registers. */
static void burn(uint64_t until_ns)
{
	_cleanup_(freep) uint8_t *memory = malloc(SPIN_BYTES);
	volatile uint64_t odd = 0;
	volatile double d = 1;
	volatile float f = 1;
	uint64_t x = real_now_ns(NULL) | 1;
	while (real_now_ns(NULL) < until_ns) {
		for (unsigned i = 0; i < SPIN_STEPS; i++) {
			/* Source: Marsaglia, "Xorshift RNGs", 2003, triple (13, 7, 17). */
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			if (memory)
				memory[x & (SPIN_BYTES - 1)] = (uint8_t)(x >> 32);
			if (x & 1u << 20)
				odd = odd + 1;
			d = d * 0.5 + 1;
			f = f * 0.5f + 1;
		}
		if (memory)
			evict(&memory[x & (SPIN_BYTES - 1)]);
		if (memory)
			odd = odd + memory[x & (SPIN_BYTES - 1)];
	}
}

/* Move this thread to that hart. *ret_before: the harts on which it could run before. */
static int go_to_hart(int hart, cpu_set_t *ret_before)
{
	cpu_set_t before, there;
	if (hart < 0 || hart >= CPU_SETSIZE)
		return -EINVAL;
	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return -errno;
	CPU_ZERO(&there);
	CPU_SET(hart, &there);
	if (sched_setaffinity(0, sizeof(there), &there) < 0)
		return -errno;
	*ret_before = before;
	return 0;
}

/* Let the thread run on its former harts again, with r as the result. */
static int go_back(const cpu_set_t *before, int r)
{
	return sched_setaffinity(0, sizeof(*before), before) < 0 ? -errno : r;
}

static int real_spin(void *u, int hart, uint64_t ns)
{
	cpu_set_t before;
	int r = go_to_hart(hart, &before);
	if (r < 0)
		return r;
	burn(real_now_ns(u) + ns);
	return go_back(&before, 0);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The usual time between two readings, and *ret_long_ns, from which on it is no longer usual: also where the clock
 * counts in steps longer than a reading. */
static uint64_t usual_reading(uint64_t *ret_long_ns)
{
	uint64_t each_ns[USUAL_READINGS], last_ns = real_now_ns(NULL);
	for (unsigned i = 0; i < USUAL_READINGS; i++) {
		uint64_t ns = real_now_ns(NULL);
		each_ns[i] = ns - last_ns;
		last_ns = ns;
	}
	qsort(each_ns, USUAL_READINGS, sizeof(*each_ns), compare_times);
	*ret_long_ns = 2 * each_ns[USUAL_READINGS * 15 / 16] + 1;
	return each_ns[USUAL_READINGS / 2];
}

static void read_clock(uint64_t for_ns, struct kernel_gaps *g)
{
	uint64_t long_ns;
	g->n = 0;
	g->usual_ns = usual_reading(&long_ns);
	uint64_t last_ns = g->begin_ns = real_now_ns(NULL);
	while (last_ns - g->begin_ns < for_ns && g->n < KERNEL_GAPS_MAX) {
		uint64_t ns = real_now_ns(NULL);
		if (ns - last_ns > long_ns) {
			g->gap[g->n].from_ns = last_ns;
			g->gap[g->n++].to_ns = ns;
		}
		last_ns = ns;
	}
	g->end_ns = last_ns;
}

static int real_clock_gaps(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	(void)u;
	cpu_set_t before;
	int r = go_to_hart(hart, &before);
	if (r < 0)
		return r;
	read_clock(ns, ret_gaps);
	return go_back(&before, 0);
}

struct partner {
	int in, out;
};

/* Send back each byte until the other end is closed. */
static void *answer_bytes(void *userdata)
{
	const struct partner *p = userdata;
	char byte;
	while (read(p->in, &byte, 1) == 1 && write(p->out, &byte, 1) == 1)
		;
	return NULL;
}

static int exchange_bytes(int out, int in, unsigned n)
{
	char byte = 0;
	for (unsigned i = 0; i < n; i++)
		if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
			return -EIO;
	return 0;
}

static int start_partner(pthread_t *ret_thread, struct partner *p)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the daemon's own thread's */
	int r = pthread_create(ret_thread, NULL, answer_bytes, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

/* A byte goes to and fro between two threads, which inherit the affinity: two switches each. */
static int switch_to_and_fro(unsigned n, uint64_t *ret_ns)
{
	int there[2], back[2];
	if (pipe2(there, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(back, O_CLOEXEC) < 0) {
		int error = errno;
		close(there[0]);
		close(there[1]);
		return -error;
	}
	struct partner partner = {.in = there[0], .out = back[1]};
	pthread_t thread;
	int r = start_partner(&thread, &partner);
	bool started = r == 0;
	if (r == 0)
		r = exchange_bytes(there[1], back[0], 1); /* now it waits */
	clockid_t of_partner = CLOCK_THREAD_CPUTIME_ID;
	if (r == 0)
		r = -pthread_getcpuclockid(thread, &of_partner);
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + clock_ns(of_partner);
	if (r == 0)
		r = exchange_bytes(there[1], back[0], n / 2);
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + clock_ns(of_partner);
	close(there[1]); /* which ends it */
	if (started)
		pthread_join(thread, NULL);
	close(there[0]);
	close(back[0]);
	close(back[1]);
	if (r == 0)
		*ret_ns = end_ns - begin_ns;
	return r;
}

static int real_switch_work(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	(void)u;
	cpu_set_t before;
	int r = go_to_hart(hart, &before);
	return r < 0 ? r : go_back(&before, switch_to_and_fro(n, ret_ns));
}

static int real_task_work(void *u, int hart, enum task_work what, unsigned n, uint64_t *ret_ns)
{
	(void)u;
	cpu_set_t before;
	int r = go_to_hart(hart, &before);
	return r < 0 ? r : go_back(&before, task_work_do(what, n, ret_ns));
}

static ssize_t real_read_text(void *u, const char *path, char *buffer, size_t size)
{
	(void)u;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;

	size_t n = 0;
	while (n < size) {
		ssize_t got = read(fd, buffer + n, size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0) {
			buffer[n] = '\0';
			return (ssize_t)n;
		}
		n += (size_t)got;
	}
	return -E2BIG;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int real_list(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	(void)u;
	_cleanup_(closedirp) DIR *dir = opendir(path);
	if (!dir)
		return -errno;

	for (unsigned n = 0; n < LIST_NAMES_MAX;) {
		errno = 0;
		struct dirent *entry = readdir(dir);
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		each(userdata, entry->d_name);
		n++;
	}
	return -E2BIG;
}

/* Source: Documentation/arch/riscv/hwprobe.rst of Linux 6.12; the number, which Debian 12's headers
 * do not have yet, arch/riscv/include/uapi/asm/unistd.h. */
static int real_hwprobe(void *u, int hart, struct kernel_hwprobe *pairs, size_t n)
{
	(void)u;
#ifdef __riscv
	const long number = 258;
	cpu_set_t set;
	if (hart < 0 || hart >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(hart, &set);
	return syscall(number, pairs, n, sizeof(set), &set, 0) < 0 ? -errno : 0;
#else
	(void)hart, (void)pairs, (void)n;
	return -ENOSYS;
#endif
}

#ifdef MPERF_BPF
static int real_switch_new(
	void *u, enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error)
{
	(void)u;
	return switch_bpf_new(way, n_harts, ret_bpf, ret_error);
}

static int real_switch_watch(void *u, struct switch_bpf *b, const struct switch_group *g)
{
	(void)u;
	return switch_bpf_watch(b, g);
}

static int real_switch_watched(void *u, const struct switch_bpf *b, int hart)
{
	(void)u;
	return switch_bpf_watched(b, hart);
}

static void real_switch_forget(void *u, struct switch_bpf *b, int hart, int n_kept)
{
	(void)u;
	switch_bpf_forget(b, hart, n_kept);
}

static void real_switch_free(void *u, struct switch_bpf *b)
{
	(void)u;
	switch_bpf_free(b);
}

static int real_exec_new(void *u, int n_harts, struct exec_bpf **ret_bpf, int *ret_error)
{
	(void)u;
	return exec_bpf_new(n_harts, ret_bpf, ret_error);
}

static int real_exec_watch(void *u, struct exec_bpf *b, int hart, int output_fd)
{
	(void)u;
	return exec_bpf_watch(b, hart, output_fd);
}

static void real_exec_forget(void *u, struct exec_bpf *b, int hart)
{
	(void)u;
	exec_bpf_forget(b, hart);
}

static void real_exec_free(void *u, struct exec_bpf *b)
{
	(void)u;
	exec_bpf_free(b);
}

static int real_list_programs(
	void *u, void (*each)(void *userdata, const struct kernel_program *p), void *userdata)
{
	(void)u;
	return programs_bpf_list(each, userdata);
}
#endif

const struct kernel kernel_real = {
	.event_open = real_event_open,
	.event_ioctl = real_event_ioctl,
	.event_read = real_event_read,
	.ring_map = real_ring_map,
	.ring_unmap = real_ring_unmap,
	.event_close = real_event_close,
	.now_ns = real_now_ns,
	.tick_hz = real_tick_hz,
	.locked_bytes = real_locked_bytes,
	.spin = real_spin,
	.clock_gaps = real_clock_gaps,
	.switch_work = real_switch_work,
	.task_work = real_task_work,
	.read_text = real_read_text,
	.list = real_list,
	.hwprobe = real_hwprobe,
#ifdef MPERF_BPF
	.switch_new = real_switch_new,
	.switch_watch = real_switch_watch,
	.switch_watched = real_switch_watched,
	.switch_forget = real_switch_forget,
	.switch_free = real_switch_free,
	.exec_new = real_exec_new,
	.exec_watch = real_exec_watch,
	.exec_forget = real_exec_forget,
	.exec_free = real_exec_free,
	.list_programs = real_list_programs,
#endif
};

void kernel_boot_id(const struct kernel *k, char ret_id[static KERNEL_BOOT_ID_BYTES])
{
	if (k->read_text(k->userdata, "/proc/sys/kernel/random/boot_id", ret_id,
		    KERNEL_BOOT_ID_BYTES) < 0)
		ret_id[0] = '\0';
	ret_id[strcspn(ret_id, "\n")] = '\0';
}
