/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program's unwind tables say how to find the caller at each address of each function. In code
 * with frame pointers that is the frame pointer once the prologue is over: the table defines the
 * canonical frame address (CFA) by that register. Without frame pointers, only functions with a
 * frame of variable size do so, 1 to 3 % of the code. So the tables tell the two apart before
 * anything runs.
 *
 * Functions without a frame (small ones, linker stubs) say nothing and are ignored. Libraries are
 * not examined: most systems build them all without frame pointers, so every program would count as
 * broken, even one that spends its time in its own code. A program with frame pointers that spends
 * its time in libc (qsort) loses its callers there, and must be recorded with -g dwarf.
 *
 * The user chose to run this file, so the only precaution is not to read outside it.
 */
#include "client/measure/chains.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define INTERPRETERS_MAX 4 /* of a script whose interpreter is a script; Source: Linux, fs/exec.c */

struct image {
	const uint8_t *data;
	size_t size;
};

/* NULL if the file is too short for it. */
static const void *image_at(const struct image *i, uint64_t offset, uint64_t size)
{
	return offset <= i->size && size <= i->size - offset ? i->data + offset : NULL;
}

static void unmapp(struct image *i)
{
	if (i->data)
		munmap((void *)i->data, i->size);
}

static int image_map(struct image *i, const char *path)
{
	struct stat st;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -1;
	void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -1;
	*i = (struct image){data, (size_t)st.st_size};
	return 0;
}

/* --- call frame information. Source: DWARF 5, 6.4 and 7.24; Linux Standard Base 5,
 * "Exception Frames" */

struct cfi {
	const uint8_t *at, *end;
};

/* Read a number of n bytes; 0 beyond the end, and the first eight bytes if n is larger. */
static uint64_t take_number(struct cfi *c, uint64_t bytes)
{
	uint64_t n = 0;
	if (bytes > (uint64_t)(c->end - c->at)) {
		c->at = c->end;
		return 0;
	}
	memcpy(&n, c->at, bytes < sizeof(n) ? bytes : sizeof(n));
	c->at += bytes;
	return n;
}

static uint64_t take_leb(struct cfi *c)
{
	uint64_t n = 0;
	for (unsigned shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;
		if (shift < 64)
			n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return n;
}

/* Operands after an instruction's byte: l a LEB128 number, b a block, 1 2 4 that many bytes. */
static const char *const operands[0x40] = {
	[0x01] = "4",
	[0x02] = "1",
	[0x03] = "2",
	[0x04] = "4",
	[0x05] = "ll",
	[0x06] = "l",
	[0x07] = "l",
	[0x08] = "l",
	[0x09] = "ll",
	[0x0c] = "ll",
	[0x0d] = "l",
	[0x0e] = "l",
	[0x0f] = "b",
	[0x10] = "lb",
	[0x11] = "ll",
	[0x12] = "ll",
	[0x13] = "l",
	[0x14] = "ll",
	[0x15] = "ll",
	[0x16] = "lb",
	[0x2e] = "l",
	[0x2f] = "ll",
};

enum {
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_DEF_CFA_SF = 0x12,
};

/* How a function's table finds callers: it has no frame, or always by the stack pointer, or by the
 * frame pointer. */
enum function { FUNCTION_FRAMELESS, FUNCTION_BY_STACK, FUNCTION_BY_FRAME };

static enum function judge_function(struct cfi *c, uint64_t frame_register)
{
	enum function found = FUNCTION_FRAMELESS;
	while (c->at < c->end) {
		uint8_t byte = *c->at++, instruction = byte & 0xc0 ? 0 : byte;
		bool names_register = instruction == CFA_DEF_CFA || instruction == CFA_DEF_CFA_SF ||
				      instruction == CFA_DEF_CFA_REGISTER;
		if ((byte & 0xc0) == 0x80) /* DW_CFA_offset */
			take_leb(c);
		else if (instruction == CFA_DEF_CFA_EXPRESSION) /* a linker stub */
			return FUNCTION_FRAMELESS;
		if (found == FUNCTION_FRAMELESS &&
			(names_register || instruction == CFA_DEF_CFA_OFFSET))
			found = FUNCTION_BY_STACK;
		for (const char *o = operands[instruction]; o && *o; o++) {
			bool fixed = *o >= '1' && *o <= '4';
			uint64_t n = fixed ? take_number(c, (size_t)(*o - '0')) : take_leb(c);
			if (names_register && o == operands[instruction] && n == frame_register)
				found = FUNCTION_BY_FRAME;
			if (*o == 'b')
				take_number(c, n);
		}
	}
	return found;
}

/* --- the file --------------------------------------------------------------------------------- */

/* DWARF's number of the frame pointer; 0: not judged. aarch64 is missing: its compilers keep frame
 * records by default, and its tables do not use them. Source: the psABI of each machine, "DWARF
 * register numbers". */
static uint64_t frame_register(uint16_t machine)
{
#if defined __x86_64__
	return machine == EM_X86_64 ? 6 : 0; /* rbp */
#elif defined __riscv
	return machine == EM_RISCV ? 8 : 0; /* s0 */
#else
	(void)machine;
	return 0;
#endif
}

/* The section .eh_frame. False if there is none, or the file is no program for this machine. */
static bool find_tables(const struct image *i, struct cfi *ret_tables, uint64_t *ret_register)
{
	const Elf64_Ehdr *e = image_at(i, 0, sizeof(*e));
	if (!e || e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_shoff % _Alignof(Elf64_Shdr) ||
		e->e_shstrndx >= e->e_shnum)
		return false;
	const Elf64_Shdr *s = image_at(i, e->e_shoff, (uint64_t)e->e_shnum * sizeof(*s));
	*ret_register = frame_register(e->e_machine);
	if (!s || *ret_register == 0)
		return false;
	for (size_t n = 0; n < e->e_shnum; n++) {
		static const char wanted[] = ".eh_frame";
		const char *name =
			image_at(i, s[e->e_shstrndx].sh_offset + s[n].sh_name, sizeof(wanted));
		const uint8_t *tables = image_at(i, s[n].sh_offset, s[n].sh_size);
		if (!name || !tables || s[n].sh_type == SHT_NOBITS ||
			memcmp(name, wanted, sizeof(wanted)) != 0)
			continue;
		*ret_tables = (struct cfi){tables, tables + s[n].sh_size};
		return true;
	}
	return false;
}

#define AUGMENTATION_OFFSET 9 /* in a CIE, after length, id and version */

/* An FDE: the size of a function's code in bytes, and its instructions. Addresses take four bytes,
 * as all compilers write them for these machines; augmentation data has a size ("z"), or there is
 * none. */
static uint64_t take_function(struct cfi *entry, const uint8_t *begin)
{
	const uint8_t *here = entry->at;
	uint64_t back = take_number(entry, 4);
	if (back <= AUGMENTATION_OFFSET || back > (uint64_t)(here - begin))
		return 0; /* 0: a CIE; else damaged */
	take_number(entry, 4);
	uint64_t bytes = take_number(entry, 4);
	if (here[AUGMENTATION_OFFSET - (int64_t)back] == 'z')
		take_number(entry, take_leb(entry));
	return bytes;
}

static bool keeps_frame_pointers(const struct image *i)
{
	struct cfi tables;
	uint64_t fp, by_frame = 0, by_stack = 0;
	if (!find_tables(i, &tables, &fp))
		return true;
	const uint8_t *begin = tables.at;
	for (uint64_t size; (size = take_number(&tables, 4)) != 0;) {
		struct cfi entry = {tables.at, tables.at};
		if (size > (uint64_t)(tables.end - tables.at))
			break; /* damaged, or the 64-bit form, which no compiler writes here */
		tables.at = entry.end = entry.at + size;
		uint64_t bytes = take_function(&entry, begin);
		enum function kind = bytes ? judge_function(&entry, fp) : FUNCTION_FRAMELESS;
		by_frame += kind == FUNCTION_BY_FRAME ? bytes : 0;
		by_stack += kind == FUNCTION_BY_STACK ? bytes : 0;
	}
	return by_frame >= by_stack;
}

/* --- from a command's name to the file whose code runs ---------------------------------------- */

/* Find the program as execvp does. Empty if there is none. */
static void find_program(const char *name, char ret_path[static PATH_MAX])
{
	const char *path = getenv("PATH"), *next;
	*ret_path = '\0';
	if (strchr(name, '/')) {
		if (access(name, X_OK) == 0)
			snprintf(ret_path, PATH_MAX, "%s", name);
		return;
	}
	for (path = path ? path : "/bin:/usr/bin"; *path; path = next) {
		size_t n = strcspn(path, ":");
		next = path + n + (path[n] == ':');
		snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)n, path, n ? "/" : "", name);
		if (access(ret_path, X_OK) == 0)
			return;
	}
	*ret_path = '\0';
}

/* "#! /bin/sh -e" names /bin/sh; other text is for the shell. False if it is no script. */
static bool interpreter_of(const struct image *i, char ret_path[static PATH_MAX])
{
	char line[256];
	size_t n = i->size < sizeof(line) - 1 ? i->size : sizeof(line) - 1;
	memcpy(line, i->data, n);
	line[n] = '\0';
	if (n >= SELFMAG && memcmp(line, ELFMAG, SELFMAG) == 0)
		return false;
	if (strncmp(line, "#!", 2) != 0) {
		snprintf(ret_path, PATH_MAX, "/bin/sh");
		return true;
	}
	const char *from = line + 2 + strspn(line + 2, " \t");
	snprintf(ret_path, PATH_MAX, "%.*s", (int)strcspn(from, " \t\r\n"), from);
	return true;
}

bool chains_kept(const char *command)
{
	char path[PATH_MAX];
	find_program(command, path);
	for (int i = 0; i <= INTERPRETERS_MAX; i++) {
		_cleanup_(unmapp) struct image image = {0};
		if (image_map(&image, path) < 0)
			return true;
		if (!interpreter_of(&image, path))
			return keeps_frame_pointers(&image);
	}
	return true;
}
