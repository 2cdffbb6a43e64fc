/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/unwind_tables.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

#define MEMORY_SHARE 128 /* of the machine's memory; 2 MB of 256 */
#define SEGMENTS_MAX 8   /* executable ones; programs have one, some two */

/* A part of the file that is mapped executable. */
struct segment {
	uint64_t offset, n, addr;
};

struct file_table {
	uint32_t file;
	int error; /* why it has no table */
	struct segment segment[SEGMENTS_MAX];
	size_t n_segments;
	struct unwind_table *table;
	size_t n_bytes;
	uint64_t used;
	UT_hash_handle hh;
};

struct unwind_tables {
	struct file_table *file;
	size_t n_bytes, n_bytes_max;
	uint64_t clock;
};

struct unwind_tables *unwind_tables_new(size_t n_bytes_max)
{
	struct unwind_tables *t = calloc(1, sizeof(*t));

	if (t)
		t->n_bytes_max = n_bytes_max;
	return t;
}

size_t unwind_tables_bytes(const struct unwind_tables *t)
{
	return t->n_bytes;
}

size_t unwind_tables_share(void)
{
	struct sysinfo s;

	if (sysinfo(&s) < 0)
		return UNWIND_TABLES_BYTES_MAX;
	const uint64_t share = (uint64_t)s.totalram * s.mem_unit / MEMORY_SHARE;
	return share < UNWIND_TABLES_BYTES_MAX ? (size_t)share : UNWIND_TABLES_BYTES_MAX;
}

static void drop(struct unwind_tables *t, struct file_table *f)
{
	HASH_DEL(t->file, f);
	t->n_bytes -= f->n_bytes;
	unwind_table_free(f->table);
	free(f);
}

void unwind_tables_forget(struct unwind_tables *t, uint32_t file)
{
	struct file_table *f, *next;

	HASH_ITER (hh, t->file, f, next) {
		if (file == 0 || f->file == file)
			drop(t, f);
	}
}

struct unwind_tables *unwind_tables_free(struct unwind_tables *t)
{
	if (t)
		unwind_tables_forget(t, 0);
	free(t);
	return NULL;
}

/* --- making one ------------------------------------------------------------------------------- */

static Elf *close_elf(Elf *elf)
{
	elf_end(elf);
	return NULL;
}
DEFINE_CLEANUP(Elf *, close_elf)

static int read_segments(Elf *elf, struct file_table *f)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -EBADMSG;
	for (size_t i = 0; i < n && f->n_segments < SEGMENTS_MAX; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(elf, (int)i, &p))
			return -EBADMSG;
		if (p.p_type == PT_LOAD && p.p_flags & PF_X)
			f->segment[f->n_segments++] = (struct segment){
				.offset = p.p_offset, .n = p.p_filesz, .addr = p.p_vaddr};
	}
	return 0;
}

/* .eh_frame, then .debug_frame. -EOPNOTSUPP: one of them is compressed. */
static int find_sections(Elf *elf, struct unwind_section ret_section[2])
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return -EBADMSG;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		const char *name =
			gelf_getshdr(scn, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!name || header.sh_type == SHT_NOBITS)
			continue;
		const bool is_eh = strcmp(name, ".eh_frame") == 0;
		if (!is_eh && strcmp(name, ".debug_frame") != 0)
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			return -EOPNOTSUPP;
		ret_section[is_eh ? 0 : 1] = (struct unwind_section){
			.data = elf_rawdata(scn, NULL), .addr = header.sh_addr, .is_eh = is_eh};
	}
	return 0;
}

static int make_table(struct file_table *f, int fd, uint16_t machine, size_t n_bytes_max)
{
	(void)elf_version(EV_CURRENT); /* without which elf_begin fails */
	/* Read and not mapped: only needed sections take memory, and a file that shrinks cannot kill us. */
	_cleanup_(close_elfp) Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct unwind_section section[2] = {};
	GElf_Ehdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return -EBADMSG;
	if (header.e_machine != machine || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
		return -EOPNOTSUPP;
	int r = read_segments(elf, f);
	if (r == 0)
		r = find_sections(elf, section);
	return r < 0 ? r
		     : unwind_table_make(
			       section, 2, header.e_ident, machine, n_bytes_max, &f->table);
}

/* Drop the least recently used, until there is room for n bytes more. */
static void make_room(struct unwind_tables *t, size_t n)
{
	while (t->file && t->n_bytes + n > t->n_bytes_max) {
		struct file_table *f, *next, *oldest = t->file;

		HASH_ITER (hh, t->file, f, next) {
			if (f->used < oldest->used)
				oldest = f;
		}
		drop(t, oldest);
	}
}

/* NULL: out of memory. */
static struct file_table *add(struct unwind_tables *t, uint32_t file, int fd, uint16_t machine)
{
	struct file_table *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->file = file;
	f->error = make_table(f, fd, machine, t->n_bytes_max / 2);
	f->n_bytes = sizeof(*f) + (f->table ? unwind_table_bytes(f->table) : 0);
	make_room(t, f->n_bytes);
	HASH_ADD(hh, t->file, file, sizeof(f->file), f);
	if (!f->hh.tbl) {
		unwind_table_free(f->table);
		free(f);
		return NULL;
	}
	t->n_bytes += f->n_bytes;
	return f;
}

int unwind_tables_find(struct unwind_tables *t, uint32_t file, int fd, uint16_t machine,
	uint64_t offset, const struct unwind_rule **ret_rule)
{
	struct file_table *f;

	HASH_FIND(hh, t->file, &file, sizeof(file), f);
	if (!f)
		f = add(t, file, fd, machine);
	if (!f)
		return -ENOMEM;
	f->used = ++t->clock;
	if (f->error)
		return f->error;
	*ret_rule = NULL;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct segment *s = &f->segment[i];

		if (offset >= s->offset && offset - s->offset < s->n)
			*ret_rule = unwind_table_find(f->table, s->addr + (offset - s->offset));
	}
	return 0;
}
