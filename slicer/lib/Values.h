// What a value may have been written as, over functions: `open(path, flags)` in a function that is always called with
// O_RDONLY opens for reading.
#pragma once

#include <optional>
#include <set>

#include "Program.h"

namespace foreread::slicer {

// The variable that an expression names.
const clang::VarDecl *variableOf(const clang::Expr *E);
// Whether a variable is assigned to, or its address taken, in a statement.
bool changes(const clang::Stmt *S, const clang::VarDecl *Variable);

class Values {
public:
  explicit Values(Program &P);

  // The expressions that one in a function stands for: either side of a condition, what a variable is initialised with that is never
  // changed, what a parameter is given in all calls.  One of which no more is known stands for itself.
  struct Value {
    const Function *In;
    const clang::Expr *Written;
  };
  std::vector<Value> of(const Function &F, const clang::Expr *E);

  // The numbers that one is, bits put together by | among them; none if one of them is not known.
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
  // Whose parameters are being asked for, and numbers that are within one: of a recursion no more is known.
  llvm::DenseSet<const Function *> Busy;
  unsigned Depth = 0;
};

} // namespace foreread::slicer
