#include "Ranges.h"

#include "Progressions.h"

namespace foreread::slicer {

using namespace clang;

Ranges::Ranges(const Function &F) : F(F) { pointedTo(F.Decl->getBody()); }

namespace {

// True if a variable directly inside this is loaded or assigned, and not pointed to or referred to.
bool names(const Stmt *S) {
  if (const auto *Cast = dyn_cast<CastExpr>(S))
    return Cast->getCastKind() == CK_LValueToRValue;
  if (const auto *Unary = dyn_cast<UnaryOperator>(S))
    return Unary->isIncrementDecrementOp();
  const auto *Binary = dyn_cast<BinaryOperator>(S);
  return isa<ParenExpr>(S) || (Binary && Binary->isAssignmentOp());
}

} // namespace

void Ranges::pointedTo(const Stmt *S) {
  for (const Stmt *Child : S->children()) {
    if (!Child)
      continue;
    if (const auto *Part = dyn_cast<Expr>(Child); Part && !names(S))
      if (const auto *Ref = dyn_cast<DeclRefExpr>(Part->IgnoreParens()))
        AddressTaken.insert(Ref->getDecl());
    pointedTo(Child);
  }
}

std::optional<Range> Ranges::of(const Expr *E) const {
  E = E->IgnoreParens();
  const ASTContext &Context = F.Home->context();
  Expr::EvalResult Value;
  if (E->EvaluateAsInt(Value, Context)) {
    int64_t Number = Value.Val.getInt().getExtValue();
    return Range{Number, Number};
  }
  if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    QualType To = Cast->getType(), From = Cast->getSubExpr()->getType();
    bool Wider = To->isIntegerType() && From->isIntegerType() &&
                 Context.getTypeSize(To) >= Context.getTypeSize(From);
    return Wider ? of(Cast->getSubExpr()) : std::nullopt;
  }
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E))
    return index(Ref);
  const auto *Binary = dyn_cast<BinaryOperator>(E);
  if (!Binary)
    return std::nullopt;
  std::optional<Range> Left = of(Binary->getLHS()), Right = of(Binary->getRHS()), Result = Range();
  bool Overflow = !Left || !Right;
  if (Overflow)
    return std::nullopt;
  switch (Binary->getOpcode()) {
  case BO_Add:
    Overflow |= __builtin_add_overflow(Left->First, Right->First, &Result->First);
    Overflow |= __builtin_add_overflow(Left->Last, Right->Last, &Result->Last);
    break;
  case BO_Sub:
    Overflow |= __builtin_sub_overflow(Left->First, Right->Last, &Result->First);
    Overflow |= __builtin_sub_overflow(Left->Last, Right->First, &Result->Last);
    break;
  case BO_Mul:
    Overflow |= Left->First < 0 || Right->First < 0;
    Overflow |= __builtin_mul_overflow(Left->First, Right->First, &Result->First);
    Overflow |= __builtin_mul_overflow(Left->Last, Right->Last, &Result->Last);
    break;
  default:
    return std::nullopt;
  }
  return Overflow ? std::nullopt : Result;
}

// The range of a loop's index in the loop's body, if the bounds are constants.
std::optional<Range> Ranges::index(const DeclRefExpr *Ref) const {
  if (AddressTaken.contains(Ref->getDecl()))
    return std::nullopt;
  const Stmt *Part = Ref;
  for (const Stmt *Up = F.Parents.lookup(Ref); Up; Part = Up, Up = F.Parents.lookup(Up)) {
    const auto *For = dyn_cast<ForStmt>(Up);
    if (!For || For->getBody() != Part)
      continue;
    Turns Here(For);
    if (!Here.Over || Here.Over->Index != Ref->getDecl())
      continue;
    const ASTContext &Context = F.Home->context();
    Expr::EvalResult First;
    std::optional<uint64_t> Times = Here.Over->turns(Context);
    if (!Times || *Times == 0 || !Here.Over->First->EvaluateAsInt(First, Context))
      return std::nullopt;
    int64_t From = First.Val.getInt().getExtValue(),
            To = From + Here.Over->Step * static_cast<int64_t>(*Times - 1);
    return Range{std::min(From, To), std::max(From, To)};
  }
  return std::nullopt;
}

} // namespace foreread::slicer
