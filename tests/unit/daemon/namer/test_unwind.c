/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* tests/system/depth.c is built without frame pointers, run, and sampled at its bottom (sampled.c).
 * From spin() to _start() lie N + 3 frames of that program, no more and no fewer. Then the same
 * sample is spoiled in every way that we could think of.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "tests/unit/daemon/namer/callers.h"
#include "tests/unit/daemon/namer/sampled.h"
#include "tests/unit/test.h"

#ifndef SAMPLED_MACHINE
TEST(unwind)
{
	printf("SKIP unwind: no registers are known for this machine\n");
}
#else

static struct sampled s;
static struct callers *unwinder;
static struct unwound out;

static void setup(void)
{
	sampled_begin(&s);
	unwinder = NULL;
}

static void teardown(void)
{
	unwinder = callers_free(unwinder);
	sampled_end(&s);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

/* Sample in that mapping, make an unwinder. False: skipped, and said so. */
static bool prepare_in(const char *where, const char *test, const char *flags, const char *depth)
{
	const char *mode = strcmp(where, "[vdso]") ? NULL : "clock";
	const char *reason = sampled_take(&s, flags, depth, mode, where);

	if (reason) {
		printf("SKIP %s: %s\n", test, reason);
		fflush(stdout);
		return false;
	}
	ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
	return true;
}

static bool prepare(const char *test, const char *flags, const char *depth)
{
	return prepare_in("/depth", test, flags, depth);
}

static int unwind(size_t n)
{
	return callers_of(unwinder, s.regs, SAMPLED_REGS, s.stack, n, &out);
}

static size_t frames_of_program(void)
{
	size_t n = 0;

	for (size_t i = 0; i < out.n_frames; i++)
		n += out.frame[i].file == SAMPLED_PROGRAM;
	return n;
}

/* --- valid ------------------------------------------------------------------------------------ */

static void check_depth(int depth)
{
	ck_assert_int_eq(unwind(s.n_stack), 0);
	ck_assert_uint_eq(frames_of_program(), (size_t)depth + 3); /* spin, main, _start */
	ck_assert(!out.truncated);
	ck_assert_uint_eq(out.frame[out.n_frames - 1].file, SAMPLED_PROGRAM);
	/* descend() calls itself from one place. */
	for (int i = 3; i < depth; i++)
		ck_assert_uint_eq(out.frame[i].offset, out.frame[2].offset);
}

TEST(depth_is_exact_in_a_position_independent_program)
{
	if (!prepare(__func__, "-fPIE -pie", "20"))
		return;
	check_depth(20);
	for (size_t i = 0; i < s.n_maps; i++)
		if (s.maps[i].file == SAMPLED_PROGRAM)
			ck_assert_uint_eq(out.frame[0].offset,
				s.ip - s.maps[i].start + s.maps[i].file_offset);
}

TEST(depth_is_exact_in_a_program_of_fixed_addresses)
{
	if (prepare(__func__, "-fno-pie -no-pie", "20"))
		check_depth(20);
}

TEST(depth_is_exact_in_a_static_program)
{
	/* What calls main() is part of the program then, so it has one or two frames more. */
	if (!prepare(__func__, "-static", "20"))
		return;
	ck_assert_int_eq(unwind(s.n_stack), 0);
	ck_assert(!out.truncated);
	ck_assert_uint_eq(frames_of_program(), out.n_frames);
	ck_assert_uint_ge(out.n_frames, 24);
	ck_assert_uint_le(out.n_frames, 25);
	ck_assert_uint_eq(out.frame[19].offset, out.frame[2].offset);
}

TEST(stripped_program_has_its_callers_too)
{
	if (prepare(__func__, "-s", "20"))
		check_depth(20);
}

TEST(debug_frame_does_where_there_is_no_eh_frame)
{
	if (prepare(__func__, "-g -fno-asynchronous-unwind-tables -fno-unwind-tables", "20"))
		check_depth(20);
}

TEST(unwinder_serves_many_stacks)
{
	if (!prepare(__func__, "", "30"))
		return;
	for (int i = 0; i < 200; i++)
		check_depth(30);
}

TEST(two_unwinders_share_descriptors)
{
	struct callers *other;

	if (!prepare(__func__, "", "5"))
		return;
	ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &other), 0);
	check_depth(5);
	ck_assert_ptr_null(callers_free(other));
	check_depth(5);
	for (size_t i = 0; i < s.n_maps; i++) /* and leave them open */
		ck_assert(s.maps[i].fd < 0 || fcntl(s.maps[i].fd, F_GETFD) >= 0);
}

TEST(segments_of_one_file_may_come_apart_and_in_any_order)
{
	struct unwind_map split[SAMPLED_MAPS_MAX * 2];
	size_t n = 0, page = (size_t)sysconf(_SC_PAGESIZE);

	if (!prepare(__func__, "", "20"))
		return;
	for (size_t i = s.n_maps; i-- > 0;) {
		struct unwind_map first = s.maps[i], rest = s.maps[i];
		if (s.maps[i].end - s.maps[i].start > page) {
			first.end = rest.start = s.maps[i].start + page;
			rest.file_offset += page;
			split[n++] = rest;
		}
		split[n++] = first;
	}
	unwinder = callers_free(unwinder);
	ck_assert_int_eq(callers_new(split, n, SAMPLED_MACHINE, &unwinder), 0);
	check_depth(20);
}

TEST(vdso_has_its_callers)
{
	if (!prepare_in("[vdso]", __func__, "", "10"))
		return;
	ck_assert_int_eq(unwind(s.n_stack), 0);
	ck_assert_uint_eq(frames_of_program(), 13);
	ck_assert(!out.truncated);
}

#ifdef SAMPLED_MACHINE_NARROW
TEST(a_32_bit_program_has_its_callers)
{
	s.narrow = true;
	for (int debug = 0; debug < 2; debug++) {
		const char *reason = sampled_take(&s,
			debug ? "-g -fno-asynchronous-unwind-tables -fno-unwind-tables" : "", "20",
			NULL, "/depth");
		if (reason) {
			printf("SKIP %s: %s\n", __func__, reason);
			return;
		}
		ck_assert_int_eq(
			callers_new(s.maps, s.n_maps, SAMPLED_MACHINE_NARROW, &unwinder), 0);
		check_depth(20);
		unwinder = callers_free(unwinder);
		/* with the registers of another machine it is refused, and nothing is made up */
		ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
		ck_assert_int_eq(unwind(s.n_stack), UNWIND_FAILED);
		unwinder = callers_free(unwinder);
		sampled_end(&s);
		sampled_begin(&s);
		s.narrow = true;
	}
}
#endif

TEST(unwinder_exists_for_every_machine)
{
	static const uint16_t machines[] = {EM_X86_64, EM_RISCV, EM_AARCH64, EM_386, EM_ARM};

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		ck_assert_int_eq(callers_new(NULL, 0, machines[i], &unwinder), 0);
		unwinder = callers_free(unwinder);
	}
}

/* --- cut short -------------------------------------------------------------------------------- */

TEST(short_stack_is_truncated)
{
	if (!prepare(__func__, "", "20"))
		return;
	ck_assert_int_eq(unwind(256), 0);
	ck_assert(out.truncated);
	ck_assert_uint_lt(out.n_frames, 22);
	ck_assert_uint_gt(out.n_frames, 1);
}

TEST(every_cut_gives_the_inner_part)
{
	struct unwound whole;

	if (!prepare(__func__, "", "20"))
		return;
	check_depth(20);
	whole = out;
	size_t last = 0;
	for (size_t n = 0; n < 4096 && n < s.n_stack; n += 24) {
		int r = unwind(n);
		if (r == UNWIND_FAILED) {
			ck_assert_uint_eq(last, 0);
			continue;
		}
		ck_assert_int_eq(r, 0);
		ck_assert_uint_ge(out.n_frames, last);
		ck_assert_uint_le(out.n_frames, whole.n_frames);
		ck_assert_mem_eq(out.frame, whole.frame, out.n_frames * sizeof(out.frame[0]));
		ck_assert_int_eq(out.truncated, out.n_frames < whole.n_frames);
		last = out.n_frames;
	}
	ck_assert_uint_eq(last, whole.n_frames);
}

TEST(no_stack_at_all_fails_and_leaves_the_answer_alone)
{
	if (!prepare(__func__, "", "20"))
		return;
	out.n_frames = 4711;
#if defined(__x86_64__) /* elsewhere a leaf has its return address in a register */
	ck_assert_int_eq(unwind(0), UNWIND_FAILED);
	ck_assert_uint_eq(out.n_frames, 4711);
#endif
	ck_assert_int_ge(unwind(0), 0);
}

TEST(frames_are_bounded)
{
	if (!prepare(__func__, "", "300"))
		return;
	ck_assert_int_eq(unwind(s.n_stack), 0);
	ck_assert_uint_eq(out.n_frames, UNWIND_FRAMES_MAX);
	ck_assert(out.truncated);
}

TEST(missing_registers_are_an_outcome)
{
	if (!prepare(__func__, "", "20"))
		return;
	out.n_frames = 4711;
	for (unsigned int bit = 0; bit < 64; bit++) {
		int r = callers_of(unwinder, s.regs, 1ull << bit, s.stack, s.n_stack, &out);
		ck_assert_int_eq(r, UNWIND_FAILED);
	}
	ck_assert_int_eq(callers_of(unwinder, s.regs, 0, s.stack, s.n_stack, &out), UNWIND_FAILED);
	ck_assert_uint_eq(out.n_frames, 4711);
	check_depth(20);
}

TEST(walk_ends_in_a_map_without_a_file)
{
	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	for (size_t i = 0; i < s.n_maps; i++) {
		if (strstr(s.paths[i], "libc")) {
			close(TAKE_FD(s.maps[i].fd));
			s.maps[i].file = 0;
		}
	}
	ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
	ck_assert_int_eq(unwind(s.n_stack), 0);
	ck_assert(out.truncated);
	ck_assert_uint_eq(frames_of_program(), 22); /* all but _start */
	ck_assert_uint_eq(out.frame[22].file, 0);
	ck_assert_uint_gt(out.frame[22].offset, 1ull << 32); /* the address itself */
}

/* --- hostile ---------------------------------------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void check_sane(int r)
{
	ck_assert_int_ge(r, 0);
	if (r == 0) {
		ck_assert_uint_ge(out.n_frames, 1);
		ck_assert_uint_le(out.n_frames, UNWIND_FRAMES_MAX);
	}
}

TEST(random_stack_pointer_is_harmless)
{
	static const uint64_t edges[] = {0, 1, 7, 8, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
	size_t n_edges = sizeof(edges) / sizeof(edges[0]);
	int sp = __builtin_popcountll(SAMPLED_REGS & ((1ull << SAMPLED_SP_BIT) - 1));

	if (!prepare(__func__, "", "20"))
		return;
	for (size_t i = 0; i < 500; i++) {
		s.regs[sp] = i < n_edges ? edges[i] : next_random();
		check_sane(unwind(s.n_stack));
	}
}

TEST(random_registers_are_harmless)
{
	uint64_t good[64];

	if (!prepare(__func__, "", "20"))
		return;
	memcpy(good, s.regs, sizeof(good));
	for (int i = 0; i < 2000; i++) {
		memcpy(s.regs, good, sizeof(good));
		for (int n = i % 4; n >= 0; n--)
			s.regs[next_random() % 24] = next_random() >> (next_random() % 64);
		check_sane(unwind(s.n_stack));
	}
}

TEST(random_stack_bytes_are_harmless)
{
	if (!prepare(__func__, "", "20"))
		return;
	for (int i = 0; i < 1000; i++) {
		size_t n = next_random() % 2048;
		uint8_t *copy = malloc(n ?: 1); /* exactly as long as it says */
		for (size_t at = 0; at < n; at++)
			copy[at] = (uint8_t)(i % 2 ? next_random() : s.stack[at] ^ (at % 64 == 0));
		check_sane(callers_of(unwinder, s.regs, SAMPLED_REGS, copy, n, &out));
		free(copy);
	}
}

/* Every word of the stack leads back into the program, so that the walk is long and wrong. */
TEST(stack_of_nothing_but_return_addresses_ends)
{
	uint64_t low = UINT64_MAX, n_text = 1;

	if (!prepare(__func__, "", "20"))
		return;
	for (size_t i = 0; i < s.n_maps; i++) {
		if (s.maps[i].file == SAMPLED_PROGRAM) {
			low = s.maps[i].start;
			n_text = s.maps[i].end - s.maps[i].start;
		}
	}
	for (int i = 0; i < 200; i++) {
		for (size_t at = 0; at + 8 <= s.n_stack; at += 8) {
			uint64_t word = low + next_random() % n_text;
			memcpy(s.stack + at, &word, 8);
		}
		check_sane(unwind(s.n_stack));
	}
}

TEST(files_that_are_no_elf_have_no_frames)
{
	static const char *const files[] = {
		"tests/records/README.md", "/dev/null", "/", "/dev/zero"};

	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (size_t k = 0; k < s.n_maps; k++) {
			close(s.maps[k].fd);
			s.maps[k].fd = open(files[i], O_RDONLY | O_CLOEXEC);
		}
		ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
		check_sane(unwind(s.n_stack));
		unwinder = callers_free(unwinder);
	}
}

/* libelf 0.188 forgets section data that it read and then found to be malformed. That is not what
 * these tests look for; the leak checker, where there is one, looks away. */
void __lsan_disable(void) __attribute__((weak));
static void forgive_libelf(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

static struct unwind_map *map_of_program(void)
{
	for (size_t k = 0; k < s.n_maps; k++)
		if (s.maps[k].file == SAMPLED_PROGRAM)
			return &s.maps[k];
	ck_abort_msg("the program is not mapped");
}

/* Unwind with these bytes as the program's file. */
static void check_with_program(const uint8_t *bytes, size_t n)
{
	struct unwind_map *map = map_of_program();

	close(map->fd);
	map->fd = memfd_create("spoiled", MFD_CLOEXEC);
	ck_assert_int_eq((int)write(map->fd, bytes, n), (int)n);
	ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
	check_sane(unwind(s.n_stack));
	unwinder = callers_free(unwinder);
}

TEST(program_cut_anywhere_is_harmless)
{
	uint8_t bytes[65536];

	forgive_libelf();
	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	ssize_t n = pread(map_of_program()->fd, bytes, sizeof(bytes), 0);
	for (ssize_t cut = 0; cut < n; cut += 97)
		check_with_program(bytes, (size_t)cut);
}

/* Headers, segments and call frame information with bytes of ours in them. */
TEST(program_with_random_bytes_is_harmless)
{
	uint8_t bytes[65536], spoiled[65536];

	forgive_libelf();
	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	ssize_t n = pread(map_of_program()->fd, bytes, sizeof(bytes), 0);
	for (int i = 0; i < 150; i++) { /* fuzz_elf and fuzz_unwind_table try others each time */
		memcpy(spoiled, bytes, sizeof(bytes));
		size_t range = i % 2 ? 1024 : (size_t)n;
		for (int spots = 0; spots < 8; spots++)
			spoiled[next_random() % range] = (uint8_t)next_random();
		check_with_program(spoiled, (size_t)n);
	}
}

TEST(maps_that_cannot_be_are_harmless)
{
	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	for (int i = 0; i < 300; i++) {
		struct unwind_map odd[SAMPLED_MAPS_MAX];
		memcpy(odd, s.maps, sizeof(odd));
		for (size_t k = 0; k < s.n_maps; k++) {
			uint64_t *field = (uint64_t *[]){
				&odd[k].start, &odd[k].end, &odd[k].file_offset}[next_random() % 3];
			*field = next_random() >> (next_random() % 64);
		}
		ck_assert_int_eq(callers_new(odd, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
		check_sane(unwind(s.n_stack));
		unwinder = callers_free(unwinder);
	}
}

TEST(one_file_mapped_everywhere_is_harmless)
{
	if (!prepare(__func__, "", "20"))
		return;
	unwinder = callers_free(unwinder);
	for (size_t k = 0; k < s.n_maps; k++) {
		s.maps[k].file = SAMPLED_PROGRAM;
		s.maps[k].file_offset = 0;
	}
	ck_assert_int_eq(callers_new(s.maps, s.n_maps, SAMPLED_MACHINE, &unwinder), 0);
	check_sane(unwind(s.n_stack));
}

TEST(no_maps_no_callers)
{
	uint64_t some[64] = {};

	ck_assert_int_eq(callers_new(NULL, 0, SAMPLED_MACHINE, &unwinder), 0);
	for (size_t i = 0; i < 64; i++)
		some[i] = 0x400000;
	out.n_frames = 4711;
	ck_assert_int_eq(callers_of(unwinder, some, SAMPLED_REGS, s.stack, 0, &out), UNWIND_FAILED);
	ck_assert_uint_eq(out.n_frames, 4711);
}

TEST(unknown_machines_and_too_many_maps_are_refused)
{
	struct callers *untouched = (struct callers *)s.stack;
	struct unwind_map *many = calloc(UNWIND_MAPS_MAX + 1, sizeof(*many));

	ck_assert_int_eq(callers_new(NULL, 0, EM_MIPS, &untouched), -EOPNOTSUPP);
	ck_assert_int_eq(callers_new(NULL, 0, EM_NONE, &untouched), -EOPNOTSUPP);
	ck_assert_int_eq(
		callers_new(many, UNWIND_MAPS_MAX + 1, SAMPLED_MACHINE, &untouched), -E2BIG);
	ck_assert_ptr_eq(untouched, (struct callers *)s.stack);
	ck_assert_int_eq(callers_new(many, UNWIND_MAPS_MAX, SAMPLED_MACHINE, &unwinder), 0);
	free(many);
	ck_assert_ptr_null(callers_free(NULL));
}

#endif
