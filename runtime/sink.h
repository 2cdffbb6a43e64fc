/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sink: where messages go, the daemon's socket or one file
 *
 * A program may close descriptors that it does not know, and get the number again for something of
 * its own. So a sink remembers what its descriptor was, and looks before each message whether it
 * still is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As sockaddr_un holds at most; and of a file's path, with the pid in it. */
#define MPERF_FEED_PATH_BYTES 108u
#define MPERF_OUTPUT_PATH_BYTES 4096u

/* Between two attempts to find a daemon. */
#define MPERF_RETRY_MS 3000u
/* Our descriptors are at least so high where the limit allows, out of the way of programs that
 * count on the lowest free number, and of most that close what they do not know. */
#define MPERF_FD_FLOOR 200

enum mperf_sink_outcome {
	MPERF_SINK_FULL = 1, /* not now; nothing was taken */
	MPERF_SINK_NONE = 2, /* there is none, or no longer */
};

struct sink {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
	bool is_file;
	uint32_t serial; /* of the connection, from 1 */
	bool tried;
	bool stalled;  /* waited for in vain since it last took a message */
	bool hopeless; /* a file that is another's, or cannot be: never again */
	uint64_t tried_ns;
	uint32_t listens;                     /* atomic; 0: it is known that nobody does */
	char feed[MPERF_FEED_PATH_BYTES];     /* "": none */
	char output[MPERF_OUTPUT_PATH_BYTES]; /* "": none; else there is no feed */
};

/* Take both paths from the environment (MPERF_FEED, MPERF_OUTPUT), which a setuid program does not
 * listen to. */
void mperf_sink_init(struct sink *k);

/* Whether there is anything to try at all. */
bool mperf_sink_wanted(const struct sink *k);

/* Open what is not open, if it is time to try again. 0: it is open now, as another connection; or
 * MPERF_SINK_NONE. */
int mperf_sink_open(struct sink *k, uint64_t now_ns);

/* Hand over one message. 0, MPERF_SINK_FULL or MPERF_SINK_NONE. */
int mperf_sink_put(struct sink *k, const void *message, size_t bytes);

/* Whether the descriptor is still ours. */
bool mperf_sink_ours(const struct sink *k);

/* Let go of it, without a word to the other side. */
void mperf_sink_close(struct sink *k);

/* feed.c, output.c: open, 0 or a negative -errno; put as above. */
int mperf_feed_open(struct sink *k);
int mperf_feed_put(struct sink *k, const void *message, size_t bytes);
int mperf_output_open(struct sink *k);
int mperf_output_put(struct sink *k, const void *message, size_t bytes);

/* Take over a descriptor, moved up and closed at exec. 0 or a negative -errno; fd is closed then.
 */
int mperf_sink_take(struct sink *k, int fd);
