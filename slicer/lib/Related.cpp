// The fixpoint and the marks.
#include "Related.h"

#include "Cxx.h"
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
  // Decisions only grow: a read becomes a fetch once its data is needed.
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
  for (NodeId Same : Pointers.overlapping(Id))
    mark(Same);
  const Node &Now = P.Nodes[Id];
  // Statements of an allocating function about its memory apply to the memory of each caller.
  if (Now.Kind == NodeKind::Heap && Now.Site)
    if (const auto *Call = dyn_cast<CallExpr>(Now.Site))
      if (Function *F = P.function(directCallee(Call)); F && F->Allocates)
        for (NodeId Inner : Pointers.pointees(P.result(*F)))
          mark(Inner);
}

void Related::markAll(const NodeSet &Set) {
  NodeSet New;
  New.intersectWithComplement(Set, Marked);
  for (NodeId Id : New)
    mark(Id);
}

// Marks all bytes of the objects that a pointer may point to.
void Related::markPointees(const Expr *Pointer) {
  NodeSet Objects = Pointers.pointees(Pointer);
  Objects.intersectWithComplement(Entire);
  if (Objects.empty())
    return;
  Entire |= Objects;
  for (NodeId Object : Objects) {
    markAll(Pointers.whole(Object));
    if (P.Nodes[Object].Kind == NodeKind::Varargs)
      continue;
    // A va_list leads to the arguments, and these to their strings.
    for (NodeId Inner : Pointers.pointees(Object))
      if (P.Nodes[Inner].Kind == NodeKind::Varargs) {
        mark(Inner);
        for (NodeId String : Pointers.pointees(Inner))
          markAll(Pointers.whole(String));
      }
  }
}

// Marks everything that can be reached from the given objects.
void Related::markReachable(const NodeSet &Roots) {
  std::vector<NodeId> Work;
  for (NodeId Object : Roots)
    Work.push_back(Object);
  while (!Work.empty()) {
    NodeId Object = Work.back();
    Work.pop_back();
    // An object that was reached before is marked with all that it leads to.
    if (!Followed.test_and_set(Object))
      continue;
    for (NodeId Part : Pointers.whole(Object)) {
      mark(Part);
      Followed.set(Part);
      for (NodeId Next : Pointers.pointees(Part))
        if (!Followed.test(Next))
          Work.push_back(Next);
    }
  }
}

void Related::keep(const Stmt *S) {
  Changed |= Kept.insert(S).second;
  // A statement may be part of the trees of several functions: it is kept in each.
  auto &Here = Layouts[Current->Index];
  auto At = Here.Range.find(S);
  if (At != Here.Range.end() && !isa<CompoundStmt>(S) && !Here.Leaf[At->second.first])
    Changed = Here.Leaf[At->second.first] = true;
}

// True if a call of the program can be extended for the prefetch thread: its text must be editable, and belong to this
// unit alone.
bool Related::meets(const CallExpr *Call) const {
  return Current->AtHand && !Current->Shared && editable(*Current, Call);
}

// True if the program can count the call, at the call itself or at the macro around it.
bool Related::countable(const CallExpr *Call) const {
  return Current->AtHand && (editable(*Current, Call) || expansionAround(*Current, Call));
}

void Related::mustMeet(const CallExpr *Call) {
  if (meets(Call))
    return;
  if (!Current->AtHand || Current->Shared)
    return refuse(*Current, "it is defined in a header");
  refuse(*Current, std::string("a call of ") + P.spec(Call)->Name + "() stands in a macro");
}

void Related::refuse(Function &F, const std::string &Why) {
  if (!F.WholeBecause.empty())
    return;
  F.WholeBecause = Why;
  Refused = true;
}

// An effect of the current function. Direct assignments to its own local variables are none.
void Related::effect(const NodeSet &Touched, bool Direct) {
  if (Effectful.test(Current->Index))
    return;
  bool Outside = Touched.empty();
  for (NodeId Id : Touched) {
    const Node &Now = P.Nodes[Id];
    bool Own = Now.Kind == NodeKind::Variable && Now.Local &&
               Now.Decl->getDeclContext() == Current->Decl;
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
  // Functions that the C++ library may call without having received their address.
  for (auto &F : P.Functions) {
    const auto *Method = dyn_cast<CXXMethodDecl>(F->Decl);
    if (Method && (Method->isVirtual() || Method->isOverloadedOperator() ||
                   isa<CXXConstructorDecl, CXXDestructorDecl>(Method)))
      Reach(F.get());
  }
  while (!Work.empty()) {
    Function *F = Work.back();
    Work.pop_back();
    for (const Expr *Made : F->Makes)
      if (Function *Body = P.thread(Made).Target)
        Reach(Body);
    for (const CallExpr *Call : F->Calls) {
      if (Function *Body = P.thread(Call).Target)
        Reach(Body);
      for (Function *Target : Pointers.callees(Call).Functions)
        Reach(Target);
      if (!P.function(directCallee(Call))) {
        for (const Expr *Argument : Call->arguments())
          for (Function *Target : Pointers.functions(Argument))
            Reach(Target);
        for (Function *Target : P.runThrough(directCallee(Call)))
          Reach(Target);
      }
    }
  }
}

void Related::run() {
  Layouts.resize(P.Functions.size());
  do {
    findCatching();
    Refused = false;
    Marked.clear();
    Followed.clear();
    Entire.clear();
    Kept.clear();
    Effects.clear();
    Regions.clear();
    InPlace.clear();
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
    if (Function *Main = P.mainFunction()) {
      Reached.set(Main->Index);
      if (const CompoundStmt *Body = blockOf(Main->Decl))
        if (!Main->AtHand || !afterBrace(*Main->Home, Body))
          refuse(*Main, Main->AtHand ? "its brace stands in a macro" : "it is defined in a header");
    }
    do {
      Changed = false;
      for (auto &F : P.Functions)
        if (F->Reachable && !Skipped[F->Index]) {
          Current = F.get();
          initialisers(*F);
          statement(F->Decl->getBody());
        }
    } while (Changed || decideFailures());
    refuseLeftWhole();
    refuseUnlike();
    findCounting();
    for (const Expr *Cast : InPlace)
      Refused |= Looks.withdraw(Cast);
    for (auto &F : P.Functions)
      if (!Skipped[F->Index] && !F->WholeBecause.empty() && hasEffects(*F))
        HadEffects.set(F->Index);
  } while (Refused);
}

bool Related::passes(const CallExpr *Call, unsigned Argument) {
  const Expr *E = Call->getArg(Argument);
  if (Kept.contains(E) || Effects.contains(E))
    return true;
  // A copy of an object needs its original.
  if (!E->isGLValue() && runsCode(E->getType()))
    return true;
  unsigned Number = Argument - firstArgument(Call);
  for (Function *Target : Pointers.callees(Call).Functions) {
    if (Number >= Target->Decl->getNumParams())
      return true;
    NodeId Parameter = P.parameter(*Target, Number);
    if (Wholes.test(Target->Index) || related(Parameter) ||
        relatedAny(P.fields(P.Nodes[Parameter].Type)))
      return true;
  }
  return false;
}

bool Related::passesObject(const CallExpr *Call) {
  const Expr *Object = objectOf(Call);
  if (!Object || Kept.contains(Object) || Effects.contains(Object) || virtualCallee(Call))
    return Object;
  for (Function *Target : Pointers.callees(Call).Functions)
    if (Wholes.test(Target->Index) || related(P.self(*Target)) || Target->lambda())
      return true;
  return false;
}

} // namespace foreread::slicer
