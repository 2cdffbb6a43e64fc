/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Begin: the state from the environment, and the sending thread */

struct state;

/* Initialise the state, and start the sending thread if a sink is configured. Repeated calls have no
 * effect. Under the lock. */
void mperf_begin(struct state *s);
