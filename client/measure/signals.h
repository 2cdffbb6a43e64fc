/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Signals that end a measurement, as a descriptor
 *
 * During a measurement, SIGINT, SIGTERM and SIGHUP mean "stop and show the results so far".
 * They are blocked, and the poll loop reads them from a signalfd.
 */

/* Block these signals. The caller owns the descriptor. 0, or -errno after an error message. */
int signals_block(int *ret_fd);

/* Take one signal; returns its number, 0 if none is pending. */
int signals_take(int fd);

/* Unblock these signals: pending ones take their usual effect. Closes fd. */
void signals_unblock(int fd);
