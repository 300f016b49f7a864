// Loops over an index with a constant step, and expressions that are linear in the index.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// The body of a for, while or do loop; null for any other statement.
const clang::Stmt *bodyOf(const clang::Stmt *Loop);

// for (Index = First; Index < Bound; Index += Step), or with another comparison.
struct Progression {
  const clang::VarDecl *Index = nullptr;
  const clang::Expr *First = nullptr, *Bound = nullptr;
  clang::BinaryOperatorKind Compare = clang::BO_LT;
  int64_t Step = 0;

  // Number of iterations, if it is a constant.
  std::optional<uint64_t> turns(const clang::ASTContext &Context) const;
};

// Change of a value from iteration to iteration.
enum class Change { None, Even, Any };

// One loop. The results serve hints only: memory that a call in the loop, or a store through a pointer of another type,
// may change is assumed not to change.
class Turns {
public:
  explicit Turns(const clang::Stmt *Loop);

  // Set if the loop runs over an index and is left only by its condition.
  std::optional<Progression> Over;
  Change ofPlace(const clang::Expr *Lvalue) const;

private:
  void assigned(const clang::Stmt *S);
  void changes(const clang::Expr *Lvalue);
  std::optional<Progression> progression(const clang::ForStmt *For) const;
  Change ofValue(const clang::Expr *E) const;

  llvm::DenseSet<const clang::ValueDecl *> Assigned; // variables and fields
  llvm::DenseSet<const clang::Type *> AssignedTypes; // assigned through pointers
};

} // namespace foreread::slicer
