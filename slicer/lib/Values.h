// The expressions that a value may come from, across functions: `open(path, flags)` in a function that is always called
// with O_RDONLY opens for reading.
#pragma once

#include <optional>
#include <set>

#include "Program.h"

namespace foreread::slicer {

// The variable that an expression names.
const clang::VarDecl *variableOf(const clang::Expr *E);
// True if a statement assigns to a variable or takes its address.
bool changes(const clang::Stmt *S, const clang::VarDecl *Variable);

class Values {
public:
  explicit Values(Program &P);

  // The expressions that an expression may have its value from: either branch of a conditional expression, the
  // initialiser of a variable that never changes, the arguments of all calls for a parameter. If no more is known, the
  // expression itself.
  struct Value {
    const Function *In;
    const clang::Expr *Written;
  };
  std::vector<Value> of(const Function &F, const clang::Expr *E);

  // The possible values of an integer expression, combinations by | included; none if one of them is unknown.
  std::optional<std::set<int64_t>> numbers(const Function &F, const clang::Expr *E);

private:
  void add(const Function &F, const clang::Expr *E, std::vector<Value> &Into);
  bool allCallsKnown(const Function &F) const;

  Program &P;
  struct Site {
    const Function *Caller;
    const clang::CallExpr *Call;
  };
  llvm::DenseMap<const Function *, std::vector<Site>> Sites;
  // Functions whose parameters, and levels of numbers, are being looked up: recursion ends there.
  llvm::DenseSet<const Function *> Busy;
  unsigned Depth = 0;
};

} // namespace foreread::slicer
