/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unpacking leaves the compressed bytes as they are in the file, so their pages may be dropped: the
 * kernel reads them again if they are touched. A section is hidden by the type in its header, in
 * our private copy: libdw skips sections without bits, as in a stripped file.
 *
 * libelf reads a section once and then keeps two descriptions of its bytes, raw and converted; for
 * debug sections both are the same. Later readers, libdw too, get these descriptions. Through them a
 * section gets bytes that are not in the file.
 */

#include "daemon/namer/debug_sections.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

/* The maximum of an ELF file without extensions. */
#define SECTIONS_MAX 65536

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* Source: System V ABI, chapter 4, "Section Compression" */
#endif

/* The sections of split units have their names with ".dwo". */
static bool for_debuggers_only(const char *name)
{
	static const char *const names[] = {".debug_loc", ".debug_loclists", ".debug_macinfo",
		".debug_macro", ".debug_pubnames", ".debug_pubtypes", ".debug_gnu_pubnames",
		".debug_gnu_pubtypes", ".debug_names", ".debug_aranges", ".debug_frame"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);
		if (strncmp(name, names[i], n) == 0 && (!name[n] || strcmp(name + n, ".dwo") == 0))
			return true;
	}
	return false;
}

/* Whole pages only: the first and the last may hold something else as well. */
static void pages_drop(char *bytes, size_t n, uint64_t offset, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (offset > n || size > n - offset)
		return;
	uint64_t first = (offset + page - 1) / page * page, end = (offset + size) / page * page;
	if (first < end)
		madvise(bytes + first, end - first, MADV_DONTNEED);
}

void section_set_bytes(Elf_Scn *section, struct section_bytes bytes)
{
	Elf_Data *data[] = {elf_rawdata(section, NULL), elf_getdata(section, NULL)};

	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		if (!data[i])
			continue;
		data[i]->d_buf = (void *)bytes.at;
		data[i]->d_size = bytes.n;
		data[i]->d_type = ELF_T_BYTE;
		data[i]->d_align = 1;
	}
}

/* The compressed bytes behind their header. False: they are not zstd's. */
static bool find_zstd(Elf *elf, Elf_Scn *s, GElf_Chdr *ret_header, struct section_bytes *ret_packed)
{
	Elf_Data *data = elf_rawdata(s, NULL);
	size_t n_header =
		gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);

	if (!data || !data->d_buf || data->d_size < n_header || !gelf_getchdr(s, ret_header) ||
		ret_header->ch_type != ELFCOMPRESS_ZSTD)
		return false;
	*ret_packed = (struct section_bytes){
		(const uint8_t *)data->d_buf + n_header, data->d_size - n_header};
	return true;
}

/* Only pages that zstd writes take memory, whatever length the header claims. 0; NOT_ZSTD; CANNOT */
enum { NOT_ZSTD = 1, CANNOT };
static int unpack_zstd(Elf *elf, Elf_Scn *s, GElf_Shdr *header, struct unpacked *u)
{
	GElf_Chdr claimed;
	struct section_bytes packed;

	if (!find_zstd(elf, s, &claimed, &packed))
		return NOT_ZSTD;
	if (u->n == UNPACKED_SECTIONS_MAX || claimed.ch_size == 0 ||
		claimed.ch_size > UNPACKED_BYTES_MAX - u->n_bytes)
		return CANNOT;
	uint8_t *bytes = malloc(claimed.ch_size);
	if (!bytes ||
		ZSTD_decompress(bytes, claimed.ch_size, packed.at, packed.n) != claimed.ch_size) {
		free(bytes);
		return CANNOT;
	}
	u->section[u->n++] = bytes;
	u->n_bytes += claimed.ch_size;
	section_set_bytes(s, (struct section_bytes){bytes, claimed.ch_size});
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = claimed.ch_size;
	header->sh_addralign = claimed.ch_addralign;
	gelf_update_shdr(s, header);
	return 0;
}

void unpacked_free(struct unpacked *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->section[i]);
	*u = (struct unpacked){.n = 0};
}

/* The name of a compressed section of debug information; NULL: it is none. */
static const char *packed_name(Elf *elf, Elf_Scn *s, size_t names, GElf_Shdr *ret_header)
{
	if (!gelf_getshdr(s, ret_header) || !(ret_header->sh_flags & SHF_COMPRESSED))
		return NULL;
	const char *name = elf_strptr(elf, names, ret_header->sh_name);
	return name && strncmp(name, ".debug_", 7) == 0 ? name : NULL;
}

size_t debug_sections_packed(Elf *elf)
{
	size_t names, n_seen = 0, n_bytes = 0;
	if (elf_getshdrstrndx(elf, &names))
		return 0;

	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		GElf_Chdr claimed;
		const char *name = packed_name(elf, s, names, &header);
		if (name && !for_debuggers_only(name) && gelf_getchdr(s, &claimed) &&
			claimed.ch_size < SIZE_MAX - n_bytes)
			n_bytes += claimed.ch_size;
	}
	return n_bytes;
}

void debug_sections_unpack(Elf *elf, void *bytes, size_t n, struct unpacked *unpacked)
{
	size_t names, n_seen = 0;
	if (elf_getshdrstrndx(elf, &names))
		return;

	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		const char *name = packed_name(elf, s, names, &header);
		if (!name)
			continue;
		uint64_t offset = header.sh_offset, size = header.sh_size;
		int r = for_debuggers_only(name) ? CANNOT : unpack_zstd(elf, s, &header, unpacked);
		if (r == CANNOT) { /* libdw may try, without a limit */
			header.sh_type = SHT_NOBITS;
			gelf_update_shdr(s, &header);
		} else if (r == 0 || elf_compress(s, 0, 0) == 1) {
			pages_drop(bytes, n, offset, size);
		}
	}
}

static bool is_native(Elf *elf)
{
	static const uint16_t order = 1;
	const char native = *(const char *)&order ? ELFDATA2LSB : ELFDATA2MSB;
	const char *identity = elf_getident(elf, NULL);

	return identity && identity[EI_DATA] == native;
}

static void find_one(const char *name, Elf_Scn *s, const char *const wanted[], size_t n,
	struct section_bytes found[])
{
	for (size_t i = 0; i < n; i++) {
		if (found[i].at || strcmp(name, wanted[i]) != 0)
			continue;
		Elf_Data *data = elf_rawdata(s, NULL);
		if (data && data->d_buf)
			found[i] = (struct section_bytes){data->d_buf, data->d_size};
	}
}

void debug_sections_find(
	Elf *elf, const char *const name[], size_t n, struct section_bytes ret_found[])
{
	size_t names, n_seen = 0;

	memset(ret_found, 0, n * sizeof(*ret_found));
	if (!is_native(elf) || elf_getshdrstrndx(elf, &names))
		return;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		if (!gelf_getshdr(s, &header) || header.sh_type == SHT_NOBITS ||
			header.sh_flags & SHF_COMPRESSED)
			continue;
		const char *is = elf_strptr(elf, names, header.sh_name);
		if (is)
			find_one(is, s, name, n, ret_found);
	}
}
