/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Requests to the parser, which naming and unwinding share, and their effects on it: files that it
 * must forget, and users whose files and stacks it received.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>

int parser_ask(struct namer *n, enum message_type type, struct iovec *iov, size_t n_iov, int fd)
{
	uint64_t timeout_ns = namer_timeout(n->options.parse_timeout_ns, NAMER_PARSE_TIMEOUT_NS);
	int r = worker_ask(&n->parser, type, iov, n_iov, fd, n->now_ns + timeout_ns);

	if (r == 0)
		n->request.type = type;
	return r;
}

enum message_type parser_asked(const struct namer *n)
{
	return n->request.type;
}

int parser_forget(struct namer *n, const struct file *file)
{
	struct request *q = &n->request;

	if (q->n_forget == q->size_forget) {
		size_t size = q->size_forget ? 2 * q->size_forget : 64;
		uint32_t *forget = realloc(q->forget, size * sizeof(*forget));
		if (!forget)
			return -ENOMEM;
		q->forget = forget;
		q->size_forget = size;
	}
	q->forget[q->n_forget++] = file->id;
	return 0;
}

bool parser_has_to_forget(const struct namer *n)
{
	return n->request.n_forget > 0;
}

int parser_ask_forget(struct namer *n)
{
	struct request *q = &n->request;
	struct message_file m = {.file = q->forget[0]};
	struct iovec iov = {&m, sizeof(m)};
	int r = parser_ask(n, MESSAGE_FORGET, &iov, 1, -1);

	if (r == 0)
		memmove(q->forget, q->forget + 1, --q->n_forget * sizeof(*q->forget));
	return r;
}

void parser_saw(struct namer *n, uid_t uid)
{
	struct request *q = &n->request;

	if (uid == 0 || q->n_seen > NAMER_SEEN_MAX)
		return;
	for (uint32_t i = 0; i < q->n_seen; i++)
		if (q->seen[i] == uid)
			return;
	if (q->n_seen < NAMER_SEEN_MAX)
		q->seen[q->n_seen] = uid;
	q->n_seen++;
}

bool parser_saw_only(
	const struct namer *n, bool (*is_of)(const void *userdata, uid_t uid), const void *userdata)
{
	const struct request *q = &n->request;
	bool only = q->n_seen <= NAMER_SEEN_MAX;

	for (uint32_t i = 0; i < q->n_seen && only; i++)
		only = is_of(userdata, q->seen[i]);
	return only;
}

void parser_begins(struct namer *n)
{
	n->request.n_forget = 0;
	n->request.n_seen = 0;
}

void request_clear(struct request *q)
{
	free(q->forget);
}
