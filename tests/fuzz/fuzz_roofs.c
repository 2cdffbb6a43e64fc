/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as a file of roofs. What is taken is written and read back the same; what is refused is
 * so for a reason in one line, and leaves the output alone.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/roofs/roofs.h"

static char *written(const struct roofs *r, size_t *ret_n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_n);
	if (!f || roofs_write(r, false, f) != 0 || fclose(f) != 0)
		abort();
	return text;
}

static void must_read_back(const struct roofs *r)
{
	struct roofs again;
	char fault[ROOF_NOTE_BYTES];
	size_t n, n_again;
	char *text = written(r, &n);
	if (roofs_parse(text, n, &again, fault) != 0)
		abort();
	char *text_again = written(&again, &n_again);
	if (n != n_again || memcmp(text, text_again, n) != 0)
		abort();
	free(text_again);
	free(text);
	roofs_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roofs r, before;
	char fault[ROOF_NOTE_BYTES] = "";
	memset(&r, 0x5a, sizeof(r));
	before = r;
	int result = roofs_parse((const char *)data, size, &r, fault);
	if (result == 0) {
		must_read_back(&r);
		roofs_highest(&r, &(struct roof_wanted){.scope = ROOF_KIND});
		roofs_clear(&r);
	} else if (memcmp(&r, &before, sizeof(r)) != 0 || strlen(fault) == 0)
		abort();
	return 0;
}
