/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pack: what was gathered, as a page carries it
 *
 * Base64 of gzip of: a line of JSON, and columns of numbers, each as LEB128, one column after the other:
 *
 *      functions    name, module, kind
 *      nodes        how far back the caller is, function; the root is left out
 *      tasks        pid, tid, process, thread, cgroup
 *      rows         buckets since the row before, event, task, hart + 1, node, value
 *
 * The JSON has the texts that names refer to, and how many of each there are. Values of time are microseconds.
 */

#include <stdio.h>

#include "client/report/gather.h"

/* 0 or -ENOMEM. The stream keeps errors of writing. */
int pack_write(const struct gathered *g, FILE *out);
