/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* cpu-clock of user mode alone needs no privilege on most machines, so this works wherever a
 * compiler and perf_event_open do. The program says when it has reached its bottom; a sample before
 * that would be of another depth.
 */

#include "tests/unit/daemon/namer/sampled.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/decode/record.h"
#include "daemon/kernel/ring.h"

#define RING_PAGES 64
#define TRIES 300 /* of 10 ms each */
#define SAMPLE_TYPE                                                                                \
	(STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

void sampled_begin(struct sampled *s)
{
	*s = (struct sampled){.folder = "/tmp/mperf-unwind-XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(s->folder));
}

static void forget_maps(struct sampled *s)
{
	for (size_t i = 0; i < s->n_maps; i++)
		if (s->maps[i].fd >= 0)
			close(s->maps[i].fd);
	s->n_maps = 0;
}

void sampled_end(struct sampled *s)
{
	char path[64];

	forget_maps(s);
	snprintf(path, sizeof(path), "%s/depth", s->folder);
	unlink(path);
	rmdir(s->folder);
}

static bool build(const struct sampled *s, const char *flags)
{
	char command[512];

	snprintf(command, sizeof(command),
		"cc -O2 -fomit-frame-pointer %s -o %s/depth tests/system/%s >/dev/null 2>&1", flags,
		s->folder,
		s->narrow ? "narrow.c -m32 -ffreestanding -fno-stack-protector -nostdlib -static"
			  : "depth.c");
	return system(command) == 0;
}

static pid_t start(const struct sampled *s, const char *depth, const char *mode)
{
	char path[64], byte;
	int out[2];

	snprintf(path, sizeof(path), "%s/depth", s->folder);
	ck_assert_int_eq(pipe(out), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(path, path, depth, mode, NULL);
		_exit(127);
	}
	close(out[1]);
	ssize_t n = read(out[0], &byte, 1); /* it is at the bottom */
	close(out[0]);
	ck_assert(n == 1 || s->narrow);
	if (n == 1)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

/* Every process of a machine has the same vdso: a copy of ours stands for that of the program. */
static int copy_vdso(size_t n)
{
	const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	ck_assert_int_eq((int)write(fd, vdso, n), (int)n);
	return fd;
}

static void read_maps(struct sampled *s, pid_t pid)
{
	char path[64], line[512], rights[5];
	uint32_t next_file = SAMPLED_PROGRAM + 1;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	s->n_readings++;
	while (fgets(line, sizeof(line), f) && s->n_maps < SAMPLED_MAPS_MAX) {
		struct unwind_map *m = &s->maps[s->n_maps];
		char *name = s->paths[s->n_maps];
		name[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %255s", &m->start,
			    &m->end, rights, &m->file_offset, name) < 4 ||
			rights[2] != 'x')
			continue;
		m->path = name;
		m->fd = name[0] == '/' ? open(name, O_RDONLY | O_CLOEXEC) : -1;
		if (!strcmp(name, "[vdso]"))
			m->fd = copy_vdso(m->end - m->start);
		m->file = strstr(name, "/depth") ? SAMPLED_PROGRAM : next_file++;
		s->n_maps++;
	}
	fclose(f);
}

static int open_event(pid_t pid, uint64_t *ret_id)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = SAMPLE_TYPE,
		.sample_regs_user = SAMPLED_REGS,
		.sample_stack_user = SAMPLED_STACK_BYTES,
		.exclude_kernel = 1,
		.sample_id_all = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		ck_assert_int_eq(ioctl(fd, PERF_EVENT_IOC_ID, ret_id), 0);
	return fd;
}

/* Keep a sample. False: it has no registers of that kind. */
static bool take(struct sampled *s, const struct record *r)
{
	const struct record_sample *from = &r->sample;
	const uint64_t abi = s->narrow ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64;

	if (r->kind != RECORD_SAMPLE || from->regs_abi != abi)
		return false;
	memcpy(s->regs, from->regs, 8 * (size_t)__builtin_popcountll(SAMPLED_REGS));
	memcpy(s->stack, from->stack, from->n_stack);
	s->n_stack = from->n_stack;
	s->ip = from->ip;
	return true;
}

/* Does the sample lie in the mapping whose path contains where? */
static bool lies_in(const struct sampled *s, const char *where)
{
	for (size_t i = 0; i < s->n_maps; i++)
		if (s->ip >= s->maps[i].start && s->ip < s->maps[i].end &&
			strstr(s->paths[i], where))
			return true;
	return false;
}

struct samples {
	struct ring ring;
	struct stream stream;
	struct stream_table streams;
	int fd;
};

/* False: the kernel refuses it. */
static bool samples_begin(struct samples *x, pid_t pid)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = RING_PAGES * page;

	*x = (struct samples){.stream = {.sample_type = SAMPLE_TYPE, .regs_user = SAMPLED_REGS}};
	x->streams = (struct stream_table){.stream = &x->stream, .n_streams = 1};
	x->fd = open_event(pid, &x->stream.id);
	if (x->fd < 0)
		return false;
	void *map = mmap(NULL, page + n, PROT_READ | PROT_WRITE, MAP_SHARED, x->fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	x->ring = (struct ring){.map = map, .data_bytes = n, .fd = x->fd};
	return true;
}

static void samples_end(struct samples *x)
{
	void *map = x->ring.map;

	ring_clear(&x->ring);
	munmap(map, (size_t)sysconf(_SC_PAGESIZE) + x->ring.data_bytes);
	close(x->fd);
}

/* Wait for a moment, and call on_sample for each sample since. */
static void samples_drain(struct samples *x, struct sampled *s,
	void (*on_sample)(void *, const struct sampled *), void *userdata)
{
	const uint8_t *bytes;
	size_t n_bytes;
	struct record r;

	poll(NULL, 0, 10);
	ring_snapshot(&x->ring);
	while (ring_peek(&x->ring, &bytes, &n_bytes) == 0) {
		if (record_decode(bytes, n_bytes, &x->streams, &r) == 0 && take(s, &r))
			on_sample(userdata, s);
		ring_advance(&x->ring);
	}
	ring_release(&x->ring);
}

/* A search for the first sample in a mapping. */
struct wanted {
	const char *where;
	struct sampled *first; /* NULL: none so far */
};

static void on_wanted(void *userdata, const struct sampled *s)
{
	struct wanted *w = userdata;

	if (w->first || !lies_in(s, w->where))
		return;
	w->first = malloc(sizeof(*s));
	ck_assert_ptr_nonnull(w->first);
	*w->first = *s;
}

const char *sampled_take(struct sampled *s, const char *flags, const char *depth, const char *mode,
	const char *where)
{
	struct wanted w = {.where = where};
	struct samples samples;

	if (!build(s, flags))
		return "no cc that builds the program that way";
	pid_t pid = start(s, depth, mode);
	if (pid < 0)
		return "this kernel runs no 32-bit programs";
	read_maps(s, pid);
	const bool can = samples_begin(&samples, pid);
	for (int i = 0; can && i < TRIES && !w.first; i++)
		samples_drain(&samples, s, on_wanted, &w);
	if (can)
		samples_end(&samples);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!can)
		return "the kernel refuses cpu-clock with user registers";
	if (!w.first)
		return "no sample fell there";
	*s = *w.first;
	free(w.first);
	return NULL;
}

struct follower {
	pid_t pid;
	void (*on_sample)(void *userdata, const struct sampled *s);
	void *userdata;
};

static void on_followed(void *userdata, const struct sampled *taken)
{
	struct follower *f = userdata;
	struct sampled *s = (struct sampled *)taken; /* ours */

	if (!lies_in(s, "")) {
		forget_maps(s);
		read_maps(s, f->pid);
	}
	if (s->n_maps)
		f->on_sample(f->userdata, s);
}

const char *sampled_run(struct sampled *s, char *const argv[], int seconds,
	void (*on_sample)(void *userdata, const struct sampled *s), void *userdata)
{
	struct follower f = {.on_sample = on_sample, .userdata = userdata};
	struct samples samples;
	bool ended = false;

	f.pid = fork();
	if (f.pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	const bool can = samples_begin(&samples, f.pid);
	for (int i = 0; can && i < 100 * seconds && !ended; i++) {
		samples_drain(&samples, s, on_followed, &f);
		ended = waitpid(f.pid, NULL, WNOHANG) > 0;
	}
	if (can)
		samples_end(&samples);
	if (!ended) {
		kill(f.pid, SIGKILL);
		waitpid(f.pid, NULL, 0);
	}
	return can ? NULL : "the kernel refuses cpu-clock with user registers";
}
