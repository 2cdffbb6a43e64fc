/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sandbox: restrictions of a worker after set-up
 *
 * Entered before the first message is read, never left. A violation kills the process (SIGSYS),
 * except that the parser's attempts to open fail with EACCES: see sandbox.c.
 */

/* Set limits, no_new_privs and the opener's filter: it may open files for reading and copy into
 * memory, but not connect, execute, trace or write files. 0 or -errno. */
int sandbox_enter_opener(void);

/* The same for the parser: it may read and map what it received, and answer. It cannot open files.
 * 0 or -errno. */
int sandbox_enter_parser(void);
