/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A disc that fails for a moment: SQLite's reads of databases return an error instead of bytes
 *
 * The file on the disc is whole all the time. Each test runs in a process of its own, so nothing is put back.
 */

#include <sqlite3.h>

/* From now on the n-th read (from 0) and the n_times - 1 after it return this result. */
void faulty_disc_fail(int n, int n_times, int result);
/* From now on the n-th read of a child kills it. */
void faulty_disc_kill_child(int n);
/* Reads work again. How many were made since faulty_disc_fail. */
int faulty_disc_work(void);
