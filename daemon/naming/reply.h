/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Replies: validated messages from a worker
 *
 * A worker that was compromised by a file may send anything, so replies are untrusted bytes. Pure:
 * bytes to structs. -EBADMSG for anything inconsistent.
 */

#include "daemon/namer/message.h"

/* Strings point into the reply; n 0: unknown. */
struct reply_place {
	const char *function, *source;
	uint16_t n_function, n_source;
	uint32_t line;
	bool inlined, split_missing;
};
struct reply_naming {
	uint64_t addr;   /* as in message_naming */
	uint8_t outcome; /* enum message_outcome */
	uint8_t n_places;
	uint64_t from, to; /* as in message_naming */
	struct reply_place place[MESSAGE_PLACES_MAX];
};

/* A NAMED message, entry by entry. */
struct reply_names {
	struct message_named named;
	const uint8_t *at, *end;
	const uint8_t *split; /* named.n_split bytes, without NUL */
	uint32_t n_left;
};

int reply_names_begin(struct reply_names *r, const uint8_t *bytes, size_t n);
/* 0; REPLY_END after the last, if no bytes are left over. */
enum { REPLY_END = 1 };
int reply_names_next(struct reply_names *r, struct reply_naming *ret_naming);

/* path points into the reply, n_path bytes. */
int reply_opened(
	const uint8_t *bytes, size_t n, struct message_opened *ret_opened, const char **ret_path);
int reply_loaded(const uint8_t *bytes, size_t n, struct message_loaded *ret_loaded);
int reply_done(const uint8_t *bytes, size_t n, struct message_done *ret_done);

struct reply_grown {
	struct message_grown grown;
	struct message_change change[MESSAGE_CHANGES_MAX];
};
int reply_grown(const uint8_t *bytes, size_t n, struct reply_grown *ret_grown);

struct reply_unwound {
	struct message_unwound unwound;
	struct message_frame frame[MESSAGE_FRAMES_MAX];
};
int reply_unwound(const uint8_t *bytes, size_t n, struct reply_unwound *ret_unwound);

/* A piece of a table; *ret_piece points into the reply, ret_tabled->n bytes. */
int reply_tabled(const uint8_t *bytes, size_t n, struct message_tabled *ret_tabled,
	const uint8_t **ret_piece);
