// Walks a unit's tree with Clang's visitor. The visitor is a template of thousands of functions, and each instantiation
// takes seconds to compile: this is the only one.
#pragma once

#include "Clang.h"

namespace foreread::slicer {

// Visits each node below a given one, in the order of the text.
class Walk {
public:
  virtual ~Walk() = default;

  // False if a visit returned false, which ends the walk.
  bool walk(const clang::Stmt *S);
  bool walk(const clang::Decl *D);
  bool walk(clang::QualType Type);

  virtual bool visitStmt(const clang::Stmt *) { return true; }
  virtual bool visitDecl(const clang::Decl *) { return true; }
  virtual bool visitType(const clang::Type *) { return true; }

  // False skips a node and everything below it.
  virtual bool entersStmt(const clang::Stmt *) { return true; }
  virtual bool entersDecl(const clang::Decl *) { return true; }

  // True to visit code that the compiler adds, and instantiations of templates.
  bool ImplicitCode = false, Instantiations = false;
};

// True if the predicate holds for a statement and all statements and expressions below it.
bool allOf(const clang::Stmt *S, llvm::function_ref<bool(const clang::Stmt *)> Holds);

// True if the predicate holds for a type and all types that it is made of.
bool allOf(clang::QualType Type, llvm::function_ref<bool(const clang::Type *)> Holds);

} // namespace foreread::slicer
