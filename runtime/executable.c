/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The kernel says in AT_PHDR where the executable's program headers are. They say where the rest is: PT_PHDR
 * has their own address as the linker gave it, and the difference is that of all others. What the dynamic
 * linker protects after relocation (PT_GNU_RELRO) is constant too. Source: getauxval(3), elf(5).
 */
#include <elf.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "runtime/executable.h"

bool mperf_executable_is(const void *elf)
{
	const Elf64_Ehdr *header = elf;
	return header && (uintptr_t)elf + header->e_phoff == getauxval(AT_PHDR);
}

static bool is_constant(const Elf64_Phdr *p)
{
	return p->p_type == PT_GNU_RELRO || (p->p_type == PT_LOAD && !(p->p_flags & PF_W));
}

bool mperf_executable_constant(const void *at, size_t bytes)
{
	const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
	const size_t n = headers ? getauxval(AT_PHNUM) : 0;
	uintptr_t from = 0;
	for (size_t i = 0; i < n; i++)
		if (headers[i].p_type == PT_PHDR)
			from = (uintptr_t)headers - headers[i].p_vaddr;
	for (size_t i = 0; i < n; i++) {
		const uintptr_t in = (uintptr_t)at - from - headers[i].p_vaddr;
		if (is_constant(&headers[i]) && in < headers[i].p_memsz &&
			bytes <= headers[i].p_memsz - in)
			return true;
	}
	return false;
}
