/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tests/unit/platform-db/platform_made.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct made_folder made_folder_new(void)
{
	struct made_folder f;
	const char *tmp = getenv("TMPDIR");
	if (!tmp || strlen(tmp) > sizeof(f.path) - 32)
		tmp = "/tmp";
	snprintf(f.path, sizeof(f.path), "%s/platforms-XXXXXX", tmp);
	ck_assert_ptr_nonnull(mkdtemp(f.path));
	return f;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
	(void)s, (void)kind, (void)at;
	return remove(path);
}

void made_folder_remove(struct made_folder *f)
{
	ck_assert_int_eq(nftw(f->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void made_file(const struct made_folder *f, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	for (char *slash = path + strlen(f->path) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "we");
	ck_assert_msg(file != NULL, "%s", path);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

struct platform_db *made_load(const char *first, const char *second)
{
	struct platform_db *db = NULL;
	const char *const folders[] = {first, second};
	ck_assert_int_eq(platform_db_load(folders, second ? 2 : 1, &db), 0);
	return db;
}

struct platform_db *made_load_data(void)
{
	struct platform_db *db = made_load(PLATFORM_DATA, NULL);
	must_be_clean(db);
	return db;
}

void must_complain(const struct platform_db *db, const char *of)
{
	const char *error = platform_db_error(db, 0);
	ck_assert_msg(error != NULL, "nothing is wrong, where this should be: %s", of);
	ck_assert_msg(strstr(error, of) != NULL, "'%s' says nothing of '%s'", error, of);
	ck_assert_ptr_null(platform_db_error(db, 1));
}

void must_be_clean(const struct platform_db *db)
{
	const char *error = platform_db_error(db, 0);
	ck_assert_msg(error == NULL, "%s", error);
}
