/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Replies: what a worker sent, checked
 *
 * A worker that was taken over by the file it parses sends what it likes, so these are outside
 * bytes. Pure: bytes to structs. -EBADMSG for anything that does not hold together.
 */

#include "daemon/namer/message.h"

/* Strings point into the reply; n 0: unknown. */
struct reply_place {
	const char *function, *source;
	uint16_t n_function, n_source;
	uint32_t line;
	bool inlined;
};
struct reply_naming {
	uint8_t outcome; /* enum message_outcome */
	uint8_t n_places;
	struct reply_place place[MESSAGE_PLACES_MAX];
};

/* A NAMED message, entry by entry. */
struct reply_names {
	struct message_named named;
	const uint8_t *at, *end;
	uint32_t n_left;
};

int reply_names_begin(struct reply_names *r, const uint8_t *bytes, size_t n);
/* 0; REPLY_END after the last, when nothing is left over either. */
enum { REPLY_END = 1 };
int reply_names_next(struct reply_names *r, struct reply_naming *ret_naming);

/* path points into the reply, n_path bytes. */
int reply_opened(
	const uint8_t *bytes, size_t n, struct message_opened *ret_opened, const char **ret_path);
int reply_loaded(const uint8_t *bytes, size_t n, struct message_loaded *ret_loaded);
int reply_done(const uint8_t *bytes, size_t n, struct message_done *ret_done);

struct reply_unwound {
	struct message_unwound unwound;
	struct message_frame frame[MESSAGE_FRAMES_MAX];
};
int reply_unwound(const uint8_t *bytes, size_t n, struct reply_unwound *ret_unwound);
