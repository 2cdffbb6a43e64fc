/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The parser: names offsets and unwinds stacks, from descriptors that it receives
 *
 * Its sandbox bounds its memory, the daemon its time. It may forget files, images and spaces when memory
 * runs out; it reports that, and the daemon sends them again.
 */

#include <stddef.h>
#include <stdint.h>

#define PARSER_SPACES_MAX 32 /* processes whose parsed call frame information is kept */

struct parser;

/* Sends an answer as one whole message. 0 or -errno. */
typedef int parser_send(void *userdata, const void *bytes, size_t n);

/* Exported for tests. */
int parser_new(parser_send *send, void *userdata, struct parser **ret_parser);

/* Handle one request of n bytes, and take the descriptor that came with it (-1: none). Every
 * request is answered. 0, -EBADMSG if malformed, -errno of send. Exported for tests. */
int parser_take(struct parser *p, const void *bytes, size_t n, int fd);

/* Exported for tests. */
struct parser *parser_free(struct parser *p);

/* Serve requests from socket until the other end is gone. 0 or -errno. */
int parser_run(int socket);
