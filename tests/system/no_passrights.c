/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Preloaded into mperfd: a kernel before 6.16, which does not know SO_PASSRIGHTS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PASSRIGHTS 83

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	if (level == SOL_SOCKET && name == PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, n);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	if (level == SOL_SOCKET && name == PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, n);
}
