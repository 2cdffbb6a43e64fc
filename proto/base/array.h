/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Arrays that grow: a pointer to elements, and the number that fit */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST 64 /* elements at the beginning; doubled when they are full */

/* Grow *array, of *size elements of element_bytes each, to at least n elements; new ones are zeroed. 0; -ENOMEM:
 * nothing changes. */
static inline int array_grow_long(void *array, size_t *size, size_t n, size_t element_bytes)
{
	if (n <= *size)
		return 0;
	size_t wanted = *size ? *size : ARRAY_FIRST;
	while (wanted < n)
		wanted *= 2;
	void **p = array;
	char *grown = reallocarray(*p, wanted, element_bytes);
	if (!grown)
		return -ENOMEM;
	memset(grown + *size * element_bytes, 0, (wanted - *size) * element_bytes);
	*p = grown;
	*size = wanted;
	return 0;
}

/* The same for arrays whose size is a uint32_t. */
static inline int array_grow(void *array, uint32_t *size, uint32_t n, size_t element_bytes)
{
	size_t whole = *size;
	int r = array_grow_long(array, &whole, n, element_bytes);
	*size = (uint32_t)whole;
	return r;
}
