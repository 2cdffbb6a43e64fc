/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sending a file as the answer of a request, as fast as the peer reads */

#include "daemon/control/request.h"

/* Send `bytes` of fd, which it takes over and closes, then Done. The descriptor is charged to the
 * peer's user. 0, also after a refusal; -errno. */
int give_file(struct request *q, int fd, uint64_t bytes);

/* Send bytes of an open file from *offset on, up to total, and move *offset, as far as the peer has room. 0: all are
 * sent; GIVE_LATER: call again when it has read some; -errno, -EIO also if the file has become shorter. */
enum { GIVE_LATER = 1 };
int give_bytes(struct request *q, int fd, uint64_t *offset, uint64_t total);
