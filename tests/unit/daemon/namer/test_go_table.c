/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tables of all versions made by hand, spoilt ones, and a stripped program with one. */

#include <fcntl.h>
#include <unistd.h>

#include "daemon/namer/go_table.h"
#include "daemon/namer/image.h"
#include "tests/unit/daemon/namer/made_go.h"
#include "tests/unit/test.h"

#define TEXT_START 0x401000u

static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};

static bool read_made(const struct made_go *m, struct go_table *t)
{
	return go_table_read((struct section_bytes){m->bytes, m->n}, t);
}

static void assert_line(const struct go_table *t, uint64_t addr, const char *source, unsigned line)
{
	const char *is;
	uint32_t n;

	go_table_find(t, addr, &is, &n);
	ck_assert_uint_eq(n, line);
	if (source)
		ck_assert_str_eq(is, source);
	else
		ck_assert_ptr_null(is);
}

/* Of both sizes of pointers. */
TEST(each_version_has_names_files_and_lines, .times = 8)
{
	struct made_go m;
	struct go_table t;
	struct symbols symbols = {0};

	made_go_fill(&m, magics[_i / 2], _i % 2 ? 4 : 8, TEXT_START, TEXT_START, "main.f0");
	ck_assert(read_made(&m, &t));
	ck_assert_int_eq(go_table_collect(&t, &symbols), 0);
	ck_assert_uint_eq(symbols.n, MADE_GO_FUNCTIONS);
	for (unsigned i = 0; i < MADE_GO_FUNCTIONS; i++) {
		char name[16];
		uint64_t start = TEXT_START + i * MADE_GO_FUNCTION_BYTES;
		snprintf(name, sizeof(name), "main.f%u", i);
		ck_assert_str_eq(symbols.symbol[i].name, name);
		ck_assert_uint_eq(symbols.symbol[i].start, start);
		ck_assert_uint_eq(symbols.symbol[i].end, start + MADE_GO_FUNCTION_BYTES);
		const char *source = i & 1 ? "/src/b.go" : "/src/a.go";
		assert_line(&t, start, source, 10 + i);
		assert_line(&t, start + 0x7f, source, 10 + i);
		assert_line(&t, start + 0x80, source, 20 + i);
		assert_line(&t, start + 0xff, source, 20 + i);
	}
	assert_line(&t, TEXT_START - 1, NULL, 0);
	assert_line(&t, TEXT_START + 3 * MADE_GO_FUNCTION_BYTES, NULL, 0);
	assert_line(&t, UINT64_MAX, NULL, 0);
	symbols_clear(&symbols);
}

TEST(a_table_of_another_kind_is_none)
{
	struct made_go m;
	struct go_table t;

	made_go_fill(&m, 0xfffffff1, 8, TEXT_START, TEXT_START, "main.f0");
	for (size_t at = 0; at < 8; at++) {
		struct made_go bad = m;
		bad.bytes[at] ^= 0x40;
		ck_assert_msg(!read_made(&bad, &t), "byte %zu", at);
	}
	made_go_fill(&m, 0xfffffff2, 8, TEXT_START, TEXT_START, "main.f0"); /* of a later Go */
	ck_assert(!read_made(&m, &t));
	ck_assert(!go_table_read((struct section_bytes){0}, &t));
}

static void survive(const struct made_go *m)
{
	struct go_table t;
	struct symbols symbols = {0};
	const char *source;
	uint32_t line;
	size_t n_text = 0;

	/* what was cut off must not be read: a sanitizer sees it */
	uint8_t *exact = malloc(m->n ? m->n : 1);
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, m->bytes, m->n);
	if (go_table_read((struct section_bytes){exact, m->n}, &t)) {
		ck_assert_int_ge(go_table_collect(&t, &symbols), 0);
		for (size_t i = 0; i < symbols.n; i++)
			n_text += strlen(symbols.symbol[i].name);
		for (uint64_t addr = TEXT_START; addr < TEXT_START + 0x400; addr += 0x40) {
			go_table_find(&t, addr, &source, &line);
			n_text += source ? strlen(source) : 0;
		}
	}
	ck_assert_uint_lt(n_text, 1 << 20);
	symbols_clear(&symbols);
	free(exact);
}

TEST(a_table_that_is_cut_off_or_damaged_is_survived, .times = 8)
{
	struct made_go m;

	made_go_fill(&m, magics[_i / 2], _i % 2 ? 4 : 8, TEXT_START, TEXT_START, "main.f0");
	for (size_t n = 0; n < m.n; n++) {
		struct made_go cut = m;
		cut.n = n;
		survive(&cut);
	}
	for (size_t at = 0; at < m.n; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct made_go bad = m;
			bad.bytes[at] ^= (uint8_t)(1u << bit);
			survive(&bad);
		}
	for (size_t at = 0; at + 8 <= m.n; at++) {
		struct made_go bad = m;
		memset(bad.bytes + at, 0xff, 8);
		survive(&bad);
	}
}

/* --- a program -------------------------------------------------------------------------------- */

static char directory[64];

static void begin(void)
{
	strcpy(directory, "/tmp/mperf-test-go-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(setenv("DIR", directory, 1), 0);
	ck_assert_int_eq(
		system("cd $DIR && printf 'void _start(void); void _start(void) { for (;;); }"
		       " int more[100]; int b(int x); int b(int x) { return more[x %% 100]; }' "
		       ">a.c &&"
		       " gcc -O0 -nostdlib -static -Wl,--build-id=none -o whole a.c && strip -o "
		       "bare whole"),
		0);
}

static void end(void)
{
	if (system("rm -rf \"$DIR\""))
		printf("%s is left behind\n", directory);
}

/* The address of .text, which begins with _start. */
static uint64_t text_addr(void)
{
	uint64_t addr = 0;
	FILE *f = popen("cd $DIR && nm whole | sed -n 's/ T _start$//p'", "r");
	char line[64];

	ck_assert_ptr_nonnull(f);
	if (fgets(line, sizeof(line), f))
		addr = strtoull(line, NULL, 16);
	pclose(f);
	ck_assert_uint_ne(addr, 0);
	return addr;
}

static struct image *with_table(const struct made_go *m, const char *section)
{
	char path[128], command[512];
	struct image *i = NULL;

	snprintf(path, sizeof(path), "%s/table", directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, m->bytes, m->n), (ssize_t)m->n);
	close(fd);
	snprintf(command, sizeof(command),
		"cd $DIR && rm -f go && objcopy --add-section %s=table bare go 2>/dev/null",
		section);
	ck_assert_int_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s/go", directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(image_open_elf(fd, &i), 0);
	close(fd);
	return i;
}

static struct image_naming name_at(struct image *i, uint64_t offset)
{
	struct image_naming n;

	image_name(i, offset, &n);
	return n;
}

TEST(a_stripped_program_has_names_and_lines_by_it, .begin = begin, .end = end, .times = 2)
{
	struct made_go m;
	uint64_t text = text_addr();
	uint64_t offset =
		text & 0xffff; /* of a static program with its text in a page of its own */

	made_go_fill(&m, 0xfffffff1, 8, text, text, "main.f0");
	struct image *i = with_table(&m, _i ? ".gopclntab" : ".data.rel.ro.gopclntab");
	struct image_naming n = name_at(i, offset);
	ck_assert_uint_eq(n.n_places, 1);
	ck_assert_str_eq(n.place[0].function, "main.f0");
	ck_assert_str_eq(n.place[0].source, "/src/a.go");
	ck_assert_uint_eq(n.place[0].line, 10);
	image_free(i);
}

/* A position-independent program's header may leave it to the loader where the text begins. */
TEST(where_text_begins_is_found_by_the_entry_or_not_at_all, .begin = begin, .end = end)
{
	struct made_go m;
	uint64_t text = text_addr();
	uint64_t offset = text & 0xffff;

	made_go_fill(&m, 0xfffffff1, 8, text, 0, "_rt0_amd64_linux");
	struct image *i = with_table(&m, ".gopclntab");
	ck_assert_str_eq(name_at(i, offset).place[0].function, "_rt0_amd64_linux");
	image_free(i);

	made_go_fill(&m, 0xfffffff1, 8, text, 0, "main.f0");
	i = with_table(&m, ".gopclntab");
	ck_assert_uint_eq(name_at(i, offset).n_places, 0);
	image_free(i);
}
