/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copied stacks through the real parser: unwound, refused, deadly. The stack is this test's own,
 * copied with its registers as the kernel would.
 */
#include <signal.h>
#include <unistd.h>

#include "daemon/namer/parser_private.h"
#include "daemon/naming/namer_private.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#ifdef __SANITIZE_ADDRESS__
#define SLOWER 3
#else
#define SLOWER 1
#endif
#define SPIN_NS (800000000ull * SLOWER) /* what the tests grant a worker that will not come back */

static struct namer_rig rig;

static void teardown(void)
{
	namer_rig_end(&rig);
}

static void setup_traps(void)
{
	namer_rig_begin(&rig, &(struct namer_options){.binary = namer_rig_worker(true),
				      .parse_timeout_ns = SPIN_NS});
}

static void setup_plain(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
}

EACH_TEST(.begin = setup_plain, .end = teardown, .seconds = 60);

static bool skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
	return true;
}

static struct namer_status status(void)
{
	struct namer_status s;

	namer_status(rig.namer, &s);
	return s;
}

#define SPACE_MAPS_MAX 64

/* The executable mappings of this process, as the daemon would know them. */
static uint32_t own_maps(struct map *map)
{
	char line[1024], path[512], access_bits[8];
	uint32_t n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	ck_assert_ptr_nonnull(maps);
	while (n < SPACE_MAPS_MAX && fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &start, &end, access_bits,
			    &offset, path) < 4 ||
			access_bits[2] != 'x' || path[0] != '/')
			continue;
		map[n++] = (struct map){.start = start,
			.end = end,
			.file_offset = offset,
			.file = namer_rig_file(&rig, FILE_ELF, path)};
	}
	fclose(maps);
	return n;
}

struct copied_stack {
	uint64_t regs[24];
	uint64_t mask;
	uint8_t bytes[16384];
	size_t n;
};

#if defined(__x86_64__)
/* Source: arch/x86/include/uapi/asm/perf_regs.h: BP is bit 6, SP 7, IP 8. */
static __attribute__((noinline, no_sanitize("address", "undefined"))) void copy_stack(
	struct copied_stack *c, const uint8_t *top)
{
	uint64_t bp, sp, ip;

	__asm__ volatile("movq %%rbp, %0\n\tmovq %%rsp, %1\n\tleaq (%%rip), %2"
		: "=r"(bp), "=r"(sp), "=r"(ip));
	/* AX BX CX DX SI DI BP SP IP: the mask is 0x1ff. */
	c->mask = 0x1ff;
	c->regs[6] = bp;
	c->regs[7] = sp;
	c->regs[8] = ip;
	c->n = (size_t)((uint64_t)(uintptr_t)top - sp);
	if (c->n > sizeof(c->bytes))
		c->n = sizeof(c->bytes);
	for (size_t i = 0; i < c->n; i++)
		c->bytes[i] = ((const volatile uint8_t *)(uintptr_t)sp)[i];
}
#define HAS_COPIED_STACK true
#else
static void copy_stack(struct copied_stack *c, const uint8_t *top)
{
	(void)c;
	(void)top;
}
#define HAS_COPIED_STACK false
#endif

static struct copied_stack copied;

static __attribute__((noinline)) int namer_unwind_test_callee(const uint8_t *top)
{
	copy_stack(&copied, top);
	return (int)copied.n;
}

static __attribute__((noinline)) int namer_unwind_test_caller(const uint8_t *top)
{
	return namer_unwind_test_callee(top) + 1;
}

static struct unwind_job own_job(struct space *space, struct map *map)
{
	*space = (struct space){.n_users = 1, .map = map, .n_maps = own_maps(map), .generation = 7};
	namer_unwind_test_caller((const uint8_t *)__builtin_frame_address(0) + 2048);
	return (struct unwind_job){.space = space,
		.pid = getpid(),
		.regs_abi = 2,
		.regs_mask = copied.mask,
		.regs = copied.regs,
		.stack = copied.bytes,
		.n_stack = copied.n,
		.ticket = &copied};
}

static bool has_function(const struct unwind_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_frames; i++) {
		if (!result->frame[i].file)
			continue;
		struct frame *f =
			namer_rig_name(&rig, result->frame[i].file, result->frame[i].offset);
		for (uint32_t place = 0; place < f->n_places; place++)
			if (f->place[place].function && strcmp(f->place[place].function, name) == 0)
				return true;
	}
	return false;
}

/* As if no table could say how to unwind its files. */
static void leave_to_elfutils(const struct space *space)
{
	for (uint32_t i = 0; i < space->n_maps; i++) {
		struct slot *slot;
		if (!space->map[i].file)
			continue;
		ck_assert_int_eq(slot_get(rig.namer, space->map[i].file, &slot), 0);
		slot_settle_table(rig.namer, slot, TABLE_FOREIGN);
	}
}

TEST(copied_stack_has_its_callers)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("copied_stack_has_its_callers", "registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert_uint_eq(namer_waiting(rig.namer), 3);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 3);
	ck_assert_uint_eq(status().n_unwound, 3);
	for (int i = 0; i < 3; i++) {
		ck_assert(!rig.result[i].failed);
		ck_assert_ptr_eq(rig.result[i].ticket, &copied);
		ck_assert_uint_ge(rig.result[i].n_frames, 3);
	}
	ck_assert(has_function(&rig.result[2], "namer_unwind_test_callee"));
	ck_assert(has_function(&rig.result[2], "namer_unwind_test_caller"));
}

TEST(stack_whose_tables_are_there_is_walked_at_once)
{
	static struct unwind_result now;
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("stack_whose_tables_are_there_is_walked_at_once",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	ck_assert(!namer_unwind_now(rig.namer, &job, &now)); /* no table yet */
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	kill(status().parser.pid, SIGSTOP); /* it is not needed any more */
	ck_assert(namer_unwind_now(rig.namer, &job, &now));
	ck_assert_int_eq(kill(status().parser.pid, SIGCONT), 0);
	ck_assert(!now.failed);
	ck_assert_ptr_eq(now.ticket, &copied);
	ck_assert_uint_eq(now.n_frames, rig.result[0].n_frames);
	for (size_t i = 0; i < now.n_frames; i++) {
		ck_assert_ptr_eq(now.frame[i].file, rig.result[0].frame[i].file);
		ck_assert_uint_eq(now.frame[i].offset, rig.result[0].frame[i].offset);
	}
	ck_assert_uint_eq(status().n_unwound, 2);
}

static size_t table_bytes(void)
{
	size_t sum = 0;

	for (struct slot *s = slots_next(rig.namer, NULL); s; s = slots_next(rig.namer, s))
		sum += s->table ? unwind_table_bytes(s->table) : 0;
	return sum;
}

/* With room for one table at a time, each step of each stack makes the next one again. */
TEST(tables_beyond_their_memory_are_made_again)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("tables_beyond_their_memory_are_made_again",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	const size_t all = table_bytes();
	ck_assert_uint_gt(all, 0);
	ck_assert_uint_eq(rig.namer->tables.n_bytes, all);

	rig.namer->tables.n_bytes_max = all; /* all that one needs fit, and nothing more */
	struct slot *first = NULL;
	for (struct slot *s = slots_next(rig.namer, NULL); s; s = slots_next(rig.namer, s))
		if (s->table)
			first = s;
	ck_assert_ptr_nonnull(first);
	slot_settle_table(rig.namer, first, TABLE_UNASKED);
	ck_assert_uint_lt(rig.namer->tables.n_bytes, all);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert(!rig.result[1].failed);
	ck_assert_uint_eq(rig.result[1].n_frames, rig.result[0].n_frames);
	ck_assert_uint_le(rig.namer->tables.n_bytes, all);
	ck_assert_uint_eq(rig.namer->tables.n_bytes, table_bytes());
}

/* Let the code from an address on be of another file, with the same contents. */
static void split_map(struct space *space, uint64_t at, const char *name)
{
	struct file *file =
		namer_rig_file(&rig, FILE_ELF, namer_rig_copy(&rig, namer_rig_self(), name));
	uint32_t i = 0;

	while (i < space->n_maps && space->map[i].end <= at)
		i++;
	ck_assert(i < space->n_maps && space->n_maps < SPACE_MAPS_MAX);
	memmove(space->map + i + 1, space->map + i, (space->n_maps++ - i) * sizeof(*space->map));
	space->map[i].end = space->map[i + 1].start = at;
	space->map[i + 1].file_offset += at - space->map[i].start;
	space->map[i + 1].file = file;
}

/* There is room for two tables, and the stack passes through three files. */
TEST(stack_whose_tables_do_not_fit_together_is_given_to_elfutils)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("stack_whose_tables_do_not_fit_together_is_given_to_elfutils",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	const struct slot *self =
		space_find(&space, (uintptr_t)namer_unwind_test_caller)->file->namer_slot;
	ck_assert_ptr_nonnull(self->table);
	rig.namer->tables.n_bytes_max = 2 * unwind_table_bytes(self->table);

	split_map(&space, (uintptr_t)namer_unwind_test_caller, "second");
	split_map(&space, (uintptr_t)own_job, "third");
	space.generation++;
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 2);
	ck_assert(!rig.result[1].failed);
}

static struct slot *slot_with_table(uid_t author, uint64_t number, uint32_t n_rows)
{
	const struct unwind_table counts = {.n_rules = 1, .n_rows = n_rows};
	struct unwind_table *t = unwind_table_new(&counts);
	char path[64];
	struct slot *s;

	snprintf(path, sizeof(path), "/nowhere/%u/%llu", author, (unsigned long long)number);
	ck_assert_int_eq(slot_get(rig.namer, namer_rig_file(&rig, FILE_ELF, path), &s), 0);
	ck_assert_ptr_nonnull(t);
	slot_hold_table(rig.namer, s, t, author);
	return s;
}

/* Room for one large table is made of thousands of small ones without passing over all of them for each. */
TEST(room_for_a_table_is_made_by_the_author_who_has_most)
{
	enum { N_SMALL = 4000, MANY = 1001, FEW = 1002, NEXT = 1003 };
	static struct slot *small[N_SMALL];
	struct slot *few = slot_with_table(FEW, 0, 1);

	for (uint64_t i = 0; i < N_SMALL; i++)
		small[i] = slot_with_table(MANY, i, 1);
	slot_use_table(rig.namer, small[0]);
	rig.namer->tables.n_bytes_max = rig.namer->tables.n_bytes;
	struct slot *next = slot_with_table(
		NEXT, 0, (uint32_t)(rig.namer->tables.n_bytes / 2 / sizeof(struct unwind_row)));
	ck_assert_int_eq(next->table_state, TABLE_HELD);
	ck_assert_int_eq(few->table_state, TABLE_HELD);
	ck_assert_int_eq(small[0]->table_state, TABLE_HELD);
	ck_assert_int_eq(small[1]->table_state, TABLE_UNASKED);
	ck_assert_int_eq(small[N_SMALL - 1]->table_state, TABLE_HELD);
	ck_assert_uint_le(rig.namer->tables.n_bytes, rig.namer->tables.n_bytes_max);
	ck_assert_uint_eq(rig.namer->tables.n_bytes, table_bytes());
}

/* As of a process that runs code of both kinds. */
TEST(stacks_of_32_bit_code_and_others_of_one_process_do_not_mix)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("stacks_of_32_bit_code_and_others_of_one_process_do_not_mix",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map), narrow = job;
	narrow.regs_abi = 1; /* PERF_SAMPLE_REGS_ABI_32 */
	narrow.ticket = &narrow;
	ck_assert_int_eq(namer_unwind(rig.namer, &narrow), 0);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert_int_eq(namer_unwind(rig.namer, &narrow), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rig.result[i].failed, rig.result[i].ticket == &narrow);
	for (int i = 0; i < 3; i++)
		if (!rig.result[i].failed)
			ck_assert(has_function(&rig.result[i], "namer_unwind_test_caller"));
}

TEST(parser_restarted_between_stacks_gets_the_space_again)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("parser_restarted_between_stacks_gets_the_space_again",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	kill(status().parser.pid, SIGKILL);
	usleep(50000);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 2);
	ck_assert(!rig.result[1].failed);
	ck_assert_uint_eq(rig.result[1].n_frames, rig.result[0].n_frames);
}

/* Between two stacks of one process come those of more processes than the parser keeps. */
TEST(space_that_the_parser_dropped_is_sent_again)
{
	enum { N_OTHERS = PARSER_SPACES_MAX + 1 };
	struct map map[SPACE_MAPS_MAX];
	struct space space, other[N_OTHERS];
	struct unwind_job job = own_job(&space, map);

	leave_to_elfutils(&space);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	for (uint64_t i = 0; i < N_OTHERS; i++) {
		other[i] = space;
		other[i].generation = 100 + i;
		job.space = &other[i];
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	}
	job.space = &space;
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, N_OTHERS + 2);
	ck_assert_uint_eq(status().parser.restarts, 0);
	const struct unwind_result *first = &rig.result[0], *last = &rig.result[N_OTHERS + 1];
	ck_assert(last->failed == first->failed);
	ck_assert_uint_eq(last->n_frames, first->n_frames);
	if (HAS_COPIED_STACK)
		ck_assert(!last->failed);
}

/* A parser that never has a space is asked some times, not for ever; others are served. */
TEST(stack_whose_space_is_always_lost_fails, .bare = true, .seconds = 60)
{
	struct map map = {.start = 0x1000, .end = 0x2000, .file = NULL};
	struct space space = {.n_users = 1, .map = &map, .n_maps = 1, .generation = 9};
	uint64_t regs[9] = {0};
	uint8_t stack[64] = {0};
	struct unwind_job job = {.space = &space,
		.pid = 1,
		.regs_abi = 1,
		.regs_mask = 0x1ff,
		.regs = regs,
		.stack = stack,
		.n_stack = sizeof(stack)};

	namer_rig_begin_fake(&rig, "parse", "forgetful", &(struct namer_options){0});
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 2);
	ck_assert(rig.result[0].failed && rig.result[1].failed);
	ck_assert_uint_eq(status().parser.restarts, 0);
	teardown();
}

TEST(stack_of_a_32_bit_program_fails_at_once)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;
	struct unwind_job job = own_job(&space, map);

	job.regs_abi = 1;
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 1);
	ck_assert(rig.result[0].failed);
}

TEST(stack_without_files_fails_and_harms_nobody)
{
	struct map map = {.start = 0x1000, .end = 0x2000, .file = NULL};
	struct space space = {.n_users = 1, .map = &map, .n_maps = 1, .generation = 9};
	uint64_t regs[9] = {0};
	uint8_t stack[64] = {0};
	struct unwind_job job = {.space = &space,
		.pid = 1,
		.regs_abi = 1,
		.regs_mask = 0x1ff,
		.regs = regs,
		.stack = stack,
		.n_stack = sizeof(stack)};

	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 1);
	ck_assert_uint_eq(status().parser.restarts, 0);
}

TEST(process_whose_stacks_kill_the_parser_thrice_is_not_unwound_any_more, .begin = setup_traps)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;
	struct unwind_job job = own_job(&space, map);

	memcpy(copied.bytes, "CRASHME!", 8);
	job.n_stack = 64;
	job.regs_abi = 1; /* so that it goes there */
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 6);
	for (int i = 0; i < 6; i++)
		ck_assert(rig.result[i].failed);
	ck_assert_uint_eq(status().parser.restarts, NAMER_DEATHS_MAX);
	/* Its files are named all the same. */
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)namer_unwind_test_caller);
	struct frame *f = namer_rig_name(&rig, namer_rig_file(&rig, FILE_ELF, s.path), s.offset);
	ck_assert_int_eq(f->state, FRAME_NAMED);
}

/* The walk goes through a file that ends the parser before it can make its table. */
TEST(file_whose_table_kills_the_parser_is_blamed_and_the_stack_goes_on, .begin = setup_traps)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;

	if (!HAS_COPIED_STACK) {
		skip("file_whose_table_kills_the_parser_is_blamed_and_the_stack_goes_on",
			"registers are copied on x86-64 only");
		return;
	}
	struct unwind_job job = own_job(&space, map);
	const char *path = namer_rig_copy(&rig, "/proc/self/exe", "crash");
	ck_assert_int_eq(
		namer_rig_shell("objcopy --add-section .mperf.test.crash=/etc/hostname %s", path),
		0);
	struct file *bad = namer_rig_file(&rig, FILE_ELF, path);
	for (uint32_t i = 0; i < space.n_maps; i++)
		if (map[i].start <= job.regs[__builtin_popcountll(job.regs_mask) - 1] &&
			map[i].end > job.regs[__builtin_popcountll(job.regs_mask) - 1])
			map[i].file = bad;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 3);
	ck_assert_uint_eq(status().parser.restarts, 1);
	ck_assert_int_eq(bad->state, FILE_CRASHED);
}

TEST(stack_that_makes_the_parser_spin_fails, .begin = setup_traps)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;
	struct unwind_job job = own_job(&space, map);

	memcpy(copied.bytes, "SPIN-ME!", 8);
	job.n_stack = 64;
	job.regs_abi = 1; /* so that it goes there */
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, 1);
	ck_assert(rig.result[0].failed);
	ck_assert_uint_eq(status().parser.restarts, 1);
}

TEST(stacks_beyond_the_limit_are_refused)
{
	struct map map = {.start = 0x1000, .end = 0x2000, .file = NULL};
	struct space space = {.n_users = 1, .map = &map, .n_maps = 1, .generation = 9};
	static uint8_t stack[65536];
	uint64_t regs[9] = {0};
	struct unwind_job job = {.space = &space,
		.pid = 1,
		.regs_abi = 1,
		.regs_mask = 0x1ff,
		.regs = regs,
		.stack = stack,
		.n_stack = sizeof(stack)};
	int r = 0;
	uint32_t n = 0;

	while (r == 0 && n < 2 * NAMER_UNWIND_BYTES_MAX / sizeof(stack)) {
		r = namer_unwind(rig.namer, &job);
		n += r == 0;
	}
	ck_assert_int_eq(r, NAMER_FULL);
	ck_assert_uint_lt(n, NAMER_UNWIND_BYTES_MAX / sizeof(stack));
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, n);
	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
}

TEST(what_waits_at_the_end_is_freed)
{
	struct map map[SPACE_MAPS_MAX];
	struct space space;
	struct unwind_job job = own_job(&space, map);

	ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
	namer_rig_frame(&rig, namer_rig_file(&rig, FILE_ELF, namer_rig_self()), 0x1000);
	namer_rig_step(&rig, 100);
	ck_assert(!namer_idle(rig.namer));
}
