// Functions of the program that are called by functions which headers of the C++ library define, above all by
// templates: the constructor that make_unique() runs, the lambda expression passed to for_each(). The time of a call
// through a pointer or of a virtual call is unknown.
#include "Library.h"

#include "Cxx.h"
#include "Walk.h"

#include <functional>

namespace foreread::slicer {

using namespace clang;

namespace {

// The functions that a function calls by name, and those whose address it takes.
struct Names : Walk {
  Names() { ImplicitCode = true; }

  std::vector<const FunctionDecl *> Called, Taken;
  std::vector<QualType> Pointers; // types of the pointers that it calls through
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

class Texts : public Walk {
public:
  Texts(const SourceManager &Sources, std::function<void(const FunctionDecl *, Names &)> Found)
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

// A std::function calls its target through a pointer to a function that the library instantiates for each type of
// target.
void findHeld(Library &Of, const CXXMethodDecl *Method) {
  const auto *Class = dyn_cast<ClassTemplateSpecializationDecl>(Method->getParent());
  if (!Class || !Class->isInStdNamespace())
    return;
  QualType Holder = signatureOf(QualType(Class->getTypeForDecl(), 0));
  if (!Holder.isNull() && Method->getOverloadedOperator() == OO_Call)
    Of.Held[Holder.getAsString()].Calls.push_back(Method->getCanonicalDecl());
  else if (Class->getName() == "_Function_handler" && Method->getIdentifier() && Method->getName() == "_M_invoke")
    Of.Held[Class->getTemplateArgs()[0].getAsType().getCanonicalType().getAsString()].Invokes.push_back(
        Method->getCanonicalDecl());
}

void read(Program &P, Library &Of, const Unit &U) {
  Texts(U.sources(), [&](const FunctionDecl *F, Names &In) {
    llvm::append_range(Of.Escaping, In.Taken);
    for (QualType Each : In.Pointers)
      if (std::string Shape = shapeOf(Each, F->getASTContext()); !Shape.empty())
        Of.Pointers[Shape].push_back(F->getCanonicalDecl());
    if (!In.Taken.empty())
      Of.Taken[F->getCanonicalDecl()] = In.Taken;
    const auto *Method = dyn_cast<CXXMethodDecl>(F);
    if (Method)
      findHeld(Of, Method);
    if (Method && Method->isVirtual())
      Of.Escaping.push_back(F->getCanonicalDecl());
    P.LibraryCalls[F->getCanonicalDecl()] = std::move(In.Called);
  }).walk(U.context().getTranslationUnitDecl());
}

// The signatures of the std::functions that an object of this type may hold or lead to.
void leaves(QualType Type, llvm::DenseSet<const clang::Type *> &Seen, llvm::StringSet<> &Signatures) {
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

// A call of a std::function may be of any target that one of its signature holds, if all functions that may call one
// are known.
void followHeld(Program &P, Library &Of) {
  if (!P.AllKnown)
    return;
  llvm::StringSet<> Leaving;
  llvm::DenseSet<const clang::Type *> Seen;
  auto See = [&](const FunctionDecl *Callee, const auto *Call) {
    if (Callee && (P.function(Callee) || P.LibraryCalls.count(Callee->getCanonicalDecl())))
      return;
    for (const Expr *Argument : Call->arguments())
      leaves(Argument->getType(), Seen, Leaving);
  };
  for (auto &F : P.Functions) {
    for (const CallExpr *Call : F->Calls)
      See(directCallee(Call), Call);
    for (const Expr *Each : F->Makes)
      if (const auto *Made = dyn_cast<CXXConstructExpr>(Each))
        See(Made->getConstructor(), Made);
  }
  llvm::DenseSet<const FunctionDecl *> Followed;
  for (auto &Entry : Of.Held)
    if (!Leaving.contains(Entry.getKey())) {
      Followed.insert(Entry.second.Invokes.begin(), Entry.second.Invokes.end());
      for (const FunctionDecl *Call : Entry.second.Calls)
        llvm::append_range(P.LibraryCalls[Call], Entry.second.Invokes);
    }
  llvm::erase_if(Of.Escaping, [&](const FunctionDecl *Each) { return Followed.contains(Each); });
}

} // namespace

Library readLibrary(Program &P) {
  Library Of;
  for (auto &U : P.Units)
    if (U->AST && U->WholeBecause.empty() && U->cxx())
      read(P, Of, *U);
  return Of;
}

void followLibrary(Program &P, Library &Of) {
  followHeld(P, Of);
  for (const FunctionDecl *Escaping : Of.Escaping) {
    if (Function *F = P.function(Escaping))
      F->RunByLibrary = true;
    for (Function *F : P.runThrough(Escaping))
      F->RunByLibrary = true;
  }
  for (auto &F : P.Functions)
    for (const CallExpr *Call : F->Calls)
      if (!P.function(directCallee(Call)))
        for (Function *Target : P.runThrough(directCallee(Call)))
          Target->Through = true;
}

} // namespace foreread::slicer
