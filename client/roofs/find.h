/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Finding roofs: the machine's, which the service keeps, before the user's own */

#include "proto/roofs/roofs.h"

/* Find roofs of this machine and kernel, the service's first; or else the newest of others, as
 * stale. ret_roofs->keeper says where they are kept. The caller frees with roofs_clear. 0;
 * ROOFS_NONE; ROOFS_MALFORMED, ROOFS_NEWER; -errno. */
int roofs_find(struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES]);

/* "the machine's roofs, kept by mperfd", "your own roofs"; "" of a file. Static. */
const char *roofs_keeper_says(enum roofs_keeper keeper);
