// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms say what one run of a block adds to which scope; a mode says how a block's count follows
// from counters. The rows of the table are their product, so all modes give the same totals.

#include "rows.h"
#include "counts.h"
#include "meaning.h"
#include "scopes.h"

#include "llvm/IR/Function.h"

using namespace llvm;

namespace mperf
{

namespace
{

void charge(Table &table, uint32_t scope, const Sum &sum, uint32_t key, int64_t factor)
{
	for (const auto &[counter, times] : sum)
		table.add_term(counter, scope, key, times * factor);
}

void add_terms(Function &function, Meaning &meaning, const Counts &counts, Table &table)
{
	for (BasicBlock &block : function) {
		const Sum &sum = counts.of(&block);
		for (const auto &[key, factor] : meaning.terms[&block])
			charge(table, key.first, sum, key.second, factor);
	}
}

// The success of an exchange needs no counter if control branches on it.
void add_exchanges(Function &function, Meaning &meaning, const Counts &counts, const Scopes &scopes,
	Table &table)
{
	for (BasicBlock &block : function) {
		meaning.quantities[&block].remove_if([&](const Quantity &quantity) {
			const auto known = counts.exchanges.find(quantity.value);
			if (quantity.unit != Unit::VALUE || known == counts.exchanges.end())
				return false;
			for (const auto &[owned, factor] : quantity.mix.terms)
				charge(table, scopes.of(&block, owned.first), known->second,
					owned.second, factor);
			return true;
		});
	}
}

// The cost of counting itself.
void add_updates(Function &function, Meaning &meaning, const Counts &counts, const Scopes &scopes,
	Table &table)
{
	const uint32_t updates = metric_key(MPERF_METRIC_UPDATES);
	for (const Update &update : counts.updates)
		charge(table, scopes.of(update.block()), counts.of(update), updates, 1);
	for (BasicBlock &block : function)
		charge(table, scopes.of(&block), counts.of(&block), updates,
			meaning.quantities[&block].size());
}

} // namespace

void add_rows(Function &function, Meaning &meaning, const Counts &counts, const Scopes &scopes,
	Table &table)
{
	add_terms(function, meaning, counts, table);
	add_exchanges(function, meaning, counts, scopes, table);
	add_updates(function, meaning, counts, scopes, table);
}

} // namespace mperf
