/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Trust: what limits what figures can be believed for, and how far that goes */

#include <stdio.h>

#include "proto/mperf.pb-c.h"

enum trust { TRUST_GOOD, TRUST_LOOK, TRUST_DOUBTFUL };

/* "good", "look", "doubtful". Static. */
const char *trust_name(enum trust t);

/* Judge, and write each finding as a list item of HTML to out, the worst first. */
enum trust trust_write(const Mperf__Provenance *p, FILE *out);

/* Write the worst finding as a sentence without its full stop; of good figures what speaks for them. */
void trust_write_verdict(const Mperf__Provenance *p, FILE *out);
