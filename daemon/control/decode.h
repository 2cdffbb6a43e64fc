/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The answer to list with a code to decode */

#include "daemon/control/request.h"

/* Answer with the fields of a raw code, or say why not. 0 or -errno. */
int control_decode(struct request *q, const char *text);
