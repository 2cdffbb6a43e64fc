/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unpacking writes into our private copy of the section table, and holds the sections in memory. To
 * undo it, we drop the private pages, which brings the file's own contents back, and libelf begins from
 * the start. Symbol names stay valid: they are bytes of the file (elf_symbols.c takes no others).
 */

#include "daemon/namer/elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "daemon/namer/image.h"
#include "proto/base/memory.h"

/* The maximum of an ELF file without extensions. */
#define SECTIONS_MAX 65536

/* Make the Elf of the bytes in f. On failure it is NULL, and the bytes stay. */
static int elf_file_begin(struct elf_file *f)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	f->elf = elf_memory(f->bytes, f->n);

	GElf_Ehdr header;
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &header)) {
		elf_end(f->elf);
		f->elf = NULL;
		return IMAGE_MALFORMED;
	}
	return 0;
}

static int elf_file_begin_or_close(struct elf_file *f)
{
	int r = elf_file_begin(f);
	if (r)
		elf_file_close(f);
	return r;
}

int elf_file_map(struct elf_file *f, int fd)
{
	struct stat status;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < EI_NIDENT)
		return IMAGE_MALFORMED;
	f->n = (size_t)status.st_size;
	if ((uint64_t)status.st_size > IMAGE_FILE_BYTES_MAX || (off_t)f->n != status.st_size) {
		f->n = 0;
		return IMAGE_OVERSIZE;
	}
	f->bytes = mmap(NULL, f->n, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (f->bytes == MAP_FAILED) {
		*f = (struct elf_file){0};
		return errno == ENOMEM ? IMAGE_OVERSIZE : -errno;
	}
	f->mapped = true;
	return elf_file_begin_or_close(f);
}

int elf_file_take(struct elf_file *f, void *bytes, size_t n)
{
	*f = (struct elf_file){.bytes = bytes, .n = n};
	return elf_file_begin_or_close(f);
}

bool elf_file_has_section(const struct elf_file *f, const char *wanted)
{
	size_t names, n_seen = 0;
	if (!f->elf || elf_getshdrstrndx(f->elf, &names))
		return false;

	for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		if (!gelf_getshdr(s, &header) || header.sh_type == SHT_NOBITS || !header.sh_size)
			continue;
		const char *name = elf_strptr(f->elf, names, header.sh_name);
		if (name && strcmp(name, wanted) == 0)
			return true;
	}
	return false;
}

bool elf_file_has_debug(const struct elf_file *f)
{
	GElf_Ehdr file;

	return f->elf && gelf_getehdr(f->elf, &file) && file.e_type != ET_REL &&
	       (elf_file_has_section(f, ".debug_info") || elf_file_has_section(f, ".zdebug_info"));
}

/* The pages of the section table. False: it has none, or it is not whole. */
static bool table_pages(const struct elf_file *f, uint64_t *ret_first, uint64_t *ret_end)
{
	GElf_Ehdr header;
	size_t n_sections = 0, page = (size_t)sysconf(_SC_PAGESIZE);
	if (!gelf_getehdr(f->elf, &header) || elf_getshdrnum(f->elf, &n_sections) < 0 ||
		header.e_shoff >= f->n)
		return false;
	uint64_t bytes = gelf_fsize(f->elf, ELF_T_SHDR, n_sections, EV_CURRENT);
	uint64_t end = bytes < f->n - header.e_shoff ? header.e_shoff + bytes : f->n;
	*ret_first = header.e_shoff / page * page;
	*ret_end = (end + page - 1) / page * page;
	return true;
}

int elf_file_unpack(struct elf_file *f)
{
	uint64_t first = 0, end = 0;
	if (!f->elf || f->unpacked)
		return 0;
	if (f->mapped && table_pages(f, &first, &end) && first < end &&
		mprotect((uint8_t *)f->bytes + first, end - first, PROT_READ | PROT_WRITE) < 0)
		return -ENOMEM;
	f->unpacked = true;
	debug_sections_unpack(f->elf, f->bytes, f->n, &f->apart);
	return 0;
}

size_t elf_file_packed(const struct elf_file *f)
{
	return f->elf && !f->unpacked ? debug_sections_packed(f->elf) : 0;
}

void elf_file_pack(struct elf_file *f)
{
	if (!f->unpacked || !f->mapped)
		return;
	elf_end(f->elf);
	unpacked_free(&f->apart);
	madvise(f->bytes, f->n, MADV_DONTNEED);
	f->unpacked = false;
	(void)elf_file_begin(f);
}

/* Not the section table of an unpacked file: only our copy of it records what was unpacked. */
void elf_file_rest(struct elf_file *f)
{
	uint64_t before = 0, behind = 0;
	if (f->mapped && !f->unpacked)
		madvise(f->bytes, f->n, MADV_DONTNEED);
	if (!f->mapped || !f->unpacked || !table_pages(f, &before, &behind))
		return;

	if (before > 0)
		madvise(f->bytes, before, MADV_DONTNEED);
	if (behind < f->n)
		madvise((uint8_t *)f->bytes + behind, f->n - behind, MADV_DONTNEED);
}

size_t elf_file_build_id(const struct elf_file *f, const uint8_t **ret_id)
{
	const void *id;
	ssize_t n = f->elf ? dwelf_elf_gnu_build_id(f->elf, &id) : 0;
	if (n <= 0)
		return 0;
	*ret_id = id;
	return (size_t)n;
}

/* The section holds a path with its NUL, then the build id. Source: DWARF extensions of dwz(1);
 * dwelf_dwarf_gnu_debugaltlink of elfutils. */
size_t elf_file_alt_link(const struct elf_file *f, const char **ret_path, const uint8_t **ret_id)
{
	size_t names, n_seen = 0;
	if (!f->elf || elf_getshdrstrndx(f->elf, &names))
		return 0;

	for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		if (!gelf_getshdr(s, &header) || header.sh_type == SHT_NOBITS)
			continue;
		const char *name = elf_strptr(f->elf, names, header.sh_name);
		if (!name || strcmp(name, ".gnu_debugaltlink") != 0)
			continue;
		Elf_Data *data = elf_rawdata(s, NULL);
		const char *path = data ? data->d_buf : NULL;
		const char *end = path ? memchr(path, '\0', data->d_size) : NULL;
		if (!end)
			return 0;
		*ret_path = path;
		*ret_id = (const uint8_t *)end + 1;
		return data->d_size - (size_t)(end + 1 - path);
	}
	return 0;
}

void elf_file_close(struct elf_file *f)
{
	elf_end(f->elf);
	unpacked_free(&f->apart);
	if (f->mapped)
		munmap(f->bytes, f->n);
	else
		free(f->bytes);
	*f = (struct elf_file){0};
}
