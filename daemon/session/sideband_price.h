/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The cost that the side band adds to a fork, an exec and a mapping, found by measuring
 *
 * We do fixed work on one hart, alternately with and without the events of a session. If a service has
 * events open, both sides have those.
 */

#include <stdbool.h>

#include "daemon/kernel/kernel.h"

/* ns, the median of the differences, and the interval that holds it in 97 of 100 cases. If the interval
 * begins at or below 0, only its end is known: the cost is less than that. */
struct sideband_price {
	bool known;
	double ns, low_ns, high_ns;
};

#define SIDEBAND_ROUNDS 21 /* pairs for one price; odd, for the median */

/* The price from SIDEBAND_ROUNDS differences. Sorts them in place. Exported for tests. */
struct sideband_price sideband_price_judge(double difference_ns[static SIDEBAND_ROUNDS]);

/* Measure all prices: takes about half a second of a hart, in which some 1,500 children end at once. The
 * price of work that the machine refuses stays unknown. The caller must see the whole system. 0;
 * SIDEBAND_REFUSED: no session opens; -errno. */
enum { SIDEBAND_REFUSED = 1 };
int sideband_price_measure(
	const struct kernel *k, struct sideband_price ret_price[static N_TASK_WORKS]);
