/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Message: announcements, once per connection, before figures that refer to them
 *
 * Each returns 0 (sent, now or before) or an outcome of the sink (sink.h); call again to continue.
 */

#include <stddef.h>
#include <stdint.h>

struct image;
struct region;
struct state;
struct thread;

int mperf_message_hello(struct state *s);
int mperf_message_object(struct state *s, struct image *image); /* with its tables */
int mperf_message_thread(struct state *s, struct thread *t);
int mperf_message_region(struct state *s, struct region *region); /* after those around it */

/* Send s->packet with this type and size. */
int mperf_message_put(struct state *s, uint16_t type, size_t bytes);
