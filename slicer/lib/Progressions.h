// Loops over an index in even steps, and what depends on the index evenly.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// The body of a for, while or do; null for any other statement.
const clang::Stmt *bodyOf(const clang::Stmt *Loop);

// for (Index = First; Index < Bound; Index += Step), or with another comparison.
struct Progression {
  const clang::VarDecl *Index = nullptr;
  const clang::Expr *First = nullptr, *Bound = nullptr;
  clang::BinaryOperatorKind Compare = clang::BO_LT;
  int64_t Step = 0;

  // How often the loop turns, if that is a constant.
  std::optional<uint64_t> turns(const clang::ASTContext &Context) const;
};

// How something changes from turn to turn.
enum class Change { None, Even, Any };

// One loop.  What it says is used for hints only: memory that a call in the loop or a pointer of
// another type may change is taken not to.
class Turns {
public:
  explicit Turns(const clang::Stmt *Loop);

  // Set if the loop is one over an index, and is only left by its condition.
  std::optional<Progression> Over;
  Change ofPlace(const clang::Expr *Lvalue) const;

private:
  void assigned(const clang::Stmt *S);
  void changes(const clang::Expr *Lvalue);
  std::optional<Progression> progression(const clang::ForStmt *For) const;
  Change ofValue(const clang::Expr *E) const;

  llvm::DenseSet<const clang::ValueDecl *> Assigned; // variables and fields
  llvm::DenseSet<const clang::Type *> AssignedTypes; // through pointers
};

} // namespace foreread::slicer
