// What the functions of the C++ library that have their text in its headers, templates above all, call of the program:
// the constructor that make_unique() runs, the lambda expression that for_each() is given.  Where the library calls by a
// pointer, or virtually, nobody knows when.
#include "Program.h"

#include <functional>

namespace foreread::slicer {

using namespace clang;

namespace {

// What one function calls by name, and whose address it takes.
struct Names : RecursiveASTVisitor<Names> {
  std::vector<const FunctionDecl *> Called, Taken;
  llvm::DenseSet<const Expr *> Callees;

  bool shouldVisitImplicitCode() const { return true; }
  bool VisitCallExpr(CallExpr *Call) {
    Callees.insert(Call->getCallee()->IgnoreParenImpCasts());
    if (const FunctionDecl *Callee = Call->getDirectCallee())
      Called.push_back(Callee->getCanonicalDecl());
    return true;
  }
  bool VisitCXXConstructExpr(CXXConstructExpr *Made) {
    Called.push_back(Made->getConstructor()->getCanonicalDecl());
    return true;
  }
  bool VisitDeclRefExpr(DeclRefExpr *Ref) {
    const auto *Named = dyn_cast<FunctionDecl>(Ref->getDecl());
    if (Named && !Callees.contains(Ref))
      Taken.push_back(Named->getCanonicalDecl());
    return true;
  }
};

class Library : public RecursiveASTVisitor<Library> {
public:
  Library(const SourceManager &Sources, std::function<void(const FunctionDecl *, Names &)> Found)
      : Sources(Sources), Found(std::move(Found)) {}

  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }
  bool TraverseDecl(Decl *D) {
    bool Within = !D || isa<TranslationUnitDecl, NamespaceDecl, LinkageSpecDecl>(D) ||
                  Sources.isInSystemHeader(D->getLocation());
    return !Within || RecursiveASTVisitor::TraverseDecl(D);
  }
  bool VisitFunctionDecl(FunctionDecl *F) {
    if (!F->isThisDeclarationADefinition() || F->isDependentContext() || !F->getBody())
      return true;
    Names In;
    if (const auto *Constructor = dyn_cast<CXXConstructorDecl>(F))
      for (const CXXCtorInitializer *Part : Constructor->inits())
        In.TraverseStmt(Part->getInit());
    In.TraverseStmt(F->getBody());
    Found(F, In);
    return true;
  }

private:
  const SourceManager &Sources;
  std::function<void(const FunctionDecl *, Names &)> Found;
};

} // namespace

void Program::readLibrary(const Unit &U) {
  Library(U.sources(), [&](const FunctionDecl *F, Names &In) {
    llvm::append_range(LibraryEscaping, In.Taken);
    const auto *Method = dyn_cast<CXXMethodDecl>(F);
    if (Method && Method->isVirtual())
      LibraryEscaping.push_back(F->getCanonicalDecl());
    LibraryCalls[F->getCanonicalDecl()] = std::move(In.Called);
  }).TraverseDecl(U.context().getTranslationUnitDecl());
}

void Program::findThrough() {
  for (const FunctionDecl *Escaping : LibraryEscaping) {
    if (Function *F = function(Escaping))
      F->RunByLibrary = true;
    for (Function *F : runThrough(Escaping))
      F->RunByLibrary = true;
  }
  for (auto &F : Functions)
    for (const CallExpr *Call : F->Calls)
      if (!function(directCallee(Call)))
        for (Function *Target : runThrough(directCallee(Call)))
          Target->Through = true;
}

const std::vector<Function *> &Program::runThrough(const FunctionDecl *Library) {
  static const std::vector<Function *> None;
  if (!Library || !LibraryCalls.count(Library->getCanonicalDecl()))
    return None;
  auto [Known, Fresh] = ThroughKnown.try_emplace(Library->getCanonicalDecl());
  if (!Fresh)
    return Known->second;
  std::vector<Function *> Result;
  llvm::DenseSet<const FunctionDecl *> Seen;
  std::vector<const FunctionDecl *> Work{Library->getCanonicalDecl()};
  while (!Work.empty()) {
    const FunctionDecl *At = Work.back();
    Work.pop_back();
    if (!Seen.insert(At).second)
      continue;
    Function *F = function(At);
    if (F && !llvm::is_contained(Result, F))
      Result.push_back(F);
    auto Calls = LibraryCalls.find(At);
    if (!F && Calls != LibraryCalls.end())
      llvm::append_range(Work, Calls->second);
  }
  return ThroughKnown[Library->getCanonicalDecl()] = Result;
}

} // namespace foreread::slicer
