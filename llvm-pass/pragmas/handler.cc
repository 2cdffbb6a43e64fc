// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions marked by pragmas, which other compilers ignore:
//
//      #pragma mperf begin NAME        …        #pragma mperf end NAME
//      #pragma begin_inst [NAME]       …        #pragma end_inst [NAME]        as Examem has them (figure 3)
//
// For each the compiler reads a statement instead, the marker that the pass knows without a header
// (markers.cc), which keeps loads and stores on their side, as the call does that it becomes:
//
//      __asm__("# mperf begin NAME");
//
// NAME is a word or a string; without one, Examem's regions are called inst, and differ by their
// lines. The words of the statement are spelled in memory of the compiler's, so that -E prints them.

#include "marker.h"

#include "clang/Basic/DiagnosticLex.h"
#include "clang/Lex/LiteralSupport.h"
#include "clang/Lex/Pragma.h"
#include "clang/Lex/Preprocessor.h"

using namespace clang;

namespace mperf
{

namespace
{

// Limit as in runtime/mperf.h, with the NUL: the runtime cuts off longer names.
constexpr size_t NAME_BYTES_MAX = 255;
constexpr const char *NAMELESS = "inst";

struct Marker {
	bool begins;
	std::string name;
};

void complain(Preprocessor &preprocessor, SourceLocation location, StringRef says)
{
	DiagnosticsEngine &diagnostics = preprocessor.getDiagnostics();
	const unsigned id = diagnostics.getCustomDiagID(DiagnosticsEngine::Error, "%0");
	diagnostics.Report(location, id) << says;
}

// Can the name be in an assembler's comment, without characters that are special in a template of
// inline assembly?
bool is_plain(StringRef name)
{
	return !name.empty() && name.size() <= NAME_BYTES_MAX && name == name.trim() &&
	       name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.:+-/ ") == StringRef::npos;
}

// The name in a token; false: the token is not a name, and an error was reported.
bool read_name(Preprocessor &preprocessor, const Token &token, std::string &ret_name)
{
	if (token.is(tok::string_literal)) {
		StringLiteralParser literal({token}, preprocessor);
		if (literal.hadError)
			return false;
		ret_name = literal.GetString().str();
	} else if (token.getIdentifierInfo()) {
		ret_name = token.getIdentifierInfo()->getName().str();
	} else {
		complain(preprocessor, token.getLocation(),
			"a region's name is a word or a string: write '#pragma mperf begin solve'");
		return false;
	}
	if (is_plain(ret_name))
		return true;
	complain(preprocessor, token.getLocation(),
		"a region's name has 1 to 255 letters, digits, spaces and _ . : + - /");
	return false;
}

Token make_token(
	Preprocessor &preprocessor, SourceLocation location, tok::TokenKind kind, StringRef text)
{
	Token token;
	token.startToken();
	token.setKind(kind);
	preprocessor.CreateString(text, token, location, location);
	return token;
}

void put_marker(Preprocessor &preprocessor, SourceLocation location, const Marker &marker)
{
	const std::string text =
		std::string("\"# mperf ") + (marker.begins ? "begin " : "end ") + marker.name + '"';
	Token tokens[] = {make_token(preprocessor, location, tok::kw_asm, "__asm__"),
		make_token(preprocessor, location, tok::l_paren, "("),
		make_token(preprocessor, location, tok::string_literal, text),
		make_token(preprocessor, location, tok::r_paren, ")"),
		make_token(preprocessor, location, tok::semi, ";")};
	tokens[0].setIdentifierInfo(preprocessor.getIdentifierInfo("__asm__"));
	tokens[0].setFlag(Token::StartOfLine);
	auto owned = std::make_unique<Token[]>(std::size(tokens));
	std::copy(std::begin(tokens), std::end(tokens), owned.get());
	preprocessor.EnterTokenStream(std::move(owned), std::size(tokens), true, false);
	has_pragmas() = true;
}

void skip_line(Preprocessor &preprocessor)
{
	Token token;
	do
		preprocessor.LexUnexpandedToken(token);
	while (token.isNot(tok::eod));
}

// Read a name, which this token begins, and the rest of the line. False: an error was reported.
bool read_name_and_end(Preprocessor &preprocessor, Token token, std::string &ret_name)
{
	const bool is_name = read_name(preprocessor, token, ret_name);
	preprocessor.LexUnexpandedToken(token);
	const bool ends = token.is(tok::eod);
	if (!ends) {
		complain(preprocessor, token.getLocation(),
			"extra words after the region's name: put a name of several words into "
			"quotes");
		skip_line(preprocessor);
	}
	return is_name && ends;
}

// #pragma mperf begin NAME
struct Named : PragmaHandler {
	Named() : PragmaHandler("mperf")
	{
	}

	void HandlePragma(Preprocessor &preprocessor, PragmaIntroducer, Token &first) override
	{
		Token verb, name;
		preprocessor.LexUnexpandedToken(verb);
		const IdentifierInfo *word = verb.getIdentifierInfo();
		if (!word || !(word->isStr("begin") || word->isStr("end"))) {
			complain(preprocessor, first.getLocation(),
				"'#pragma mperf' takes 'begin' or 'end', and a region's name");
			if (verb.isNot(tok::eod))
				skip_line(preprocessor);
			return;
		}
		preprocessor.LexUnexpandedToken(name);
		Marker marker = {word->isStr("begin"), ""};
		if (name.is(tok::eod)) {
			complain(preprocessor, first.getLocation(),
				"'#pragma mperf begin' and 'end' take a region's name");
			return;
		}
		if (read_name_and_end(preprocessor, name, marker.name))
			put_marker(preprocessor, first.getLocation(), marker);
	}
};

// #pragma begin_inst, #pragma end_inst
struct Inst : PragmaHandler {
	Inst(StringRef word, bool begins) : PragmaHandler(word), begins(begins)
	{
	}

	void HandlePragma(Preprocessor &preprocessor, PragmaIntroducer, Token &first) override
	{
		Token name;
		preprocessor.LexUnexpandedToken(name);
		Marker marker = {begins, NAMELESS};
		if (name.is(tok::eod) || read_name_and_end(preprocessor, name, marker.name))
			put_marker(preprocessor, first.getLocation(), marker);
	}

	bool begins;
};

struct BeginInst : Inst {
	BeginInst() : Inst("begin_inst", true)
	{
	}
};

struct EndInst : Inst {
	EndInst() : Inst("end_inst", false)
	{
	}
};

PragmaHandlerRegistry::Add<Named> named("mperf", "mperf: begin and end of regions");
PragmaHandlerRegistry::Add<BeginInst> begin_inst("begin_inst", "mperf: begin of a region");
PragmaHandlerRegistry::Add<EndInst> end_inst("end_inst", "mperf: end of a region");

} // namespace

} // namespace mperf
