/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sink: the destination of messages, the daemon's socket or a file
 *
 * A program may close descriptors that it did not open, and reuse their numbers. So a sink
 * remembers its descriptor's device and inode, and checks before each message that they still
 * match.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The size of sockaddr_un's path; also the limit of a file's path, with the pid in it. */
#define MPERF_FEED_PATH_BYTES 108u
#define MPERF_OUTPUT_PATH_BYTES 4096u

/* Time between two attempts to find a daemon. */
#define MPERF_RETRY_MS 3000u
/* The same, if a daemon is there but other programs fill its queue. */
#define MPERF_BUSY_MS 20u
/* How long the last attempt of a program waits for a place in it. */
#define MPERF_PLACE_MS 100u
/* Our descriptors are at least this high if the limit allows, away from programs that rely on the
 * lowest free number, and from most that close unknown ones. */
#define MPERF_FD_FLOOR 200

enum mperf_sink_outcome {
	MPERF_SINK_FULL = 1,  /* try later; nothing was taken */
	MPERF_SINK_NONE = 2,  /* there is none, or no longer */
	MPERF_SINK_LATER = 3, /* the daemon has not answered yet whether it wants the tables */
};

struct sink {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
	bool is_file;
	uint32_t serial; /* of the connection, from 1 */
	bool tried;
	bool busy;     /* the daemon's queue was full at the last attempt */
	bool patient;  /* wait for a place in the queue */
	bool waited;   /* it has waited without success: a program that ends waits only once */
	bool stalled;  /* a wait timed out since it last took a message */
	bool hopeless; /* the file is in use or cannot be written: never retry */
	uint64_t tried_ns;
	uint32_t listens;                     /* atomic; 0: certainly nobody listens */
	char feed[MPERF_FEED_PATH_BYTES];     /* "": none */
	char output[MPERF_OUTPUT_PATH_BYTES]; /* "": none; else there is no feed */
};

/* Take both paths from the environment (MPERF_FEED, MPERF_OUTPUT), which a setuid program
 * ignores. */
void mperf_sink_init(struct sink *k);

/* Is there any sink to try? */
bool mperf_sink_wanted(const struct sink *k);

/* Is it certain that there is no sink, or did the last attempt fail? Then counts of an ended thread
 * are useless. Under the lock (state.h). */
bool mperf_sink_deaf(const struct sink *k);

/* Time between two attempts now. */
static inline uint64_t mperf_sink_retry_ms(const struct sink *k)
{
	return k->busy ? MPERF_BUSY_MS : MPERF_RETRY_MS;
}

/* Open the sink if it is closed and it is time to retry. 0: it is open now, a new connection; or
 * MPERF_SINK_NONE. */
int mperf_sink_open(struct sink *k, uint64_t now_ns);

/* Send one message, of n pieces, at most MPERF_PIECES_MAX. 0, MPERF_SINK_FULL or MPERF_SINK_NONE. */
#define MPERF_PIECES_MAX 2
int mperf_sink_put(struct sink *k, const struct iovec *piece, int n);

/* Is the descriptor still ours? */
bool mperf_sink_ours(const struct sink *k);

/* Close it, without a message to the other side. */
void mperf_sink_close(struct sink *k);

/* The two sinks, by is_file. open: a new descriptor, or a negative -errno. put: as above. */
int mperf_feed_open(const struct sink *k);
int mperf_feed_put(struct sink *k, const struct iovec *piece, int n);
int mperf_output_open(const struct sink *k);
int mperf_output_put(struct sink *k, const struct iovec *piece, int n);

/* Bytes of all pieces. */
static inline size_t mperf_sink_bytes(const struct iovec *piece, int n)
{
	size_t bytes = 0;
	for (int i = 0; i < n; i++)
		bytes += piece[i].iov_len;
	return bytes;
}
