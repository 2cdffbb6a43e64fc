/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/control/give.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/control/peer.h"
#include "proto/base/memory.h"

struct give_job {
	struct job job;
	struct user *user;
	int fd;
	uint64_t offset, total;
};

static uint64_t give_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	return request_has_room(q) ? 0 : UINT64_MAX;
}

int give_bytes(struct request *q, int fd, uint64_t *offset, uint64_t total)
{
	_cleanup_(freep) uint8_t *chunk = malloc(FRAME_CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	while (*offset < total) {
		if (!request_has_room(q))
			return GIVE_LATER;
		uint64_t left = total - *offset;
		size_t wanted = left < FRAME_CHUNK_BYTES ? (size_t)left : FRAME_CHUNK_BYTES;
		ssize_t n = pread(fd, chunk, wanted, (off_t)*offset);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		int r = request_bytes(q, chunk, (size_t)n, *offset, total);
		if (r != 0)
			return r < 0 ? r : GIVE_LATER;
		*offset += (uint64_t)n;
	}
	return 0;
}

static int give_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct give_job *j = (struct give_job *)job;
	(void)now_ns;
	int r = give_bytes(q, j->fd, &j->offset, j->total);
	if (r != 0)
		return r < 0 ? r : 0;
	r = request_done(q, 0);
	return r < 0 ? r : JOB_DONE;
}

static void give_free(struct job *job)
{
	struct give_job *j = (struct give_job *)job;
	close(j->fd);
	user_give(j->user, USER_DESCRIPTORS, 1);
	free(j);
}

static const struct job_kind give_kind = {
	.deadline_ns = give_deadline_ns, .dispatch = give_dispatch, .free = give_free};

int give_file(struct request *q, int fd, uint64_t bytes)
{
	struct give_job *j = calloc(1, sizeof(*j));
	int r = j ? request_take(q, USER_DESCRIPTORS, 1) : -ENOMEM;
	if (r != 0) {
		close(fd);
		free(j);
		return r < 0 ? r : 0;
	}
	*j = (struct give_job){
		.job.kind = &give_kind, .user = q->peer->user, .fd = fd, .total = bytes};
	q->job = &j->job;
	return 0;
}
