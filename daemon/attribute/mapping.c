/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Mappings: the kind of code behind a mapping's name, and how a mapping is entered
 *
 * The kernel has many names for memory that belongs to no file. To a profiler they all mean the
 * same: code was generated there, and only that process can describe it. A name that looks like a
 * path is treated as a file; the opener finds out whether it is one.
 */

#include "daemon/attribute/mapping.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"

/* Files checked for rewriting in this drain, by id modulo this; a collision costs a system call. */
#define FILES_CHECKED 64u

struct checked_files {
	const struct file *file[FILES_CHECKED];
};

struct checked_files *mapping_new(void)
{
	return calloc(1, sizeof(struct checked_files));
}

void mapping_recheck(struct checked_files *c)
{
	*c = (struct checked_files){.file = {NULL}};
}

/* Source: kernel/events/core.c, perf_event_mmap_event ("//anon", "[heap]", "[stack]"); mm/shmem.c
 * (memfd:, SYSV, dev/zero); mm/hugetlb.c (anon_hugepage); fs/anon_inodes.c; man prctl,
 * PR_SET_VMA_ANON_NAME ("[anon:name]"). */
static const char *const generated_names[] = {
	"//anon",
	"[anon",
	"anon_inode:",
	"/anon_hugepage",
	"/memfd:",
	"/dev/zero",
	"/SYSV",
	"[heap]",
	"[stack",
	"[anon_shmem:",
};

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* jit-NNN.dump. Source: tools/perf/Documentation/jitdump-specification.txt. */
static bool is_jitdump(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (!starts(name, "jit-"))
		return false;
	name += strlen("jit-");
	size_t n_digits = strspn(name, "0123456789");
	return n_digits &&
	       (!strcmp(name + n_digits, ".dump") || !strcmp(name + n_digits, ".dump (deleted)"));
}

/* Source: mm/memfd.c, MFD_NAME_PREFIX. */
static const char memfd_prefix[] = "/memfd:";

enum file_kind mapping_kind(const char *path, uint8_t n_build_id)
{
	if (!*path)
		return FILE_PERF_MAP;
	if (!strcmp(path, "[vdso]"))
		return FILE_VDSO;
	if (n_build_id && *path == '/')
		return FILE_ELF;
	if (is_jitdump(path))
		return FILE_JITDUMP;
	for (size_t i = 0; i < sizeof(generated_names) / sizeof(*generated_names); i++)
		if (starts(path, generated_names[i]))
			return FILE_PERF_MAP;

	/* "[vsyscall]", "[uprobes]", "//toolong": nothing to open */
	return *path == '/' && path[1] != '/' ? FILE_ELF : FILE_ANON;
}

/* --- entering --------------------------------------------------------------------------------- */

/* Is the mapping the memfd from which the program was executed? Only this memfd is treated as a file, since
 * compilers keep generated code in a memfd, too. The kernel maps the program's memfd first. */
static bool is_memfd_of_program(struct task *process, const struct record_mmap *m)
{
	if (!starts(m->path, memfd_prefix) || !m->inode)
		return false;
	if (!process->exe && process->exec_ns && (!process->space || !process->space->n_maps))
		process->memfd_inode = m->inode;
	return process->memfd_inode == m->inode;
}

/* A 32-bit program has a vdso of its own, at an address of 32 bits; ours does not name it. */
static bool is_narrow_vdso(const struct record_mmap *m)
{
	return sizeof(void *) > 4 && m->start <= UINT32_MAX;
}

static enum file_kind kind_in(struct task *process, const struct record_mmap *m)
{
	enum file_kind kind = mapping_kind(m->path, m->n_build_id);

	if (kind == FILE_PERF_MAP && is_memfd_of_program(process, m))
		return FILE_ELF;
	return kind == FILE_VDSO && is_narrow_vdso(m) ? FILE_ANON : kind;
}

/* Kernel threads map no code; the generated code of a process belongs to that process. */
static struct file_key mapping_key(struct task *process, const struct record_mmap *m)
{
	enum file_kind kind = kind_in(process, m);
	bool generated = kind == FILE_PERF_MAP || kind == FILE_JITDUMP;

	return (struct file_key){
		.kind = kind,
		.path = m->path,
		.build_id = m->build_id,
		.n_build_id = m->n_build_id,
		.major = m->major,
		.minor = m->minor,
		.inode = m->inode,
		.generation = generated ? process->exec_ns : m->generation,
		.uid = task_files_uid(process),
		.account = task_account(process),
		.pid = process->pid,
		.pid_start_ns = process->start_ns,
	};
}

/* Note that the process describes its generated code from now on, including code already mapped. */
static int mapping_jitdump(struct attribute *a, struct task *process, struct file *dump)
{
	if (process->jitdump == dump)
		return 0;

	process->jitdump = dump;
	for (uint32_t i = 0; process->space && i < process->space->n_maps; i++) {
		struct map m = process->space->map[i];

		if (m.file->kind != FILE_PERF_MAP)
			continue;
		/* same bounds: the order of the others stays */
		int r = space_map(
			a->o.tasks, process, m.start, m.end - m.start, m.file_offset, dump);
		if (r)
			return r;
	}
	return 0;
}

static int mapping_exe(struct task *process, const struct file *file)
{
	if (process->exe || file->kind != FILE_ELF)
		return 0;

	process->exe = strdup(file->path);
	process->changed = true;
	return process->exe ? 0 : -ENOMEM;
}

static int map_file(
	struct attribute *a, struct task *process, const struct record_mmap *m, struct file *file)
{
	if (!file->map_end) {
		file->map_start = m->start;
		file->map_end = m->start + m->bytes;
	}
	int r = mapping_exe(process, file);
	if (r < 0)
		return r;
	return space_map(a->o.tasks, process, m->start, m->bytes, m->file_offset, file);
}

/* Was the file rewritten? One check per drain is enough: it finds all that was written before
 * the drain. */
static bool is_rewritten(struct attribute *a, struct file *file)
{
	const struct file **checked = &a->checked_files->file[file->id % FILES_CHECKED];

	if (!a->o.namer || *checked == file)
		return false;
	*checked = file;
	return namer_is_rewritten(a->o.namer, file);
}

static void note_mapper(struct file *file, const struct task *process, uint64_t time_ns)
{
	if (!file->mapped_ns || time_ns < file->mapped_ns) {
		file->mapped_ns = time_ns;
		file->mapper = process->pid;
	} else if (file->mapper == process->pid && process->exec_ns > file->mapped_ns) {
		/* the mapping belongs to the process's next program, or to another run */
		file->mapper = 0;
	}
}

int mapping_enter(struct attribute *a, struct task *task, const struct record_mmap *m,
	uint64_t time_ns, int hart)
{
	struct task *process = task->process;
	struct file_key key = mapping_key(process, m);
	char path[64];
	struct file *file;
	int r = key.kind == FILE_PERF_MAP ? remapped_enter(a, process, m) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	if (key.kind == FILE_PERF_MAP && process->jitdump) {
		file = process->jitdump;
	} else {
		/* Source: Linux tools/perf/Documentation/jit-interface.txt. */
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)process->pid);
		if (key.kind == FILE_PERF_MAP)
			key.path = path;
		r = file_get(a->o.files, &key, &file);
		/* the file was, or may have been, rewritten in place: the same inode is another
		 * program */
		if (!r && is_rewritten(a, file)) {
			const struct file_seen seen = file->seen;
			r = file_get(a->o.files, &key, &file);
			if (!r)
				file->seen = seen;
		}
	}

	if (!r)
		note_mapper(file, process, time_ns);
	if (!r && key.kind == FILE_JITDUMP)
		r = mapping_jitdump(a, process, file);
	else if (!r)
		r = map_file(a, process, m, file);
	if (r > 0)
		lose(&a->o, hart, LOSS_ROOM, 1);
	return r < 0 ? r : 0;
}
