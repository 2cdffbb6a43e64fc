/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A capture: one recording, of what runs or of what the service has kept, from the daemon into a file */

#include "client/compare/recordings.h"
#include "client/measure/feed_socket.h"
#include "client/measure/run.h"
#include "client/options/options.h"
#include "client/show/outfile.h"

/* A request for data, as the options have it: a file, the service's store, or a measurement */
struct source_request {
	const char *input; /* the file, or the last of several; NULL: not named */
	char *const *inputs;
	size_t n_inputs;
	bool live; /* of running programs, which the service knows */
	const struct target *target;
	const struct sampling *sampling;
	const struct narrowing *narrowing;
};

/* The request of the options, from which it borrows. */
static inline struct source_request source_request_of(const struct options *o)
{
	return (struct source_request){
		o->input, o->inputs, o->n_inputs, o->live, &o->target, &o->sampling, &o->narrowing};
}

struct capture {
	struct run run;
	struct outfile *out;   /* borrowed */
	char *provenance_line; /* owned; NULL until it arrived */
	uint64_t samples, total_bytes;
};

/* Record what is asked for into out, which stays open. feed: path of the socket that our own
 * daemon creates for CMD's counts; NULL: none. 0; RUN_FAILED with run.exit_status, after an error
 * message. */
int capture_run(struct capture *c, struct link *l, const struct source_request *q, int signal_fd,
	struct outfile *out, const char *feed);
/* Save a part of the store of the service at the other end into out, which stays open: what `filter` chooses of it, and
 * this daemon lets us see. Returns as capture_run. */
int capture_stored(struct capture *c, struct link *l, Mperf__Filter *filter, int signal_fd,
	struct outfile *out);
void capture_clear(struct capture *c);

/* The source of a query: -i, ./mperf.mprf, the service's store, or a recording made for it that
 * source_clear removes. */
struct source {
	struct link link;
	struct outfile temporary; /* fd -1 and no name unless recorded */
	char *path;               /* absolute; empty: the service's store */
	struct recordings *files; /* of several; NULL: only path */
	bool kept;                /* the source is the service's store */
	struct feed_socket feed;  /* for CMD's counts */
	int signal_fd;            /* -1 unless recorded */
	int exit_status;          /* of CMD */
};

/* Find the source that is asked for; may record. 0; RUN_FAILED with *ret_exit after an error message. */
int source_start(struct source *s, const struct source_request *q, int *ret_exit);

/* Send a query to the source's daemon; answers go to `answer`. Returns the exit status; 0: answered. */
int source_ask(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata);

/* Do as source_ask, but a Failure that mperfd sends goes to `failed` and is not printed; then too, the exit status is
 * not 0. */
int source_try(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a),
	void (*failed)(void *userdata, const Mperf__Failure *f), void *userdata);

/* Put the request's filter into the protocol's form, which borrows from the request. The service's store is
 * by default filtered to the last hour. */
void source_filter(
	const struct source *s, const struct source_request *q, Mperf__Filter *ret_filter);
/* The processes, jobs and times that are asked for, as capture_stored takes them. */
void source_stored_filter(const struct source_request *q, Mperf__Filter *ret_filter);

/* Title of a picture: that of --title, else "KIND of make -j2" or "KIND of the service's store". kept: as in
 * struct source. The caller frees; NULL if memory ran out. */
char *source_title(const struct options *o, bool kept, const char *kind);

void source_clear(struct source *s);

/* Let a query be about the source's path, narrowed as asked for; `filter` is filled in, and the request
 * borrows it. */
void source_narrow(const struct source *s, const struct source_request *q, Mperf__Request *query,
	Mperf__Filter *filter);

/* Open a source, ask it a query, and close it, so that showing the answer leaves nothing
 * behind. *ret_kept: as in struct source; NULL: not wanted. Returns the exit status; 0: answered. */
int source_query(const struct source_request *q, Mperf__Request *query,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata, bool *ret_kept);

/* Make a path absolute, since the daemon may have another working directory. The caller frees; NULL if memory
 * ran out. */
char *source_absolute(const char *path);

#define SOURCE_DEFAULT "mperf.mprf"
