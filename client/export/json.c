/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Texts of a profile have no control characters and are UTF-8, so two characters are left to
 * escape. A file of a million samples is too large to be built as a tree in memory first, as
 * jansson would have it.
 */

#include "client/export/format.h"

/* Source: RFC 8259, section 7. */
void export_json_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text, f);
	}
	fputc('"', f);
}
