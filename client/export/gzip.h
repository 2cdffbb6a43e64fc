/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Gzip: bytes compressed into a stream */

#include <stddef.h>
#include <stdio.h>

struct gzip;

/* 0 or -ENOMEM. Borrows f, whose own errors are left to its owner. */
int gzip_new(FILE *f, struct gzip **ret_gzip);
void gzip_write(struct gzip *g, const void *bytes, size_t n);
/* Write what is left. */
void gzip_end(struct gzip *g);
struct gzip *gzip_free(struct gzip *g);
