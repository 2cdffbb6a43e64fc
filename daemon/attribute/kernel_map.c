/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The kernel's own addresses
 *
 * /proc/modules gives each module one address and one size, although its text and data are separate
 * since Linux 6.4: the size is the sum, so a range may overlap the next module's. The module that
 * begins nearest below an address is still the right one. Files are created when a frame first
 * needs them, so that the build ids of 300 modules are not read for nothing.
 */

#include "daemon/attribute/kernel_map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/scan.h"
#include "proto/base/memory.h"

/* Source: include/uapi/linux/elf.h, NT_GNU_BUILD_ID. */
#define NOTE_GNU_BUILD_ID 3

static size_t note_padded(uint32_t n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

uint8_t note_build_id(const uint8_t *notes, size_t n, uint8_t ret_build_id[20])
{
	struct {
		uint32_t n_name, n_description, type;
	} head;

	for (size_t at = 0; n - at >= sizeof(head);) {
		memcpy(&head, notes + at, sizeof(head));
		at += sizeof(head);

		size_t n_name = note_padded(head.n_name);
		size_t n_description = note_padded(head.n_description);
		if (n_name > n - at || n_description > n - at - n_name)
			return 0;

		const uint8_t *description = notes + at + n_name;
		if (head.type == NOTE_GNU_BUILD_ID && head.n_name == 4 &&
			!memcmp(notes + at, "GNU", 4) && head.n_description > 0 &&
			head.n_description <= 20) {
			memcpy(ret_build_id, description, head.n_description);
			return (uint8_t)head.n_description;
		}
		at += n_name + n_description;
	}
	return 0;
}

/* "name size references users state address [taints]". Source: kernel/module/procfs.c, m_show. */
static int module_parse(const char *line, size_t n, struct kernel_module *ret_module)
{
	char text[512], *rest = NULL, *field[6];
	struct kernel_module m = {0};
	uint64_t bytes;

	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, line, n);
	text[n] = '\0';

	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : text, " \t", &rest);
		if (!field[i])
			return SCAN_MALFORMED;
	}
	if (strlen(field[0]) >= sizeof(m.name) || strchr(field[0], '/') || field[0][0] == '.')
		return SCAN_MALFORMED;
	if (strncmp(field[5], "0x", 2))
		return SCAN_MALFORMED;

	const char *size = field[1], *address = field[5] + 2;
	if (!scan_number(&size, 10, &bytes) || *size || !scan_number(&address, 16, &m.start) ||
		*address)
		return SCAN_MALFORMED;
	if (!m.start || !bytes || bytes > UINT64_MAX - m.start)
		return SCAN_MALFORMED;

	strcpy(m.name, field[0]);
	m.end = m.start + bytes;
	*ret_module = m;
	return 0;
}

static int module_compare(const void *a, const void *b)
{
	const struct kernel_module *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int kernel_map_modules(struct kernel_map *m, const char *text)
{
	size_t size = m->n_modules;

	for (const char *line = text; *line && m->n_modules < KERNEL_MODULES_MAX;) {
		size_t n = strcspn(line, "\n");

		if (m->n_modules == size) {
			size = size ? size * 2 : 64;
			struct kernel_module *module =
				reallocarray(m->module, size, sizeof(*module));
			if (!module)
				return -ENOMEM;
			m->module = module;
		}
		if (!module_parse(line, n, &m->module[m->n_modules]))
			m->n_modules++;
		line += n + (line[n] == '\n');
	}
	if (m->n_modules)
		qsort(m->module, m->n_modules, sizeof(*m->module), module_compare);
	return 0;
}

static int kernel_map_read_modules(struct kernel_map *m)
{
	char path[PATH_MAX];
	_cleanup_(freep) char *text = malloc(KERNEL_MODULES_BYTES_MAX);
	if (!text)
		return -ENOMEM;

	snprintf(path, sizeof(path), "%s/modules", m->proc);
	if (scan_text(AT_FDCWD, path, text, KERNEL_MODULES_BYTES_MAX) < 0)
		return 0;
	return kernel_map_modules(m, text);
}

/* "ffffffff81000000 T _stext". Source: kernel/kallsyms.c, s_show. */
static uint64_t kernel_base_read(const char *proc)
{
	char path[PATH_MAX], line[1024];
	size_t n_read = 0;

	snprintf(path, sizeof(path), "%s/kallsyms", proc);
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	if (!f)
		return 0;

	while (n_read < KERNEL_SYMBOLS_BYTES_MAX && fgets(line, sizeof(line), f)) {
		const char *p = line;
		uint64_t address;

		n_read += strlen(line);
		if (!scan_number(&p, 16, &address))
			continue;
		if (!strcmp(p, " T _stext\n") || !strcmp(p, " t _stext\n"))
			return address;
	}
	return 0;
}

int kernel_map_read(const char *proc, struct kernel_map *ret_map)
{
	struct kernel_map m = {.proc = proc, .base = kernel_base_read(proc)};

	int r = kernel_map_read_modules(&m);
	if (r < 0) {
		kernel_map_clear(&m);
		return r;
	}
	*ret_map = m;
	return 0;
}

static uint8_t sys_build_id(const char *proc, const char *name, uint8_t ret_build_id[20])
{
	char path[PATH_MAX], notes[KERNEL_NOTES_BYTES_MAX];

	snprintf(path, sizeof(path), "%s/../sys/%s", proc, name);
	ssize_t n = scan_text(AT_FDCWD, path, notes, sizeof(notes));
	return n > 0 ? note_build_id((const uint8_t *)notes, (size_t)n, ret_build_id) : 0;
}

int kernel_map_kernel(struct kernel_map *m, struct file_table *files, struct file **ret_file)
{
	if (!m->file) {
		uint8_t build_id[20];
		struct file_key key = {
			.kind = FILE_KERNEL,
			.path = "[kernel]",
			.build_id = build_id,
			.n_build_id = sys_build_id(m->proc, "kernel/notes", build_id),
		};
		int r = file_get(files, &key, &m->file);
		if (r)
			return r;
		m->file->map_start = m->base;
	}
	*ret_file = m->file;
	return 0;
}

static int kernel_map_module_file(
	struct kernel_map *m, struct file_table *files, struct kernel_module *module)
{
	char path[KERNEL_MODULE_NAME_BYTES + 3], notes[KERNEL_MODULE_NAME_BYTES + 64];
	uint8_t build_id[20];

	snprintf(path, sizeof(path), "[%s]", module->name);
	snprintf(notes, sizeof(notes), "module/%s/notes/.note.gnu.build-id", module->name);
	struct file_key key = {
		.kind = FILE_MODULE,
		.path = path,
		.build_id = build_id,
		.n_build_id = sys_build_id(m->proc, notes, build_id),
	};
	int r = file_get(files, &key, &module->file);
	if (r)
		return r;

	module->file->map_start = module->start;
	module->file->map_end = module->end;
	return 0;
}

/* The last module that begins at or below addr, if it reaches that far. */
static struct kernel_module *kernel_module_find(const struct kernel_map *m, uint64_t addr)
{
	size_t low = 0, high = m->n_modules;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->module[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < m->module[low - 1].end ? &m->module[low - 1] : NULL;
}

bool kernel_map_has_text(const struct kernel_map *m)
{
	return m->base;
}

bool kernel_map_is_outside(const struct kernel_map *m, uint64_t addr)
{
	return m->base && (addr < m->base || addr - m->base >= FILE_KERNEL_TEXT_BYTES) &&
	       !kernel_module_find(m, addr);
}

void kernel_map_mark(const struct kernel_map *m, struct file_marks *marks)
{
	file_marks_keep(marks, m->file);
	for (size_t i = 0; i < m->n_modules; i++)
		file_marks_keep(marks, m->module[i].file);
}

int kernel_map_find(struct kernel_map *m, struct file_table *files, uint64_t addr,
	struct file **ret_file, uint64_t *ret_offset)
{
	struct kernel_module *module = kernel_module_find(m, addr);
	int r;

	if (module) {
		r = module->file ? 0 : kernel_map_module_file(m, files, module);
		if (r)
			return r;
		*ret_file = module->file;
		*ret_offset = addr - module->start;
		return 0;
	}

	r = kernel_map_kernel(m, files, ret_file);
	if (!r)
		*ret_offset = m->base ? addr - m->base : 0;
	return r;
}

void kernel_map_clear(struct kernel_map *m)
{
	free(m->module);
	*m = (struct kernel_map){0};
}
