/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * There is one sink at a time: the file if MPERF_OUTPUT names one, else the daemon's socket. Each
 * counter remembers what was sent (thread.h), so a failing sink loses only what it had taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/abi.h"
#include "runtime/sink.h"

/* By is_file. */
static const struct {
	int (*open)(const struct sink *k);
	int (*put)(struct sink *k, const struct iovec *piece, int n);
} kinds[] = {
	{mperf_feed_open, mperf_feed_put},
	{mperf_output_open, mperf_output_put},
};

void mperf_sink_init(struct sink *k)
{
	k->fd = -1;
	k->listens = 1;
	const char *feed = secure_getenv("MPERF_FEED");
	const char *output = secure_getenv("MPERF_OUTPUT");
	if (!feed)
		feed = MPERF_FEED_SOCKET;
	if (strlen(feed) < sizeof(k->feed))
		strcpy(k->feed, feed);
	if (output && strlen(output) < sizeof(k->output))
		strcpy(k->output, output);
	if (!mperf_sink_wanted(k))
		k->listens = 0;
}

bool mperf_sink_wanted(const struct sink *k)
{
	return !k->hopeless && (k->output[0] || k->feed[0]);
}

bool mperf_sink_deaf(const struct sink *k)
{
	return !mperf_sink_wanted(k) || (k->tried && k->fd < 0 && !k->busy);
}

/* Take over a descriptor, move it up and set close-on-exec. 0 or a negative -errno, which closes
 * fd. */
static int take(struct sink *k, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, MPERF_FD_FLOOR);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	k->fd = fd;
	k->device = st.st_dev;
	k->inode = st.st_ino;
	return 0;
}

bool mperf_sink_ours(const struct sink *k)
{
	struct stat st;
	return k->fd >= 0 && fstat(k->fd, &st) == 0 && st.st_dev == k->device &&
	       st.st_ino == k->inode;
}

void mperf_sink_close(struct sink *k)
{
	if (mperf_sink_ours(k))
		close(k->fd);
	k->fd = -1;
}

int mperf_sink_open(struct sink *k, uint64_t now_ns)
{
	if (!mperf_sink_wanted(k))
		return MPERF_SINK_NONE;
	const uint64_t rest_ns = mperf_sink_retry_ms(k) * UINT64_C(1000000);
	if (k->tried && now_ns - k->tried_ns < rest_ns && !(k->busy && k->patient))
		return MPERF_SINK_NONE;
	k->tried = true;
	k->tried_ns = now_ns;

	k->is_file = k->output[0] != '\0';
	int r = kinds[k->is_file].open(k);
	k->busy = r == -EAGAIN && !k->is_file;
	if (r >= 0)
		r = take(k, r);
	if (r < 0 && k->is_file)
		k->hopeless = true;
	if (r == 0) {
		k->serial++;
		k->stalled = false;
	}
	__atomic_store_n(&k->listens, r == 0 || k->busy, __ATOMIC_RELAXED);
	return r == 0 ? 0 : MPERF_SINK_NONE;
}

int mperf_sink_put(struct sink *k, const struct iovec *piece, int n)
{
	int r = MPERF_SINK_NONE;
	if (mperf_sink_ours(k))
		r = kinds[k->is_file].put(k, piece, n);
	if (r == 0)
		k->stalled = false;
	if (r == MPERF_SINK_NONE) {
		mperf_sink_close(k);
		if (k->is_file)
			k->hopeless = true;
		__atomic_store_n(&k->listens, 0, __ATOMIC_RELAXED);
	}
	return r;
}
