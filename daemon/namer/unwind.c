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

#include "daemon/namer/unwind.h"

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

#include "proto/base/memory.h"

#define THREAD 1         /* a Dwfl needs thread ids; ours has one thread at a time */
#define REGISTERS_MAX 33 /* DWARF registers that perf samples on any machine below */

/* Mapping of a machine's perf registers to DWARF registers. */
struct registers {
	uint16_t machine;
	uint8_t class; /* ELFCLASS64; ELFCLASS32: a 32-bit program on a 64-bit kernel */
	uint8_t n_registers;
	uint8_t perf_pc, perf_sp; /* bits in regs_mask */
	uint8_t dwarf_sp, dwarf_fp;
	int8_t perf[REGISTERS_MAX]; /* by DWARF number; -1: always zero */
};

/* Source: System V psABI of each machine, "DWARF register numbers";
 * arch/{x86,riscv,arm64}/include/uapi/asm/perf_regs.h of Linux 6.12; for 32-bit programs
 * arch/{x86,arm64}/kernel/perf_regs.c (perf_reg_value): i386 has the numbers of x86-64; a 32-bit
 * ARM program has its own, 0 to 15. */
static const struct registers known_registers[] = {
	{
		.machine = EM_X86_64,
		.class = ELFCLASS64,
		.n_registers = 17,
		.perf_pc = 8,
		.perf_sp = 7,
		.dwarf_sp = 7,
		.dwarf_fp = 6,
		/* rax rdx rcx rbx rsi rdi rbp rsp, r8 … r15, return address */
		.perf = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8},
	},
	{
		.machine = EM_RISCV,
		.class = ELFCLASS64,
		.n_registers = 32,
		.perf_pc = 0,
		.perf_sp = 2,
		.dwarf_sp = 2,
		.dwarf_fp = 8,
		/* x0 is not sampled: perf has the pc in its place */
		.perf = {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
			21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	},
	{
		.machine = EM_AARCH64,
		.class = ELFCLASS64,
		.n_registers = 32,
		.perf_pc = 32,
		.perf_sp = 31,
		.dwarf_sp = 31,
		.dwarf_fp = 29,
		.perf = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
			21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	},
	{
		.machine = EM_386,
		.class = ELFCLASS32,
		.n_registers = 9,
		.perf_pc = 8,
		.perf_sp = 7,
		.dwarf_sp = 4,
		.dwarf_fp = 5,
		/* eax ecx edx ebx esp ebp esi edi, return address */
		.perf = {0, 2, 3, 1, 7, 6, 4, 5, 8},
	},
	{
		.machine = EM_ARM,
		.class = ELFCLASS32,
		.n_registers = 16,
		.perf_pc = 15,
		.perf_sp = 13,
		.dwarf_sp = 13,
		.dwarf_fp = 11,
		.perf = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	},
};

/* A file at a bias, which elfutils calls a module. */
struct module {
	uint64_t low, end, bias;
	uint32_t file;
	Elf *elf; /* NULL once elfutils owns it */
};

struct unwinder {
	const struct registers *registers;
	struct unwind_map *map; /* sorted by start */
	size_t n_maps;
	struct module *module; /* by rising address, disjoint */
	size_t n_modules;
	union {
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} header; /* an ELF file of nothing but the machine, for dwfl_attach_state */
	Elf *elf;
	Dwfl *dwfl;

	/* the sample that is being unwound, borrowed */
	const uint64_t *regs;
	uint64_t regs_mask;
	const uint8_t *stack;
	size_t n_stack;
	uint64_t stack_start;

	/* progress of the walk */
	uint64_t last_address, last_sp, last_fp;
	struct unwound unwound;
};

/* --- maps and memory -------------------------------------------------------------------------- */

static int compare_maps(const void *a, const void *b)
{
	const struct unwind_map *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static const struct unwind_map *find_map(const struct unwinder *u, uint64_t addr)
{
	size_t low = 0, high = u->n_maps;

	while (low < high) { /* the first map that starts above addr */
		size_t middle = low + (high - low) / 2;
		if (u->map[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || addr >= u->map[low - 1].end)
		return NULL;
	return &u->map[low - 1];
}

/* Read a word of the sampled process: of its stack, or of its files' text. */
static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret_word, void *userdata)
{
	const struct unwinder *u = userdata;
	const size_t n_word = u->registers->class == ELFCLASS32 ? 4 : 8;
	Dwarf_Word word = 0; /* these machines put the lowest byte first */
	(void)dwfl;

	uint64_t at = addr - u->stack_start;
	if (addr >= u->stack_start && at < u->n_stack) {
		if (u->n_stack - at < n_word)
			return false;
		memcpy(&word, u->stack + at, n_word);
		*ret_word = word;
		return true;
	}

	const struct unwind_map *m = find_map(u, addr);
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

/* --- registers -------------------------------------------------------------------------------- */

static bool get_register(const struct unwinder *u, unsigned int bit, uint64_t *ret_value)
{
	uint64_t mask = 1ull << bit;

	if (!(u->regs_mask & mask))
		return false;
	size_t i = (size_t)__builtin_popcountll(u->regs_mask & (mask - 1));
	memcpy(ret_value, (const uint8_t *)u->regs + i * sizeof(*ret_value), sizeof(*ret_value));
	if (u->registers->class == ELFCLASS32)
		*ret_value = (uint32_t)*ret_value;
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
	const struct registers *r = u->registers;
	uint64_t pc;

	for (int i = 0; i < r->n_registers; i++) {
		uint64_t value = 0;
		if (r->perf[i] >= 0 && !get_register(u, (unsigned int)r->perf[i], &value))
			continue; /* not sampled: a rule that needs it will end the walk */

		Dwarf_Word word = value;
		if (!dwfl_thread_state_registers(thread, i, 1, &word))
			return false;
	}
	if (!get_register(u, r->perf_pc, &pc))
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
	if (header.e_machine != u->registers->machine ||
		header.e_ident[EI_CLASS] != u->registers->class)
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
static void add_module(struct unwinder *u, const struct unwind_map *map)
{
	struct module *last = u->n_modules ? &u->module[u->n_modules - 1] : NULL;
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
	u->module[u->n_modules++] = (struct module){
		.low = low,
		.end = map->end,
		.bias = bias,
		.file = map->file,
		.elf = TAKE_PTR(elf),
	};
}

static int report_modules(struct unwinder *u)
{
	for (size_t i = 0; i < u->n_maps; i++)
		add_module(u, &u->map[i]);

	dwfl_report_begin(u->dwfl);
	for (size_t i = 0; i < u->n_modules; i++) {
		struct module *m = &u->module[i];
		char name[32];
		snprintf(name, sizeof(name), "%" PRIu32, m->file);

		Dwfl_Module *mod = dwfl_report_module(u->dwfl, name, m->low, m->end);
		if (!mod)
			return -ENOMEM;
		void **userdata;
		dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = m;
	}
	dwfl_report_end(u->dwfl, NULL, NULL);
	return 0;
}

/* --- the walk --------------------------------------------------------------------------------- */

/* Take one frame. A caller must be further up the stack than its callee, except in the first step:
 * a leaf that has not moved the stack pointer has its return address in a register. The caller must
 * also be in known code: an address outside all executable mappings was read from the wrong
 * place. */
static int on_frame(Dwfl_Frame *state, void *userdata)
{
	struct unwinder *u = userdata;
	struct unwound *out = &u->unwound;
	Dwarf_Addr pc;
	Dwarf_Word sp, fp;
	bool activation;

	if (out->n_frames == UNWIND_FRAMES_MAX || !dwfl_frame_pc(state, &pc, &activation) ||
		dwfl_frame_reg(state, u->registers->dwarf_sp, &sp))
		goto cut;
	if (out->n_frames > 0 && (sp < u->last_sp || (sp == u->last_sp && out->n_frames > 1)))
		goto cut;

	uint64_t address = activation ? pc : pc - 1;
	const struct unwind_map *m = find_map(u, address);
	if (out->n_frames > 0 && !m)
		goto cut;

	bool known = m && m->file;
	out->frame[out->n_frames].file = known ? m->file : 0;
	out->frame[out->n_frames].offset = known ? m->file_offset + (address - m->start) : address;
	out->n_frames++;
	u->last_address = address;
	u->last_sp = sp;
	u->last_fp = dwfl_frame_reg(state, u->registers->dwarf_fp, &fp) ? UINT64_MAX : fp;
	return DWARF_CB_OK;

cut:
	out->truncated = true;
	return DWARF_CB_ABORT;
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
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, u->last_address);
	bool found = false;

	if (mod) {
		Dwarf_Addr bias = 0;
		Dwarf_CFI *cfi = dwfl_module_eh_cfi(mod, &bias);
		if (has_no_caller(cfi, u->last_address - bias, &found))
			return true;
		if (!found) {
			cfi = dwfl_module_dwarf_cfi(mod, &bias);
			if (has_no_caller(cfi, u->last_address - bias, &found))
				return true;
		}
	}
	return !found && u->last_fp == 0;
}

int unwinder_unwind(struct unwinder *u, const uint64_t *regs, uint64_t regs_mask,
	const uint8_t *stack, size_t n_stack, struct unwound *ret_unwound)
{
	uint64_t pc;

	u->regs = regs;
	u->regs_mask = regs_mask;
	u->unwound.n_frames = 0;
	u->unwound.truncated = false;
	if (!get_register(u, u->registers->perf_pc, &pc) ||
		!get_register(u, u->registers->perf_sp, &u->stack_start))
		return UNWIND_FAILED;

	/* A stack does not extend beyond the last address. */
	u->stack = stack;
	u->n_stack = n_stack < -u->stack_start ? n_stack : (size_t)-u->stack_start;

	(void)dwfl_getthread_frames(u->dwfl, THREAD, on_frame, u);
	if (u->unwound.n_frames == 0)
		return UNWIND_FAILED;
	if (!u->unwound.truncated)
		u->unwound.truncated = !is_outermost(u);
	if (u->unwound.n_frames == 1 && u->unwound.truncated)
		return UNWIND_FAILED;

	*ret_unwound = u->unwound;
	return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct unwinder *, unwinder_free)

/* Both classes have all but the last of these at the same place. Returns the header's bytes. */
static size_t fill_header(struct unwinder *u)
{
	const bool wide = u->registers->class == ELFCLASS64;

	u->header.wide = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, u->registers->class, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = u->registers->machine,
		.e_version = EV_CURRENT,
	};
	if (wide)
		u->header.wide.e_ehsize = sizeof(Elf64_Ehdr);
	else
		u->header.narrow.e_ehsize = sizeof(Elf32_Ehdr);
	return wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}
_Static_assert(offsetof(Elf64_Ehdr, e_version) == offsetof(Elf32_Ehdr, e_version), "same places");

static int attach(struct unwinder *u)
{
	u->elf = elf_memory((char *)&u->header, fill_header(u));
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->elf || !u->dwfl)
		return -ENOMEM;

	int r = report_modules(u);
	if (r)
		return r;
	if (!dwfl_attach_state(u->dwfl, u->elf, THREAD, &thread_callbacks, u))
		return -EOPNOTSUPP; /* this libdw cannot unwind that machine */
	return 0;
}

int unwinder_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct unwinder **ret_unwinder)
{
	const struct registers *registers = NULL;

	if (n_maps > UNWIND_MAPS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < sizeof(known_registers) / sizeof(known_registers[0]); i++)
		if (known_registers[i].machine == machine)
			registers = &known_registers[i];
	if (!registers)
		return -EOPNOTSUPP;

	_cleanup_(unwinder_freep) struct unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->registers = registers;
	u->map = calloc(n_maps ?: 1, sizeof(*u->map));
	u->module = calloc(n_maps ?: 1, sizeof(*u->module));
	if (!u->map || !u->module)
		return -ENOMEM;

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < n_maps; i++)
		if (maps[i].start < maps[i].end)
			u->map[u->n_maps++] = maps[i];
	qsort(u->map, u->n_maps, sizeof(*u->map), compare_maps);
	int r = attach(u);
	if (r)
		return r;

	for (size_t i = 0; i < u->n_maps; i++)
		u->map[i].path = NULL; /* owned by the caller, and no longer needed */
	*ret_unwinder = TAKE_PTR(u);
	return 0;
}

struct unwinder *unwinder_free(struct unwinder *u)
{
	if (!u)
		return NULL;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	for (size_t i = 0; i < u->n_modules; i++)
		elf_end(u->module[i].elf);
	elf_end(u->elf);
	free(u->module);
	free(u->map);
	free(u);
	return NULL;
}
