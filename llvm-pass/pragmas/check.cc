// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Do the pragmas of a file make pairs? Begin and end of a region stand in one block, so that each way
// through it has both; a block that leaves (return, break, goto, throw, exit) may end regions around
// it, too. A pragma is a statement of its own, which must not become the only one of an if or a loop.
//
// We look when the whole file has been read: only then is it known what is a function.

#include "marker.h"

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

using namespace clang;

namespace mperf
{

namespace
{

struct Open {
	std::string name;
	SourceLocation location;
};

// The words of a marker; false: it is other assembly.
bool read_marker(StringRef text, bool &ret_begins, std::string &ret_name)
{
	const bool begins = text.consume_front("# mperf begin ");
	if (!begins && !text.consume_front("# mperf end "))
		return false;
	ret_begins = begins;
	ret_name = text.str();
	return true;
}

class Checker
{
      public:
	explicit Checker(DiagnosticsEngine &diagnostics) : diagnostics(diagnostics)
	{
		error = diagnostics.getCustomDiagID(DiagnosticsEngine::Error, "%0");
	}

	void check_body(const Stmt *body)
	{
		std::vector<Open> open;
		check(body, open, true);
	}

	// Assembly outside functions.
	void check_outside(const FileScopeAsmDecl *assembly)
	{
		bool begins;
		std::string name;
		if (read_marker(assembly->getAsmString()->getString(), begins, name))
			complain(assembly->getAsmLoc(),
				"a region is a part of a function: put this pragma between two "
				"statements");
	}

      private:
	void complain(SourceLocation location, const std::string &says)
	{
		diagnostics.Report(location, error) << says;
	}

	static bool leaves(const Stmt *statement)
	{
		if (const auto *with = dyn_cast<ExprWithCleanups>(statement))
			statement = with->getSubExpr();
		if (const auto *call = dyn_cast<CallExpr>(statement)) {
			const FunctionDecl *callee = call->getDirectCallee();
			return callee && callee->isNoReturn();
		}
		return isa<ReturnStmt, GotoStmt, IndirectGotoStmt, BreakStmt, ContinueStmt,
			CXXThrowExpr, CoreturnStmt>(statement);
	}

	void take(SourceLocation location, bool begins, const std::string &name,
		std::vector<Open> &open)
	{
		if (begins) {
			open.push_back({name, location});
			return;
		}
		if (open.empty()) {
			complain(location, "no region '" + name +
						   "' is open here: add '#pragma mperf begin " +
						   name + "' before it in this block");
			return;
		}
		const std::string inner = open.back().name;
		open.pop_back();
		if (inner != name)
			complain(location, "region '" + name + "' ends here, but '" + inner +
						   "' is still open inside it: end that first");
	}

	// Did a pragma become this marker? Markers written by hand are volatile.
	static bool is_marker(const Stmt *statement, bool &ret_begins, std::string &ret_name)
	{
		const auto *assembly = dyn_cast<GCCAsmStmt>(statement);
		return assembly && assembly->isSimple() && !assembly->isVolatile() &&
		       read_marker(assembly->getAsmString()->getString(), ret_begins, ret_name);
	}

	// A block starts with the regions that are open around it, and must leave the same regions
	// open.
	void check_block(const CompoundStmt *block, const std::vector<Open> &around)
	{
		std::vector<Open> open = around;
		size_t kept = around.size();
		SourceLocation ended;
		for (const Stmt *statement : block->body()) {
			check(statement, open, true);
			if (open.size() < kept) {
				kept = open.size();
				ended = statement->getBeginLoc();
			}
		}
		for (size_t i = open.size(); i > kept; i--)
			complain(open[i - 1].location, "region '" + open[i - 1].name +
							       "' begins here and does not end in "
							       "this block: add '#pragma mperf "
							       "end " +
							       open[i - 1].name + "'");
		if (kept < around.size() && !(block->body_back() && leaves(block->body_back())))
			complain(ended, "region '" + around[kept].name +
						"' began outside this block, and code after the "
						"block still runs: end it in the block where it "
						"begins, or leave the function here");
	}

	void check(const Stmt *statement, std::vector<Open> &open, bool is_in_block)
	{
		if (!statement)
			return;
		bool begins;
		std::string name;
		if (is_marker(statement, begins, name)) {
			const SourceLocation location = statement->getBeginLoc();
			if (is_in_block)
				take(location, begins, name, open);
			else
				complain(location,
					"this pragma alone would be the body of the statement "
					"before it: put it into { } with the next statement");
			return;
		}
		if (isa<LambdaExpr>(statement)) // a function of its own
			return;
		if (const auto *block = dyn_cast<CompoundStmt>(statement)) {
			check_block(block, open);
			return;
		}
		// A statement behind a label is in the block that the label is in.
		const bool labels = isa<LabelStmt, SwitchCase, AttributedStmt>(statement);
		for (const Stmt *inner : statement->children())
			check(inner, open, labels && is_in_block);
	}

	DiagnosticsEngine &diagnostics;
	unsigned error;
};

struct Visitor : RecursiveASTVisitor<Visitor> {
	explicit Visitor(Checker &checker) : checker(checker)
	{
	}

	bool VisitFunctionDecl(FunctionDecl *function)
	{
		if (function->doesThisDeclarationHaveABody())
			checker.check_body(function->getBody());
		return true;
	}

	// Visit a lambda's body here; its declaration is not visited.
	bool VisitLambdaExpr(LambdaExpr *lambda)
	{
		checker.check_body(lambda->getBody());
		return true;
	}

	bool VisitFileScopeAsmDecl(FileScopeAsmDecl *assembly)
	{
		checker.check_outside(assembly);
		return true;
	}

	Checker &checker;
};

struct Consumer : ASTConsumer {
	explicit Consumer(DiagnosticsEngine &diagnostics) : diagnostics(diagnostics)
	{
	}

	void HandleTranslationUnit(ASTContext &context) override
	{
		// After other errors, statements may be missing.
		if (!has_pragmas() || diagnostics.hasErrorOccurred())
			return;
		Checker checker(diagnostics);
		Visitor(checker).TraverseDecl(context.getTranslationUnitDecl());
	}

	DiagnosticsEngine &diagnostics;
};

struct Action : PluginASTAction {
	std::unique_ptr<ASTConsumer> CreateASTConsumer(
		CompilerInstance &compiler, StringRef) override
	{
		has_pragmas() = false;
		return std::make_unique<Consumer>(compiler.getDiagnostics());
	}

	bool ParseArgs(const CompilerInstance &, const std::vector<std::string> &) override
	{
		return true;
	}

	ActionType getActionType() override
	{
		return AddBeforeMainAction;
	}
};

FrontendPluginRegistry::Add<Action> action("mperf-pragmas", "checks mperf's pragmas");

} // namespace

} // namespace mperf
