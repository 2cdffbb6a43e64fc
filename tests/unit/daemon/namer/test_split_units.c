/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program compiled whole, and the same with its units apart: every address has the same names,
 * lines and inlined calls, and lacks them where a file of a unit is missing or is another. */

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/unit/test.h"

static char directory[64];

static const char source_a[] =
	"extern int other(int);\n"
	"struct pair { int a; long b; };\n"
	"static inline __attribute__((always_inline)) int innermost(int x, struct pair *p)\n"
	"{ p->a += x; return x * 3 + p->a; }\n"
	"static inline __attribute__((always_inline)) int inner(int x, struct pair *p)\n"
	"{\n"
	"	if (x & 1) { int y = innermost(x, p); p->b += y; }\n"
	"	return innermost(x + 1, p);\n"
	"}\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{ struct pair p = {x, 0}; int s = 0; for (int i = 0; i < x; i++) s += inner(i, &p); "
	"return s + (int)p.b; }\n"
	"__attribute__((noinline, section(\".text.apart\"))) int apart(int x) { struct pair p = "
	"{x, 1}; return inner(x, &p); }\n"
	"int main(int argc, char **argv) { (void)argv; return outer(argc) + other(argc) + "
	"apart(argc); }\n";
static const char source_b[] =
	"static inline __attribute__((always_inline)) int square(int x) { return x * x; }\n"
	"int other(int x);\n"
	"int other(int x) { int s = 0; while (x-- > 0) s += square(x); return s; }\n";

static void put_source(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void begin(void)
{
	strcpy(directory, "/tmp/mperf-test-split-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(setenv("DIR", directory, 1), 0);
	ck_assert_int_eq(setenv("CCACHE_DISABLE", "1", 1), 0); /* it has objects of other folders */
	put_source("a.c", source_a);
	put_source("b.c", source_b);
}

static void end(void)
{
	if (system("rm -rf \"$DIR\""))
		printf("%s is left behind\n", directory);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 120);

static bool has_tool(const char *test, const char *tool)
{
	char line[128];

	snprintf(line, sizeof(line), "command -v %s >/dev/null", tool);
	if (system(line) == 0)
		return true;
	printf("SKIP %s: %s is not installed\n", test, tool);
	return false;
}

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...)
{
	char line[1024] = "cd \"$DIR\" && set -e; ";
	size_t n = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - n, format, args);
	va_end(args);
	return system(line);
}

static int open_made(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(*name == '/' ? name : path, O_RDONLY | O_CLOEXEC);
}

static struct image *image_of(const char *name)
{
	struct image *i = NULL;
	int fd = open_made(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(image_open_elf(fd, &i), 0);
	close(fd);
	return i;
}

/* Name it, and give the image the file that it wants, or none. Returns how many it
 * wanted. */
static int name_with(struct image *i, uint64_t offset, bool give, struct image_naming *n)
{
	int wanted = 0;

	for (image_name(i, offset, n); image_wants_split(i); image_name(i, offset, n)) {
		ck_assert_int_lt(wanted++, 2);
		int fd = give ? open_made(image_wants_split(i)) : -1;
		if (fd < 0) {
			image_give_up_split(i);
			continue;
		}
		ck_assert_int_eq(image_add_split(i, fd), 0);
		close(fd);
	}
	return wanted;
}

static bool same_place(const struct image_place *a, const struct image_place *b)
{
	const char *x = a->source ? a->source : "", *y = b->source ? b->source : "";

	return strcmp(a->function, b->function) == 0 && strcmp(x, y) == 0 && a->line == b->line &&
	       a->inlined == b->inlined;
}

/* Every address of both: returns how many are in inlined calls. */
static unsigned compare(struct image *whole, struct image *split, bool give, const char *what)
{
	struct stat status;
	unsigned inlined = 0;
	int fd = open_made("whole");

	ck_assert_int_eq(fstat(fd, &status), 0);
	close(fd);
	for (uint64_t offset = 0; offset < (uint64_t)status.st_size; offset++) {
		struct image_naming a, b;
		image_name(whole, offset, &a);
		name_with(split, offset, give, &b);
		ck_assert(!b.n_places || !b.place[b.n_places - 1].split_missing);
		ck_assert_msg(a.n_places == b.n_places, "%s: %#lx: %u and %u places", what,
			(unsigned long)offset, a.n_places, b.n_places);
		for (uint32_t p = 0; p < a.n_places; p++)
			ck_assert_msg(same_place(&a.place[p], &b.place[p]),
				"%s: %#lx: %s %s:%u and %s %s:%u", what, (unsigned long)offset,
				a.place[p].function, a.place[p].source, a.place[p].line,
				b.place[p].function, b.place[p].source, b.place[p].line);
		inlined += a.n_places > 1;
	}
	return inlined;
}

static const struct {
	const char *compiler, *flags;
} builds[] = {{"gcc", "-gdwarf-5"}, {"gcc", "-gdwarf-4"}, {"clang", "-gdwarf-5"},
	{"clang", "-gdwarf-4"}, {"gcc", "-gdwarf-5 -gz=zlib"},
	{"gcc", "-gdwarf-5 -ffunction-sections"}, {"clang", "-gdwarf-5 -ffunction-sections"}};

static void make(const char *compiler, const char *flags)
{
	int r = run("%s -O1 %s -o whole a.c b.c;"
		    "for f in a b; do %s -O1 %s -gsplit-dwarf -c $f.c; done;"
		    "%s %s -o split a.o b.o",
		compiler, flags, compiler, flags, compiler, flags);
	ck_assert_int_eq(r, 0);
}

TEST(a_split_unit_has_the_names_of_a_whole_one, .times = 7)
{
	if (!has_tool("a_split_unit_has_the_names_of_a_whole_one", builds[_i].compiler))
		return;
	make(builds[_i].compiler, builds[_i].flags);
	struct image *whole = image_of("whole"), *split = image_of("split");
	ck_assert(image_may_be_split(split));
	ck_assert_uint_gt(compare(whole, split, true, builds[_i].flags), 10);
	image_drop_units(split);
	ck_assert_uint_gt(compare(whole, split, false, "again"), 10);
	image_drop_lines(split);
	image_release_pages(split);
	ck_assert_uint_gt(compare(whole, split, false, "and again"), 10);
	image_free(whole);
	image_free(split);
}

TEST(a_package_has_all_units, .times = 7)
{
	static const char test[] = "a_package_has_all_units";
	const bool llvm = strcmp(builds[_i].compiler, "clang") == 0;
	const char *tool = llvm ? "llvm-dwp" : "dwp";

	if (!has_tool(test, builds[_i].compiler) || !has_tool(test, tool))
		return;
	make(builds[_i].compiler, builds[_i].flags);
	if (run("timeout 20 %s -e split -o split.dwp 2>/dev/null && rm ./*.dwo", tool)) {
		printf("SKIP %s: this %s does not understand %s %s\n", test, tool,
			builds[_i].compiler, builds[_i].flags);
		return;
	}
	struct image *whole = image_of("whole"), *split = image_of("split");
	int fd = open_made("split.dwp");
	ck_assert_int_eq(image_add_package(split, fd), 0);
	ck_assert_int_eq(image_add_package(split, fd), -EINVAL);
	close(fd);
	ck_assert_uint_gt(compare(whole, split, false, builds[_i].flags), 10);
	ck_assert_ptr_null(image_wants_split(split));
	image_drop_lines(split);
	ck_assert_uint_gt(compare(whole, split, false, "again"), 10);
	image_free(whole);
	image_free(split);
}

/* The offset of a function in the program, which has the same in both. */
static uint64_t offset_in(struct image *i, const char *function, uint32_t n_places)
{
	for (uint64_t offset = 0; offset < 65536; offset++) {
		struct image_naming n;
		image_name(i, offset, &n);
		if (n.n_places == n_places && strcmp(n.place[n_places - 1].function, function) == 0)
			return offset;
	}
	ck_abort_msg("%s has no %u places", function, n_places);
	return 0;
}

TEST(a_unit_whose_file_is_missing_has_symbols_and_lines)
{
	make("gcc", "-gdwarf-5");
	struct image *whole = image_of("whole"), *split = image_of("split");
	uint64_t offset = offset_in(whole, "other", 2);
	struct image_naming n;

	image_name(split, offset, &n);
	ck_assert_ptr_nonnull(image_wants_split(split));
	ck_assert_msg(strstr(image_wants_split(split), directory) &&
			      strstr(image_wants_split(split), "b.dwo"),
		"%s", image_wants_split(split));
	image_give_up_split(split);
	ck_assert_int_eq(name_with(split, offset, true, &n), 0); /* not asked for again */
	ck_assert_uint_eq(n.n_places, 1);
	ck_assert_str_eq(n.place[0].function, "other");
	ck_assert_uint_eq(n.place[0].line, 1);
	ck_assert(n.place[0].split_missing);
	image_name(whole, offset, &n);
	ck_assert(!n.place[0].split_missing && !n.place[1].split_missing);
	image_free(whole);
	image_free(split);
}

TEST(a_file_of_another_unit_or_build_adds_nothing)
{
	static const char *const other[] = {"cp a.dwo b.dwo",
		"gcc -O0 -gdwarf-5 -gsplit-dwarf -c b.c", "head -c 100 b.dwo >x; mv x b.dwo",
		": >b.dwo", "cp b.c b.dwo", "cp split b.dwo", "objcopy -R .debug_abbrev.dwo b.dwo",
		"objcopy -R .debug_info.dwo b.dwo"};

	make("gcc", "-gdwarf-5");
	struct image *whole = image_of("whole");
	uint64_t offset = offset_in(whole, "other", 2);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct image *split = image_of("split");
		struct image_naming n;
		ck_assert_int_eq(run("cp b.dwo kept; %s", other[i]), 0);
		image_name(split, offset, &n);
		int fd = open_made("b.dwo");
		(void)image_add_split(split, fd);
		close(fd);
		ck_assert_int_eq(name_with(split, offset, false, &n), 0);
		ck_assert_msg(n.n_places == 1 && strcmp(n.place[0].function, "other") == 0, "%s",
			other[i]);
		ck_assert_int_eq(run("cp kept b.dwo"), 0);
		image_free(split);
	}
	image_free(whole);
}

/* The unit of b.c, of another version of DWARF, says that it is that of a.c. */
static void give_both_one_id(void)
{
	static uint8_t bytes[1 << 20];
	char path[256];
	uint64_t id[2] = {0};
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/split", directory);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	ck_assert_ptr_nonnull(dwarf);
	for (Dwarf_CU *cu = NULL; dwarf_get_units(dwarf, cu, &cu, NULL, NULL, NULL, NULL) == 0;) {
		uint64_t one = 0;
		ck_assert_int_eq(dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &one, NULL, NULL), 0);
		if (one && n < 2)
			id[n++] = one;
	}
	dwarf_end(dwarf);
	ck_assert_uint_eq(n, 2);
	ssize_t n_bytes = pread(fd, bytes, sizeof(bytes), 0);
	uint8_t *at = memmem(bytes, (size_t)n_bytes, &id[1], sizeof(id[1]));
	ck_assert_ptr_nonnull(at);
	ck_assert_int_eq(pwrite(fd, &id[0], sizeof(id[0]), at - bytes), sizeof(id[0]));
	close(fd);
}

TEST(a_file_that_serves_one_unit_stays_though_another_says_that_it_is_its_own)
{
	ck_assert_int_eq(
		run("gcc -O1 -gdwarf-5 -o whole a.c b.c; gcc -O1 -gdwarf-5 -gsplit-dwarf -c a.c; "
		    "gcc -O1 -gdwarf-4 -gsplit-dwarf -c b.c; gcc -o split a.o b.o"),
		0);
	give_both_one_id();
	struct image *whole = image_of("whole"), *split = image_of("split");
	uint64_t inner = offset_in(whole, "outer", 3), again = offset_in(whole, "apart", 3);
	uint64_t other = offset_in(whole, "other", 2);
	struct image_naming n;

	ck_assert_int_eq(name_with(split, inner, true, &n), 1);
	ck_assert_uint_eq(n.n_places, 3);
	name_with(split, other, false, &n);
	ck_assert_uint_eq(n.n_places, 1);
	ck_assert_str_eq(n.place[0].function, "other");
	name_with(split, again, false, &n);
	ck_assert_uint_eq(n.n_places, 3);
	ck_assert_str_eq(n.place[2].function, "apart");
	image_free(whole);
	image_free(split);
}

/* Whatever is in a file of a unit, nothing crashes. */
TEST(a_damaged_file_of_a_unit_is_survived)
{
	make("gcc", "-gdwarf-5");
	struct image *whole = image_of("whole");
	uint64_t offset = offset_in(whole, "outer", 3);
	static uint8_t good[65536], bad[65536];
	int fd = open_made("a.dwo");
	ssize_t n_bytes = read(fd, good, sizeof(good));
	close(fd);
	ck_assert_int_gt(n_bytes, 500);

	for (ssize_t at = 0; at < n_bytes; at += 7) {
		struct image *split = image_of("split");
		struct image_naming n;
		memcpy(bad, good, sizeof(bad));
		bad[at] ^= (uint8_t)(0x55 + at);
		char path[256];
		snprintf(path, sizeof(path), "%s/bad", directory);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		ck_assert_int_eq(write(fd, bad, (size_t)n_bytes), n_bytes);
		image_name(split, offset, &n);
		(void)image_add_split(split, fd);
		close(fd);
		name_with(split, offset, false, &n);
		ck_assert_str_eq(n.place[n.n_places - 1].function, "outer");
		image_free(split);
	}
	image_free(whole);
}
