/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Recordings: the files that a selection means
 *
 * A selection is a recording, a folder (its files that end in .mprf), or a pattern in quotes
 * ('runs/main-*.mprf').
 */

#include <stddef.h>
#include <sys/types.h>

#define RECORDINGS_MAX 512 /* of one side: years of nightly runs */
#define RECORDINGS_SUFFIX ".mprf"

enum {
	RECORDINGS_NONE = 1,   /* nothing matches */
	RECORDINGS_MANY,       /* more than the maximum, together with the earlier ones */
	RECORDINGS_UNREADABLE, /* a folder that cannot be read; errno says why */
};

struct recordings {
	char *path[RECORDINGS_MAX]; /* absolute, of a selection in order of their names */
	struct {
		dev_t device;
		ino_t inode; /* 0: it is not there */
	} file[RECORDINGS_MAX];
	size_t n;
	size_t n_twice; /* left out, since the same file was added before, perhaps under another
			 * name */
};

/* Add what the selection means. 0, one of the outcomes above, -errno. Exported for tests. */
int recordings_add(struct recordings *r, const char *selection);
/* The same; says what is wrong. whose: "one side". 0 or EXIT_*. */
int recordings_add_or_say(struct recordings *r, const char *selection, const char *whose);
/* The first path of a whose file is in b too; NULL: there is none. */
const char *recordings_both(const struct recordings *a, const struct recordings *b);
void recordings_clear(struct recordings *r);
