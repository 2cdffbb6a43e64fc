// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The table of a module: its counters, and the amounts that each adds to scopes
//
// Its bytes are described in runtime/abi.h (MPERF_TABLE_VERSION).

#include "runtime/abi.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mperf
{

struct Scope {
	uint32_t kind = 0;   // enum mperf_scope_kind
	uint32_t parent = 0; // number of the scope around it, plus 1; 0: none
	std::string function, source;
	uint32_t line = 0, line_last = 0, column = 0;
	std::string nest, inlined_at;
	uint32_t flags = 0; // enum mperf_scope_flag
};

// A metric and how to read its factor, as in the table.
constexpr uint32_t metric_key(uint32_t metric, uint32_t variant = 0)
{
	return metric << MPERF_VARIANT_BITS | variant;
}

class Table
{
      public:
	// Adds a scope; returns its number, which parents of later ones name (plus 1).
	uint32_t add_scope(const Scope &scope);
	Scope &scope(uint32_t number);

	// Adds a counter without terms; returns its index in the module's counters.
	uint32_t add_counter(uint32_t kind = MPERF_COUNTER_SUM);

	// Add a term: one more in `counter` adds `factor` to a metric of a scope. Equal keys are
	// summed.
	void add_term(uint32_t counter, uint32_t scope, uint32_t key, int64_t factor);

	// A function that other modules may call.
	void define(llvm::StringRef name);

	uint32_t n_counters() const;
	uint64_t n_terms() const;
	// The table as bytes. Callees without counters are left out.
	std::string encode() const;

      private:
	struct Counter {
		uint32_t kind;
		std::map<std::pair<uint32_t, uint32_t>, int64_t> terms; // by (scope, key)
	};

	std::vector<uint32_t> kept_scopes() const;
	std::string encode_body() const;
	uint32_t use_of(const Counter &counter) const;

	std::set<uint64_t> defined; // mperf_name_hash
	std::vector<Scope> scopes;
	std::vector<Counter> counters;
};

} // namespace mperf
