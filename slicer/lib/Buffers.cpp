#include "Buffers.h"

#include "Cxx.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// Where a read stores its data, or null if the read cannot be announced instead of being made.
const Expr *target(const CallExpr *Read, const CallSpec &Spec) {
  llvm::StringRef Name = plainName(Spec.Name);
  bool Plain = Spec.Kind == CallKind::Read && (Name == "read" || Name == "pread" || Name == "fread");
  for (unsigned I = 0; Plain && I < Read->getNumArgs(); ++I)
    if (Spec.parameter(I) == 'd')
      return Read->getArg(I);
  return nullptr;
}

const VarDecl *named(const Expr *E) {
  const auto *Ref = dyn_cast<DeclRefExpr>(E->IgnoreParenCasts());
  return Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
}

} // namespace

// Starts with all candidates and removes those with another use, to the fixpoint.
Buffers::Buffers(Program &P, PointsTo &Pointers, const Related &Slice) : P(P), Pointers(Pointers), Slice(Slice) {
  auto Each = [&](auto Do) {
    for (auto &F : P.Functions)
      for (unsigned I = 0; Slice.translated(*F) && I < F->Decl->getNumParams(); ++I)
        Do(*F, I, F->Decl->getParamDecl(I));
  };
  Each([&](const Function &F, unsigned, const ParmVarDecl *Parameter) {
    bool Plain = !F.Decl->isVariadic() && !F.LooseCalls && !F.lambda() && F.Name != "main";
    if (Plain && Parameter->getType()->isPointerType())
      Known.insert(Parameter);
  });
  bool Changed = true;
  while (Changed) {
    Changed = false;
    Each([&](const Function &F, unsigned I, const ParmVarDecl *Parameter) {
      if (Known.contains(Parameter) && !onlyRead(F, I))
        Changed = Known.erase(Parameter);
    });
  }
}

// True if the slice of a function passes this parameter to reads and to buffers of other functions, and uses it for
// nothing else.
bool Buffers::onlyRead(const Function &F, unsigned Number) {
  const VarDecl *Parameter = F.Decl->getParamDecl(Number);
  llvm::DenseSet<const Expr *> Handed;
  for (const CallExpr *Call : F.Calls) {
    const CallSpec *Spec = P.spec(Call);
    if (const Expr *To = Spec ? target(Call, *Spec) : nullptr; To && Slice.treatment(Call) == Treatment::Fetch)
      Handed.insert(To->IgnoreParenCasts());
    const Function *Target = P.function(directCallee(Call));
    if (!Target || virtualCallee(Call))
      continue;
    unsigned First = firstArgument(Call), End = std::min(Call->getNumArgs(), First + Target->Decl->getNumParams());
    for (unsigned I = First; I < End; ++I)
      if (has(Target->Decl->getParamDecl(I - First)))
        Handed.insert(Call->getArg(I)->IgnoreParenCasts());
  }
  return allOf(F.Decl->getBody(), [&](const Stmt *Each) {
    const auto *Ref = dyn_cast<DeclRefExpr>(Each);
    return !Ref || Ref->getDecl() != Parameter || Handed.contains(Ref);
  });
}

const VarDecl *Buffers::of(const CallExpr *Read, const CallSpec &Spec) const {
  const Expr *To = target(Read, Spec);
  const VarDecl *Variable = To ? named(To) : nullptr;
  return Variable && has(Variable) ? Variable : nullptr;
}

bool Buffers::needless(const CallExpr *Call, unsigned Argument, const std::vector<Function *> &Targets) {
  const Expr *E = Call->getArg(Argument);
  unsigned Number = Argument - firstArgument(Call);
  for (const Function *Target : Targets)
    if (Number >= Target->Decl->getNumParams() || !has(Target->Decl->getParamDecl(Number)))
      return false;
  // A buffer of the caller is passed on as it is.
  if (Targets.empty() || hasSideEffects(E) || (named(E) && has(named(E))))
    return false;
  for (NodeId Object : Pointers.pointees(E))
    if (Slice.relatedAny(Pointers.whole(Object)))
      return false;
  return true;
}

} // namespace foreread::slicer
