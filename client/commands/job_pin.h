/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Which jobs are meant: NAME, or KEY=VALUE[,KEY=VALUE...][,last=N] as in client/compare/selection.h */

#include "client/compare/selection.h"
#include "client/options/options.h"
#include "proto/mperf.pb-c.h"

/* A name is the label job=NAME; stretches of time and users are refused. 0, or an exit status after a
 * message. */
int job_pin_selection(const char *text, struct selection *ret_selection);

/* job pin, job unpin: ask, and print what was done. Returns the exit status. */
int job_pin_ask(const struct options *o, Mperf__JobAction action);
