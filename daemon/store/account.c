/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Bytes that were written to a file are in the kernel: the next process finds them, however the
 * last one ended. Only if the machine itself went down may the file hold anything; then it is
 * believed only where its segment agrees. The file is written and not mapped: where a mapped page
 * finds no room (a full disc that copies on write, a file that somebody cut), the daemon would get
 * a signal, where a write merely fails.
 */
#include "daemon/store/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/kernel/machine.h"
#include "daemon/sampler/stream.h"
#include "daemon/store/segment/trailer.h"
#include "proto/base/memory.h"

#define ACCOUNT_TAG 0x31636341666d70u /* "pmfAcc1", as a number: 1 is the layout's version */
/* 50,000 samples a second for 700 years; a double knows it exactly. */
#define TAKEN_MAX (UINT64_C(1) << 50)

struct page {
	uint64_t tag;
	char segment[STORE_NAME_BYTES]; /* its file's name; "": none is being written */
	uint64_t n_harts;
	uint64_t taken[];
};
_Static_assert(offsetof(struct page, segment) == 8 && offsetof(struct page, n_harts) == 104 &&
		       offsetof(struct page, taken) == 112,
	"the layout in account.h");
#define PAGE_BYTES(n_harts) (sizeof(struct page) + (size_t)(n_harts) * sizeof(uint64_t))

struct account {
	int fd, n_harts;
	struct page *page, *written; /* of n_harts; the values in the file now */
	struct page *left;           /* of HARTS_MAX, from an earlier run; zeros beyond its harts */
};

/* Allocate all space now: a page without space later would leave the file unchanged. */
static int open_file(const struct store *s, size_t n, int *ret_fd)
{
	_cleanup_(closep) int fd = openat(
		s->fd, "account", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	int r = (size_t)st.st_size < n ? posix_fallocate(fd, 0, (off_t)n) : 0;
	if (r != 0)
		return -r;
	*ret_fd = fd;
	fd = -1; /* the caller's by now */
	return 0;
}

int account_open(const struct store *s, int n_harts, struct account **ret_account)
{
	struct account *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	size_t n = PAGE_BYTES(n_harts), n_left = PAGE_BYTES(HARTS_MAX);
	a->fd = -1;
	a->n_harts = n_harts;
	a->page = calloc(1, n);
	a->written = calloc(1, n);
	a->left = calloc(1, n_left);
	int r = a->page && a->written && a->left ? open_file(s, n, &a->fd) : -ENOMEM;
	if (r == 0 && pread(a->fd, a->left, n_left, 0) < 0)
		r = -errno;
	if (r < 0) {
		account_free(a);
		return r;
	}
	memcpy(a->page, a->left, n);
	memcpy(a->written, a->left, n);
	*ret_account = a;
	return 0;
}

static bool is_whole(const struct page *p)
{
	if (p->tag != ACCOUNT_TAG || p->n_harts == 0 || p->n_harts > HARTS_MAX || !*p->segment ||
		!memchr(p->segment, '\0', sizeof(p->segment)) || strchr(p->segment, '/'))
		return false;
	for (uint64_t hart = 0; hart < p->n_harts; hart++)
		if (p->taken[hart] > TAKEN_MAX)
			return false;
	return true;
}

/* Samples of a hart that the segment accounts for: stored, or counted as lost after they were
 * taken. */
static const char answered[] =
	"SELECT (SELECT total(count) FROM sample WHERE hart = ?1) + "
	"(SELECT total(count) FROM loss WHERE hart = ?1 AND cause IN (?2, ?3, ?4))";

static int lost_of_hart(sqlite3 *db, int hart, uint64_t taken, uint64_t *ret_lost)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(db, answered, -1, &q, NULL);
	static const enum loss causes[] = {LOSS_STORE, LOSS_MEMORY, LOSS_KILLED};
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int(q, 1, hart);
	for (int i = 0; i < 3 && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_text(q, 2 + i, loss_kinds[causes[i]].name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		double there = sqlite3_column_double(q, 0);
		if (!(there >= 0))
			there = 0;
		*ret_lost = (double)taken > there ? taken - (uint64_t)there : 0;
	}
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : -EIO;
}

/* Enter the loss after the last window; a segment without windows has no place for it: -ENOENT. */
static int enter(sqlite3 *db, int hart, uint64_t lost)
{
	char *sql = sqlite3_mprintf(
		"INSERT INTO loss SELECT max(id), %d, %Q, %lld FROM window HAVING max(id) > 0 "
		"ON CONFLICT DO UPDATE SET count = count + excluded.count",
		hart, loss_kinds[LOSS_KILLED].name, (long long)lost);
	if (!sql)
		return -ENOMEM;
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	return rc != SQLITE_OK ? -EIO : sqlite3_changes(db) > 0 ? 0 : -ENOENT;
}

static int settle(const struct page *p, sqlite3 *db, uint64_t *ret_lost)
{
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	uint64_t sum = 0;
	int r = 0;
	for (int hart = 0; hart < (int)p->n_harts && r == 0; hart++) {
		uint64_t lost = 0;
		r = lost_of_hart(db, hart, p->taken[hart], &lost);
		if (r == 0 && lost > 0)
			r = enter(db, hart, lost);
		sum += lost;
	}
	if (r == 0 && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		r = -EIO;
	if (r == 0)
		*ret_lost = sum;
	return r;
}

static uint64_t sum_taken(const struct page *p)
{
	uint64_t n = 0;
	for (uint64_t hart = 0; hart < p->n_harts; hart++)
		n += p->taken[hart];
	return n;
}

/* If the segment has a seal, renew it. */
static int settle_file(const struct page *p, const char *path, uint64_t *ret_lost)
{
	int sealed = trailer_remove(path);
	if (sealed < 0)
		return sealed;
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	int r = rc == SQLITE_OK ? settle(p, db, ret_lost) : rc == SQLITE_NOMEM ? -ENOMEM : -EIO;
	sqlite3_close(db);
	int written = sealed ? trailer_write_path(path) : 0;
	return r < 0 ? r : written;
}

/* 0; -ENOENT: it is not there, or has no place; -errno. */
static int settle_segment(const struct page *p, const struct store *s, uint64_t *ret_lost)
{
	_cleanup_(freep) char *path = NULL;
	struct stat st;
	if (asprintf(&path, "%s/window/%s", s->path, p->segment) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* SQLITE_OPEN_NOFOLLOW would want no link in the folder's path either */
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	return settle_file(p, path, ret_lost);
}

int account_settle(struct account *a, const struct store *s, uint64_t *ret_lost)
{
	const struct page *left = a->left;
	uint64_t lost = 0;
	if (!is_whole(left))
		return 0;
	int r = settle_segment(left, s, &lost);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT)
		lost = sum_taken(left);
	account_end(a);
	if (lost == 0)
		return 0;
	*ret_lost = lost;
	return r == -ENOENT ? ACCOUNT_ORPHAN : ACCOUNT_SETTLED;
}

void account_begin(struct account *a, const char *path)
{
	struct page *p = a->page;
	const char *slash = strrchr(path, '/');
	memset(p, 0, PAGE_BYTES(a->n_harts));
	p->tag = ACCOUNT_TAG;
	p->n_harts = (uint64_t)a->n_harts;
	snprintf(p->segment, sizeof(p->segment), "%s", slash ? slash + 1 : path);
	account_write(a);
}

void account_end(struct account *a)
{
	memset(a->page->segment, 0, sizeof(a->page->segment));
	memset(a->left->segment, 0, sizeof(a->left->segment));
	account_write(a);
}

uint64_t *account_taken(struct account *a)
{
	return a->page->taken;
}

void account_write(struct account *a)
{
	size_t n = PAGE_BYTES(a->n_harts);
	if (memcmp(a->page, a->written, n) == 0)
		return;
	/* incomplete writes are repeated; less than a page is written completely or not at all */
	if (pwrite(a->fd, a->page, n, 0) == (ssize_t)n)
		memcpy(a->written, a->page, n);
}

struct account *account_free(struct account *a)
{
	if (!a)
		return NULL;
	closep(&a->fd);
	free(a->page);
	free(a->written);
	free(a->left);
	free(a);
	return NULL;
}
