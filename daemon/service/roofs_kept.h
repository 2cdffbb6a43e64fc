/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kept roofs: the measured roofs of this machine, in the folder `roofs` of the store, for all
 * clients
 *
 * A file for each kernel and set of harts (roofs_name), the last ROOFS_KEPT_MAX of them. They do
 * not count against the store's budget: 3 MB at most. Clients measure roofs and send them. We write
 * the roofs that we parsed, not the bytes that we received, so that other clients get nothing but
 * roofs.
 */

#include <stdint.h>

#include "proto/roofs/roofs.h"

#define ROOFS_KEPT_MAX 8

/* Parse `n` bytes, and check that they are from this machine and its kernel. The caller frees with
 * roofs_clear. 0; ROOFS_MALFORMED, ROOFS_NEWER, with the fault as a part of a sentence; -ENOMEM. */
int roofs_kept_read(
	const void *bytes, size_t n, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES]);
/* Write them to the store at `path`, replacing those of the same name. 0, -errno. */
int roofs_kept_write(const char *path, const struct roofs *r);

/* Open those of that name, else the newest. The caller closes *ret_fd. 0; ROOFS_NONE; -errno. */
int roofs_kept_open(const char *path, const char *name, int *ret_fd, uint64_t *ret_bytes);

/* How many there are, and when the newest were kept, in ns of CLOCK_REALTIME; 0: none. */
struct roofs_kept {
	unsigned n;
	int64_t newest_ns;
};
void roofs_kept_look(const char *path, struct roofs_kept *ret_kept);
