/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/namer/parser_rest.c: images that go, and that nobody misses */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/namer/parser_private.h"

#define SECOND UINT64_C(1000000000)
#define MANY 40u /* more than are kept, however small */
#define ADDR UINT64_C(0x1000)

static struct parser *p;
static uint8_t answer[MESSAGE_BYTES_MAX];
static size_t n_answer;
static char path[64];

/* A perf map with one function, which is another in each file. */
static int map_file(uint32_t id)
{
	char text[64];
	snprintf(path, sizeof(path), "/tmp/mperf-rest-%d", (int)getpid());
	int n = snprintf(text, sizeof(text), "1000 100 function_%u\n", id);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, (size_t)n), n);
	unlink(path);
	return fd;
}

static int keep_answer(void *userdata, const void *bytes, size_t n)
{
	(void)userdata;
	n_answer = n;
	memcpy(answer, bytes, n);
	return 0;
}

static void load(uint32_t id)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = id};
	struct message_load load = {
		.head = {.type = MESSAGE_LOAD}, .file = id, .kind = KIND_PERF_MAP};
	struct message_loaded loaded;

	ck_assert_int_eq(parser_take(p, &file, sizeof(file), map_file(id)), 0);
	ck_assert_int_eq(parser_take(p, &load, sizeof(load), -1), 0);
	memcpy(&loaded, answer, sizeof(loaded));
	ck_assert_uint_eq(loaded.state, STATE_READY);
}

static uint32_t ask(uint32_t id)
{
	struct {
		struct message_name m;
		uint64_t offset;
	} name = {{.head = {.type = MESSAGE_NAME}, .file = id, .n = 1}, ADDR + 8};
	struct message_named named;

	ck_assert_int_eq(parser_take(p, &name, sizeof(name), -1), 0);
	memcpy(&named, answer, sizeof(named));
	return named.state;
}

static void expect_name(uint32_t id)
{
	char name[32];
	struct message_place place;

	ck_assert_uint_eq(ask(id), STATE_READY);
	const uint8_t *at = answer + sizeof(struct message_named) + sizeof(struct message_naming);
	ck_assert_uint_gt(n_answer, (size_t)(at - answer) + sizeof(place));
	memcpy(&place, at, sizeof(place));
	int n = snprintf(name, sizeof(name), "function_%u", id);
	ck_assert_uint_eq(place.n_function, n);
	ck_assert_int_eq(memcmp(at + sizeof(place), name, (size_t)n), 0);
}

static uint32_t n_images(void)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_files; i++)
		n += p->file[i].image != NULL;
	return n;
}

static void setup(void)
{
	ck_assert_int_eq(parser_new(keep_answer, NULL, &p), 0);
	p->now_ns = 100 * SECOND;
	for (uint32_t id = 1; id <= MANY; id++)
		load(id);
}

static void teardown(void)
{
	parser_free(p);
}

START_TEST(images_in_use_stay)
{
	ck_assert(!parser_rest(p, 101 * SECOND));
	ck_assert_uint_eq(n_images(), MANY);
}
END_TEST

START_TEST(of_many_idle_images_the_oldest_go)
{
	expect_name(1); /* the first that was loaded is not the oldest any more */
	ck_assert(parser_rest(p, 106 * SECOND));
	ck_assert_uint_lt(n_images(), MANY);
	ck_assert_uint_gt(n_images(), 1);
	ck_assert_ptr_nonnull(parser_file(p, 1)->image);
	ck_assert_ptr_null(parser_file(p, 2)->image);
	ck_assert_uint_eq(p->n_files, MANY); /* their descriptors stay */
}
END_TEST

START_TEST(what_went_is_made_again_when_it_is_asked_for)
{
	parser_rest(p, 106 * SECOND);
	for (uint32_t id = 1; id <= MANY; id++)
		expect_name(id);
	ck_assert_uint_eq(n_images(), MANY);
}
END_TEST

START_TEST(one_that_grew_while_it_was_gone_has_its_new_names)
{
	parser_rest(p, 106 * SECOND);
	ck_assert_ptr_null(parser_file(p, 2)->image);
	static const char more[] = "1000 100 function_77777\n";
	int fd = parser_file(p, 2)->fd[PART_MAIN];
	ck_assert_int_eq(pwrite(fd, more, sizeof(more) - 1, lseek(fd, 0, SEEK_END)),
		(ssize_t)sizeof(more) - 1);
	ck_assert_uint_eq(ask(2), STATE_READY);
	ck_assert_ptr_nonnull(memmem(answer, n_answer, "function_77777", 14));
}
END_TEST

START_TEST(one_that_cannot_be_made_again_is_forgotten)
{
	parser_rest(p, 106 * SECOND);
	ck_assert_int_eq(close(parser_file(p, 2)->fd[PART_MAIN]), 0);
	parser_file(p, 2)->fd[PART_MAIN] = -1;
	ck_assert_uint_eq(ask(2), STATE_FORGOTTEN);
	expect_name(3);
}
END_TEST

START_TEST(one_that_never_was_loaded_is_forgotten_too)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = 1000};
	ck_assert_int_eq(parser_take(p, &file, sizeof(file), map_file(1000)), 0);
	ck_assert_uint_eq(ask(1000), STATE_FORGOTTEN);
	ck_assert_uint_eq(ask(1001), STATE_FORGOTTEN);
}
END_TEST

/* Pages of the executable that are in memory for us, by /proc/self/smaps: of every mapping of it.
 */
static size_t resident_kb(void)
{
	char exe[256], line[512];
	size_t sum = 0, kb;
	bool mine = false;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	ck_assert_int_gt(n, 0);
	exe[n] = '\0';
	FILE *f = fopen("/proc/self/smaps", "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strchr(line, '/'))
			mine = strstr(line, exe) != NULL;
		else if (mine && sscanf(line, "Rss: %zu kB", &kb) == 1)
			sum += kb;
	}
	fclose(f);
	return sum;
}

static const char *name_of_main(struct image *image, uint64_t offset)
{
	struct image_naming naming;
	image_name(image, offset, &naming);
	ck_assert_int_eq(naming.outcome, IMAGE_NAMED);
	return naming.place[naming.n_places - 1].function;
}

static int a_function(void)
{
	return 4711;
}

/* Where a function of ours lies in the file: of the mapping that holds it. */
static uint64_t file_offset_of(uintptr_t addr)
{
	char line[512];
	unsigned long start, end, offset;
	FILE *f = fopen("/proc/self/maps", "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && addr >= start &&
			addr < end) {
			fclose(f);
			return addr - start + offset;
		}
	ck_abort_msg("no mapping holds the function");
}

START_TEST(an_image_at_rest_lets_its_file_go_and_still_names)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image *image;
	uint64_t offset = file_offset_of((uintptr_t)a_function);

	ck_assert_int_eq(a_function(), 4711);
	size_t before = resident_kb();
	ck_assert_int_eq(image_open_elf(fd, &image), 0);
	ck_assert_str_eq(name_of_main(image, offset), "a_function");
	size_t opened = resident_kb();
	ck_assert_uint_gt(opened, before);
	image_rest(image);
	ck_assert_uint_lt(resident_kb() - before, (opened - before) / 2);
	ck_assert_str_eq(name_of_main(image, offset), "a_function");
	ck_assert_uint_gt(resident_kb(), before);
	image_free(image);
	close(fd);
}
END_TEST

START_TEST(idle_images_are_laid_to_rest_once)
{
	ck_assert(parser_rest(p, 106 * SECOND));
	for (uint32_t i = 0; i < p->n_files; i++)
		ck_assert(!p->file[i].image || p->file[i].rests);
	ck_assert(!parser_rest(p, 108 * SECOND));
	p->now_ns = 108 * SECOND;
	expect_name(MANY);
	ck_assert(!parser_file(p, MANY)->rests); /* in use again */
	ck_assert(!parser_rest(p, 110 * SECOND));
	ck_assert(parser_rest(p, 114 * SECOND));
	ck_assert(!parser_rest(p, 116 * SECOND));
}
END_TEST

START_TEST(looks_are_a_second_apart)
{
	ck_assert(!parser_rest(p, 104 * SECOND + SECOND / 2));
	ck_assert(!parser_rest(p, 105 * SECOND)); /* though they are idle by now */
	ck_assert(parser_rest(p, 106 * SECOND));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("parser_rest");
	TCase *tests = tcase_create("parser_rest");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, images_in_use_stay);
	tcase_add_test(tests, of_many_idle_images_the_oldest_go);
	tcase_add_test(tests, what_went_is_made_again_when_it_is_asked_for);
	tcase_add_test(tests, one_that_grew_while_it_was_gone_has_its_new_names);
	tcase_add_test(tests, one_that_cannot_be_made_again_is_forgotten);
	tcase_add_test(tests, one_that_never_was_loaded_is_forgotten_too);
	tcase_add_test(tests, an_image_at_rest_lets_its_file_go_and_still_names);
	tcase_add_test(tests, idle_images_are_laid_to_rest_once);
	tcase_add_test(tests, looks_are_a_second_apart);
	suite_add_tcase(suite, tests);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
