// Branches that handle errors.
//
// A branch that reports an error, or leaves the function or the program with one, is assumed not to be taken if
// deciding it needs data that is otherwise unneeded. Without this assumption the prefetch thread would have to read all
// data in order to find out that none of it is wrong. In a run that fails, the assumption costs prefetches.
// Related::statement() keeps such a branch if a value that it assigns is needed.
#pragma once

#include "Program.h"

namespace foreread::slicer {

class Failures {
public:
  explicit Failures(const Program &P);

  // True if the if statement of this function has no else and its branch is a failure.
  bool isFailure(const clang::IfStmt *If, const Function &In) const;
  // True if a statement or a part of it reports an error.
  bool reports(const clang::Stmt *S) const;
  // True if a call reports an error or ends a program that has failed.
  bool isReport(const clang::CallExpr *Call) const { return toStandardError(Call) || endsProgram(Call); }

private:
  // Where control continues after a branch.
  enum class End {
    Below, // after the if
    Jump,  // inside the function: break, continue
    Out,   // return or goto
    Error, // leaves in a way that marks an error by itself
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
