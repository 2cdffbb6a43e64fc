/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Causes of loss that a client looks for by name; it prints the others unchanged. */

/* Seconds in which a hart was busy and delivered no sample. */
#define LOSS_CAUSE_BLIND "busy second without samples"
/* Not a loss, but counted like one: the time that mperf itself took of the hart. */
#define LOSS_CAUSE_COST "own cost in microseconds"
