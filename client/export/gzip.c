/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* zlib with gzip's header. */

#include "client/export/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

/* Source: zlib.h, deflateInit2: 15 is the largest window, 16 more asks for gzip's header; 8 is the
 * default of memLevel. */
#define WINDOW_BITS (15 + 16)
#define MEMORY_LEVEL 8

struct gzip {
	z_stream z;
	FILE *file;
	unsigned char out[16384];
};

int gzip_new(FILE *f, enum gzip_level level, struct gzip **ret_gzip)
{
	struct gzip *g = calloc(1, sizeof(*g));
	if (!g || deflateInit2(&g->z, (int)level, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
			  Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return -ENOMEM;
	}
	g->file = f;
	*ret_gzip = g;
	return 0;
}

static void run(struct gzip *g, int flush)
{
	do {
		g->z.next_out = g->out;
		g->z.avail_out = sizeof(g->out);
		(void)deflate(&g->z, flush);
		fwrite(g->out, 1, sizeof(g->out) - g->z.avail_out, g->file);
	} while (g->z.avail_out == 0);
}

void gzip_write(struct gzip *g, const void *bytes, size_t n)
{
	g->z.next_in = (unsigned char *)bytes;
	g->z.avail_in = (uInt)n;
	run(g, Z_NO_FLUSH);
}

void gzip_end(struct gzip *g)
{
	run(g, Z_FINISH);
}

struct gzip *gzip_free(struct gzip *g)
{
	if (g)
		deflateEnd(&g->z);
	free(g);
	return NULL;
}
