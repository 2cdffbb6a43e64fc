/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What mperfd and its workers say to each other, as hostile bytes: the daemon's decoders of
 * replies (a parser may have been taken over), and the workers' decoders of requests. The first
 * byte picks; a request comes with a descriptor of /dev/null if its second bit is set.
 */
#include <fcntl.h>

#include "daemon/namer/opener.h"
#include "daemon/namer/parser.h"
#include "daemon/naming/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads it all, so that a sanitizer sees what was never written. */
static int swallow(void *userdata, const void *bytes, size_t n)
{
	uint8_t sum = 0;

	(void)userdata;
	for (size_t i = 0; i < n; i++)
		sum ^= ((const uint8_t *)bytes)[i];
	__asm__ volatile("" : : "r"(sum));
	return 0;
}

static void as_reply(const uint8_t *data, size_t size)
{
	static struct reply_unwound unwound;
	static struct reply_grown grown;
	struct message_opened opened;
	struct message_loaded loaded;
	struct message_done done;
	struct reply_names names;
	struct reply_naming naming;
	struct message_tabled tabled;
	const uint8_t *piece;
	const char *path;

	reply_opened(data, size, &opened, &path);
	reply_loaded(data, size, &loaded);
	reply_done(data, size, &done);
	reply_unwound(data, size, &unwound);
	reply_grown(data, size, &grown);
	if (reply_tabled(data, size, &tabled, &piece) == 0)
		swallow(NULL, piece, tabled.n);
	if (reply_names_begin(&names, data, size) == 0)
		while (reply_names_next(&names, &naming) == 0)
			continue;
}

/* A sequence of requests, each behind its length of two bytes. */
static void as_requests(const uint8_t *data, size_t size, bool with_fd)
{
	struct parser *p = NULL;

	if (parser_new(swallow, NULL, &p) < 0)
		return;
	while (size >= 2) {
		size_t n = data[0] | (size_t)data[1] << 8;
		data += 2;
		size -= 2;
		if (n > size)
			n = size;
		int fd = with_fd ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
		if (parser_take(p, data, n, fd) < 0)
			break;
		data += n;
		size -= n;
	}
	parser_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct opener_question question;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		as_requests(data + 1, size - 1, data[0] & 2);
	} else {
		as_reply(data + 1, size - 1);
		opener_decode(data + 1, size - 1, &question);
	}
	return 0;
}
