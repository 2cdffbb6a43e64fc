/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The starts of functions of Debian's libraries, by call frame information, are those of their symbols; and call frame
 * information that no compiler makes. */

#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/namer/function_starts.h"
#include "proto/base/memory.h"
#include "tests/unit/daemon/namer/made_elf.h"
#include "tests/unit/test.h"

EACH_TEST(.seconds = 120);

#define FILES_MAX 200
#define FILE_BYTES_MAX (8u << 20)

struct tally {
	/* symbols of functions: whose start is theirs, another, not known */
	size_t n_files, n_same, n_other, n_none;
};

static bool is_function(const GElf_Sym *symbol, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0 ||
		symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
		return false;
	section = elf_getscn(elf, symbol->st_shndx);
	return section && gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR;
}

static void compare_symbols(Elf *elf, Elf_Scn *section, const struct spans *starts, struct tally *t)
{
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(section, NULL);

	if (!data || !gelf_getshdr(section, &header) || header.sh_entsize == 0)
		return;
	for (size_t i = 0; i < data->d_size / header.sh_entsize; i++) {
		GElf_Sym symbol;
		struct span found;
		if (!gelf_getsym(data, (int)i, &symbol) || !is_function(&symbol, elf))
			continue;
		if (!spans_find(starts, symbol.st_value + symbol.st_size / 2, &found))
			t->n_none++;
		else if (found.start == symbol.st_value)
			t->n_same++;
		else
			t->n_other++;
	}
}

static void compare_file(const char *path, uint32_t type, struct tally *t)
{
	struct spans starts = {0};
	Elf_Scn *section = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	GElf_Ehdr file;

	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &file)) {
		ck_assert_int_eq(function_starts_read(elf, &starts), 0);
		while ((section = elf_nextscn(elf, section))) {
			GElf_Shdr header;
			if (gelf_getshdr(section, &header) && header.sh_type == type)
				compare_symbols(elf, section, &starts, t);
		}
		t->n_files++;
	}
	spans_clear(&starts);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

static void compare_folder(const char *folder, struct tally *t)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	while (d && t->n_files < FILES_MAX && (entry = readdir(d))) {
		char path[512];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strstr(entry->d_name, ".so") && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
			st.st_size < FILE_BYTES_MAX)
			compare_file(path, SHT_DYNSYM, t);
	}
	if (d)
		closedir(d);
}

static void say(const char *what, const struct tally *t)
{
	printf("%s: %zu files; of %zu functions %zu start at their symbol, %zu elsewhere, %zu "
	       "nowhere\n",
		what, t->n_files, t->n_same + t->n_other + t->n_none, t->n_same, t->n_other,
		t->n_none);
}

/* Functions written in assembly may have several symbols in one entry, or no entry. */
TEST(starts_of_libraries_are_their_symbols)
{
	static const char *const folder[] = {"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu", "/usr/lib/riscv64-linux-gnu"};
	struct tally t = {0};

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof(folder) / sizeof(*folder); i++)
		compare_folder(folder[i], &t);
	say("libraries", &t);
	ck_assert_uint_ge(t.n_files, 24);
	ck_assert_uint_ge(t.n_same, 1000);
	ck_assert_uint_lt(100 * (t.n_other + t.n_none), t.n_same);
}

/* Local functions, too. */
TEST(starts_of_this_program_are_its_symbols)
{
	struct tally t = {0};

	elf_version(EV_CURRENT);
	compare_file("/proc/self/exe", SHT_SYMTAB, &t);
	say("this program", &t);
	ck_assert_uint_ge(t.n_same, 100);
	ck_assert_uint_lt(50 * (t.n_other + t.n_none), t.n_same);
}

/* --- made by hand ----------------------------------------------------------------------------- */

struct made_frames {
	uint8_t bytes[1024];
	size_t n;
};

static void put(struct made_frames *m, uint64_t value, size_t n)
{
	memcpy(m->bytes + m->n, &value, n);
	m->n += n;
}

/* .debug_frame with an entry of each start and length. */
static void put_entries(struct made_frames *m, const uint64_t (*entry)[2], size_t n)
{
	static const uint8_t cie[] = {12, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16,
		/* DW_CFA_def_cfa */ 0x0c, 7, 8};

	memcpy(m->bytes, cie, sizeof(cie));
	m->n = sizeof(cie);
	for (size_t i = 0; i < n; i++) {
		put(m, 4 + 8 + 8, 4);
		put(m, 0, 4);
		put(m, entry[i][0], 8);
		put(m, entry[i][1], 8);
	}
}

/* An image of a file with one symbol, for the first 16 bytes, and that call frame information. */
static struct image *image_of(const struct made_frames *m)
{
	static const struct symbol_line line[] = {FUNCTION("first", 0, 16)};
	static const char was[] = ".gnu_debugdata", is[sizeof(was)] = ".debug_frame";
	struct image *image = NULL;
	struct made_elf *e = calloc(1, sizeof(*e));

	ck_assert_ptr_nonnull(e);
	made_elf_fill(e, line, COUNT(line), m->bytes, m->n);
	memcpy(memmem(e->bytes, e->n, was, sizeof(was)), is, sizeof(is));
	ck_assert_int_eq(made_elf_open(e->bytes, e->n, &image), 0);
	free(e);
	return image;
}

static void expect(struct image *i, uint64_t at, int outcome, uint64_t addr)
{
	struct image_naming naming;

	image_name(i, TEXT + at, &naming);
	ck_assert_int_eq(naming.outcome, outcome);
	ck_assert_uint_eq(naming.addr, addr);
}

TEST(code_without_a_symbol_is_placed_at_the_start_of_its_function)
{
	const uint64_t text = BASE + TEXT;
	const uint64_t entry[][2] = {{text, 16}, {text + 0x20, 0x40}, {text + 0x60, 0x10}};
	struct made_frames m;

	put_entries(&m, entry, COUNT(entry));
	struct image *i = image_of(&m);
	expect(i, 4, IMAGE_NAMED, text + 4);
	expect(i, 0x1f, IMAGE_OUT_OF_SYMBOL, text + 0x1f);
	expect(i, 0x20, IMAGE_PLACED, text + 0x20);
	expect(i, 0x5f, IMAGE_PLACED, text + 0x20);
	expect(i, 0x60, IMAGE_PLACED, text + 0x60);
	expect(i, 0x70, IMAGE_OUT_OF_SYMBOL, text + 0x70);
	image_free(i);
}

/* The later of two entries for one address holds; entries of no length, of too great a length, or that go around the
 * end of memory are none. */
TEST(entries_that_no_compiler_makes_are_bounded)
{
	const uint64_t text = BASE + TEXT;
	const uint64_t entry[][2] = {{0, UINT32_MAX}, {text + 0x20, 0x40}, {text + 0x30, 8},
		{text + 0x80, 0}, {text + 0x80, UINT64_MAX}, {text + 0x80, 1ull << 32},
		{UINT64_MAX - 4, 100}, {UINT64_MAX, 1}};
	struct made_frames m;

	put_entries(&m, entry, COUNT(entry));
	struct image *i = image_of(&m);
	expect(i, 0x28, IMAGE_PLACED, text + 0x20);
	expect(i, 0x30, IMAGE_PLACED, text + 0x30);
	expect(i, 0x80, IMAGE_PLACED, text + 0x60); /* the first one, from where the second ends */
	expect(i, 0x18, IMAGE_PLACED, 0);
	image_free(i);
}

TEST(a_section_that_is_cut_short_gives_what_is_before)
{
	const uint64_t text = BASE + TEXT;
	const uint64_t entry[][2] = {{text + 0x20, 0x10}, {text + 0x40, 0x10}};
	struct made_frames m;

	put_entries(&m, entry, COUNT(entry));
	m.n -= 6;
	struct image *i = image_of(&m);
	expect(i, 0x24, IMAGE_PLACED, text + 0x20);
	expect(i, 0x44, IMAGE_OUT_OF_SYMBOL, text + 0x44);
	image_free(i);
}
