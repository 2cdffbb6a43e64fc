/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* perf-PID.map files as JIT compilers write them, and as they should not. */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/namer/spans.h"
#include "tests/unit/test.h"

static int open_map(const char *text, size_t n, struct image **ret_image)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
	int r = image_open_perf_map(fd, ret_image);
	close(fd);
	return r;
}

static struct image *map_of(const char *text)
{
	struct image *i = NULL;

	ck_assert_int_eq(open_map(text, strlen(text), &i), 0);
	return i;
}

static const char *name_at(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	if (naming.outcome != IMAGE_NAMED)
		return naming.outcome == IMAGE_OUT_OF_SYMBOL ? "(out)" : "(none)";
	ck_assert_uint_eq(naming.n_places, 1);
	return naming.place[0].function;
}

static const char *name_by(struct image *i, uint64_t offset, uint32_t order)
{
	struct image_naming naming;

	image_name_by(i, offset, order, &naming);
	return naming.outcome == IMAGE_NAMED ? naming.place[0].function : "(out)";
}

/* A map that is written to after it was opened. */
static int growing_fd;

static struct image *growing_of(const char *text)
{
	struct image *i = NULL;

	growing_fd = memfd_create("map", MFD_CLOEXEC);
	ck_assert_int_eq(write(growing_fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(image_open_perf_map(growing_fd, &i), 0);
	return i;
}

static void grow(struct image *i, const char *more)
{
	ck_assert_int_eq(write(growing_fd, more, strlen(more)), (ssize_t)strlen(more));
	ck_assert_int_eq(image_read_on(i, growing_fd), 0);
}

static void grown(struct image *i)
{
	image_free(i);
	close(growing_fd);
}

EACH_TEST(.seconds = 60);

TEST(a_map_that_grows_keeps_the_names_that_were)
{
	struct image *i = growing_of("1000 40 a\n2000 40 other\n");
	struct image_change change[8];

	ck_assert_uint_eq(image_order(i), 2);
	ck_assert_uint_eq(image_changes(i, 0, change, 8), 0);
	grow(i, "1000 40 b\n3000 40 more\n1020 10 c\n");
	ck_assert_uint_eq(image_order(i), 5);
	ck_assert_str_eq(name_by(i, 0x1020, 2), "a");
	ck_assert_str_eq(name_by(i, 0x1020, 3), "b");
	ck_assert_str_eq(name_by(i, 0x1020, 4), "b");
	ck_assert_str_eq(name_by(i, 0x1020, 5), "c");
	ck_assert_str_eq(name_by(i, 0x1030, 5), "b");
	ck_assert_str_eq(name_at(i, 0x1020), "c");
	/* what came first at an address is its name from ever on */
	ck_assert_str_eq(name_by(i, 0x3000, 2), "more");
	ck_assert_uint_eq(image_changes(i, 2, change, 8), 2);
	ck_assert_uint_eq(change[0].start, 0x1000);
	ck_assert_uint_eq(change[0].end, 0x1040);
	ck_assert_uint_eq(change[0].order, 3);
	ck_assert_uint_eq(change[0].from_ns, 0);
	ck_assert_uint_eq(change[1].start, 0x1020);
	ck_assert_uint_eq(change[1].order, 5);
	ck_assert_uint_eq(image_changes(i, 3, change, 8), 1);
	ck_assert_uint_eq(image_changes(i, 2, change, 1), 1);
	grown(i);
}

TEST(a_line_that_is_repeated_changes_nothing)
{
	struct image *i = growing_of("1000 40 a\n");

	grow(i, "1000 40 a\n");
	ck_assert_uint_eq(image_order(i), 1);
	grow(i, "1000 40 b\n1000 40 b\n1000 40 a\n");
	ck_assert_uint_eq(image_order(i), 3);
	grown(i);
}

TEST(a_line_that_was_half_written_is_read_again)
{
	struct image *i = growing_of("1000 40 a\n1000 40 ha");

	ck_assert_str_eq(name_at(i, 0x1000), "ha");
	grow(i, "lf\n2000 10 next");
	ck_assert_str_eq(name_at(i, 0x1000), "half");
	ck_assert_str_eq(name_at(i, 0x2000), "next");
	ck_assert_uint_eq(image_order(i), 3);
	grow(i, "");
	ck_assert_uint_eq(image_order(i), 3);
	grown(i);
}

TEST(a_map_that_is_written_anew_is_read_as_later, .times = 2)
{
	struct image *i = growing_of("1000 40 a\n2000 40 b\n");
	const char *anew =
		_i ? "2000 40 b\n1000 40 longer than what was there before\n" : "1000 40 c\n";

	ck_assert_int_eq(ftruncate(growing_fd, 0), 0);
	ck_assert_int_eq(lseek(growing_fd, 0, SEEK_SET), 0);
	grow(i, anew);
	ck_assert_uint_eq(image_order(i), 3); /* b is as it was */
	ck_assert_str_eq(name_by(i, 0x1000, 2), "a");
	ck_assert_str_eq(name_by(i, 0x1000, 3), _i ? "longer than what was there before" : "c");
	ck_assert_str_eq(name_at(i, 0x2000), "b");
	grown(i);
}

TEST(a_map_is_known_again_by_what_was_read)
{
	static const char *const maps[] = {"1000 10 a\n2000 10 b\n",
		"1000 10 a\n2000 10 b\n3000 10 c\n", "1000 10 a\n2000 10 x\n",
		"1000 10 a\r\n2000 10 b\n", "1000 10 a\n", ""};
	static const bool same[] = {true, true, false, false, false, false};
	struct image *image;
	int fd = memfd_create("map", MFD_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, maps[0], strlen(maps[0]), 0), (ssize_t)strlen(maps[0]));
	ck_assert_int_eq(image_open_perf_map(fd, &image), 0);
	const struct image_mark mark = image_mark(image);
	ck_assert_uint_eq(mark.at, strlen(maps[0]));
	ck_assert(image_goes_on(image, fd, &(struct image_mark){1, 1}) == false);
	ck_assert(image_goes_on(image, fd, &(struct image_mark){1, 1})); /* it knows itself */
	image_free(image);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_int_eq(pwrite(fd, maps[i], strlen(maps[i]), 0), (ssize_t)strlen(maps[i]));
		ck_assert_int_eq(image_open_perf_map(fd, &image), 0);
		ck_assert_int_eq(image_goes_on(image, fd, &mark), same[i]);
		image_free(image);
	}
	close(fd);
}

TEST(addresses_inside_a_line_have_its_name)
{
	struct image *i = map_of("7f0010 20 first\n7f0040 8 LazyCompile:~run app.js:12\n");

	ck_assert_str_eq(name_at(i, 0x7f000f), "(out)");
	ck_assert_str_eq(name_at(i, 0x7f0010), "first");
	ck_assert_str_eq(name_at(i, 0x7f002f), "first");
	ck_assert_str_eq(name_at(i, 0x7f0030), "(out)");
	ck_assert_str_eq(name_at(i, 0x7f0040), "LazyCompile:~run app.js:12");
	ck_assert_str_eq(name_at(i, 0x7f0048), "(out)");
	image_free(i);
}

TEST(later_lines_win_where_they_overlap)
{
	struct image *i = map_of("1000 100 old\n1040 20 new\n1050 8 newest\n0ff0 20 low\n");

	ck_assert_str_eq(name_at(i, 0xfff), "low");
	ck_assert_str_eq(name_at(i, 0x100f), "low");
	ck_assert_str_eq(name_at(i, 0x1010), "old");
	ck_assert_str_eq(name_at(i, 0x103f), "old");
	ck_assert_str_eq(name_at(i, 0x1040), "new");
	ck_assert_str_eq(name_at(i, 0x1050), "newest");
	ck_assert_str_eq(name_at(i, 0x1058), "new");
	ck_assert_str_eq(name_at(i, 0x1060), "old");
	ck_assert_str_eq(name_at(i, 0x10ff), "old");
	ck_assert_str_eq(name_at(i, 0x1100), "(out)");
	image_free(i);
}

TEST(prefixes_tabs_and_carriage_returns_are_understood)
{
	struct image *i = map_of("0x1000 0x10 hex\n2000\t10\ttabs\n3000 10 dos\r\nABC0 10 upper\n");

	ck_assert_str_eq(name_at(i, 0x1000), "hex");
	ck_assert_str_eq(name_at(i, 0x2000), "tabs");
	ck_assert_str_eq(name_at(i, 0x3000), "dos");
	ck_assert_str_eq(name_at(i, 0xabc0), "upper");
	image_free(i);
}

TEST(mangled_names_are_demangled)
{
	struct image *i = map_of("1000 10 _ZN2v82GCEv\n");

	ck_assert_str_eq(name_at(i, 0x1000), "v8::GC");
	image_free(i);
}

TEST(a_last_line_needs_no_newline)
{
	struct image *i = map_of("1000 10 whole\n2000 10 ha");

	ck_assert_str_eq(name_at(i, 0x1000), "whole");
	ck_assert_str_eq(name_at(i, 0x2000), "ha");
	image_free(i);
}

TEST(an_empty_map_has_no_symbols)
{
	struct image *i = map_of("");

	ck_assert(!image_has_symbols(i));
	ck_assert(!image_has_debug(i));
	ck_assert_str_eq(name_at(i, 0x1000), "(none)");
	struct image_wants wants;
	image_wants(i, &wants);
	ck_assert(!wants.symbols && !wants.debug && !wants.n_build_id);
	ck_assert_int_eq(image_add_debug(i, -1, &(bool){false}), -EINVAL);
	ck_assert_int_eq(image_add_alt(i, -1), -EINVAL);
	image_free(i);
}

static const char *const garbage[] = {"\n", "x\n", "1000\n", "1000 10\n", "1000 10 \n",
	"1000 0 empty\n", "1000 -10 negative\n", "ffffffffffffffff 2 wraps\n",
	"11112222333344445 10 overflow\n", "1000 11112222333344445 overflow\n", "g 10 name\n",
	"0x 10 name\n", "1000,10,name\n", "\177ELF\x02\x01\x01\n\n", " 1000 10 indented\n"};

TEST(garbage_is_malformed, .times = sizeof(garbage) / sizeof(*garbage))
{
	struct image *i = NULL;

	ck_assert_int_eq(open_map(garbage[_i], strlen(garbage[_i]), &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
}

TEST(one_good_line_among_garbage_counts, .times = sizeof(garbage) / sizeof(*garbage))
{
	char text[256];

	snprintf(text, sizeof(text), "%s\n1000 10 good\n%s\n", garbage[_i], garbage[_i]);
	struct image *i = map_of(text);
	ck_assert_str_eq(name_at(i, 0x100f), "good");
	image_free(i);
}

TEST(ranges_at_the_end_of_the_address_space_are_kept)
{
	struct image *i = map_of("fffffffffffffff0 f top\n0 1 zero\n");

	ck_assert_str_eq(name_at(i, 0), "zero");
	ck_assert_str_eq(name_at(i, 0xfffffffffffffffe), "top");
	ck_assert_str_eq(name_at(i, UINT64_MAX), "(out)");
	image_free(i);
}

TEST(over_long_names_are_cut)
{
	size_t n = 5000;
	char *text = malloc(n + 1);

	ck_assert_ptr_nonnull(text);
	memset(text, 'n', n);
	memcpy(text, "1000 10 ", 8);
	text[n - 1] = '\n';
	text[n] = '\0';
	struct image *i = map_of(text);
	const char *name = name_at(i, 0x1000);
	ck_assert_uint_eq(strlen(name), IMAGE_NAME_BYTES_MAX);
	ck_assert_ptr_nonnull(strstr(name, "…"));
	image_free(i);
	free(text);
}

TEST(too_many_lines_are_oversize)
{
	/* Even lines that mean nothing are counted: reading them takes time. */
	size_t n = 2u * (IMAGE_MAP_LINES_MAX + 1);
	char *text = malloc(n);
	struct image *i = NULL;

	ck_assert_ptr_nonnull(text);
	for (size_t k = 0; k < n; k += 2)
		memcpy(text + k, "x\n", 2);
	ck_assert_int_eq(open_map(text, n, &i), IMAGE_OVERSIZE);
	ck_assert_int_eq(open_map(text, n - 2, &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
	free(text);
}

TEST(an_endless_line_is_given_up)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct image *i = NULL;

	ck_assert_int_eq(ftruncate(fd, (off_t)5 << 30), 0);
	ck_assert_int_eq(image_open_perf_map(fd, &i), IMAGE_OVERSIZE);
	ck_assert_ptr_null(i);
	close(fd);
}

/* The answer that a list of ranges gives if asked from its end. */
static const struct span *slow_find(const struct span *all, size_t n, uint64_t addr)
{
	while (n-- > 0)
		if (addr >= all[n].start && addr < all[n].end)
			return &all[n];
	return NULL;
}

/* Ask for all addresses from `first` on. `all` is in the order in which the ranges were added. */
static void check_spans(struct spans *spans, const struct span *all, size_t n, uint64_t first)
{
	struct span found;

	for (uint64_t addr = first; addr < first + 300; addr++) {
		const struct span *wanted = slow_find(all, n, addr);
		ck_assert_int_eq(spans_find(spans, addr, &found), wanted != NULL);
		if (!wanted)
			continue;
		ck_assert_ptr_eq(found.name, wanted->name);
		ck_assert_uint_eq(found.tag, wanted->tag);
		ck_assert_uint_le(found.start, addr);
		ck_assert_uint_gt(found.end, addr);
	}
}

static void make_spans(struct span all[40], uint32_t state, uint64_t first, bool names, bool tags)
{
	static const char *const name[] = {"a", "b", "c", "d", NULL};

	for (size_t k = 0; k < 40; k++) {
		state = state * 1664525 + 1013904223;
		uint64_t start = first + (state >> 8) % 200, length = (state >> 20) % 60;
		all[k] = (struct span){
			.start = start,
			.end = start + length,
			.name = names ? name[k % 5] : NULL,
			.tag = tags ? (uint32_t)k : 0,
		};
	}
}

TEST(spans_agree_with_a_linear_search, .times = 64)
{
	/* with names, with tags, at the top of the address space, and too far apart to be packed */
	bool top = _i & 4, far = _i & 8;
	uint64_t first = top ? UINT64_MAX - 300 : 5;
	struct span all[41];
	struct spans spans = {0};

	make_spans(all, 12345 + (uint32_t)_i, first, _i & 1, _i & 2);
	uint64_t other = top ? 1 : (uint64_t)1 << 40;
	all[40] = (struct span){.start = other, .end = other + 1, .tag = 7};
	for (size_t k = 0; k < (far ? 41 : 40); k++)
		ck_assert_int_eq(spans_add(&spans, all[k]), 0);
	ck_assert_int_eq(spans_seal(&spans), 0);
	check_spans(&spans, all, far ? 41 : 40, first);
	spans_clear(&spans);
	ck_assert(!spans_find(&spans, 5, &all[0]));
}
