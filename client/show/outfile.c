/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * rename() makes a file appear complete or not at all; the temporary file is in the same folder
 * since rename does not cross file systems. An existing recording is recognised by the header that
 * SQLite and mperfd write, so a slip like `-o main.c` does no harm.
 */
#include "client/show/outfile.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

/* Source: https://www.sqlite.org/fileformat2.html#the_database_header (magic, application id);
 * mperfd's store sets the id "mPrf". */
#define SQLITE_MAGIC "SQLite format 3"
#define SQLITE_APPLICATION_ID_OFFSET 68
#define SEGMENT_ID 0x6d507266u
#define NAMES_TRIED                                                                                \
	100u /* of files that are about to be renamed: a number of ours may have died just then */

/* 1: one of our segments. 0: another file. -errno: it could not be read, so nobody knows. */
static int is_segment(const char *path)
{
	char header[SQLITE_APPLICATION_ID_OFFSET + 4];
	uint32_t id;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, header, sizeof(header));
	if (n != sizeof(header))
		return n < 0 ? -errno : 0;
	memcpy(&id, header + SQLITE_APPLICATION_ID_OFFSET, sizeof(id));
	return memcmp(header, SQLITE_MAGIC, sizeof(SQLITE_MAGIC)) == 0 && be32toh(id) == SEGMENT_ID;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && strcmp(text + n - m, end) == 0;
}

/* Does JSON begin as ours does: with a list of columns or rows, or as the Firefox Profiler's or speedscope's? */
static bool begins_as_answer(const char *head, size_t n)
{
	static const char *const begins[] = {
		"{\"meta\":{", "{\"$schema\":\"https://www.speedscope.app"};
	char packed[256];
	size_t n_packed = 0;
	for (size_t i = 0; i < n && n_packed < sizeof(packed) - 1; i++)
		if (!isspace((unsigned char)head[i]))
			packed[n_packed++] = head[i];
	packed[n_packed] = '\0';
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(packed, begins[i], strlen(begins[i])) == 0)
			return true;
	if (strncmp(packed, "{\"", 2) != 0)
		return false;
	const char *end = strchr(packed + 2, '"');
	return end && strncmp(end, "\":[", 3) == 0;
}

/* Does it look like an answer of an earlier run: by its name, and of JSON, which other tools write, too, by how
 * ours begins? 1, 0, or -errno if it could not be read. */
static int is_answer(const char *path)
{
	static const char *const names[] = {".html", ".htm", ".svg", ".csv", ".tsv", ".txt", ".log",
		".folded", ".stacks", ".xml", ".gz", ".pb", ".prof", ".perf"};
	char head[256];

	int recording = is_segment(path);
	if (recording != 0)
		return recording < 0 ? recording : 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (ends_in(path, names[i]))
			return 1;
	if (!ends_in(path, ".json"))
		return 0;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
	return n < 0 ? -errno : begins_as_answer(head, (size_t)n);
}

/* Check what is at the path: 0 replace it, 1 write in place, or an outcome. */
enum { REPLACE = 0, IN_PLACE = 10 };
static int look(const char *path, enum outfile_over over)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? REPLACE : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return over == OUTFILE_OVER_ANSWER || over == OUTFILE_OVER_ANY ? IN_PLACE
									       : OUTFILE_FOREIGN;
	bool any = over == OUTFILE_OVER_FORCE || over == OUTFILE_OVER_ANY || st.st_size == 0;
	int ours = any ? 1 : over == OUTFILE_OVER_SEGMENT ? is_segment(path) : is_answer(path);
	if (ours <= 0)
		return ours < 0 ? ours : OUTFILE_FOREIGN;
	return access(path, W_OK) < 0 ? -errno : REPLACE;
}

/* The mode that creat() would give; mkstemp gives another. */
static void open_up(int fd)
{
	mode_t mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
}

/* A file in the folder of `real` without a name, which outfile_commit gives it through /proc. -1: that cannot be done
 * here. Source: man 2 open, O_TMPFILE. */
static int open_nameless(const char *real)
{
	_cleanup_(freep) char *copy = strdup(real);
	if (!copy || access("/proc/self/fd", X_OK) < 0)
		return -1;
	char *slash = strrchr(copy, '/');
	if (slash)
		slash[slash == copy] = '\0';
	return open(slash ? copy : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

/* Path "folder/.mperf-…" in the folder of `real`. NULL if memory ran out. */
static char *name_beside(const char *real, const char *what)
{
	char *name;
	const char *slash = strrchr(real, '/');
	return asprintf(&name, "%.*s.mperf-%s", slash ? (int)(slash - real) + 1 : 0, real, what) < 0
		       ? NULL
		       : name;
}

/* Give a nameless file a name in its folder, since only rename() replaces a file. 0 or -errno. */
static int give_name(struct outfile *o)
{
	char from[64], number[64];
	int r = -EEXIST;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", o->fd);
	for (unsigned i = 0; i < NAMES_TRIED && r == -EEXIST; i++) {
		snprintf(number, sizeof(number), "%d-%u", (int)getpid(), i);
		_cleanup_(freep) char *name = name_beside(o->path, number);
		if (!name)
			return -ENOMEM;
		r = linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
		if (r == 0)
			o->temporary = TAKE_PTR(name);
	}
	return r;
}

int outfile_open(struct outfile *o, const char *path, enum outfile_over over)
{
	int place = look(path, over);
	if (place != REPLACE && place != IN_PLACE)
		return place;
	if (!*path)
		return -ENOENT;

	_cleanup_(freep) char *real = realpath(path, NULL);
	if (!real)
		real = strdup(path);
	if (!real)
		return -ENOMEM;
	if (place == IN_PLACE) {
		int in_place_fd = open(real, O_WRONLY | O_CLOEXEC);
		if (in_place_fd < 0)
			return -errno;
		*o = (struct outfile){.path = TAKE_PTR(real), .fd = in_place_fd};
		return 0;
	}

	int fd = open_nameless(real);
	if (fd >= 0) {
		*o = (struct outfile){.path = TAKE_PTR(real), .nameless = true, .fd = fd};
		return 0;
	}
	_cleanup_(freep) char *temporary = name_beside(real, "XXXXXX");
	if (!temporary)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	open_up(fd);
	*o = (struct outfile){.path = TAKE_PTR(real), .temporary = TAKE_PTR(temporary), .fd = fd};
	return 0;
}

void outfile_say_failed(const char *path, int r, const char *elsewhere)
{
	char what[512], remedy[256];
	if (r != OUTFILE_FOREIGN) {
		print_say_failed(path, r, elsewhere);
		return;
	}
	snprintf(what, sizeof(what),
		"'%.300s' exists and does not look like an earlier answer of mperfctl, so it is "
		"not overwritten",
		path);
	snprintf(remedy, sizeof(remedy), "%c%s, or overwrite it with --force",
		toupper((unsigned char)elsewhere[0]), elsewhere + 1);
	say_failure(what, remedy);
}

const char *outfile_temporary_folder(void)
{
	const char *folder = getenv("TMPDIR");
	return folder && *folder == '/' ? folder : "/tmp";
}

int outfile_open_temporary(struct outfile *o)
{
	_cleanup_(freep) char *temporary = NULL;

	if (asprintf(&temporary, "%s/mperf-XXXXXX.mprf", outfile_temporary_folder()) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	int fd = mkostemps(temporary, (int)strlen(".mprf"), O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*o = (struct outfile){.temporary = TAKE_PTR(temporary), .fd = fd};
	return 0;
}

int outfile_write(struct outfile *o, const void *p, size_t n)
{
	const char *bytes = p;
	while (n > 0) {
		ssize_t written = write(o->fd, bytes, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		n -= (size_t)written;
		o->bytes += (uint64_t)written;
	}
	return 0;
}

int outfile_commit(struct outfile *o)
{
	int r = o->nameless ? give_name(o) : 0;
	if (close(TAKE_FD(o->fd)) < 0 && r == 0)
		r = -errno; /* network file systems report a full disk here */
	if (r == 0 && o->temporary && rename(o->temporary, o->path) < 0)
		r = -errno;
	if (r < 0 && o->temporary)
		unlink(o->temporary);
	free(TAKE_PTR(o->temporary));
	return r;
}

void outfile_clear(struct outfile *o)
{
	if (o->fd >= 0)
		close(TAKE_FD(o->fd));
	if (o->temporary)
		unlink(o->temporary);
	free(TAKE_PTR(o->temporary));
	free(TAKE_PTR(o->path));
}
