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

void sampled_end(struct sampled *s)
{
	char path[64];

	for (size_t i = 0; i < s->n_maps; i++)
		if (s->maps[i].fd >= 0)
			close(s->maps[i].fd);
	s->n_maps = 0;
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
	ck_assert_ptr_nonnull(f);
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

/* Keep a sample if it lies in the mapping whose path contains where. */
static bool keep(struct sampled *s, const struct record *r, const char *where)
{
	const struct record_sample *from = &r->sample;
	bool there = false;

	const uint64_t abi = s->narrow ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64;
	if (r->kind != RECORD_SAMPLE || from->regs_abi != abi)
		return false;
	for (size_t i = 0; i < s->n_maps; i++)
		there |= from->ip >= s->maps[i].start && from->ip < s->maps[i].end &&
			 strstr(s->paths[i], where);
	if (!there)
		return false;
	memcpy(s->regs, from->regs, 8 * (size_t)__builtin_popcountll(SAMPLED_REGS));
	memcpy(s->stack, from->stack, from->n_stack);
	s->n_stack = from->n_stack;
	s->ip = from->ip;
	return true;
}

static bool wait_for_sample(
	struct sampled *s, int fd, const struct stream_table *streams, const char *where)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = RING_PAGES * page;
	void *map = mmap(NULL, page + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);

	struct ring ring = {.map = map, .data_bytes = n, .fd = fd};
	bool found = false;
	for (int i = 0; i < TRIES && !found; i++) {
		const uint8_t *bytes;
		size_t n_bytes;
		struct record r;
		poll(NULL, 0, 10);
		ring_snapshot(&ring);
		while (!found && ring_peek(&ring, &bytes, &n_bytes) == 0) {
			found = record_decode(bytes, n_bytes, streams, &r) == 0 &&
				keep(s, &r, where);
			ring_advance(&ring);
		}
		ring_release(&ring);
	}
	ring_clear(&ring);
	munmap(map, page + n);
	return found;
}

const char *sampled_take(struct sampled *s, const char *flags, const char *depth, const char *mode,
	const char *where)
{
	struct stream stream = {.sample_type = SAMPLE_TYPE, .regs_user = SAMPLED_REGS};
	struct stream_table streams = {.stream = &stream, .n_streams = 1};
	const char *reason = NULL;

	if (!build(s, flags))
		return "no cc that builds the program that way";
	pid_t pid = start(s, depth, mode);
	if (pid < 0)
		return "this kernel runs no 32-bit programs";
	read_maps(s, pid);
	int fd = open_event(pid, &stream.id);
	if (fd < 0)
		reason = "the kernel refuses cpu-clock with user registers";
	else if (!wait_for_sample(s, fd, &streams, where))
		reason = "no sample fell there";
	if (fd >= 0)
		close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return reason;
}
