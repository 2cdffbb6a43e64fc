/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl roofline and blocks: the counts of instrumented programs.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/measure/workload.h"
#include "client/options/command.h"
#include "client/roofline/roofline_code.h"
#include "client/roofline/roofline_counters.h"
#include "client/roofline/roofline_print.h"
#include "client/roofline/roofline_roofs.h"
#include "client/roofline/two_phase.h"
#include "client/show/reply.h"
#include "client/show/say.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Columns that tables omit, for readability; --json, --csv and --raw have them. */
static const char *const blocks_spare[] = {"span_ns", "bytes_loaded", "bytes_stored", NULL};

/* Note that --loops and --sample had no effect: no function has two bodies to choose from. */
static void say_if_no_choice(const struct options *o, const struct reply *r)
{
	bool of_bodies = reply_column(r, "counted_entries") >= 0 &&
			 (!o->by || strcmp(o->by, "loop") == 0 || strcmp(o->by, "function") == 0);
	if (o->chooses && r->n_rows > 0 && of_bodies && !has_two_bodies(r))
		say_note("no function of this program has two bodies, so --loops and --sample have "
			 "no effect; build the program with mperf-cc and MPERF_PASS=mode=clone");
}

/* The first of two files, for a plot of both. */
static int ask_earlier(const struct options *o, Mperf__Request *request, struct reply *reply)
{
	struct source_request from = source_request_of(o);
	from.input = o->earlier;
	return source_query(&from, request, reply_take, reply, NULL);
}

/* Ask, and show the answer. `spare` and `stretch_ms`: as in struct showing. */
static int run(const struct options *o, Mperf__Request *request, const char *const *spare,
	uint32_t stretch_ms)
{
	struct reply reply = {0}, before = {0};
	struct showing showing = {
		.o = o, .reply = &reply, .spare = spare, .stretch_ms = stretch_ms};
	const struct source_request from = source_request_of(o);
	int exit_status = o->earlier ? ask_earlier(o, request, &before) : 0;
	if (exit_status == 0)
		exit_status = source_query(&from, request, reply_take, &reply, &showing.kept);
	showing.before = before.columns ? &before : NULL;
	if (exit_status == 0)
		exit_status = roofline_print(&showing);
	say_if_no_choice(o, &reply);
	reply_clear(&before);
	reply_clear(&reply);
	return exit_status;
}

/* --- again and again -------------------------------------------------------------------------- */

#define NS_PER_MS 1000000ll
#define LIVE_MS 1000  /* the service writes its counts once a second at most */
#define TAKEN_MS 1500 /* by then it has written the counts it received, and may write again */

/* Clear the screen, if there is one. */
static void begin_frame(const struct options *o, unsigned n)
{
	bool screen = !o->look.json && !o->look.csv && !o->look.raw && isatty(STDOUT_FILENO);
	if (screen)
		fputs("\033[H\033[2J", stdout); /* Source: man 4 console_codes, CUP and ED */
	else if (n > 0 && !o->look.json && !o->look.csv && !o->look.raw)
		fputc('\n', stdout);
	fflush(stdout);
}

static void wait_until(int64_t realtime_ns)
{
	int64_t left_ns = realtime_ns - (int64_t)clock_ns(CLOCK_REALTIME);
	struct timespec t = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
	if (left_ns > 0)
		nanosleep(&t, NULL);
}

/* Ask once, and set *since_ns for the next answer. On each request the service writes its counts
 * and begins a new window, which starts after our request. */
static int ask_live(
	struct source *s, Mperf__Request *request, int64_t *since_ns, struct reply *reply)
{
	request->roofline->filter->since_ns = *since_ns;
	*since_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	return source_ask(s, request, reply_take, reply);
}

/* Wait until then, or until the command ends and the service has received its last counts. Returns
 * whether the command has ended. */
static bool wait_for(struct workload *w, int64_t realtime_ns)
{
	int64_t left_ns = realtime_ns - (int64_t)clock_ns(CLOCK_REALTIME);
	struct pollfd ends = {.fd = w->end_fd, .events = POLLIN};
	if (w->argv && poll(&ends, 1, left_ns > 0 ? (int)(left_ns / NS_PER_MS) : 0) > 0) {
		workload_wait(w);
		int64_t taken_ns = (int64_t)clock_ns(CLOCK_REALTIME) + TAKEN_MS * NS_PER_MS;
		realtime_ns = realtime_ns > taken_ns ? realtime_ns : taken_ns;
	}
	wait_until(realtime_ns);
	return w->ended;
}

static enum roofline_peaks live_peaks(const struct options *o)
{
	return o->peaks ? ROOFLINE_PEAKS_TOO : o->plot ? ROOFLINE_PEAKS_ALONE : ROOFLINE_NO_PEAKS;
}

static int show_frames(
	struct source *s, const struct options *o, Mperf__Request *request, struct workload *w)
{
	bool ended = false;
	int64_t step_ns = (o->sampling.interval_ms ? o->sampling.interval_ms : LIVE_MS) * NS_PER_MS;
	int64_t since_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	struct reply before = {0};
	struct plot_axes axes = {.x.low = 0};
	_cleanup_(roofline_roofs_clear) struct roofline_roofs roofs = {.n = 0};
	if (roofline_roofs_find(live_peaks(o), &roofs) < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	int exit_status = ask_live(s, request, &since_ns, &before);
	reply_clear(&before);
	if (w->argv && exit_status == 0) { /* by now the service surely begins a new window */
		wait_until(since_ns + TAKEN_MS * NS_PER_MS);
		exit_status = ask_live(s, request, &since_ns, &before);
		reply_clear(&before);
		int released = exit_status == 0 ? workload_release(w) : 0;
		if (released != 0)
			return released > 0 ? w->exit_status : EXIT_FAILED;
	}
	request->roofline->select = NULL; /* once is enough */
	for (unsigned n = 0; exit_status == 0 && !ended && (o->frames == 0 || n < o->frames); n++) {
		struct reply reply = {0};
		ended = wait_for(w, since_ns + step_ns);
		exit_status = ask_live(s, request, &since_ns, &reply);
		if (exit_status == 0) {
			begin_frame(o, n);
			exit_status = roofline_print(&(struct showing){
				.o = o, .reply = &reply, .roofs = &roofs, .axes = &axes});
			if (n == 0)
				say_if_no_choice(o, &reply);
		}
		reply_clear(&reply);
	}
	return exit_status;
}

/* Release the command, if there is one, and show frames until it ends or all frames were shown. */
typedef int live_frames(
	struct source *, const struct options *, Mperf__Request *, struct workload *);

/* Ask again and again about the target; a command, if there is one, runs meanwhile. */
static int watch(const struct options *o, const struct target *target, Mperf__Request *request,
	live_frames *frames, struct workload *w)
{
	struct source source;
	Mperf__Filter filter;
	int exit_status;
	struct source_request from = source_request_of(o);
	from.target = target;
	if (source_start(&source, &from, &exit_status) == 0) {
		source_narrow(&source, &from, request, &filter);
		exit_status = frames(&source, o, request, w);
	}
	source_clear(&source);
	return exit_status;
}

static int run_live(const struct options *o, Mperf__Request *request, live_frames *frames)
{
	struct workload w = {.end_fd = -1, .hold_fd = -1, .trouble_fd = -1};
	struct target target = o->target;
	if (o->target.command_line && workload_fork(&w, o->target.command_line) < 0) {
		say_failure("cannot start another process", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if (o->target.command_line) { /* from here on, a running program like others */
		target.command_line = NULL;
		target.pid[0] = w.pid;
		target.n_pids = 1;
	}
	int exit_status = watch(o, &target, request, frames, &w);
	bool runs = w.argv && w.hold_fd < 0 && !w.ended;
	if (runs && workload_wait(&w) < 0)
		exit_status = EXIT_FAILED;
	if (w.ended && w.hold_fd < 0 && exit_status == 0)
		exit_status = w.exit_status;
	workload_clear(&w);
	return exit_status;
}

int client_roofline(const struct options *o)
{
	if (o->from && strcmp(o->from, "code") == 0)
		return roofline_code(o);
	if (o->from && strcmp(o->from, "counters") == 0)
		return roofline_counters(o);
	Mperf__RooflineRequest roofline = MPERF__ROOFLINE_REQUEST__INIT;
	roofline.by = (char *)(o->by ? o->by : "loop");
	roofline.ops = (char *)(o->ops ? o->ops : "fp");
	roofline.limit = o->limit;
	roofline.inclusive = o->inclusive;
	roofline.explain = o->notes || o->look.json;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_ROOFLINE;
	request.roofline = &roofline;
	Mperf__Selection select = MPERF__SELECTION__INIT;
	if (o->two_phase)
		return two_phase(o, &request);
	if (o->chooses && o->target.command_line && choose_by_environment(o, o->one_in) != 0)
		return EXIT_FAILED;
	if (o->chooses && !o->target.command_line) {
		select.n_glob = o->n_globs;
		select.glob = (char **)o->glob;
		select.one_in = o->one_in;
		roofline.select = &select;
	}
	if (o->live)
		return run_live(o, &request, show_frames);
	return run(o, &request, NULL, 0);
}

/* --- drawn again and again -------------------------------------------------------------------- */

#define LIVE_STRETCHES 60 /* on one screen */

static int draw_frames(
	struct source *s, const struct options *o, Mperf__Request *request, struct workload *w)
{
	if (request->blocks->every_ms == 0)
		request->blocks->every_ms = LIVE_MS;
	int64_t every_ns = request->blocks->every_ms * NS_PER_MS, next_ns = 0;
	bool ended = false;
	int exit_status = 0;
	int released = w->argv ? workload_release(w) : 0;
	if (released != 0)
		return released > 0 ? w->exit_status : EXIT_FAILED;
	if (w->argv) /* before that there is nothing to draw */
		next_ns = (int64_t)clock_ns(CLOCK_REALTIME) + LIVE_MS * NS_PER_MS;
	for (unsigned n = 0; exit_status == 0 && !ended && (o->frames == 0 || n < o->frames); n++) {
		struct reply reply = {0};
		ended = wait_for(w, next_ns);
		int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
		next_ns = now_ns + LIVE_MS * NS_PER_MS;
		request->blocks->filter->since_ns = now_ns - LIVE_STRETCHES * every_ns;
		exit_status = source_ask(s, request, reply_take, &reply);
		if (exit_status == 0) {
			begin_frame(o, n);
			exit_status = roofline_print(&(struct showing){.o = o,
				.reply = &reply,
				.spare = blocks_spare,
				.stretch_ms = request->blocks->every_ms});
		}
		reply_clear(&reply);
	}
	return exit_status;
}

int client_blocks(const struct options *o)
{
	Mperf__BlocksRequest blocks = MPERF__BLOCKS_REQUEST__INIT;
	blocks.every_ms = o->sampling.interval_ms;
	blocks.limit = o->limit;
	blocks.series = !o->look.csv && !o->look.json && !o->look.raw;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_BLOCKS;
	request.blocks = &blocks;
	if (o->live)
		return run_live(o, &request, draw_frames);
	return run(o, &request, blocks_spare, o->sampling.interval_ms);
}
