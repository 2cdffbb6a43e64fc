/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sandbox: what a worker may still do once it is set up
 *
 * Entered before the first message is read, never left. Breaking it kills the process (SIGSYS),
 * but for the parser's attempts to open, which fail with EACCES: see sandbox.c.
 */

/* Limits, no_new_privs and the opener's filter: it may open for reading and copy into memory, not
 * connect, execute, trace or write files. 0 or -errno. */
int sandbox_enter_opener(void);

/* The parser's: it may read and map what it was given, and answer. It cannot open. 0 or -errno. */
int sandbox_enter_parser(void);
