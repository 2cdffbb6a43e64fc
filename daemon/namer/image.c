/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An image joins what names an offset: the symbols (of the file itself, of its mini debug
 * information, of its separate debug file), and the lines of whichever of them has DWARF.
 *
 * Files are mapped privately and given to libelf as memory. Mapping, not reading, because a debug
 * file of a gigabyte is mostly never looked at. Privately and writable, because libelf unpacks
 * compressed sections in place. As memory, because without a descriptor elfutils has no path to
 * start a search from. The price is that a file which is truncated while we are in it kills the
 * process with SIGBUS: the parser is restarted for it, as for any other hostile file.
 */

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "daemon/namer/debug_sections.h"
#include "daemon/namer/dwarf_lines.h"
#include "daemon/namer/elf_symbols.h"
#include "daemon/namer/image_inside.h"
#include "daemon/namer/jitdump.h"
#include "daemon/namer/mini_debug.h"

/* A core file has thousands of segments; programs have about ten. */
#define SEGMENTS_MAX 1024

/* A debug file without a build id is known by its checksum alone, which takes reading all of it:
 * half a second for this many bytes, several on a slow board. A larger one is not used. */
#define CHECKSUM_BYTES_MAX ((size_t)1 << 30)

/* One ELF file in memory. */
struct elf_file {
	Elf *elf; /* NULL: absent */
	void *bytes;
	size_t n;
	bool mapped; /* else from malloc */
	bool symtab;
};

struct segment {
	uint64_t offset, addr, n;
	bool executable;
};

struct elf_image {
	struct elf_file self, mini, debug, alt;
	struct segment *segment;
	size_t n_segments;
	struct dwarf_lines *lines; /* NULL: no DWARF in self, nor in debug */
};

static void elf_file_close(struct elf_file *f)
{
	elf_end(f->elf);
	if (f->mapped)
		munmap(f->bytes, f->n);
	else
		free(f->bytes);
	*f = (struct elf_file){0};
}

/* The Elf of the bytes that are in f. */
static int elf_file_begin(struct elf_file *f)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	f->elf = elf_memory(f->bytes, f->n);

	GElf_Ehdr header;
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &header)) {
		elf_file_close(f);
		return IMAGE_MALFORMED;
	}
	return 0;
}

static int elf_file_map(struct elf_file *f, int fd)
{
	struct stat status;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < EI_NIDENT)
		return IMAGE_MALFORMED;
	if ((uint64_t)status.st_size > IMAGE_FILE_BYTES_MAX)
		return IMAGE_OVERSIZE;

	f->n = (size_t)status.st_size;
	f->bytes = mmap(NULL, f->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (f->bytes == MAP_FAILED) {
		*f = (struct elf_file){0};
		return errno == ENOMEM ? IMAGE_OVERSIZE : -errno;
	}
	f->mapped = true;
	return elf_file_begin(f);
}

/* Pages that the kernel reads again when they are touched. Not the table of sections, which tells
 * in our copy alone what was unpacked. */
static void elf_file_rest(struct elf_file *f)
{
	GElf_Ehdr header;
	size_t n_sections = 0, page = (size_t)sysconf(_SC_PAGESIZE);
	if (!f->mapped || !gelf_getehdr(f->elf, &header) || elf_getshdrnum(f->elf, &n_sections) < 0)
		return;

	uint64_t table = header.e_shoff < f->n ? header.e_shoff : f->n;
	uint64_t bytes = (uint64_t)n_sections * header.e_shentsize;
	uint64_t end = bytes < f->n - table ? table + bytes : f->n;
	uint64_t before = table / page * page, behind = (end + page - 1) / page * page;
	if (before > 0)
		madvise(f->bytes, before, MADV_DONTNEED);
	if (behind < f->n)
		madvise((uint8_t *)f->bytes + behind, f->n - behind, MADV_DONTNEED);
}

static size_t elf_build_id(Elf *elf, const uint8_t **ret_id)
{
	const void *id;
	ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &id) : 0;
	if (n <= 0)
		return 0;
	*ret_id = id;
	return (size_t)n;
}

static int elf_read_segments(struct elf_image *e)
{
	size_t n;
	if (elf_getphdrnum(e->self.elf, &n) || n > SEGMENTS_MAX)
		return n > SEGMENTS_MAX ? IMAGE_OVERSIZE : IMAGE_MALFORMED;

	e->segment = calloc(n ? n : 1, sizeof(*e->segment));
	if (!e->segment)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(e->self.elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		e->segment[e->n_segments++] = (struct segment){
			.offset = header.p_offset,
			.addr = header.p_vaddr,
			.n = header.p_filesz,
			.executable = header.p_flags & PF_X,
		};
	}
	return 0;
}

/* A page of the file may be mapped twice; code is in the executable copy. */
static bool elf_addr(const struct elf_image *e, uint64_t offset, uint64_t *ret_addr)
{
	bool found = false;

	for (size_t i = 0; i < e->n_segments; i++) {
		const struct segment *s = &e->segment[i];
		if (offset < s->offset || offset - s->offset >= s->n)
			continue;
		if (found && !s->executable)
			continue;
		found = true;
		*ret_addr = s->addr + (offset - s->offset);
		if (s->executable)
			break;
	}
	return found;
}

/* The symbols of .gnu_debugdata. Whatever is wrong with it, the rest is still good. */
static int elf_collect_mini(struct elf_image *e, struct symbols *symbols)
{
	struct elf_file mini = {0};

	if (e->mini.elf)
		return elf_symbols_collect(e->mini.elf, SHT_SYMTAB, symbols);
	if (mini_debug_unpack(e->self.elf, (uint8_t **)&mini.bytes, &mini.n) ||
		elf_file_begin(&mini))
		return ELF_SYMBOLS_NONE;
	e->mini = mini;
	int r = elf_symbols_collect(e->mini.elf, SHT_SYMTAB, symbols);
	e->mini.symtab = r == 0;
	return r;
}

static int elf_collect(struct image *image, struct symbols *symbols)
{
	struct elf_image *e = image->elf;

	int r = elf_symbols_collect(e->self.elf, SHT_SYMTAB, symbols);
	e->self.symtab = r == 0;
	if (r == ELF_SYMBOLS_NONE && e->debug.elf) {
		r = elf_symbols_collect(e->debug.elf, SHT_SYMTAB, symbols);
		e->debug.symtab = r == 0;
	}
	if (r == ELF_SYMBOLS_NONE) {
		r = elf_collect_mini(e, symbols);
		if (r == 0 || r == ELF_SYMBOLS_NONE)
			r = elf_symbols_collect(e->self.elf, SHT_DYNSYM, symbols);
	}
	if (r == 0 || r == ELF_SYMBOLS_NONE)
		r = elf_plt_collect(e->self.elf, &image->names, symbols);
	return r;
}

/* Make image->symbols out of what is there. */
static int elf_read_symbols(struct image *image)
{
	struct symbols symbols = {0};
	struct spans spans = {0};

	int r = elf_collect(image, &symbols);
	if (r == 0)
		r = symbols_resolve(&symbols, &spans);
	symbols_clear(&symbols);
	if (r) {
		spans_clear(&spans);
		return r < 0 ? r : IMAGE_OVERSIZE;
	}

	spans_clear(&image->symbols);
	image->symbols = spans;
	return 0;
}

static int elf_read_lines(struct elf_image *e, const struct elf_file *f)
{
	GElf_Ehdr header;

	/* In relocatable files addresses are not final. */
	if (!gelf_getehdr(f->elf, &header) || header.e_type == ET_REL)
		return 0;
	debug_sections_unpack(f->elf, f->bytes, f->n);
	int r = dwarf_lines_new(f->elf, &e->lines);
	return r == DWARF_LINES_NONE ? 0 : r;
}

struct image *image_new(void)
{
	return calloc(1, sizeof(struct image));
}

int image_open_elf(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = image_new();
	if (!image)
		return -ENOMEM;
	image->elf = calloc(1, sizeof(*image->elf));
	if (!image->elf)
		return -ENOMEM;

	int r = elf_file_map(&image->elf->self, fd);
	if (r == 0)
		r = elf_read_segments(image->elf);
	if (r == 0)
		r = elf_read_symbols(image);
	if (r == 0)
		r = elf_read_lines(image->elf, &image->elf->self);
	if (r)
		return r;

	*ret_image = TAKE_PTR(image);
	return 0;
}

int image_open_kallsyms(
	struct kallsyms *k, const char *module, uint64_t base, struct image **ret_image)
{
	struct image *image = image_new();
	if (!image)
		return -ENOMEM;
	image->kallsyms = kallsyms_ref(k);
	image->kernel = kallsyms_find(k, module);
	image->kernel_base = !module && kallsyms_stext(k) ? kallsyms_stext(k) : base;
	*ret_image = image;
	return 0;
}

/* Takes the file. On failure the image is as before, so that the caller can make room and retry. */
static int elf_use_debug(struct image *i, struct elf_file debug)
{
	bool had_lines = i->elf->lines;
	int r = had_lines ? 0 : elf_read_lines(i->elf, &debug);

	i->elf->debug = debug;
	if (r == 0 && !i->elf->self.symtab)
		r = elf_read_symbols(i);
	if (r) {
		if (!had_lines)
			i->elf->lines = dwarf_lines_free(i->elf->lines);
		elf_file_close(&i->elf->debug);
	}
	return r;
}

/* Two build ids decide. Where either file has none, the checksum does that the link gives.
 * Source: GDB manual, "Debugging Information in Separate Files": the CRC of zlib and xz. */
static bool debug_belongs(const struct elf_image *e, const struct elf_file *debug)
{
	const uint8_t *own_id, *id;
	size_t n_own_id = elf_build_id(e->self.elf, &own_id);
	size_t n_id = elf_build_id(debug->elf, &id);
	GElf_Word checksum;

	if (n_own_id && n_id)
		return n_own_id == n_id && memcmp(own_id, id, n_id) == 0;
	return dwelf_elf_gnu_debuglink(e->self.elf, &checksum) && debug->n <= CHECKSUM_BYTES_MAX &&
	       lzma_crc32(debug->bytes, debug->n, 0) == checksum;
}

int image_add_debug(struct image *i, int fd, bool *belongs)
{
	struct elf_file debug = {0};

	if (!i->elf || i->elf->debug.elf)
		return -EINVAL;
	int r = elf_file_map(&debug, fd);
	if (r)
		return r;

	*belongs = *belongs || debug_belongs(i->elf, &debug);
	if (!*belongs) {
		elf_file_close(&debug);
		return IMAGE_MISMATCH;
	}
	return elf_use_debug(i, debug);
}

int image_add_alt(struct image *i, int fd)
{
	struct elf_file alt = {0};
	const char *path;
	const uint8_t *wanted_id, *id;

	if (!i->elf || !i->elf->lines || i->elf->alt.elf)
		return -EINVAL;
	int r = elf_file_map(&alt, fd);
	if (r)
		return r;

	size_t n_wanted_id = dwarf_lines_alt_link(i->elf->lines, &path, &wanted_id);
	size_t n_id = elf_build_id(alt.elf, &id);
	if (!n_wanted_id || n_wanted_id != n_id || memcmp(wanted_id, id, n_id) != 0)
		r = IMAGE_MISMATCH;
	else
		debug_sections_unpack(alt.elf, alt.bytes, alt.n);
	if (r == 0 && dwarf_lines_set_alt(i->elf->lines, alt.elf))
		r = IMAGE_MALFORMED;
	if (r) {
		elf_file_close(&alt);
		return r;
	}

	i->elf->alt = alt;
	return 0;
}

static void copy_id(uint8_t to[20], uint8_t *ret_n, const uint8_t *id, size_t n)
{
	/* Longer ids exist in the ELF notes of nobody; the kernel's limit is 20 too. */
	if (n > 20)
		return;
	memcpy(to, id, n);
	*ret_n = (uint8_t)n;
}

static void copy_path(char to[256], const char *path)
{
	size_t n = strnlen(path, 256);
	if (n < 256)
		memcpy(to, path, n + 1);
}

void image_wants(const struct image *i, struct image_wants *ret_wants)
{
	GElf_Word checksum;
	const uint8_t *id;
	const char *path;

	*ret_wants = (struct image_wants){0};
	if (!i->elf)
		return;

	size_t n = elf_build_id(i->elf->self.elf, &id);
	if (n)
		copy_id(ret_wants->build_id, &ret_wants->n_build_id, id, n);
	path = dwelf_elf_gnu_debuglink(i->elf->self.elf, &checksum);
	if (path)
		copy_path(ret_wants->debuglink, path);

	ret_wants->symbols = !i->elf->self.symtab && !i->elf->mini.symtab && !i->elf->debug.symtab;
	ret_wants->debug = !i->elf->lines;
	if (!i->elf->lines || i->elf->alt.elf)
		return;
	n = dwarf_lines_alt_link(i->elf->lines, &path, &id);
	if (n) {
		copy_path(ret_wants->alt_link, path);
		copy_id(ret_wants->alt_build_id, &ret_wants->n_alt_build_id, id, n);
	}
}

/* The places of an address in an ELF file; the symbol's name stands over that of DWARF, which is
 * the same for all clones of a function. */
static void name_elf(struct image *i, uint64_t offset, struct image_naming *naming)
{
	uint64_t addr = 0;

	if (!elf_addr(i->elf, offset, &addr))
		return;
	const struct span *symbol = spans_find(&i->symbols, addr);
	if (i->elf->lines)
		naming->n_places = dwarf_lines_find(i->elf->lines, addr, &i->names, naming->place);
	if (!naming->n_places && symbol)
		naming->n_places = 1;
	if (!naming->n_places)
		return;

	struct image_place *last = &naming->place[naming->n_places - 1];
	if (symbol)
		last->function = names_demangle(&i->names, symbol->name);
	if (!last->function)
		naming->n_places = 0; /* a line without a function is of no use */
}

static void name_kernel(struct image *i, uint64_t offset, struct image_naming *naming)
{
	const char *name =
		kernel_symbols_find(i->kernel, i->kernel_base, offset, KERNEL_LAST_BYTES_MAX);
	if (name)
		naming->place[naming->n_places++].function = names_demangle(&i->names, name);
}

static void name_text(struct image *i, uint64_t offset, struct image_naming *naming)
{
	const struct span *symbol = spans_find(&i->symbols, offset);
	if (!symbol || !symbol->name)
		return;

	struct image_place *place = &naming->place[naming->n_places++];
	place->function = names_demangle(&i->names, symbol->name);
	if (i->jit)
		jit_lines_find(i->jit, symbol->tag, offset, place);
}

void image_name(struct image *i, uint64_t offset, struct image_naming *ret_naming)
{
	*ret_naming = (struct image_naming){0};
	if (i->elf)
		name_elf(i, offset, ret_naming);
	else if (i->kernel)
		name_kernel(i, offset, ret_naming);
	else
		name_text(i, offset, ret_naming);

	if (ret_naming->n_places)
		ret_naming->outcome = IMAGE_NAMED;
	else if (image_has_symbols(i) || image_has_debug(i))
		ret_naming->outcome = IMAGE_OUT_OF_SYMBOL;
	else
		ret_naming->outcome = IMAGE_NO_SYMBOLS;
}

bool image_has_symbols(const struct image *i)
{
	return i->symbols.n > 0 || i->kernel;
}

bool image_has_debug(const struct image *i)
{
	return i->elf ? i->elf->lines != NULL : i->jit != NULL;
}

void image_rest(struct image *i)
{
	if (!i->elf)
		return;
	elf_file_rest(&i->elf->self);
	elf_file_rest(&i->elf->debug);
	elf_file_rest(&i->elf->alt);
}

static void elf_image_free(struct elf_image *e)
{
	if (!e)
		return;
	/* libdw uses the Elf until its end. */
	dwarf_lines_free(e->lines);
	elf_file_close(&e->self);
	elf_file_close(&e->mini);
	elf_file_close(&e->debug);
	elf_file_close(&e->alt);
	free(e->segment);
	free(e);
}

struct image *image_free(struct image *i)
{
	if (!i)
		return NULL;

	spans_clear(&i->symbols);
	kallsyms_unref(i->kallsyms);
	names_clear(&i->names);
	elf_image_free(i->elf);
	jit_lines_free(i->jit);
	free(i);
	return NULL;
}
