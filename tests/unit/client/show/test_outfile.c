/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whatever happens to an output, what stood in its place before still stands, and whoever asked for
 * it hears why there is none. Each test has a folder of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/show/outfile.h"
#include "client/show/print.h"
#include "tests/unit/client/said.h"
#include "tests/unit/test.h"

static char folder[] = "/tmp/mperf-test-XXXXXX";
static char there[64];

static void make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(there, sizeof(there), "%s/out", folder);
}

static void remove_folder(void)
{
	unlink(there);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing was left behind */
	strcpy(folder, "/tmp/mperf-test-XXXXXX");
}

EACH_TEST(.begin = make_folder, .end = remove_folder);

static void write_file(const void *bytes, size_t n)
{
	FILE *f = fopen(there, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

static void write_segment(const char *id)
{
	char header[100] = "SQLite format 3";
	memcpy(header + 68, id, 4);
	write_file(header, sizeof(header));
}

static void assert_content(const char *text)
{
	char got[200] = "";
	FILE *f = fopen(there, "r");
	ck_assert_ptr_nonnull(f);
	size_t n = fread(got, 1, sizeof(got) - 1, f);
	fclose(f);
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_str_eq(got, text);
}

static void replace(enum outfile_over over)
{
	struct outfile o;
	ck_assert_int_eq(outfile_open(&o, there, over), 0);
	ck_assert_int_eq(outfile_write(&o, "new", 3), 0);
	ck_assert_uint_eq(o.bytes, 3);
	ck_assert_int_eq(outfile_commit(&o), 0);
	outfile_clear(&o);
	assert_content("new");
}

TEST(a_new_file_appears_whole)
{
	struct outfile o;
	struct stat st;
	umask(022);
	ck_assert_int_eq(outfile_open(&o, there, OUTFILE_OVER_SEGMENT), 0);
	ck_assert_int_eq(outfile_write(&o, "half", 4), 0);
	ck_assert_int_lt(access(there, F_OK), 0);
	ck_assert_int_eq(outfile_commit(&o), 0);
	outfile_clear(&o);
	assert_content("half");
	ck_assert_int_eq(stat(there, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
}

TEST(a_recording_of_ours_is_replaced)
{
	write_segment("mPrf");
	replace(OUTFILE_OVER_SEGMENT);
}

TEST(an_empty_file_is_replaced)
{
	write_file("", 0);
	replace(OUTFILE_OVER_SEGMENT);
}

TEST(somebody_elses_file_is_kept)
{
	static const char *const others[] = {"int main(void) {}", "x",
		"SQLite format 3 and then something else that goes on beyond the header of a file"};
	struct outfile o;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		write_file(others[i], strlen(others[i]));
		ck_assert_int_eq(outfile_open(&o, there, OUTFILE_OVER_SEGMENT), OUTFILE_FOREIGN);
		assert_content(others[i]);
	}
	write_segment("Anki"); /* a database of another application */
	ck_assert_int_eq(outfile_open(&o, there, OUTFILE_OVER_SEGMENT), OUTFILE_FOREIGN);
}

TEST(a_recording_that_cannot_be_looked_at_is_not_called_foreign)
{
	struct outfile o;
	struct rlimit limit, none;
	write_segment("mPrf");
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = outfile_open(&o, there, OUTFILE_OVER_SEGMENT);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(r, -EMFILE);
	struct said s;
	said_start(&s);
	print_say_failed(there, r, "name another file with -o");
	const char *text = said_end(&s);
	ck_assert_ptr_nonnull(strstr(text, "ulimit -n"));
	ck_assert_ptr_null(strstr(text, "another file"));
}

/* At `there` with this end of its name: what opening it returned. */
static int over_text(const char *end, const char *text)
{
	struct outfile o;
	char name[sizeof(there) + 16];
	snprintf(name, sizeof(name), "%s%s", there, end);
	write_file(text, strlen(text));
	ck_assert_int_eq(rename(there, name), 0);
	int r = outfile_open(&o, name, OUTFILE_OVER_ANSWER);
	if (r == 0)
		outfile_clear(&o);
	ck_assert_int_eq(unlink(name), 0);
	return r;
}

TEST(an_answer_replaces_what_looks_like_one)
{
	ck_assert_int_eq(over_text(".html", "x"), 0);
	ck_assert_int_eq(over_text(".pb.gz", "x"), 0);
	ck_assert_int_eq(over_text("", ""), 0);
	ck_assert_int_eq(over_text(".json", "{\n \"columns\": [\n  {"), 0);
	ck_assert_int_eq(over_text(".json", "{ \"service\": []"), 0);
	ck_assert_int_eq(over_text(".json", "{\"meta\":{\"interval\":1"), 0);
	ck_assert_int_eq(over_text(".json", "{\"$schema\":\"https://www.speedscope.app/x"), 0);
	ck_assert_int_eq(over_text(".json", "{\"name\": \"a package\""), OUTFILE_FOREIGN);
	ck_assert_int_eq(over_text(".json", "[1]"), OUTFILE_FOREIGN);
	ck_assert_int_eq(over_text(".json", "{\"x"), OUTFILE_FOREIGN);
	ck_assert_int_eq(over_text(".c", "int x;"), OUTFILE_FOREIGN);
	ck_assert_int_eq(over_text("", "text"), OUTFILE_FOREIGN);
}

TEST(an_answer_does_not_replace_a_recording)
{
	struct outfile o;
	struct said s;
	write_file("text", 4);
	replace(OUTFILE_OVER_ANY);
	write_segment("mPrf"); /* `flamegraph -i R -o R` */
	ck_assert_int_eq(outfile_open(&o, there, OUTFILE_OVER_ANSWER), OUTFILE_FOREIGN);
	said_start(&s);
	outfile_say_failed(there, OUTFILE_FOREIGN, "name another file with -o");
	const char *text = said_end(&s);
	ck_assert_ptr_nonnull(strstr(text, "does not look like an earlier answer"));
	ck_assert_ptr_nonnull(strstr(text, there));
}

TEST(force_replaces_regular_files_alone)
{
	struct outfile o;
	write_file("text", 4);
	replace(OUTFILE_OVER_FORCE);
	ck_assert_int_eq(outfile_open(&o, "/dev/null", OUTFILE_OVER_FORCE), OUTFILE_FOREIGN);
	ck_assert_int_eq(outfile_open(&o, "/dev/null", OUTFILE_OVER_SEGMENT), OUTFILE_FOREIGN);
	ck_assert_int_eq(outfile_open(&o, folder, OUTFILE_OVER_FORCE), -EISDIR);
}

TEST(a_device_is_written_in_place)
{
	struct outfile o;
	struct stat st;
	ck_assert_int_eq(outfile_open(&o, "/dev/null", OUTFILE_OVER_ANSWER), 0);
	ck_assert_int_eq(outfile_write(&o, "x", 1), 0);
	ck_assert_int_eq(outfile_commit(&o), 0);
	outfile_clear(&o);
	ck_assert_int_eq(stat("/dev/null", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
}

TEST(what_is_given_up_leaves_the_old_file)
{
	struct outfile o;
	write_segment("mPrf");
	ck_assert_int_eq(outfile_open(&o, there, OUTFILE_OVER_SEGMENT), 0);
	ck_assert_int_eq(outfile_write(&o, "new", 3), 0);
	outfile_clear(&o);
	struct stat st;
	ck_assert_int_eq(stat(there, &st), 0);
	ck_assert_int_eq(st.st_size, 100);
}

TEST(a_symbolic_link_stays_one)
{
	struct outfile o;
	struct stat st;
	char alias[80];
	snprintf(alias, sizeof(alias), "%s/alias", folder);
	write_file("", 0);
	ck_assert_int_eq(symlink(there, alias), 0);
	ck_assert_int_eq(outfile_open(&o, alias, OUTFILE_OVER_SEGMENT), 0);
	ck_assert_int_eq(outfile_write(&o, "new", 3), 0);
	ck_assert_int_eq(outfile_commit(&o), 0);
	outfile_clear(&o);
	ck_assert_int_eq(lstat(alias, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	assert_content("new");
	unlink(alias);
}

TEST(a_full_device_is_told_by_write)
{
	struct outfile o;
	ck_assert_int_eq(outfile_open(&o, "/dev/full", OUTFILE_OVER_ANSWER), 0);
	ck_assert_int_eq(outfile_write(&o, "x", 1), -ENOSPC);
	outfile_clear(&o);
}

TEST(places_that_are_none_are_errors)
{
	struct outfile o = {.fd = 1234};
	ck_assert_int_eq(outfile_open(&o, "", OUTFILE_OVER_ANSWER), -ENOENT);
	ck_assert_int_eq(outfile_open(&o, "/nonexistent/x", OUTFILE_OVER_ANSWER), -ENOENT);
	ck_assert_int_eq(outfile_open(&o, "/dev/null/x", OUTFILE_OVER_ANSWER), -ENOTDIR);
	ck_assert_int_eq(o.fd, 1234); /* untouched */
}

/* As after a signal that ends us. */
TEST(what_is_not_complete_has_no_name)
{
	struct outfile o;
	char path[200];
	snprintf(path, sizeof(path), "%s/out.mprf", folder);
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		printf("SKIP what_is_not_complete_has_no_name: %s\n", strerror(errno));
		return;
	}
	close(fd);
	ck_assert_int_eq(outfile_open(&o, path, OUTFILE_OVER_SEGMENT), 0);
	ck_assert_int_eq(outfile_write(&o, "x", 1), 0);
	DIR *d = opendir(folder);
	ck_assert_ptr_nonnull(d);
	for (struct dirent *e; (e = readdir(d));)
		ck_assert_msg(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0, "%s",
			e->d_name);
	closedir(d);
	ck_assert_int_eq(outfile_commit(&o), 0);
	outfile_clear(&o);
	ck_assert_int_eq(unlink(path), 0);
}

TEST(a_temporary_file_goes_away)
{
	struct outfile o;
	setenv("TMPDIR", folder, 1);
	ck_assert_int_eq(outfile_open_temporary(&o), 0);
	ck_assert_int_eq(strncmp(o.temporary, folder, strlen(folder)), 0);
	ck_assert_int_eq(outfile_write(&o, "x", 1), 0);
	outfile_clear(&o);
	setenv("TMPDIR", "/nonexistent", 1);
	ck_assert_int_eq(outfile_open_temporary(&o), -ENOENT);
}

static int print_bytes(const char *path, size_t n, int r)
{
	struct print p;
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(print_open(&p, fd, PRINT_DATA), 0);
	for (size_t i = 0; i < n; i++)
		fputc('x', p.file);
	r = print_close(&p, r);
	ck_assert_int_eq(close(fd), 0); /* it was only borrowed */
	return r;
}

TEST(what_is_printed_arrives)
{
	struct stat st;
	ck_assert_int_eq(print_bytes(there, 3, 0), 0);
	assert_content("xxx");
	ck_assert_int_eq(print_bytes(there, 1000000, 0), 0);
	ck_assert_int_eq(stat(there, &st), 0);
	ck_assert_int_eq(st.st_size, 1000000);
	ck_assert_int_eq(print_bytes(there, 3, -ENOMEM), -ENOMEM);
}

TEST(a_print_remembers_why_it_failed)
{
	/* Less than a buffer, seen at the end alone; more, seen long before. */
	ck_assert_int_eq(print_bytes("/dev/full", 1, 0), -ENOSPC);
	ck_assert_int_eq(print_bytes("/dev/full", 1000000, 0), -ENOSPC);
	ck_assert_int_eq(print_bytes("/dev/full", 1000000, -EIO), -ENOSPC);
	ck_assert_int_eq(print_bytes("/dev/full", 0, 0), 0);
}

TEST(a_print_into_what_cannot_be_written_fails)
{
	struct print p;
	ck_assert_int_eq(print_open(&p, -1, PRINT_DATA), 0);
	fputs("x", p.file);
	ck_assert_int_eq(print_close(&p, 0), -EBADF);
}

TEST(a_print_that_failed_is_told_with_what_helps)
{
	struct said s;
	said_start(&s);
	print_say_failed(NULL, -ENOSPC, "send stdout elsewhere");
	ck_assert_str_eq(said_end(&s), "mperfctl: cannot write to stdout: No space left on device. "
				       "Free some space, or send stdout elsewhere.\n");
	said_start(&s);
	print_say_failed("a\033b", -EROFS, "name another file with -o");
	ck_assert_str_eq(said_end(&s), "mperfctl: cannot write 'a\\x1bb': Read-only file system. "
				       "Name another file with -o.\n");
}
