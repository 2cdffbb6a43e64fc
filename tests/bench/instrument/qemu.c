/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A plugin of qemu-user that counts what a program really does: its instructions, and the bytes
 * that it loads and stores, those of the stack apart. Debian has qemu's plugins switched on and
 * ships no header for them, so what is used of the interface is declared here. Source: the
 * interface's documentation, docs/devel/tcg-plugins.rst of QEMU 7.2, and its symbols.
 *
 * A store-conditional of RISC-V is told as a load and a store, since QEMU makes it of a
 * compare-and-exchange; only the store is counted. Source: QEMU 7.2, target/riscv/insn_trans,
 * trans_rva.c.inc, gen_sc().
 *
 * The stack is where the first access of all goes, which is that of _start to argc, and STACK_BYTES
 * below. At exit it prints, on standard error:
 *
 *      instructions N
 *      loaded OUTSIDE STACK
 *      stored OUTSIDE STACK
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION 1 /* of the interface; 9.0 and later want 2 */
#endif
#define STACK_BYTES (8ull << 20) /* qemu-user's default */
#define STACK_ABOVE (1ull << 20) /* arguments and environment */

typedef uint64_t plugin_id;
typedef uint32_t memory_info;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

extern void qemu_plugin_register_vcpu_tb_trans_cb(
	plugin_id id, void (*callback)(plugin_id id, struct qemu_plugin_tb *block));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(
	const struct qemu_plugin_tb *block, size_t index);
extern char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
	void (*callback)(unsigned cpu, void *data), int flags, void *data);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
	void (*callback)(unsigned cpu, memory_info info, uint64_t addr, void *data), int flags,
	int which, void *data);
extern unsigned qemu_plugin_mem_size_shift(memory_info info);
extern bool qemu_plugin_mem_is_store(memory_info info);
extern void qemu_plugin_register_atexit_cb(
	plugin_id id, void (*callback)(plugin_id id, void *data), void *data);

enum { NO_REGISTERS = 0, LOADS_AND_STORES = 3 };
enum { LOADED, STORED };

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_VERSION;

static _Atomic uint64_t instructions;
static _Atomic uint64_t bytes[2][2]; /* by direction, and whether they are the stack's */
static _Atomic uint64_t stack;

static void count_block(unsigned cpu, void *n)
{
	(void)cpu;
	instructions += (uintptr_t)n;
}

static void count_access(unsigned cpu, memory_info info, uint64_t addr, void *stores_alone)
{
	(void)cpu;
	const bool is_store = qemu_plugin_mem_is_store(info);
	if (stores_alone && !is_store)
		return;
	uint64_t none = 0;
	__atomic_compare_exchange_n(
		(uint64_t *)&stack, &none, addr, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	const uint64_t top = stack;
	const bool is_stack = addr < top + STACK_ABOVE && addr >= top - STACK_BYTES;
	bytes[is_store ? STORED : LOADED][is_stack] += 1ull << qemu_plugin_mem_size_shift(info);
}

static bool is_store_conditional(const struct qemu_plugin_insn *insn)
{
	char *text = qemu_plugin_insn_disas(insn);
	const bool is = text && (strstr(text, " sc.w") || strstr(text, " sc.d"));
	free(text);
	return is;
}

static void translate(plugin_id id, struct qemu_plugin_tb *block)
{
	(void)id;
	const size_t n = qemu_plugin_tb_n_insns(block);
	qemu_plugin_register_vcpu_tb_exec_cb(
		block, count_block, NO_REGISTERS, (void *)(uintptr_t)n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		qemu_plugin_register_vcpu_mem_cb(insn, count_access, NO_REGISTERS, LOADS_AND_STORES,
			is_store_conditional(insn) ? bytes : NULL);
	}
}

static void print(plugin_id id, void *data)
{
	(void)id;
	(void)data;
	fprintf(stderr, "instructions %llu\n", (unsigned long long)instructions);
	for (int i = LOADED; i <= STORED; i++)
		fprintf(stderr, "%s %llu %llu\n", i == LOADED ? "loaded" : "stored",
			(unsigned long long)bytes[i][0], (unsigned long long)bytes[i][1]);
}

__attribute__((visibility("default"))) int qemu_plugin_install(
	plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, print, NULL);
	return 0;
}
