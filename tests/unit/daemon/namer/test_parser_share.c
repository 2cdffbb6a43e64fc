/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/namer/parser_share.c: one file that was sent for several users. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/namer/parser_private.h"
#include "tests/unit/test.h"

static struct parser *p;
static uint8_t answer[MESSAGE_BYTES_MAX];
static char directory[64];
static struct message_loaded loaded;

static int keep_answer(void *userdata, const void *bytes, size_t n)
{
	(void)userdata;
	memcpy(answer, bytes, n);
	return 0;
}

static int open_in(const char *name, int flags)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, flags | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void load(uint32_t id, const char *name)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = id};
	struct message_load load = {.head = {.type = MESSAGE_LOAD}, .file = id, .kind = KIND_ELF};

	ck_assert_int_eq(parser_take(p, &file, sizeof(file), open_in(name, O_RDONLY)), 0);
	ck_assert_int_eq(parser_take(p, &load, sizeof(load), -1), 0);
	memcpy(&loaded, answer, sizeof(loaded));
}

static void give_debug(uint32_t id, const char *name)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = id, .part = PART_DEBUG};

	ck_assert_int_eq(parser_take(p, &file, sizeof(file), open_in(name, O_RDONLY)), 0);
	memcpy(&loaded, answer, sizeof(loaded));
	ck_assert_uint_eq(loaded.state, STATE_READY);
}

static int a_function(void)
{
	return 4711;
}

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

/* Is it named, and with a line? */
static bool is_named(uint32_t id, bool *ret_line)
{
	struct {
		struct message_name m;
		struct message_offset offset;
	} name = {{.head = {.type = MESSAGE_NAME}, .file = id, .n = 1},
		{.offset = file_offset_of((uintptr_t)a_function)}};
	struct message_named named;
	struct message_naming naming;
	struct message_place place = {0};

	ck_assert_int_eq(parser_take(p, &name, sizeof(name), -1), 0);
	memcpy(&named, answer, sizeof(named));
	ck_assert_uint_eq(named.state, STATE_READY);
	memcpy(&naming, answer + sizeof(named), sizeof(naming));
	if (naming.n_places)
		memcpy(&place, answer + sizeof(named) + sizeof(naming), sizeof(place));
	*ret_line = place.line > 0;
	return naming.outcome == NAMING_NAMED;
}

static void expect_lines(uint32_t id, bool lines)
{
	bool line;
	bool named = is_named(id, &line);
	ck_assert(named == lines && line == lines);
}

static struct image *image_of(uint32_t id)
{
	return parser_file(p, id)->image;
}

static void setup(void)
{
	char command[512];

	ck_assert_int_eq(a_function(), 4711);
	ck_assert_int_eq(parser_new(keep_answer, NULL, &p), 0);
	p->now_ns = 100 * SECOND;
	strcpy(directory, "/tmp/mperf-share-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(command, sizeof(command),
		"cd %s && cp /proc/%d/exe whole && objcopy --only-keep-debug whole debug && "
		"objcopy --strip-all whole stripped && chmod u+w ./*",
		directory, getpid());
	ck_assert_int_eq(system(command), 0);
}

static void teardown(void)
{
	char command[128];

	parser_free(p);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	if (system(command))
		printf("%s is left behind\n", directory);
}

EACH_TEST(.begin = setup, .end = teardown);

/* A file with .debug_addr may want files of split units: clang's DWARF 5 always has it. */
static bool is_shared(const char *test)
{
#ifdef __clang__
	printf("SKIP %s: shown by the plain run; what clang builds may be split, and is not "
	       "shared\n",
		test);
	return false;
#else
	(void)test;
	return true;
#endif
}

TEST(the_same_file_of_two_users_has_one_image)
{
	if (!is_shared("the_same_file_of_two_users_has_one_image"))
		return;
	load(1, "whole");
	load(2, "whole");
	ck_assert_uint_eq(loaded.state, STATE_READY);
	ck_assert_ptr_eq(image_of(1), image_of(2));
	load(3, "stripped");
	ck_assert_ptr_ne(image_of(1), image_of(3));
	expect_lines(2, true);
	parser_forget_file(p, 1);
	expect_lines(2, true);
}

TEST(what_one_user_uses_is_not_idle_for_the_other)
{
	if (!is_shared("what_one_user_uses_is_not_idle_for_the_other"))
		return;
	load(1, "whole");
	load(2, "whole");
	p->now_ns = 200 * SECOND;
	expect_lines(2, true);
	for (uint32_t i = 0; i < p->n_files; i++)
		ck_assert_uint_eq(p->file[i].used_ns, 200 * SECOND);
}

TEST(a_debug_file_serves_only_those_to_whom_it_was_given)
{
	if (!is_shared("a_debug_file_serves_only_those_to_whom_it_was_given"))
		return;
	load(1, "stripped");
	load(2, "stripped");
	ck_assert(loaded.want_debug);
	ck_assert_ptr_eq(image_of(1), image_of(2));
	give_debug(1, "debug");
	ck_assert_ptr_ne(image_of(1), image_of(2));
	expect_lines(1, true);
	expect_lines(2, false);
	load(3, "stripped");
	ck_assert_ptr_eq(image_of(3), image_of(2));
	ck_assert(loaded.want_debug);
	expect_lines(3, false);
	give_debug(3, "debug");
	ck_assert_ptr_eq(image_of(3), image_of(1));
	expect_lines(3, true);
	expect_lines(2, false);
}

TEST(an_image_that_was_dropped_is_shared_again)
{
	if (!is_shared("an_image_that_was_dropped_is_shared_again"))
		return;
	load(1, "stripped");
	load(2, "stripped");
	give_debug(1, "debug");
	give_debug(2, "debug");
	for (uint32_t id = 1; id <= 2; id++) {
		struct parsed_file *f = parser_file(p, id);
		f->image = image_free(f->image);
	}
	expect_lines(1, true);
	expect_lines(2, true);
	ck_assert_ptr_eq(image_of(1), image_of(2));
}

TEST(a_file_that_was_written_to_is_another)
{
	load(1, "whole");
	int fd = open_in("whole", O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	load(2, "whole");
	ck_assert_ptr_ne(image_of(1), image_of(2));
	expect_lines(2, true);
}

TEST(a_copy_is_another)
{
	load(1, "stripped");
	give_debug(1, "debug");
	load(2, "stripped");
	give_debug(2, "whole"); /* the same build id, another file */
	ck_assert_ptr_ne(image_of(1), image_of(2));
}
