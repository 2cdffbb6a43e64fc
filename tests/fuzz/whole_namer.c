/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * whole_namer KIND SEEDS CORPUS FINDINGS SECONDS SEED: damaged files through the whole namer: the
 * daemon's side in this process, opener and parser as processes of their own in their sandboxes.
 * whole_namer --once KIND FOLDER names what a finding holds, and prints what became of it.
 *
 * KIND is elf, perf_map or jitdump. A seed is a folder with a file `main` and those that it leads
 * to (its debug file, what dwz moved out), by the names that they are looked up by; one of them is
 * damaged in each input. An input whose outcome was not seen before joins the corpus and is damaged
 * further, which is what coverage is elsewhere: the parser has no way to report its own.
 *
 * A finding is a death of the opener; a parser that a sanitizer or its sandbox ended; a question
 * that has no answer when all limits of time have passed; a descriptor that is left. A parser that
 * dies otherwise, or that is killed at its limit, is what the design provides for: it is counted,
 * and its input is kept as well. The last line is `sum` with the figures that tests/fuzz/run reads.
 */
#include <check.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/naming/namer.h"
#include "tests/fuzz/item.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/namer_rig.h"

#define ITEMS_MAX 4096             /* seeds and corpus */
#define KEPT_BYTES_MAX (96u << 10) /* larger ones are no good to damage further */
#define BATCH 64                   /* inputs that a pair of workers gets */
#define OFFSETS 32                 /* frames asked for in each */
#define PARSE_SECONDS 5 /* of a worker: a quarter of the service's, for files a tenth as large */
#define SANITIZER_STATUS 99
#define CUT_ONE_IN 32     /* inputs are cut while they are read, which ends who has them mapped */
#define KEPT_OF_A_SORT 20 /* inputs kept of deaths that are provided for */

enum kind { KIND_OF_ELF, KIND_OF_PERF_MAP, KIND_OF_JITDUMP, N_KINDS };
static const struct {
	const char *name;
	enum file_kind file;
	mutate_function *mutate;
} kinds[N_KINDS] = {
	{"elf", FILE_ELF, mutate_elf},
	{"perf_map", FILE_PERF_MAP, mutate_lines},
	{"jitdump", FILE_JITDUMP, mutate_jitdump},
};

static struct namer_rig rig;
static enum kind kind;
static struct item items[ITEMS_MAX];
static size_t n_items, n_seeds;
static uint64_t seed, serial, asked_seed; /* the last: of what is asked of an input */
static const char *findings_dir, *corpus_dir;
static double end_s;
static struct {
	uint64_t inputs, corpus, died, slow, findings;
} sum;

static uint64_t any(uint64_t below)
{
	return mutate_any(&seed, below);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- how workers ended ------------------------------------------------------------------------ */

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

static struct {
	pid_t pid;
	int status;
} ended[64];
static size_t n_ended;

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	int s = 0;
	pid_t r = __real_waitpid(pid, &s, options);

	if (r > 0) {
		ended[n_ended % 64].pid = r;
		ended[n_ended++ % 64].status = s;
	}
	if (status)
		*status = s;
	return r;
}

/* -1: it has not ended. */
static int status_of(pid_t pid)
{
	for (size_t i = 0; i < 64; i++)
		if (ended[i].pid == pid)
			return ended[i].status;
	return -1;
}

/* --- one input -------------------------------------------------------------------------------- */

/* A copy of `from` with one part damaged; its parts are static, until the next call. */
static struct item damage(const struct item *from)
{
	static uint8_t bytes[PARTS_MAX][PART_BYTES_MAX];
	struct item item = *from;
	size_t which = any(3) ? 0 : any(item.n_parts);

	for (size_t i = 0; i < item.n_parts; i++) {
		memcpy(bytes[i], from->part[i].data, from->part[i].n);
		item.part[i].data = bytes[i];
	}
	struct part *p = &item.part[which];
	p->n = kinds[kind].mutate(p->data, p->n, PART_BYTES_MAX, any(UINT64_MAX));
	return item;
}

struct outcome {
	enum file_state state;
	uint32_t n[FRAME_UNNAMED + 1];
	uint32_t n_inlined, n_lines, n_sources, n_unwound;
	bool has_symbols, has_debug, answered;
};

static uint64_t hash(uint64_t h, uint64_t value)
{
	return (h ^ value) * 0x100000001b3u; /* Source: FNV-1a */
}

/* 0, 1, 2 to 3, 4 to 7: the offsets are random, and so is a small difference. */
static uint64_t magnitude(uint32_t n)
{
	return n ? 32 - (uint64_t)__builtin_clz(n) : 0;
}

static uint64_t signature(const struct outcome *o)
{
	uint64_t h = hash(0xcbf29ce484222325u, o->state);

	for (size_t i = 0; i <= FRAME_UNNAMED; i++)
		h = hash(h, magnitude(o->n[i]));
	h = hash(h, magnitude(o->n_inlined));
	h = hash(h, magnitude(o->n_lines));
	h = hash(h, magnitude(o->n_sources));
	h = hash(h, magnitude(o->n_unwound));
	return hash(h, (uint64_t)o->has_symbols * 2 + o->has_debug);
}

/* What the file itself says: a line's first number, or eight bytes somewhere. */
static uint64_t pick_address(const struct part *p)
{
	uint64_t address = 0;
	char text[20] = "";

	if (p->n < sizeof(text) || any(8) == 0)
		return any(UINT64_MAX);
	size_t at = any(p->n - sizeof(text));
	if (kind == KIND_OF_JITDUMP && any(2)) {
		address = (1 + any(9)) * 0x1000 + any(0x20); /* as in the corpus */
	} else if (kind == KIND_OF_JITDUMP) {
		memcpy(&address, p->data + at, sizeof(address));
	} else {
		while (at > 0 && p->data[at - 1] != '\n')
			at--;
		memcpy(text, p->data + at, sizeof(text) - 1);
		address = strtoull(text, NULL, 16);
	}
	return address + any(4);
}

/* Within code, if it says where that is; else anywhere. */
static uint64_t pick_offset(const struct part *p)
{
	Elf64_Ehdr e;
	Elf64_Shdr s;

	if (kind != KIND_OF_ELF)
		return pick_address(p);
	if (p->n < sizeof(e) || any(5) == 0)
		return any(p->n + 1);
	memcpy(&e, p->data, sizeof(e));
	for (int i = 0; i < 40 && e.e_shnum && e.e_ident[EI_CLASS] == ELFCLASS64; i++) {
		size_t at = e.e_shoff + any(e.e_shnum) * sizeof(s);
		if (at > p->n || p->n - at < sizeof(s))
			break;
		memcpy(&s, p->data + at, sizeof(s));
		if (s.sh_flags & SHF_EXECINSTR && s.sh_size && s.sh_size < p->n)
			return s.sh_offset + any(s.sh_size);
	}
	return any(p->n + 1);
}

static struct file *announce(const char *path)
{
	struct file_key key = {.kind = kinds[kind].file, .path = path, .pid = getpid()};
	struct file *f;

	if (kind == KIND_OF_PERF_MAP) /* another program under the same pid, each time */
		key.generation = serial;
	if (file_get(&rig.files, &key, &f) != 0)
		item_die("file_get");
	f->pid = getpid();
	return f;
}

#define BASE 0x400000ull
#define REGISTERS 9 /* of x86-64: AX to IP; 7 is SP, 8 is IP. Source: perf_regs.h of x86 */

/* A stack full of addresses within the file. */
static void ask_unwind(struct file *f, const struct part *p)
{
	static struct map map;
	static struct space space;
	static uint64_t regs[REGISTERS], stack[256], generation;

	map = (struct map){.start = BASE, .end = BASE + ((p->n + 4095) & ~4095ull), .file = f};
	space = (struct space){.n_users = 1, .map = &map, .n_maps = 1, .generation = ++generation};
	for (size_t i = 0; i < REGISTERS; i++)
		regs[i] = any(0x10000);
	regs[6] = regs[7] = 0x7ffff000;
	regs[8] = BASE + pick_offset(p);
	for (size_t i = 0; i < 256; i++)
		stack[i] = any(3) ? BASE + pick_offset(p) : regs[7] + 8 * any(256);
	struct unwind_job job = {.space = &space,
		.pid = getpid(),
		.regs_abi = 2,
		.regs_mask = 0x1ff,
		.regs = regs,
		.stack = (const uint8_t *)stack,
		.n_stack = sizeof(stack),
		.ticket = &map};
	if (namer_unwind(rig.namer, &job) != 0)
		item_die("namer_unwind");
}

static void count_frames(struct frame *const *frame, struct outcome *o)
{
	for (size_t i = 0; i < OFFSETS; i++) {
		const struct frame *f = frame[i];
		o->n[f->state]++;
		if (f->state == FRAME_ASKED)
			o->answered = false;
		o->n_inlined += f->n_places > 1;
		for (uint32_t k = 0; k < f->n_places; k++) {
			o->n_lines += f->place[k].line != 0;
			o->n_sources += f->place[k].source != NULL;
		}
	}
}

/* As its owner may at any time. The parser has it by then, or is about to. */
static void cut_under_it(const char *path, const struct part *p)
{
	for (uint64_t steps = any(6); steps; steps--)
		namer_rig_step(&rig, 2);
	if (truncate(path, (off_t)any(p->n)) < 0)
		item_die(path);
}

static struct outcome name_item(const struct item *item, const char *dir)
{
	struct frame *frame[OFFSETS];
	struct outcome o = {.answered = true};
	char path[4096], map_path[64];

	asked_seed = seed;
	item_write(item, dir);
	snprintf(path, sizeof(path), "%s/main", dir);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	if (kind == KIND_OF_PERF_MAP && rename(path, map_path) < 0)
		item_die(map_path);
	struct file *f = announce(kind == KIND_OF_PERF_MAP ? "[jit]" : path);
	rig.n_results = 0;
	for (size_t i = 0; i < OFFSETS; i++)
		frame[i] = namer_rig_frame(&rig, f, pick_offset(&item->part[0]));
	if (kind == KIND_OF_ELF && any(2))
		ask_unwind(f, &item->part[0]);
	if (any(CUT_ONE_IN) == 0)
		cut_under_it(kind == KIND_OF_PERF_MAP ? map_path : path, &item->part[0]);
	o.answered = namer_rig_run(&rig);
	if (o.answered && kind != KIND_OF_ELF)
		o.answered = namer_ask_again(rig.namer) == 0 && namer_rig_run(&rig);
	count_frames(frame, &o);
	o.state = f->state;
	o.has_symbols = f->has_symbols;
	o.has_debug = f->has_debug;
	o.n_unwound = rig.n_results ? (uint32_t)rig.result[0].n_frames : 0;
	return o;
}

/* --- findings --------------------------------------------------------------------------------- */

/* status: of who died, or 0 */
static void keep(const struct item *item, const char *sort, int status)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/%s-%s-%d-%llu", findings_dir, sort, kinds[kind].name,
		getpid(), (unsigned long long)serial);
	item_write(item, dir);
	printf("%s: %s: status %#x\n", sort, dir, (unsigned)status);
	fflush(stdout);
	/* What a sanitizer said of it, which the workers have from this process. */
	namer_rig_shell("cp '%s/said' '%s/.said'; echo %llu > '%s/.seed'", findings_dir, dir,
		(unsigned long long)asked_seed, dir);
}

static void find(const struct item *item, const char *sort, int status)
{
	sum.findings++;
	keep(item, sort, status);
}

static void judge_parser(const struct item *item, const struct outcome *o, pid_t pid)
{
	int status = status_of(pid);

	if (o->state == FILE_SPUN) {
		if (sum.slow++ < KEPT_OF_A_SORT)
			keep(item, "slow", status);
	} else if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == SANITIZER_STATUS) {
		find(item, "memory", status);
	} else if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
		find(item, "sandbox", status);
	} else if (sum.died++ < KEPT_OF_A_SORT) {
		keep(item, "died", status);
	}
}

/* True: the workers are as they were. */
static bool judge(
	const struct item *item, const struct outcome *o, const struct namer_status *before)
{
	struct namer_status after;

	namer_status(rig.namer, &after);
	if (!o->answered)
		find(item, "unanswered", 0);
	if (after.opener.pid != before->opener.pid)
		find(item, "opener", status_of(before->opener.pid));
	if (after.parser.pid != before->parser.pid)
		judge_parser(item, o, before->parser.pid);
	return o->answered && after.opener.pid == before->opener.pid &&
	       after.parser.pid == before->parser.pid;
}

static size_t count_descriptors(pid_t pid)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The opener keeps none; the parser at most three of each file; a sanitizer's few besides. */
static bool holds_too_many(size_t n_files)
{
	struct namer_status s;

	namer_status(rig.namer, &s);
	return count_descriptors(s.opener.pid) > 16 ||
	       count_descriptors(s.parser.pid) > 16 + 3 * n_files;
}

/* --- the run ---------------------------------------------------------------------------------- */

static uint64_t seen[1 << 16];

static bool is_new(uint64_t h)
{
	for (size_t at = h % (1 << 16), k = 0; k < 64; k++, at = (at + 1) % (1 << 16)) {
		if (seen[at] == h)
			return false;
		if (!seen[at]) {
			seen[at] = h;
			return true;
		}
	}
	return false;
}

static void join_corpus(const struct item *item, uint64_t h)
{
	char dir[4096];
	size_t n = 0;

	for (size_t i = 0; i < item->n_parts; i++)
		n += item->part[i].n;
	if (n > KEPT_BYTES_MAX || n_items == ITEMS_MAX)
		return;
	snprintf(dir, sizeof(dir), "%s/%016llx", corpus_dir, (unsigned long long)h);
	item_write(item, dir);
	item_read(&items[n_items++], dir);
	sum.corpus++;
}

START_TEST(batch)
{
	size_t before_fds = count_descriptors(getpid()), n = 0;
	struct namer_status before;
	bool sound = true;
	struct item item;

	namer_rig_begin(
		&rig, &(struct namer_options){.parse_timeout_ns = PARSE_SECONDS * 1000000000ull});
	for (; sound && n < BATCH && now_s() < end_s; n++) {
		char dir[128];
		serial++;
		item = damage(&items[any(3) && n_items > n_seeds ? any(n_items) : any(n_seeds)]);
		snprintf(dir, sizeof(dir), "%s/%llu", rig.dir, (unsigned long long)serial);
		namer_rig_shell("echo '%s' > '%s/current'", dir, findings_dir);
		namer_status(rig.namer, &before);
		struct outcome o = name_item(&item, dir);
		sum.inputs++;
		sound = judge(&item, &o, &before);
		if (sound && is_new(signature(&o)))
			join_corpus(&item, signature(&o));
	}
	if (sound && holds_too_many(n))
		find(&item, "descriptors", 0);
	namer_rig_end(&rig);
	if (sound && count_descriptors(getpid()) != before_fds)
		find(&item, "descriptors", 0);
}
END_TEST

START_TEST(once)
{
	struct namer_status before;
	char path[4096];

	namer_rig_begin(&rig, &(struct namer_options){0});
	namer_status(rig.namer, &before);
	snprintf(path, sizeof(path), "%s/once", rig.dir);
	struct outcome o = name_item(&items[0], path);
	printf("%s; named %u, out of symbol %u, unnamed %u; inlined %u, lines %u, sources %u; "
	       "unwound %u; %s\n",
		file_state_says(o.state), o.n[FRAME_NAMED], o.n[FRAME_OUT_OF_SYMBOL],
		o.n[FRAME_UNNAMED], o.n_inlined, o.n_lines, o.n_sources, o.n_unwound,
		o.answered ? "all answered" : "not all answered");
	int status = status_of(before.parser.pid);
	if (status >= 0)
		printf("the parser ended with status %#x\n", (unsigned)status);
	namer_rig_end(&rig);
	ck_assert(status < 0 && o.answered);
}
END_TEST

/* The rig's assertions want to be in a test of libcheck: false if one failed. */
static bool run_test(const TTest *test)
{
	Suite *suite = suite_create("whole_namer");
	TCase *t = tcase_create("whole_namer");

	tcase_add_test(t, test);
	suite_add_tcase(suite, t);
	SRunner *runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	int n_failed = srunner_ntests_failed(runner);
	if (n_failed)
		srunner_print(runner, CK_NORMAL);
	srunner_free(runner);
	return n_failed == 0;
}

static void read_items(const char *dir)
{
	n_items += items_read(items + n_items, ITEMS_MAX - n_items, dir);
}

/* So that the same is asked as when it was found. */
static void read_seed(const char *dir)
{
	char path[4096], text[32] = "";

	snprintf(path, sizeof(path), "%s/.seed", dir);
	FILE *f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		seed = strtoull(text, NULL, 10);
	if (f)
		fclose(f);
}

static void pick_kind(const char *name)
{
	for (kind = 0; kind < N_KINDS; kind++)
		if (strcmp(name, kinds[kind].name) == 0)
			return;
	errno = EINVAL;
	item_die(name);
}

/* The corpus is named by what is seen already. */
static void see_corpus(void)
{
	DIR *d = opendir(corpus_dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			is_new(strtoull(e->d_name, NULL, 16));
	if (d)
		closedir(d);
}

static int run_all(void)
{
	char path[4096];
	bool sound = true;

	snprintf(path, sizeof(path), "%s/said", findings_dir);
	while (sound && now_s() < end_s) {
		/* What the workers, and this process, say as they die. */
		if (!freopen(path, "w", stderr))
			item_die(path);
		sound = run_test(batch);
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	printf("sum inputs %llu corpus %llu died %llu slow %llu findings %llu\n",
		(unsigned long long)sum.inputs, (unsigned long long)sum.corpus,
		(unsigned long long)sum.died, (unsigned long long)sum.slow,
		(unsigned long long)sum.findings);
	return sound ? sum.findings != 0 : 2;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--once") == 0) {
		pick_kind(argv[2]);
		item_read(&items[0], argv[3]);
		read_seed(argv[3]);
		return !run_test(once);
	}
	if (argc != 7) {
		errno = EINVAL;
		item_die("whole_namer KIND SEEDS CORPUS FINDINGS SECONDS SEED");
	}
	pick_kind(argv[1]);
	read_items(argv[2]);
	n_seeds = n_items;
	corpus_dir = argv[3];
	read_items(corpus_dir);
	findings_dir = argv[4];
	end_s = now_s() + strtod(argv[5], NULL);
	seed = strtoull(argv[6], NULL, 10);
	if (n_seeds == 0)
		item_die("no seeds");
	see_corpus();
	return run_all();
}
