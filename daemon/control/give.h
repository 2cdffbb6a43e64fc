/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Giving a file: its bytes as the answer of a request, as fast as the peer reads */

#include "daemon/control/request.h"

/* Send `bytes` of fd, which it takes over and closes, then Done. The descriptor is charged to the
 * peer's user. 0, also after a refusal; -errno. */
int give_file(struct request *q, int fd, uint64_t bytes);
