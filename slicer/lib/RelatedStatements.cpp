// Statements are kept because of their parts, jumps because of the statements that they skip (paper, section 4.1, step
// 2, for structured statements; for jumps the rule of Agrawal's "On Slicing Programs with Jump Statements": a jump
// belongs to the slice if control would reach another kept statement without it).
#include "Cxx.h"
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

bool Related::declaration(const VarDecl *Variable) {
  if (Variable->hasAttr<CleanupAttr>() && defines(Variable))
    refuse(*Current, "a variable of it has a clean-up function");
  if (Current->Home->cxx())
    object(Variable);
  parts(Variable);
  if (defines(Variable)) {
    typeSizes(Variable->getType());
    if (Variable->getInit())
      value(Variable->getInit());
    return true;
  }
  return Variable->getInit() && effects(Variable->getInit());
}

bool Related::conditional(const Stmt *S, const Expr *Condition, bool BodyKept) {
  if (BodyKept) {
    if (Condition)
      value(Condition);
  } else if (!Condition || !effects(Condition)) {
    return false;
  }
  keep(S);
  return true;
}

// True if the value of an expression is available without further nodes becoming related.
bool Related::settled(const Expr *E) {
  if (const auto *Cast = dyn_cast<CastExpr>(E); Cast && Cast->getCastKind() == CK_LValueToRValue) {
    NodeSet Missing = defined(Cast->getSubExpr());
    Missing.intersectWithComplement(Marked);
    if (!Missing.empty())
      return false;
  }
  if (const auto *Call = dyn_cast<CallExpr>(E)) {
    if (const CallSpec *Spec = P.spec(Call)) {
      if (Spec->Kind == CallKind::Read || Spec->Kind == CallKind::Seek ||
          Spec->Kind == CallKind::Open)
        return treatment(Call) == Treatment::Prefetch || treatment(Call) == Treatment::Fetch;
      if ((Spec->Kind != CallKind::Private && Spec->Kind != CallKind::Tell) || Spec->State)
        return false;
      for (unsigned I = 0; I < Call->getNumArgs(); ++I)
        if (Spec->parameter(I) != 'v' && Spec->parameter(I) != 'f') {
          NodeSet Missing;
          for (NodeId Object : Pointers.pointees(Call->getArg(I)))
            Missing |= Pointers.whole(Object);
          Missing.intersectWithComplement(Marked);
          if (!Missing.empty())
            return false;
        }
    } else {
      for (Function *F : Pointers.callees(Call).Functions)
        if (!related(P.result(*F)))
          return false;
      if (Pointers.callees(Call).Functions.empty())
        return false;
    }
  }
  if (isa<StmtExpr, VAArgExpr>(E))
    return false;
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child); Part && !settled(Part))
      return false;
  return true;
}

// A failure that can be decided with the values that are needed anyway is not assumed away.
bool Related::decideFailures() {
  bool Any = false;
  for (const IfStmt *If : Ignored)
    if (!Decided.contains(If) && settled(If->getCond())) {
      Decided.insert(If);
      Any = true;
    }
  return Any;
}

// True if all kept effects of a function are closing, reporting and assignments to its own variables: effects that end
// with the branch that calls it.
bool Related::onlyCloses(const Function &F, llvm::DenseSet<const Function *> &Seen) {
  if (!Seen.insert(&F).second)
    return true;
  std::vector<const Stmt *> Work{F.Decl->getBody()};
  while (!Work.empty()) {
    const Stmt *S = Work.back();
    Work.pop_back();
    for (const Stmt *Child : S->children())
      if (Child)
        Work.push_back(Child);
    const auto *E = dyn_cast<Expr>(S);
    if (!E || !isEffect(E))
      continue;
    const auto *Call = dyn_cast<CallExpr>(E);
    if (!Call) {
      // The function's own variables end with it.
      const auto *Binary = dyn_cast<BinaryOperator>(E);
      const VarDecl *Own = Binary ? variableOf(Binary->getLHS()) : nullptr;
      if (!Own || !Own->hasLocalStorage())
        return false;
      continue;
    }
    if (const CallSpec *Spec = P.spec(Call)) {
      if (Wrong.isReport(Call))
        continue;
      if (Spec->Kind != CallKind::Close && Spec->Kind != CallKind::Exit)
        return false;
      continue;
    }
    PointsTo::Callees Callees = Pointers.callees(Call);
    if (Callees.Functions.empty())
      return false;
    for (Function *Callee : Callees.Functions)
      if (!onlyCloses(*Callee, Seen))
        return false;
  }
  return true;
}

// True if a label begins the end of its function: the statements after it only close and return.
bool Related::isExit(const LabelStmt *Label) {
  if (enclosingLoop(Label, false))
    return false;
  for (const Stmt *At = Label, *Up = Current->Parents.lookup(At); Up; At = Up, Up = Current->Parents.lookup(Up)) {
    if (!isa<CompoundStmt>(Up))
      continue;
    bool After = false;
    for (const Stmt *Part : Up->children()) {
      After |= Part == At;
      if (After && Part && neededIn(Part == Label ? Label->getSubStmt() : Part, false))
        return false;
    }
  }
  return true;
}

// True if a failure's branch has needed effects besides reporting, closing and leaving: assignments, reads, or a
// result. A constant result after a report is not needed.
bool Related::neededIn(const Stmt *S, bool Reported) {
  if (!S)
    return false;
  if (const auto *Return = dyn_cast<ReturnStmt>(S)) {
    const Expr *Value = Return->getRetValue();
    if (!Value)
      return false;
    Expr::EvalResult Constant;
    bool Said = Reported && !Value->isValueDependent() &&
                (Value->EvaluateAsInt(Constant, Current->Home->context()) ||
                 Value->isNullPointerConstant(Current->Home->context(), Expr::NPC_ValueDependentIsNotNull));
    if (!Said && Current->Name != "main" &&
        (related(P.result(*Current)) || relatedAny(P.fields(Value->getType()))))
      return true;
    return neededIn(Value, Reported);
  }
  if (const auto *Goto = dyn_cast<GotoStmt>(S)) {
    const LabelStmt *Label = Goto->getLabel()->getStmt();
    auto At = Layouts[Current->Index].Range.find(S), To = Layouts[Current->Index].Range.find(Label);
    auto End = Layouts[Current->Index].Range.end();
    return At == End || To == End || To->second.first <= At->second.first || !isExit(Label);
  }
  if (const auto *Call = dyn_cast<CallExpr>(S)) {
    const CallSpec *Spec = P.spec(Call);
    PointsTo::Callees Callees = Spec ? PointsTo::Callees() : Pointers.callees(Call);
    llvm::DenseSet<const Function *> Seen;
    bool Ends = Callees.Functions.empty() ? Wrong.isReport(Call) || (Spec && Spec->Kind == CallKind::Close)
                                          : llvm::all_of(Callees.Functions, [&](Function *F) { return onlyCloses(*F, Seen); });
    if (!Ends)
      return effects(Call);
    for (const Expr *Argument : Call->arguments())
      if (neededIn(Argument, Reported))
        return true;
    return false;
  }
  if (const auto *E = dyn_cast<Expr>(S); E && !isa<CastExpr, ParenExpr, ExprWithCleanups>(E))
    return effects(E);
  if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D); Variable && Variable->getInit() && neededIn(Variable->getInit(), Reported))
        return true;
    return false;
  }
  for (const Stmt *Child : S->children())
    if (neededIn(Child, Reported))
      return true;
  return false;
}

bool Related::statement(const Stmt *S) {
  if (!S)
    return false;
  if (const auto *E = dyn_cast<Expr>(S))
    return effects(E);
  bool Any = false;
  switch (S->getStmtClass()) {
  case Stmt::DeclStmtClass:
    for (const Decl *D : cast<DeclStmt>(S)->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D))
        Any |= declaration(Variable);
    break;
  case Stmt::IfStmtClass: {
    const auto *If = cast<IfStmt>(S);
    bool Before = statement(If->getInit());
    Before |= statement(If->getConditionVariableDeclStmt());
    if (Before)
      keep(S);
    if (!Decided.contains(If) && Wrong.isFailure(If, *Current)) {
      if (!neededIn(If->getThen(), Wrong.reports(If->getThen()))) {
        Ignored.insert(If);
        return conditional(S, If->getCond(), false) || Before;
      }
      Decided.insert(If);
    }
    Any = statement(If->getThen());
    Any |= statement(If->getElse());
    return conditional(S, If->getCond(), Any) || Before;
  }
  case Stmt::CXXForRangeStmtClass:
    return rangeFor(cast<CXXForRangeStmt>(S));
  case Stmt::CXXTryStmtClass:
    Any = tryBlock(cast<CXXTryStmt>(S));
    break;
  case Stmt::SwitchStmtClass: {
    const auto *Switch = cast<SwitchStmt>(S);
    if ((Switch->getInit() || Switch->getConditionVariable()) && statement(Switch->getBody()))
      refuse(*Current, "a switch declares a variable in its head");
    return conditional(S, Switch->getCond(), statement(Switch->getBody()));
  }
  case Stmt::WhileStmtClass: {
    const auto *While = cast<WhileStmt>(S);
    Any = statement(While->getBody());
    Any |= effects(While->getCond());
    Any |= statement(While->getConditionVariableDeclStmt());
    if (Any && While->getConditionVariable())
      refuse(*Current, "a loop declares a variable in its condition");
    Any = conditional(S, While->getCond(), Any);
    return announceBefore(S) || Any;
  }
  case Stmt::DoStmtClass: {
    const auto *Do = cast<DoStmt>(S);
    Any = statement(Do->getBody());
    Any |= effects(Do->getCond());
    Any = conditional(S, Do->getCond(), Any);
    return announceBefore(S) || Any;
  }
  case Stmt::ForStmtClass: {
    const auto *For = cast<ForStmt>(S);
    Any = statement(For->getBody());
    Any |= For->getInc() && effects(For->getInc());
    Any |= For->getCond() && effects(For->getCond());
    Any = conditional(S, For->getCond(), Any);
    Any |= announceBefore(S);
    if (statement(For->getInit())) {
      keep(S);
      Any = true;
    }
    return Any;
  }
  case Stmt::ReturnStmtClass:
    Any = needsReturn(cast<ReturnStmt>(S));
    break;
  case Stmt::BreakStmtClass:
  case Stmt::ContinueStmtClass:
  case Stmt::GotoStmtClass:
    Any = jump(S);
    break;
  case Stmt::IndirectGotoStmtClass:
    refuse(*Current, "it jumps to computed labels");
    break;
  case Stmt::GCCAsmStmtClass: {
    const auto *Asm = cast<GCCAsmStmt>(S);
    NodeSet Writes;
    for (unsigned I = 0; I < Asm->getNumOutputs(); ++I)
      Writes |= defined(Asm->getOutputExpr(I));
    if (relatedAny(Writes))
      refuse(*Current, "assembler in it decides where it reads");
    break;
  }
  default:
    for (const Stmt *Child : S->children())
      Any |= statement(Child);
  }
  if (Any)
    keep(S);
  return Any;
}

bool Related::keptBetween(unsigned From, unsigned To) const {
  const std::vector<bool> &Leaf = Layouts[Current->Index].Leaf;
  for (unsigned I = From; I < To && I < Leaf.size(); ++I)
    if (Leaf[I])
      return true;
  return false;
}

const Stmt *Related::enclosingLoop(const Stmt *S, bool OrSwitch) const {
  for (const Stmt *At = Current->Parents.lookup(S); At; At = Current->Parents.lookup(At))
    if (isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(At) || (OrSwitch && isa<SwitchStmt>(At)))
      return At;
  return nullptr;
}

// True if the prefetch thread reaches the statement under the program's own conditions, all of which are kept for other
// reasons. Then it costs nothing to keep the end of a failing program.
bool Related::decided(const Stmt *S) const {
  for (const Stmt *Up = Current->Parents.lookup(S); Up; Up = Current->Parents.lookup(Up)) {
    if (const auto *If = dyn_cast<IfStmt>(Up); If && Decided.contains(If))
      continue;
    if (isa<IfStmt, SwitchStmt, ForStmt, WhileStmt, DoStmt, CXXForRangeStmt, CXXCatchStmt,
            AbstractConditionalOperator, StmtExpr>(Up) &&
        !Kept.contains(Up))
      return false;
    if (const auto *Binary = dyn_cast<BinaryOperator>(Up);
        Binary && Binary->isLogicalOp() && !Kept.contains(Up))
      return false;
  }
  return true;
}

// True if a kept statement of the function may be executed after this one.
bool Related::keptAfter(const Stmt *S) const {
  const Layout &Here = Layouts[Current->Index];
  auto At = Here.Range.find(S);
  if (At == Here.Range.end() || keptBetween(At->second.second, Here.Leaf.size()))
    return true;
  for (const Stmt *Loop = enclosingLoop(S, false); Loop; Loop = enclosingLoop(Loop, false)) {
    auto Range = Here.Range.lookup(Loop);
    if (keptBetween(Range.first, At->second.first))
      return true;
  }
  // A jump from anywhere may lead to an earlier label.
  for (auto &[Label, Range] : Here.Range)
    if (isa<LabelStmt>(Label) && Range.first < At->second.first &&
        keptBetween(Range.first, At->second.first))
      return true;
  return false;
}

bool Related::needsReturn(const ReturnStmt *Return) {
  const Expr *Value = Return->getRetValue();
  bool Main = Current->Name == "main";
  NodeId Result = P.result(*Current);
  if (!Main && Value && (related(Result) || relatedAny(P.fields(Value->getType())))) {
    if (related(Result)) {
      Current->Decl->getReturnType()->isReferenceType() ? address(Value) : value(Value);
      return true;
    }
  }
  bool Any = Value && effects(Value);
  if (Main && Value) {
    // The end of a program that has failed.
    Expr::EvalResult Status;
    if (Value->EvaluateAsInt(Status, Current->Home->context()) && Status.Val.getInt() != 0)
      return Any || (paid(Return) && keptAfter(Return));
  }
  return keptAfter(Return) || Any;
}

bool Related::jump(const Stmt *S) {
  const Layout &Here = Layouts[Current->Index];
  auto At = Here.Range.find(S);
  if (At == Here.Range.end())
    return false;
  auto [First, Next] = At->second;
  if (isa<BreakStmt>(S)) {
    const Stmt *Out = enclosingLoop(S, true);
    if (!Out)
      return false;
    auto Range = Here.Range.lookup(Out);
    return keptBetween(isa<SwitchStmt>(Out) ? Next : Range.first, Range.second);
  }
  if (isa<ContinueStmt>(S)) {
    const Stmt *Loop = enclosingLoop(S, false);
    return Loop && keptBetween(Next, Here.Range.lookup(Loop).second);
  }
  const LabelStmt *Label = cast<GotoStmt>(S)->getLabel()->getStmt();
  if (!Label)
    return false;
  auto Target = Here.Range.lookup(Label);
  bool Needed =
      Target.first > First ? keptBetween(Next, Target.first) : keptBetween(Target.first, First);
  for (const Stmt *Loop = enclosingLoop(S, false); Loop && !Needed;
       Loop = enclosingLoop(Loop, false)) {
    auto Range = Here.Range.lookup(Loop);
    bool Inside = Target.first >= Range.first && Target.first < Range.second;
    Needed = !Inside && keptBetween(Range.first, Range.second);
  }
  if (!Needed)
    return false;
  // The label and the statements around it are printed even if nothing there is kept.
  for (const Stmt *Up = Label; Up; Up = Current->Parents.lookup(Up))
    if (!Kept.contains(Up)) {
      keep(Up);
      if (const auto *If = dyn_cast<IfStmt>(Up))
        value(If->getCond());
      if (const auto *While = dyn_cast<WhileStmt>(Up))
        value(While->getCond());
      if (const auto *Do = dyn_cast<DoStmt>(Up))
        value(Do->getCond());
      if (const auto *Switch = dyn_cast<SwitchStmt>(Up))
        value(Switch->getCond());
      if (const auto *For = dyn_cast<ForStmt>(Up); For && For->getCond())
        value(For->getCond());
    }
  return true;
}

} // namespace foreread::slicer
