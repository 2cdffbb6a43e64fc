/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Selection: runs in the service's store, as a command line names them
 *
 *      KEY=VALUE[,KEY=VALUE]…[,since=TIME][,until=TIME][,last=N][,user=NAME|,uid=N]…
 *      since=TIME[,until=TIME]
 *
 * With labels, each job that has all of them is a run; the second form selects a whole time range,
 * as one run. A value may have * and ?, as with --label; a comma in it is written \, and a
 * backslash \\, so that a job can be copied from a table (labels_say). Spaces may follow a comma
 * between items. A text that does not begin with a label's key and = is not a selection, so a file
 * a=b is written ./a=b.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/syntax/label.h"

#define SELECTION_UIDS_MAX 64 /* users of one selection */

struct selection {
	char *label[LABELS_MAX]; /* owned */
	size_t n_labels;
	int64_t since_ns, until_ns; /* CLOCK_REALTIME; 0: open */
	uint32_t last;              /* 0: all */
	uint32_t uid[SELECTION_UIDS_MAX];
	size_t n_uids; /* 0: the caller's own */
};

struct selection_fault {
	char text[384]; /* a sentence that names what is wrong, without a full stop */
};

/* Is the text meant as a selection? */
bool selection_is_one(const char *text);

/* Parse one; times are relative to now_ns (CLOCK_REALTIME). 0 with *ret_selection, which
 * selection_clear frees; SELECTION_WRONG with *ret_fault; -ENOMEM. */
enum { SELECTION_WRONG = 1 };
int selection_parse(const char *text, int64_t now_ns, struct selection *ret_selection,
	struct selection_fault *ret_fault);
void selection_clear(struct selection *s);
