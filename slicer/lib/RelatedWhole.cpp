// Functions that are left whole. The prefetch thread runs them unchanged, with all memory that they read. If such a
// function makes the same reads in both threads, its own text counts them.
#include "Cxx.h"
#include "Edits.h"
#include "Exchange.h"
#include "Related.h"
#include "Walk.h"

namespace foreread::slicer {

using namespace clang;

// A function that runs unchanged in the prefetch thread: everything that it and its callees read is needed.
void Related::whole(Function &F) {
  // A lambda expression is printed where it is created: there its slice is used.
  const Function *Around = nullptr;
  if (F.lambda())
    Around = P.function(dyn_cast<FunctionDecl>(F.method()->getParent()->getDeclContext()));
  if (Around && F.WholeBecause.empty() && !Wholes.test(Around->Index))
    return mark(P.result(F));
  if (!Wholes.test_and_set(F.Index))
    return;
  Changed = true;
  mark(P.result(F));
  Function *Outer = Current;
  bool Was = AsItIs;
  Current = &F;
  AsItIs = true;
  if (const auto *Constructor = dyn_cast<CXXConstructorDecl>(F.Decl))
    for (const CXXCtorInitializer *Part : Constructor->inits())
      needAll(Part->getInit());
  needAll(F.Decl->getBody());
  Current = Outer;
  AsItIs = Was;
}

void Related::needAll(const Stmt *S) {
  if (!S)
    return;
  if (const auto *E = dyn_cast<Expr>(S))
    return value(E);
  if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D)) {
        typeSizes(Variable->getType());
        if (Variable->getInit())
          value(Variable->getInit());
        if (const CXXDestructorDecl *End = destructorOf(Variable->getType()))
          runs(End);
      }
    return;
  }
  for (const Stmt *Child : S->children())
    needAll(Child);
}

// A call inside such a function.
void Related::callAsItIs(const CallExpr *Call) {
  value(Call->getCallee());
  const CallSpec *Spec = P.spec(Call);
  unsigned Number = 0;
  for (const Expr *Argument : operandsOf(Call)) {
    hand(Argument);
    char Letter = Spec ? Spec->parameter(Number++) : 'w';
    // Memory that the call only writes is needed only if something reads it.
    if (Letter != 'd' && Letter != 'w')
      markPointees(Argument);
    if (!Spec && !P.function(directCallee(Call)))
      operand(Argument);
    for (Function *F : Pointers.functions(Argument))
      whole(*F);
  }
  for (Function *F : P.runThrough(directCallee(Call)))
    whole(*F);
  for (Function *F : Pointers.callees(Call).Functions)
    whole(*F);
}

std::vector<Function *> Related::runBy(const Function &F) {
  std::vector<Function *> All;
  for (const CallExpr *Call : F.Calls) {
    llvm::append_range(All, Pointers.callees(Call).Functions);
    if (Function *Body = P.thread(Call).Target)
      All.push_back(Body);
    if (P.function(directCallee(Call)))
      continue;
    llvm::append_range(All, P.runThrough(directCallee(Call)));
    for (const Expr *Argument : Call->arguments())
      llvm::append_range(All, Pointers.functions(Argument));
  }
  for (const Expr *Each : F.Makes) {
    if (Function *Body = P.thread(Each).Target)
      All.push_back(Body);
    const auto *Made = dyn_cast<CXXConstructExpr>(Each);
    if (Made)
      llvm::append_range(All, P.runThrough(Made->getConstructor()));
    llvm::SmallVector<const FunctionDecl *, 2> Runs;
    if (Made)
      Runs = {Made->getConstructor(), destructorOf(Made->getType())};
    else
      Runs = operatorsOf(cast<LambdaExpr>(Each)->getLambdaClass());
    for (const FunctionDecl *Run : Runs)
      if (Function *Known = P.function(Run))
        All.push_back(Known);
  }
  return All;
}

// True if a library call does the same in the prefetch thread as in the program, judged by its kind and its files.
bool Related::sameThere(const Function &F, const CallExpr *Call, const CallSpec &Spec) {
  std::vector<File *> Of = Opened.concerning(Call, Spec);
  auto Unchanging = [](const File *Each) { return Each->Wanted && !Each->MayChange; };
  switch (Spec.Kind) {
  case CallKind::Private:
  case CallKind::Query:
  case CallKind::Close:
  case CallKind::Exit:
    return true;
  case CallKind::Open: {
    const File *Each = Opened.opened(Call);
    return Each && Each->Regular && !Each->Writes && !Each->Creates && !Each->MayChange;
  }
  case CallKind::Read:
    return !Of.empty() && llvm::all_of(Of, Unchanging) && F.AtHand &&
           (editable(F, Call) || expansionAround(F, Call));
  case CallKind::Seek:
  case CallKind::Tell:
    return llvm::all_of(Of, Unchanging);
  case CallKind::Write:
    return !resultUsed(F, Call) && llvm::none_of(Of, [](const File *Each) { return Each->Wanted; });
  case CallKind::Effect:
  case CallKind::Handler:
    return !resultUsed(F, Call);
  default:
    return false;
  }
}

// True if a function and all its callees make the same reads when the prefetch thread runs them unchanged.
bool Related::makesSameReads(Function &F, llvm::DenseSet<const Function *> &Visited) {
  if (!Visited.insert(&F).second)
    return true;
  for (const CallExpr *Call : F.Calls) {
    const CallSpec *Spec = P.spec(Call);
    if (Spec ? !sameThere(F, Call, *Spec) : !notCarried(Call).empty())
      return false;
    F.Reads |= Spec && Spec->Kind == CallKind::Read;
    PointsTo::Callees Callees = Pointers.callees(Call);
    if (!Spec && !directCallee(Call) && (!Callees.Complete || Callees.Others))
      return false;
  }
  for (Function *Each : runBy(F)) {
    if (!makesSameReads(*Each, Visited))
      return false;
    F.Reads |= Each->Reads;
  }
  return true;
}

// Refuses functions that the library calls at unknown times, and functions that cannot have a prefetch version.
void Related::refuseLeftWhole() {
  for (auto &F : P.Functions) {
    llvm::DenseSet<const Function *> Visited;
    bool Once = (F->lambda() && !F->RunByLibrary) || (givenVersion(*F) && !F->GivenByPointer);
    if (F->Reachable && hasEffects(*F) && F->NotCarried.empty() &&
        (F->RunByLibrary || (F->Through && !Once && !makesSameReads(*F, Visited))))
      refuse(*F, "a function of the library calls it");
    if (F->NotCarried.empty() || !(translated(*F) || hasEffects(*F)))
      continue;
    refuse(*F, F->NotCarried);
  }
}

// The insertions into the text of a function, with their places.
std::set<std::string> Related::countedIn(const Function &F) const {
  std::set<std::string> All;
  auto Add = [&](const Stmt *At, llvm::StringRef What) {
    auto Where = F.Home->sources().getDecomposedSpellingLoc(At->getBeginLoc());
    All.insert(std::to_string(Where.second) + " " + What.str());
  };
  for (const CallExpr *Call : F.Calls) {
    const CallSpec *Spec = P.spec(Call);
    Treatment Now = treatment(Call);
    if (Spec && (Now == Treatment::Touch ||
                 (Spec->Kind == CallKind::Read && (Now == Treatment::Prefetch || Now == Treatment::Fetch))))
      Add(Call, std::string(Spec->Name) + (editable(F, Call) ? "" : " in a macro"));
    if (Spec && meetsAt(Call, *Spec))
      Add(Call, "meets");
    if (const Function *Body = P.thread(Call).Target; Body && countsThread(*Body))
      Add(Call, "a thread");
  }
  for (const Expr *Made : F.Makes)
    if (const Function *Body = P.thread(Made).Target; Body && countsThread(*Body))
      Add(Made, "a thread");
  if (counts(F.Decl->getBody()))
    Add(F.Decl->getBody(), "loads");
  for (const auto &[Part, Outer] : F.Parents)
    if (counts(Part))
      Add(Part, "loads");
  return All;
}

// Instantiations of one template share one text: all are sliced if the insertions are the same for all, else none.
// Synchronization points and channels would have to differ between them.
void Related::refuseUnlike() {
  for (auto &F : P.Functions) {
    std::vector<Function *> Alike;
    for (Function *Each : P.sameText(*F))
      if (Each->Reachable)
        Alike.push_back(Each);
    if (Alike.size() < 2 || Alike.front() != F.get() ||
        llvm::none_of(Alike, [&](const Function *Each) { return mayHaveEffects(*Each); }))
      continue;
    std::set<std::string> Counted = countedIn(*F);
    bool Meets = llvm::any_of(Counted, [](llvm::StringRef Each) { return Each.ends_with(" meets"); });
    if (!Meets && llvm::all_of(Alike, [&](const Function *Each) {
          return Each->WholeBecause.empty() && countedIn(*Each) == Counted;
        }))
      continue;
    for (Function *Each : Alike) {
      refuse(*Each, "it is one of several that are made from a template");
      HadEffects.set(Each->Index);
    }
  }
}

// Functions with counted calls, and functions where the threads meet in another way, each with all their callers.
struct Related::Reading {
  llvm::DenseSet<const Function *> Reads, Meets;

  explicit Reading(Related &Slice) {
    llvm::DenseMap<const Function *, std::vector<const Function *>> Callers;
    for (auto &F : Slice.P.Functions) {
      for (const Function *Run : Slice.runBy(*F))
        Callers[Run].push_back(F.get());
      if (Slice.countsIn(*F))
        Reads.insert(F.get());
      for (const CallExpr *Call : F->Calls)
        if (const CallSpec *Spec = Slice.P.spec(Call)) {
          if (Spec->Kind == CallKind::Read || Slice.treatment(Call) == Treatment::Touch)
            Reads.insert(F.get());
          if (Slice.meetsAt(Call, *Spec))
            Meets.insert(F.get());
        }
    }
    for (auto *Each : {&Reads, &Meets}) {
      std::vector<const Function *> Work(Each->begin(), Each->end());
      while (!Work.empty()) {
        const Function *F = Work.back();
        Work.pop_back();
        for (const Function *Caller : Callers.lookup(F))
          if (Each->insert(Caller).second)
            Work.push_back(Caller);
      }
    }
  }
};

// True if the program sends data at a call, or may signal that it has reached it.
bool Related::meetsAt(const CallExpr *Call, const CallSpec &Spec) const {
  Treatment Now = treatment(Call);
  if (Now == Treatment::Receive || Now == Treatment::Spawn || (Spec.Kind == CallKind::Open && Chosen.Open != OpenMode::Self))
    return true;
  std::vector<File *> Of = Opened.concerning(Call, Spec);
  if (Spec.Kind == CallKind::Open)
    Of = {Opened.opened(Call)};
  return Spec.Kind != CallKind::Read && llvm::any_of(Of, [](const File *Each) {
           return Each && Each->Wanted && (Each->MayChange || Each->MayAppear || Each->Written);
         });
}

// True if the program can stop counting for the whole body of a function.
bool Related::mayPause(const Function &F) {
  if (!F.AtHand || F.Decl->isConstexpr() || isa<CoroutineBodyStmt>(F.Decl->getBody()) || F.lambda())
    return false;
  const CompoundStmt *Body = blockOf(F.Decl);
  if (!Body || Body != F.Decl->getBody() || !afterBrace(*F.Home, Body))
    return false;
  // Initialisers run before the body and are still counted.
  const auto *Constructor = dyn_cast<CXXConstructorDecl>(F.Decl);
  for (const CXXCtorInitializer *Part : Constructor ? Constructor->inits() : CXXConstructorDecl::init_const_range(nullptr, nullptr)) {
    if (!allOf(Part->getInit(), [](const Stmt *S) { return !isa<CallExpr, LambdaExpr>(S); }))
      return false;
    const auto *Made = dyn_cast<CXXConstructExpr>(Part->getInit()->IgnoreImplicit());
    if (const Function *Inner = Made ? P.function(Made->getConstructor()) : nullptr;
        Inner && (Inner->CountsItself || Inner->WholeBecause.empty()))
      return false;
  }
  return true;
}

// Decides which of the functions that are left whole and read files count for themselves. Destructors do not, because
// the prefetch thread does not destroy all objects. The callees of a function that does not count are not counted while
// it runs.
void Related::findCounting() {
  std::vector<Function *> Left;
  for (auto &F : P.Functions) {
    llvm::DenseSet<const Function *> Visited;
    bool Effects = hasEffects(*F) || HadEffects.test(F->Index);
    F->Pauses = false;
    F->CountsItself = !F->WholeBecause.empty() && F->Reachable && Effects && !F->RunByLibrary &&
                      !isa<CXXDestructorDecl>(F->Decl) && F->Name != "main" && makesSameReads(*F, Visited);
    if (F->Reachable && !F->WholeBecause.empty() && !F->CountsItself)
      Left.push_back(F.get());
  }
  Reading Within(*this);
  while (!Left.empty()) {
    Function *F = Left.back();
    Left.pop_back();
    auto Refuse = [&](Function *Each) {
      if (Each == F || !(hasEffects(*Each) || Each->CountsItself))
        return;
      if (Each->CountsItself)
        Left.push_back(Each);
      Each->CountsItself = false;
      refuse(*Each, "it is called from " + F->Name + ", which is left whole");
    };
    for (Function *Each : P.sameText(*F))
      Refuse(Each);
    std::vector<Function *> Runs = runBy(*F);
    bool Can = mayPause(*F);
    for (Function *Each : Runs)
      if (Each != F && (hasEffects(*Each) || Each->CountsItself)) {
        if (Within.Meets.contains(Each) || (Within.Reads.contains(Each) && !Can))
          Refuse(Each);
        F->Pauses |= Can && Within.Reads.contains(Each);
      }
  }
}

} // namespace foreread::slicer
