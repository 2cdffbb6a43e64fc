/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* This program's own debug information, compressed by objcopy; and the same, spoilt. */

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/namer/debug_sections.h"
#include "tests/unit/test.h"

struct mapped {
	char *bytes;
	size_t n;
	Elf *elf;
	struct unpacked unpacked;
};

static const char *const formats[] = {"zlib", "zstd"};

static struct mapped compressed_self(const char *format)
{
	char path[] = "/tmp/mperf-debug-sections-XXXXXX", command[400];
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	snprintf(command, sizeof(command),
		"objcopy --compress-debug-sections=%s /proc/%d/exe %s 2>/dev/null", format,
		getpid(), path);
	ck_assert_int_eq(system(command), 0);

	struct stat status;
	struct mapped m = {0};
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(fstat(fd, &status), 0);
	m.n = (size_t)status.st_size;
	m.bytes = mmap(NULL, m.n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(m.bytes, MAP_FAILED);
	close(fd);
	elf_version(EV_CURRENT);
	m.elf = elf_memory(m.bytes, m.n);
	ck_assert_ptr_nonnull(m.elf);
	return m;
}

static void unmap(struct mapped *m)
{
	elf_end(m->elf);
	unpacked_free(&m->unpacked);
	munmap(m->bytes, m->n);
}

static Elf_Scn *section(Elf *elf, const char *wanted, GElf_Shdr *ret_header)
{
	size_t names;
	ck_assert_int_eq(elf_getshdrstrndx(elf, &names), 0);
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		ck_assert_ptr_nonnull(gelf_getshdr(s, ret_header));
		const char *name = elf_strptr(elf, names, ret_header->sh_name);
		if (name && strcmp(name, wanted) == 0)
			return s;
	}
	return NULL;
}

static size_t data_bytes(Elf_Scn *s)
{
	Elf_Data *data = elf_rawdata(s, NULL);
	return data && data->d_buf ? data->d_size : 0;
}

EACH_TEST(.seconds = 60);

TEST(what_names_are_made_from_is_unpacked, .times = 2)
{
	struct mapped m = compressed_self(formats[_i]);
	GElf_Shdr before, after;
	Elf_Scn *info = section(m.elf, ".debug_info", &before);
	ck_assert_ptr_nonnull(info);
	ck_assert(before.sh_flags & SHF_COMPRESSED);

	debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
	section(m.elf, ".debug_info", &after);
	ck_assert(!(after.sh_flags & SHF_COMPRESSED));
	ck_assert_int_eq(after.sh_type, SHT_PROGBITS);
	ck_assert_uint_gt(data_bytes(info), before.sh_size);
	unmap(&m);
}

TEST(what_debuggers_alone_read_is_hidden, .times = 2)
{
	struct mapped m = compressed_self(formats[_i]);
	GElf_Shdr header;
	if (!section(m.elf, ".debug_loclists", &header) || !(header.sh_flags & SHF_COMPRESSED)) {
		printf("SKIP what_debuggers_alone_read_is_hidden: this compiler wrote none\n");
		unmap(&m);
		return;
	}
	debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
	section(m.elf, ".debug_loclists", &header);
	ck_assert_int_eq(header.sh_type, SHT_NOBITS);
	unmap(&m);
}

TEST(code_and_symbols_stay_as_they_are, .times = 2)
{
	struct mapped m = compressed_self(formats[_i]);
	GElf_Shdr text, symbols, after;
	ck_assert_ptr_nonnull(section(m.elf, ".text", &text));
	ck_assert_ptr_nonnull(section(m.elf, ".symtab", &symbols));
	debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
	section(m.elf, ".text", &after);
	ck_assert_mem_eq(&text, &after, sizeof(after));
	section(m.elf, ".symtab", &after);
	ck_assert_mem_eq(&symbols, &after, sizeof(after));
	unmap(&m);
}

/* The header says how long it gets: more than there is memory, or the stream is no stream. */
TEST(what_cannot_be_unpacked_is_left, .times = 2)
{
	for (int how = 0; how < 5; how++) {
		struct mapped m = compressed_self(formats[_i]);
		GElf_Shdr header;
		ck_assert_ptr_nonnull(section(m.elf, ".debug_info", &header));
		Elf64_Chdr *c = (Elf64_Chdr *)(m.bytes + header.sh_offset);
		if (how == 0)
			c->ch_size = UINT64_MAX / 2;
		else if (how == 1)
			memset(c + 1, 0xa5, header.sh_size - sizeof(*c));
		else if (how == 2)
			c->ch_type = 77;
		else if (how == 3)
			c->ch_size--;
		else
			c->ch_size++;
		debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
		section(m.elf, ".debug_info", &header);
		ck_assert_msg(header.sh_flags & SHF_COMPRESSED, "case %d", how);
		unmap(&m);
	}
}

/* Sections that unpack to more than a file may have. */
TEST(a_bomb_is_left)
{
	struct mapped m = compressed_self("zstd");
	GElf_Shdr header;

	m.unpacked.n_bytes = UNPACKED_BYTES_MAX - 100;
	debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
	section(m.elf, ".debug_info", &header);
	ck_assert(header.sh_flags & SHF_COMPRESSED);
	ck_assert_int_eq(header.sh_type, SHT_NOBITS); /* else libdw tries */
	unmap(&m);
}

TEST(a_section_beyond_the_file_drops_nothing, .times = 2)
{
	struct mapped m = compressed_self(formats[_i]);
	GElf_Shdr header;
	Elf_Scn *info = section(m.elf, ".debug_info", &header);
	header.sh_offset = m.n + 4096;
	gelf_update_shdr(info, &header);
	char first = m.bytes[0];
	debug_sections_unpack(m.elf, m.bytes, m.n, &m.unpacked);
	ck_assert_int_eq(m.bytes[0], first);
	unmap(&m);
}
