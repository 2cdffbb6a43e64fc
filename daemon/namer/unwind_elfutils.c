/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* elfutils unwinds a "thread" for which it needs three things: the registers, the contents of
 * memory, and the ELF files with their addresses. All three come from the request: the registers
 * and the copied stack of one sample, and descriptors of the mapped files. No path is ever opened;
 * find_elf returns a module's Elf, and requests for separate debug information fail.
 *
 *      maps (file, start, offset)  →  modules (file, bias)  →  Dwfl, CFI parsed on first need, kept
 *      registers, stack            →  memory_read, set_initial_registers  →  on_frame …
 *
 * elfutils does not distinguish "the outermost frame" from "the return address could not be read":
 * both end in an undefined pc. So after the walk we check whether the call frame information of the
 * last frame says that it has no caller. If not, the stack is truncated.
 */

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/namer/unwind_private.h"
#include "proto/base/memory.h"

#define THREAD 1 /* a Dwfl needs thread ids; ours has one thread at a time */

/* A file at a bias, which elfutils calls a module. */
struct module {
	uint64_t low, end, bias;
	uint32_t file;
	Elf *elf; /* NULL once elfutils owns it */
};

struct elfutils {
	struct module *module; /* by rising address, disjoint */
	size_t n_modules;
	union {
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} header; /* an ELF file of nothing but the machine, for dwfl_attach_state */
	Elf *elf;
	Dwfl *dwfl;
};

static const struct unwind_registers *registers(const struct unwinder *u)
{
	return u->walk.sample.registers;
}

/* --- memory and registers --------------------------------------------------------------------- */

/* Read a word of the sampled process: of its stack, or of its files' text. */
static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret_word, void *userdata)
{
	const struct unwinder *u = userdata;
	const struct unwind_sample *s = &u->walk.sample;
	const size_t n_word = registers(u)->class == ELFCLASS32 ? 4 : 8;
	uint64_t word = 0; /* these machines put the lowest byte first */
	(void)dwfl;

	if (unwind_stack_word(&u->walk.sample, addr, &word)) {
		*ret_word = word;
		return true;
	}
	if (addr >= s->stack_start && addr - s->stack_start < s->n_stack)
		return false; /* cut by the end of the stack */
	const struct unwind_map *m = unwind_find_map(u, addr);
	if (!m || m->fd < 0 || m->end - addr < n_word)
		return false;
	uint64_t offset = m->file_offset + (addr - m->start);
	if (offset > INT64_MAX)
		return false;
	if (pread(m->fd, &word, n_word, (off_t)offset) != (ssize_t)n_word)
		return false;
	*ret_word = word;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *userdata, void **thread_userdata)
{
	(void)dwfl;
	*thread_userdata = userdata;
	return 0; /* threads are requested only by id */
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *userdata, void **thread_userdata)
{
	(void)dwfl;
	*thread_userdata = userdata;
	return tid == THREAD;
}

static bool set_initial_registers(Dwfl_Thread *thread, void *userdata)
{
	const struct unwinder *u = userdata;
	const struct unwind_registers *r = registers(u);
	uint64_t pc;

	for (int i = 0; i < r->n_registers; i++) {
		uint64_t value = 0;
		if (r->perf[i] >= 0 &&
			!unwind_register(&u->walk.sample, (unsigned int)r->perf[i], &value))
			continue; /* not sampled: a rule that needs it will end the walk */

		Dwarf_Word word = value;
		if (!dwfl_thread_state_registers(thread, i, 1, &word))
			return false;
	}
	if (!unwind_register(&u->walk.sample, r->perf_pc, &pc))
		return false;
	dwfl_thread_state_register_pc(thread, pc);
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_initial_registers,
};

/* --- modules ---------------------------------------------------------------------------------- */

/* elfutils requests the file of a module: it is already open, and elfutils takes it now. */
static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
	char **ret_name, Elf **ret_elf)
{
	struct module *m = *userdata;
	(void)mod, (void)name, (void)base, (void)ret_name;

	if (m)
		*ret_elf = TAKE_PTR(m->elf);
	return -1; /* no descriptor: the Elf is enough, and the caller owns the descriptors */
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
	const char *file_name, const char *link, GElf_Word crc, char **ret_name)
{
	(void)mod, (void)userdata, (void)name, (void)base;
	(void)file_name, (void)link, (void)crc, (void)ret_name;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static Elf *close_elf(Elf *elf)
{
	elf_end(elf);
	return NULL;
}
DEFINE_CLEANUP(Elf *, close_elf)

/* The ELF file of a map, or NULL if it is not one or for another machine. Read with ELF_C_READ and
 * not mapped: only needed sections take memory, and a file that shrinks cannot kill us. */
static Elf *open_elf(const struct unwinder *u, const struct unwind_map *map)
{
	_cleanup_(close_elfp) Elf *elf = NULL;

	if (map->fd >= 0)
		elf = elf_begin(map->fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return NULL;

	GElf_Ehdr header;
	if (!gelf_getehdr(elf, &header) || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return NULL;
	if (header.e_machine != registers(u)->machine ||
		header.e_ident[EI_CLASS] != registers(u)->class)
		return NULL;
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return NULL;
	return TAKE_PTR(elf);
}

/* Find where a file was loaded: *ret_bias is added to its addresses, *ret_low is the module's start
 * for elfutils. It must be the start of the first segment, rounded down as libdwfl does, or libdwfl
 * computes a different bias. Source: open_elf() in libdwfl/dwfl_module_getdwarf.c of elfutils
 * 0.188. */
static bool locate_module(
	Elf *elf, const struct unwind_map *map, uint64_t *ret_low, uint64_t *ret_bias)
{
	bool have_low = false, have_bias = false;
	uint64_t low = 0, bias = 0;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n && !(have_low && have_bias); i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(elf, (int)i, &p))
			return false;
		if (p.p_type != PT_LOAD)
			continue;
		if (!have_low) {
			low = p.p_vaddr & -p.p_align;
			have_low = true;
		}
		/* A map begins on a page, so it may begin a little before its segment. */
		uint64_t n_map = map->end - map->start;
		if (p.p_flags & PF_X && map->file_offset < p.p_offset + p.p_filesz &&
			p.p_offset < map->file_offset + n_map) {
			bias = map->start - map->file_offset - (p.p_vaddr - p.p_offset);
			have_bias = true;
		}
	}
	if (!have_low || !have_bias)
		return false;
	*ret_low = low + bias;
	*ret_bias = bias;
	return true;
}

/* Make a module of a map, or extend the previous one by the map. A map whose file does not parse or
 * contradicts its neighbours has no module: the walk ends there. */
static void add_module(const struct unwinder *u, struct elfutils *e, const struct unwind_map *map)
{
	struct module *last = e->n_modules ? &e->module[e->n_modules - 1] : NULL;
	_cleanup_(close_elfp) Elf *elf = NULL;
	uint64_t low, bias;

	if (last && last->file == map->file && last->elf &&
		locate_module(last->elf, map, &low, &bias) && bias == last->bias) {
		if (map->end > last->end)
			last->end = map->end;
		return;
	}

	elf = open_elf(u, map);
	if (!elf || !locate_module(elf, map, &low, &bias))
		return;
	if (low > map->start || (last && low < last->end))
		return;
	e->module[e->n_modules++] = (struct module){
		.low = low,
		.end = map->end,
		.bias = bias,
		.file = map->file,
		.elf = TAKE_PTR(elf),
	};
}

static int report_modules(const struct unwinder *u, struct elfutils *e)
{
	for (size_t i = 0; i < u->n_maps; i++)
		add_module(u, e, &u->map[i]);

	dwfl_report_begin(e->dwfl);
	for (size_t i = 0; i < e->n_modules; i++) {
		struct module *m = &e->module[i];
		char name[32];
		snprintf(name, sizeof(name), "%" PRIu32, m->file);

		Dwfl_Module *mod = dwfl_report_module(e->dwfl, name, m->low, m->end);
		if (!mod)
			return -ENOMEM;
		void **userdata;
		dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = m;
	}
	dwfl_report_end(e->dwfl, NULL, NULL);
	return 0;
}

/* --- the walk --------------------------------------------------------------------------------- */

static int on_frame(Dwfl_Frame *state, void *userdata)
{
	struct unwinder *u = userdata;
	Dwarf_Addr pc;
	Dwarf_Word sp, fp;
	bool activation;

	if (!dwfl_frame_pc(state, &pc, &activation) ||
		dwfl_frame_reg(state, registers(u)->dwarf_sp, &sp)) {
		u->walk.unwound->truncated = true;
		return DWARF_CB_ABORT;
	}
	if (dwfl_frame_reg(state, registers(u)->dwarf_fp, &fp))
		fp = UINT64_MAX;
	return unwind_take_frame(&u->walk, activation ? pc : pc - 1, sp, fp) ? DWARF_CB_OK
									     : DWARF_CB_ABORT;
}

/* Does the call frame information say that the code at address has no caller? */
static bool has_no_caller(Dwarf_CFI *cfi, uint64_t address, bool *ret_found)
{
	_cleanup_(freep) Dwarf_Frame *frame = NULL;
	Dwarf_Op memory[3], *ops;
	Dwarf_Addr start, end;
	bool is_signal;
	size_t n_ops;

	if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame))
		return false;
	*ret_found = true;
	int ra = dwarf_frame_info(frame, &start, &end, &is_signal);
	if (ra < 0 || dwarf_frame_register(frame, ra, memory, &ops, &n_ops))
		return false;
	return n_ops == 0 && ops == memory; /* Source: libdw.h, dwarf_frame_register: undefined */
}

/* Was the last frame the outermost one? Code without call frame information may show this by a
 * frame pointer of zero. Source: psABI of x86-64, 3.4.1, and of i386, 2.3.1; AAPCS64, 6.4.6; RISC-V calling convention,
 * "Frame Pointer Convention". */
static bool is_outermost(const struct unwinder *u)
{
	Dwfl_Module *mod = dwfl_addrmodule(u->elfutils->dwfl, u->walk.last_address);
	bool found = false;

	if (mod) {
		Dwarf_Addr bias = 0;
		Dwarf_CFI *cfi = dwfl_module_eh_cfi(mod, &bias);
		if (has_no_caller(cfi, u->walk.last_address - bias, &found))
			return true;
		if (!found) {
			cfi = dwfl_module_dwarf_cfi(mod, &bias);
			if (has_no_caller(cfi, u->walk.last_address - bias, &found))
				return true;
		}
	}
	return !found && u->walk.last_fp == 0;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Both classes have all but the last of these at the same place. Returns the header's bytes. */
static size_t fill_header(const struct unwinder *u, struct elfutils *e)
{
	const bool wide = registers(u)->class == ELFCLASS64;

	e->header.wide = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, registers(u)->class, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = registers(u)->machine,
		.e_version = EV_CURRENT,
	};
	if (wide)
		e->header.wide.e_ehsize = sizeof(Elf64_Ehdr);
	else
		e->header.narrow.e_ehsize = sizeof(Elf32_Ehdr);
	return wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}
_Static_assert(offsetof(Elf64_Ehdr, e_version) == offsetof(Elf32_Ehdr, e_version), "same places");

static int attach(struct unwinder *u, struct elfutils *e)
{
	e->elf = elf_memory((char *)&e->header, fill_header(u, e));
	e->dwfl = dwfl_begin(&callbacks);
	if (!e->elf || !e->dwfl)
		return -ENOMEM;

	int r = report_modules(u, e);
	if (r)
		return r;
	if (!dwfl_attach_state(e->dwfl, e->elf, THREAD, &thread_callbacks, u))
		return -EOPNOTSUPP; /* this libdw cannot unwind that machine */
	return 0;
}

DEFINE_CLEANUP(struct elfutils *, elfutils_free)

static int elfutils_new(struct unwinder *u)
{
	_cleanup_(elfutils_freep) struct elfutils *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->module = calloc(u->n_maps ?: 1, sizeof(*e->module));
	if (!e->module)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	int r = attach(u, e);
	if (r == 0)
		u->elfutils = TAKE_PTR(e);
	return r;
}

int unwind_by_elfutils(struct unwinder *u)
{
	int r = u->elfutils ? 0 : elfutils_new(u);

	if (r < 0)
		return r;
	(void)dwfl_getthread_frames(u->elfutils->dwfl, THREAD, on_frame, u);
	if (u->walk.unwound->n_frames > 0 && !u->walk.unwound->truncated)
		u->walk.unwound->truncated = !is_outermost(u);
	return 0;
}

struct elfutils *elfutils_free(struct elfutils *e)
{
	if (!e)
		return NULL;
	if (e->dwfl)
		dwfl_end(e->dwfl);
	for (size_t i = 0; i < e->n_modules; i++)
		elf_end(e->module[i].elf);
	elf_end(e->elf);
	free(e->module);
	free(e);
	return NULL;
}
