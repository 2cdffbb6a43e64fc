/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Images of real files: this test's own binary in many shapes (stripped, packed, split, cut off),
 * and libraries of this machine. Files made by hand are in test_elf_symbols.c.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/unit/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* --- this binary as an example ---------------------------------------------------------------- */

static __attribute__((noinline)) uintptr_t example_call_site(void)
{
	__asm__ volatile("");
	return (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) - 1;
}

enum { LINE_INNER = __LINE__ + 3 };
static inline __attribute__((always_inline)) void example_inner(uintptr_t *ret)
{
	*ret = example_call_site();
	__asm__ volatile("" ::: "memory");
}

enum { LINE_MIDDLE = __LINE__ + 3 };
static inline __attribute__((always_inline)) void example_middle(uintptr_t *ret)
{
	example_inner(ret);
}

enum { LINE_OUTER = __LINE__ + 3 };
static __attribute__((noinline)) void example_outer(uintptr_t *ret)
{
	example_middle(ret);
}

struct located {
	uintptr_t addr;
	uint64_t offset;
	char path[256];
};

static int locate(struct dl_phdr_info *info, size_t size, void *userdata)
{
	struct located *l = userdata;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD || l->addr < start || l->addr - start >= p->p_filesz)
			continue;
		l->offset = l->addr - start + p->p_offset;
		snprintf(l->path, sizeof(l->path), "%s",
			*info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
		return 1;
	}
	return 0;
}

static struct located locate_addr(uintptr_t addr)
{
	struct located l = {.addr = addr};

	ck_assert_int_eq(dl_iterate_phdr(locate, &l), 1);
	return l;
}

static uint64_t example_offset(void)
{
	uintptr_t addr;

	example_outer(&addr);
	return locate_addr(addr).offset;
}

static struct image *image_at(const char *path)
{
	struct image *i = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(image_open_elf(fd, &i), 0);
	return i;
}

static struct image_naming name_at(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	return naming;
}

static bool ends_in(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) &&
	       strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void assert_place(const struct image_place *p, const char *function, int line, bool inlined)
{
	ck_assert_str_eq(p->function, function);
	ck_assert_msg(ends_in(p->source, "test_image.c"), "source is %s", p->source);
	ck_assert_uint_eq(p->line, (unsigned)line);
	ck_assert(p->inlined == inlined);
}

static void assert_example(struct image *i)
{
	struct image_naming n = name_at(i, example_offset());

	ck_assert_int_eq(n.outcome, IMAGE_NAMED);
	ck_assert_uint_eq(n.n_places, 3);
	assert_place(&n.place[0], "example_inner", LINE_INNER, true);
	assert_place(&n.place[1], "example_middle", LINE_MIDDLE, true);
	assert_place(&n.place[2], "example_outer", LINE_OUTER, false);
}

/* False, with the reason printed, if this binary was built without -g. */
static bool has_own_debug(const char *test)
{
	struct image *i = image_at("/proc/self/exe");
	bool has = image_has_debug(i);

	image_free(i);
	if (!has)
		printf("SKIP %s: this test was built without debug information\n", test);
	return has;
}

EACH_TEST(.seconds = 120);

TEST(inlined_chain_has_names_files_and_lines)
{
	if (!has_own_debug("inlined_chain_has_names_files_and_lines"))
		return;
	struct image *i = image_at("/proc/self/exe");
	struct image_wants wants;

	ck_assert(image_has_symbols(i));
	assert_example(i);
	image_wants(i, &wants);
	ck_assert(!wants.symbols && !wants.debug);
	image_free(i);
}

TEST(dynamic_symbols_name_a_library)
{
	/* A function that no sanitizer replaces. */
	struct located l = locate_addr((uintptr_t)dlsym(RTLD_DEFAULT, "lcong48"));
	struct image *i = image_at(l.path);
	struct image_naming n = name_at(i, l.offset);

	ck_assert_int_eq(n.outcome, IMAGE_NAMED);
	ck_assert_uint_ge(n.n_places, 1);
	ck_assert_str_eq(n.place[n.n_places - 1].function, "lcong48");
	image_free(i);
}

TEST(linkage_table_entries_are_named)
{
	struct image *i = image_at("/proc/self/exe");
	struct stat status;
	bool found = false;

#if !defined(__x86_64__)
	printf("SKIP linkage_table_entries_are_named: layout known on x86-64 for certain only\n");
	image_free(i);
	return;
#endif
	ck_assert_int_eq(stat("/proc/self/exe", &status), 0);
	for (uint64_t offset = 0; offset < (uint64_t)status.st_size && !found; offset += 16) {
		struct image_naming n = name_at(i, offset);
		found = n.n_places == 1 && strcmp(n.place[0].function, "mkdtemp@plt") == 0;
	}
	ck_assert(found);
	image_free(i);
}

/* --- copies of this binary -------------------------------------------------------------------- */

static char directory[64], self[256];

static void copies_begin(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	strcpy(directory, "/tmp/mperf-test-image-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(setenv("SELF", self, 1), 0);
	ck_assert_int_eq(setenv("DIR", directory, 1), 0);
}

static void copies_end(void)
{
	if (system("rm -rf \"$DIR\""))
		printf("%s is left behind\n", directory);
}

/* Run a command in the directory. False, with the reason printed, if `tool` is not installed. */
static bool make_copies(const char *test, const char *tool, const char *commands)
{
	char line[1024];

	snprintf(line, sizeof(line), "command -v %s >/dev/null", tool);
	if (system(line)) {
		printf("SKIP %s: %s is not installed\n", test, tool);
		return false;
	}
	snprintf(line, sizeof(line), "cd \"$DIR\" && set -e && rm -f ./* && %s", commands);
	int status = system(line);
	if (status && strcmp(tool, "dwz") == 0) {
		printf("SKIP %s: %sdwz does not understand this compiler's DWARF\n", test,
			SANITIZED ? "shown by the plain run; " : "");
		return false;
	}
	ck_assert_int_eq(status, 0);
	return true;
}

static int open_copy(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static struct image *image_of_copy(const char *name)
{
	struct image *i = NULL;
	int fd = open_copy(name);

	ck_assert_int_eq(image_open_elf(fd, &i), 0);
	close(fd);
	return i;
}

TEST(separate_debug_file_names_a_stripped_binary, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "separate_debug_file_names_a_stripped_binary";
	struct image_wants wants;

	if (!has_own_debug(test) ||
		!make_copies(test, "objcopy",
			"objcopy --only-keep-debug \"$SELF\" x.debug && "
			"objcopy --strip-all --add-gnu-debuglink=x.debug \"$SELF\" stripped"))
		return;
	struct image *i = image_of_copy("stripped");
	struct image_naming n = name_at(i, example_offset());
	ck_assert_int_ne(n.outcome, IMAGE_NAMED);
	image_wants(i, &wants);
	ck_assert(wants.symbols && wants.debug);
	ck_assert_str_eq(wants.debuglink, "x.debug");
	ck_assert_str_eq(wants.alt_link, "");

	int fd = open_copy("x.debug");
	ck_assert_int_eq(image_add_debug(i, fd, &(bool){false}), 0);
	assert_example(i);
	image_wants(i, &wants);
	ck_assert(!wants.symbols && !wants.debug);
	ck_assert_int_eq(image_add_debug(i, fd, &(bool){false}), -EINVAL);
	assert_example(i);
	close(fd);
	image_free(i);
}

TEST(debug_file_of_another_build_is_refused, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "debug_file_of_another_build_is_refused";
	static const char script[] =
		"objcopy --only-keep-debug \"$SELF\" x.debug && strip -o stripped \"$SELF\" && "
		"printf '\\004\\000\\000\\000\\004\\000\\000\\000\\003\\000\\000\\000GNU\\000abcd' "
		">n "
		"&& objcopy --remove-section .note.gnu.build-id x.debug y.debug 2>/dev/null && "
		"objcopy --add-section .note.gnu.build-id=n --set-section-flags "
		".note.gnu.build-id=readonly,contents y.debug z.debug 2>/dev/null";
	struct image_wants wants;

	if (!make_copies(test, "objcopy", script))
		return;
	struct image *i = image_of_copy("stripped");
	image_wants(i, &wants);
	int fd = open_copy("z.debug");
	int r = image_add_debug(i, fd, &(bool){false});
	if (wants.n_build_id)
		ck_assert_int_eq(r, IMAGE_MISMATCH);
	else
		printf("SKIP %s: the linker makes no build ids\n", test);
	ck_assert_int_ne(name_at(i, example_offset()).outcome, IMAGE_NAMED);
	close(fd);
	image_free(i);
}

/* Neither file has a build id: the link's checksum is all that there is. */
TEST(debug_file_without_build_id_is_known_by_its_checksum, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "debug_file_without_build_id_is_known_by_its_checksum";
	static const char script[] =
		"objcopy --remove-section .note.gnu.build-id \"$SELF\" bare && "
		"objcopy --only-keep-debug bare x.debug && "
		"objcopy --strip-all --add-gnu-debuglink=x.debug bare linked && "
		"strip -o stripped bare && cp x.debug other.debug && printf x >> other.debug";

	if (!has_own_debug(test) || !make_copies(test, "objcopy", script))
		return;
	struct image *linked = image_of_copy("linked"), *stripped = image_of_copy("stripped");
	int right = open_copy("x.debug"), wrong = open_copy("other.debug");
	bool belongs = false;

	ck_assert_int_eq(image_add_debug(stripped, right, &belongs), IMAGE_MISMATCH);
	ck_assert_int_eq(image_add_debug(linked, wrong, &belongs), IMAGE_MISMATCH);
	ck_assert(!belongs);
	ck_assert_int_eq(image_add_debug(linked, right, &belongs), 0);
	ck_assert(belongs);
	assert_example(linked);
	image_free(linked);
	image_free(stripped);
	/* made again, it is not read again */
	linked = image_of_copy("linked");
	ck_assert_int_eq(image_add_debug(linked, wrong, &belongs), 0);
	image_free(linked);
	close(right);
	close(wrong);
}

TEST(compressed_debug_sections_are_read, .begin = copies_begin, .end = copies_end, .times = 2)
{
	static const char test[] = "compressed_debug_sections_are_read";

	if (!has_own_debug(test) ||
		!make_copies(test, "objcopy",
			_i ? "objcopy --compress-debug-sections=zstd \"$SELF\" compressed"
			   : "objcopy --compress-debug-sections=zlib \"$SELF\" compressed"))
		return;
	struct image *i = image_of_copy("compressed");
	assert_example(i);
	image_free(i);
}

static void assert_example_after_drops(struct image *i)
{
	assert_example(i);
	ck_assert(image_has_open_lines(i));
	image_drop_units(i);
	assert_example(i);
	size_t unpacked = mallinfo2().uordblks + mallinfo2().hblkhd;
	image_drop_lines(i);
	ck_assert(!image_has_open_lines(i));
	ck_assert(SANITIZED || mallinfo2().uordblks + mallinfo2().hblkhd < unpacked);
	ck_assert(image_has_debug(i));
	assert_example(i);
	image_release_pages(i);
	assert_example(i);
	image_drop_lines(i);
	image_release_pages(i);
	assert_example(i);
}

TEST(lines_that_were_dropped_are_read_again, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "lines_that_were_dropped_are_read_again";

	if (!has_own_debug(test) ||
		!make_copies(test, "objcopy",
			"objcopy --compress-debug-sections=zlib \"$SELF\" compressed && "
			"objcopy --only-keep-debug compressed x.debug && "
			"objcopy --strip-all --add-gnu-debuglink=x.debug \"$SELF\" stripped"))
		return;
	struct image *i = image_of_copy("compressed");
	assert_example_after_drops(i);
	image_free(i);
	i = image_at("/proc/self/exe");
	assert_example_after_drops(i);
	image_free(i);
	i = image_of_copy("stripped");
	int fd = open_copy("x.debug");
	ck_assert_int_eq(image_add_debug(i, fd, &(bool){false}), 0);
	close(fd);
	assert_example_after_drops(i);
	image_free(i);
}

/* Found out when the first name is asked for. */
TEST(debug_information_that_is_none_leaves_the_symbols, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "debug_information_that_is_none_leaves_the_symbols";

	if (!has_own_debug(test) ||
		!make_copies(test, "objcopy",
			"printf 'no DWARF at all' >n && "
			"objcopy --update-section .debug_info=n \"$SELF\" broken"))
		return;
	struct image *i = image_of_copy("broken");
	ck_assert(image_has_debug(i));
	struct image_naming n = name_at(i, example_offset());
	ck_assert_int_eq(n.outcome, IMAGE_NAMED);
	ck_assert_uint_eq(n.n_places, 1);
	ck_assert_str_eq(n.place[0].function, "example_outer");
	ck_assert(!image_has_debug(i));
	ck_assert(!image_has_open_lines(i));
	ck_assert_int_eq(image_open_lines(i), 0);
	image_free(i);
}

/* While its lines are dropped, the file becomes another: a name may be missing, no more. */
TEST(a_file_that_changes_while_its_lines_are_dropped, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "a_file_that_changes_while_its_lines_are_dropped";
	char zeros[4096] = {0};

	if (!has_own_debug(test) ||
		!make_copies(test, "objcopy",
			"objcopy --compress-debug-sections=zlib \"$SELF\" compressed && "
			"chmod u+w compressed"))
		return;
	struct image *i = image_of_copy("compressed");
	char path[128];
	assert_example(i);
	image_drop_lines(i);
	snprintf(path, sizeof(path), "%s/compressed", directory);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, zeros, sizeof(zeros), 0), (ssize_t)sizeof(zeros));
	close(fd);
	image_drop_lines(i);
	(void)name_at(i, example_offset());
	image_drop_lines(i);
	image_release_pages(i);
	struct image_naming n = name_at(i, example_offset());
	ck_assert_str_eq(n.place[n.n_places - 1].function, "example_outer");
	image_free(i);
}

TEST(mini_debug_information_names_local_functions, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "mini_debug_information_names_local_functions";
	struct image_wants wants;

	if (!make_copies(test, "xz",
		    "objcopy --strip-debug \"$SELF\" mini && xz mini && "
		    "objcopy --strip-all --add-section .gnu_debugdata=mini.xz \"$SELF\" stripped"))
		return;
	struct image *i = image_of_copy("stripped");
	struct image_naming n = name_at(i, example_offset());
	ck_assert_int_eq(n.outcome, IMAGE_NAMED);
	ck_assert_uint_eq(n.n_places, 1);
	ck_assert_str_eq(n.place[0].function, "example_outer");
	image_wants(i, &wants);
	ck_assert(!wants.symbols && wants.debug);
	image_free(i);
}

/* Kill whoever opens a file from now on. */
static void forbid_opening(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	ck_assert_ptr_nonnull(filter);
	ck_assert_int_eq(seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(openat), 0), 0);
	ck_assert_int_eq(seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(openat2), 0), 0);
	int r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(open), 0);
	ck_assert(r == 0 || r == -EDOM);
	ck_assert_int_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

TEST(supplementary_file_is_handed_over_and_never_searched, .begin = copies_begin, .end = copies_end)
{
	static const char test[] = "supplementary_file_is_handed_over_and_never_searched";
	struct image_wants wants;

	if (!has_own_debug(test) ||
		!make_copies(test, "dwz",
			"cp \"$SELF\" one && cp \"$SELF\" two && "
			"dwz -m \"$DIR\"/alt.debug -M \"$DIR\"/alt.debug one two"))
		return;
	struct image *i = image_of_copy("one");
	int fd = open_copy("alt.debug");
	image_wants(i, &wants);
	ck_assert(ends_in(wants.alt_link, "alt.debug"));
	ck_assert_uint_eq(wants.n_alt_build_id, 20);

	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		/* The name of the innermost function is in the file that is absent. */
		forbid_opening();
		struct image_naming n = name_at(i, example_offset());
		_exit(n.outcome != IMAGE_NAMED || n.n_places == 0 ||
			strcmp(n.place[n.n_places - 1].function, "example_outer") != 0);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);

	ck_assert_int_eq(image_add_alt(i, fd), 0);
	assert_example(i);
	image_wants(i, &wants);
	ck_assert_str_eq(wants.alt_link, "");
	ck_assert_int_eq(image_add_alt(i, fd), -EINVAL);
	assert_example_after_drops(i);
	image_free(i);

	i = image_of_copy("one");
	int wrong = open_copy("two");
	ck_assert_int_eq(image_add_alt(i, wrong), IMAGE_MISMATCH);
	close(wrong);
	close(fd);
	image_free(i);
}

TEST(parsing_opens_no_file)
{
	if (SANITIZED) {
		printf("SKIP parsing_opens_no_file: shown by the plain run; sanitizers open files "
		       "themselves\n");
		return;
	}
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t offset = example_offset();

	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct image *i;
		forbid_opening();
		if (image_open_elf(fd, &i))
			_exit(2);
		_exit(name_at(i, offset).outcome != IMAGE_NAMED);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(fd);
}

TEST(truncated_debug_information_is_survived)
{
	struct stat status;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t offset = example_offset();

	ck_assert_int_eq(fstat(fd, &status), 0);
	size_t n = (size_t)status.st_size;
	uint8_t *bytes = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert(bytes != MAP_FAILED);
	for (size_t k = 1; k < 40; k++) {
		struct image *i = NULL;
		int part = memfd_create("part", MFD_CLOEXEC);
		ck_assert_int_eq(write(part, bytes, n / 40 * k), (ssize_t)(n / 40 * k));
		int r = image_open_elf(part, &i);
		close(part);
		ck_assert(r == 0 || r == IMAGE_MALFORMED);
		if (r)
			continue;
		(void)name_at(i, offset);
		image_free(i);
	}
	munmap(bytes, n);
	close(fd);
}
