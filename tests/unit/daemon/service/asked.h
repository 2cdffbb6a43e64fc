/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* One request of one peer of a service, and the rounds in which a child answers it */

#include "daemon/child/offload.h"
#include "daemon/conf/conf.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"

#define PATIENCE_MS 30000 /* for a loaded machine; a child answers within milliseconds */

/* A peer with one request, and the queue its answers' processes wait in. */
struct asked {
	struct conf conf;
	struct offload_queue queue;
	struct users users;
	struct control_options options;
	struct peer *peer;
	struct request *request;
	int client_fd;
	uint64_t began_ns; /* CLOCK_MONOTONIC: the peer's times count from then on */
	struct frame_buffer in;
	char noted[256];
};

void ask(struct asked *a);
void forget(struct asked *a);
/* One round of the daemon's: wait a little for what the job waits for, and let it run. */
void turn(struct asked *a, int wait_ms);
/* The next answer that the peer was sent. The caller frees. */
Mperf__Message *answered(struct asked *a);
/* See that the next answer is Done, of request 7; its status. */
int done_status(struct asked *a);
/* Leave the answer to a child. */
void start(struct asked *a, const struct offload_answer *answer, void *userdata);
