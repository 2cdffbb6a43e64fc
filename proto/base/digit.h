/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Digits of numbers to base 16 and below, whatever the locale */

/* The value of a digit, letters in either case; -1 for anything else. */
static inline int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}
