// Branches that a program takes when something has gone wrong.
//
// A branch that reports an error, or leaves the function or the program with one, is assumed not to be
// taken where taking it would have to be decided by data that is otherwise not needed: the prefetch
// thread would have to read everything to learn that nothing is wrong with it.  The assumption costs
// prefetches, in a run that fails.  Related::statement() keeps such a branch all the same where something
// that it assigns is needed.
#pragma once

#include "Program.h"

namespace foreread::slicer {

class Failures {
public:
  explicit Failures(const Program &P);

  // Whether the statement is an if of this function whose branch is a failure, and which has no other
  // branch.
  bool isFailure(const clang::IfStmt *If, const Function &In) const;
  // Whether a statement, or a part of it, reports an error.
  bool reports(const clang::Stmt *S) const;
  // Whether a call reports an error or ends a program that has failed.
  bool isReport(const clang::CallExpr *Call) const { return toStandardError(Call) || endsProgram(Call); }

private:
  // How control goes on after a branch.
  enum class End {
    Below, // after the if
    Jump,  // within the function: break, continue
    Out,   // out of the function, or to a label
    Error, // the same, in a way that by itself says that something is wrong
  };
  End end(const clang::Stmt *S) const;
  bool endsProgram(const clang::CallExpr *Call, unsigned Depth = 0) const;
  bool toStandardError(const clang::CallExpr *Call) const;
  bool testsStatus(const clang::Expr *Condition, const Function &In) const;
  bool isStatus(const clang::Expr *E, const Function &In, unsigned Depth = 0) const;
  bool isStatus(const clang::CallExpr *Call, unsigned Depth) const;

  const Program &P;
  llvm::DenseSet<const Function *> Reporters;
};

} // namespace foreread::slicer
