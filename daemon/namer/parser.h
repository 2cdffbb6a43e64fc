/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The parser: names offsets and unwinds stacks, from descriptors that it is given
 *
 * Bounded by its sandbox in memory and by the daemon in time. What it holds (files, images,
 * spaces) it may forget whenever memory runs out; it says so, and the daemon hands it over again.
 */

#include <stddef.h>
#include <stdint.h>

#define PARSER_SPACES_MAX 32 /* processes whose call frame information is kept parsed */

struct parser;

/* How an answer leaves: one whole message. 0 or -errno. */
typedef int parser_send(void *userdata, const void *bytes, size_t n);

int parser_new(parser_send *send, void *userdata, struct parser **ret_parser);

/* Take one request of n bytes and the descriptor that came with it (-1: none; taken over).
 * Every request is answered. 0, -EBADMSG for one that is malformed, -errno of send. */
int parser_take(struct parser *p, const void *bytes, size_t n, int fd);

struct parser *parser_free(struct parser *p);

/* Serve requests from socket until the other end is gone. 0 or -errno. */
int parser_run(int socket);
