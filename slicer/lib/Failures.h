// Branches that a program takes when something has gone wrong.
//
// A branch that reports an error and leaves is assumed not to be taken where taking it would have
// to be decided by data that is otherwise not needed: the prefetch thread would have to read
// everything to learn that nothing is wrong with it.  The assumption costs prefetches, in a run
// that fails.
#pragma once

#include "Program.h"

namespace foreread::slicer {

class Failures {
public:
  explicit Failures(const Program &P);

  // Whether the statement is an if whose branch is a failure, and which has no other branch.
  bool isFailure(const clang::IfStmt *If) const;

private:
  bool reports(const clang::Stmt *S) const;
  bool leaves(const clang::Stmt *S, bool &Negative) const;
  bool endsProgram(const clang::CallExpr *Call, unsigned Depth = 0) const;
  bool toStandardError(const clang::CallExpr *Call) const;

  const Program &P;
  llvm::DenseSet<const Function *> Reporters;
};

} // namespace foreread::slicer
