/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Stacks through generated code that a jitdump describes, while the jitdump grows.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#define FIRST 0x500000u
#define OTHER 0x600000u
#define STACK 0x7000000u

/* CPython's, of a trampoline of 11 bytes; from the fifth on its frame has 16 bytes. */
static const uint8_t trampoline[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1,
	0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b,
	0, 0, 0, 0, 0x44, 0x0e, 0x10, 0x46, 0x0e, 8, 0};

static struct namer_rig rig;
static FILE *dump;
static struct map map;
static struct space space;
static char path[64];

static void put_load(uint64_t addr, bool is_described, uint64_t index)
{
	const struct {
		uint32_t id, bytes;
		uint64_t time_ns, n, n_head, n_mapped;
	} unwinding = {4, (uint32_t)(sizeof(unwinding) + sizeof(trampoline)), 0, sizeof(trampoline),
		0, sizeof(trampoline)};
	static const char code[16];
	const char name[2] = {(char)('a' + index)};
	const struct {
		uint32_t id, bytes;
		uint64_t time_ns;
		uint32_t pid, tid;
		uint64_t vma, addr, size, index;
	} load = {.bytes = (uint32_t)(sizeof(load) + sizeof(name) + 11),
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.vma = addr,
		.addr = addr,
		.size = 11,
		.index = index};

	if (is_described) {
		fwrite(&unwinding, sizeof(unwinding), 1, dump);
		fwrite(trampoline, sizeof(trampoline), 1, dump);
	}
	fwrite(&load, sizeof(load), 1, dump);
	fwrite(name, sizeof(name), 1, dump);
	fwrite(code, 11, 1, dump);
	ck_assert_int_eq(fflush(dump), 0);
}

/* Written over what was there. */
static void begin_dump(void)
{
	const uint32_t head[] = {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid(), 0, 0, 0, 0};

	rewind(dump);
	ck_assert_int_eq(ftruncate(fileno(dump), 0), 0);
	fwrite(head, sizeof(head), 1, dump);
	ck_assert_int_eq(fflush(dump), 0);
}

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	dump = fopen(path, "we");
	ck_assert_ptr_nonnull(dump);
	begin_dump();
	map = (struct map){.start = FIRST & ~0xfffffu,
		.end = OTHER + 0x100000,
		.file = namer_rig_file(&rig, FILE_JITDUMP, path)};
	space = (struct space){.map = &map, .n_maps = 1, .generation = 7};
}

static void teardown(void)
{
	fclose(dump);
	unlink(path);
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

/* A stack that was sampled behind the call of a trampoline, which was called from `caller`, which keeps nothing. */
struct sampled_stack {
	uint64_t regs[9], stack[4];
	struct unwind_job job;
};

static const struct unwind_job *sample(
	struct sampled_stack *s, uint64_t trampoline_addr, uint64_t caller)
{
	/* AX BX CX DX SI DI BP SP IP. Source: arch/x86/include/uapi/asm/perf_regs.h */
	*s = (struct sampled_stack){.regs = {[6] = 1, [7] = STACK, [8] = trampoline_addr + 6},
		.stack = {0x1111, caller, 0x2222, 0},
		.job = {.space = &space,
			.pid = getpid(),
			.uid = getuid(),
			.regs_abi = PERF_SAMPLE_REGS_ABI_64,
			.regs_mask = 0x1ff,
			.regs = s->regs,
			.stack = (const uint8_t *)s->stack,
			.n_stack = sizeof(s->stack)}};
	return &s->job;
}

/* The number of frames that are found. */
static size_t walk(uint64_t trampoline_addr, uint64_t caller)
{
	struct sampled_stack s;
	const uint32_t n = rig.n_results;

	ck_assert_int_eq(namer_unwind(rig.namer, sample(&s, trampoline_addr, caller)), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_results, n + 1);
	return rig.result[n].n_frames;
}

/* The same of a stack that is not copied; -1: it must be. */
static int walk_now(uint64_t trampoline_addr, uint64_t caller)
{
	struct sampled_stack s;
	struct unwind_result result;

	if (!namer_unwind_now(rig.namer, sample(&s, trampoline_addr, caller), &result))
		return -1;
	return (int)result.n_frames;
}

static struct slot *slot(void)
{
	return map.file->namer_slot;
}

/* As if the time had passed after which there may be another table. */
static void let_age(void)
{
	slot()->table_ns -= NAMER_RETRY_NS;
}

/* As before samples are taken from the rings. */
static void look(void)
{
	namer_sampled(rig.namer, map.file);
	ck_assert_int_eq(namer_look(rig.namer, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert(namer_rig_run(&rig));
}

#if defined(__x86_64__)
TEST(described_code_has_a_caller)
{
	put_load(FIRST, true, 0);
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 2);
	ck_assert_uint_eq(rig.result[0].frame[0].offset, FIRST + 6);
	ck_assert_uint_eq(rig.result[0].frame[1].offset, OTHER + 4);
	ck_assert_uint_eq(walk(OTHER, FIRST + 5), 0); /* not described, and no frame pointer */
}

TEST(code_that_was_written_since_is_described, .times = 2)
{
	put_load(FIRST, _i, 0);
	ck_assert_uint_eq(walk(OTHER, FIRST + 5), 0);
	put_load(OTHER, true, 1);
	look();
	let_age();
	ck_assert_uint_eq(walk(OTHER, FIRST + 5), 2);
}

TEST(code_in_another_place_is_described_by_its_own)
{
	put_load(FIRST, true, 0);
	put_load(OTHER, true, 1);
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 2);
	put_load(FIRST, false, 2);
	look();
	for (int aged = 0; aged < 2; aged++) {
		ck_assert_uint_eq(walk(FIRST, OTHER + 5), 0);
		ck_assert_uint_eq(walk(OTHER, FIRST + 5), 2);
		let_age();
	}
	put_load(FIRST, true, 3);
	look();
	let_age();
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 2);
}

/* With a table, or with nothing for one. */
TEST(a_dump_that_grows_has_another_table_after_a_time, .times = 2)
{
	const uint64_t caller = OTHER + 0x1005;

	put_load(FIRST, !_i, 0);
	ck_assert_uint_eq(walk(FIRST, caller), _i ? 0 : 2);
	const struct unwind_table *table = slot()->table;
	for (uint64_t i = 1; i < 5; i++) {
		put_load(OTHER, false, i); /* and takes the place of the last */
		look();
		ck_assert_int_eq(walk_now(OTHER, caller), 0);
		ck_assert_int_eq(walk_now(FIRST, caller), _i ? 0 : 2);
	}
	ck_assert_int_eq(slot()->table_state, _i ? TABLE_EMPTY : TABLE_HELD);
	ck_assert_ptr_eq(slot()->table, table);
	let_age();
	ck_assert_int_eq(walk_now(OTHER, caller), -1);
	ck_assert_uint_eq(walk(OTHER, caller), 0);
	ck_assert_int_eq(walk_now(OTHER, caller), 0);
	ck_assert_uint_eq(slot()->table_order, 5);
}

/* Code in too many places, or a file that could not be had. */
TEST(no_stack_waits_for_a_table_that_is_not_made, .times = 2)
{
	for (uint64_t i = 0; i < UNWIND_SEGMENTS_MAX + 1; i++)
		put_load(FIRST + (i << 40), true, i % 20);
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 0);
	ck_assert_int_eq(slot()->table_state, TABLE_FOREIGN);
	if (_i)
		slot_settle_table(rig.namer, slot(), TABLE_NO_FILE);
	put_load(OTHER, true, 1);
	look();
	let_age();
	ck_assert_int_eq(walk_now(FIRST, OTHER + 5), 0);
	ck_assert_uint_eq(walk(OTHER, FIRST + 5), 0);
}

TEST(a_dump_that_was_rewritten_is_tried_again)
{
	put_load(FIRST, true, 0);
	put_load(OTHER, true, 1);
	ck_assert_uint_eq(walk(FIRST, OTHER + 0x1005), 2);
	slot_settle_table(rig.namer, slot(), TABLE_FOREIGN); /* as if it were too large */
	begin_dump();
	put_load(FIRST, true, 0);
	look();
	ck_assert_int_eq(walk_now(FIRST, OTHER + 0x1005), 0);
	let_age();
	ck_assert_int_eq(walk_now(FIRST, OTHER + 0x1005), -1);
	ck_assert_uint_eq(walk(FIRST, OTHER + 0x1005), 2);
}

TEST(a_table_is_kept_while_nothing_that_it_describes_changes)
{
	put_load(FIRST, true, 0);
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 2);
	const struct unwind_table *table = slot()->table;
	ck_assert_ptr_nonnull(table);
	put_load(OTHER, true, 1);
	look();
	ck_assert_uint_eq(walk(FIRST, FIRST + 5), 2);
	ck_assert_ptr_eq(slot()->table, table);
	let_age();
	ck_assert_uint_eq(walk(OTHER, FIRST + 5), 2);
	ck_assert_uint_eq(slot()->table_order, 2);
}

TEST(a_dump_that_is_gone_leaves_frame_pointers)
{
	unlink(path);
	ck_assert_uint_eq(walk(FIRST, OTHER + 5), 0);
	ck_assert(namer_idle(rig.namer));
}
#endif
