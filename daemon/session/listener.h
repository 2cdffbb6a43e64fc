/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The listener: a socket on which clients or instrumented programs reach the service */

#include <stdbool.h>
#include <sys/types.h>

struct listener_error {
	char text[512];
	char remedy[256];
};

/* Its users: clients send a stream, programs packets. */
enum listener_use { LISTENER_CONTROL, LISTENER_FEED };

struct listener {
	int fd;
	char path[108]; /* "": the socket was passed to us, and we do not remove it. Source: man 7
			   unix, sun_path */
	dev_t device;   /* of the socket file that we created */
	ino_t inode;
};

/* Listen at path; a socket on which nobody listens is replaced, any other file is left alone. 0,
 * LISTENER_* with *ret_error, -errno. */
enum { LISTENER_BUSY = 1, LISTENER_REFUSED };
int listener_bind(struct listener *ret_listener, enum listener_use use, const char *path,
	struct listener_error *ret_error);

/* Take over a listening socket. 0, LISTENER_REFUSED with *ret_error (and fd is not
 * closed), -errno. */
int listener_adopt(struct listener *ret_listener, enum listener_use use, int fd,
	struct listener_error *ret_error);

/* The use of an open socket that was passed to us. False: not a Unix socket of either type. */
bool listener_use_of(int fd, enum listener_use *ret_use);

/* Close it, and remove its file if that is still the one we created. */
void listener_clear(struct listener *l);
/* The same, and the folder of its file if that is empty then: a client made it for the socket, and may
 * be gone. */
void listener_clear_folder(struct listener *l);
