/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Signals that end a measurement, as a descriptor
 *
 * While something is being measured, SIGINT, SIGTERM and SIGHUP mean "that is enough": what was
 * counted so far is wanted. They are blocked and read from a signalfd by the poll loop.
 */

/* Block them. The descriptor is the caller's. 0, or -errno, which has been said. */
int signals_block(int *ret_fd);

/* Take one; returns its number, 0 if none waits. */
int signals_take(int fd);

/* Unblock them: those that still wait take their usual effect. Closes fd. */
void signals_unblock(int fd);
