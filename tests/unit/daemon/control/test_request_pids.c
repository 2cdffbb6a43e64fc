/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/control/request.c: processes that a client of the service names, and what becomes
 * of them while something is opened for it */

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "tests/unit/test.h"

static struct control_options options;
static struct peer peer;
static struct request request;

/* The user that our children are, root's being nobody's. */
static uid_t user(void)
{
	return geteuid() == 0 ? 1234 : geteuid();
}

static void setup(void)
{
	options = (struct control_options){.private = false};
	peer = (struct peer){.options = &options,
		.fd = -1,
		.uid = user(),
		.gid = geteuid() == 0 ? 1234 : getegid()};
	request = (struct request){.peer = &peer, .id = 7};
}

static void teardown(void)
{
	frame_buffer_clear(&peer.out);
}

EACH_TEST(.begin = setup, .end = teardown);

/* The reason in its refusal. */
static const char *told(void)
{
	static char text[512];
	Mperf__Message *m = NULL;

	ck_assert_int_eq(frame_take(&peer.out, &m), 0);
	ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_FAILURE);
	snprintf(text, sizeof(text), "%s", m->answer->failure->what);
	mperf__message__free_unpacked(m, NULL);
	return text;
}

/* A child of that user's that hides its memory when a byte comes, and then answers with one. */
struct child {
	pid_t pid;
	int to, from;
};

static void hide_when_asked(int from, int to)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (geteuid() == 0 && (setresgid(1234, 1234, 1234) || setresuid(1234, 1234, 1234)))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	while (write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1)
		prctl(PR_SET_DUMPABLE, 0);
	_exit(0);
}

static void answers(const struct child *c)
{
	char byte;

	ck_assert_int_eq(read(c->from, &byte, 1), 1);
}

static struct child begin(void)
{
	int to[2], from[2];

	ck_assert_int_eq(pipe2(to, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(from, O_CLOEXEC), 0);
	struct child c = {fork(), to[1], from[0]};
	ck_assert_int_ge(c.pid, 0);
	if (c.pid == 0) {
		close(to[1]);
		hide_when_asked(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	answers(&c);
	return c;
}

static void hide(const struct child *c)
{
	ck_assert_int_eq(write(c->to, "", 1), 1);
	answers(c);
}

static void end(const struct child *c)
{
	kill(c->pid, SIGKILL);
	ck_assert_int_eq(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

TEST(twins_are_dropped_and_too_many_are_seen)
{
	int32_t pid[400] = {5, 5, 7, 5, 7, 9};

	ck_assert_uint_eq(request_drop_twins(pid, 6), 3);
	ck_assert(pid[0] == 5 && pid[1] == 7 && pid[2] == 9);
	ck_assert_uint_eq(request_drop_twins(pid, 0), 0);
	for (int i = 0; i < 400; i++)
		pid[i] = i + 1;
	ck_assert_uint_eq(request_drop_twins(pid, REQUEST_PIDS_MAX), REQUEST_PIDS_MAX);
	ck_assert_uint_eq(request_drop_twins(pid, 400), REQUEST_PIDS_MAX + 1);
	ck_assert_int_gt(request_check_pids(&request, pid, REQUEST_PIDS_MAX + 1, true), 0);
	ck_assert_ptr_nonnull(strstr(told(), "at most 256 processes"));
}

TEST(what_is_still_the_users_may_be_opened)
{
	struct child c = begin();
	struct held_pids held;

	ck_assert_int_eq(request_hold_pids(&request, &c.pid, 1, true, &held), 0);
	ck_assert_int_eq(request_recheck_pids(&request, &held, true), 0);
	held_pids_clear(&held);
	end(&c);
}

TEST(what_changed_while_it_was_opened_is_refused)
{
	struct child c = begin();
	struct held_pids held;

	ck_assert_int_eq(request_hold_pids(&request, &c.pid, 1, true, &held), 0);
	hide(&c);
	ck_assert_int_gt(request_recheck_pids(&request, &held, true), 0);
	ck_assert_ptr_nonnull(strstr(told(), "hides its memory"));
	held_pids_clear(&held);
	end(&c);
}

TEST(what_ended_while_it_was_opened_is_refused_whoever_has_its_pid)
{
	struct child c = begin(), other = begin();
	struct held_pids held;

	ck_assert_int_eq(request_hold_pids(&request, &c.pid, 1, true, &held), 0);
	end(&c);
	held.held[0].pid = other.pid; /* as if it were used again */
	ck_assert_int_gt(request_recheck_pids(&request, &held, true), 0);
	ck_assert_ptr_nonnull(strstr(told(), "there is no process"));
	held_pids_clear(&held);
	end(&other);
}

TEST(another_group_is_another)
{
	struct child c = begin();

	peer.gid++;
	ck_assert_int_gt(request_check_pids(&request, &c.pid, 1, true), 0);
	ck_assert_ptr_nonnull(strstr(told(), "additional rights"));
	peer.sees_all = true;
	ck_assert_int_eq(request_check_pids(&request, &c.pid, 1, true), 0);
	end(&c);
}
