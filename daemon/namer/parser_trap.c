/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Faults of a parser, on demand. A build with MPERF_TEST_WORKER spins on an ELF file with a section
 * .mperf.test.spin, crashes on one with .mperf.test.crash, takes some CPU time for one with
 * .mperf.test.slow, and after one with .mperf.test.poison crashes on the next file. So tests can
 * show how the daemon handles this without knowing a real bug of elfutils. Every other build has
 * two empty functions here.
 */
#include "daemon/namer/parser_private.h"

#ifdef MPERF_TEST_WORKER
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"

#define SLOW_NS 100000000u /* CPU time for one slow file */

static bool poisoned;

static bool has_section(Elf *elf, const char *wanted)
{
	size_t names;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
		if (name && strcmp(name, wanted) == 0)
			return true;
	}
	return false;
}

static void spin(void)
{
	for (volatile bool forever = true; forever;)
		continue;
}

static void dawdle(void)
{
	uint64_t until_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + SLOW_NS;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
		continue;
}

void parser_trap_image(int fd)
{
	if (poisoned)
		abort();
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return;
	if (has_section(elf, ".mperf.test.spin"))
		spin();
	if (has_section(elf, ".mperf.test.crash"))
		abort();
	if (has_section(elf, ".mperf.test.slow"))
		dawdle();
	poisoned = has_section(elf, ".mperf.test.poison");
	elf_end(elf);
}

void parser_trap_stack(const uint8_t *stack, size_t n)
{
	if (n >= 8 && memcmp(stack, "CRASHME!", 8) == 0)
		abort();
	if (n >= 8 && memcmp(stack, "SPIN-ME!", 8) == 0)
		spin();
}
#else
void parser_trap_image(int fd)
{
	(void)fd;
}

void parser_trap_stack(const uint8_t *stack, size_t n)
{
	(void)stack;
	(void)n;
}
#endif
