/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* At every address of Debian's programs and libraries, a table says what elfutils says, or says that it does not know. */

#include <dirent.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/namer/table_make.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

EACH_TEST(.seconds = 120);

#ifdef __SANITIZE_ADDRESS__
#define FILES_MAX 80
#else
#define FILES_MAX 250
#endif
#define FILE_BYTES_MAX (4u << 20)
#define TABLE_BYTES_MAX ((size_t)32 << 20)

static int ra_number, sp_number, fp_number, base_number; /* base_number: -1: none */

struct tally {
	size_t n_files, n_addresses, n_not_described, n_unsupported, n_wrong;
};

/* A place by elfutils' operations: of what it has no place for, none. */
#define NO_PLACE 255

static int place_at(unsigned int number)
{
	return (int)number == sp_number   ? UNWIND_AT_SP
	       : (int)number == fp_number ? UNWIND_AT_FP
					  : NO_PLACE;
}

static void true_value(Dwarf_Frame *frame, int number, uint8_t *ret_place, int32_t *ret_offset)
{
	Dwarf_Op memory[3], *op;
	size_t n;

	*ret_place = NO_PLACE;
	*ret_offset = 0;
	if (dwarf_frame_register(frame, number, memory, &op, &n))
		return;
	if (n == 0) { /* Source: libdw.h, dwarf_frame_register */
		*ret_place = op == memory ? UNWIND_UNKNOWN : UNWIND_SAME;
		return;
	}
	const bool has_cfa =
		op[0].atom == DW_OP_call_frame_cfa; /* is pushed before an expression, too */
	if (n == 1 && has_cfa) {
		*ret_place = UNWIND_AT_CFA;
	} else if (n == 2 && has_cfa && op[1].atom == DW_OP_plus_uconst) {
		*ret_place = UNWIND_AT_CFA;
		*ret_offset = (int32_t)op[1].number;
	} else if (n == 1u + has_cfa && op[has_cfa].atom >= DW_OP_breg0 &&
		   op[has_cfa].atom <= DW_OP_breg31) {
		*ret_place = (uint8_t)place_at(op[has_cfa].atom - DW_OP_breg0);
		*ret_offset = (int32_t)op[has_cfa].number;
	} else if (n == 1 && op[0].atom == DW_OP_regx) {
		*ret_place = UNWIND_IN_REGISTER;
		*ret_offset = (int32_t)op[0].number;
	}
}

/* It is followed where that is simple; without it a caller is found by elfutils. Where nothing is said of it, functions
 * keep it, which elfutils knows of rbp, not of rbx. Source: psABI of x86-64, 3.2.1. */
static void true_base(Dwarf_Frame *frame, struct unwind_rule *rule)
{
	int32_t offset;

	if (base_number < 0)
		return;
	true_value(frame, base_number, &rule->base, &offset);
	if (rule->base == UNWIND_UNKNOWN)
		rule->base = UNWIND_SAME;
	else if (rule->base == NO_PLACE || rule->base == UNWIND_IN_REGISTER)
		rule->base = UNWIND_UNKNOWN;
	else
		rule->base_offset = (int16_t)offset;
}

static void true_cfa(Dwarf_Frame *frame, struct unwind_rule *rule)
{
	Dwarf_Op *op;
	size_t n;

	rule->cfa = NO_PLACE;
	if (dwarf_frame_cfa(frame, &op, &n) || n == 0)
		return;
	const bool by_number = op[0].atom == DW_OP_bregx;
	const unsigned int number =
		by_number ? (unsigned int)op[0].number : (unsigned int)op[0].atom - DW_OP_breg0;
	rule->cfa_offset = (int32_t)(by_number ? op[0].number2 : op[0].number);
	if (n == 1) {
		rule->cfa = (int)number == sp_number   ? UNWIND_IN_SP
			    : (int)number == fp_number ? UNWIND_IN_FP
						       : UNWIND_IN_REGISTER;
		rule->number = rule->cfa == UNWIND_IN_REGISTER ? (uint8_t)number : 0;
	} else if (op[1].atom == DW_OP_deref &&
		   (n == 2 || (n == 3 && op[2].atom == DW_OP_plus_uconst))) {
		rule->cfa = (uint8_t)place_at(number);
		rule->cfa_more = n == 3 ? (int32_t)op[2].number : 0;
	} else if (n == 9 && op[1].atom == DW_OP_breg16) {
		rule->cfa = UNWIND_IN_PLT;
		rule->number = op[4].atom - DW_OP_lit0;
	}
}

/* What elfutils says of a row, once for all of its addresses. */
static struct unwind_rule truth_of(Dwarf_Frame *frame, bool is_signal)
{
	struct unwind_rule truth = {.is_signal = is_signal};

	true_value(frame, ra_number, &truth.ra, &truth.ra_offset);
	true_value(frame, fp_number, &truth.fp, &truth.fp_offset);
	true_cfa(frame, &truth);
	true_base(frame, &truth);
	return truth;
}

static bool is_true(const struct unwind_rule *rule, const struct unwind_rule *truth, int ra)
{
	if (ra != ra_number)
		return false;
	if (rule->ra == UNWIND_NONE)
		return truth->ra == UNWIND_UNKNOWN;
	return memcmp(rule, truth, sizeof(*truth)) == 0;
}

static void compare_text(const char *path, Dwarf_CFI *cfi, const struct unwind_table *t,
	const GElf_Shdr *text, struct tally *tally)
{
	const uint64_t end = text->sh_addr + text->sh_size;

	for (uint64_t at = text->sh_addr; at < end;) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to = at + 1;
		bool is_signal = false;
		int ra = -1;

		if (dwarf_cfi_addrframe(cfi, at, &frame) == 0)
			ra = dwarf_frame_info(frame, &from, &to, &is_signal);
		const struct unwind_rule truth =
			frame ? truth_of(frame, is_signal) : (struct unwind_rule){};
		for (to = to > at && to < end ? to : at + 1; at < to; at++) {
			const struct unwind_rule *rule = unwind_table_find(t, at);
			tally->n_addresses++;
			tally->n_not_described += !frame;
			tally->n_unsupported += rule && rule->cfa == UNWIND_UNKNOWN;
			if (frame ? rule && (rule->cfa == UNWIND_UNKNOWN ||
						    is_true(rule, &truth, ra))
				  : !rule)
				continue;
			if (tally->n_wrong++ < 5)
				printf("%s: another rule at %" PRIx64 "\n", path, at);
		}
		free(frame);
	}
}

static void compare_file(const char *path, uint16_t machine, struct tally *tally)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	struct unwind_section section = {.is_eh = true};
	struct unwind_table *t = NULL;
	GElf_Ehdr header;
	GElf_Shdr s;
	size_t names;

	if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != machine ||
		elf_getshdrstrndx(elf, &names) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
		(header.e_type != ET_DYN && header.e_type != ET_EXEC)) {
		elf_end(elf);
		return;
	}
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
		if (gelf_getshdr(scn, &s) && s.sh_type != SHT_NOBITS &&
			!strcmp(elf_strptr(elf, names, s.sh_name) ?: "", ".eh_frame")) {
			section.data = elf_rawdata(scn, NULL);
			section.addr = s.sh_addr;
		}
	if (section.data && section.data->d_buf) {
		ck_assert_int_eq(
			unwind_table_make(&section, 1, NULL, 0, (const uint8_t *)header.e_ident,
				machine, TABLE_BYTES_MAX, &t),
			0);
		ck_assert_int_eq(unwind_table_check(t), 0);
		Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
		for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
			if (gelf_getshdr(scn, &s) && s.sh_flags & SHF_EXECINSTR &&
				s.sh_type != SHT_NOBITS)
				compare_text(path, cfi, t, &s, tally);
		dwarf_cfi_end(cfi);
		free(t);
		tally->n_files++;
	}
	elf_end(elf);
}

static void compare_folder(const char *folder, uint16_t machine, struct tally *tally)
{
	DIR *d = opendir(folder);

	for (struct dirent *e; d && (e = readdir(d)) && tally->n_files < FILES_MAX;) {
		char path[512];
		struct stat st;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < FILE_BYTES_MAX)
			compare_file(path, machine, tally);
	}
	if (d)
		closedir(d);
}

static void compare_machine(
	const char *name, uint16_t machine, int ra, int sp, int fp, const char *const folder[])
{
	struct tally tally = {};

	elf_version(EV_CURRENT);
	ra_number = ra;
	sp_number = sp;
	fp_number = fp;
	base_number = machine == EM_X86_64 ? UNWIND_BASE_X86 : -1;
	for (size_t i = 0; folder[i]; i++)
		compare_folder(folder[i], machine, &tally);
	if (tally.n_files == 0) {
		printf("SKIP %s: this machine has no files of it\n", name);
		return;
	}
	printf("%s: %zu files, %zu addresses; not described %.2f %%, unsupported %.4f %%, wrong "
	       "%zu\n",
		name, tally.n_files, tally.n_addresses,
		100.0 * (double)tally.n_not_described / (double)tally.n_addresses,
		100.0 * (double)tally.n_unsupported / (double)tally.n_addresses, tally.n_wrong);
	ck_assert_uint_eq(tally.n_wrong, 0);
	ck_assert_uint_lt(tally.n_unsupported, tally.n_addresses / 100);
}

/* Source: numbers of registers: System V psABI of each machine. */
TEST(amd64)
{
	compare_machine("amd64", EM_X86_64, 16, 7, 6,
		(const char *const[]){"/usr/lib/x86_64-linux-gnu", "/usr/bin", NULL});
}

TEST(arm64)
{
	compare_machine("arm64", EM_AARCH64, 30, 31, 29,
		(const char *const[]){"/usr/lib/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib",
			"/usr/bin", NULL});
}

TEST(riscv64)
{
	compare_machine("riscv64", EM_RISCV, 1, 2, 8,
		(const char *const[]){"/usr/lib/riscv64-linux-gnu", "/usr/riscv64-linux-gnu/lib",
			"/usr/bin", NULL});
}
