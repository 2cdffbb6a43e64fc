/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Files whose close never waits for another machine or process */

#include <stdbool.h>

/* Is the file behind fd on a file system that waits only for its disk? proc: the folder in /proc of a process in
 * whose mount namespace the file was found; 0: none. If the file is on an overlay, the list of that process's
 * mounts is read. */
bool opener_is_local(int fd, int proc);

/* Is that file on our root file system, which nobody unmounts? Decided by device, not by mount: a
 * service has mounts of its own. */
struct stat;
bool opener_is_on_our_root(const struct stat *s);
