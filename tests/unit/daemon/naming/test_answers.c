/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/naming/answers.c and of what slot.c does with it: one answer of the parser names all of a function, as long as the file is the same.
 */
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/naming/namer_private.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;
static struct namer *n;
static struct file *file;
static uint64_t landmark; /* its offset; the function has at least four bytes */

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
	n = rig.namer;
	landmark = namer_rig_landmark();
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static void use(const char *strip, const char *name)
{
	namer_rig_copy(&rig, namer_rig_self(), name);
	ck_assert_int_eq(namer_rig_shell("strip %s '%s'", strip, namer_rig_path(&rig, name)), 0);
	file = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, name));
}

/* Ask without dispatching: only an answer that is known can name it. */
static struct frame *ask(uint64_t offset)
{
	struct frame *frame = NULL;

	ck_assert_int_eq(frame_get(&rig.files, file, offset, &frame), 0);
	ck_assert_int_eq(namer_name(n, frame, rig.uid), 0);
	return frame;
}

static void is_known(uint64_t offset, const struct frame *as)
{
	const struct frame *frame = ask(offset);

	ck_assert_int_eq(frame->state, as->state);
	ck_assert_str_eq(namer_rig_symbol(frame), namer_rig_symbol(as));
}

static void is_asked(uint64_t offset)
{
	ck_assert_int_eq(ask(offset)->state, FRAME_ASKED);
}

static const struct frame *learn(void)
{
	const struct frame *frame = namer_rig_name(&rig, file, landmark);

	ck_assert_uint_eq(frame->n_places, 1);
	return frame;
}

TEST(other_addresses_of_a_function_are_named_at_once)
{
	use("--strip-debug", "symbols");
	const struct frame *first = learn();
	const uint64_t n_named = frames_named(n);

	ck_assert_int_eq(first->state, FRAME_NAMED);
	is_known(landmark + 1, first);
	is_known(landmark + 3, first);
	ck_assert_uint_eq(frames_named(n), n_named + 2);
	ck_assert_uint_eq(file->symbols_named, 3);
	ck_assert_uint_eq(frames_waiting(n), 0);
	is_asked(landmark - 1); /* another function */
	ck_assert(namer_rig_run(&rig));
}

TEST(of_a_function_without_a_symbol_its_place_is_known_at_once)
{
	use("--strip-all", "bare");
	const struct frame *first = learn();

	ck_assert_int_eq(first->state, FRAME_PLACED);
	is_known(landmark + 1, first);
	ck_assert_uint_eq(frames_placed(n), 2);
	is_asked(landmark - 1);
	ck_assert(namer_rig_run(&rig));
}

TEST(lines_are_asked_for_each_address)
{
	file = namer_rig_file(&rig, FILE_ELF, namer_rig_self());
	ck_assert_int_eq(namer_rig_name(&rig, file, landmark)->state, FRAME_NAMED);
	is_asked(landmark + 1);
	ck_assert(namer_rig_run(&rig));
}

TEST(a_kernel_function_is_named_at_once)
{
	if (geteuid() != 0) {
		printf("SKIP a_kernel_function_is_named_at_once: kallsyms shows addresses to root "
		       "only\n");
		return;
	}
	file = namer_rig_file(&rig, FILE_KERNEL, "[kernel]");
	const struct frame *first = namer_rig_name(&rig, file, 0x1000);
	ck_assert_int_eq(first->state, FRAME_NAMED);
	is_known(0x1001, first);
}

TEST(a_file_whose_status_changed_is_asked_again)
{
	use("--strip-debug", "symbols");
	const struct frame *first = learn();

	ck_assert_int_eq(chmod(namer_rig_path(&rig, "symbols"), 0700), 0);
	is_asked(landmark + 1);
	ck_assert(namer_rig_run(&rig)); /* proved once more */
	is_known(landmark + 2, first);
}

TEST(a_file_that_was_written_to_names_nothing_more)
{
	use("--strip-debug", "symbols");
	(void)learn();

	int fd = open(namer_rig_path(&rig, "symbols"), O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	usleep(20000); /* the clock of files ticks each 4 to 10 ms */
	ck_assert_int_eq(pwrite(fd, "\x90", 1, (off_t)landmark), 1);
	close(fd);
	is_asked(landmark + 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(ask(landmark + 1)->state, FRAME_UNNAMED);
	ck_assert(file->replaced);
}

TEST(a_closed_file_is_opened_and_asked)
{
	use("--strip-debug", "symbols");
	(void)learn();

	ck_assert(slot_evict(n, naming_user_get(&n->users, rig.uid)));
	is_asked(landmark + 1);
	ck_assert_uint_eq(n->slots.n_answers, 0);
	ck_assert(namer_rig_run(&rig));
}

TEST(another_parser_is_asked_anew)
{
	use("--strip-debug", "symbols");
	const struct frame *first = learn();
	const uint32_t generation = worker_generation(&n->parser);
	struct namer_status status;

	namer_status(n, &status);
	ck_assert_int_eq(kill(status.parser.pid, SIGKILL), 0);
	for (int i = 0; i < 100 && worker_generation(&n->parser) == generation; i++)
		namer_rig_step(&rig, 100);
	is_asked(landmark + 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(n->slots.n_answers, 1);
	is_known(landmark + 2, first);
}

TEST(answers_keep_their_names_when_frames_are_swept)
{
	use("--strip-debug", "symbols");
	char name[256];
	snprintf(name, sizeof(name), "%s", namer_rig_symbol(learn()));

	uint8_t kept_file[8] = {0}, kept_frame[8] = {0};
	struct file_marks marks = {.file = kept_file,
		.frame = kept_frame,
		.n_files = rig.files.n_files,
		.n_frames = rig.files.n_frames};
	kept_file[file->id - 1] = SWEEP_KEPT;
	namer_sweep_mark(n, &marks);
	ck_assert_int_eq(namer_sweep_slots(n, &marks), 0);
	ck_assert_int_eq(file_table_sweep(&rig.files, &marks), 0);
	namer_sweep_names(n);
	namer_sweep_names(n);

	const struct frame *frame = ask(landmark + 1);
	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_str_eq(namer_rig_symbol(frame), name);
}

TEST(answers_have_room_for_so_many)
{
	struct slot *s;
	use("--strip-debug", "symbols");
	struct frame *frame = namer_rig_name(&rig, file, landmark);

	s = file->namer_slot;
	slot_forget_answers(n, s);
	for (uint64_t i = 0; i < ANSWERS_OF_FILE_MAX + 10; i++) {
		frame->offset = i * 16;
		slot_keep_answer(n, s, i * 16, i * 16 + 16, frame, FRAME_NAMED);
	}
	ck_assert_uint_eq(s->answers.n, ANSWERS_OF_FILE_MAX);
	slot_forget_answers(n, s);
	slot_keep_answer(n, s, 100, 200, frame, FRAME_NAMED); /* is not around the frame */
	slot_keep_answer(n, s, 0, 100000, frame, FRAME_OUT_OF_SYMBOL);
	ck_assert_uint_eq(s->answers.n, 0);
	frame->offset = 150;
	slot_keep_answer(n, s, 100, 200, frame, FRAME_NAMED);
	slot_keep_answer(n, s, 100, 200, frame, FRAME_NAMED); /* overlaps */
	frame->offset = 90;
	slot_keep_answer(n, s, 80, 101, frame, FRAME_NAMED);
	frame->offset = 250;
	slot_keep_answer(n, s, 199, 300, frame, FRAME_NAMED);
	ck_assert_uint_eq(s->answers.n, 1);
	slot_keep_answer(n, s, 200, 300, frame, FRAME_NAMED);
	frame->offset = 90;
	slot_keep_answer(n, s, 80, 100, frame, FRAME_NAMED);
	ck_assert_uint_eq(s->answers.n, 3);

	n->slots.n_answers += ANSWERS_MAX; /* of other files */
	frame->offset = 10;
	slot_keep_answer(n, s, 0, 16, frame, FRAME_NAMED);
	ck_assert_uint_eq(s->answers.n, 1);
	n->slots.n_answers -= ANSWERS_MAX;
}

/* At 20,000 places of the program: what an answer promises for its range holds at both ends and in between. */
static void promises_hold(const char *path)
{
	struct image *image;
	struct image_naming at, other;
	size_t n_ranges = 0;
	struct stat st;

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	const uint64_t step = (uint64_t)st.st_size / 20000 + 1;
	ck_assert_int_eq(image_open_elf(fd, &image), 0);
	close(fd);
	for (uint64_t offset = 0; offset < (uint64_t)st.st_size; offset += step) {
		image_name(image, offset, &at);
		if (at.to == 0)
			continue;
		ck_assert(at.from <= offset && offset < at.to && at.n_places <= 1);
		n_ranges++;
		const uint64_t probe[] = {
			at.from, at.to - 1, at.from + (at.to - at.from) / 2, offset + 1};
		for (size_t i = 0; i < sizeof(probe) / sizeof(*probe); i++) {
			if (probe[i] >= at.to)
				continue;
			image_name(image, probe[i], &other);
			ck_assert_uint_eq(other.from, at.from);
			ck_assert_uint_eq(other.to, at.to);
			ck_assert_int_eq(other.outcome, at.outcome);
			if (at.n_places)
				ck_assert_str_eq(other.place[0].function, at.place[0].function);
			else
				ck_assert_uint_eq(other.addr, at.addr);
		}
	}
	ck_assert_uint_gt(n_ranges, 1000);
	image_free(image);
}

TEST(an_answer_holds_for_all_of_its_range)
{
	use("--strip-debug", "symbols");
	promises_hold(file->path);
	use("--strip-all", "bare");
	promises_hold(file->path);
	promises_hold(namer_rig_find((void *)(uintptr_t)gnu_get_libc_version)
			.path); /* with dynamic symbols and holes */
}
