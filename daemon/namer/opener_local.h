/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Files that we may hold without waiting for anybody when we close them */

#include <stdbool.h>

/* Is the file behind fd on a file system that waits for its disk alone? proc: the folder in /proc of a process in
 * whose mount namespace it was found; 0: none. Reads the list of its mounts if it is on an overlay. */
bool opener_is_local(int fd, int proc);

/* Is that file on our root file system, which nobody unmounts? Not by its mount: a service has mounts of its own. */
struct stat;
bool opener_is_on_our_root(const struct stat *s);
