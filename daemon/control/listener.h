/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The listener: a socket at which clients, or instrumented programs, find the service
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/control/server.h"

/* Whom it is for: clients send a stream, programs packets. */
enum listener_use { LISTENER_CONTROL, LISTENER_FEED };

struct listener {
	int fd;
	char path[108]; /* "": the socket was handed to us and is not ours to remove. Source: man 7
			   unix, sun_path */
	dev_t device;   /* of the socket file that we made */
	ino_t inode;
};

/* Listen at path; a socket that nobody answers at is replaced, anything else is left alone. 0,
 * SERVER_* with *ret_error, -errno. */
int listener_bind(struct listener *ret_listener, enum listener_use use, const char *path,
	struct server_error *ret_error);

/* Take over a listening socket. 0, SERVER_REFUSED with *ret_error (and fd is not closed), -errno.
 */
int listener_adopt(struct listener *ret_listener, enum listener_use use, int fd,
	struct server_error *ret_error);

/* What an open socket that was handed over is for. False: it is no Unix socket of either type. */
bool listener_use_of(int fd, enum listener_use *ret_use);

/* Close it, and remove its file if that is still the one we made. */
void listener_clear(struct listener *l);
