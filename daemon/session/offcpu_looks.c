/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The process sends looks through a pipe, and shares a page with the loop. It is nobody's child, so that it needs no
 * reaping: it ends when the other end of its pipe is closed.
 */

#include "daemon/session/offcpu_looks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/offcpu_bpf.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* The copy of one stack takes some microseconds; where its pages are on a disk, some tens of milliseconds. */
#define HANGS_NS 2000000000u
/* When LOST_MAX processes have hung or ended by themselves, looks end; LOST_LOOKS good looks make up for one process. */
#define LOST_MAX 8u
#define LOST_LOOKS 1000u
/* A read returns a page of the kernel's at most. Source: PAGE_SIZE << 3 in kernel/bpf/bpf_iter.c of Linux 6.12. */
#define READ_BYTES (64u << 10)
/* Bytes of one look: 300,000 threads that are still waiting, or 13,000 with full records. */
#define LOOK_BYTES_MAX (8u << 20)
#define PIPE_BYTES (1 << 20)
#define MILLION 1000000u
#define LINK_FD 3 /* of the process, and its end of the pipe */
#define PIPE_FD 4

struct shared {
	/* of the loop */
	_Atomic uint64_t caller_ns;
	atomic_bool is_put_off;
	_Atomic uint64_t every_ns, part_ppm;
	/* of the process */
	_Atomic int pid;
	_Atomic uint64_t n_looks, cpu_ns, interval_ns, n_broken, n_cut;
};

struct offcpu_looks {
	struct offcpu_bpf bpf;
	struct shared *shared;
	int pipe_fd;        /* -1: there is no process */
	uint64_t looked_ns; /* whether it hangs */
	unsigned n_lost;    /* processes, since */
	uint64_t n_looks;
	uint8_t head[sizeof(struct offcpu_look)];
	size_t n_head;            /* bytes of it that were read */
	struct offcpu_look *look; /* once the head is there */
	size_t n_read;            /* of its bytes */
};

void offcpu_look_free(struct offcpu_look *look)
{
	if (look)
		explicit_bzero(look->bytes, look->n_bytes);
	free(look);
}

/* --- the process ------------------------------------------------------------------------------ */

struct looker {
	struct shared *shared;
	uint64_t start_ns, interval_ns; /* of the interval */
	uint64_t unlooked_ns;           /* intervals before it without a look */
	uint64_t cpu_ns, caller_ns;     /* as of the last look */
	struct offcpu_look
		*look; /* with room for LOOK_BYTES_MAX, which is touched as far as it is needed */
};

/* Read a look, without the last threads if there are too many. A process that cannot is no use. */
static void look_now(struct looker *l)
{
	struct offcpu_look *look = l->look;
	_cleanup_(closep) int fd = -1;
	ssize_t n = offcpu_bpf_look(LINK_FD, &fd) < 0 ? -1 : 1;
	look->n_bytes = 0;
	/* without a hart for a moment, since a look is about who had one when this process got its own */
	(void)poll(NULL, 0, 1);
	while (n > 0 && LOOK_BYTES_MAX - look->n_bytes >= READ_BYTES) {
		n = read(fd, look->bytes + look->n_bytes, READ_BYTES);
		look->n_bytes += n > 0 ? (size_t)n : 0;
	}
	look->time_ns = clock_ns(CLOCK_MONOTONIC);
	if (n < 0)
		_exit(EXIT_FAILURE);
	l->shared->n_cut += n > 0;
}

/* Blocks while the loop does not read. */
static void send_look(const struct offcpu_look *look)
{
	const uint8_t *at = (const uint8_t *)look;
	size_t left = sizeof(*look) + look->n_bytes;
	while (left > 0) {
		ssize_t n = write(PIPE_FD, at, left);
		if (n < 0 && errno != EINTR)
			_exit(EXIT_SUCCESS);
		at += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
}

/* A part of the interval, by chance. */
static uint64_t moment_in(uint64_t interval_ns)
{
	uint32_t chance = 0;
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
		chance = (uint32_t)(clock_ns(CLOCK_MONOTONIC) * 2654435761u);
	return (uint64_t)((double)interval_ns * (double)chance / 4294967296.0);
}

static void sleep_until(uint64_t until_ns)
{
	struct pollfd end = {.fd = PIPE_FD}; /* POLLERR: nobody reads it any more */
	for (uint64_t now_ns; (now_ns = clock_ns(CLOCK_MONOTONIC)) < until_ns;) {
		const struct timespec left = {.tv_sec = (time_t)((until_ns - now_ns) / 1000000000u),
			.tv_nsec = (long)((until_ns - now_ns) % 1000000000u)};
		if (ppoll(&end, 1, &left, NULL) > 0)
			_exit(EXIT_SUCCESS);
	}
}

/* The next interval begins where this one ends; those that passed meanwhile have no look of their own. */
static void begin_next(struct looker *l, uint64_t cost_ns)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t wanted_ns = cost_ns * MILLION / l->shared->part_ppm;
	l->start_ns += l->interval_ns;
	if (wanted_ns < l->shared->every_ns)
		wanted_ns = l->shared->every_ns;
	if (l->shared->is_put_off && wanted_ns < OFFCPU_SELDOM_NS)
		wanted_ns = OFFCPU_SELDOM_NS;
	if (wanted_ns > OFFCPU_MOST_NS)
		wanted_ns = OFFCPU_MOST_NS;
	/* the first look is the most expensive, and a single one says little */
	if (l->shared->n_looks > 1)
		l->interval_ns = (3 * l->interval_ns + wanted_ns) / 4;
	while (l->start_ns + l->interval_ns <= now_ns) {
		l->start_ns += l->interval_ns;
		l->unlooked_ns += l->interval_ns;
	}
	l->shared->interval_ns = l->interval_ns;
}

static uint64_t grown(uint64_t now, uint64_t *before)
{
	const uint64_t more = now - *before;
	*before = now;
	return more;
}

static noreturn void look_on(struct looker *l)
{
	for (;;) {
		sleep_until(l->start_ns + moment_in(l->interval_ns));
		look_now(l);
		l->look->weight_ns = l->interval_ns + l->unlooked_ns;
		l->unlooked_ns = 0;
		send_look(l->look);
		l->shared->n_looks++;
		explicit_bzero(l->look->bytes, l->look->n_bytes);
		const uint64_t cost_ns = grown(clock_ns(CLOCK_PROCESS_CPUTIME_ID), &l->cpu_ns);
		l->shared->cpu_ns += cost_ns;
		begin_next(l, cost_ns + grown(l->shared->caller_ns, &l->caller_ns));
	}
}

static void go_first_without_memory(void)
{
	_cleanup_(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "500", 3) < 0)
		errno = 0; /* it is no more than a wish */
}

/* Nobody who waits for the end of our output shall wait for a process that hangs. */
static void leave_terminal(void)
{
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int to = 0; fd >= 0 && to < LINK_FD; to++)
		(void)dup2(fd, to);
}

static noreturn void process(struct offcpu_looks *all, int pipe_fd)
{
	struct looker l = {.shared = all->shared,
		.start_ns = clock_ns(CLOCK_MONOTONIC),
		.interval_ns = OFFCPU_EVERY_NS,
		.caller_ns = all->shared->caller_ns};
	sigset_t none;
	prctl(PR_SET_NAME, "mperfd-looks");
	go_first_without_memory();
	leave_terminal();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* first out of the way of one another */
	const int link_fd = fcntl(all->bpf.link_fd, F_DUPFD, PIPE_FD + 1);
	pipe_fd = fcntl(pipe_fd, F_DUPFD, PIPE_FD + 1);
	if (dup2(link_fd, LINK_FD) < 0 || dup2(pipe_fd, PIPE_FD) < 0 ||
		close_range(PIPE_FD + 1, ~0u, 0) < 0)
		_exit(EXIT_FAILURE);
	l.look = mmap(NULL, sizeof(*l.look) + LOOK_BYTES_MAX, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (l.look == MAP_FAILED)
		_exit(EXIT_FAILURE);
	l.shared->pid = getpid();
	look_on(&l);
}

/* --- the loop --------------------------------------------------------------------------------- */

static int begin_process(struct offcpu_looks *l)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	l->shared->interval_ns = OFFCPU_EVERY_NS;
	const pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			process(l, fds[1]);
		_exit(EXIT_SUCCESS);
	}
	const int r = pid < 0 ? -errno : 0;
	close(fds[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (r < 0)
		close(fds[0]);
	else
		l->pipe_fd = fds[0];
	return r;
}

int offcpu_looks_new(uint32_t part_ppm, struct offcpu_looks **ret_looks, int *ret_error)
{
	struct offcpu_looks *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct offcpu_looks){.pipe_fd = -1};
	const int r = offcpu_bpf_load(&l->bpf, ret_error);
	if (r != 0) {
		free(l);
		*ret_error = r < 0 ? -r : *ret_error;
		return OFFCPU_LOOKS_REFUSED;
	}
	l->shared = mmap(NULL, sizeof(*l->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->shared == MAP_FAILED) {
		offcpu_looks_free(l);
		return -ENOMEM;
	}
	offcpu_looks_pace(l, OFFCPU_EVERY_NS, part_ppm);
	(void)begin_process(l); /* else it is tried again */
	*ret_looks = l;
	return 0;
}

/* Without a process, another one begins at the next dispatch. */
static void lose_process(struct offcpu_looks *l)
{
	closep(&l->pipe_fd);
	l->pipe_fd = -1;
	l->n_lost++;
	l->n_looks = l->shared->n_looks;
	l->shared->n_broken++;
	l->n_head = 0;
	offcpu_look_free(l->look);
	l->look = NULL;
	offcpu_bpf_tell_again(&l->bpf);
}

/* Read n bytes as far as they are there. Returns how many. */
static size_t read_on(struct offcpu_looks *l, void *to, size_t n)
{
	ssize_t got = 0;
	do
		got = read(l->pipe_fd, to, n);
	while (got < 0 && errno == EINTR);
	if (got == 0 || (got < 0 && errno != EAGAIN))
		lose_process(l);
	return got > 0 ? (size_t)got : 0;
}

/* Is the head of a look there, and room for the rest? */
static bool begin_look(struct offcpu_looks *l)
{
	struct offcpu_look *head = (struct offcpu_look *)(void *)l->head;
	l->n_head += read_on(l, l->head + l->n_head, sizeof(l->head) - l->n_head);
	if (l->pipe_fd < 0 || l->n_head < sizeof(l->head))
		return false;
	if (head->n_bytes <= LOOK_BYTES_MAX)
		l->look = malloc(sizeof(l->head) + head->n_bytes);
	if (!l->look) {
		lose_process(l);
		return false;
	}
	memcpy(l->look, l->head, sizeof(l->head));
	l->n_head = l->n_read = 0;
	return true;
}

/* Is there a whole look? */
static bool is_ready(struct offcpu_looks *l)
{
	if (l->pipe_fd < 0 || (!l->look && !begin_look(l)))
		return false;
	while (l->look && l->n_read < l->look->n_bytes) {
		size_t n = read_on(l, l->look->bytes + l->n_read, l->look->n_bytes - l->n_read);
		if (n == 0)
			return false;
		l->n_read += n;
	}
	return l->look != NULL;
}

uint64_t offcpu_looks_next_ns(struct offcpu_looks *l)
{
	return is_ready(l) ? l->look->time_ns : UINT64_MAX;
}

struct offcpu_look *offcpu_looks_take(struct offcpu_looks *l)
{
	return is_ready(l) ? TAKE_PTR(l->look) : NULL;
}

void offcpu_looks_cost(struct offcpu_looks *l, uint64_t cpu_ns)
{
	l->shared->caller_ns += cpu_ns;
}

void offcpu_looks_pace(struct offcpu_looks *l, uint64_t every_ns, uint32_t part_ppm)
{
	l->shared->every_ns = every_ns;
	l->shared->part_ppm = part_ppm;
}

void offcpu_looks_put_off(struct offcpu_looks *l, bool put_off)
{
	l->shared->is_put_off = put_off;
}

struct offcpu_looks_state offcpu_looks_state(const struct offcpu_looks *l)
{
	const struct shared *s = l->shared;
	return (struct offcpu_looks_state){
		.pid = l->pipe_fd < 0 ? 0 : s->pid,
		.n_looks = s->n_looks,
		.cpu_ns = s->cpu_ns + s->caller_ns,
		.caller_ns = s->caller_ns,
		.interval_ns = s->interval_ns,
		.n_broken = s->n_broken,
		.n_cut = s->n_cut,
		.has_ended = l->pipe_fd < 0 && l->n_lost >= LOST_MAX,
	};
}

const struct offcpu_bpf *offcpu_looks_bpf(const struct offcpu_looks *l)
{
	return &l->bpf;
}

void offcpu_looks_dispatch(struct offcpu_looks *l, uint64_t now_ns)
{
	const uint64_t n_looks = l->shared->n_looks;
	if (l->pipe_fd >= 0 && now_ns > l->looked_ns + HANGS_NS) {
		l->looked_ns = now_ns;
		if (offcpu_bpf_bar(&l->bpf, HANGS_NS, now_ns)) {
			kill(l->shared->pid, SIGKILL); /* as soon as it can be */
			lose_process(l);
		}
	}
	if (l->n_lost > 0 && n_looks >= l->n_looks + LOST_LOOKS) {
		l->n_lost--;
		l->n_looks = n_looks;
	}
	if (l->pipe_fd < 0 && l->n_lost < LOST_MAX)
		(void)begin_process(l);
}

struct offcpu_looks *offcpu_looks_free(struct offcpu_looks *l)
{
	if (!l)
		return NULL;
	closep(&l->pipe_fd);
	offcpu_look_free(l->look);
	offcpu_bpf_close(&l->bpf);
	if (l->shared && l->shared != MAP_FAILED)
		munmap(l->shared, sizeof(*l->shared));
	free(l);
	return NULL;
}
