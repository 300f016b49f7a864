#include "Related.h"

#include "Edits.h"

namespace foreread::slicer {

using namespace clang;

Treatment Related::treatment(const CallExpr *Call) const {
  auto Known = Treatments.find(Call);
  return Known == Treatments.end() ? Treatment::Drop : Known->second;
}

void Related::set(const CallExpr *Call, Treatment T) {
  auto [At, Fresh] = Treatments.try_emplace(Call, T);
  if (!Fresh && T == Treatment::Touch)
    return;
  // Decisions only grow: a read whose data turns out to be needed is a fetch from then on.
  if (!Fresh && At->second != T && !(At->second == Treatment::Fetch && T == Treatment::Prefetch)) {
    At->second = T;
    Changed = true;
  }
  Changed |= Fresh;
}

void Related::mark(NodeId Id) {
  if (!Id || !Marked.test_and_set(Id))
    return;
  Changed = true;
  const Node &Now = P.Nodes[Id];
  // What an allocating function does to its memory, it does to each caller's.
  if (Now.Kind == NodeKind::Heap && Now.Site)
    if (const auto *Call = dyn_cast<CallExpr>(Now.Site))
      if (Function *F = P.function(directCallee(Call)); F && F->Allocates)
        for (NodeId Inner : Pointers.pointees(P.result(*F)))
          mark(Inner);
}

void Related::markAll(const NodeSet &Set) {
  for (NodeId Id : Set)
    mark(Id);
}

// Everything a pointer leads to, as bytes.
void Related::markPointees(const Expr *Pointer) {
  for (NodeId Object : Pointers.pointees(Pointer)) {
    markAll(Pointers.whole(Object));
    if (P.Nodes[Object].Kind == NodeKind::Varargs)
      continue;
    // A list of variable arguments leads to the arguments, and they to their strings.
    for (NodeId Inner : Pointers.pointees(Object))
      if (P.Nodes[Inner].Kind == NodeKind::Varargs) {
        mark(Inner);
        for (NodeId String : Pointers.pointees(Inner))
          markAll(Pointers.whole(String));
      }
  }
}

// Everything that can be reached from a pointer.
void Related::markReachable(const Expr *Pointer) {
  NodeSet Seen;
  std::vector<NodeId> Work;
  for (NodeId Object : Pointers.pointees(Pointer))
    Work.push_back(Object);
  while (!Work.empty()) {
    NodeId Object = Work.back();
    Work.pop_back();
    if (!Seen.test_and_set(Object))
      continue;
    for (NodeId Part : Pointers.whole(Object)) {
      mark(Part);
      Seen.set(Part);
      for (NodeId Next : Pointers.pointees(Part))
        if (!Seen.test(Next))
          Work.push_back(Next);
    }
  }
}

void Related::keep(const Stmt *S) {
  if (!Kept.insert(S).second)
    return;
  Changed = true;
  auto &Here = Layouts[Current->Index];
  auto At = Here.Range.find(S);
  if (At != Here.Range.end() && !isa<CompoundStmt>(S))
    Here.Leaf[At->second.first] = true;
}

// Whether the program can be made to do something at this call for the prefetch thread: its text
// must be at hand.
bool Related::meets(const CallExpr *Call) const {
  return Current->InMainFile && editable(*Current, Call);
}

void Related::mustMeet(const CallExpr *Call) {
  if (meets(Call))
    return;
  if (!Current->InMainFile)
    return refuse(*Current, "it is defined in a header");
  refuse(*Current, std::string("a call of ") + P.spec(Call)->Name + "() stands in a macro");
}

void Related::refuse(Function &F, const std::string &Why) {
  if (!F.WholeBecause.empty())
    return;
  F.WholeBecause = Why;
  Refused = true;
}

// An effect of the current function.  Direct assignments to its own variables are nobody else's.
void Related::effect(const NodeSet &Touched, bool Direct) {
  if (Effectful.test(Current->Index))
    return;
  bool Outside = Touched.empty();
  for (NodeId Id : Touched) {
    const Node &Now = P.Nodes[Id];
    bool Own = Now.Kind == NodeKind::Variable && Now.Local &&
               (Direct || Now.Decl->getDeclContext() == Current->Decl);
    if (!Own && (Direct || Marked.test(Id)))
      Outside = true;
  }
  if (Outside) {
    Effectful.set(Current->Index);
    Changed = true;
  }
}

void Related::layOut(const Stmt *S, Layout &Into, unsigned &Next) {
  unsigned First = Next++;
  for (const Stmt *Child : S->children())
    if (Child && (!isa<Expr>(Child) || !isa<Expr>(S)))
      layOut(Child, Into, Next);
  Into.Range[S] = {First, Next};
}

void findReachable(Program &P, PointsTo &Pointers) {
  std::vector<Function *> Work;
  auto Reach = [&](Function *F) {
    if (!F->Reachable) {
      F->Reachable = true;
      Work.push_back(F);
    }
  };
  if (Function *Main = P.mainFunction())
    Reach(Main);
  while (!Work.empty()) {
    Function *F = Work.back();
    Work.pop_back();
    for (const CallExpr *Call : F->Calls) {
      for (Function *Target : Pointers.callees(Call).Functions)
        Reach(Target);
      if (!P.function(directCallee(Call)))
        for (const Expr *Argument : Call->arguments())
          for (Function *Target : Pointers.functions(Argument))
            Reach(Target);
    }
  }
}

void Related::run() {
  Layouts.resize(P.Functions.size());
  do {
    Refused = false;
    Marked.clear();
    Kept.clear();
    Effects.clear();
    Treatments.clear();
    Assumed.clear();
    Unknown.clear();
    Ignored.clear();
    Decided.clear();
    Effectful.clear();
    Reached.clear();
    Wholes.clear();
    Threads = false;
    Skipped.clear();
    for (auto &F : P.Functions)
      Skipped.push_back(!F->WholeBecause.empty());
    for (auto &F : P.Functions) {
      Layout &Into = Layouts[F->Index];
      Into.Range.clear();
      unsigned Next = 0;
      layOut(F->Decl->getBody(), Into, Next);
      Into.Leaf.assign(Next, false);
    }
    if (Function *Main = P.mainFunction())
      Reached.set(Main->Index);
    do {
      Changed = false;
      for (auto &F : P.Functions)
        if (F->Reachable && !Skipped[F->Index]) {
          Current = F.get();
          statement(F->Decl->getBody());
        }
    } while (Changed || decideFailures());
    // What a function that is left whole calls is counted by nobody.
    for (auto &F : P.Functions)
      if (F->Reachable && !F->WholeBecause.empty())
        for (const CallExpr *Call : F->Calls)
          for (Function *Target : Pointers.callees(Call).Functions)
            if (hasEffects(*Target) && Target != F.get())
              refuse(*Target, "it is called from " + F->Name + ", which is left whole");
    for (auto &F : P.Functions)
      if (!Skipped[F->Index] && !F->WholeBecause.empty() && hasEffects(*F))
        HadEffects.set(F->Index);
  } while (Refused);
}

bool Related::passes(const CallExpr *Call, unsigned Argument) {
  const Expr *E = Call->getArg(Argument);
  if (Kept.contains(E) || Effects.contains(E))
    return true;
  for (Function *Target : Pointers.callees(Call).Functions) {
    if (Argument >= Target->Decl->getNumParams())
      return true;
    NodeId Parameter = P.parameter(*Target, Argument);
    if (Wholes.test(Target->Index) || related(Parameter) ||
        relatedAny(P.fields(P.Nodes[Parameter].Type)))
      return true;
  }
  return false;
}

NodeSet Related::defined(const Expr *Lvalue) {
  NodeSet Locations = Pointers.locations(Lvalue);
  QualType Type = Lvalue->getType();
  const Expr *Plain = Lvalue->IgnoreParens();
  bool ThroughPointer =
      isa<ArraySubscriptExpr>(Plain) ||
      (isa<UnaryOperator>(Plain) && cast<UnaryOperator>(Plain)->getOpcode() == UO_Deref);
  NodeSet All = P.fields(Type);
  for (NodeId Id : Locations) {
    All.set(Id);
    // Bytes of an object of structures.
    if (ThroughPointer && !Type->isRecordType())
      All |= Pointers.whole(Id);
  }
  return All;
}

bool Related::defines(const VarDecl *Variable) {
  NodeId Id = P.variable(Variable);
  return related(Id) || relatedAny(P.fields(Variable->getType()));
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

// The address of an lvalue is computed; what is there is not looked at.
void Related::address(const Expr *E) {
  E = E->IgnoreParens();
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
        Variable && Variable->getType()->isVariablyModifiedType())
      typeSizes(Variable->getType());
  } else if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (Member->isArrow())
      value(Member->getBase());
    else
      address(Member->getBase());
  } else if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
    value(Element->getBase());
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
  if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    typeSizes(isa<ExplicitCastExpr>(Cast) ? cast<ExplicitCastExpr>(Cast)->getTypeAsWritten()
                                          : QualType());
    switch (Cast->getCastKind()) {
    case CK_LValueToRValue:
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
  NodeSet Defines = defined(Target);
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
  if (const auto *Call = dyn_cast<CallExpr>(E)) {
    Any = callEffects(Call);
  } else if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
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
