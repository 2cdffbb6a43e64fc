/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Causes of loss that a client looks for by name; it prints the others as they come. */

/* Seconds for which a hart was busy and brought no sample. */
#define LOSS_CAUSE_BLIND "busy second without samples"
