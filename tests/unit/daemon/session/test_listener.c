/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Where the service listens: what may stand there already, and what becomes of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/session/listener.h"
#include "tests/unit/test.h"

struct site {
	char folder[32], path[64];
	struct listener_error error;
};

static void site_make(struct site *p)
{
	*p = (struct site){.folder = "/tmp/mperf-listener-XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(p->folder));
	snprintf(p->path, sizeof(p->path), "%s/socket", p->folder);
}

static void site_clear(struct site *p)
{
	unlink(p->path);
	ck_assert_int_eq(rmdir(p->folder), 0);
}

static void listen_there(struct site *p, struct listener *l)
{
	if (listener_bind(l, LISTENER_CONTROL, p->path, &p->error) != 0)
		ck_abort_msg("%s", p->error.text);
}

static void assert_refused(struct site *p, const char *path, int outcome, const char *what)
{
	struct listener l = {.fd = -7};
	ck_assert_int_eq(listener_bind(&l, LISTENER_CONTROL, path, &p->error), outcome);
	ck_assert_int_eq(l.fd, -7);
	if (!strstr(p->error.text, what))
		ck_abort_msg("'%s' has no '%s'", p->error.text, what);
	ck_assert_str_ne(p->error.remedy, "");
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

TEST(everybody_may_connect)
{
	struct site p;
	struct listener l;
	struct stat st;
	site_make(&p);
	mode_t before = umask(077);
	listen_there(&p, &l);
	umask(before);
	ck_assert_int_eq(stat(p.path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0666);
	ck_assert_int_eq(dial(p.path), 0);
	listener_clear(&l);
	ck_assert(!exists(p.path));
	site_clear(&p);
}

TEST(the_folder_is_made_where_it_is_missing)
{
	struct site p;
	struct listener l;
	char folder[40];
	site_make(&p);
	snprintf(folder, sizeof(folder), "%s/run", p.folder);
	snprintf(p.path, sizeof(p.path), "%s/socket", folder);
	listen_there(&p, &l);
	ck_assert_int_eq(dial(p.path), 0);
	listener_clear(&l);
	ck_assert_int_eq(rmdir(folder), 0);
	site_clear(&p);
}

TEST(a_socket_that_was_left_behind_is_replaced)
{
	struct site p;
	struct listener l;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	site_make(&p);
	strcpy(address.sun_path, p.path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	ck_assert_int_eq(dial(p.path), -ECONNREFUSED);
	listen_there(&p, &l);
	ck_assert_int_eq(dial(p.path), 0);
	listener_clear(&l);
	site_clear(&p);
}

TEST(a_socket_that_answers_is_left_to_who_has_it)
{
	struct site p;
	struct listener l;
	site_make(&p);
	listen_there(&p, &l);
	assert_refused(&p, p.path, LISTENER_BUSY, "another mperfd answers");
	ck_assert_int_eq(dial(p.path), 0);
	listener_clear(&l);
	site_clear(&p);
}

TEST(a_file_in_the_way_is_left_alone)
{
	struct site p;
	site_make(&p);
	close(open(p.path, O_CREAT | O_WRONLY, 0600));
	assert_refused(&p, p.path, LISTENER_REFUSED, p.path);
	ck_assert(exists(p.path));
	site_clear(&p);
}

TEST(a_link_in_the_way_is_left_alone_with_what_it_leads_to)
{
	struct site p, other;
	site_make(&p);
	site_make(&other);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, other.path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	ck_assert_int_eq(symlink(other.path, p.path), 0);
	assert_refused(&p, p.path, LISTENER_REFUSED, p.path);
	ck_assert(exists(other.path));
	site_clear(&p);
	site_clear(&other);
}

TEST(a_path_that_is_too_long_or_nowhere_is_refused_by_name)
{
	struct site p;
	char path[110] = "";
	site_make(&p);
	memset(path, 'x', 108);
	assert_refused(&p, path, LISTENER_REFUSED, "xxx");
	assert_refused(&p, "/nowhere/at/all/socket", LISTENER_REFUSED, "/nowhere/at/all/socket");
	site_clear(&p);
}

TEST(a_socket_is_removed_only_by_who_made_it)
{
	struct site p;
	struct listener first, second;
	site_make(&p);
	listen_there(&p, &first);
	unlink(p.path);
	listen_there(&p, &second);
	listener_clear(&first);
	ck_assert_int_eq(dial(p.path), 0);
	listener_clear(&second);
	ck_assert(!exists(p.path));
	site_clear(&p);
}

TEST(a_socket_that_is_handed_over_serves_and_stays)
{
	struct site p;
	struct listener theirs, ours;
	site_make(&p);
	listen_there(&p, &theirs);
	ck_assert_int_eq(listener_adopt(&ours, LISTENER_CONTROL, theirs.fd, &p.error), 0);
	ck_assert_int_eq(dial(p.path), 0);
	ck_assert(fcntl(ours.fd, F_GETFL) & O_NONBLOCK);
	listener_clear(&ours);
	ck_assert(exists(p.path));
	site_clear(&p);
}

TEST(what_is_handed_over_and_does_not_listen_is_refused)
{
	struct listener_error error = {"", ""};
	int fds[] = {socket(AF_UNIX, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0),
		open("/dev/null", O_RDONLY), -1};
	for (int i = 0; i < 4; i++) {
		struct listener l = {.fd = -7};
		ck_assert_int_eq(
			listener_adopt(&l, LISTENER_CONTROL, fds[i], &error), LISTENER_REFUSED);
		ck_assert_ptr_nonnull(strstr(error.text, "not a listening Unix stream socket"));
		ck_assert_int_eq(l.fd, -7);
		if (fds[i] >= 0)
			ck_assert_int_eq(close(fds[i]), 0);
	}
}
