/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/naming/renew.c: debug files that come after their file was asked for.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/naming/namer_private.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;
static struct namer *n;
static struct file *file;
static struct frame *frame;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){.binary = namer_rig_worker(true)});
	n = rig.namer;
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

/* A program without symbols, and its debug file under a name where nobody looks. It is asked for a name in vain. */
static void ask_in_vain(const char *strip)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "bare");

	ck_assert_int_eq(namer_rig_shell("cd '%s' && objcopy --only-keep-debug bare bare.debug &&"
					 " objcopy %s --remove-section .note.gnu.build-id bare &&"
					 " objcopy --add-gnu-debuglink=bare.debug bare &&"
					 " mv bare.debug later",
				 rig.dir, strip),
		0);
	file = namer_rig_file(&rig, FILE_ELF, path);
	frame = namer_rig_name(&rig, file, namer_rig_landmark());
	ck_assert_int_ne(frame->state, FRAME_NAMED);
}

static void look(bool at_all)
{
	ck_assert_int_eq(namer_look_for_debug(n, at_all), 0);
	ck_assert(namer_rig_run(&rig));
}

static void is_named_later(void)
{
	look(true);
	ck_assert_int_ne(frame->state, FRAME_NAMED);
	ck_assert_int_eq(namer_rig_shell("cd '%s' && mv later bare.debug", rig.dir), 0);
	look(false); /* it is not where a build id says */
	ck_assert_int_ne(frame->state, FRAME_NAMED);
	look(true);
	namer_rig_is_honest(frame);
	ck_assert_uint_gt(frame->place[0].line, 0);
	ck_assert_int_eq(file->state, FILE_READY);
	ck_assert(file->has_debug);
}

TEST(frame_without_a_name_gets_it_when_the_debug_file_comes)
{
	ask_in_vain("--strip-all");
	is_named_later();
}

TEST(file_that_was_closed_meanwhile_is_opened_again)
{
	ask_in_vain("--strip-all");
	ck_assert_int_eq(slot_release(n, file->namer_slot), 0);
	is_named_later();
}

TEST(file_that_is_gone_loses_no_name_and_ends)
{
	ask_in_vain("--strip-all");
	ck_assert_int_eq(slot_release(n, file->namer_slot), 0);
	ck_assert_int_eq(namer_rig_shell("cd '%s' && rm bare", rig.dir), 0);
	look(true);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert(namer_idle(n));
}

TEST(file_with_debug_information_is_not_read_again)
{
	file = namer_rig_file(&rig, FILE_ELF, namer_rig_self());
	frame = namer_rig_name(&rig, file, 16); /* in no function */
	ck_assert_int_ne(frame->state, FRAME_NAMED);
	ck_assert_int_eq(namer_look_for_debug(n, true), 0);
	ck_assert(namer_idle(n));
	ck_assert_uint_eq(rig.files.n_asked_anew, 0);
}

/* As ask_in_vain, with a build id and no link. */
static void ask_by_id_in_vain(void)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "bare");

	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && objcopy --only-keep-debug bare later &&"
				" objcopy --strip-all --remove-section .gnu_debuglink bare",
			rig.dir),
		0);
	file = namer_rig_file(&rig, FILE_ELF, path);
	frame = namer_rig_name(&rig, file, namer_rig_landmark());
	ck_assert_int_ne(frame->state, FRAME_NAMED);
}

static bool all_may(void *userdata, const struct file *f)
{
	(void)userdata;
	(void)f;
	return true;
}

static bool none_may(void *userdata, const struct file *f)
{
	*(const struct file **)userdata = f;
	return false;
}

static void fetched(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
	ck_assert_int_eq(namer_fetched(n, file->build_id, file->n_build_id, path), 0);
	ck_assert(namer_rig_run(&rig));
}

TEST(file_without_debug_information_is_named_by_what_a_server_sent)
{
	const struct file *refused = NULL;

	ask_by_id_in_vain();
	ck_assert_ptr_eq(namer_without_debug(n, 0, all_may, NULL), file);
	ck_assert_ptr_null(namer_without_debug(n, 1000, all_may, NULL));
	ck_assert_ptr_null(namer_without_debug(n, 0, none_may, &refused));
	ck_assert_ptr_eq(refused, file);
	fetched("later");
	namer_rig_is_honest(frame);
	ck_assert_uint_gt(frame->place[0].line, 0);
	ck_assert_ptr_null(namer_without_debug(n, 0, all_may, NULL));
}

TEST(what_was_fetched_for_another_build_changes_nothing)
{
	const uint8_t other[20] = {1};

	ask_by_id_in_vain();
	ck_assert_int_eq(namer_fetched(n, other, 20, "/nonexistent/later"), 0);
	ck_assert(namer_idle(n));
	ck_assert_ptr_eq(namer_without_debug(n, 0, all_may, NULL), file);
}

/* A server may send anything. It gives no name, and the right file does when it comes. */
static void right_file_comes(const char *make_other)
{
	ask_by_id_in_vain();
	ck_assert_int_eq(namer_rig_shell("cd '%s' && %s", rig.dir, make_other), 0);
	fetched("other");
	ck_assert_int_ne(frame->state, FRAME_NAMED);
	fetched("later");
	namer_rig_is_honest(frame);
}

TEST(debug_file_without_a_build_id_gives_no_names)
{
	right_file_comes("objcopy --remove-section .note.gnu.build-id later other");
}

TEST(debug_file_of_another_build_gives_no_names)
{
	right_file_comes(
		"objcopy --dump-section .note.gnu.build-id=id later other && printf other | "
		"dd of=id bs=1 seek=20 conv=notrunc status=none && "
		"objcopy --update-section .note.gnu.build-id=id other");
}

TEST(debug_file_that_is_a_link_is_not_opened)
{
	right_file_comes("ln -s later other");
}

TEST(debug_file_that_has_gone_may_come_again)
{
	right_file_comes("true");
}

TEST(debug_path_is_that_of_the_build_id)
{
	const uint8_t id[20] = {0xab, 0xcd, 0xef};
	char path[NAMER_DEBUG_PATH_BYTES];

	ck_assert(namer_debug_path(id, 3, path));
	ck_assert_str_eq(path, NAMER_DEBUG_FOLDER "/ab/cdef.debug");
	ck_assert(namer_debug_path(id, 20, path));
	ck_assert_uint_eq(strlen(path), NAMER_DEBUG_PATH_BYTES - 1);
	ck_assert(!namer_debug_path(id, 1, path));
	ck_assert(!namer_debug_path(id, 21, path));
}
