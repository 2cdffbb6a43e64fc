/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Makes a store as weeks of sampling leave it behind, in minutes
 *
 *      synthesize FOLDER [--hours N] [--harts N] [--hz N] [--scale N] [--flush S]
 *                 [--keep N] [--minutes 0] [--seed N]
 *
 * Each hour is written as the daemon writes it, a window segment with its own dictionaries, and
 * then rolled up by the real roll-up into FOLDER/minute and FOLDER/hour; its window segment is
 * removed unless it is one of the last N of --keep. What runs is made up, with the variety of a
 * machine that compiles and serves:
 *
 * - 40 programs, each a call tree of 3,000 call sites, 10 to 40 deep, over 150 functions;
 * - samples are spread over its sites as rank^-1.2: a few are hot and many were hit once;
 * - 16 addresses of a leaf's function are sampled, spread alike;
 * - 300 processes start in an hour, beside 60 that live on; how often each runs is spread alike;
 * - 15 % of the samples are in the kernel, below a call site of the program;
 * - each hour 2 % of the sites are new, as after an update or in generated code;
 * - half of the rows have cycles and instructions, as on a machine with counters.
 *
 * With --minutes 0 the minute tier is left out, and with --scale N each row drawn stands for N
 * samples: 64 harts' samples without drawing them all.
 */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/aggregate/window.h"
#include "daemon/store/rollup/rollup.h"
#include "daemon/store/segment/segment.h"

#define SECOND 1000000000ull
#define HOUR (3600 * SECOND)
#define PROGRAMS 40
#define SITES 3000
#define FUNCTIONS 150
#define KERNEL_SITES 600
#define KERNEL_FUNCTIONS 400
#define ADDRESSES 16
#define LASTING 60
#define STARTED 300
#define START_REALTIME (490896ull * HOUR) /* 2026-01-01 00:00 UTC, a Thursday */

struct options {
	const char *folder;
	uint32_t hours, harts, hz, scale, flush, keep, minutes;
	uint64_t seed;
};

/* A call tree: callers have lower numbers. */
struct tree {
	uint32_t n, n_functions;
	uint16_t parent[SITES], function[SITES], depth[SITES];
	uint32_t order[SITES]; /* hot sites first */
	char path[64], comm[16];
	struct file *file;
	bool kernel;
};

struct making {
	struct options o;
	uint64_t random;
	struct tree program[PROGRAMS], kernel;
	struct task *process[LASTING + STARTED];
	uint8_t program_of[LASTING + STARTED];
	pid_t last_pid;
	struct sampler sampler;
	struct task_table tasks;
	struct file_table files;
	struct stack_tree stacks;
	struct window window;
	uint64_t (*lost)[N_LOSSES];
	double zipf[SITES]; /* share of the first i + 1 ranks */
	uint32_t hour;
};

static void die(const char *what, int r)
{
	fprintf(stderr, "synthesize: %s: %s\n", what, r < 0 ? strerror(-r) : "refused");
	exit(1);
}

static void must(const char *what, int r)
{
	if (r != 0)
		die(what, r);
}

/* Source: George Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003). */
static uint32_t draw(struct making *m, uint32_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (uint32_t)((m->random >> 32) * below >> 32);
}

/* A rank below n, the first most often. */
static uint32_t draw_rank(struct making *m, uint32_t n)
{
	double x = (double)draw(m, 1u << 31) / (double)(1u << 31) * m->zipf[n - 1];
	uint32_t low = 0, high = n - 1;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (m->zipf[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- what runs -------------------------------------------------------------------------------- */

static void make_tree(struct making *m, struct tree *t, uint32_t n, uint32_t n_functions)
{
	t->n = n;
	t->n_functions = n_functions;
	for (uint32_t i = 0; i < n; i++) {
		t->function[i] = (uint16_t)draw(m, n_functions);
		t->order[i] = i;
		if (i == 0)
			continue;
		/* one trunk of ten, then mostly under a site made lately, so that depths vary */
		uint32_t parent = i < 10       ? i - 1
				  : draw(m, 3) ? i - 1 - draw(m, i < 64 ? i : 64)
					       : draw(m, i);
		while (t->depth[parent] >= 39)
			parent = t->parent[parent];
		t->parent[i] = (uint16_t)parent;
		t->depth[i] = (uint16_t)(t->depth[parent] + 1);
	}
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = draw(m, i + 1), was = t->order[i];
		t->order[i] = t->order[j];
		t->order[j] = was;
	}
	struct file_key key = {
		.kind = t->kernel ? FILE_KERNEL : FILE_ELF,
		.path = t->path,
		.inode = 7,
		.major = 8,
		.minor = 1,
	};
	must("file", file_get(&m->files, &key, &t->file));
}

static void make_programs(struct making *m)
{
	double sum = 0;
	for (uint32_t i = 0; i < SITES; i++)
		m->zipf[i] = sum += pow(i + 1, -1.2);
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		struct tree *t = &m->program[i];
		snprintf(t->comm, sizeof(t->comm), "program%u", i);
		snprintf(t->path, sizeof(t->path), "/usr/lib/suite%u/program%u", i / 8, i);
		make_tree(m, t, SITES, FUNCTIONS);
	}
	m->kernel.kernel = true;
	snprintf(m->kernel.path, sizeof(m->kernel.path), "[kernel]");
	make_tree(m, &m->kernel, KERNEL_SITES, KERNEL_FUNCTIONS);
}

static void start_process(struct making *m, uint32_t slot, uint64_t now_ns)
{
	m->program_of[slot] = (uint8_t)draw_rank(m, PROGRAMS);
	const struct tree *t = &m->program[m->program_of[slot]];
	struct task *task;
	m->last_pid++;
	must("task", task_add(&m->tasks, m->last_pid, m->last_pid, now_ns + slot, &task));
	task->process = task;
	task_set_comm(task, t->comm);
	char argv[96];
	int n = snprintf(argv, sizeof(argv), "%s%c-o%cbuild/object%u.o", t->path, 0, 0, slot);
	task->argv = malloc((size_t)n + 1);
	task->exe = strdup(t->path);
	if (!task->argv || !task->exe)
		die("task", -ENOMEM);
	memcpy(task->argv, argv, (size_t)n + 1);
	task->n_argv = (uint32_t)n + 1;
	task->uid = task->account = 1000 + m->program_of[slot] % 4;
	m->process[slot] = task;
}

/* The hour's own: some sites do something else than they did. */
static void change_programs(struct making *m)
{
	for (uint32_t i = 0; i < PROGRAMS && m->hour > 0; i++)
		for (uint32_t k = 0; k < SITES / 50; k++)
			m->program[i].function[10 + draw(m, SITES - 10)] =
				(uint16_t)draw(m, FUNCTIONS);
}

/* --- samples ---------------------------------------------------------------------------------- */

static struct frame *site_frame(struct making *m, struct tree *t, uint32_t site, uint32_t address)
{
	struct frame *frame;
	uint64_t offset = 0x1000 + (uint64_t)t->function[site] * 512 + 8 * (site % 16) + address;
	must("frame", frame_get(&m->files, t->file, offset, &frame));
	if (frame->state == FRAME_NAMED)
		return frame;
	char name[128];
	snprintf(name, sizeof(name),
		t->kernel ? "kernel_function_%u"
			  : "suite::module%2$u::function_%1$u(int, char const*)",
		t->function[site], t->function[site] % 17);
	frame->place = calloc(1, sizeof(*frame->place));
	char *text = strdup(name);
	if (!frame->place || !text)
		die("frame", -ENOMEM);
	frame->place[0].function = text;
	frame->place[0].source = t->kernel ? NULL : "/src/suite/module.cc";
	frame->place[0].line = 10 * t->function[site] + address / 8;
	frame->n_places = 1;
	frame->state = FRAME_NAMED;
	return frame;
}

/* Leaf first, from a site up; returns how many. */
static uint32_t climb(
	struct making *m, struct tree *t, uint32_t site, uint32_t address, struct frame **frame)
{
	uint32_t n = 0;
	for (;; site = t->parent[site], address = 0) {
		frame[n++] = site_frame(m, t, site, address);
		if (site == 0)
			return n;
	}
}

static void add_sample(struct making *m)
{
	struct frame *frame[96];
	uint32_t slot = draw(m, 4) ? draw_rank(m, LASTING) : LASTING + draw(m, STARTED), n = 0;
	struct tree *t = &m->program[m->program_of[slot]];
	uint32_t site = t->order[draw_rank(m, t->n)],
		 address = 8 * 16 + 8 * draw_rank(m, ADDRESSES);
	if (draw(m, 100) < 15) {
		uint32_t k = m->kernel.order[draw_rank(m, m->kernel.n)];
		n = climb(m, &m->kernel, k, address, frame);
		address = 0;
	}
	n += climb(m, t, site, address, frame + n);
	uint64_t weight_ns = SECOND / m->o.hz * m->o.scale;
	struct attribution a = {
		.task = m->process[slot],
		.hart = (int)draw(m, m->o.harts),
		.event = 0,
		.rung = RUNG_CLOCK_LEADER,
		.count = m->o.scale,
		.weight_ns = weight_ns,
		.frame = frame,
		.n_frames = n,
	};
	if (draw(m, 2)) {
		a.n_reads = 2;
		for (uint32_t i = 0; i < 2; i++) {
			a.read[i].event = (int)i + 1;
			a.read[i].value = weight_ns * (2 + i) / 2 + draw(m, 1000);
			a.read[i].enabled_ns = a.read[i].running_ns = weight_ns;
		}
	}
	must("window", window_add(&m->window, &m->stacks, &a));
}

/* --- segments --------------------------------------------------------------------------------- */

static void make_sampler(struct making *m)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *pmu, *name;
	} event[] = {
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "software", "cpu-clock"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "hardware", "cycles"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "hardware", "instructions"},
	};
	for (int i = 0; i < 3; i++) {
		struct event *e = &m->sampler.events.event[m->sampler.events.n_events++];
		*e = (struct event){.type = event[i].type, .config = event[i].config, .group = -1};
		snprintf(e->pmu, sizeof(e->pmu), "%s", event[i].pmu);
		snprintf(e->name, sizeof(e->name), "%s", event[i].name);
	}
	m->sampler.hz = m->o.hz;
	m->sampler.machine.n_harts = (int)m->o.harts;
	m->sampler.plan = calloc(m->o.harts, sizeof(*m->sampler.plan));
	m->lost = calloc(m->o.harts, sizeof(*m->lost));
	if (!m->sampler.plan || !m->lost)
		die("sampler", -ENOMEM);
	for (uint32_t i = 0; i < m->o.harts; i++) {
		hart_set_add(&m->sampler.machine.online, (int)i);
		m->sampler.plan[i].rung = RUNG_CLOCK_LEADER;
		m->sampler.plan[i].leader = m->sampler.events.event[0];
	}
}

static void write_segment(struct making *m, const char *path)
{
	const uint64_t start_ns = m->hour * HOUR, step_ns = m->o.flush * SECOND;
	struct segment_meta meta = {
		.boot_id = "5a0e1c2d-0000-4000-8000-000000000001",
		.realtime_ns = START_REALTIME,
		.host = "synthetic",
		.release = "6.12.0",
		.arch = "riscv64",
		.hz = m->o.hz,
		.all = true,
	};
	struct segment *g;
	must(path, segment_create(path, &meta, &m->sampler, &g));
	uint64_t n = (uint64_t)m->o.hz * m->o.harts * m->o.flush / m->o.scale;
	struct segment_flush flush = {
		.window = &m->window,
		.stacks = &m->stacks,
		.tasks = &m->tasks,
		.files = &m->files,
		.lost = m->lost,
		.n_harts = (int)m->o.harts,
	};
	for (uint64_t at_ns = start_ns; at_ns < start_ns + HOUR; at_ns += step_ns) {
		for (uint64_t i = 0; i < n; i++)
			add_sample(m);
		m->lost[draw(m, m->o.harts)][LOSS_STACK_TRUNCATED]++;
		m->window.start_ns = at_ns;
		m->window.end_ns = at_ns + step_ns;
		flush.realtime_ns = START_REALTIME + at_ns;
		/* a few end and others start */
		for (uint32_t i = 0; i < STARTED * m->o.flush / 3600 + 1; i++)
			start_process(m, LASTING + draw(m, STARTED), at_ns);
		must(path, segment_flush(g, &flush));
		window_clear(&m->window);
	}
	must(path, segment_seal(g, start_ns + HOUR));
	stack_tree_clear(&m->stacks); /* a daemon forgets what it does not see any more */
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others may use the machine */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double roll_up(const char *source, const char *target, enum tier tier)
{
	struct store_error error = {"", ""};
	double before = seconds();
	int r = rollup_add(source, target, tier, &error);
	if (r != 0)
		die(*error.text ? error.text : target, r);
	return seconds() - before;
}

static void name_file(
	const struct making *m, enum tier tier, uint32_t every, char *path, size_t size)
{
	time_t t = (time_t)(START_REALTIME / SECOND + (uint64_t)(m->hour / every) * every * 3600);
	char text[32];
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", gmtime(&t));
	snprintf(path, size, "%s/%s/%s-5a0e1c2d.mprf", m->o.folder, tier_name(tier), text);
}

static uint64_t bytes_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void make_hour(struct making *m)
{
	char path[N_TIERS][512];
	name_file(m, TIER_WINDOW, 1, path[TIER_WINDOW], sizeof(path[0]));
	name_file(m, TIER_MINUTE, 24, path[TIER_MINUTE], sizeof(path[0]));
	name_file(m, TIER_HOUR, 168, path[TIER_HOUR], sizeof(path[0]));
	change_programs(m);
	double began = seconds();
	write_segment(m, path[TIER_WINDOW]);
	double wrote = seconds() - began;
	double minute = 0;
	if (m->o.minutes)
		minute = roll_up(path[TIER_WINDOW], path[TIER_MINUTE], TIER_MINUTE);
	double hour = roll_up(path[TIER_WINDOW], path[TIER_HOUR], TIER_HOUR);
	printf("hour %3u: window %6.1f MB in %4.1f s; minute %7.1f MB (+%.2f s); hour %6.2f MB "
	       "(+%.2f s)\n",
		m->hour, (double)bytes_of(path[TIER_WINDOW]) / 1e6, wrote,
		(double)bytes_of(path[TIER_MINUTE]) / 1e6, minute,
		(double)bytes_of(path[TIER_HOUR]) / 1e6, hour);
	fflush(stdout);
	if (m->hour + m->o.keep < m->o.hours)
		unlink(path[TIER_WINDOW]);
}

/* --- arguments -------------------------------------------------------------------------------- */

static void usage(void)
{
	fprintf(stderr, "usage: synthesize FOLDER [--hours N] [--harts N] [--hz N] [--scale N] "
			"[--flush SECONDS] [--keep N] [--minutes 0] [--seed N]\n");
	exit(2);
}

static void parse(struct options *o, int argc, char **argv)
{
	struct {
		const char *name;
		uint32_t *value;
	} number[] = {{"--hours", &o->hours}, {"--harts", &o->harts}, {"--hz", &o->hz},
		{"--scale", &o->scale}, {"--flush", &o->flush}, {"--keep", &o->keep},
		{"--minutes", &o->minutes}};
	if (argc < 2 || argv[1][0] == '-')
		usage();
	o->folder = argv[1];
	for (int i = 2; i < argc; i += 2) {
		size_t k = 0, n = sizeof(number) / sizeof(*number);
		if (i + 1 == argc)
			usage();
		while (k < n && strcmp(argv[i], number[k].name) != 0)
			k++;
		if (k < n)
			*number[k].value = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0)
			o->seed = strtoull(argv[i + 1], NULL, 10);
		else
			usage();
	}
	if (!o->harts || !o->hz || !o->scale || !o->flush || !o->seed || o->flush > 3600 ||
		o->harts > HARTS_MAX)
		usage();
}

int main(int argc, char **argv)
{
	struct making *m = calloc(1, sizeof(*m));
	if (!m)
		die("memory", -ENOMEM);
	m->o = (struct options){.hours = 24,
		.harts = 2,
		.hz = 99,
		.scale = 1,
		.flush = 60,
		.keep = 1,
		.minutes = 1,
		.seed = 1};
	parse(&m->o, argc, argv);
	m->random = m->o.seed * 0x9e3779b97f4a7c15ull;
	m->last_pid = 1000;
	for (enum tier tier = 0; tier < N_TIERS; tier++) {
		char path[512];
		mkdir(m->o.folder, 0755);
		snprintf(path, sizeof(path), "%s/%s", m->o.folder, tier_name(tier));
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			die(path, -errno);
	}
	make_programs(m);
	make_sampler(m);
	for (uint32_t slot = 0; slot < LASTING + STARTED; slot++)
		start_process(m, slot, slot);
	for (m->hour = 0; m->hour < m->o.hours; m->hour++)
		make_hour(m);
	return 0;
}
