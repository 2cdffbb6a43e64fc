/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/naming/file.c and daemon/attribute/mapping.c */

#include <limits.h>

#include "daemon/attribute/mapping.h"
#include "tests/unit/test.h"

static struct file_table table;
static const uint8_t id_1[20] = {1, 2, 3}, id_2[20] = {1, 2, 4};

static void teardown(void)
{
	file_table_clear(&table);
}

EACH_TEST(.end = teardown, .seconds = 60);

static struct file *get(const struct file_key *key)
{
	struct file *file = NULL;

	ck_assert_int_eq(file_get(&table, key, &file), 0);
	ck_assert_ptr_nonnull(file);
	return file;
}

static struct file_key elf(const char *path, uint64_t inode, const uint8_t *build_id)
{
	return (struct file_key){
		.kind = FILE_ELF,
		.path = path,
		.inode = inode,
		.build_id = build_id,
		.n_build_id = build_id ? 20 : 0,
	};
}

TEST(one_build_id_is_one_file_wherever_it_lies)
{
	struct file_key a = elf("/usr/lib/a", 1, id_1), b = elf("/other/a", 2, id_1),
			c = elf("/usr/lib/a", 1, id_2);

	ck_assert_ptr_eq(get(&a), get(&b));
	ck_assert_ptr_ne(get(&a), get(&c));
	ck_assert_uint_eq(get(&c)->id, 2);
	ck_assert_mem_eq(get(&a)->build_id, id_1, 20);
}

TEST(without_a_build_id_inode_and_path_tell_files_apart)
{
	struct file_key a = elf("/bin/a", 1, NULL), replaced = elf("/bin/a", 2, NULL),
			link = elf("/bin/b", 1, NULL), device = a;

	device.major = 8;
	ck_assert_ptr_eq(get(&a), get(&a));
	ck_assert_ptr_ne(get(&a), get(&replaced));
	ck_assert_ptr_ne(get(&a), get(&link));
	ck_assert_ptr_ne(get(&a), get(&device));
}

TEST(an_inode_number_used_again_is_another_file)
{
	struct file_key scanned = elf("/bin/a", 1, NULL), first = scanned, second = scanned;

	first.generation = 7;
	second.generation = 8;
	struct file *file = get(&scanned);
	ck_assert_ptr_eq(get(&first), file); /* what /proc did not tell is learnt */
	ck_assert_ptr_eq(get(&first), file);
	ck_assert(!file->replaced);
	struct file *other = get(&second);
	ck_assert_ptr_ne(other, file);
	ck_assert(file->replaced && !other->replaced);
	ck_assert_ptr_eq(get(&scanned), other);
	ck_assert_ptr_eq(get(&second), other);
	ck_assert_uint_eq(table.n_files, 2);
}

TEST(a_file_found_to_be_replaced_is_mapped_as_another)
{
	struct file_key a = elf("/bin/a", 1, NULL), scanned = a;

	a.generation = 7;
	struct file *file = get(&a);
	file->replaced = true;
	struct file *other = get(&scanned);
	ck_assert_ptr_ne(other, file);
	ck_assert(!other->replaced);
	ck_assert_ptr_eq(get(&a), other); /* of the same generation: it was written to in place */
	ck_assert_uint_eq(table.n_files, 2);
}

TEST(a_generation_means_nothing_beside_a_build_id)
{
	struct file_key first = elf("/bin/a", 1, id_1), second = first;

	first.generation = 7;
	second.generation = 8;
	ck_assert_ptr_eq(get(&first), get(&second));
	ck_assert(!get(&first)->replaced);
}

/* Also by build id, which anybody can give a file. */
TEST(a_file_is_one_for_each_user_whose_processes_map_it)
{
	struct file_key hers = elf("/bin/a", 1, id_1), his = hers;

	hers.uid = 1000;
	his.uid = 1001;
	ck_assert_ptr_eq(get(&hers), get(&hers));
	ck_assert_ptr_ne(get(&hers), get(&his));
	ck_assert_uint_eq(get(&his)->uid, 1001);
	struct file_key vdso = {.kind = FILE_VDSO, .path = "[vdso]", .uid = 1}, same = vdso;
	same.uid = 2;
	ck_assert_ptr_eq(get(&vdso), get(&same));
}

static struct file *of_user(struct file *file, uid_t uid)
{
	struct file *other = NULL;

	ck_assert_int_eq(file_of_user(&table, file, uid, uid, &other), 0);
	return other;
}

TEST(file_of_another_user_is_made_once_by_what_it_is)
{
	struct file_key key = elf("/bin/a (deleted)", 1, NULL);

	key.uid = 1000;
	key.generation = 7;
	key.pid = 5;
	struct file *file = get(&key);
	file->map_start = 0x1000;
	file->map_end = 0x2000;
	file->mapped_ns = 60;
	ck_assert_ptr_eq(of_user(file, 1000), file);
	struct file *other = of_user(file, 0);
	ck_assert_ptr_ne(other, file);
	ck_assert_ptr_eq(of_user(file, 0), other);
	ck_assert_uint_eq(other->uid, 0);
	ck_assert(other->deleted && other->inode == 1 && other->generation == 7);
	ck_assert(other->pid == 0 && other->map_end == 0 && other->mapped_ns == 60);
	key.uid = 0;
	ck_assert_ptr_eq(get(&key), other);
	/* what was replaced since is still what they have mapped */
	other->replaced = true;
	ck_assert_ptr_eq(of_user(file, 0), other);
	ck_assert_uint_eq(table.n_files, 2);
}

/* On a file system without generations. */
TEST(inode_that_is_used_again_is_another_file_of_each_user)
{
	struct file_key key = elf("/tmp/a", 1, NULL);

	key.uid = 1000;
	struct file *file = get(&key);
	file->mapped_ns = 60;
	struct file *other = of_user(file, 0);
	/* the opener finds that both are gone; then the next one is mapped */
	file->replaced = other->replaced = true;
	struct file *next = get(&key);
	ck_assert_ptr_ne(next, file);
	next->mapped_ns = 70;
	struct file *next_other = of_user(next, 0);
	ck_assert_ptr_ne(next_other, other);
	ck_assert(!next_other->replaced && next_other->uid == 0 && next_other->mapped_ns == 70);
	ck_assert_ptr_eq(of_user(next, 0), next_other);
	/* and it, too: each file is one more at most */
	next_other->replaced = true;
	ck_assert_ptr_eq(of_user(next, 0), next_other);
	ck_assert_uint_eq(table.n_files, 4);
}

TEST(deleted_is_cut_off_and_noted)
{
	struct file_key a = elf("/bin/a (deleted)", 1, NULL), b = elf("/bin/a", 1, NULL);
	struct file *file = get(&a);

	ck_assert_str_eq(file->path, "/bin/a");
	ck_assert(file->deleted);
	ck_assert_ptr_eq(get(&b), file);
}

TEST(a_name_that_is_nothing_but_deleted_is_a_name)
{
	struct file_key a = elf(" (deleted)", 1, NULL), b = elf("/x (deleted) ", 2, NULL);

	ck_assert_str_eq(get(&a)->path, " (deleted)");
	ck_assert(!get(&b)->deleted);
}

TEST(generated_code_belongs_to_one_process)
{
	struct file_key a = {
		.kind = FILE_PERF_MAP, .path = "/tmp/perf-7.map", .pid = 7, .pid_start_ns = 100};
	struct file_key later = a, other = a, next = a;

	later.pid_start_ns = 200;
	next.generation = 150; /* the program that came by exec */
	other.pid = 8;
	ck_assert_ptr_eq(get(&a), get(&a));
	ck_assert_ptr_ne(get(&a), get(&later));
	ck_assert_ptr_ne(get(&a), get(&other));
	ck_assert_ptr_ne(get(&a), get(&next));
	ck_assert_ptr_eq(get(&a), get(&a));
	ck_assert_int_eq(get(&a)->pid, 7);
}

TEST(the_vdso_is_one_for_all_processes)
{
	struct file_key a = {.kind = FILE_VDSO, .path = "[vdso]", .pid = 7}, b = a;

	b.pid = 8;
	ck_assert_ptr_eq(get(&a), get(&b));
}

TEST(kinds_never_meet)
{
	struct file_key a = {.kind = FILE_ANON, .path = "x"},
			b = {.kind = FILE_UNKNOWN, .path = "x"};

	ck_assert_ptr_ne(get(&a), get(&b));
}

TEST(a_path_of_any_length_is_taken)
{
	char path[2 * PATH_MAX];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	path[0] = '/';
	struct file_key a = elf(path, 1, NULL);
	ck_assert_uint_eq(strlen(get(&a)->path), PATH_MAX);
	ck_assert_ptr_eq(get(&a), get(&a));
}

TEST(a_frame_is_file_and_offset)
{
	struct file_key ka = elf("/a", 1, NULL), kb = elf("/b", 2, NULL);
	struct file *a = get(&ka), *b = get(&kb);
	struct frame *f1, *f2, *f3, *f4;

	ck_assert_int_eq(frame_get(&table, a, 0x10, &f1), 0);
	ck_assert_int_eq(frame_get(&table, a, 0x10, &f2), 0);
	ck_assert_int_eq(frame_get(&table, a, 0x11, &f3), 0);
	ck_assert_int_eq(frame_get(&table, b, 0x10, &f4), 0);
	ck_assert_ptr_eq(f1, f2);
	ck_assert_ptr_ne(f1, f3);
	ck_assert_ptr_ne(f1, f4);
	ck_assert_uint_eq(f4->id, 3);
	ck_assert_ptr_eq(table.frame[2], f4);
	ck_assert_int_eq(f1->state, FRAME_NEW);
}

TEST(many_frames_keep_their_addresses)
{
	struct file_key key = elf("/a", 1, NULL);
	struct file *file = get(&key);
	struct frame *first, *frame;

	ck_assert_int_eq(frame_get(&table, file, 0, &first), 0);
	for (uint64_t i = 1; i < 100000; i++)
		ck_assert_int_eq(frame_get(&table, file, i, &frame), 0);
	ck_assert_int_eq(frame_get(&table, file, 0, &frame), 0);
	ck_assert_ptr_eq(frame, first);
	ck_assert_uint_eq(table.n_frames, 100000);
}

TEST(files_are_refused_beyond_their_limit)
{
	struct file *file = NULL;
	struct file_key known = elf("/a", 0, NULL), next = elf("/a", FILES_MAX, NULL);

	for (uint64_t i = 0; i < FILES_MAX; i++) {
		struct file_key key = elf("/a", i, NULL);
		get(&key);
	}
	ck_assert_int_eq(file_get(&table, &next, &file), FILE_TABLE_FULL);
	ck_assert_ptr_null(file);
	ck_assert_uint_eq(table.n_refused, 1);
	ck_assert_int_eq(file_get(&table, &known, &file), 0);
}

TEST(frames_are_refused_beyond_their_limit)
{
	struct file_key key = elf("/a", 0, NULL);
	struct file *file = get(&key);
	struct frame *frame = NULL;

	/* the count alone decides; four million would only take their time */
	table.n_frames = FRAMES_MAX;
	ck_assert_int_eq(frame_get(&table, file, 1, &frame), FILE_TABLE_FULL);
	ck_assert_ptr_null(frame);
	ck_assert_uint_eq(table.n_refused, 1);
	table.n_frames = 0;
}

TEST(every_state_has_words)
{
	for (int s = FILE_UNSEEN; s <= FILE_OVERSIZE; s++)
		ck_assert_str_ne(file_state_says((enum file_state)s), "unknown");
	ck_assert_str_eq(file_state_says((enum file_state)(FILE_OVERSIZE + 1)), "unknown");
	ck_assert_str_eq(file_state_says((enum file_state) - 1), "unknown");
}

TEST(mappings_of_files_are_files)
{
	ck_assert_int_eq(mapping_kind("/usr/bin/cc", 0), FILE_ELF);
	ck_assert_int_eq(mapping_kind("/tmp/a b (deleted)", 0), FILE_ELF);
	ck_assert_int_eq(mapping_kind("/memfd:runc (deleted)", 20), FILE_ELF);
	ck_assert_int_eq(mapping_kind("[vdso]", 0), FILE_VDSO);
}

TEST(memory_of_no_file_is_generated_code)
{
	static const char *const names[] = {"", "//anon", "[anon:v8]", "anon_inode:[x]",
		"/memfd:jit (deleted)", "/dev/zero (deleted)", "/SYSV00000000 (deleted)", "[heap]",
		"[stack]", "/anon_hugepage (deleted)"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_int_eq(mapping_kind(names[i], 0), FILE_PERF_MAP);
}

TEST(only_a_whole_jitdump_name_is_one)
{
	static const char *const others[] = {"/tmp/jit-.dump", "/tmp/jit-1.dumps",
		"/tmp/jit-1a.dump", "/tmp/xjit-1.dump", "/tmp/jit-1.dump/x"};

	ck_assert_int_eq(mapping_kind("/tmp/jit-123.dump", 0), FILE_JITDUMP);
	ck_assert_int_eq(
		mapping_kind("/home/u/.debug/jit/x/jit-9.dump (deleted)", 0), FILE_JITDUMP);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ck_assert_int_eq(mapping_kind(others[i], 0), FILE_ELF);
}

TEST(only_a_perf_map_of_which_nothing_was_read_may_be_absent)
{
	ck_assert(file_is_absent(FILE_PERF_MAP, FILE_VANISHED, false));
	ck_assert(file_is_absent(FILE_PERF_MAP, FILE_UNSEEN, false));
	ck_assert(file_is_absent(FILE_PERF_MAP, FILE_OPENING, false));
	ck_assert(!file_is_absent(FILE_PERF_MAP, FILE_READY, false)); /* it is empty */
	ck_assert(!file_is_absent(FILE_PERF_MAP, FILE_REFUSED, false));
	ck_assert(!file_is_absent(FILE_PERF_MAP, FILE_VANISHED, true)); /* removed since */
	ck_assert(!file_is_absent(FILE_JITDUMP, FILE_VANISHED, false)); /* it was mapped */
	ck_assert(!file_is_absent(FILE_ELF, FILE_VANISHED, false));
}

TEST(names_that_are_no_path_are_not_opened)
{
	static const char *const names[] = {
		"[vsyscall]", "[uprobes]", "//toolong", "//enomem", "x"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_int_eq(mapping_kind(names[i], 0), FILE_ANON);
}
