// Constraints of C++: references, constructions, and the object of a member function. An object of the C++ library is
// one piece of memory, with all its content.
#include "Cxx.h"
#include "PointsTo.h"

namespace foreread::slicer {

using namespace clang;

// The node that is passed: the operand's address for a reference, else its value.
NodeId PointsTo::bound(const Expr *E, bool ByReference) {
  if (ByReference)
    return address(place(E));
  return E->getType()->isRecordType() ? load(place(E)) : value(E);
}

std::optional<PointsTo::Place> PointsTo::placeCxx(const Expr *E) {
  if (const Expr *Inner = behind(E))
    return place(Inner);
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
    if (Variable && Variable->getType()->isReferenceType())
      return Place{0, P.variable(Variable)};
    return std::nullopt;
  }
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (const auto *Static = dyn_cast<VarDecl>(Member->getMemberDecl())) {
      value(Member->getBase());
      return Place{P.variable(Static), 0};
    }
    const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl());
    if (Field && isOpaque(Field->getParent()))
      return Member->isArrow() ? Place{0, value(Member->getBase())} : place(Member->getBase());
    if (!Field || !Field->getType()->isReferenceType())
      return std::nullopt;
    value(Member->getBase());
    return Place{0, P.field(Field)};
  }
  if (const auto *Temporary = dyn_cast<MaterializeTemporaryExpr>(E)) {
    const Expr *Inner = Temporary->getSubExpr();
    if (Inner->getType()->isRecordType())
      return place(Inner);
    NodeId Object = P.heap(E);
    initialise(Object, Inner->getType(), Inner);
    return Place{Object, 0};
  }
  if (const Expr *From = copied(E))
    return place(From);
  if (const auto *Made = dyn_cast<CXXConstructExpr>(E)) {
    NodeId Object = P.heap(E);
    if (Values.try_emplace(E, 0).second)
      construct(Object, Made);
    return Place{Object, 0};
  }
  if (const auto *Call = dyn_cast<CallExpr>(E);
      Call && (E->isGLValue() || E->getType()->isRecordType()))
    return Place{0, value(Call)};
  if (const auto *Choice = dyn_cast<AbstractConditionalOperator>(E);
      Choice && (E->isGLValue() || E->getType()->isRecordType())) {
    value(Choice->getCond());
    NodeId Both = fresh();
    copy(address(place(Choice->getTrueExpr())), Both);
    copy(address(place(Choice->getFalseExpr())), Both);
    Values[E] = Both;
    return Place{0, Both};
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && E->isGLValue()) {
    value(Binary);
    return place(Binary->getOpcode() == BO_Comma ? Binary->getRHS() : Binary->getLHS());
  }
  if (const auto *Unary = dyn_cast<UnaryOperator>(E);
      Unary && E->isGLValue() && Unary->isIncrementDecrementOp()) {
    value(Unary);
    return place(Unary->getSubExpr());
  }
  return std::nullopt;
}

std::optional<NodeId> PointsTo::generateCxx(const Expr *E) {
  if (const Expr *Inner = behind(E))
    return value(Inner);
  if (isa<CXXThisExpr>(E))
    return Current ? P.self(*Current) : 0;
  if (const auto *New = dyn_cast<CXXNewExpr>(E)) {
    NodeId Object = P.heap(New), Result = fresh();
    P.Nodes[Object].Type = New->getAllocatedType();
    points(Result, Object);
    for (const Expr *Where : New->placement_arguments())
      copy(value(Where), Result);
    if (New->isArray() && *New->getArraySize())
      value(*New->getArraySize());
    if (New->getInitializer())
      initialise(Object, New->getAllocatedType(), New->getInitializer());
    return Result;
  }
  if (const auto *Made = dyn_cast<CXXConstructExpr>(E); Made && !copied(E)) {
    construct(P.heap(E), Made);
    return 0;
  }
  if (isa<CXXConstructExpr, MaterializeTemporaryExpr>(E)) {
    place(E);
    return 0;
  }
  if (const auto *Lambda = dyn_cast<LambdaExpr>(E)) {
    for (const Expr *Captured : Lambda->capture_inits())
      if (Captured)
        value(Captured);
    return 0;
  }
  return std::nullopt;
}

std::optional<NodeSet> PointsTo::locationsCxx(const Expr *E) {
  auto Only = [](NodeId Id) {
    NodeSet One;
    One.set(Id);
    return One;
  };
  if (const Expr *Inner = behind(E))
    return locations(Inner);
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
    if (Variable && Variable->getType()->isReferenceType())
      return cell(P.variable(Variable)).Points;
  }
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (const auto *Static = dyn_cast<VarDecl>(Member->getMemberDecl()))
      return Only(P.variable(Static));
    const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl());
    if (Field && isOpaque(Field->getParent()))
      return Member->isArrow() ? pointees(Member->getBase()) : locations(Member->getBase());
    if (Field && Field->getType()->isReferenceType())
      return cell(P.field(Field)).Points;
  }
  if (const auto *Temporary = dyn_cast<MaterializeTemporaryExpr>(E))
    return Temporary->getType()->isRecordType() ? locations(Temporary->getSubExpr())
                                                : Only(P.heap(E));
  if (const Expr *From = copied(E))
    return locations(From);
  if (isa<CXXConstructExpr>(E))
    return Only(P.heap(E));
  if (isa<CallExpr, AbstractConditionalOperator>(E) &&
      (E->isGLValue() || E->getType()->isRecordType())) {
    NodeId Known = Values.lookup(E);
    return Known ? cell(Known).Points : NodeSet();
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E); Binary && E->isGLValue())
    return locations(Binary->getOpcode() == BO_Comma ? Binary->getRHS() : Binary->getLHS());
  return std::nullopt;
}

void PointsTo::construct(NodeId Object, const CXXConstructExpr *Made) {
  const CXXConstructorDecl *Constructor = Made->getConstructor();
  NodeId Self = address({Object, 0});
  std::vector<NodeId> Given{Self}, Written{Self};
  Function *F = P.function(Constructor);
  if (F)
    copy(Self, P.self(*F));
  for (unsigned I = 0; I < Made->getNumArgs(); ++I) {
    const Expr *Argument = Made->getArg(I);
    NodeId Value = bound(Argument, boundByReference(Constructor, I));
    if (F && I < Constructor->getNumParams())
      copy(Value, P.parameter(*F, I));
    Given.push_back(Value);
    if (!Argument->getType().isConstQualified())
      Written.push_back(Value);
  }
  if (Function *Body = P.thread(Made).Target)
    // Nobody uses the content of a thread object.
    return runThread(*Body, llvm::ArrayRef(Given).drop_front(2));
  if (!F && !Constructor->isTrivial())
    connectThrough(Constructor, anything(P.heap(Made), Given, Written));
}

// The function of a thread receives the arguments that follow it: each itself, or the memory that it points to.
void PointsTo::runThread(Function &Body, llvm::ArrayRef<NodeId> Given) {
  auto Hand = [&](NodeId To) {
    if (!Given.empty()) {
      copy(Given.front(), To);
      copy(load({0, Given.front()}), To);
      Given = Given.drop_front();
    }
  };
  if (Body.method() && !Body.lambda())
    Hand(P.self(Body));
  for (unsigned I = 0; I < Body.Decl->getNumParams(); ++I)
    Hand(P.parameter(Body, I));
}

void PointsTo::initialisers(const Function &F) {
  const auto *Constructor = dyn_cast<CXXConstructorDecl>(F.Decl);
  if (!Constructor)
    return;
  for (const CXXCtorInitializer *Part : Constructor->inits())
    if (const FieldDecl *Field = Part->getAnyMember())
      initialiseObject(P.field(Field), Field->getType(), Part->getInit());
    else
      part(F, Part->getInit());
}

// Initialisation of a base class, or by another constructor of the same class: both constructors have the same object.
void PointsTo::part(const Function &F, const Expr *Init) {
  value(Init);
  const auto *Made = dyn_cast<CXXConstructExpr>(Init->IgnoreImplicit());
  if (const Function *Of = Made ? P.function(Made->getConstructor()) : nullptr)
    copy(P.self(F), P.self(*Of));
}

} // namespace foreread::slicer
