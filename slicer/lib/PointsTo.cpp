// Constraints of expressions, declarations and statements.
#include "PointsTo.h"

#include "Cxx.h"

namespace foreread::slicer {

using namespace clang;

PointsTo::Place PointsTo::place(const Expr *E) {
  E = E->IgnoreParens();
  if (std::optional<Place> Known = placeCxx(E))
    return *Known;
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (isa<VarDecl>(Ref->getDecl()))
      return {P.reference(Ref), 0};
    return {};
  }
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl())) {
      if (Member->isArrow()) {
        if (NodeId Base = value(Member->getBase()))
          UsedAs.push_back({Base, Member->getBase()->getType()->getPointeeType()});
      } else {
        Place Base = place(Member->getBase());
        const auto *Cast = dyn_cast<CastExpr>(Member->getBase()->IgnoreParens());
        if (NodeId Pointer = Cast && Cast->getCastKind() == CK_LValueBitCast ? address(Base) : 0)
          UsedAs.push_back({Pointer, Cast->getType()});
      }
      if (Field->getParent()->isUnion())
        UnionMembers[P.field(Field)].insert(Field);
      return {P.field(Field), 0};
    }
    return {};
  }
  if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
    value(Element->getIdx());
    // An element of a vector.
    if (Element->getBase()->getType()->isVectorType())
      return place(Element->getBase());
    NodeId Array = value(Element->getBase());
    auto Meant = P.Elements.find(Element);
    if (Meant == P.Elements.end()) {
      if (Array && E->getType()->isPointerType())
        Raw.push_back({Array, E->getType()});
      return {0, Array};
    }
    if (Meant->second.count() == 1)
      return {static_cast<NodeId>(Meant->second.find_first()), 0};
    NodeId Pointer = fresh();
    for (NodeId Piece : Meant->second)
      points(Pointer, Piece);
    return {0, Pointer};
  }
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->getOpcode() == UO_Deref) {
      NodeId Pointer = value(Unary->getSubExpr());
      if (Pointer && Unary->getType()->isRecordType())
        UsedAs.push_back({Pointer, Unary->getType()});
      if (Pointer && Unary->getType()->isPointerType())
        Raw.push_back({Pointer, Unary->getType()});
      return {0, Pointer};
    }
    if (Unary->getOpcode() == UO_Extension || Unary->getOpcode() == UO_Real ||
        Unary->getOpcode() == UO_Imag)
      return place(Unary->getSubExpr());
  }
  if (isa<StringLiteral, PredefinedExpr>(E))
    return {P.text(), 0};
  if (const auto *Literal = dyn_cast<CompoundLiteralExpr>(E)) {
    NodeId Object = P.heap(Literal);
    P.Nodes[Object].Type = Literal->getType();
    initialise(Object, Literal->getType(), Literal->getInitializer());
    return {Object, 0};
  }
  if (const auto *Cast = dyn_cast<CastExpr>(E))
    return place(Cast->getSubExpr());
  if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
    value(Binary);
    return {};
  }
  value(E);
  return {};
}

NodeId PointsTo::value(const Expr *E) {
  auto Known = Values.find(E);
  if (Known != Values.end())
    return Known->second;
  Values[E] = 0; // ends a recursive literal
  NodeId Result = generate(E);
  return Values[E] = Result;
}

NodeId PointsTo::generate(const Expr *E) {
  if (std::optional<NodeId> Known = generateCxx(E))
    return *Known;
  if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    const Expr *Inner = Cast->getSubExpr();
    switch (Cast->getCastKind()) {
    case CK_LValueToRValue:
      return E->getType()->isRecordType() ? (place(Inner), 0) : load(place(Inner));
    case CK_ArrayToPointerDecay:
      return address(place(Inner));
    case CK_FunctionToPointerDecay:
      return value(Inner);
    case CK_NullToPointer:
      value(Inner);
      return 0;
    default: {
      NodeId Result = value(Inner);
      if (Result && E->getType()->isPointerType() && E->getType()->getPointeeType()->isRecordType())
        UsedAs.push_back({Result, E->getType()->getPointeeType()});
      return Result;
    }
    }
  }
  // An integer literal may be a descriptor's number assigned by dup2().
  if (const auto *Literal = dyn_cast<IntegerLiteral>(E))
    return numbered(Literal->getValue().getLimitedValue());
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (const auto *Number = dyn_cast<EnumConstantDecl>(Ref->getDecl()))
      return numbered(Number->getInitVal().getLimitedValue());
    if (const auto *Named = dyn_cast<FunctionDecl>(Ref->getDecl())) {
      Function *F = P.function(Named);
      if (!F)
        return 0;
      F->AddressTaken = true;
      NodeId Result = fresh();
      points(Result, P.functionObject(*F));
      return Result;
    }
    return 0;
  }
  if (const auto *Paren = dyn_cast<ParenExpr>(E))
    return value(Paren->getSubExpr());
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->getOpcode() == UO_AddrOf) {
      const Expr *Of = Unary->getSubExpr()->IgnoreParens();
      return Of->getType()->isFunctionType() ? value(Of) : address(place(Of));
    }
    if (Unary->isIncrementDecrementOp()) {
      NodeId Variable = load(place(Unary->getSubExpr()));
      copy(P.readBy(Unary->getSubExpr()), Variable);
      return Variable;
    }
    if (Unary->getOpcode() == UO_Deref)
      return Unary->getType()->isFunctionType() ? value(Unary->getSubExpr()) : (place(Unary), 0);
    return value(Unary->getSubExpr());
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
    if (Binary->getOpcode() == BO_Assign) {
      NodeId From = value(Binary->getRHS());
      Place Into = place(Binary->getLHS());
      store(Into, From);
      return From;
    }
    NodeId Left =
        Binary->isAssignmentOp() ? load(place(Binary->getLHS())) : value(Binary->getLHS());
    NodeId Right = value(Binary->getRHS());
    if (Binary->isAssignmentOp())
      copy(P.readBy(Binary->getLHS()), Left);
    if (Binary->getOpcode() == BO_Comma)
      return Right;
    if (Binary->isComparisonOp() || Binary->isLogicalOp())
      return 0;
    if (Binary->isAssignmentOp())
      return Left;
    if (E->getType()->isPointerType())
      return Binary->getLHS()->getType()->isPointerType() ? Left : Right;
    // Integers wide enough to hold a pointer.
    if (!E->getType()->isIntegerType() || Context->getTypeSize(E->getType()) < 64)
      return 0;
    if (!Left || !Right)
      return Left ? Left : Right;
    NodeId Result = fresh();
    copy(Left, Result);
    copy(Right, Result);
    return Result;
  }
  if (const auto *Choice = dyn_cast<AbstractConditionalOperator>(E)) {
    NodeId True, False;
    if (const auto *Short = dyn_cast<BinaryConditionalOperator>(E)) {
      True = value(Short->getCommon());
      if (Short->getOpaqueValue())
        Values[Short->getOpaqueValue()] = True;
    } else {
      value(Choice->getCond());
      True = value(Choice->getTrueExpr());
    }
    False = value(Choice->getFalseExpr());
    if (!True || !False)
      return True ? True : False;
    NodeId Result = fresh();
    copy(True, Result);
    copy(False, Result);
    return Result;
  }
  if (const auto *Call = dyn_cast<CallExpr>(E))
    return call(Call);
  if (const auto *Block = dyn_cast<StmtExpr>(E)) {
    cover(Block->getSubStmt());
    const auto *Last = Block->getSubStmt()->body_empty()
                           ? nullptr
                           : dyn_cast<Expr>(Block->getSubStmt()->body_back());
    return Last ? value(Last) : 0;
  }
  if (const auto *Argument = dyn_cast<VAArgExpr>(E)) {
    // The list holds a pointer to the node of the variadic arguments, which holds the arguments.
    Place List = place(Argument->getSubExpr()->IgnoreParenCasts());
    NodeId Lists = Argument->getSubExpr()->getType()->isPointerType()
                       ? value(Argument->getSubExpr())
                       : address(List);
    return load({0, load({0, Lists})});
  }
  if (isa<InitListExpr, CompoundLiteralExpr, MemberExpr, ArraySubscriptExpr>(E)) {
    if (!isa<InitListExpr>(E))
      place(E);
    return 0;
  }
  if (isa<UnaryExprOrTypeTraitExpr>(E))
    return 0;
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child))
      value(Part);
  return 0;
}

void PointsTo::initialise(NodeId Into, QualType Type, const Expr *Value) {
  if (const auto *List = dyn_cast<InitListExpr>(Value)) {
    if (List->isSyntacticForm() && List->getSemanticForm())
      List = List->getSemanticForm();
    if (const auto *Record = Type->getAs<RecordType>()) {
      if (Record->isUnionType()) {
        if (const FieldDecl *Field = List->getInitializedFieldInUnion();
            Field && List->getNumInits()) {
          UnionMembers[P.field(Field)].insert(Field);
          initialise(P.field(Field), Field->getType(), List->getInit(0));
        }
        return;
      }
      unsigned I = 0;
      for (const FieldDecl *Field : Record->getDecl()->fields()) {
        if (Field->isUnnamedBitField())
          continue;
        if (I >= List->getNumInits())
          break;
        if (const Expr *Part = List->getInit(I++))
          initialiseObject(P.field(Field), Field->getType(), Part);
      }
      return;
    }
    QualType Element =
        Type->isArrayType() ? QualType(Type->getArrayElementTypeNoTypeQual(), 0) : Type;
    for (const Expr *Part : List->inits())
      if (Part)
        initialise(Into, Element, Part);
    return;
  }
  if (const auto *Made = dyn_cast<CXXConstructExpr>(Value->IgnoreImplicit()); Made && !copied(Made))
    return construct(Into, Made);
  // The value of a reference is the address of its referent.
  copy(bound(Value, Type->isReferenceType()), Into);
}

// A variable or a field, possibly an array that is split.
void PointsTo::initialiseObject(NodeId Into, QualType Type, const Expr *Value) {
  const auto *List = dyn_cast<InitListExpr>(Value);
  if (!List || !P.Arrays.contains(Into))
    return initialise(Into, Type, Value);
  if (List->isSyntacticForm() && List->getSemanticForm())
    List = List->getSemanticForm();
  QualType Element(Type->getArrayElementTypeNoTypeQual(), 0);
  for (unsigned I = 0; I < List->getNumInits(); ++I)
    if (const Expr *Part = List->getInit(I))
      initialise(P.piece(Into, I), Element, Part);
}

void PointsTo::declare(const VarDecl *Variable) {
  NodeId Id = P.variable(Variable);
  cell(Id);
  if (const Expr *Init = Variable->getInit())
    initialiseObject(Id, Variable->getType(), Init);
  for (const VarDecl *Part : holding(Variable))
    declare(Part);
}

void PointsTo::cover(const Stmt *S) {
  if (!S)
    return;
  if (const auto *E = dyn_cast<Expr>(S)) {
    value(E);
    return;
  }
  if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D))
        declare(Variable);
    return;
  }
  if (const auto *Return = dyn_cast<ReturnStmt>(S)) {
    if (const Expr *Value = Return->getRetValue(); Value && Current)
      copy(bound(Value, Current->Decl->getReturnType()->isReferenceType()), P.result(*Current));
    return;
  }
  for (const Stmt *Child : S->children())
    cover(Child);
}

} // namespace foreread::slicer
