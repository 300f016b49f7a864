// Walks through a unit's tree, by Clang's visitor.  The visitor is a template of thousands of functions, and each
// instantiation takes seconds to compile: here is the only one.
#pragma once

#include "Clang.h"

namespace foreread::slicer {

// Visits each node below a given one, in the order of the text.
class Walk {
public:
  virtual ~Walk() = default;

  // False as soon as a visit returns false: nothing more is visited then.
  bool walk(const clang::Stmt *S);
  bool walk(const clang::Decl *D);
  bool walk(clang::QualType Type);

  virtual bool visitStmt(const clang::Stmt *) { return true; }
  virtual bool visitDecl(const clang::Decl *) { return true; }
  virtual bool visitType(const clang::Type *) { return true; }

  // Whether a node is visited, and everything below it.
  virtual bool entersStmt(const clang::Stmt *) { return true; }
  virtual bool entersDecl(const clang::Decl *) { return true; }

  // Code that the compiler adds, and instantiations of templates, are visited as well.
  bool ImplicitCode = false, Instantiations = false;
};

// Whether something holds for each statement and expression below one, itself included.
bool allOf(const clang::Stmt *S, llvm::function_ref<bool(const clang::Stmt *)> Holds);

// Whether something holds for each type that a type is made of, itself included.
bool allOf(clang::QualType Type, llvm::function_ref<bool(const clang::Type *)> Holds);

} // namespace foreread::slicer
