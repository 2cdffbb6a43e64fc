/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Requests to the parser that naming and unwinding share.
 */
#include "daemon/naming/namer_private.h"

int parser_ask(struct namer *n, enum message_type type, struct iovec *iov, size_t n_iov, int fd)
{
	uint64_t timeout_ns = namer_timeout(n->options.parse_timeout_ns, NAMER_PARSE_TIMEOUT_NS);
	int r = worker_ask(&n->parser, type, iov, n_iov, fd, n->now_ns + timeout_ns);

	if (r == 0)
		n->asked = type;
	return r;
}

int parser_give(struct namer *n, struct slot *s, enum message_part part)
{
	struct message_file m = {.file = s->file->id, .part = part};
	struct iovec iov = {&m, sizeof(m)};
	int r = parser_ask(n, MESSAGE_FILE, &iov, 1, s->fd[part]);

	if (r < 0)
		return r;
	parser_saw(n, slot_author(s, part));
	s->joined |= 1u << part;
	if (part == PART_MAIN) {
		s->given = n->parser.generation;
		s->loaded = 0;
		s->joined = 0;
	}
	return 0;
}
