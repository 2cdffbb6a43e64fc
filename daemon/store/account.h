/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The account: samples taken, in a file that outlives a killed daemon
 *
 * After each drain the daemon writes the number of samples taken for the current segment into a
 * page of a file of the store: a kill does not lose that, although the window in memory is lost. At
 * the next start, the difference between samples taken and samples in the recovered segment is
 * entered there as the loss "daemon killed", so that samples stored and lost add up for every
 * segment.
 *
 *      0      8        104        112                  112 + 8 n_harts
 *      +------+---------+----------+--------+-- … --+--------+
 *      | tag  | segment | n_harts  | taken of hart 0 … n - 1 |     native byte order
 *      +------+---------+----------+--------+-- … --+--------+
 */

#include <stdint.h>

#include "daemon/store/store.h"

struct account;

/* Open the account of a store, creating the file if it is missing or has the wrong size; what an
 * earlier run left in it stays until account_begin. 0 or -errno. */
int account_open(const struct store *s, int n_harts, struct account **ret_account);

/* Enter the losses of a killed daemon into the segment it was writing, which has been recovered. 0:
 * nothing to do, or the account is implausible; ACCOUNT_SETTLED: *ret_lost samples were entered;
 * ACCOUNT_ORPHAN: the segment has no place for *ret_lost samples, or no longer exists; -errno.
 * Settling happens only once. */
enum { ACCOUNT_SETTLED = 1, ACCOUNT_ORPHAN };
int account_settle(struct account *a, const struct store *s, uint64_t *ret_lost);

/* From now on, count samples for the segment at this path. */
void account_begin(struct account *a, const char *path);
/* All samples of the segment have been stored or counted as lost. */
void account_end(struct account *a);

/* Counters by hart, of n_harts; add to them. Borrowed. */
uint64_t *account_taken(struct account *a);
/* Write them to the file if they have changed. A failed write is not an error: it only means that
 * less is known after a kill. */
void account_write(struct account *a);

struct account *account_free(struct account *a);
