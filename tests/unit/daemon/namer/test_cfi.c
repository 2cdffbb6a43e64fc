/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Call frame information that a hostile file has, and what is left to elfutils. */

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/namer/table_file.h"
#include "daemon/namer/table_make.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define TABLE_BYTES_MAX ((size_t)16 << 20)
#define CODE 0x1000u /* the first address that an entry describes */

static const uint8_t e_ident[EI_NIDENT] = {
	ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};

/* A section that is written. */
struct written {
	uint8_t *at;
	size_t n;
};

static void put(struct written *w, uint64_t value, size_t n)
{
	memcpy(w->at + w->n, &value, n);
	w->n += n;
}

/* A CIE of .debug_frame with n bytes of instructions. */
static uint32_t put_cie(
	struct written *w, const char *augmentation, const uint8_t *instructions, size_t n)
{
	const uint32_t offset = (uint32_t)w->n;
	const size_t n_augmentation = strlen(augmentation) + 1;

	put(w, 4 + 1 + n_augmentation + 3 + n, 4);
	put(w, UINT32_MAX, 4);
	put(w, 1, 1); /* version */
	memcpy(w->at + w->n, augmentation, n_augmentation);
	w->n += n_augmentation;
	put(w, 1, 1);    /* factor of addresses */
	put(w, 0x78, 1); /* factor of offsets: -8 */
	put(w, 16, 1);   /* return address */
	memcpy(w->at + w->n, instructions, n);
	w->n += n;
	return offset;
}

static void put_fde(struct written *w, uint32_t cie, uint64_t start, uint64_t n_code)
{
	put(w, 4 + 8 + 8, 4);
	put(w, cie, 4);
	put(w, start, 8);
	put(w, n_code, 8);
}

static int make_for(uint32_t machine, const struct written *w, struct unwind_table **ret_table)
{
	Elf_Data data = {.d_buf = w->at, .d_size = w->n, .d_version = EV_CURRENT};
	const struct unwind_section section = {.data = &data};

	return unwind_table_make(
		&section, 1, NULL, 0, e_ident, machine, TABLE_BYTES_MAX, ret_table);
}

static int make(const struct written *w, struct unwind_table **ret_table)
{
	return make_for(EM_X86_64, w, ret_table);
}

static const uint8_t usual[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Entries that use two long CIEs in turn, which have the same place among the kept ones. */
TEST(long_cies_in_turn_do_not_take_quadratic_time)
{
	enum { N_INSTRUCTIONS = 1 << 20, N_FDES = 40000 };
	uint8_t *instructions = calloc(1, N_INSTRUCTIONS); /* DW_CFA_nop */
	struct written w = {.at = calloc(1, 3 * N_INSTRUCTIONS + N_FDES * 24)};
	struct unwind_table *t = NULL;
	uint32_t cie[2];

	ck_assert(instructions && w.at);
	memcpy(instructions, usual, sizeof(usual));
	for (size_t i = 0; i < 2; i++) {
		while (i > 0 &&
			(w.n - cie[0]) % 128) /* each DW_CFA_nop is 1 byte more of the first */
			put(&w, 0, 1);
		if (i > 0) {
			const uint32_t n = (uint32_t)(w.n - cie[0] - 4);
			memcpy(w.at + cie[0], &n, 4);
		}
		cie[i] = put_cie(&w, "", instructions, N_INSTRUCTIONS);
	}
	for (uint32_t i = 0; i < N_FDES; i++)
		put_fde(&w, cie[i % 2], CODE + 16 * i, 16);
	const double begin = cpu_seconds();
	ck_assert_int_eq(make(&w, &t), -EOPNOTSUPP);
	ck_assert_double_lt(cpu_seconds() - begin, 3);
	free(t);
	free(w.at);
	free(instructions);
}

/* The address space, as one function; and as thousands. */
TEST(huge_entries_take_bounded_memory, .times = 2)
{
	struct written w = {.at = calloc(1, 1 << 20)};
	struct unwind_table *t = NULL;

	ck_assert_ptr_nonnull(w.at);
	const uint32_t cie = put_cie(&w, "", usual, sizeof(usual));
	for (uint64_t i = 0; i < (_i ? 10000 : 1); i++)
		put_fde(&w, cie, CODE + (i << 40), UINT32_MAX);
	const int r = make(&w, &t);
	ck_assert(r == -E2BIG || r == 0);
	ck_assert(r < 0 || unwind_table_bytes(t) <= TABLE_BYTES_MAX);
	free(t);
	free(w.at);
}

/* Two megabytes of instructions, each with a rule of its own. */
TEST(more_rules_than_a_table_has_numbers_for_are_refused)
{
	enum { N_RULES = 400000 };
	struct written w = {.at = calloc(1, 6 * N_RULES)};
	struct unwind_table *t = NULL;

	ck_assert_ptr_nonnull(w.at);
	const uint32_t cie = put_cie(&w, "", usual, sizeof(usual));
	const size_t begin = w.n;
	put_fde(&w, cie, CODE, N_RULES);
	for (uint32_t i = 0; i < N_RULES; i++) {
		put(&w, DW_CFA_advance_loc | 1, 1);
		put(&w, DW_CFA_def_cfa_offset, 1);
		put(&w, 0x80 | (i & 0x7f), 1);
		put(&w, 0x80 | (i >> 7 & 0x7f), 1);
		put(&w, i >> 14, 1);
	}
	const uint32_t n = (uint32_t)(w.n - begin - 4);
	memcpy(w.at + begin, &n, 4);
	const double before = cpu_seconds();
	ck_assert_int_eq(make(&w, &t), -E2BIG);
	ck_assert_double_lt(cpu_seconds() - before, 3);
	free(w.at);
}

TEST(entries_of_an_unknown_augmentation_are_left_to_elfutils)
{
	struct written w = {.at = calloc(1, 1024)};
	struct unwind_table *t = NULL;

	ck_assert_ptr_nonnull(w.at);
	put_fde(&w, put_cie(&w, "X", usual, sizeof(usual)), CODE, 16);
	ck_assert_int_eq(make(&w, &t), -EOPNOTSUPP);
	free(w.at);
}

/* The vdso of riscv64 describes sigreturn's code by nothing but a signal's CIE. */
TEST(signal_on_riscv64_is_left_by_its_frame)
{
	static const uint8_t initial[] = {DW_CFA_def_cfa, 2, 0};
	struct written w = {.at = calloc(1, 1024)};
	struct unwind_table *t = NULL;

	ck_assert_ptr_nonnull(w.at);
	const uint32_t signal = put_cie(&w, "S", initial, sizeof(initial));
	w.at[signal + 4 + 4 + 1 + sizeof("S") + 2] = 1; /* return address in ra */
	put_fde(&w, signal, CODE, 8);
	const uint32_t plain = put_cie(&w, "", initial, sizeof(initial));
	w.at[plain + 4 + 4 + 1 + sizeof("") + 2] = 1;
	put_fde(&w, plain, CODE + 8, 8);
	ck_assert_int_eq(make_for(EM_RISCV, &w, &t), 0);
	const struct unwind_rule *rule = unwind_table_find(t, CODE + 4);
	ck_assert(rule->is_signal);
	ck_assert_uint_eq(rule->cfa, UNWIND_AT_SP);
	ck_assert_int_eq(rule->cfa_offset, 320);
	ck_assert_uint_eq(rule->ra, UNWIND_AT_SP);
	ck_assert_int_eq(rule->ra_offset, 304);
	ck_assert_uint_eq(rule->fp, UNWIND_AT_SP);
	ck_assert_int_eq(rule->fp_offset, 368);
	rule = unwind_table_find(t, CODE + 8);
	ck_assert(!rule->is_signal);
	ck_assert_uint_eq(rule->cfa, UNWIND_IN_SP);
	ck_assert_uint_eq(rule->ra, UNWIND_SAME);
	free(t);
	free(w.at);
}

/* Code whose entry cannot be read is not code without an entry. */
TEST(entries_of_an_unknown_kind_are_left_to_elfutils)
{
	static const uint8_t unknown[] = {DW_CFA_def_cfa, 7, 8, 0x3e};
	struct written w = {.at = calloc(1, 1024)};
	struct unwind_table *t = NULL;

	ck_assert_ptr_nonnull(w.at);
	put_fde(&w, put_cie(&w, "", unknown, sizeof(unknown)), CODE, 16);
	put_fde(&w, put_cie(&w, "", usual, sizeof(usual)), CODE + 16, 16);
	ck_assert_int_eq(make(&w, &t), 0);
	const struct unwind_rule *rule = unwind_table_find(t, CODE);
	ck_assert_ptr_nonnull(rule);
	ck_assert_uint_eq(rule->cfa, UNWIND_UNKNOWN);
	rule = unwind_table_find(t, CODE + 16);
	ck_assert_ptr_nonnull(rule);
	ck_assert_uint_eq(rule->cfa, UNWIND_IN_SP);
	ck_assert_ptr_null(unwind_table_find(t, CODE + 32));
	free(t);
	free(w.at);
}

TEST(a_section_of_less_than_a_length_has_no_entries)
{
	for (size_t n = 1; n < 8; n++) {
		struct written w = {.at = calloc(1, n), .n = n};
		struct unwind_table *t = NULL;
		ck_assert_ptr_nonnull(w.at);
		memset(w.at, 1, n);
		ck_assert_int_eq(make(&w, &t), 0);
		ck_assert_uint_eq(t->n_rows, 0);
		ck_assert_int_eq(unwind_table_check(t), 0);
		free(t);
		free(w.at);
	}
}

/* A parser unwinds before it names: nothing else has begun to use libelf. */
TEST(the_first_file_of_a_process_has_a_table)
{
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unwind_table *t = NULL;

#if defined(__x86_64__)
	ck_assert_int_eq(table_of_file(fd, EM_X86_64, NULL, 0, TABLE_BYTES_MAX, &t), 0);
	ck_assert_int_eq(unwind_table_check(t), 0);
	ck_assert_uint_eq(t->n_segments, 1);
#endif
	free(t);
}
