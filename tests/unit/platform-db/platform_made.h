/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Folders of platforms that a test writes, and what they read as. Every failure is ck_abort's. */

#include "platform-db/platform.h"

#define PLATFORM_DATA "platform-db/platforms"

struct made_folder {
	char path[64];
};

/* A new folder below $TMPDIR or /tmp; removed with all that is in it. */
struct made_folder made_folder_new(void);
void made_folder_remove(struct made_folder *f);
/* Write a file; folders in its name are made. */
void made_file(const struct made_folder *f, const char *name, const char *text);

/* Load folders, the last may be NULL. */
struct platform_db *made_load(const char *first, const char *second);
/* The built-in data with nothing on top; fails where it has an error. */
struct platform_db *made_load_data(void);

/* Is there exactly one error, and does it have this in it? */
void must_complain(const struct platform_db *db, const char *of);
/* Are there no errors? */
void must_be_clean(const struct platform_db *db);
