/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/namer/parser_rest.c: images that go, and that nobody misses */

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define MANY 100u /* more than are kept, however small */
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
		struct message_offset offset;
	} name = {{.head = {.type = MESSAGE_NAME}, .file = id, .n = 1}, {ADDR + 8, UINT32_MAX, 0}};
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

EACH_TEST(.begin = setup, .end = teardown);

TEST(images_in_use_stay)
{
	ck_assert(!parser_rest(p, 101 * SECOND));
	ck_assert_uint_eq(n_images(), MANY);
}

TEST(of_many_idle_images_the_oldest_go)
{
	expect_name(1); /* the first that was loaded is not the oldest any more */
	ck_assert(parser_rest(p, 106 * SECOND));
	ck_assert_uint_lt(n_images(), MANY);
	ck_assert_uint_gt(n_images(), 1);
	ck_assert_ptr_nonnull(parser_file(p, 1)->image);
	ck_assert_ptr_null(parser_file(p, 2)->image);
	ck_assert_uint_eq(p->n_files, MANY); /* their descriptors stay */
}

TEST(what_went_is_made_again_when_it_is_asked_for)
{
	parser_rest(p, 106 * SECOND);
	for (uint32_t id = 1; id <= MANY; id++)
		expect_name(id);
	ck_assert_uint_eq(n_images(), MANY);
}

TEST(one_that_grew_while_it_was_gone_has_its_new_names)
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

TEST(one_that_cannot_be_made_again_is_forgotten)
{
	parser_rest(p, 106 * SECOND);
	ck_assert_int_eq(close(parser_file(p, 2)->fd[PART_MAIN]), 0);
	parser_file(p, 2)->fd[PART_MAIN] = -1;
	ck_assert_uint_eq(ask(2), STATE_FORGOTTEN);
	expect_name(3);
}

TEST(one_that_never_was_loaded_is_forgotten_too)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = 1000};
	ck_assert_int_eq(parser_take(p, &file, sizeof(file), map_file(1000)), 0);
	ck_assert_uint_eq(ask(1000), STATE_FORGOTTEN);
	ck_assert_uint_eq(ask(1001), STATE_FORGOTTEN);
}

/* Pages of a file that are in memory for us, by /proc/self/smaps: of every mapping of it. */
static size_t resident_kb_of(const char *file)
{
	char line[512];
	unsigned long start, end;
	size_t sum = 0, kb;
	bool mine = false;
	FILE *f = fopen("/proc/self/smaps", "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			mine = strstr(line, file) != NULL;
		else if (mine && sscanf(line, "Rss: %zu kB", &kb) == 1)
			sum += kb;
	}
	fclose(f);
	return sum;
}

/* … of the executable */
static size_t resident_kb(void)
{
	char exe[256];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	ck_assert_int_gt(n, 0);
	exe[n] = '\0';
	return resident_kb_of(exe);
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

TEST(an_image_at_rest_lets_its_file_go_and_still_names)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image *image;
	uint64_t offset = file_offset_of((uintptr_t)a_function);

	ck_assert_int_eq(a_function(), 4711);
	size_t before = resident_kb();
	ck_assert_int_eq(image_open_elf(fd, &image), 0);
	for (uint64_t more = 0; more < 4096; more += 64) /* of many functions */
		(void)image_name(image, offset + more, &(struct image_naming){0});
	ck_assert_str_eq(name_of_main(image, offset), "a_function");
	size_t opened = resident_kb();
	ck_assert_uint_gt(opened, before);
	image_release_pages(image);
	ck_assert_uint_lt(resident_kb(), opened);
	ck_assert_str_eq(name_of_main(image, offset), "a_function");
	ck_assert_uint_gt(resident_kb(), before);
	image_free(image);
	close(fd);
}

TEST(idle_images_are_laid_to_rest_once)
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

/* --- memory that is short --------------------------------------------------------------------- */

#define HEAVY 2000u /* id of a file with compressed debug information: this program */

static bool load_heavy(const char *test)
{
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = HEAVY};
	struct message_load load = {
		.head = {.type = MESSAGE_LOAD}, .file = HEAVY, .kind = KIND_ELF};
	char command[400];

	if (parser_heap_bytes() == 0) {
		printf("SKIP %s: shown by the plain run; a sanitizer's allocator does not count\n",
			test);
		return false;
	}
	snprintf(path, sizeof(path), "/tmp/mperf-rest-elf-%d", (int)getpid());
	snprintf(command, sizeof(command),
		"objcopy --compress-debug-sections=zlib /proc/%d/exe %s 2>/dev/null", getpid(),
		path);
	ck_assert_int_eq(system(command), 0);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(parser_take(p, &file, sizeof(file), fd), 0);
	ck_assert_int_eq(parser_take(p, &load, sizeof(load), -1), 0);
	if (!image_has_debug(parser_file(p, HEAVY)->image)) {
		printf("SKIP %s: this test was built without debug information\n", test);
		return false;
	}
	return true;
}

/* The line of a function in the heavy file, which opens its lines. */
static uint32_t heavy_line(void)
{
	struct {
		struct message_name m;
		struct message_offset offset;
	} name = {{.head = {.type = MESSAGE_NAME}, .file = HEAVY, .n = 1},
		{.offset = file_offset_of((uintptr_t)a_function)}};
	struct message_place place;

	ck_assert_int_eq(parser_take(p, &name, sizeof(name), -1), 0);
	ck_assert_ptr_nonnull(memmem(answer, n_answer, "a_function", 10));
	memcpy(&place, answer + sizeof(struct message_named) + sizeof(struct message_naming),
		sizeof(place));
	ck_assert_uint_gt(place.line, 0);
	return place.line;
}

/* Memory in use that is this much above the limit. */
static void *crowd(size_t above)
{
	ck_assert_uint_lt(parser_heap_bytes(), PARSER_CROWDED_BYTES);
	void *bytes = malloc(PARSER_CROWDED_BYTES + above - parser_heap_bytes());
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_gt(parser_heap_bytes(), PARSER_CROWDED_BYTES);
	return bytes;
}

/* All files but the heavy one are used after it, and took so much to load. */
static void use_others(uint64_t cpu_ns)
{
	for (uint32_t id = 1; id <= MANY; id++) {
		expect_name(id);
		parser_file(p, id)->load = (struct effort){cpu_ns, 64 << 10};
	}
}

TEST(room_for_what_is_unpacked_is_made_first)
{
	if (!load_heavy("room_for_what_is_unpacked_is_made_first"))
		return;
	struct parsed_file *heavy = parser_file(p, HEAVY);
	size_t bytes = image_lines_bytes(heavy->image);
	ck_assert_uint_gt(bytes, 256 << 10);
	use_others(1000);
	void *others = malloc(PARSER_CROWDED_BYTES - bytes / 2 - parser_heap_bytes());
	ck_assert_ptr_nonnull(others);
	ck_assert_uint_lt(parser_heap_bytes(), PARSER_CROWDED_BYTES);
	ck_assert_uint_eq(n_images(), MANY + 1);
	(void)heavy_line();
	ck_assert_uint_lt(n_images(), MANY + 1); /* before any rest */
	ck_assert_ptr_nonnull(heavy->image);
	ck_assert_uint_eq(image_lines_bytes(heavy->image), 0);
	free(others);
}

TEST(what_is_cheap_to_make_again_goes_first)
{
	if (!load_heavy("what_is_cheap_to_make_again_goes_first"))
		return;
	uint32_t line = heavy_line();
	struct parsed_file *heavy = parser_file(p, HEAVY);
	ck_assert(image_has_open_lines(heavy->image));
	heavy->lines = heavy->units = (struct effort){SECOND, 1 << 20};
	use_others(1000);
	void *bytes = crowd(8 << 10);
	ck_assert(parser_rest(p, 101 * SECOND));
	ck_assert_uint_le(parser_heap_bytes(), PARSER_CROWDED_BYTES);
	ck_assert_uint_lt(n_images(), MANY);
	ck_assert_uint_gt(n_images(), MANY / 2);
	ck_assert(image_has_open_lines(heavy->image));
	free(bytes);
	for (uint32_t id = 1; id <= MANY; id++)
		expect_name(id);
	ck_assert_uint_eq(heavy_line(), line);
}

TEST(units_that_were_read_stay_for_minutes)
{
	if (!load_heavy("units_that_were_read_stay_for_minutes"))
		return;
	uint32_t line = heavy_line();
	struct parsed_file *heavy = parser_file(p, HEAVY);
	ck_assert_uint_gt(heavy->units.cpu_ns, 0);
	size_t with_units = parser_heap_bytes();
	int ms = parser_rest_ms(p, 101 * SECOND);
	ck_assert_int_gt(ms, 60000);
	ck_assert(parser_rest(p, 110 * SECOND));
	ck_assert(heavy->rests);
	ck_assert_uint_gt(heavy->units.cpu_ns, 0);
	ck_assert_int_lt(parser_rest_ms(p, 110 * SECOND), ms);
	ck_assert(parser_rest(p, 101 * SECOND + (uint64_t)ms * 1000000));
	ck_assert_uint_eq(heavy->units.cpu_ns, 0);
	ck_assert_uint_lt(parser_heap_bytes(), with_units);
	ck_assert_ptr_nonnull(heavy->image);
	ck_assert_uint_eq(heavy_line(), line);
}

TEST(what_was_unpacked_goes_after_the_units)
{
	if (!load_heavy("what_was_unpacked_goes_after_the_units"))
		return;
	uint32_t line = heavy_line();
	struct parsed_file *heavy = parser_file(p, HEAVY);
	ck_assert(parser_rest(p, 250 * SECOND));
	ck_assert_uint_eq(heavy->units.cpu_ns, 0);
	ck_assert(image_has_open_lines(heavy->image));
	size_t unpacked = parser_heap_bytes();
	int ms = parser_rest_ms(p, 250 * SECOND);
	ck_assert_int_gt(ms, 60000);
	ck_assert(parser_rest(p, 250 * SECOND + (uint64_t)ms * 1000000));
	ck_assert(!image_has_open_lines(heavy->image));
	ck_assert_uint_lt(parser_heap_bytes() + (64 << 10), unpacked);
	ck_assert_int_eq(parser_rest_ms(p, 900 * SECOND), -1); /* the parser sleeps */
	ck_assert_uint_eq(heavy_line(), line);
}

TEST(no_pages_of_a_file_stay_when_names_were_given)
{
	if (!load_heavy("no_pages_of_a_file_stay_when_names_were_given"))
		return;
	uint32_t line = heavy_line();
	const struct parsed_file *heavy = parser_file(p, HEAVY);
	for (uint64_t i = 0; i < 3; i++) { /* in use at each look: every ten seconds */
		p->now_ns = (110 + 10 * i) * SECOND;
		ck_assert_uint_eq(heavy_line(), line);
		parser_rest(p, p->now_ns + 1);
		ck_assert(!heavy->rests);
		ck_assert_uint_le(resident_kb_of(path), 32); /* the section table is ours */
	}
	p->now_ns = 132 * SECOND;
	ck_assert_uint_eq(heavy_line(), line);
	parser_rest(p, 133 * SECOND); /* in use, and released lately */
	ck_assert_uint_gt(resident_kb_of(path), 32);
	parser_rest(p, 138 * SECOND); /* idle */
	ck_assert_uint_le(resident_kb_of(path), 32);
	ck_assert(heavy->rests);
}

TEST(lines_that_are_not_worth_their_memory_go_before_other_images)
{
	if (!load_heavy("lines_that_are_not_worth_their_memory_go_before_other_images"))
		return;
	uint32_t line = heavy_line();
	struct parsed_file *heavy = parser_file(p, HEAVY);
	size_t units_bytes = heavy->units.heap_bytes;
	heavy->lines = heavy->units = (struct effort){1000, 1 << 20};
	use_others(SECOND);
	void *bytes = crowd(units_bytes + (64 << 10));
	ck_assert(parser_rest(p, 101 * SECOND));
	ck_assert_uint_eq(n_images(), MANY + 1); /* its symbols stay too */
	ck_assert(!image_has_open_lines(heavy->image));
	free(bytes);
	ck_assert_uint_eq(heavy_line(), line);
}

TEST(what_was_used_last_stays_however_large)
{
	if (!load_heavy("what_was_used_last_stays_however_large"))
		return;
	(void)heavy_line();
	void *bytes = crowd(PARSER_CROWDED_BYTES);
	ck_assert(parser_rest(p, 101 * SECOND));
	ck_assert_uint_eq(n_images(), 1);
	ck_assert(image_has_open_lines(parser_file(p, HEAVY)->image));
	free(bytes);
}

TEST(looks_are_a_second_apart)
{
	ck_assert(!parser_rest(p, 104 * SECOND + SECOND / 2));
	ck_assert(!parser_rest(p, 105 * SECOND)); /* though they are idle by now */
	ck_assert(parser_rest(p, 106 * SECOND));
}
