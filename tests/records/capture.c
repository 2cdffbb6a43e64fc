/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* capture MODE FILE CMD…: record what the kernel writes about one command
 *
 * Run as root, by hand, where a recording is wanted; the format is that of tests/unit/recording.h.
 * It talks to the kernel by itself: no code that its recordings will test has a part in them. The
 * command runs in / with next to no environment, since a copied stack has it at its top.
 *
 *      processes   side-band with build ids, cpu-clock with call chains, inherited
 *      start       side-band with device and inode, cpu-clock with call chains, inherited
 *      dwarf       side-band, cpu-clock of user mode with registers and 2 KiB of stack
 *      group       side-band, {cpu-clock, page-faults, context-switches} with group reads
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HARTS_MAX 64
#define STREAMS_MAX (HARTS_MAX * 4)
#define RING_BYTES (512u << 10)
/* recordings stay small: whole records up to here, shared by rings */
#define FILE_BYTES (60u << 10)
#define STACK_BYTES 2048
#define PERIOD_NS 1000000u
#define RUN_SECONDS 3 /* commands that do not end by themselves are killed */

#if defined(__x86_64__)
#define USER_REGS 0xff0fffull /* Source: arch/x86/include/uapi/asm/perf_regs.h: no DS, ES, FS, GS */
#elif defined(__riscv)
#define USER_REGS 0xffffffffull
#else
#define USER_REGS 0x1ffffffffull
#endif

struct disc_stream {
	uint64_t id, leader;
	uint32_t role, rung;
	int32_t hart, event;
	uint64_t sample_type, read_format, regs_user, period, weight_ns;
};

enum { SIDEBAND, SAMPLER, SIBLING, SWITCH }; /* enum stream_role */

struct capture {
	const char *mode;
	pid_t pid;
	struct disc_stream stream[STREAMS_MAX];
	uint32_t n_streams;
	uint8_t *map[HARTS_MAX];
	int n_harts;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int is(const struct capture *c, const char *mode)
{
	return !strcmp(c->mode, mode);
}

static struct perf_event_attr make_attr(const struct capture *c, uint64_t config)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.inherit = !is(c, "group"),
	};
}

/* Open one event of a hart and note its stream. Its records go to the ring of output. */
static int open_event(
	struct capture *c, struct perf_event_attr *attr, int hart, int group, int output, int role)
{
	struct disc_stream *s = &c->stream[c->n_streams++];
	int fd = (int)syscall(SYS_perf_event_open, attr, c->pid, hart, group, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("perf_event_open");
	if (output >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, output))
		die("PERF_EVENT_IOC_SET_OUTPUT");
	*s = (struct disc_stream){
		.role = (uint32_t)role,
		.rung = role == SIDEBAND ? 0 : 4,
		.hart = hart,
		.event = role == SAMPLER   ? 0
			 : role == SIBLING ? 1
					   : -1,
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.regs_user = attr->sample_regs_user,
		.period = attr->sample_period,
		.weight_ns = role == SAMPLER ? attr->sample_period : 0,
	};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &s->id))
		die("PERF_EVENT_IOC_ID");
	s->leader = group < 0 ? s->id : (s - 1)->leader;
	return fd;
}

static int open_sideband(struct capture *c, int hart)
{
	struct perf_event_attr attr = make_attr(c, PERF_COUNT_SW_DUMMY);

	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.cgroup = 1;
	attr.build_id = is(c, "processes");
	attr.exclude_kernel = 1;

	int fd = open_event(c, &attr, hart, -1, -1, SIDEBAND);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	c->map[hart] = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->map[hart] == MAP_FAILED)
		die("mmap of a ring");
	return fd;
}

static void open_sampler(struct capture *c, int hart, int output)
{
	struct perf_event_attr attr = make_attr(c, PERF_COUNT_SW_CPU_CLOCK);

	attr.disabled = attr.enable_on_exec = 1;
	attr.sample_period = is(c, "processes") ? PERIOD_NS / 5 : PERIOD_NS;
	attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CGROUP;
	if (is(c, "dwarf")) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = USER_REGS;
		attr.sample_stack_user = STACK_BYTES;
		attr.exclude_kernel = 1;
		attr.sample_period = PERIOD_NS * 10;
	} else if (is(c, "group")) {
		attr.sample_type |= PERF_SAMPLE_READ;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				   PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	} else {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	}
	int leader = open_event(c, &attr, hart, -1, output, SAMPLER);
	if (!is(c, "group"))
		return;

	struct perf_event_attr sibling = make_attr(c, PERF_COUNT_SW_PAGE_FAULTS);
	sibling.read_format = attr.read_format;
	open_event(c, &sibling, hart, leader, -1, SIBLING);

	struct perf_event_attr at_switch = make_attr(c, PERF_COUNT_SW_CONTEXT_SWITCHES);
	at_switch.read_format = attr.read_format;
	at_switch.sample_period = 1;
	at_switch.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	open_event(c, &at_switch, hart, leader, output, SWITCH);
}

static void put(FILE *f, const void *p, size_t n)
{
	if (fwrite(p, 1, n, f) != n)
		die("write");
}

static void write_ring(const struct capture *c, int hart, FILE *f)
{
	const struct perf_event_mmap_page *control = (const void *)c->map[hart];
	const uint8_t *data = c->map[hart] + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	/* Nothing was taken out, so the records lie in a row from 0. */
	while (n < head) {
		struct perf_event_header h;
		memcpy(&h, data + n, sizeof(h));
		if (n + h.size > FILE_BYTES / (uint32_t)c->n_harts)
			break;
		n += h.size;
	}
	put(f, &(int32_t){hart}, 4);
	put(f, &n, 4);
	put(f, data, n);
}

static pid_t start(char **argv, int *ret_go)
{
	int go[2];

	if (pipe(go))
		die("pipe");
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		char *environment[] = {"PATH=/usr/bin:/bin", NULL}, byte;
		close(go[1]);
		if (read(go[0], &byte, 1) != 1 || chdir("/") || !freopen("/dev/null", "w", stdout))
			_exit(1);
		close(go[0]);
		execve(argv[0], argv, environment);
		_exit(127);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static void wait_or_kill(pid_t pid)
{
	for (int i = 0; i < RUN_SECONDS * 100; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		poll(NULL, 0, 10);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char *argv[])
{
	struct capture c = {};
	int go;

	if (argc < 4) {
		fprintf(stderr, "usage: capture processes|start|dwarf|group FILE /path/of/CMD…\n");
		return 2;
	}
	c.mode = argv[1];
	c.n_harts = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (c.n_harts > HARTS_MAX)
		c.n_harts = HARTS_MAX;
	c.pid = start(argv + 3, &go);
	for (int hart = 0; hart < c.n_harts; hart++)
		open_sampler(&c, hart, open_sideband(&c, hart));
	if (write(go, "x", 1) != 1)
		die("start");
	wait_or_kill(c.pid);

	FILE *f = fopen(argv[2], "w");
	if (!f)
		die(argv[2]);
	put(f, "mperfrec", 8);
	put(f, (uint32_t[4]){1, c.n_streams, (uint32_t)c.n_harts, 0}, 16);
	put(f, c.stream, c.n_streams * sizeof(c.stream[0]));
	for (int hart = 0; hart < c.n_harts; hart++)
		write_ring(&c, hart, f);
	return fclose(f) ? 1 : 0;
}
