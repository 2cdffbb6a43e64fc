/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The listener: the socket at which clients find the service
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/control/server.h"

struct listener {
	int fd;
	char path[108];   /* "": the socket was handed to us and is not ours to remove. Source: man 7
			     unix, sun_path */
	dev_t device;     /* of the socket file that we made */
	ino_t inode;
};

/* Listen at path; a socket that nobody answers at is replaced, anything else is left alone. 0,
 * SERVER_* with *ret_error, -errno. */
int listener_bind(struct listener *ret_listener, const char *path, struct server_error *ret_error);

/* Take over a listening socket. 0, SERVER_REFUSED with *ret_error (and fd is not closed), -errno. */
int listener_adopt(struct listener *ret_listener, int fd, struct server_error *ret_error);

/* Close it, and remove its file if that is still the one we made. */
void listener_clear(struct listener *l);
