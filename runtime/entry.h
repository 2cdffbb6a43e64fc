/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Initialise the state, once; start the sending thread if a sink is configured.
 * Exported for tests. */
void __mperf_start(void) __attribute__((visibility("default")));
