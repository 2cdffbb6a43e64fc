/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Fedora and similar distributions keep the names of local functions in stripped programs:
 * .gnu_debugdata is an xz-compressed ELF file with only a symbol table. elfutils unpacks it only in
 * libdwfl, which searches for files itself, so it is done here. The output buffer grows with the
 * output and is never sized by the input's claim.
 */

#include "daemon/namer/mini_debug.h"

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

/* xz -9 needs 65 MB to unpack. */
#define XZ_MEMORY_BYTES_MAX ((uint64_t)96 << 20)
#define SECTIONS_MAX 1000000
#define FIRST_BYTES ((size_t)64 << 10)

static Elf_Data *packed_data(Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names))
		return NULL;

	Elf_Scn *section = NULL;
	for (size_t i = 0; i < SECTIONS_MAX && (section = elf_nextscn(elf, section)); i++) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".gnu_debugdata") != 0)
			continue;
		Elf_Data *data = elf_rawdata(section, NULL);
		return data && data->d_buf && data->d_size ? data : NULL;
	}
	return NULL;
}

static void stream_endp(lzma_stream *stream)
{
	lzma_end(stream);
}

static int unpack(lzma_stream *stream, uint8_t **bytes, size_t *ret_n)
{
	size_t size = FIRST_BYTES;

	for (;;) {
		uint8_t *grown = realloc(*bytes, size);
		if (!grown)
			return -ENOMEM;
		*bytes = grown;
		stream->next_out = grown + stream->total_out;
		stream->avail_out = size - stream->total_out;

		lzma_ret r = lzma_code(stream, LZMA_FINISH);
		if (r == LZMA_STREAM_END) {
			*ret_n = stream->total_out;
			return 0;
		}
		if (r == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (r == LZMA_MEMLIMIT_ERROR)
			return MINI_DEBUG_OVERSIZE;
		if (r != LZMA_OK || stream->avail_out)
			return MINI_DEBUG_MALFORMED; /* ends early, or is not xz */

		if (size >= MINI_DEBUG_BYTES_MAX)
			return MINI_DEBUG_OVERSIZE;
		size *= 2;
	}
}

int mini_debug_unpack(Elf *elf, uint8_t **ret_bytes, size_t *ret_n)
{
	Elf_Data *packed = packed_data(elf);
	if (!packed)
		return MINI_DEBUG_NONE;

	_cleanup_(stream_endp) lzma_stream stream = LZMA_STREAM_INIT;
	if (lzma_stream_decoder(&stream, XZ_MEMORY_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = packed->d_buf;
	stream.avail_in = packed->d_size;

	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t n;
	int r = unpack(&stream, &bytes, &n);
	if (r)
		return r;

	*ret_bytes = TAKE_PTR(bytes);
	*ret_n = n;
	return 0;
}
