/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Texts of a profile are UTF-8 without control characters, so only two characters need escaping. A
 * file of a million samples is too large to build as a tree in memory first, as with jansson.
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
