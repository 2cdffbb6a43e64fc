/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program of its own measures, as the caller, since it needs no rights and runs for a minute on all
 * harts; what it prints is checked like a file from anybody. Meanwhile a service that answers lowers
 * its sampling, for those who may ask that of it, and then keeps the roofs for all. Nothing of the
 * service is needed: whatever it answers, the program runs and the roofs are kept as the user's own.
 */
#include "client/commands/roofs_measure.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/measure/program.h"
#include "client/options/options.h"
#include "client/roofs/caches.h"
#include "client/roofs/keep.h"
#include "client/wire/ask.h"
#include "proto/base/memory.h"

struct measuring {
	const struct options *o;
	struct ask *ask; /* the request for a pause, while it runs; else NULL */
	pid_t pid;       /* of mperf-roofs; 0: not started */
	int fd;          /* what it prints; -1: not started, or all of it was read */
	char *text;      /* ROOFS_BYTES_MAX + 1 */
	size_t n;
	char caches[CACHES_TEXT_BYTES]; /* by documents, if the kernel states no sizes */
	int result;                     /* result of starting it: 0, an exit status, -errno */
	bool sampled;                   /* the service said why it does not lower its sampling */
	/* why the service refused; FAILURE_UNKNOWN: it did not */
	Mperf__FailureKind refused;
	char what[512], remedy[512];
};

/* --- the program ------------------------------------------------------------------------------ */

/* Become the measuring program, in the child. */
static void become_program(
	const char *path, const struct options *o, const char *documented, int out)
{
	char limit[64], caches[CACHES_TEXT_BYTES + 16];
	const char *argument[5] = {"mperf-roofs"};
	size_t n = 1;
	if (o->quick)
		argument[n++] = "--quick";
	if (o->target.for_ns) {
		snprintf(
			limit, sizeof(limit), "--for=%lluns", (unsigned long long)o->target.for_ns);
		argument[n++] = limit;
	}
	if (*documented) {
		snprintf(caches, sizeof(caches), "--caches=%s", documented);
		argument[n++] = caches;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* otherwise it would load all harts although nobody waits
					   * */
	dup2(out, STDOUT_FILENO);
	execv(path, (char *const *)argument);
	dprintf(STDERR_FILENO, "mperfctl: cannot run '%s': %s.\n", path, strerror(errno));
	_exit(EXIT_NOT_EXECUTABLE);
}

static int start(struct measuring *g)
{
	char path[PROGRAM_PATH_BYTES];
	int pipe_fd[2];
	if (!program_find("mperf-roofs", path)) {
		say_failure("cannot find mperf-roofs, which measures for mperfctl",
			"Install it beside mperfctl");
		return EXIT_FAILED;
	}
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int in = pipe_fd[0], out = pipe_fd[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_program(path, g->o, g->caches, out);
	g->pid = pid;
	g->fd = TAKE_FD(in);
	return 0;
}

/* Read once; closes g->fd at the end of output, or beyond the size limit of a file. 0, -errno. */
static int read_some(struct measuring *g)
{
	ssize_t got = read(g->fd, g->text + g->n, ROOFS_BYTES_MAX + 1 - g->n);
	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	g->n += (size_t)got;
	if (got == 0 || g->n > ROOFS_BYTES_MAX)
		close(TAKE_FD(g->fd));
	return 0;
}

/* Read the rest of the program's output, and its status. 0; an exit status after a message; -errno. */
static int end(struct measuring *g)
{
	char what[128];
	int status, r = 0;
	while (r == 0 && g->fd >= 0)
		r = read_some(g);
	if (g->fd >= 0)
		close(TAKE_FD(g->fd));
	while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status)) {
		snprintf(
			what, sizeof(what), "mperf-roofs was ended by signal %d", WTERMSIG(status));
		say_failure(what, "No roofs were saved; try again");
	}
	return EXIT_FAILED;
}

/* --- the service ------------------------------------------------------------------------------ */

static int take_output(void *userdata)
{
	struct measuring *g = userdata;
	int r = read_some(g);
	if (r == 0 && g->fd < 0) {
		g->ask->watch[0].fd = -1;
		r = ask_finish(g->ask);
	}
	return r;
}

/* Note that sampling is lowered from now on, or why it is not. */
static int take_ready(void *userdata, const Mperf__Answer *a)
{
	struct measuring *g = userdata;
	if (a->body_case != MPERF__ANSWER__BODY_READY || g->pid)
		return 0;
	g->sampled = a->ready->note && *a->ready->note;
	if (g->sampled)
		say_note("%s", a->ready->note);
	g->result = start(g);
	if (g->result != 0)
		return g->result;
	g->ask->watch[0] = (struct ask_watch){.fd = g->fd, .ready = take_output};
	return 0;
}

static void take_failure(void *userdata, const Mperf__Failure *f)
{
	struct measuring *g = userdata;
	g->refused = f->kind;
	snprintf(g->what, sizeof(g->what), "%s", f->what ? f->what : "");
	snprintf(g->remedy, sizeof(g->remedy), "%s", f->remedy ? f->remedy : "");
}

/* Ask the service to lower its sampling, and measure meanwhile. True if sampling was lowered all
 * the time. */
static bool measure_in_pause(struct measuring *g, struct link *l)
{
	struct ask k = {.link = l, .answer = take_ready, .failed = take_failure, .userdata = g};
	Mperf__RoofsRequest roofs = MPERF__ROOFS_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_ROOFS;
	request.roofs = &roofs;
	roofs.pause = true;
	g->ask = &k;
	k.progress.silent = true;
	int r = ask_run(&k, &request);
	g->ask = NULL;
	if (r == 0 && k.status != 0 && !g->sampled)
		say_note("mperfd sampled again before all roofs were measured");
	return r == 0 && k.status == 0;
}

/* Give the roofs to the service, which keeps them for all users. */
static void share(struct measuring *g, struct link *l, const struct roofs *measured)
{
	struct ask k = {.link = l, .failed = take_failure, .userdata = g};
	Mperf__RoofsRequest roofs = MPERF__ROOFS_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	_cleanup_(freep) char *text = NULL;
	size_t n = 0;
	request.body_case = MPERF__REQUEST__BODY_ROOFS;
	request.roofs = &roofs;
	int r = roofs_text(measured, true, &text, &n);
	if (r == 0 && n > ROOFS_SHARED_BYTES_MAX)
		r = -EFBIG;
	roofs.keep = (ProtobufCBinaryData){.len = n, .data = (uint8_t *)text};
	*g->what = '\0';
	if (r == 0)
		r = ask_run(&k, &request);
	if (r != 0)
		say_note("the roofs are kept for you only: %s", *g->what ? g->what
								: r < 0  ? strerror(-r)
									 : "mperfd hung up");
}

/* --- all of it -------------------------------------------------------------------------------- */

/* 0; an exit status after a message; -errno. */
static int parse(const struct measuring *g, struct roofs *ret_roofs)
{
	char fault[ROOF_NOTE_BYTES], what[2 * ROOF_NOTE_BYTES];
	int r = roofs_parse(g->text, g->n, ret_roofs, fault);
	if (r > 0) {
		snprintf(what, sizeof(what), "the output of mperf-roofs is not valid: %s", fault);
		say_failure(what, "Install mperf-roofs and mperfctl of the same version");
		return EXIT_FAILED;
	}
	if (r == 0 && ret_roofs->n == 0) {
		roofs_clear(ret_roofs);
		say_failure("the time was too short to measure any roof",
			"Give more with --for, or wait until the machine has less to do");
		return EXIT_FAILED;
	}
	return r;
}

/* Does the service say why we may not measure? */
static bool is_hindered(const struct measuring *g)
{
	if (g->refused == MPERF__FAILURE_KIND__FAILURE_LIMIT) {
		say_failure(g->what, g->remedy);
		return true;
	}
	if (g->refused == MPERF__FAILURE_KIND__FAILURE_REFUSED)
		say_note(
			"mperfd does not lower its sampling while roofs are measured: %s", g->what);
	return false;
}

/* 0; an exit status after a message; -errno. */
static int measure(struct measuring *g, struct link *l, struct roofs *ret_roofs)
{
	bool paused = l && measure_in_pause(g, l);
	int r = g->result;
	if (r == 0 && is_hindered(g))
		return EXIT_FAILED;
	if (r == 0 && !g->pid)
		r = start(g);
	if (r == 0)
		r = end(g);
	if (r == 0)
		r = parse(g, ret_roofs);
	if (r != 0)
		return r;
	ret_roofs->paused = paused;
	if (l && g->refused == MPERF__FAILURE_KIND__FAILURE_UNKNOWN)
		share(g, l, ret_roofs);
	if ((r = keep_own(ret_roofs)) < 0)
		say_note("the roofs could not be saved: %s", strerror(-r));
	return 0; /* they are shown, anyway */
}

int roofs_measure(const struct options *o, struct roofs *ret_roofs)
{
	_cleanup_(freep) char *text = malloc(ROOFS_BYTES_MAX + 1);
	struct measuring g = {.o = o, .fd = -1, .text = text};
	struct link l;
	if (!text)
		return -ENOMEM;
	const struct machine_caches stated = machine_caches((uint32_t)sched_getcpu());
	if (!caches_are_stated(&stated) && caches_find(g.caches) < 0)
		return -ENOMEM;
	bool service = link_try_service(&l) == 0;
	int r = measure(&g, service ? &l : NULL, ret_roofs);
	if (service)
		link_close(&l);
	return r;
}
