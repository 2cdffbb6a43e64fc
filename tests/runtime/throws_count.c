/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What throws.cc counts with: a module is laid out in C.
 */
#include "counted.h"

COUNTED(16)

void counted_a(unsigned n);
void counted_a(unsigned n)
{
	COUNT(4, n);
}
