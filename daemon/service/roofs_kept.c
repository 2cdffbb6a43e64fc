/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A name that a client sends is compared with the names in the folder, and never becomes a path.
 * Files are not synced: a reader refuses a file that a power failure cut short, and roofs are
 * measured again.
 */
#include "daemon/service/roofs_kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define FOLDER "roofs"
#define PART "part"

DEFINE_CLEANUP(DIR *, closedir)

int roofs_kept_read(
	const void *bytes, size_t n, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	char machine[ROOF_TEXT_BYTES];
	struct utsname u;
	struct roofs roofs;
	if (n > ROOFS_SHARED_BYTES_MAX) {
		snprintf(fault, ROOF_NOTE_BYTES, "they have more than %u bytes",
			ROOFS_SHARED_BYTES_MAX);
		return ROOFS_MALFORMED;
	}
	int r = roofs_parse(bytes, n, &roofs, fault);
	if (r != 0)
		return r;
	roofs_machine(machine);
	uname(&u);
	*fault = '\0';
	if (roofs.n == 0)
		snprintf(fault, ROOF_NOTE_BYTES, "there are no roofs in the file");
	else if (strcmp(roofs.machine, machine) != 0)
		snprintf(fault, ROOF_NOTE_BYTES, "they are from another machine");
	else if (strcmp(roofs.kernel, u.release) != 0)
		snprintf(fault, ROOF_NOTE_BYTES, "they are from another kernel than %s", u.release);
	if (*fault) {
		roofs_clear(&roofs);
		return ROOFS_MALFORMED;
	}
	*ret_roofs = roofs;
	return 0;
}

/* --- the folder ------------------------------------------------------------------------------- */

static int open_folder(const char *path)
{
	_cleanup_(closep) int store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store < 0)
		return -errno;
	int fd = openat(store, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static bool is_ours(const char *name)
{
	size_t n = strlen(name);
	return n < ROOFS_NAME_BYTES && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

struct seen {
	char oldest[ROOFS_NAME_BYTES], newest[ROOFS_NAME_BYTES];
	int64_t oldest_ns, newest_ns;
	unsigned n;
	bool has; /* the name that was wanted */
};

/* Read the folder of that descriptor, which stays open. 0, -errno. */
static int look(int folder, const char *wanted, struct seen *ret_seen)
{
	struct seen seen = {.n = 0};
	struct dirent *e;
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		return -error;
	}
	while ((e = readdir(d))) {
		struct stat s;
		if (!is_ours(e->d_name) ||
			fstatat(folder, e->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(s.st_mode))
			continue;
		int64_t at_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
		if (seen.n == 0 || at_ns < seen.oldest_ns) {
			seen.oldest_ns = at_ns;
			strcpy(seen.oldest, e->d_name);
		}
		if (seen.n == 0 || at_ns > seen.newest_ns) {
			seen.newest_ns = at_ns;
			strcpy(seen.newest, e->d_name);
		}
		seen.has |= wanted && strcmp(e->d_name, wanted) == 0;
		seen.n++;
	}
	*ret_seen = seen;
	return 0;
}

void roofs_kept_look(const char *path, struct roofs_kept *ret_kept)
{
	struct seen seen = {.n = 0};
	_cleanup_(closep) int folder = open_folder(path);
	if (folder >= 0 && look(folder, NULL, &seen) < 0)
		seen.n = 0;
	*ret_kept = (struct roofs_kept){.n = seen.n, .newest_ns = seen.n ? seen.newest_ns : 0};
}

int roofs_kept_open(const char *path, const char *name, int *ret_fd, uint64_t *ret_bytes)
{
	struct seen seen;
	struct stat s;
	_cleanup_(closep) int folder = open_folder(path);
	int r = folder < 0 ? folder : look(folder, name, &seen);
	if (r == -ENOENT || (r == 0 && seen.n == 0))
		return ROOFS_NONE;
	if (r < 0)
		return r;
	int fd = openat(folder, seen.has ? name : seen.newest,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ROOFS_NONE : -errno;
	if (fstat(fd, &s) < 0 || !S_ISREG(s.st_mode) || s.st_size > ROOFS_SHARED_BYTES_MAX) {
		close(fd);
		return ROOFS_NONE; /* not a file that we wrote */
	}
	*ret_fd = fd;
	*ret_bytes = (uint64_t)s.st_size;
	return 0;
}

/* --- keeping ---------------------------------------------------------------------------------- */

static int write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);
		if (done < 0 && errno != EINTR)
			return -errno;
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static int write_file(int folder, const char *name, const char *text, size_t n)
{
	_cleanup_(closep) int fd =
		openat(folder, PART, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	int r = fd < 0 ? -errno : write_all(fd, text, n);
	if (r == 0 && renameat(folder, PART, folder, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		(void)unlinkat(folder, PART, 0);
	return r;
}

static int make_folder(const char *path)
{
	_cleanup_(closep) int store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store < 0 || (mkdirat(store, FOLDER, 0750) < 0 && errno != EEXIST))
		return -errno;
	return 0;
}

int roofs_kept_write(const char *path, const struct roofs *roofs)
{
	_cleanup_(freep) char *text = NULL;
	char name[ROOFS_NAME_BYTES];
	struct seen seen = {.n = 0};
	size_t n = 0;
	int r = roofs_name(roofs, name);
	if (r == 0)
		r = roofs_text(roofs, true, &text, &n);
	if (r == 0 && n > ROOFS_SHARED_BYTES_MAX)
		r = -EFBIG;
	if (r == 0)
		r = make_folder(path);
	_cleanup_(closep) int folder = r == 0 ? open_folder(path) : -1;
	if (r == 0)
		r = folder < 0 ? folder : write_file(folder, name, text, n);
	while (r == 0 && look(folder, NULL, &seen) == 0 && seen.n > ROOFS_KEPT_MAX)
		if (unlinkat(folder, seen.oldest, 0) < 0)
			break; /* it does not matter if a file cannot be removed */
	return r;
}
