// The expressions that a value may come from.
#include "Values.h"

#include "Cxx.h"

#include "llvm/Support/SaveAndRestore.h"

namespace foreread::slicer {

using namespace clang;

// Greatest depth of combinations by |.
static constexpr unsigned Deepest = 8;

const VarDecl *variableOf(const Expr *E) {
  const auto *Ref = dyn_cast<DeclRefExpr>(E->IgnoreParenCasts());
  return Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
}

bool changes(const Stmt *S, const VarDecl *Variable) {
  if (const auto *Binary = dyn_cast<BinaryOperator>(S);
      Binary && Binary->isAssignmentOp() && variableOf(Binary->getLHS()) == Variable)
    return true;
  if (const auto *Unary = dyn_cast<UnaryOperator>(S);
      Unary && (Unary->isIncrementDecrementOp() || Unary->getOpcode() == UO_AddrOf) &&
      variableOf(Unary->getSubExpr()) == Variable)
    return true;
  return llvm::any_of(S->children(), [&](const Stmt *Child) { return Child && changes(Child, Variable); });
}

Values::Values(Program &P) : P(P) {
  for (auto &Caller : P.Functions)
    for (const CallExpr *Call : Caller->Calls)
      if (const FunctionDecl *Direct = directCallee(Call))
        if (const Function *Callee = P.function(Direct))
          Sites[Callee].push_back({Caller.get(), Call});
}

bool Values::allCallsKnown(const Function &F) const {
  return (F.Private || P.AllKnown) && !F.AddressTaken && !F.LooseCalls && !F.RunByLibrary && !F.Through &&
         F.Givers.empty() && F.Name != "main";
}

std::vector<Values::Value> Values::of(const Function &F, const Expr *E) {
  std::vector<Value> All;
  add(F, E, All);
  return All;
}

std::optional<std::set<int64_t>> Values::numbers(const Function &F, const Expr *E) {
  std::set<int64_t> All;
  if (Depth > Deepest)
    return std::nullopt;
  llvm::SaveAndRestore Deeper(Depth, Depth + 1);
  for (const Value &Each : of(F, E)) {
    Expr::EvalResult Number;
    const auto *Bits = dyn_cast<BinaryOperator>(Each.Written);
    if (Each.Written->EvaluateAsInt(Number, Each.In->Home->context())) {
      All.insert(Number.Val.getInt().getExtValue());
    } else if (Bits && Bits->getOpcode() == BO_Or) {
      std::optional<std::set<int64_t>> Left = numbers(*Each.In, Bits->getLHS()),
                                       Right = numbers(*Each.In, Bits->getRHS());
      if (!Left || !Right)
        return std::nullopt;
      for (int64_t L : *Left)
        for (int64_t R : *Right)
          All.insert(L | R);
    } else {
      return std::nullopt;
    }
  }
  return All;
}

void Values::add(const Function &F, const Expr *E, std::vector<Value> &Into) {
  const Expr *Plain = E->IgnoreParenCasts();
  if (const auto *Choice = dyn_cast<ConditionalOperator>(Plain)) {
    add(F, Choice->getTrueExpr(), Into);
    add(F, Choice->getFalseExpr(), Into);
    return;
  }
  const VarDecl *Variable = variableOf(Plain);
  // In C++ a reference to the variable may change it anywhere.
  bool Fixed = Variable && Variable->hasLocalStorage() && !F.Home->cxx() && F.Decl->getBody() &&
               !changes(F.Decl->getBody(), Variable);
  const auto *Parameter = Fixed ? dyn_cast<ParmVarDecl>(Variable) : nullptr;
  auto Calls = Sites.find(&F);
  if (Parameter && allCallsKnown(F) && Calls != Sites.end() && Busy.insert(&F).second) {
    unsigned Index = Parameter->getFunctionScopeIndex();
    for (const Site &Each : Calls->second)
      add(*Each.Caller, Each.Call->getArg(Index), Into);
    Busy.erase(&F);
  } else if (Fixed && !Parameter && Variable->getInit()) {
    add(F, Variable->getInit(), Into);
  } else {
    Into.push_back({&F, Plain});
  }
}

} // namespace foreread::slicer
