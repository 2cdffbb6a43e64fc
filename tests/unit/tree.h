/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Files below /proc and /sys as a table: support code of the unit tests
 *
 * tree_read_text and tree_list stand in for those of struct kernel. Their userdata is a
 * struct tree, or something that begins with one.
 */

#include <stddef.h>
#include <sys/types.h>

struct tree_file {
	const char *path;
	const char *text; /* NULL: reading or listing it fails with error */
	int error;        /* negative errno */
};

struct tree {
	const struct tree_file *file;
	size_t n_files;
};

#define TREE(table) {table, sizeof(table) / sizeof((table)[0])}

/* -ENOENT for what is not in the table. */
ssize_t tree_read_text(void *tree, const char *path, char *buffer, size_t size);

/* The names right below path, each as often as files in the table stand under it. */
int tree_list(void *tree, const char *path, void (*each)(void *userdata, const char *name),
	void *userdata);
