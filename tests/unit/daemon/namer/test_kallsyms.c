/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The kernel's symbol list: one we know, broken ones, and this machine's. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "tests/unit/test.h"

static const char list[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000000 t __local_alias\n"
			   "ffffffff81000100 T do_one\n"
			   "ffffffff81000180 w do_weak\n"
			   "ffffffff81000180 T __x64_do_weak\n"
			   "ffffffff81000200 t do_two.cold\n"
			   "ffffffff81000280 D some_data\n"
			   "ffffffff81000300 W do_three\n"
			   "ffffffff81000400 T _etext\n"
			   "ffffffff82000000 d rodata\n"
			   "ffffffffc0002080 t helper\t[mod_b]\n"
			   "ffffffffc0002000 t start_b\t[mod_b]\n"
			   "ffffffffc0000000 t start_a\t[mod-a]\n"
			   "ffffffffc0000040 d data_a\t[mod-a]\n"
			   "ffffffffc0000080 T _RNvNtCs1234_7mycrate3foo3bar\t[mod-a]\n";

static int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

static int open_list(
	const char *text, size_t n, const char *module, uint64_t base, struct image **ret_image)
{
	int fd = file_of(text, n);
	struct kallsyms *k;
	int r = kallsyms_read(fd, &k);

	close(fd);
	if (r)
		return r;
	r = kallsyms_read_module(k, NULL);
	if (r) {
		kallsyms_unref(k);
		return r;
	}
	ck_assert_int_eq(image_open_kallsyms(k, module, base, ret_image), 0);
	kallsyms_unref(k); /* the image keeps it */
	return 0;
}

static const char *name_at(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	if (naming.outcome != IMAGE_NAMED) {
		ck_assert_uint_eq(naming.n_places, 0);
		return naming.outcome == IMAGE_OUT_OF_SYMBOL ? "(out)" : "(none)";
	}
	ck_assert_uint_eq(naming.n_places, 1);
	ck_assert_ptr_null(naming.place[0].source);
	ck_assert(!naming.place[0].inlined);
	return naming.place[0].function;
}

EACH_TEST(.seconds = 30);

TEST(kernel_offsets_count_from_stext)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, NULL, 0, &i), 0);
	ck_assert(image_has_symbols(i));
	ck_assert_str_eq(name_at(i, 0x100), "do_one");
	ck_assert_str_eq(name_at(i, 0x17f), "do_one");
	ck_assert_str_eq(name_at(i, 0x27f), "do_two.cold");
	ck_assert_str_eq(name_at(i, 0x300), "do_three");
	image_free(i);
}

TEST(aliases_prefer_global_then_few_underscores)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0), "_text");
	ck_assert_str_eq(name_at(i, 0x180), "__x64_do_weak");
	image_free(i);
}

TEST(padding_before_a_function_has_its_name)
{
	static const char padded[] = "ffffffff81000000 T _stext\n"
				     "ffffffff81000010 T __pfx_one\n"
				     "ffffffff81000020 T one\n"
				     "ffffffff81000040 T __pfx___pfx_two\n"
				     "ffffffff81000050 T __pfx_two\n"
				     "ffffffff81000060 T two\n"
				     "ffffffff81000070 t __pfx__RNvNtCs1234_7mycrate3foo3bar\n"
				     "ffffffff81000080 t _RNvNtCs1234_7mycrate3foo3bar\n"
				     "ffffffff81000090 T __pfx_other\n"
				     "ffffffff810000a0 T three\n"
				     "ffffffff810000b0 T __pfx_\n"
				     "ffffffff810000c0 T __pfx_data\n"
				     "ffffffff810000d0 D data\n"
				     "ffffffff810000e0 t __pfx_alias\n"
				     "ffffffff810000e0 T better\n"
				     "ffffffff810000f0 t alias\n"
				     "ffffffff81000100 T __pfx_last\n";
	static const char *const names[] = {"_stext", "__pfx_one", "one", "one", "__pfx___pfx_two",
		"__pfx_two", "two", "__pfx__RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar",
		"__pfx_other", "three", "__pfx_", "__pfx_data", "(out)", "better", "alias",
		"__pfx_last"};
	struct image *i;

	ck_assert_int_eq(open_list(padded, sizeof(padded) - 1, NULL, 0, &i), 0);
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		ck_assert_str_eq(name_at(i, 16 * k + 8), names[k]);
	image_free(i);
}

TEST(data_between_functions_has_no_name)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0x280), "(out)");
	ck_assert_str_eq(name_at(i, 0x2ff), "(out)");
	ck_assert_str_eq(name_at(i, 0x1000000), "(out)");
	ck_assert_str_eq(name_at(i, UINT64_MAX), "(out)");
	image_free(i);
}

TEST(last_function_has_an_end)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0x400), "_etext");
	ck_assert_str_eq(name_at(i, 0x400 + 0x10000), "(out)");
	image_free(i);
	ck_assert_int_eq(open_list(list, sizeof(list) - 1, "mod_b", 0xffffffffc0002000, &i), 0);
	ck_assert_str_eq(name_at(i, 0x80), "helper");
	ck_assert_str_eq(name_at(i, 0x80 + 0x10000), "(out)");
	image_free(i);
}

TEST(module_offsets_count_from_its_base)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, "mod-a", 0xffffffffc0000000, &i), 0);
	ck_assert_str_eq(name_at(i, 0), "start_a");
	ck_assert_str_eq(name_at(i, 0x3f), "start_a");
	ck_assert_str_eq(name_at(i, 0x40), "(out)");
	ck_assert_str_eq(name_at(i, 0x80), "mycrate::foo::bar");
	image_free(i);
	/* Modules are not sorted. */
	ck_assert_int_eq(open_list(list, sizeof(list) - 1, "mod_b", 0xffffffffc0001000, &i), 0);
	ck_assert_str_eq(name_at(i, 0x107f), "start_b");
	ck_assert_str_eq(name_at(i, 0x1080), "helper");
	ck_assert_str_eq(name_at(i, 0xfff), "(out)");
	image_free(i);
}

TEST(module_file_names_may_have_dashes)
{
	struct image *i;

	ck_assert_int_eq(open_list(list, sizeof(list) - 1, "mod-b", 0xffffffffc0002000, &i), 0);
	ck_assert_str_eq(name_at(i, 0), "start_b");
	image_free(i);
}

TEST(unknown_module_has_no_symbols)
{
	static const char *const modules[] = {"mod", "mod_bb", "", "[mod_b]"};

	for (size_t k = 0; k < sizeof(modules) / sizeof(*modules); k++) {
		struct image *i;
		ck_assert_int_eq(open_list(list, sizeof(list) - 1, modules[k], 0, &i), 0);
		ck_assert(!image_has_symbols(i));
		ck_assert_str_eq(name_at(i, 0), "(none)");
		image_free(i);
	}
}

TEST(labels_are_no_names_and_end_nothing)
{
	static const char text[] = "ffffffff80000000 T _stext\n"
				   "ffffffff80000010 t .L0 \n"
				   "ffffffff80000020 t $xrv64i2p1\n"
				   "ffffffff80000030 t $d\n"
				   "ffffffff80000040 T $dollar\n"
				   "ffffffffc0000000 t first\t[mod]\n"
				   "ffffffffc0000010 t .L0 \t[mod]\n"
				   "ffffffffc0000018 t .LVL1\t[mod]\n"
				   "ffffffffc0000020 t .text_of_a_compiler\t[mod]\n"
				   "ffffffffc0000030 t .L\n"
				   "ffffffffc0000030 t $\n"
				   ".L0 t\n";
	struct image *i;

	ck_assert_int_eq(open_list(text, sizeof(text) - 1, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0x3f), "_stext");
	image_free(i);
	ck_assert_int_eq(open_list(text, sizeof(text) - 1, "mod", 0xffffffffc0000000, &i), 0);
	ck_assert_str_eq(name_at(i, 0x1f), "first");
	ck_assert_str_eq(name_at(i, 0x20), ".text_of_a_compiler");
	image_free(i);
}

TEST(one_reading_serves_kernel_and_modules)
{
	int fd = file_of(list, sizeof(list) - 1);
	struct kallsyms *k;
	struct image *kernel, *a, *b;

	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	close(fd);
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	ck_assert_int_eq(image_open_kallsyms(k, NULL, 0, &kernel), 0);
	ck_assert_int_eq(image_open_kallsyms(k, "mod_a", 0xffffffffc0000000, &a), 0);
	ck_assert_int_eq(image_open_kallsyms(k, "mod_b", 0xffffffffc0002000, &b), 0);
	ck_assert_ptr_null(kallsyms_find(k, "mod_c"));
	kallsyms_unref(k);
	image_free(a);
	ck_assert_str_eq(name_at(kernel, 0x100), "do_one");
	image_free(kernel);
	ck_assert_str_eq(name_at(b, 0x80), "helper");
	image_free(b);
}

TEST(modules_are_read_when_one_is_asked_for)
{
	int fd = file_of(list, sizeof(list) - 1);
	struct kallsyms *k;

	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	close(fd);
	ck_assert_uint_eq(kallsyms_stext(k), 0xffffffff81000000);
	ck_assert_ptr_nonnull(kallsyms_find(k, NULL));
	ck_assert_ptr_null(kallsyms_find(k, "mod_b"));
	ck_assert_ptr_null(kallsyms_find(k, "mod-a"));
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	ck_assert_uint_eq(kallsyms_find(k, "mod_b")->n, 2);
	ck_assert_uint_eq(kallsyms_find(k, "mod-a")->n, 3);
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0); /* once is enough */
	ck_assert_uint_eq(kallsyms_find(k, "mod_b")->n, 2);
	kallsyms_unref(k);
}

/* A list that takes several reads, of modules with 4,000 functions each. */
static size_t long_list(char *text, size_t size, const char *const *module, unsigned n_modules)
{
	size_t n = (size_t)snprintf(text, size, "ffffffff81000000 T _stext\n");

	for (unsigned m = 0; m < n_modules; m++)
		for (unsigned k = 0; k < 4000; k++)
			n += (size_t)snprintf(text + n, size - n, "%016llx t %s_%u\t[%s]\n",
				0xffffffffc0000000ull + (module[m][0] * 4000 + k) * 16, module[m],
				k, module[m]);
	return n;
}

/* Reads the first part of one list and the second of another. */
static struct kallsyms *read_both(
	const char *const *before, unsigned n_before, const char *const *after, unsigned n_after)
{
	size_t size = 1u << 20;
	char *text = malloc(size);
	struct kallsyms *k;

	ck_assert_ptr_nonnull(text);
	int fd = file_of(text, long_list(text, size, before, n_before));
	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	size_t n = long_list(text, size, after, n_after);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, n, 0), (ssize_t)n);
	close(fd);
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	free(text);
	return k;
}

static void expect_module(struct kallsyms *k, const char *module)
{
	struct image *i;
	char first[16], last[16];

	ck_assert_int_eq(
		image_open_kallsyms(k, module, 0xffffffffc0000000ull + module[0] * 64000ull, &i),
		0);
	snprintf(first, sizeof(first), "%s_0", module);
	snprintf(last, sizeof(last), "%s_3999", module);
	ck_assert_str_eq(name_at(i, 0), first);
	ck_assert_str_eq(name_at(i, 3999 * 16), last);
	image_free(i);
}

TEST(modules_that_stay_between_the_two_parts_are_whole)
{
	static const char *const modules[] = {"a", "b", "c"};
	struct kallsyms *k = read_both(modules, 3, modules, 3);

	for (int m = 0; m < 3; m++) {
		ck_assert_uint_eq(kallsyms_find(k, modules[m])->n, 4000);
		expect_module(k, modules[m]);
	}
	kallsyms_unref(k);
}

/* The kernel lists the newest module first, so what was read is now of another. */
TEST(modules_that_come_or_go_between_the_two_parts_are_no_mixture)
{
	static const char *const both[] = {"b", "a"};
	struct kallsyms *k = read_both(both + 1, 1, both, 2);

	ck_assert_uint_eq(kallsyms_find(k, "b")->n, 4000);
	expect_module(k, "b");
	expect_module(k, "a");
	kallsyms_unref(k);

	k = read_both(both, 2, both + 1, 1);
	ck_assert_ptr_null(kallsyms_find(k, "b"));
	ck_assert_uint_eq(kallsyms_find(k, "a")->n, 4000);
	expect_module(k, "a");
	kallsyms_unref(k);
}

/* Puts another list into the file, as the kernel does when modules come or go. */
static void replace_list(int fd, const char *const *module, unsigned n_modules)
{
	size_t size = 1u << 20;
	char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	size_t n = long_list(text, size, module, n_modules);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, n, 0), (ssize_t)n);
	free(text);
}

/* The list is read from this descriptor, whose contents change meanwhile. */
static struct kallsyms *read_first_part(int fd, const char *const *module, unsigned n_modules)
{
	struct kallsyms *k;

	ck_assert_int_ge(fd, 0);
	replace_list(fd, module, n_modules);
	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	return k;
}

TEST(modules_behind_the_wanted_one_are_not_read)
{
	static const char *const modules[] = {"a", "b", "c", "d", "e"};
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct kallsyms *k = read_first_part(fd, modules, 5);

	ck_assert_int_eq(kallsyms_read_module(k, "b"), 0);
	ck_assert(!kallsyms_is_whole(k));
	const struct kernel_symbols *b = kallsyms_find(k, "b");
	ck_assert_uint_eq(b->n, 4000);
	ck_assert_uint_eq(kallsyms_find(k, "a")->n, 4000);
	ck_assert_ptr_null(kallsyms_find(k, "c"));
	expect_module(k, "b");

	ck_assert_int_eq(kallsyms_read_module(k, "a"), 0); /* is there */
	ck_assert_ptr_null(kallsyms_find(k, "c"));
	ck_assert_int_eq(kallsyms_read_module(k, "missing"), 0);
	ck_assert(kallsyms_is_whole(k));
	ck_assert_ptr_eq(kallsyms_find(k, "b"), b);
	for (int m = 0; m < 5; m++)
		expect_module(k, modules[m]);
	kallsyms_unref(k);
	close(fd);
}

/* An image of it may be in use. */
TEST(a_module_that_was_read_stays_when_others_come_and_go)
{
	static const char *const before[] = {"d", "c", "b", "a"};
	static const char *const after[] = {"f", "e", "b", "a"};
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct kallsyms *k = read_first_part(fd, before, 4);

	ck_assert_int_eq(kallsyms_read_module(k, "d"), 0);
	const struct kernel_symbols *d = kallsyms_find(k, "d");
	ck_assert_ptr_null(kallsyms_find(k, "b"));
	replace_list(fd, after, 4);
	ck_assert_int_eq(kallsyms_read_module(k, "b"), 0);
	ck_assert_ptr_eq(kallsyms_find(k, "d"), d);
	expect_module(k, "d");
	expect_module(k, "b");
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	expect_module(k, "a");
	ck_assert_uint_eq(kallsyms_find(k, "a")->n, 4000);
	kallsyms_unref(k);
	close(fd);
}

TEST(more_modules_than_there_can_be_are_left_out)
{
	size_t size = 48 * (KALLSYMS_MODULES_MAX + 2), n = 0;
	char *text = malloc(size);
	struct kallsyms *k;

	ck_assert_ptr_nonnull(text);
	for (unsigned m = 0; m <= KALLSYMS_MODULES_MAX; m++)
		n += (size_t)snprintf(text + n, size - n, "%016llx t f\t[m%u]\n",
			0xffffffffc0000000ull + m * 4096, m);
	int fd = file_of(text, n);
	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	close(fd);
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	ck_assert_ptr_nonnull(kallsyms_find(k, "m0"));
	char last[16];
	snprintf(last, sizeof(last), "m%u", KALLSYMS_MODULES_MAX - 1);
	ck_assert_ptr_nonnull(kallsyms_find(k, last));
	snprintf(last, sizeof(last), "m%u", KALLSYMS_MODULES_MAX);
	ck_assert_ptr_null(kallsyms_find(k, last));
	kallsyms_unref(k);
	free(text);
}

TEST(a_module_whose_name_is_too_long_takes_nobody_elses)
{
	char text[512];
	struct kallsyms *k;
	int n = snprintf(text, sizeof(text),
		"ffffffffc0000000 t f\t[mod]\n"
		"ffffffffc0001000 t g\t[%0100d]\nffffffffc0002000 t h\t[next]\n",
		7);

	int fd = file_of(text, (size_t)n);
	ck_assert_int_eq(kallsyms_read(fd, &k), 0);
	close(fd);
	ck_assert_int_eq(kallsyms_read_module(k, NULL), 0);
	const struct kernel_symbols *mod = kallsyms_find(k, "mod");
	ck_assert_uint_eq(mod->n, 1);
	ck_assert_ptr_nonnull(kallsyms_find(k, "next"));
	kallsyms_unref(k);
}

TEST(hidden_addresses_give_no_symbols)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 T do_one\n";
	struct image *i;

	ck_assert_int_eq(open_list(hidden, sizeof(hidden) - 1, NULL, 0, &i), 0);
	ck_assert(!image_has_symbols(i));
	ck_assert_str_eq(name_at(i, 0), "(none)");
	image_free(i);
}

TEST(without_stext_the_given_base_counts)
{
	static const char text[] = "ffff800080010000 T start\nffff800080010100 T next\n";
	struct image *i;

	ck_assert_int_eq(open_list(text, sizeof(text) - 1, NULL, 0xffff800080010000, &i), 0);
	ck_assert_str_eq(name_at(i, 0xff), "start");
	ck_assert_str_eq(name_at(i, 0x100), "next");
	image_free(i);
}

static const char *const garbage[] = {"\n", "\n\n\n", "garbage\n", "T\n", "ffff T\n", "ffff T \n",
	"ffffffff81000000T f\n", "ffffffff81000000  f\n", "11112222333344445 T overflow\n",
	"ffffffff81000000 TT f\n", "ffffffff81000000 T f\t\n", "ffffffff81000000 T f\t[mod\n",
	"ffffffff81000000 T f\tmod]\n", "0x T f\n", "zz T f\n", "ffffffff81000000 T f"};

TEST(garbage_is_malformed, .times = sizeof(garbage) / sizeof(*garbage))
{
	struct image *i = NULL;

	ck_assert_int_eq(open_list(garbage[_i], strlen(garbage[_i]), NULL, 0, &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
}

TEST(bad_lines_among_good_ones_are_skipped)
{
	static const char text[] = "ffffffff81000000 T _stext\nrubbish\n\nffffffff81000010 T\n"
				   "ffffffff81000020 T next\nffffffff81000030 T half_a_li";
	struct image *i;

	ck_assert_int_eq(open_list(text, sizeof(text) - 1, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0x1f), "_stext");
	ck_assert_str_eq(name_at(i, 0x3f), "next");
	image_free(i);
}

TEST(truncation_at_every_length_is_survived)
{
	for (size_t n = 0; n < sizeof(list); n++) {
		struct image *i = NULL;
		int r = open_list(list, n, NULL, 0, &i);
		ck_assert(r == 0 || r == IMAGE_MALFORMED);
		if (r)
			continue;
		const char *name = name_at(i, 0x100);
		ck_assert(strcmp(name, "do_one") == 0 || name[0] == '(' || name[0] == '_');
		image_free(i);
	}
}

TEST(a_line_longer_than_the_buffer_is_skipped)
{
	size_t n = 200000;
	char *text = malloc(n);
	struct image *i;

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', n);
	static const char before[] = "ffffffff81000000 T _stext\nffffffff81000010 T ";
	static const char after[] = "\nffffffff81000020 T next\n";
	memcpy(text, before, sizeof(before) - 1);
	memcpy(text + n - (sizeof(after) - 1), after, sizeof(after) - 1);
	ck_assert_int_eq(open_list(text, n, NULL, 0, &i), 0);
	ck_assert_str_eq(name_at(i, 0x10), "_stext");
	ck_assert_str_eq(name_at(i, 0x20), "next");
	image_free(i);
	free(text);
}

TEST(lines_across_every_buffer_boundary_are_whole)
{
	/* 6,000 lines of rising length cross the 64 KiB buffer at many positions. */
	size_t size = 1 << 20, n = 0;
	char *text = malloc(size);
	struct image *i;

	ck_assert_ptr_nonnull(text);
	n += (size_t)snprintf(text, size, "ffffffff81000000 T _stext\n");
	for (int k = 1; k < 6000; k++)
		n += (size_t)snprintf(text + n, size - n, "%016llx T f%0*d\n",
			0xffffffff81000000ull + (unsigned)k * 16, k % 97 + 5, k);
	ck_assert_int_eq(open_list(text, n, NULL, 0, &i), 0);
	for (int k = 1; k < 6000; k++) {
		char expected[128];
		snprintf(expected, sizeof(expected), "f%0*d", k % 97 + 5, k);
		ck_assert_str_eq(name_at(i, (unsigned)k * 16 + 15), expected);
	}
	image_free(i);
	free(text);
}

TEST(a_closed_descriptor_is_an_error)
{
	struct kallsyms *k = NULL;

	ck_assert_int_eq(kallsyms_read(-1, &k), -EBADF);
	ck_assert_ptr_null(k);
}

TEST(this_kernel_names_its_functions)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long addr, stext = 0, wanted = 0;
	char type, name[256];

	if (!file) {
		printf("SKIP this_kernel_names_its_functions: no /proc/kallsyms\n");
		return;
	}
	while (fscanf(file, "%llx %c %255s%*[^\n]", &addr, &type, name) == 3 &&
		!(stext && wanted)) {
		if (strcmp(name, "_stext") == 0)
			stext = addr;
		if (strcmp(name, "vfs_read") == 0)
			wanted = addr;
	}
	fclose(file);
	if (!stext || !wanted) {
		printf("SKIP this_kernel_names_its_functions: addresses are hidden "
		       "(kernel.kptr_restrict)\n");
		return;
	}

	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	struct image *i;
	struct kallsyms *kernel;
	ck_assert_int_eq(kallsyms_read(fd, &kernel), 0);
	ck_assert_int_eq(image_open_kallsyms(kernel, NULL, 0, &i), 0);
	kallsyms_unref(kernel);
	ck_assert_str_eq(name_at(i, wanted - stext), "vfs_read");
	ck_assert_str_eq(name_at(i, wanted - stext + 1), "vfs_read");
	image_free(i);
	close(fd);
}
