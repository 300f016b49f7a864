#include "Loads.h"

#include "Edits.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// Minimal work between two counts, in operations. Counting takes as long as three or four.
constexpr uint64_t Enough = 400;
// Iterations of a loop whose number is unknown; work of a library call.
constexpr uint64_t Often = 128, LibraryCall = 32;
constexpr uint64_t Much = uint64_t(1) << 40;

const Expr *loaded(const Stmt *S) {
  const auto *Cast = dyn_cast<CastExpr>(S);
  return Cast && Cast->getCastKind() == CK_LValueToRValue ? Cast->getSubExpr()->IgnoreParens()
                                                          : nullptr;
}

} // namespace

Loads::Loads(Program &P, PointsTo &Pointers, Files &Opened) : P(P), Pointers(Pointers) {
  for (auto &F : P.Functions) {
    if (!F->Reachable)
      continue;
    for (const CallExpr *Call : F->Calls) {
      for (const Function *Target : Pointers.callees(Call).Functions)
        Callers[Target].push_back({F.get(), Call});
      const CallSpec *Spec = P.spec(Call);
      if (!Spec)
        continue;
      if (Spec->Kind == CallKind::Map && Opened.wanted(Call, *Spec))
        Maps.set(P.heap(Call));
      for (unsigned I = 0; I < Call->getNumArgs(); ++I)
        if (Spec->parameter(I) == 'c' && Spec->Kind != CallKind::Thread)
          for (const Function *Target : Pointers.functions(Call->getArg(I)))
            Callbacks.insert(Target);
    }
  }
  if (Maps.empty())
    return;
  // The number of calls that a library function makes depends on data.
  std::vector<const Function *> Work(Callbacks.begin(), Callbacks.end());
  while (!Work.empty()) {
    const Function *F = Work.back();
    Work.pop_back();
    for (const CallExpr *Call : F->Calls)
      for (const Function *Target : Pointers.callees(Call).Functions)
        if (Callbacks.insert(Target).second)
          Work.push_back(Target);
  }
  for (auto &F : P.Functions) {
    if (!F->Reachable || !F->AtHand || Callbacks.contains(F.get()))
      continue;
    Current = F.get();
    FromLoads.clear();
    walk(F->Decl->getBody(), {});
  }
}

const Load *Loads::madeBy(const Expr *Cast) const {
  auto At = Made.find(Cast);
  return At == Made.end() ? nullptr : At->second.get();
}

std::vector<const Load *> Loads::before(const Stmt *Loop) const {
  std::vector<const Load *> Result;
  auto At = Befores.find(Loop);
  if (At != Befores.end())
    for (const Expr *Cast : At->second)
      if (const Load *Each = madeBy(Cast))
        Result.push_back(Each);
  return Result;
}

const Turns &Loads::turns(const Stmt *Loop) {
  auto &At = Known[Loop];
  if (!At)
    At = std::make_unique<Turns>(Loop);
  return *At;
}

bool Loads::mapped(const Expr *E) {
  E = E->IgnoreParens();
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (!Member->isArrow())
      return mapped(Member->getBase());
    return Pointers.pointees(Member->getBase()).intersects(Maps);
  }
  if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
    const Expr *Base = Element->getBase()->IgnoreParens();
    if (const auto *Decay = dyn_cast<CastExpr>(Base);
        Decay && Decay->getCastKind() == CK_ArrayToPointerDecay)
      return mapped(Decay->getSubExpr());
    return Pointers.pointees(Base).intersects(Maps);
  }
  const auto *Unary = dyn_cast<UnaryOperator>(E);
  return Unary && Unary->getOpcode() == UO_Deref &&
         Pointers.pointees(Unary->getSubExpr()).intersects(Maps);
}

// True if a function may be called more than once, judged by loops, recursion and number of callers.
bool Loads::repeated(const Function &F) {
  if (F.AddressTaken || !Busy.insert(&F).second)
    return true;
  bool Result = Callers[&F].size() > 1;
  for (auto &[Caller, Call] : std::vector(Callers[&F]))
    Result |= loopAround(*Caller, Call) || repeated(*Caller);
  Busy.erase(&F);
  return Result;
}

// True if different executions may load from different locations.
bool Loads::varies(const Expr *Place, const Stmt *At) {
  for (const Stmt *Loop = loopAround(*Current, At); Loop; Loop = loopAround(*Current, Loop))
    if (turns(Loop).ofPlace(Place) != Change::None)
      return true;
  return repeated(*Current);
}

// The value of such loads is unknown until they are made.
bool Loads::dependsOnLoads(const Expr *E) {
  if (!E || isa<UnaryExprOrTypeTraitExpr>(E))
    return false;
  if (const Expr *Place = loaded(E)) {
    if (mapped(Place) && varies(Place, E))
      return true;
    if (const auto *Ref = dyn_cast<DeclRefExpr>(Place); Ref && isa<VarDecl>(Ref->getDecl()))
      return FromLoads.test(P.reference(Ref));
  }
  for (const Stmt *Child : E->children())
    if (const auto *Part = dyn_cast_or_null<Expr>(Child); Part && dependsOnLoads(Part))
      return true;
  return false;
}

void Loads::walkLoop(const Stmt *Loop, Surroundings In) {
  const Expr *Condition = nullptr, *Increment = nullptr;
  if (const auto *For = dyn_cast<ForStmt>(Loop)) {
    walk(For->getInit(), In);
    Condition = For->getCond();
    Increment = For->getInc();
  } else if (const auto *While = dyn_cast<WhileStmt>(Loop)) {
    Condition = While->getCond();
  } else {
    Condition = cast<DoStmt>(Loop)->getCond();
  }
  Surroundings Inside{Loop, true, In.Decided, true};
  walk(Condition, Inside);
  Inside.InCondition = false;
  Inside.Decided |= dependsOnLoads(Condition);
  walk(bodyOf(Loop), Inside);
  walk(Increment, Inside);
}

void Loads::walk(const Stmt *S, Surroundings In) {
  if (!S || isa<UnaryExprOrTypeTraitExpr>(S))
    return;
  if (bodyOf(S))
    return walkLoop(S, In);
  auto Depending = [&](const Expr *Condition, std::initializer_list<const Stmt *> Parts) {
    walk(Condition, In);
    Surroundings Inside = In;
    Inside.Certain = false;
    Inside.Decided |= dependsOnLoads(Condition);
    for (const Stmt *Part : Parts)
      walk(Part, Inside);
  };
  if (const auto *If = dyn_cast<IfStmt>(S))
    return Depending(If->getCond(), {If->getThen(), If->getElse()});
  if (const auto *Switch = dyn_cast<SwitchStmt>(S))
    return Depending(Switch->getCond(), {Switch->getBody()});
  if (const auto *Choice = dyn_cast<ConditionalOperator>(S))
    return Depending(Choice->getCond(), {Choice->getTrueExpr(), Choice->getFalseExpr()});
  const auto *Binary = dyn_cast<BinaryOperator>(S);
  if (Binary && Binary->isLogicalOp())
    return Depending(Binary->getLHS(), {Binary->getRHS()});
  if (Binary && Binary->isAssignmentOp())
    if (const auto *Ref = dyn_cast<DeclRefExpr>(Binary->getLHS()->IgnoreParens());
        Ref && isa<VarDecl>(Ref->getDecl()) && dependsOnLoads(Binary->getRHS()))
      FromLoads.set(P.reference(Ref));
  if (const auto *Declared = dyn_cast<DeclStmt>(S))
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D);
          Variable && Variable->getInit() && dependsOnLoads(Variable->getInit()))
        FromLoads.set(P.variable(Variable));
  if (const auto *Cast = dyn_cast<CastExpr>(S))
    enter(Cast, In);
  for (const Stmt *Child : S->children())
    walk(Child, In);
}

void Loads::enter(const CastExpr *Cast, const Surroundings &In) {
  const Expr *Place = loaded(Cast);
  if (!Place || !Place->getType()->isScalarType() || Place->refersToBitField() ||
      hasSideEffects(Place) || !mapped(Place))
    return;
  auto Not = [&](const char *Why) {
    Unannounced.push_back(Program::place(*Current->Home, Cast->getBeginLoc()) + ": " + Why);
  };
  if (In.Decided)
    return Not("what is looked at here depends on what is looked at elsewhere");
  auto New = std::make_unique<Load>();
  New->Place = Place;
  if (In.Loop) {
    const Turns &Here = turns(In.Loop);
    Change Now = Here.ofPlace(Place);
    if (In.InCondition) {
      New->Before = Now == Change::None ? In.Loop : nullptr;
    } else if (In.Certain && Here.Over && Now != Change::Any) {
      New->Before = In.Loop;
      New->Over = Here.Over;
    }
  }
  New->Region = region(New->Before ? loopAround(*Current, New->Before) : In.Loop);
  if (!New->Region)
    return Not("too little is done from one time to the next");
  if (New->Before)
    Befores[New->Before].push_back(Cast);
  Made[Cast] = std::move(New);
}

const Stmt *Loads::loopAround(const Function &F, const Stmt *S) const {
  const Stmt *Part = S;
  for (const Stmt *Up = F.Parents.lookup(S); Up; Part = Up, Up = F.Parents.lookup(Up))
    if (const auto *For = dyn_cast<ForStmt>(Up);
        For ? For->getInit() != Part : bodyOf(Up) != nullptr)
      return Up;
  return nullptr;
}

// The body of the innermost loop, or else of the function, with enough work between its iterations or calls; or null.
const Stmt *Loads::region(const Stmt *Innermost) {
  const ASTContext &Context = Current->Home->context();
  auto Counted = [&](const Stmt *Body) {
    const auto *Block = dyn_cast<CompoundStmt>(Body);
    bool There = Block ? afterBrace(*Current->Home, Block).has_value()
                       : statementText(*Current->Home, Body).Valid;
    return There ? Body : nullptr;
  };
  for (const Stmt *Loop = Innermost; Loop; Loop = loopAround(*Current, Loop))
    if (turnWork(Loop, Context) >= Enough)
      if (const Stmt *Body = Counted(bodyOf(Loop)))
        return Body;
  if (!repeated(*Current) || callWork(*Current) < Enough)
    return nullptr;
  return Counted(Current->Decl->getBody());
}

// Work from one call of a function to the next.
uint64_t Loads::callWork(const Function &F) {
  uint64_t Least = work(F.Decl->getBody(), F.Home->context());
  if (F.AddressTaken || !Busy.insert(&F).second)
    return Least;
  uint64_t Own = Least;
  Least = Much;
  for (auto &[Caller, Call] : std::vector(Callers[&F])) {
    const Stmt *Loop = loopAround(*Caller, Call);
    Least = std::min(
        Least, std::max(Own, Loop ? turnWork(Loop, Caller->Home->context()) : callWork(*Caller)));
  }
  Busy.erase(&F);
  return Least;
}

uint64_t Loads::turnWork(const Stmt *Loop, const ASTContext &Context) {
  uint64_t Sum = work(bodyOf(Loop), Context);
  if (const auto *For = dyn_cast<ForStmt>(Loop))
    return Sum + work(For->getCond(), Context) + work(For->getInc(), Context);
  if (const auto *While = dyn_cast<WhileStmt>(Loop))
    return Sum + work(While->getCond(), Context);
  return Sum + work(cast<DoStmt>(Loop)->getCond(), Context);
}

// Work in operations; a branch counts half.
uint64_t Loads::work(const Stmt *S, const ASTContext &Context) {
  if (!S || isa<UnaryExprOrTypeTraitExpr>(S))
    return 0;
  auto [At, Fresh] = Works.try_emplace(S, 0); // ends a recursive call
  if (!Fresh)
    return At->second;
  uint64_t Sum = 0;
  if (bodyOf(S)) {
    uint64_t Times = Often;
    if (const auto *For = dyn_cast<ForStmt>(S)) {
      Sum = work(For->getInit(), Context);
      if (turns(For).Over)
        Times = turns(For).Over->turns(Context).value_or(Often);
    }
    Sum += std::min(Times, Much) * std::min(turnWork(S, Context), Much >> 20);
  } else if (const auto *If = dyn_cast<IfStmt>(S)) {
    Sum = work(If->getCond(), Context) +
          (work(If->getThen(), Context) + work(If->getElse(), Context)) / 2;
  } else {
    for (const Stmt *Child : S->children())
      Sum += work(Child, Context);
    if (const auto *Call = dyn_cast<CallExpr>(S)) {
      const Function *F = P.function(directCallee(Call));
      Sum += F ? work(F->Decl->getBody(), F->Home->context()) : LibraryCall;
    }
    const auto *Unary = dyn_cast<UnaryOperator>(S);
    const auto *Member = dyn_cast<MemberExpr>(S);
    Sum += isa<BinaryOperator, ConditionalOperator, ArraySubscriptExpr>(S) ||
           (Member && Member->isArrow()) || (Unary && Unary->getOpcode() != UO_AddrOf);
  }
  return Works[S] = std::min(Sum, Much);
}

} // namespace foreread::slicer
