/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Message: announcements, once per connection, before figures that refer to them
 *
 * Each returns 0 (sent, now or before) or an outcome of the sink (sink.h); call again to continue.
 */

/* Without an answer the daemon gets the tables unasked, this long after the object was announced. */
#define MPERF_ANSWER_MS 300u

#include <stddef.h>
#include <stdint.h>

struct object;
struct region;
struct state;
struct thread;

int mperf_message_hello(struct state *s);
/* With its tables, if the daemon wants them; MPERF_SINK_LATER: it has not said so yet. */
int mperf_message_object(struct state *s, struct object *object);
/* All objects, without their tables: the sooner the daemon answers the better. */
int mperf_message_objects(struct state *s);
int mperf_message_thread(struct state *s, struct thread *t);
int mperf_message_region(struct state *s, struct region *region); /* after those around it */

/* Send s->packet with this type and size. */
int mperf_message_put(struct state *s, uint16_t type, size_t bytes);
