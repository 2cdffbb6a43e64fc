// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter costs its program eight bytes per thread; its meaning costs nothing at run time, and is
// stored once in the file. Numbers are LEB128, since nearly all are small; strings are stored once,
// since many loops share a source file. Terms that cancel out (a block counted as the difference of
// two counters which both touch it) are omitted. What is left is packed: of SQLite's 584 KB, 214 are
// left.

#include "table.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/raw_ostream.h"

namespace mperf
{

namespace
{

class Strings
{
      public:
	Strings()
	{
		number("");
	}

	uint32_t number(const std::string &text)
	{
		auto [entry, is_new] = numbers.try_emplace(text, texts.size());
		if (is_new)
			texts.push_back(text);
		return entry->second;
	}

	void encode(llvm::raw_ostream &out) const
	{
		llvm::encodeULEB128(texts.size(), out);
		for (const std::string &text : texts) {
			llvm::encodeULEB128(text.size(), out);
			out << text;
		}
	}

      private:
	std::map<std::string, uint32_t> numbers;
	std::vector<std::string> texts;
};

// kept: by scope, its number plus 1 among those that are encoded.
void encode_scope(const Scope &scope, const std::vector<uint32_t> &kept, Strings &strings,
	llvm::raw_ostream &out)
{
	const uint32_t parent = scope.parent != 0 ? kept[scope.parent - 1] : 0;
	const uint32_t numbers[] = {scope.kind, parent, strings.number(scope.function),
		strings.number(scope.source), scope.line, scope.line_last, scope.column,
		strings.number(scope.nest), strings.number(scope.inlined_at), scope.flags};
	for (uint32_t number : numbers)
		llvm::encodeULEB128(number, out);
}

} // namespace

uint32_t Table::add_scope(const Scope &scope)
{
	scopes.push_back(scope);
	return scopes.size() - 1;
}

Scope &Table::scope(uint32_t number)
{
	return scopes[number];
}

uint32_t Table::add_counter(uint32_t kind)
{
	counters.push_back({kind, {}});
	return counters.size() - 1;
}

void Table::add_term(uint32_t counter, uint32_t scope, uint32_t key, int64_t factor)
{
	counters[counter].terms[{scope, key}] += factor;
}

uint32_t Table::n_counters() const
{
	return counters.size();
}

uint64_t Table::n_terms() const
{
	uint64_t n = 0;
	for (const Counter &counter : counters)
		n += counter.terms.size();
	return n;
}

void Table::define(llvm::StringRef name)
{
	defined.insert(mperf_name_hash(name.data(), name.size()));
}

// By scope, its number plus 1 among those that are encoded; 0: it is not.
std::vector<uint32_t> Table::kept_scopes() const
{
	std::vector<uint32_t> kept(scopes.size());
	for (const Counter &counter : counters)
		for (const auto &[owned, factor] : counter.terms)
			kept[owned.first] |= factor != 0;
	uint32_t n = 0;
	for (uint32_t i = 0; i < scopes.size(); i++)
		kept[i] = kept[i] != 0 || scopes[i].kind != MPERF_SCOPE_CALLEE ? ++n : 0;
	return kept;
}

// Use of a counter. The last of a timed loop's words has its time.
uint32_t Table::use_of(const Counter &counter) const
{
	if (counter.kind != MPERF_COUNTER_SUM)
		return MPERF_USE_NONE;
	const bool is_time = !counter.terms.empty() && counter.terms.rbegin()->first.second ==
							       metric_key(MPERF_METRIC_TIME_NS);
	return is_time ? MPERF_USE_TIME : MPERF_USE_SUM;
}

std::string Table::encode_body() const
{
	Strings strings;
	std::string scope_bytes, bytes;
	llvm::raw_string_ostream scope_out(scope_bytes), out(bytes);
	const std::vector<uint32_t> kept = kept_scopes();
	uint32_t n_scopes = 0;
	for (uint32_t i = 0; i < scopes.size(); i++) {
		if (kept[i] == 0)
			continue;
		encode_scope(scopes[i], kept, strings, scope_out);
		n_scopes++;
	}
	strings.encode(out);
	llvm::encodeULEB128(defined.size(), out);
	for (uint64_t hash : defined) {
		char word[sizeof(hash)];
		llvm::support::endian::write64le(word, hash);
		out.write(word, sizeof(word));
	}
	llvm::encodeULEB128(n_scopes, out);
	out << scope_out.str();
	llvm::encodeULEB128(counters.size(), out);
	for (const Counter &counter : counters) {
		uint32_t n_terms = 0;
		for (const auto &term : counter.terms)
			n_terms += term.second != 0;
		llvm::encodeULEB128(n_terms, out);
		for (const auto &[owned, factor] : counter.terms) {
			if (factor == 0)
				continue;
			llvm::encodeULEB128(kept[owned.first] - 1, out);
			llvm::encodeULEB128(owned.second, out);
			llvm::encodeSLEB128(factor, out);
		}
	}
	return out.str();
}

std::string Table::encode() const
{
	std::vector<std::pair<uint32_t, uint32_t>> runs; // use, counters
	for (const Counter &counter : counters) {
		const uint32_t use = use_of(counter);
		if (runs.empty() || runs.back().first != use)
			runs.push_back({use, 0});
		runs.back().second++;
	}
	std::string bytes;
	llvm::raw_string_ostream out(bytes);
	llvm::encodeULEB128(MPERF_TABLE_VERSION, out);
	llvm::encodeULEB128(runs.size(), out);
	for (const auto &[use, n] : runs) {
		llvm::encodeULEB128(use, out);
		llvm::encodeULEB128(n, out);
	}

	const std::string body = encode_body();
	llvm::SmallVector<uint8_t, 0> packed;
	if (llvm::compression::zlib::isAvailable())
		llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(body), packed);
	const bool pays = !packed.empty() && packed.size() < body.size() &&
			  body.size() / MPERF_PACKING_RATIO_MAX < packed.size();
	llvm::encodeULEB128(pays ? MPERF_PACKING_ZLIB : MPERF_PACKING_NONE, out);
	llvm::encodeULEB128(body.size(), out);
	out << (pays ? llvm::toStringRef(packed) : llvm::StringRef(body));
	return out.str();
}

} // namespace mperf
