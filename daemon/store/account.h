/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The account: samples taken, in a file that outlives a killed daemon
 *
 * The daemon writes what it has taken for the segment it writes into a page of a file of the store
 * after each drain: a kill cannot take that back, where a window in hand is gone. At the next start
 * the difference between what was taken and what the recovered segment holds is entered there as
 * the loss "daemon killed", so that samples stored and lost add up for every segment.
 *
 *      0      8        104        112                  112 + 8 n_harts
 *      +------+---------+----------+--------+-- … --+--------+
 *      | tag  | segment | n_harts  | taken of hart 0 … n - 1 |     native byte order
 *      +------+---------+----------+--------+-- … --+--------+
 */

#include <stdint.h>

#include "daemon/store/store.h"

struct account;

/* Open the account of a store, making the file where it is missing or not as large as it should be;
 * what another run left in it stays until account_begin. 0 or -errno. */
int account_open(const struct store *s, int n_harts, struct account **ret_account);

/* What a killed daemon left: enter its losses into the segment it was writing, which has been
 * recovered. 0: nothing to do, or nothing that can be believed; ACCOUNT_SETTLED, *ret_lost samples
 * were entered; ACCOUNT_ORPHAN: the segment has no place for them or is not there any more, with
 * *ret_lost samples; -errno. What was settled is not settled again. */
enum { ACCOUNT_SETTLED = 1, ACCOUNT_ORPHAN };
int account_settle(struct account *a, const struct store *s, uint64_t *ret_lost);

/* From now on samples are taken for the segment at this path. */
void account_begin(struct account *a, const char *path);
/* All of it was stored or counted. */
void account_end(struct account *a);

/* Counters by hart, of n_harts; add to them. Borrowed. */
uint64_t *account_taken(struct account *a);
/* Put them into the file if they have changed. A disc that does not take them is no error: less is
 * known after a kill then. */
void account_write(struct account *a);

struct account *account_free(struct account *a);
