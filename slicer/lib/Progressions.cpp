#include "Progressions.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// True if control may leave a loop's body or an iteration other than at its end, or enter it other than at its
// beginning.
bool leaves(const Stmt *S, bool InLoop, bool InSwitch) {
  if (!S)
    return false;
  if (isa<ReturnStmt, GotoStmt, IndirectGotoStmt, LabelStmt>(S))
    return true;
  if (isa<BreakStmt>(S))
    return !InLoop && !InSwitch;
  if (isa<ContinueStmt>(S))
    return !InLoop;
  // A case label of a switch around the loop.
  if (isa<SwitchCase>(S) && !InSwitch)
    return true;
  InLoop |= bodyOf(S) != nullptr;
  InSwitch |= isa<SwitchStmt>(S);
  for (const Stmt *Child : S->children())
    if (leaves(Child, InLoop, InSwitch))
      return true;
  return false;
}

const VarDecl *named(const Expr *E) {
  const auto *Ref = dyn_cast<DeclRefExpr>(strip(E));
  return Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
}

Change both(Change A, Change B) { return std::max(A, B); }

// The value of an integer constant expression.
std::optional<int64_t> constant(const Expr *E, const ASTContext &Context) {
  Expr::EvalResult Value;
  if (E->EvaluateAsInt(Value, Context))
    return Value.Val.getInt().getExtValue();
  return std::nullopt;
}

int64_t stepOf(const Expr *Increment, const VarDecl *Index) {
  if (const auto *Unary = dyn_cast_or_null<UnaryOperator>(Increment);
      Unary && Unary->isIncrementDecrementOp() && named(Unary->getSubExpr()) == Index)
    return Unary->isIncrementOp() ? 1 : -1;
  const auto *Binary = dyn_cast_or_null<CompoundAssignOperator>(Increment);
  if (!Binary || named(Binary->getLHS()) != Index)
    return 0;
  int64_t By = constant(Binary->getRHS(), Index->getASTContext()).value_or(0);
  return Binary->getOpcode() == BO_AddAssign ? By : Binary->getOpcode() == BO_SubAssign ? -By : 0;
}

} // namespace

const Stmt *bodyOf(const Stmt *Loop) {
  if (const auto *For = dyn_cast<ForStmt>(Loop))
    return For->getBody();
  if (const auto *While = dyn_cast<WhileStmt>(Loop))
    return While->getBody();
  if (const auto *Do = dyn_cast<DoStmt>(Loop))
    return Do->getBody();
  return nullptr;
}

std::optional<uint64_t> Progression::turns(const ASTContext &Context) const {
  auto From = constant(First, Context), To = constant(Bound, Context);
  if (!From || !To)
    return std::nullopt;
  int64_t Way = Step > 0 ? *To - *From : *From - *To, Stride = std::abs(Step);
  Way += Compare == BO_LE || Compare == BO_GE;
  return Way <= 0 ? 0 : (Way + Stride - 1) / Stride;
}

Turns::Turns(const Stmt *Loop) {
  assigned(bodyOf(Loop));
  if (const auto *For = dyn_cast<ForStmt>(Loop)) {
    if (!leaves(For->getBody(), false, false))
      Over = progression(For);
    if (For->getInc())
      assigned(For->getInc());
    if (For->getCond())
      assigned(For->getCond());
  } else if (const auto *While = dyn_cast<WhileStmt>(Loop)) {
    assigned(While->getCond());
  } else if (const auto *Do = dyn_cast<DoStmt>(Loop)) {
    assigned(Do->getCond());
  }
}

void Turns::changes(const Expr *E) {
  E = E->IgnoreParens();
  if (const VarDecl *Variable = named(E))
    Assigned.insert(Variable);
  else if (const auto *Member = dyn_cast<MemberExpr>(E))
    Assigned.insert(Member->getMemberDecl());
  else
    AssignedTypes.insert(E->getType().getCanonicalType().getTypePtr());
}

void Turns::assigned(const Stmt *S) {
  if (const auto *Binary = dyn_cast<BinaryOperator>(S); Binary && Binary->isAssignmentOp())
    changes(Binary->getLHS());
  if (const auto *Unary = dyn_cast<UnaryOperator>(S);
      Unary && (Unary->isIncrementDecrementOp() || Unary->getOpcode() == UO_AddrOf))
    changes(Unary->getSubExpr());
  if (const auto *Declared = dyn_cast<DeclStmt>(S))
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D))
        Assigned.insert(Variable);
  for (const Stmt *Child : S->children())
    if (Child)
      assigned(Child);
}

std::optional<Progression> Turns::progression(const ForStmt *For) const {
  Progression Result;
  if (const auto *Declared = dyn_cast_or_null<DeclStmt>(For->getInit())) {
    Result.Index =
        Declared->isSingleDecl() ? dyn_cast<VarDecl>(Declared->getSingleDecl()) : nullptr;
    Result.First = Result.Index ? Result.Index->getInit() : nullptr;
  } else if (const auto *Start = dyn_cast_or_null<BinaryOperator>(For->getInit());
             Start && Start->getOpcode() == BO_Assign) {
    Result.Index = named(Start->getLHS());
    Result.First = Start->getRHS();
  }
  const auto *Test = dyn_cast_or_null<BinaryOperator>(For->getCond());
  if (!Result.Index || !Result.First || !Test || !Test->isComparisonOp() ||
      !Result.Index->hasLocalStorage() || Assigned.contains(Result.Index) ||
      !(Result.Index->getType()->isIntegerType() || Result.Index->getType()->isPointerType()))
    return std::nullopt;
  bool Forward = named(Test->getLHS()) == Result.Index;
  if (!Forward && named(Test->getRHS()) != Result.Index)
    return std::nullopt;
  Result.Bound = Forward ? Test->getRHS() : Test->getLHS();
  Result.Compare =
      Forward ? Test->getOpcode() : BinaryOperator::reverseComparisonOp(Test->getOpcode());
  Result.Step = stepOf(For->getInc(), Result.Index);
  bool Goes = Result.Step > 0   ? Result.Compare == BO_LT || Result.Compare == BO_LE
              : Result.Step < 0 ? Result.Compare == BO_GT || Result.Compare == BO_GE
                                : false;
  if (!Goes || hasSideEffects(Result.First) || ofValue(Result.Bound) != Change::None ||
      hasSideEffects(Result.Bound))
    return std::nullopt;
  return Result;
}

Change Turns::ofPlace(const Expr *E) const {
  E = E->IgnoreParens();
  if (isa<DeclRefExpr>(E))
    return Change::None;
  if (const auto *Member = dyn_cast<MemberExpr>(E))
    return Member->isArrow() ? ofValue(Member->getBase()) : ofPlace(Member->getBase());
  if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E))
    return both(ofValue(Element->getBase()), ofValue(Element->getIdx()));
  if (const auto *Unary = dyn_cast<UnaryOperator>(E); Unary && Unary->getOpcode() == UO_Deref)
    return ofValue(Unary->getSubExpr());
  return Change::Any;
}

Change Turns::ofValue(const Expr *E) const {
  E = E->IgnoreParens();
  if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    const Expr *Inner = Cast->getSubExpr();
    switch (Cast->getCastKind()) {
    case CK_LValueToRValue: {
      const VarDecl *Variable = named(Inner);
      if (Variable && Over && Variable == Over->Index)
        return Change::Even;
      if (Variable)
        return Assigned.contains(Variable) ? Change::Any : Change::None;
      const auto *Member = dyn_cast<MemberExpr>(Inner->IgnoreParens());
      bool Kept = Member
                      ? !Assigned.contains(Member->getMemberDecl())
                      : !AssignedTypes.contains(Inner->getType().getCanonicalType().getTypePtr());
      return Kept && ofPlace(Inner) == Change::None ? Change::None : Change::Any;
    }
    case CK_ArrayToPointerDecay:
      return ofPlace(Inner);
    case CK_IntegralCast:
    case CK_BitCast:
    case CK_NoOp:
      return ofValue(Inner);
    default:
      return ofValue(Inner) == Change::None ? Change::None : Change::Any;
    }
  }
  if (isa<IntegerLiteral, CharacterLiteral, UnaryExprOrTypeTraitExpr, DeclRefExpr>(E))
    return Change::None;
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->isIncrementDecrementOp())
      return Change::Any;
    if (Unary->getOpcode() == UO_AddrOf)
      return ofPlace(Unary->getSubExpr());
    Change Inner = ofValue(Unary->getSubExpr());
    bool Linear = Unary->getOpcode() == UO_Minus || Unary->getOpcode() == UO_Plus;
    return Linear || Inner == Change::None ? Inner : Change::Any;
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && !Binary->isAssignmentOp()) {
    Change Left = ofValue(Binary->getLHS()), Right = ofValue(Binary->getRHS());
    if (both(Left, Right) != Change::Even)
      return both(Left, Right);
    switch (Binary->getOpcode()) {
    case BO_Add:
    case BO_Sub:
      return Change::Even;
    case BO_Mul:
      return Left == Right ? Change::Any : Change::Even;
    case BO_Shl:
      return Right == Change::None ? Change::Even : Change::Any;
    default:
      return Change::Any;
    }
  }
  return Change::Any;
}

} // namespace foreread::slicer
