/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Pages of a shared mapping are the kernel's: they are there for the next process however the last
 * one ended, short of the machine itself going down, after which the file may hold anything and is
 * believed only where its segment agrees.
 */
#include "daemon/store/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/pmu/stream.h"
#include "proto/memory.h"

#define ACCOUNT_TAG 0x31636341666d70u /* "pmfAcc1", as a number: 1 is the layout's version */

struct page {
	uint64_t tag;
	char segment[STORE_NAME_BYTES]; /* its file's name; "": none is being written */
	uint64_t n_harts;
	uint64_t taken[];
};
_Static_assert(offsetof(struct page, segment) == 8 && offsetof(struct page, n_harts) == 104 &&
		       offsetof(struct page, taken) == 112,
	"the layout in account.h");

struct account {
	struct page *page;
	size_t n_bytes;
	int n_harts;
};

int account_open(const struct store *s, int n_harts, struct account **ret_account)
{
	_cleanup_(closep) int fd = openat(s->fd, "account", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	struct stat st;
	size_t n = sizeof(struct page) + (size_t)n_harts * sizeof(uint64_t);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* allocated, not sparse: a page that finds no room would be a signal later */
	if ((size_t)st.st_size < n) {
		int r = ftruncate(fd, 0) < 0 ? errno : posix_fallocate(fd, 0, (off_t)n);
		if (r != 0)
			return -r;
	}
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	struct account *a = calloc(1, sizeof(*a));
	if (!a) {
		munmap(p, n);
		return -ENOMEM;
	}
	*a = (struct account){.page = p, .n_bytes = n, .n_harts = n_harts};
	*ret_account = a;
	return 0;
}

static bool is_whole(const struct account *a)
{
	const struct page *p = a->page;
	return p->tag == ACCOUNT_TAG && p->n_harts == (uint64_t)a->n_harts && *p->segment &&
	       memchr(p->segment, '\0', sizeof(p->segment)) && !strchr(p->segment, '/');
}

/* Samples of a hart that the segment answers for: stored, or counted lost after they were taken. */
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
		rc = sqlite3_bind_text(
			q, 2 + i, loss_kinds[causes[i]].name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		double there = sqlite3_column_double(q, 0);
		*ret_lost = (double)taken > there ? taken - (uint64_t)there : 0;
	}
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : -EIO;
}

static int enter(sqlite3 *db, int hart, uint64_t lost)
{
	/* behind the last window; a segment without any has no place for it */
	char *sql = sqlite3_mprintf(
		"INSERT INTO loss SELECT max(id), %d, %Q, %lld FROM window HAVING max(id) > 0 "
		"ON CONFLICT DO UPDATE SET count = count + excluded.count",
		hart, loss_kinds[LOSS_KILLED].name, (long long)lost);
	if (!sql)
		return -ENOMEM;
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : -EIO;
}

static int settle(const struct account *a, sqlite3 *db, uint64_t *ret_lost)
{
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	uint64_t sum = 0;
	int r = 0;
	for (int hart = 0; hart < a->n_harts && r == 0; hart++) {
		uint64_t lost = 0;
		r = lost_of_hart(db, hart, a->page->taken[hart], &lost);
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

static uint64_t sum_taken(const struct account *a)
{
	uint64_t n = 0;
	for (int hart = 0; hart < a->n_harts; hart++)
		n += a->page->taken[hart];
	return n;
}

int account_settle(struct account *a, const struct store *s, uint64_t *ret_lost)
{
	if (!is_whole(a))
		return 0;
	_cleanup_(freep) char *path = NULL;
	if (asprintf(&path, "%s/window/%s", s->path, a->page->segment) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (access(path, F_OK) < 0) {
		*ret_lost = sum_taken(a);
		return ACCOUNT_ORPHAN;
	}
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
	int r = rc == SQLITE_OK ? settle(a, db, ret_lost) : -EIO;
	sqlite3_close(db);
	return r < 0 ? r : *ret_lost > 0 ? ACCOUNT_SETTLED : 0;
}

void account_begin(struct account *a, const char *path)
{
	struct page *p = a->page;
	const char *slash = strrchr(path, '/');
	account_end(a);
	p->tag = ACCOUNT_TAG;
	p->n_harts = (uint64_t)a->n_harts;
	memset(p->taken, 0, (size_t)a->n_harts * sizeof(*p->taken));
	snprintf(p->segment, sizeof(p->segment), "%s", slash ? slash + 1 : path);
}

void account_end(struct account *a)
{
	memset(a->page->segment, 0, sizeof(a->page->segment));
}

uint64_t *account_taken(struct account *a)
{
	return a->page->taken;
}

struct account *account_free(struct account *a)
{
	if (!a)
		return NULL;
	munmap(a->page, a->n_bytes);
	free(a);
	return NULL;
}
