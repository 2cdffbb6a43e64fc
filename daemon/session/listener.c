/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A daemon that was killed leaves its socket file behind, and bind() refuses a path that exists.
 * We find out by connecting: a socket at which nobody listens refuses, and we remove it. We remove only
 * sockets, since any other file refuses a connection as well.
 */
#include "daemon/session/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/aside/descriptors.h"
#include "proto/base/memory.h"

#define BIND_TRIES_MAX                                                                             \
	3 /* another process may create and remove a socket between our check and our
			  * bind */

static const struct {
	int type;
	const char *key, *directive;
} uses[] = {
	[LISTENER_CONTROL] = {SOCK_STREAM, "socket in [control]", "ListenStream="},
	[LISTENER_FEED] = {SOCK_SEQPACKET, "feed in [feed]", "ListenSequentialPacket="},
};

/* Set *error to the problem with a path, and to a remedy with the key of mperf.conf for this use.
 * */
static int refuse(struct listener_error *error, enum listener_use use, const char *remedy,
	const char *what, const char *path)
{
	snprintf(error->text, sizeof(error->text), "%s '%s'%s%s", what, path, errno ? ": " : "",
		errno ? strerror(errno) : "");
	snprintf(error->remedy, sizeof(error->remedy), "%s or set %s of mperf.conf.", remedy,
		uses[use].key);
	return LISTENER_REFUSED;
}

static void make_folder(const char *path)
{
	char folder[sizeof((struct sockaddr_un *)0)->sun_path];
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path)
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	(void)mkdir(folder, 0755); /* if it cannot be made, bind says so */
}

/* Remove a socket without a listener. 0: we can now bind there; LISTENER_*; -errno. */
static int clear_way(
	enum listener_use use, const struct sockaddr_un *address, struct listener_error *error)
{
	struct stat st;
	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		errno = 0;
		return refuse(error, use, "Move it,",
			"a file that is not a socket is in the way at", address->sun_path);
	}
	_cleanup_(closep) int fd =
		socket(AF_UNIX, uses[use].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN means a full queue, so there is a listener. Source: man 2 connect. */
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		errno == EAGAIN) {
		snprintf(error->text, sizeof(error->text), "another mperfd answers at '%s'",
			address->sun_path);
		snprintf(error->remedy, sizeof(error->remedy),
			"Stop it, or set another %s of mperf.conf.", uses[use].key);
		return LISTENER_BUSY;
	}
	if (errno != ECONNREFUSED)
		return refuse(error, use, "Check who owns it, remove it,",
			"cannot find out which process listens at", address->sun_path);
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return refuse(error, use, "Remove it,", "cannot remove the socket left behind at",
			address->sun_path);
	return 0;
}

int listener_bind(struct listener *ret_listener, enum listener_use use, const char *path,
	struct listener_error *ret_error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return refuse(
			ret_error, use, "Choose a shorter path,", "cannot make a socket at", path);
	}
	strcpy(address.sun_path, path);
	_cleanup_(closep) int fd =
		socket(AF_UNIX, uses[use].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;

	descriptors_refuse(fd);
	make_folder(path);
	int bound = -1;
	for (int i = 0; i < BIND_TRIES_MAX && bound < 0; i++) {
		int r = clear_way(use, &address, ret_error);
		if (r != 0)
			return r;
		bound = bind(fd, (struct sockaddr *)&address, sizeof(address));
		if (bound < 0 && errno != EADDRINUSE)
			break;
	}
	struct stat st;
	/* Anyone may connect: answers depend on the user. */
	if (bound < 0 || chmod(path, 0666) < 0 || stat(path, &st) < 0 || listen(fd, SOMAXCONN) < 0)
		return refuse(ret_error, use, "Make its folder, let mperfd write to it,",
			"cannot listen at", path);
	*ret_listener = (struct listener){
		.fd = TAKE_FD(fd),
		.device = st.st_dev,
		.inode = st.st_ino,
	};
	strcpy(ret_listener->path, address.sun_path);
	return 0;
}

/* Is it a Unix socket of that type, which listens? */
static bool listens(int fd, int wanted)
{
	int listening = 0, domain = 0, type = 0;
	socklen_t n = sizeof(listening);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && listening &&
	       domain == AF_UNIX && type == wanted;
}

bool listener_use_of(int fd, enum listener_use *ret_use)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++)
		if (listens(fd, uses[i].type)) {
			*ret_use = (enum listener_use)i;
			return true;
		}
	return false;
}

int listener_adopt(struct listener *ret_listener, enum listener_use use, int fd,
	struct listener_error *ret_error)
{
	if (!listens(fd, uses[use].type)) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"descriptor %d, passed to mperfd, is not a listening Unix %s socket", fd,
			use == LISTENER_FEED ? "packet" : "stream");
		snprintf(ret_error->remedy, sizeof(ret_error->remedy), "Check %s in mperfd.socket.",
			uses[use].directive);
		return LISTENER_REFUSED;
	}
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	descriptors_refuse(fd);
	*ret_listener = (struct listener){.fd = fd};
	return 0;
}

void listener_clear(struct listener *l)
{
	struct stat st;
	if (*l->path && stat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode)
		unlink(l->path);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct listener){.fd = -1};
}

void listener_clear_folder(struct listener *l)
{
	char folder[sizeof(l->path)];
	memcpy(folder, l->path, sizeof(folder));
	listener_clear(l);
	char *slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return;
	*slash = '\0';
	rmdir(folder);
}
