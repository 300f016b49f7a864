// Expressions: everything that a value depends on, and the kept effects inside an expression.
#include "Cxx.h"
#include "Related.h"
#include "Values.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// True for a name that is a reference.
bool refers(const Expr *E) {
  const auto *Ref = dyn_cast<DeclRefExpr>(E);
  return Ref && Ref->getDecl()->getType()->isReferenceType();
}

bool isErrno(const Expr *E) {
  const auto *Deref = dyn_cast<UnaryOperator>(E->IgnoreParenCasts());
  const auto *Call = Deref && Deref->getOpcode() == UO_Deref
                         ? dyn_cast<CallExpr>(Deref->getSubExpr()->IgnoreParenCasts())
                         : nullptr;
  const FunctionDecl *Callee = Call ? Call->getDirectCallee() : nullptr;
  return Callee && Callee->getIdentifier() && Callee->getName() == "__errno_location";
}

// True for the end of `int saved = errno; … errno = saved;`: errno is as before. If this assignment defined errno,
// every function that reports or frees would be related wherever a read is tested for EINTR.
bool restoresErrno(const BinaryOperator *Assignment, const Function &F) {
  const VarDecl *Saved = variableOf(Assignment->getRHS());
  return Assignment->getOpcode() == BO_Assign && isErrno(Assignment->getLHS()) && Saved &&
         Saved->hasLocalStorage() && Saved->getInit() && isErrno(Saved->getInit()) && F.Decl->getBody() &&
         !changes(F.Decl->getBody(), Saved);
}

} // namespace

const NodeSet &Related::defined(const Expr *Lvalue) {
  auto Known = Defined.find(Lvalue);
  if (Known != Defined.end())
    return *Known->second;
  NodeSet Locations = Pointers.locations(Lvalue);
  QualType Type = Lvalue->getType();
  const Expr *Plain = Lvalue->IgnoreParens();
  bool ThroughPointer =
      isa<ArraySubscriptExpr, CallExpr>(Plain) || refers(Plain) ||
      (isa<UnaryOperator>(Plain) && cast<UnaryOperator>(Plain)->getOpcode() == UO_Deref);
  NodeSet All = P.fields(Type);
  for (NodeId Id : Locations) {
    All.set(Id);
    // Bytes of an object that consists of structures.
    if (ThroughPointer && !Type->isRecordType())
      All |= Pointers.bytes(Id, Type);
  }
  return *(Defined[Lvalue] = std::make_unique<NodeSet>(std::move(All)));
}

bool Related::defines(const VarDecl *Variable) {
  NodeId Id = P.variable(Variable);
  return relatedAny(P.pieces(Id)) || relatedAny(P.fields(Variable->getType()));
}

void Related::typeSizes(QualType Type) {
  while (!Type.isNull()) {
    if (const auto *Variable = dyn_cast<VariableArrayType>(Type->getUnqualifiedDesugaredType())) {
      if (Variable->getSizeExpr())
        value(Variable->getSizeExpr());
      Type = Variable->getElementType();
    } else if (const auto *Array = dyn_cast<ArrayType>(Type->getUnqualifiedDesugaredType())) {
      Type = Array->getElementType();
    } else if (Type->isPointerType()) {
      Type = Type->getPointeeType();
    } else {
      return;
    }
  }
}

// Computes the address of an lvalue, without its content.
void Related::address(const Expr *E) {
  E = E->IgnoreParens();
  refuseUncarried(E);
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (const auto *Part = dyn_cast<BindingDecl>(Ref->getDecl())) {
      mark(P.variable(cast<VarDecl>(Part->getDecomposedDecl())));
      return address(Part->getBinding());
    }
    if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
        Variable && (refers(E) || runsCode(Variable->getType())))
      mark(P.variable(Variable));
    if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
        Variable && Variable->getType()->isVariablyModifiedType())
      typeSizes(Variable->getType());
  } else if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (Member->getMemberDecl()->getType()->isReferenceType())
      if (const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl()))
        mark(P.field(Field));
    if (Member->isArrow())
      value(Member->getBase());
    else
      address(Member->getBase());
  } else if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
    bool Vector = Element->getBase()->getType()->isVectorType() && Element->getBase()->isLValue();
    Vector ? address(Element->getBase()) : value(Element->getBase());
    value(Element->getIdx());
  } else if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->getOpcode() == UO_Deref)
      value(Unary->getSubExpr());
    else
      address(Unary->getSubExpr());
  } else if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    address(Cast->getSubExpr());
  } else if (const auto *Literal = dyn_cast<CompoundLiteralExpr>(E)) {
    value(Literal->getInitializer());
  } else if (!isa<StringLiteral, PredefinedExpr>(E)) {
    value(E);
  }
}

void Related::value(const Expr *E) {
  if (valueCxx(E))
    return;
  if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    typeSizes(isa<ExplicitCastExpr>(Cast) ? cast<ExplicitCastExpr>(Cast)->getTypeAsWritten()
                                          : QualType());
    switch (Cast->getCastKind()) {
    case CK_LValueToRValue:
      if (const auto *Ref = dyn_cast<DeclRefExpr>(Cast->getSubExpr()->IgnoreParens());
          Ref && Replaced && Ref->getDecl() == Replaced)
        return;
      if (Looks.madeBy(Cast))
        InPlace.insert(Cast);
      address(Cast->getSubExpr());
      markAll(defined(Cast->getSubExpr()));
      return;
    case CK_ArrayToPointerDecay:
      return address(Cast->getSubExpr());
    default:
      return value(Cast->getSubExpr());
    }
  }
  if (const auto *Call = dyn_cast<CallExpr>(E))
    return callValue(Call);
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    switch (Unary->getOpcode()) {
    case UO_AddrOf:
      return address(Unary->getSubExpr());
    case UO_Deref:
      return value(Unary->getSubExpr());
    case UO_PostInc:
    case UO_PostDec:
    case UO_PreInc:
    case UO_PreDec:
      address(Unary->getSubExpr());
      markAll(defined(Unary->getSubExpr()));
      mark(P.readBy(Unary->getSubExpr()));
      effect(defined(Unary->getSubExpr()), isa<DeclRefExpr>(strip(Unary->getSubExpr())));
      return;
    default:
      return value(Unary->getSubExpr());
    }
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && Binary->isAssignmentOp()) {
    address(Binary->getLHS());
    if (Binary->isCompoundAssignmentOp()) {
      markAll(defined(Binary->getLHS()));
      mark(P.readBy(Binary->getLHS()));
    }
    if (relatedAny(defined(Binary->getLHS())))
      effect(defined(Binary->getLHS()), isa<DeclRefExpr>(strip(Binary->getLHS())));
    return value(Binary->getRHS());
  }
  if (const auto *Size = dyn_cast<UnaryExprOrTypeTraitExpr>(E)) {
    typeSizes(Size->getTypeOfArgument());
    return;
  }
  if (const auto *Block = dyn_cast<StmtExpr>(E)) {
    const CompoundStmt *Body = Block->getSubStmt();
    if (AsItIs)
      return needAll(Body);
    for (const Stmt *Part : Body->body()) {
      statement(Part);
      if (const auto *Last = dyn_cast<Expr>(Part); Last && Part == Body->body_back())
        value(Last);
    }
    keep(Body);
    return;
  }
  if (const auto *Argument = dyn_cast<VAArgExpr>(E)) {
    const Expr *List = Argument->getSubExpr();
    NodeSet Lists = List->getType()->isPointerType() ? Pointers.pointees(List)
                                                     : Pointers.locations(List->IgnoreParenCasts());
    value(List);
    for (NodeId Id : Lists) {
      mark(Id);
      markAll(P.fields(P.Nodes[Id].Type));
      for (NodeId Inner : Pointers.pointees(Id))
        mark(Inner);
    }
    effect(Lists, false);
    return;
  }
  if (const auto *Short = dyn_cast<BinaryConditionalOperator>(E)) {
    value(Short->getCommon());
    return value(Short->getFalseExpr());
  }
  if (isa<DeclRefExpr, MemberExpr, ArraySubscriptExpr, CompoundLiteralExpr>(E)) {
    address(E);
    if (E->getType()->isRecordType())
      markAll(defined(E));
    return;
  }
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child))
      value(Part);
}

bool Related::assignment(const Expr *E, const Expr *Target, const Expr *From, bool Reads) {
  const NodeSet &Defines = defined(Target);
  if (!relatedAny(Defines)) {
    bool Any = effectsInside(Target);
    if (From)
      Any |= effects(From);
    return Any;
  }
  address(Target);
  if (Reads) {
    markAll(Defines);
    mark(P.readBy(Target));
  }
  if (From)
    value(From);
  effect(Defines, isa<DeclRefExpr>(strip(Target)));
  if (Effects.insert(E).second)
    Changed = true;
  return true;
}

bool Related::effectsInside(const Expr *E) {
  bool Any = false;
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child))
      Any |= effects(Part);
  if (Any)
    keep(E);
  return Any;
}

bool Related::effects(const Expr *E) {
  bool Any = false;
  if (effectsCxx(E, Any))
    return Any;
  if (const auto *Call = dyn_cast<CallExpr>(E)) {
    Any = callEffects(Call);
  } else if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
    if (Current && restoresErrno(Binary, *Current))
      return false;
    if (Binary->isAssignmentOp()) {
      Any = assignment(E, Binary->getLHS(), Binary->getRHS(), Binary->isCompoundAssignmentOp());
    } else if (Binary->isLogicalOp()) {
      Any = effects(Binary->getRHS());
      if (Any)
        value(Binary->getLHS());
      else
        Any = effects(Binary->getLHS());
    } else {
      return effectsInside(E);
    }
  } else if (const auto *Unary = dyn_cast<UnaryOperator>(E);
             Unary && Unary->isIncrementDecrementOp()) {
    Any = assignment(E, Unary->getSubExpr(), nullptr, true);
  } else if (const auto *Choice = dyn_cast<ConditionalOperator>(E)) {
    Any = effects(Choice->getTrueExpr());
    Any |= effects(Choice->getFalseExpr());
    if (Any)
      value(Choice->getCond());
    else
      Any = effects(Choice->getCond());
  } else if (const auto *Short = dyn_cast<BinaryConditionalOperator>(E)) {
    Any = effects(Short->getFalseExpr());
    if (Any)
      value(Short->getCommon());
    else
      Any = effects(Short->getCommon());
  } else if (const auto *Block = dyn_cast<StmtExpr>(E)) {
    Any = statement(Block->getSubStmt());
  } else if (const auto *Argument = dyn_cast<VAArgExpr>(E)) {
    const Expr *List = Argument->getSubExpr();
    NodeSet Lists = List->getType()->isPointerType() ? Pointers.pointees(List)
                                                     : Pointers.locations(List->IgnoreParenCasts());
    if (relatedAny(Lists)) {
      value(E);
      if (Effects.insert(E).second)
        Changed = true;
      Any = true;
    }
  } else if (const Load *Made = loadMade(E)) {
    announce(*Made);
    if (Effects.insert(E).second)
      Changed = true;
    Any = true;
  } else if (isa<UnaryExprOrTypeTraitExpr>(E)) {
    return false;
  } else {
    return effectsInside(E);
  }
  if (Any)
    keep(E);
  return Any;
}

} // namespace foreread::slicer
