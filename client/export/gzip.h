/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Gzip: bytes compressed into a stream */

#include <stddef.h>
#include <stdio.h>

struct gzip;

/* Levels of zlib. A profile repeats itself so much that the fastest level takes a third of the default's time for a
 * tenth more bytes. */
enum gzip_level { GZIP_FAST = 1, GZIP_SMALL = 9 };

/* 0 or -ENOMEM. Borrows f, whose own errors are left to its owner. */
int gzip_new(FILE *f, enum gzip_level level, struct gzip **ret_gzip);
void gzip_write(struct gzip *g, const void *bytes, size_t n);
/* Write what is left. */
void gzip_end(struct gzip *g);
struct gzip *gzip_free(struct gzip *g);
