/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A user's own roofs, a file for each machine, set of kinds of harts and kernel, in the state folder */

#include "client/roofs/machine.h"
#include "proto/roofs/roofs.h"

#define ROOFS_PATH_BYTES 4096

/* Where they are kept: $XDG_STATE_HOME/mperf/roofs, or ~/.local/state/mperf/roofs. False if neither
 * variable is set. Source: XDG Base Directory Specification 0.8. Exported for tests. */
bool keep_folder(char ret_path[static ROOFS_PATH_BYTES]);

/* Write the path of the file for these. -ENOENT without a folder, -ENAMETOOLONG, -ENOMEM.
 * Exported for tests. */
int keep_path(const struct roofs *r, char ret_path[static ROOFS_PATH_BYTES]);

/* Store them there, replacing earlier ones. 0, -errno. */
int keep_own(const struct roofs *r);

/* Find the roofs of machine `m`, or else the newest of others, as stale. The caller frees with
 * roofs_clear. 0; ROOFS_NONE; ROOFS_MALFORMED, ROOFS_NEWER; -errno. */
int keep_find_own(
	const struct machine *m, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES]);
