/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A file whose contents change and whose times and size do not (cp -p, archives, reproducible builds): what was
 * mapped before is not named by them, and what is mapped then not by the former. What only changes its status
 * (chmod, links, renames) keeps its names.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;
static struct file_key key;
static const char *path;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 40);

static __attribute__((noinline)) int copied_landmark(volatile int *x)
{
	*x += 1;
	return *x * 2;
}

static uint64_t landmark_offset(void)
{
	return namer_rig_find((void *)(uintptr_t)copied_landmark).offset;
}

/* Longer than the tick of a file's times. */
static void pass_time(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static void set_times(void)
{
	const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	pass_time();
}

/* Map a copy of this program; without_id: one without a build id. */
static struct file *mapped(bool without_id)
{
	struct stat s;
	struct file *f;

	path = namer_rig_copy(&rig, namer_rig_self(), "program");
	if (without_id)
		ck_assert_int_eq(
			namer_rig_shell("objcopy --remove-section .note.gnu.build-id %s", path), 0);
	set_times();
	ck_assert_int_eq(stat(path, &s), 0);
	key = (struct file_key){.kind = FILE_ELF,
		.path = path,
		.inode = s.st_ino,
		.major = major(s.st_dev),
		.minor = minor(s.st_dev),
		.uid = rig.uid};
	ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
	f->mapped_ns = clock_ns(CLOCK_MONOTONIC);
	return f;
}

/* The same bytes but for the landmark's name, and the build id if there is one; in place, with the same times. */
static void copy_over(void)
{
	ck_assert_int_eq(
		namer_rig_shell(
			"LC_ALL=C sed 's/copied_landmark/another_landmar/g' '%s' > '%s.new' &&"
			" (objcopy -O binary --only-section=.note.gnu.build-id '%s' '%s.id' || :)",
			path, path, path, path),
		0);
	ck_assert_int_eq(namer_rig_shell("python3 - '%s.new' '%s.id' <<'E'\n"
					 "import os, sys\n"
					 "data = open(sys.argv[1], 'rb').read()\n"
					 "note = open(sys.argv[2], 'rb').read() if "
					 "os.path.exists(sys.argv[2]) else b''\n"
					 "if len(note) > 16:\n"
					 "    data = data.replace(note, note[:-4] + b'MINE')\n"
					 "open(sys.argv[1], 'wb').write(data)\n"
					 "E\n"
					 "cat '%s.new' > '%s'",
				 path, path, path, path),
		0);
	set_times();
}

static void is_named(struct file *f, uint64_t offset, const char *name)
{
	struct frame *frame = namer_rig_name(&rig, f, offset);

	if (name)
		ck_assert_str_eq(namer_rig_symbol(frame), name);
	else
		ck_assert_int_eq(frame->state, FRAME_UNNAMED);
}

static void check_copied(bool without_id)
{
	struct file *first = mapped(without_id), *next;
	const uint64_t offset = landmark_offset();

	is_named(first, offset, "copied_landmark");
	ck_assert(!namer_is_rewritten(rig.namer, first));
	copy_over();
	/* it was mapped before: what is there now is not what ran */
	is_named(first, offset + 1, NULL);
	ck_assert(namer_is_rewritten(rig.namer, first));
	/* and who maps it now runs that */
	ck_assert_int_eq(file_get(&rig.files, &key, &next), 0);
	ck_assert_ptr_ne(next, first);
	next->mapped_ns = clock_ns(CLOCK_MONOTONIC);
	is_named(next, offset, "another_landmar");
	ck_assert(!namer_is_rewritten(rig.namer, next));
}

TEST(copy_in_place_with_another_build_id_is_another_file)
{
	check_copied(false);
}

TEST(copy_in_place_without_a_build_id_is_another_file)
{
	check_copied(true);
}

TEST(copy_in_place_that_lost_its_build_id_is_another_file)
{
	struct file *first = mapped(false);
	const uint64_t offset = landmark_offset();

	is_named(first, offset, "copied_landmark");
	copy_over();
	ck_assert_int_eq(
		namer_rig_shell("objcopy --remove-section .note.gnu.build-id '%s' '%s.none' &&"
				" cat '%s.none' > '%s'",
			path, path, path, path),
		0);
	set_times();
	is_named(first, offset + 1, NULL);
}

TEST(file_whose_status_changes_all_the_time_is_given_up)
{
	struct file *f = mapped(false);
	pid_t parser = 0;

	is_named(f, landmark_offset(), "copied_landmark");
	struct frame *frame = namer_rig_frame(&rig, f, landmark_offset() + 1);

	for (int i = 0; i < 300 && frame->state == FRAME_ASKED; i++) {
		parser = namer_rig_one_answer(&rig);
		pass_time();
		ck_assert_int_eq(chmod(path, i % 2 ? 0700 : 0755), 0);
		namer_rig_step(&rig, 0);
	}
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	if (parser > 0)
		kill(parser, SIGCONT);
	ck_assert(namer_rig_run(&rig));
}

TEST(copy_in_place_before_it_was_opened_names_nothing)
{
	struct file *first = mapped(true), *next;

	copy_over();
	is_named(first, landmark_offset(), NULL);
	ck_assert(first->replaced);
	ck_assert_int_eq(file_get(&rig.files, &key, &next), 0);
	ck_assert_ptr_ne(next, first);
}

/* Between the question and the parser's answer. */
static void check_copied_while(enum message_type asked, bool without_id)
{
	struct file *first = mapped(without_id);
	struct frame *frame = namer_rig_frame(&rig, first, landmark_offset());

	while (rig.namer->request.type != asked || rig.namer->parser.state != WORKER_BUSY) {
		namer_rig_one_answer(&rig);
		namer_rig_step(&rig, 0);
	}
	copy_over();
	ck_assert_int_eq(kill(rig.namer->parser.pid, SIGCONT), 0);
	ck_assert(namer_rig_run(&rig));
	/* it may have answered before */
	if (frame->state == FRAME_NAMED)
		ck_assert_str_eq(namer_rig_symbol(frame), "copied_landmark");
	else
		ck_assert_int_eq(frame->state, FRAME_UNNAMED);
}

TEST(copy_in_place_while_it_is_loaded_gives_no_names)
{
	check_copied_while(MESSAGE_LOAD, false);
	check_copied_while(MESSAGE_LOAD, true);
}

TEST(copy_in_place_while_it_is_asked_gives_no_names)
{
	check_copied_while(MESSAGE_NAME, false);
	check_copied_while(MESSAGE_NAME, true);
}

TEST(mapping_is_looked_at_before_names_are)
{
	struct file *first = mapped(false), *next;
	const uint64_t offset = landmark_offset();

	is_named(first, offset, "copied_landmark");
	copy_over();
	ck_assert(namer_is_rewritten(rig.namer, first));
	ck_assert_int_eq(file_get(&rig.files, &key, &next), 0);
	ck_assert_ptr_ne(next, first);
	next->mapped_ns = clock_ns(CLOCK_MONOTONIC);
	is_named(first, offset + 1, NULL);
	is_named(next, offset, "another_landmar");
}

TEST(what_runs_keeps_its_names_when_only_its_status_changes)
{
	static const char *const changes[] = {
		"chmod 700 '%s'", "ln '%s' '%s.link'", "mv '%s' '%s.old'"};
	struct file *f = mapped(false);
	const uint64_t offset = landmark_offset();

	is_named(f, offset, "copied_landmark");
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(namer_rig_shell(changes[i], path, path), 0);
		pass_time();
		is_named(f, offset + 1 + (uint64_t)i, "copied_landmark");
		ck_assert(!f->replaced);
	}
}

TEST(file_without_a_build_id_keeps_its_names_when_it_is_unlinked)
{
	struct file *f = mapped(true);
	const uint64_t offset = landmark_offset();

	is_named(f, offset, "copied_landmark");
	ck_assert_int_eq(unlink(path), 0);
	pass_time();
	is_named(f, offset + 1, "copied_landmark");
}

/* Of what is copied, changes are not seen: who maps it gets a file of its own, less often as it stays the same. */
TEST(copied_file_is_looked_at_less_often_as_it_stays_the_same)
{
	namer_rig_end(&rig);
	char layers[256], over[128];
	bool may =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;

	namer_rig_begin(&rig, &(struct namer_options){0});
	path = namer_rig_copy(&rig, namer_rig_self(), "program");
	snprintf(over, sizeof(over), "%s/over", rig.dir);
	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && mkdir over low low2 && mv program low", rig.dir), 0);
	snprintf(layers, sizeof(layers), "lowerdir=%s/low:%s/low2", rig.dir, rig.dir);
	if (!may || mount("overlay", over, "overlay", 0, layers) < 0) {
		printf("SKIP copied_file_is_looked_at_less_often_as_it_stays_the_same: no overlay "
		       "here\n");
		fflush(stdout);
		return;
	}
	key = (struct file_key){
		.kind = FILE_ELF, .path = namer_rig_path(&rig, "over/program"), .uid = rig.uid};
	struct file_seen seen = {0};
	for (uint64_t for_ns = 0; for_ns < 16 * NAMER_SEEN_NS;
		for_ns = for_ns ? 2 * for_ns : NAMER_SEEN_NS) {
		struct file *f;
		ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
		ck_assert_ptr_null(f->namer_slot); /* a new one */
		f->seen = seen;
		is_named(f, landmark_offset(), "copied_landmark");
		ck_assert_uint_eq(f->seen.for_ns, for_ns);
		ck_assert_uint_ge(f->look_again_ns, for_ns);
		ck_assert(namer_is_rewritten(rig.namer, f) == !for_ns);
		f->look_again_ns = 1;
		ck_assert(namer_is_rewritten(rig.namer, f));
		seen = f->seen;
	}
	seen.status_ns--; /* now it is another */
	struct file *f;
	ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
	f->seen = seen;
	is_named(f, landmark_offset(), "copied_landmark");
	ck_assert_uint_eq(f->seen.for_ns, 0);
	umount2(over, MNT_DETACH);
}

TEST(file_that_was_closed_is_another_to_those_who_map_it_then)
{
	struct file *f = mapped(false), *next;

	is_named(f, landmark_offset(), "copied_landmark");
	ck_assert(slot_evict(rig.namer, rig.namer->users.user[0]));
	ck_assert(namer_is_rewritten(rig.namer, f));
	ck_assert_int_eq(file_get(&rig.files, &key, &next), 0);
	ck_assert_ptr_ne(next, f);
	/* those who mapped it before go on */
	is_named(f, landmark_offset() + 1, "copied_landmark");
}
