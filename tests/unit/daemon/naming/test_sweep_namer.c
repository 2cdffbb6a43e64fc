/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Sweeping what the namer holds, with real workers: files are forgotten, named anew under ids that
 * were used before, and what is under way is left alone. */

#include "daemon/attribute/sweep.h"
#include "daemon/naming/namer_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;
static struct bench *b;
static const struct frame *kept;

static void setup(void)
{
	kept = NULL;
	namer_rig_begin(&rig, &(struct namer_options){0});
	b = bench_new();
	b->options.namer = rig.namer;
	b->options.files = &rig.files;
	bench_start(b);
}

static void teardown(void)
{
	bench_free(b);
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

static void mark(void *userdata, struct sweep *s)
{
	(void)userdata;
	sweep_keep_frame(s, kept);
}

static void sweep_when_idle(void)
{
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(attribute_sweep(b->attribute, mark, NULL), 0);
		rig.files.aged_ns = 1;
	}
}

static struct frame *name_of(const void *addr)
{
	struct namer_rig_spot s = namer_rig_find(addr);
	return namer_rig_name(&rig, namer_rig_file(&rig, FILE_ELF, s.path), s.offset);
}

TEST(a_file_that_went_is_named_again_when_it_comes_back)
{
	for (int i = 0; i < 5; i++) {
		struct frame *frame = name_of((void *)(uintptr_t)fclose);
		ck_assert_int_eq(frame->state, FRAME_NAMED);
		ck_assert_ptr_nonnull(strstr(namer_rig_symbol(frame), "fclose"));
		ck_assert_uint_eq(frame->id, 1);
		sweep_when_idle();
		ck_assert_uint_eq(rig.files.n_frames, 0);
		ck_assert_uint_eq(rig.files.n_files, 0);
		ck_assert_ptr_null(TAILQ_FIRST(&rig.namer->slots.all));
		ck_assert_uint_eq(rig.namer->slots.n_fds, 0);
	}
}

TEST(an_id_that_comes_again_is_another_file_to_the_parser)
{
	struct frame *first = name_of((void *)(uintptr_t)fclose);
	ck_assert_ptr_nonnull(strstr(namer_rig_symbol(first), "fclose"));
	sweep_when_idle();
	/* this program, under the id that libc had */
	struct frame *second = name_of((void *)(uintptr_t)name_of);
	ck_assert_uint_eq(second->file->id, 1);
	ck_assert_str_eq(namer_rig_symbol(second), "name_of");
}

TEST(names_go_with_the_last_frame_that_bears_them)
{
	name_of((void *)(uintptr_t)fclose);
	kept = name_of((void *)(uintptr_t)name_of);
	uint64_t bytes = rig.namer->strings.bytes;
	ck_assert_uint_gt(bytes, 0);
	sweep_when_idle();
	ck_assert_uint_lt(rig.namer->strings.bytes, bytes);
	ck_assert_uint_gt(rig.namer->strings.bytes, 0);
	ck_assert_str_eq(namer_rig_symbol(kept), "name_of");
	kept = NULL;
	sweep_when_idle();
	ck_assert_uint_eq(rig.namer->strings.bytes, 0);
	ck_assert_ptr_null(rig.namer->strings.set);
}

TEST(a_name_that_was_given_is_kept_and_freed_like_those_that_were_found)
{
	struct file *file = namer_rig_file(&rig, FILE_KERNEL, "[kernel]");
	struct frame *frame;
	ck_assert_int_eq(frame_get(&rig.files, file, 0, &frame), 0);
	ck_assert_int_eq(namer_name_as(rig.namer, frame, "[kernel]"), 0);
	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_int_eq(namer_name_as(rig.namer, frame, "another"), 0);
	kept = frame;
	sweep_when_idle();
	ck_assert_str_eq(namer_rig_symbol(kept), "[kernel]");
	kept = NULL;
	sweep_when_idle();
	ck_assert_uint_eq(rig.namer->strings.bytes, 0);
}

TEST(a_name_that_finds_no_room_is_not_given)
{
	struct file *file = namer_rig_file(&rig, FILE_KERNEL, "[kernel]");
	struct frame *frame;
	ck_assert_int_eq(frame_get(&rig.files, file, 0, &frame), 0);
	rig.namer->strings.bytes = NAMER_STRINGS_BYTES_MAX;
	ck_assert_int_eq(namer_name_as(rig.namer, frame, "[kernel]"), NAMER_FULL);
	ck_assert_int_eq(frame->state, FRAME_NEW);
	ck_assert_ptr_null(frame->place);
	rig.namer->strings.bytes = 0;
}

TEST(what_is_queued_or_asked_stays)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)fclose);
	struct file *file = namer_rig_file(&rig, FILE_ELF, s.path);
	struct frame *frame = namer_rig_frame(&rig, file, s.offset);
	for (int i = 0; i < 8; i++) {
		sweep_when_idle();
		ck_assert_ptr_eq(rig.files.frame[0], frame);
		ck_assert_ptr_eq(rig.files.file[0], file);
		namer_rig_step(&rig, 5);
		if (frame->state == FRAME_NAMED)
			break;
	}
	ck_assert(namer_rig_run(&rig));
}

TEST(frames_that_wait_for_a_line_of_generated_code_are_given_up)
{
	const char *path = namer_rig_path(&rig, "perf-1.map");
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs("1000 10 known\n", f);
	fclose(f);
	struct file *file = namer_rig_file(&rig, FILE_PERF_MAP, path);
	file->uid = (uid_t)geteuid();
	for (uint64_t i = 0; i < 100; i++)
		namer_rig_frame(&rig, file, 0x9000 + i * 16);
	ck_assert(namer_rig_run(&rig));
	struct slot *slot = file->namer_slot;
	ck_assert_uint_eq(slot->n_late, 100);
	kept = rig.files.frame[7];
	sweep_when_idle();
	slot = file->namer_slot;
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->n_late, 1);
	ck_assert_ptr_eq(slot->late[0], kept);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	kept = NULL;
	sweep_when_idle();
	ck_assert_uint_eq(rig.files.n_files, 0);
}

TEST(a_file_that_could_not_be_opened_goes_too)
{
	struct frame *frame =
		namer_rig_name(&rig, namer_rig_file(&rig, FILE_ELF, "/no/such/file"), 16);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	sweep_when_idle();
	ck_assert_uint_eq(rig.files.n_files, 0);
}
