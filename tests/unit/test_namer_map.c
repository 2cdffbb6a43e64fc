/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Naming generated code through the real workers: maps that are not there yet, that grow, that are
 * somebody else's, and the last look at them when all has run.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/namer_rig.h"

static struct namer_rig rig;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

static void skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
}

START_TEST(perf_map_is_named_and_read_again_when_it_grew)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = namer_rig_name(&rig, f, 0x500010);
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	struct frame *none = namer_rig_name(&rig, f, 0x700000);
	ck_assert_int_eq(none->state, FRAME_ASKED); /* its line may still come */
	ck_assert_int_eq(namer_rig_shell("echo '600000 40 second()' >> %s", path), 0);
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, f, 0x600001)), "second()");
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_uint_eq(namer_waiting(rig.namer), 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(none->state, FRAME_OUT_OF_SYMBOL);
	ck_assert_uint_eq(f->symbols_out, 1);
	unlink(path);
}
END_TEST

/* Asks for a frame before there is a line for it, has it written by a shell command, and asks again
 * at the end. */
static struct frame *name_late(const char *before, const char *after)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	ck_assert_int_eq(namer_rig_shell("P=%s; %s", path, before), 0);
	struct frame *frame = namer_rig_name(&rig, f, 0x500010);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert_int_eq(namer_rig_shell("P=%s; %s", path, after), 0);
	ck_assert(namer_idle(rig.namer));
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_named, 1);
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	unlink(path);
	return frame;
}

START_TEST(perf_map_that_is_written_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(
		namer_rig_symbol(name_late(":", "echo '500000 40 late()' > $P")), "late()");
}
END_TEST

START_TEST(perf_map_that_grows_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(namer_rig_symbol(name_late(
				 "echo '1000 40 x' > $P", "echo '500000 40 grown()' >> $P")),
		"grown()");
}
END_TEST

/* Of the same length: only who opens and reads it anew sees the difference. */
START_TEST(perf_map_that_is_exchanged_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(namer_rig_symbol(name_late("echo '100000 40 x()' > $P",
				 "echo '500000 40 y()' > $P.new && mv $P.new $P")),
		"y()");
}
END_TEST

START_TEST(perf_map_half_written_is_read_again_at_the_end)
{
	ck_assert_str_eq(
		namer_rig_symbol(name_late("printf 50 > $P", "printf '0000 40 z()\\n' >> $P")),
		"z()");
}
END_TEST

START_TEST(perf_map_that_is_gone_at_the_end_leaves_what_was_open)
{
	ck_assert_str_eq(namer_rig_symbol(name_late("echo '1000 40 x' > $P",
				 "echo '500000 40 last()' >> $P && rm $P")),
		"last()");
}
END_TEST

START_TEST(perf_map_that_never_comes_ends_unnamed)
{
	ck_assert_int_eq(name_late(":", ":")->state, FRAME_UNNAMED);
}
END_TEST

START_TEST(perf_map_of_a_former_program_is_not_asked_again)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	struct frame *frame = namer_rig_name(&rig, f, 0x500010);
	f->replaced = true; /* exec */
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 next()' > %s", path), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	unlink(path);
}
END_TEST

START_TEST(perf_map_of_another_user_is_refused)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	if (geteuid() != 0) {
		skip("perf_map_of_another_user_is_refused", "chown needs root");
		return;
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(
		namer_rig_shell("echo '500000 40 forged()' > %s; chown 12345 %s", path, path), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_int_eq(namer_rig_name(&rig, f, 0x500010)->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_REFUSED);
	unlink(path);
}
END_TEST

START_TEST(perf_map_that_is_a_link_is_refused)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 linked()' > '%s/m'; ln -s '%s/m' %s",
				 rig.dir, rig.dir, path),
		0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_int_eq(namer_rig_name(&rig, f, 0x500010)->state, FRAME_UNNAMED);
	unlink(path);
}
END_TEST

int main(int argc, char **argv)
{
	namer_rig_main(argc, argv);
	Suite *s = suite_create("namer_map");
	TCase *t = tcase_create("maps");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, perf_map_is_named_and_read_again_when_it_grew);
	tcase_add_test(t, perf_map_that_is_written_at_the_end_names_what_ran_before);
	tcase_add_test(t, perf_map_that_grows_at_the_end_names_what_ran_before);
	tcase_add_test(t, perf_map_that_is_exchanged_at_the_end_names_what_ran_before);
	tcase_add_test(t, perf_map_half_written_is_read_again_at_the_end);
	tcase_add_test(t, perf_map_that_is_gone_at_the_end_leaves_what_was_open);
	tcase_add_test(t, perf_map_that_never_comes_ends_unnamed);
	tcase_add_test(t, perf_map_of_a_former_program_is_not_asked_again);
	tcase_add_test(t, perf_map_of_another_user_is_refused);
	tcase_add_test(t, perf_map_that_is_a_link_is_refused);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
