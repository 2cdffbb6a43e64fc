/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A roofline of programs that are not instrumented, from samples and machine code */

#include "client/options/options.h"

/* Measure or read as the options say, and print. Returns mperfctl's exit status. */
int roofline_code(const struct options *o);
