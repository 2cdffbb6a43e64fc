/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Jackknife: the error of counts that were taken for a share of the time only
 *
 * Groups of events that rotate are counted for a share of the time and scaled. The error follows from
 * the differences of the counts between stretches of the run. Readings divide the run into stretches.
 * The values of a metric with each stretch left out, one after another, give its standard error, less
 * the share that was counted, which is exact.
 *
 * Source: W. G. Cochran, "Sampling Techniques", 3rd edition, 1977, section 2.6 (finite population
 * correction) and 6.17 (jackknife of ratios).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/memory.h"

#define JACKKNIFE_STRETCHES_MAX 32     /* twice as long ones thereafter, so a run has 16 to 32 */
#define JACKKNIFE_STRETCHES_MIN 5      /* of fewer an interval would be wider than the value */
#define JACKKNIFE_FIRST_NS 20000000ull /* several rotations; kernels rotate every 4 ms */

/* The count of an event since the start. */
struct jackknife_count {
	uint64_t value, enabled_ns, running_ns;
};

struct jackknife;

int jackknife_new(size_t n_events, uint64_t now_ns, struct jackknife **ret_jackknife);
struct jackknife *jackknife_free(struct jackknife *s);
DEFINE_CLEANUP(struct jackknife *, jackknife_free)

/* The time at which the next reading is due. */
uint64_t jackknife_due_ns(const struct jackknife *s);

/* Take a reading, which took took_ns: the next one is so late that readings cost a twentieth of the time. As long
 * as all events were counted all the time, it is due when the run is twice as long. */
void jackknife_take(struct jackknife *s, const struct jackknife_count *count, uint64_t now_ns,
	uint64_t took_ns);

/* Forget all but the last reading: a new run starts there. */
void jackknife_restart(struct jackknife *s);

/* Stretches between the readings. */
size_t jackknife_n_stretches(const struct jackknife *s);

/* The stretch's share of the time of the run, 0 to 1. */
double jackknife_part(const struct jackknife *s, size_t stretch);

/* The counts of all events, scaled to the whole time, without one stretch: NAN for events that were not
 * counted in the others. */
void jackknife_without(const struct jackknife *s, size_t stretch, double *ret_counts);

/* Does that share of the time, 0 to 1, mean that a value was counted all the time? */
bool jackknife_is_whole(double counted);

/* Half of the 95 % interval of a value that was counted for the share `counted` of the time, from its
 * values without each of n stretches, which had these shares of the time (NULL: all the same). Values that
 * are NAN, and stretches without time, do not count. 0 if it was counted all the time; NAN with too few
 * stretches. */
double jackknife_error(const double *without, const double *part, size_t n, double counted);
