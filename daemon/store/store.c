/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The store: its folders, its lock and the list of its files
 *
 * The list is made once, when the store is opened; each function that changes files then updates
 * it. The folders are authoritative: if another process removed a file, its entry is dropped once
 * we notice.
 *
 * The lock is a record lock, not a flock: children of the daemon inherit a flock, and a child that
 * outlives a killed daemon would keep the next daemon out. The kernel also reports the lock's
 * owner.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/store/pin.h"
#include "daemon/store/store_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000ll
/* Limit of files that begin in the same second of a boot; a daemon that starts more often has other
 * problems. */
#define NAMES_A_SECOND_MAX 1000
#define TRY_AGAIN_NS (10 * SECOND_NS)
#define LOOKS_MAX 16 /* files reopened in one try, since the daemon's loop opens them */

DEFINE_CLEANUP(DIR *, closedir)

static int __attribute__((format(printf, 4, 5))) say(
	struct store_error *e, int outcome, const char *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	snprintf(e->remedy, sizeof(e->remedy), "%s", remedy);
	return outcome;
}

static int say_errno(struct store_error *e, const char *path, int error)
{
	switch (error) {
	case ENOMEM:
	case ENFILE:
	case EMFILE:
		return -error;
	case EROFS:
		return say(e, STORE_READ_ONLY, "Mount its file system for writing.",
			"the store %s is on a read-only file system", path);
	case ENOSPC:
	case EDQUOT:
		return say(e, STORE_NO_SPACE, "Free some space on its file system.",
			"there is no space for the store %s", path);
	case ENOENT:
	case ENOTDIR:
		return say(e, STORE_REFUSED, "Make its folder, or name another in mperf.conf.",
			"the store %s cannot be made: %s", path, strerror(error));
	default:
		return say(e, STORE_REFUSED, "Let the daemon's user write there.",
			"the store %s cannot be used: %s", path, strerror(error));
	}
}

/* --- open ------------------------------------------------------------------------------------- */

static int make_folders(struct store *s, struct store_error *e)
{
	int made = mkdir(s->path, 0750) < 0 ? errno : 0;
	if (made != 0 && made != EEXIST && made != EROFS)
		return say_errno(e, s->path, made);
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return say_errno(e, s->path, made == EROFS ? made : errno);
	static const char *const folder[] = {"window", "minute", "hour", "pinned", "corrupt"};
	for (size_t i = 0; i < sizeof(folder) / sizeof(*folder); i++)
		if (mkdirat(s->fd, folder[i], 0750) < 0 && errno != EEXIST) {
			if (errno != EROFS)
				return say_errno(e, s->path, errno);
			s->read_only = true;
		}
	return 0;
}

static int say_busy(const struct store *s, struct store_error *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[32] = "";
	int pid = fcntl(s->lock_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
	/* 0 or -1: a process in another pid namespace, which wrote its pid as seen there */
	if (pid <= 0 && pread(s->lock_fd, text, sizeof(text) - 1, 0) > 0)
		pid = atoi(text);
	return say(e, STORE_BUSY,
		"Stop that one, or give this one a store of its own in mperf.conf.",
		"the store %s is in use by another mperfd (pid %d)", s->path, pid);
}

static int lock(struct store *s, struct store_error *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[32];
	s->lock_fd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->lock_fd < 0)
		return say_errno(e, s->path, errno);
	if (fcntl(s->lock_fd, F_SETLK, &lock) < 0)
		return errno == EACCES || errno == EAGAIN ? say_busy(s, e)
							  : say_errno(e, s->path, errno);
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	/* the pid is only for people; ignore a full disc, so that the store can still be read */
	if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, text, (size_t)n, 0) != n)
		return errno == EROFS ? say_errno(e, s->path, errno) : 0;
	return 0;
}

/* Enter the files of the window folder, after sealing unfinished ones. 0 or -errno. */
static int take_up(struct store *s, struct store_file *f)
{
	struct store_error e = {"", ""};
	size_t at;
	int r = store_look(s, f, &e);
	if (f->tier == TIER_WINDOW && (r == STORE_CORRUPT || (r == 0 && !f->sealed))) {
		r = store_recover(s, f, &e);
		s->n_recovered += r == 0;
		if (r == STORE_NO_SPACE || r == STORE_READ_ONLY || r == STORE_BUSY) {
			f->left = true; /* later, then */
			r = 0;
		}
	}
	if (r == STORE_GONE || r == -ENOMEM)
		return r < 0 ? r : 0;
	if (r < 0) {
		f->unread = true;
		f->left = f->tier == TIER_WINDOW; /* unless it proves to be sealed */
	}
	int entered = store_enter(s, f, &at);
	if (entered == 0 && r == STORE_CORRUPT)
		entered = store_set_aside(s, f->name);
	return entered < 0 ? entered : 0;
}

static int take_up_corrupt(struct store *s, struct store_file *f)
{
	struct stat st;
	size_t at;
	if (fstatat(s->fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	f->corrupt = true;
	f->bytes = (uint64_t)st.st_size;
	f->start_ns = f->end_ns = (int64_t)st.st_ctim.tv_sec * SECOND_NS;
	return store_enter(s, f, &at);
}

static int scan_folder(struct store *s, const char *folder, bool corrupt)
{
	int fd = openat(s->fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = -errno;
		closep(&fd);
		return r == -ENOENT ? 0 : r;
	}
	int r = 0;
	for (struct dirent *entry;
		r == 0 && s->n_files < STORE_FILES_MAX && (entry = readdir(d));) {
		struct store_file f = {0};
		char name[STORE_NAME_BYTES + 300];
		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] == '.' || strlen(name) >= STORE_NAME_BYTES)
			continue;
		memcpy(f.name, name, strlen(name) + 1);
		if (corrupt)
			r = take_up_corrupt(s, &f);
		else if (store_name_parse(name, &f.tier, &f.start_ns))
			r = take_up(s, &f);
		else if (store_is_orphan(s, name))
			unlinkat(s->fd, name, 0);
	}
	return r;
}

/* List all folders: files left by a dead daemon are sealed or set aside. 0 or -errno. */
static int scan(struct store *s)
{
	int r = scan_folder(s, "corrupt", true);
	for (enum tier tier = TIER_WINDOW; tier < N_TIERS && r >= 0; tier++)
		r = scan_folder(s, tier_name(tier), false);
	for (size_t i = 0; i < s->n_files && r >= 0; i++)
		store_mark_sources(s, &s->file[i]);
	return r < 0 ? r : store_scan_pins(s);
}

int store_open(const char *path, struct store **ret_store, struct store_error *ret_error)
{
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = s->lock_fd = -1;
	s->path = strdup(path);
	s->last_reason = "";
	int r = s->path ? make_folders(s, ret_error) : -ENOMEM;
	if (r == 0)
		r = lock(s, ret_error);
	if (r == 0)
		r = scan(s);
	if (r == 0)
		r = store_measure(s);
	if (r != 0) {
		store_free(s);
		return r;
	}
	*ret_store = s;
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	closep(&s->lock_fd);
	closep(&s->fd);
	while (s->n_pins > 0)
		store_pin_drop(s, s->n_pins - 1);
	free(s->pin);
	free(s->file);
	free(s->path);
	free(s);
	return NULL;
}

/* --- changes ---------------------------------------------------------------------------------- */

int store_new_path(struct store *s, int64_t realtime_ns, const char *boot_id, char **ret_path)
{
	for (unsigned n = 1; n <= NAMES_A_SECOND_MAX; n++) {
		char name[STORE_NAME_BYTES];
		store_name(name, TIER_WINDOW, realtime_ns, boot_id, n);
		if (faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		char *path = store_path(s, name);
		if (!path)
			return -ENOMEM;
		*ret_path = path;
		return 0;
	}
	return -EEXIST;
}

int store_tier_path(
	struct store *s, enum tier tier, int64_t realtime_ns, const char *boot_id, char **ret_path)
{
	char name[STORE_NAME_BYTES];
	store_name(name, tier, tier_start_ns(tier, realtime_ns), boot_id, 1);
	char *path = store_path(s, name);
	if (!path)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

int store_target_path(
	struct store *s, const struct store_file *source, enum tier tier, char **ret_path)
{
	const char *boot = strchr(source->name, '-');
	return store_tier_path(s, tier, source->start_ns, boot ? boot + 1 : NULL, ret_path);
}

/* Examine a file and enter its present state; f: its known state. 0, also if it is gone; STORE_* of
 * setting it aside; -errno. */
static int enter_seen(struct store *s, struct store_file *f)
{
	const struct store_file before = *f;
	struct store_error e = {"", ""};
	size_t at;
	f->corrupt = f->other_version = false;
	int r = store_look(s, f, &e);
	if (r == STORE_GONE)
		return 0;
	if (r < 0)
		*f = before;
	if (r < 0 || f->unread) {
		f->unread = true;
		f->other_version = before.other_version;
	}
	f->left = f->left && !f->sealed;
	int entered = store_enter(s, f, &at);
	if (entered == 0 && r == STORE_CORRUPT)
		return store_set_aside(s, f->name);
	if (entered == 0 && !f->unread)
		store_mark_sources(s, f);
	return entered;
}

int store_note(struct store *s, const char *path)
{
	struct store_file f = {0};
	size_t n = strlen(s->path);
	const char *name = strncmp(path, s->path, n) == 0 && path[n] == '/' ? path + n + 1 : path;
	if (!store_name_parse(name, &f.tier, &f.start_ns))
		return -EINVAL;
	memcpy(f.name, name, strlen(name) + 1);

	size_t at = store_find(s, name);
	if (at < s->n_files) {
		f = s->file[at];
		f.left = f.tier == TIER_WINDOW;
		store_drop(s, at);
	}
	int r = enter_seen(s, &f);
	store_sum(s);
	return r;
}

void store_note_verified(struct store *s, const char *name, const struct segment_identity *identity)
{
	size_t at = store_find(s, name), pin = store_pin_find(s, name);
	if (at < s->n_files)
		s->file[at].verified = *identity;
	else if (pin < s->n_pins)
		s->pin[pin].verified = *identity;
}

/* Examine some unreadable files again, in rotation. */
static int look_again(struct store *s)
{
	int r = 0, n_looks = 0;
	for (size_t i = 0; i < s->n_files && n_looks < LOOKS_MAX && r >= 0; i++) {
		size_t at = s->next_look++ % s->n_files;
		struct store_file f = s->file[at];
		if (!f.unread)
			continue;
		n_looks++;
		store_drop(s, at);
		r = enter_seen(s, &f);
	}
	return r < 0 ? r : 0;
}

/* Recover a file whose writer has gone without sealing it, and which can be read. */
static int recover_left(struct store *s)
{
	size_t at = 0;
	while (at < s->n_files && (!s->file[at].left || s->file[at].unread))
		at++;
	if (at == s->n_files || s->read_only)
		return 0;
	struct store_error e;
	int r = store_recover(s, &s->file[at], &e);
	if (r == 0) {
		s->file[at].left = false;
		s->n_recovered++;
	} else if (r == STORE_GONE)
		store_drop(s, at);
	else if (r == STORE_CORRUPT)
		return store_set_aside(s, s->file[at].name);
	return r == -ENOMEM ? r : 0;
}

/* Retry, from time to time, a file that could not be read or sealed. */
static int try_again(struct store *s)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	size_t at = 0;
	while (at < s->n_files && !s->file[at].left && !s->file[at].unread)
		at++;
	if ((at == s->n_files && !s->pins_unread) || now_ns < s->again_ns)
		return 0;
	s->again_ns = now_ns + TRY_AGAIN_NS;
	int r = look_again(s);
	if (r == 0 && s->pins_unread)
		r = store_look_for_pins(s, LOOKS_MAX);
	return r == 0 ? recover_left(s) : r;
}

int store_measure(struct store *s)
{
	struct statvfs st;
	if (fstatvfs(s->fd, &st) < 0)
		return -errno;
	s->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	s->read_only = st.f_flag & ST_RDONLY;
	int r = try_again(s);
	for (size_t i = s->n_files; i-- > 0 && r >= 0;)
		if (!s->file[i].sealed && !s->file[i].corrupt) {
			int looked = store_look_size(s, &s->file[i]);
			if (looked == STORE_GONE)
				store_drop(s, i);
			else
				r = looked;
		}
	store_sum(s);
	return r < 0 ? r : 0;
}

/* corrupt/window-20261121T140000Z-1f3a9c2b.mprf */
static int move_aside(struct store *s, struct store_file *f)
{
	char to[STORE_NAME_BYTES + 16];
	const char *slash = strchr(f->name, '/');
	snprintf(to, sizeof(to), "corrupt/%.*s-%s", (int)(slash - f->name), f->name, slash + 1);
	if (strlen(to) >= STORE_NAME_BYTES)
		return -ENAMETOOLONG;
	if (renameat(s->fd, f->name, s->fd, to) < 0)
		return -errno;
	/* examining it needs its log too, but that then counts as a file */
	char from_log[STORE_NAME_BYTES + 8], to_log[STORE_NAME_BYTES + 24];
	snprintf(from_log, sizeof(from_log), "%s-wal", f->name);
	snprintf(to_log, sizeof(to_log), "%s-wal", to);
	struct stat st;
	if (fstatat(s->fd, from_log, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0)
		(void)renameat(s->fd, from_log, s->fd, to_log);
	store_unlink(s, f->name); /* other files next to it */
	memcpy(f->name, to, strlen(to) + 1);
	return store_look_size(s, f) < 0 ? -EIO : 0;
}

int store_set_aside(struct store *s, const char *name)
{
	size_t at = store_find(s, name);
	if (at == s->n_files)
		return store_pin_set_aside(s, name);
	struct store_file f = s->file[at];
	if (f.corrupt)
		return 0;
	/* if a file cannot be moved, it is not read any more either */
	int r = s->read_only ? 0 : move_aside(s, &f);
	store_drop(s, at);
	f.corrupt = true;
	f.left = false;
	s->n_corrupt++;
	int entered = store_enter(s, &f, &at);
	/* its sources are in no roll-up of this tier any more */
	for (size_t i = 0; i < s->n_files && f.tier != TIER_WINDOW; i++)
		s->file[i].rolled &= (uint8_t)~(1u << f.tier);
	for (size_t i = 0; i < s->n_files && f.tier != TIER_WINDOW; i++)
		if (s->file[i].tier == f.tier)
			store_mark_sources(s, &s->file[i]);
	store_sum(s);
	if (entered < 0)
		return entered;
	return r == -EROFS                   ? STORE_READ_ONLY
	       : r == -ENOSPC                ? STORE_NO_SPACE
	       : r == -EACCES || r == -EPERM ? STORE_REFUSED
					     : r;
}
