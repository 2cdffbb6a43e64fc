/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Bars of one column of a terminal each, in eighths of a line: "▂▅█", or ":+@" where only ASCII may be drawn */

#include <stdbool.h>

/* The bar of a share of the tallest one; shares outside 0 to 1 are cut. Static. */
static inline const char *bar_of(double share, bool utf8)
{
	static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {".", ":", "-", "=", "+", "*", "#", "@"};
	const int level = share >= 1 ? 7 : share > 0 ? (int)(share * 8) : 0;
	return (utf8 ? eighths : plain)[level];
}
