// What the functions of the C++ library that have their text in its headers, templates above all, call of the program:
// the constructor that make_unique() runs, the lambda expression that for_each() is given.  Where the library calls by a
// pointer, or virtually, nobody knows when.
#include "Cxx.h"
#include "Walk.h"

#include <functional>

namespace foreread::slicer {

using namespace clang;

namespace {

// What one function calls by name, and whose address it takes.
struct Names : Walk {
  Names() { ImplicitCode = true; }

  std::vector<const FunctionDecl *> Called, Taken;
  std::vector<QualType> Pointers; // what is called through
  llvm::DenseSet<const Expr *> Callees;

  bool visitStmt(const Stmt *S) override {
    if (const auto *Call = dyn_cast<CallExpr>(S)) {
      Callees.insert(Call->getCallee()->IgnoreParenImpCasts());
      if (const FunctionDecl *Callee = Call->getDirectCallee())
        Called.push_back(Callee->getCanonicalDecl());
      else if (const auto *Through = dyn_cast<BinaryOperator>(Call->getCallee()->IgnoreParens());
               Through && Through->isPtrMemOp())
        Pointers.push_back(Through->getRHS()->getType());
      else
        Pointers.push_back(Call->getCallee()->getType());
    } else if (const auto *Made = dyn_cast<CXXConstructExpr>(S)) {
      Called.push_back(Made->getConstructor()->getCanonicalDecl());
    } else if (const auto *Ref = dyn_cast<DeclRefExpr>(S)) {
      const auto *Named = dyn_cast<FunctionDecl>(Ref->getDecl());
      if (Named && !Callees.contains(Ref))
        Taken.push_back(Named->getCanonicalDecl());
    }
    return true;
  }
};

class Library : public Walk {
public:
  Library(const SourceManager &Sources, std::function<void(const FunctionDecl *, Names &)> Found)
      : Sources(Sources), Found(std::move(Found)) {
    ImplicitCode = Instantiations = true;
  }

  bool entersDecl(const Decl *D) override {
    return isa<TranslationUnitDecl, NamespaceDecl, LinkageSpecDecl>(D) || Sources.isInSystemHeader(D->getLocation());
  }
  bool visitDecl(const Decl *D) override {
    const auto *F = dyn_cast<FunctionDecl>(D);
    if (!F || !F->isThisDeclarationADefinition() || F->isDependentContext() || !F->getBody())
      return true;
    Names In;
    if (const auto *Constructor = dyn_cast<CXXConstructorDecl>(F))
      for (const CXXCtorInitializer *Part : Constructor->inits())
        In.walk(Part->getInit());
    In.walk(F->getBody());
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
    for (QualType Each : In.Pointers)
      if (std::string Shape = shapeOf(Each, F->getASTContext()); !Shape.empty())
        LibraryPointers[Shape].push_back(F->getCanonicalDecl());
    if (!In.Taken.empty())
      LibraryTaken[F->getCanonicalDecl()] = In.Taken;
    const auto *Method = dyn_cast<CXXMethodDecl>(F);
    if (Method)
      findHeld(Method);
    if (Method && Method->isVirtual())
      LibraryEscaping.push_back(F->getCanonicalDecl());
    LibraryCalls[F->getCanonicalDecl()] = std::move(In.Called);
  }).walk(U.context().getTranslationUnitDecl());
}

// What a std::function holds it calls by a pointer to a function that the library makes for each kind of what is held.
void Program::findHeld(const CXXMethodDecl *Method) {
  const auto *Of = dyn_cast<ClassTemplateSpecializationDecl>(Method->getParent());
  if (!Of || !Of->isInStdNamespace())
    return;
  QualType Holder = signatureOf(QualType(Of->getTypeForDecl(), 0));
  if (!Holder.isNull() && Method->getOverloadedOperator() == OO_Call)
    HeldFunctions[Holder.getAsString()].Calls.push_back(Method->getCanonicalDecl());
  else if (Of->getName() == "_Function_handler" && Method->getIdentifier() && Method->getName() == "_M_invoke")
    HeldFunctions[Of->getTemplateArgs()[0].getAsType().getCanonicalType().getAsString()].Invokes.push_back(
        Method->getCanonicalDecl());
}

// The signatures of what an object of this type may hold or lead to.
void Program::leaves(QualType Type, llvm::DenseSet<const clang::Type *> &Seen, llvm::StringSet<> &Signatures) const {
  Type = Type.getCanonicalType().getNonReferenceType();
  while (Type->isPointerType())
    Type = Type->getPointeeType();
  Type = QualType(Type->getBaseElementTypeUnsafe(), 0);
  const auto *Record = Type->getAsCXXRecordDecl();
  if (!Record || !Record->hasDefinition() || !Seen.insert(Type.getTypePtr()).second)
    return;
  if (QualType Signature = signatureOf(Type); !Signature.isNull())
    Signatures.insert(Signature.getAsString());
  if (const auto *Made = dyn_cast<ClassTemplateSpecializationDecl>(Record))
    for (const TemplateArgument &Each : Made->getTemplateArgs().asArray())
      if (Each.getKind() == TemplateArgument::Type)
        leaves(Each.getAsType(), Seen, Signatures);
  for (const CXXBaseSpecifier &Base : Record->getDefinition()->bases())
    leaves(Base.getType(), Seen, Signatures);
  for (const FieldDecl *Part : Record->getDefinition()->fields())
    leaves(Part->getType(), Seen, Signatures);
}

// A call of a std::function may be of all that any of its signature holds, if all that call one are known.
void Program::followHeld() {
  if (!AllKnown)
    return;
  llvm::StringSet<> Leaving;
  llvm::DenseSet<const clang::Type *> Seen;
  auto See = [&](const FunctionDecl *Callee, const auto *Call) {
    if (Callee && (function(Callee) || LibraryCalls.count(Callee->getCanonicalDecl())))
      return;
    for (const Expr *Argument : Call->arguments())
      leaves(Argument->getType(), Seen, Leaving);
  };
  for (auto &F : Functions) {
    for (const CallExpr *Call : F->Calls)
      See(directCallee(Call), Call);
    for (const Expr *Each : F->Makes)
      if (const auto *Made = dyn_cast<CXXConstructExpr>(Each))
        See(Made->getConstructor(), Made);
  }
  llvm::DenseSet<const FunctionDecl *> Followed;
  for (auto &Entry : HeldFunctions)
    if (!Leaving.contains(Entry.getKey())) {
      Followed.insert(Entry.second.Invokes.begin(), Entry.second.Invokes.end());
      for (const FunctionDecl *Call : Entry.second.Calls)
        llvm::append_range(LibraryCalls[Call], Entry.second.Invokes);
    }
  llvm::erase_if(LibraryEscaping, [&](const FunctionDecl *Each) { return Followed.contains(Each); });
}

void Program::findThrough() {
  findGiven();
  followHeld();
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
  findEnding();
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
