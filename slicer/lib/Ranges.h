// Possible values of integers, from constants and loops with constant bounds.
#pragma once

#include "Program.h"

namespace foreread::slicer {

struct Range {
  int64_t First, Last;
};

class Ranges {
public:
  explicit Ranges(const Function &F);

  // The range of an expression at its place in the function; none if it may have any value.
  std::optional<Range> of(const clang::Expr *E) const;

private:
  void pointedTo(const clang::Stmt *S);
  std::optional<Range> index(const clang::DeclRefExpr *Ref) const;

  const Function &F;
  llvm::DenseSet<const clang::ValueDecl *> AddressTaken;
};

} // namespace foreread::slicer
