/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Mini debug information: an ELF file packed into a section of another.
 */
#include <lzma.h>
#include <sys/mman.h>

#include "daemon/namer/mini_debug.h"
#include "tests/unit/daemon/namer/made_elf.h"
#include "tests/unit/test.h"

static const struct symbol_line two[] = {FUNCTION("f", 0x10, 0x20), FUNCTION("g", 0x40, 0x10)};

/* A stripped file with a section of `packed` bytes, or of the packed `lines` if NULL. */
static void make_mini(struct made_elf *e, const struct symbol_line *lines, size_t n_lines,
	uint8_t *packed, size_t *n_packed)
{
	struct made_elf inner;
	size_t n = 0;

	made_elf_fill(&inner, lines, n_lines, "", 0);
	ck_assert_int_eq(lzma_easy_buffer_encode(
				 6, LZMA_CHECK_CRC32, NULL, inner.bytes, inner.n, packed, &n, 4096),
		LZMA_OK);
	*n_packed = n;
	made_elf_fill(e, NULL, 0, packed, n);
	e->section[S_SYMTAB].sh_type = SHT_PROGBITS;
}

EACH_TEST(.seconds = 120);

TEST(mini_debug_information_is_unpacked)
{
	struct made_elf e;
	struct image *i = NULL;
	uint8_t packed[4096];
	size_t n;

	make_mini(&e, two, COUNT(two), packed, &n);
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "g");
	image_free(i);
}

TEST(broken_mini_debug_information_is_no_symbols)
{
	struct made_elf e;
	struct image *i;
	uint8_t packed[4096];
	size_t n;

	make_mini(&e, two, COUNT(two), packed, &n);
	for (size_t cut = 0; cut < n; cut++) {
		made_elf_fill(&e, NULL, 0, packed, cut);
		ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
		ck_assert_str_eq(made_elf_symbol(i, 0x10), "(none)");
		image_free(i);
	}
	for (size_t k = 0; k < n; k++) {
		made_elf_fill(&e, NULL, 0, packed, n);
		e.bytes[e.section[S_EXTRA].sh_offset + k] ^= 0x55;
		made_elf_survives(e.bytes, e.n);
	}
}

TEST(a_bomb_in_mini_debug_information_is_given_up)
{
	size_t n = MINI_DEBUG_BYTES_MAX + 1, n_packed = 0, size = 256 << 10;
	uint8_t *zeros = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *packed = malloc(size), *file = malloc(size + sizeof(struct made_elf));
	struct made_elf e;
	struct image *i = NULL;

	ck_assert(zeros != MAP_FAILED && packed && file);
	ck_assert_int_eq(lzma_easy_buffer_encode(
				 0, LZMA_CHECK_NONE, NULL, zeros, n, packed, &n_packed, size),
		LZMA_OK);
	made_elf_fill(&e, NULL, 0, "", 0);
	e.section[S_EXTRA].sh_offset = e.n;
	e.section[S_EXTRA].sh_size = n_packed;
	memcpy(file, e.bytes, e.n);
	memcpy(file + e.n, packed, n_packed);
	ck_assert_int_eq(made_elf_open(file, e.n + n_packed, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0), "(none)");
	image_free(i);
	free(file);
	free(packed);
	munmap(zeros, n);
}
