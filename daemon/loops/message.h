/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Messages of a program, with their form checked
 *
 * A message is one packet (or one piece of a file named by MPERF_OUTPUT): a fixed struct of
 * runtime/abi.inc, followed by as many bytes as its lengths give. program.h checks the meaning;
 * here we only check that no length exceeds the packet.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

struct feed_message {
	uint16_t type; /* enum mperf_message, those of programs */
	union {
		struct mperf_feed_hello hello;
		struct mperf_feed_object object;
		struct mperf_feed_table table;
		struct mperf_feed_region region;
		struct mperf_feed_thread thread;
		struct mperf_feed_deltas deltas;
		struct mperf_feed_spent spent;
		struct mperf_feed_place place;
		struct mperf_feed_tally tally;
		struct mperf_feed_gone gone;
		struct mperf_feed_round round;
	};
	/* Bytes that follow the struct; borrowed from the packet, unaligned. OBJECT: the build id.
	 * TABLE: the piece. REGION: the name with its NUL, then the source with its. DELTAS: n
	 * struct mperf_delta. PLACE: the build id, then the path with its NUL. */
	const uint8_t *rest;
	size_t n_rest;
};

/* 0; FEED_LENGTH, FEED_MESSAGE (a type that we do not know), see cause.h. */
int feed_message_parse(const uint8_t *bytes, size_t n, struct feed_message *ret_message);

/* Do these first bytes of a file belong to a file written for MPERF_OUTPUT? FEED_HELLO_BYTES
 * suffice. */
#define FEED_HELLO_BYTES sizeof(struct mperf_feed_hello)
bool feed_message_begins_file(const uint8_t *bytes, size_t n);

/* The i-th of a message of DELTAS. */
struct mperf_delta feed_message_delta(const struct feed_message *m, uint32_t i);
