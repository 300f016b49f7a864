#include "Walk.h"

#include "clang/AST/RecursiveASTVisitor.h"

namespace foreread::slicer {

using namespace clang;

namespace {

struct Visitor : RecursiveASTVisitor<Visitor> {
  explicit Visitor(Walk &To) : To(To) {}

  Walk &To;

  bool shouldVisitImplicitCode() const { return To.ImplicitCode; }
  bool shouldVisitTemplateInstantiations() const { return To.Instantiations; }

  bool VisitStmt(Stmt *S) { return To.visitStmt(S); }
  bool VisitDecl(Decl *D) { return To.visitDecl(D); }
  bool VisitType(Type *T) { return To.visitType(T); }

  // Called before each statement. An override of TraverseStmt() would use up the stack on deep trees.
  bool dataTraverseStmtPre(Stmt *S) { return To.entersStmt(S); }
  bool TraverseDecl(Decl *D) { return !D || !To.entersDecl(D) || RecursiveASTVisitor::TraverseDecl(D); }
};

} // namespace

bool Walk::walk(const Stmt *S) { return Visitor(*this).TraverseStmt(const_cast<Stmt *>(S)); }

bool Walk::walk(const Decl *D) { return Visitor(*this).TraverseDecl(const_cast<Decl *>(D)); }

bool Walk::walk(QualType Type) { return Visitor(*this).TraverseType(Type); }

bool allOf(const Stmt *S, llvm::function_ref<bool(const Stmt *)> Holds) {
  struct All : Walk {
    explicit All(llvm::function_ref<bool(const Stmt *)> Holds) : Holds(Holds) {}
    llvm::function_ref<bool(const Stmt *)> Holds;
    bool visitStmt(const Stmt *Each) override { return Holds(Each); }
  };
  return All(Holds).walk(S);
}

bool allOf(QualType Type, llvm::function_ref<bool(const clang::Type *)> Holds) {
  struct All : Walk {
    explicit All(llvm::function_ref<bool(const clang::Type *)> Holds) : Holds(Holds) {}
    llvm::function_ref<bool(const clang::Type *)> Holds;
    bool visitType(const clang::Type *Each) override { return Holds(Each); }
  };
  return All(Holds).walk(Type);
}

} // namespace foreread::slicer
