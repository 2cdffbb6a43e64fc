/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Frames of top as text, and the parts that text and screen share */

#include <stdio.h>

#include "client/options/options.h"
#include "client/top/model.h"

#define TOP_TEXT_ROWS 30  /* unless -n */
#define TOP_TEXT_HARTS 16 /* lines; the last has all other harts */

/* Write the shown frame: text, tab-separated values (--raw) or one line of JSON. 0,
 * -ENOMEM, -EIO. */
int top_text_write(const struct top_model *m, const struct options *o, FILE *f);

/* "host 14:03:22 99 Hz 198 samples/s lost 0 98.7 % named" of the shown frame, escaped. The caller
 * frees; NULL if memory ran out. */
char *top_text_headline(const struct top_model *m);

/* "; process 12; named cc1": how the options narrow all frames, escaped; may be empty. The caller
 * frees; NULL if memory ran out. */
char *top_text_narrowed(const struct options *o);
