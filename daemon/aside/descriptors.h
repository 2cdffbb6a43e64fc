/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Descriptors that others send along (SCM_RIGHTS), of which we want none
 *
 * Who drops the last reference to a file closes it, and may wait for it: for as long as SO_LINGER of
 * a TCP socket says, or the server of a FUSE file likes. Giving no room for control data does not
 * help: the kernel drops the descriptor in the task that reads, or that closes the socket. So the
 * kernel is asked to refuse them to the sender (Linux 6.16). Where it cannot, or a message may have
 * come before it was asked, nothing that has a descriptor is read, and another task closes the socket.
 */

#include <stdbool.h>
#include <sys/types.h>

struct aside;

/* Refuse them on a Unix socket, and on those that connect to it from now on. */
void descriptors_refuse(int fd);

/* The same for a socket that was just accepted. True: the kernel cannot, or did not when it was
 * connected, so it is to be read by descriptors_receive() and closed by descriptors_close(). */
bool descriptors_may_come(int fd);

/* recv() without blocking. may_come: as descriptors_may_come said. Bytes, 0 at the end; -EBADMSG: the packet
 * has descriptors, or something in the stream has, and nothing is read; -EMSGSIZE: it is a packet of more
 * than n bytes; -errno. */
ssize_t descriptors_receive(int fd, bool may_come, void *bytes, size_t n);

/* Close a connected socket, and what was sent along and not read, for that user. True: a thread of
 * closers does so, since it may take any time. */
bool descriptors_close(struct aside *closers, int fd, bool may_come, uid_t uid);
