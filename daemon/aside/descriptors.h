/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Descriptors that others send along (SCM_RIGHTS): refuse them
 *
 * The task that drops the last reference to a file closes it, and may have to wait: for the SO_LINGER of a
 * TCP socket, or as long as the server of a FUSE file likes. It does not help to give no room for control
 * data: the kernel drops the descriptor in the task that reads, or that closes the socket. So we ask the
 * kernel to refuse descriptors to the sender (Linux 6.16). If it cannot, or if a message may have come
 * before we asked, we read no message that has a descriptor, and another task closes the socket.
 */

#include <stdbool.h>
#include <sys/types.h>

struct aside;

/* Refuse descriptors on a Unix socket, and on sockets that connect to it from now on. */
void descriptors_refuse(int fd);

/* The same for a socket that was just accepted. True: the kernel cannot, or did not when it was
 * connected, so it is to be read by descriptors_receive() and closed by descriptors_close(). */
bool descriptors_may_come(int fd);

/* recv() without blocking. may_come: the result of descriptors_may_come. Bytes, 0 at the end; -EBADMSG: the packet
 * has descriptors, or something in the stream has, and nothing is read; -EMSGSIZE: it is a packet of more
 * than n bytes; -errno. */
ssize_t descriptors_receive(int fd, bool may_come, void *bytes, size_t n);

/* Close a connected socket, and descriptors that were sent along and not read, for that user. True: a
 * thread of closers does so, since it may take any time. */
bool descriptors_close(struct aside *closers, int fd, bool may_come, uid_t uid);
