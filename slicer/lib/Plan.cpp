#include "Plan.h"

#include <cstdio>

#include "clang/Basic/CharInfo.h"
#include "llvm/ADT/StringSet.h"

#include "Cxx.h"
#include "Edits.h"

namespace foreread::slicer {

using namespace clang;

Plan::Plan(Program &P, PointsTo &Pointers, Files &Opened, Related &Slice, const Options &Chosen)
    : P(P), Opened(Opened), Slice(Slice), Chosen(Chosen) {
  Told = std::make_unique<Buffers>(P, Pointers, Slice);
  Allocated = std::make_unique<Untouched>(P, Pointers, Slice);
  Function *Main = P.mainFunction();
  if (!Main || !Slice.translated(*Main))
    return;
  for (auto &F : P.Functions) {
    if (F->CountsItself)
      countWhole(*F);
    if (!Slice.translated(*F))
      continue;
    Anything |= Slice.countsIn(*F);
    for (const CallExpr *Call : F->Calls) {
      const CallSpec *Spec = P.spec(Call);
      Treatment Now = Slice.treatment(Call);
      if (!Spec)
        continue;
      Meeting Here;
      Here.Counted =
          Now == Treatment::Touch ||
          (Spec->Kind == CallKind::Read && (Now == Treatment::Prefetch || Now == Treatment::Fetch));
      Anything |= Here.Counted;
      if (Now == Treatment::Receive)
        Here.Channel = ++Channels;
      if (Spec->Kind == CallKind::Open && Now == Treatment::Prefetch && Spec->Result == 'F' &&
          Chosen.Open == OpenMode::Send)
        Here.Channel = ++Channels;
      else if (needsWait(*F, Call, *Spec) && F->AtHand && !F->Shared && editable(*F, Call))
        Here.Point = ++Points;
      if (Here.Counted || Here.Channel || Here.Point)
        Meetings[Call] = Here;
    }
  }
  for (auto &F : P.Functions)
    if (Slice.translated(*F))
      findRemote(*F, Pointers);
  for (auto &F : P.Functions)
    if (F.get() != Main && Slice.translated(*F) && !Remote.contains(F.get())) {
      llvm::DenseSet<const Function *> Visited;
      if (computesOnly(*F, Visited))
        AsIs.insert(F.get());
    }
  for (auto &F : P.Functions)
    if (Slice.translated(*F))
      exportTargets(*F, Pointers);
  nameFunctions();
  findInPlace();
}

// Finds the functions that read at, move or ask for the position of a descriptor or stream, and their callers.
void Plan::findInPlace() {
  llvm::DenseMap<const Function *, std::vector<const Function *>> Callers;
  std::vector<const Function *> Work;
  for (auto &F : P.Functions) {
    for (const Function *Run : Slice.runBy(*F))
      Callers[Run].push_back(F.get());
    bool Moves = llvm::any_of(F->Calls, [&](const CallExpr *Call) {
      const CallSpec *Spec = P.spec(Call);
      llvm::StringRef Name = Spec ? plainName(Spec->Name) : "";
      return Spec && (Spec->Kind == CallKind::Read || Spec->Kind == CallKind::Seek || Spec->Kind == CallKind::Tell) &&
             Name != "pread" && Name != "preadv" && Name != "fstat" && Name != "fileno";
    });
    if (Moves && InPlace.insert(F.get()).second)
      Work.push_back(F.get());
  }
  while (!Work.empty()) {
    const Function *F = Work.back();
    Work.pop_back();
    for (const Function *Caller : Callers.lookup(F))
      if (InPlace.insert(Caller).second)
        Work.push_back(Caller);
  }
}

bool Plan::readsInPlace(const FunctionDecl *Library) const {
  return llvm::any_of(P.runThrough(Library), [&](const Function *F) { return readsInPlace(*F); });
}

// Counts the reads of a function that both threads run unchanged.
void Plan::countWhole(const Function &F) {
  for (const CallExpr *Call : F.Calls)
    if (const CallSpec *Spec = P.spec(Call); Spec && Spec->Kind == CallKind::Read)
      Meetings[Call].Counted = true;
}

void Plan::nameFunctions() {
  // Functions with the same name are numbered, in the whole program.
  llvm::StringSet<> Taken;
  for (auto &F : P.Functions)
    if (!F->Home->cxx())
      Taken.insert(F->Name);
  for (auto &F : P.Functions) {
    if (!F->Home->cxx())
      continue;
    std::string Name = F->Name;
    size_t Scope;
    while ((Scope = Name.find("::")) != std::string::npos)
      Name.replace(Scope, 2, "_");
    for (char &Each : Name)
      Each = clang::isAsciiIdentifierContinue(Each) ? Each : '_';
    std::string Free = Name;
    for (unsigned Number = 2; !Taken.insert(Free).second; ++Number)
      Free = Name + "_" + std::to_string(Number);
    Names[F.get()] = Free;
  }
  // Lengthens the prefix until no function of the program has one of the names.
  while (llvm::any_of(P.Functions, [&](const auto &F) {
    return Taken.contains(Prefix + (F->Home->cxx() ? Names.lookup(F.get()) : F->Name));
  }))
    Prefix += "_";
}

void Plan::findRemote(const Function &Caller, PointsTo &Pointers) {
  for (const CallExpr *Call : Caller.Calls)
    if (virtualCallee(Call) && Slice.treatment(Call) == Treatment::Translate)
      for (const Function *Target : seenBy(*Caller.Home, Pointers.callees(Call).Functions))
        if (Target->Home != Caller.Home) {
          Remote.insert(Target);
          Exported.insert(Target);
        }
}

// Finds functions that are called through pointers or passed to library functions, from units that cannot name them.
void Plan::exportTargets(const Function &Caller, PointsTo &Pointers) {
  for (const CallExpr *Call : Caller.Calls) {
    bool Named = directCallee(Call) && !P.spec(Call);
    if (Named || Slice.treatment(Call) == Treatment::Drop)
      continue;
    for (const Function *Target :
         P.spec(Call) ? Slice.targets(Call) : Pointers.callees(Call).Functions)
      if (elsewhere(*Target, Caller) && !runsAsIs(*Target))
        Exported.insert(Target);
  }
}

namespace {

// The only call in a statement, if each execution of the statement makes it; else null.
const CallExpr *onlyCall(const Function &F, const Stmt *Within) {
  const CallExpr *Only = nullptr;
  for (const CallExpr *Call : F.Calls) {
    bool Certain = true, Inside = false;
    for (const Stmt *At = Call; At && !Inside; At = F.Parents.lookup(At)) {
      const auto *Binary = dyn_cast<BinaryOperator>(At);
      Certain &= !isa<AbstractConditionalOperator, StmtExpr>(At) && !(Binary && Binary->isLogicalOp());
      Inside = At == Within;
    }
    if (Inside && (Only || !Certain))
      return nullptr;
    Only = Inside ? Call : Only;
  }
  return Only;
}

} // namespace

// The offset that the statement before a call has moved the call's descriptor to; or null.
const Expr *Plan::soughtBefore(const Function &F, const CallExpr *Call) const {
  const Stmt *At = Call, *Block = F.Parents.lookup(Call);
  for (; isa_and_nonnull<Expr, DeclStmt>(Block); Block = F.Parents.lookup(At))
    At = Block;
  if (onlyCall(F, At) != Call)
    return nullptr;
  // In an if statement the condition is evaluated first.
  if (const auto *If = dyn_cast_or_null<IfStmt>(Block);
      If && If->getCond() == At && !If->getInit() && !If->getConditionVariable()) {
    At = If;
    Block = F.Parents.lookup(If);
  }
  const auto *Around = dyn_cast_or_null<CompoundStmt>(Block);
  if (!Around)
    return nullptr;
  auto Here = llvm::find(Around->body(), At);
  const auto *Before = Here == Around->body_begin() ? nullptr : dyn_cast<Expr>(*std::prev(Here));
  const CallExpr *Seek = Before ? onlyCall(F, Before) : nullptr;
  const CallSpec *Of = Seek ? P.spec(Seek) : nullptr;
  if (!Of || plainName(Of->Name) != "lseek" || Seek->getNumArgs() != 3)
    return nullptr;
  Expr::EvalResult Whence;
  const auto *One = dyn_cast<DeclRefExpr>(strip(Seek->getArg(0)));
  const auto *Other = dyn_cast<DeclRefExpr>(strip(Call->getArg(0)));
  bool Same = One && Other && One->getDecl() == Other->getDecl();
  return Same && Seek->getArg(2)->EvaluateAsInt(Whence, F.Home->context()) &&
                 Whence.Val.getInt() == SEEK_SET
             ? Seek->getArg(1)
             : nullptr;
}

// The bytes of a file that a call reads or writes, the last one included, if they are known.
std::optional<Range> Plan::bytes(const Function &F, const CallExpr *Call, const CallSpec &Spec) {
  llvm::StringRef Name = plainName(Spec.Name);
  const Expr *Place = nullptr;
  if ((Name == "pread" || Name == "pwrite") && Call->getNumArgs() == 4)
    Place = Call->getArg(3);
  else if ((Name == "read" || Name == "write") && Call->getNumArgs() == 3)
    Place = soughtBefore(F, Call);
  if (!Place)
    return std::nullopt;
  Ranges Known(F);
  std::optional<Range> Length = Known.of(Call->getArg(2)), Offset = Known.of(Place);
  if (!Length || !Offset || Length->Last < 1 || Offset->First < 0)
    return std::nullopt;
  return Range{Offset->First, Offset->Last + Length->Last - 1};
}

// True if the prefetch thread uses data of a file; only of the given bytes, if there are any.
bool Plan::dataNeeded(const File &Of, std::optional<Range> Written) {
  for (auto &F : P.Functions) {
    if (!Slice.translated(*F))
      continue;
    for (const CallExpr *Call : F->Calls) {
      const CallSpec *Spec = P.spec(Call);
      if (!Spec || Spec->Kind != CallKind::Read || Slice.treatment(Call) != Treatment::Fetch ||
          !llvm::is_contained(Opened.concerning(Call, *Spec), &Of))
        continue;
      std::optional<Range> Looked = bytes(*F, Call, *Spec);
      if (!Written || !Looked || (Looked->First <= Written->Last && Written->First <= Looked->Last))
        return true;
    }
  }
  return false;
}

// Read after write: a read that is only announced moves no data. The prefetch thread has to wait for a write only if it
// uses data that the write may change, or if the program extends the file.
bool Plan::needsWait(const Function &F, const CallExpr *Call, const CallSpec &Spec) {
  Treatment Now = Slice.treatment(Call);
  if (Spec.Kind == CallKind::Open)
    if (File *Of = Opened.opened(Call); Of && Now == Treatment::Prefetch)
      return Of->MayAppear || (Of->MayChange && dataNeeded(*Of, std::nullopt)) ||
             Chosen.Open == OpenMode::Wait;
  bool Stream = false;
  for (const Expr *Argument : Call->arguments())
    Stream |= Argument->getType()->isPointerType() &&
              Argument->getType()->getPointeeType().getAsString() == "FILE";
  llvm::StringRef Name = plainName(Spec.Name);
  bool Flushes =
      Stream ? Name == "fflush" || Spec.Kind == CallKind::Seek || Spec.Kind == CallKind::Close
             : Spec.Kind == CallKind::Write;
  if (!Flushes || (Now != Treatment::Assume && Now != Treatment::Prefetch))
    return false;
  for (File *Of : Opened.concerning(Call, Spec))
    if (Of->Wanted && Of->Written && (Of->Creates || dataNeeded(*Of, bytes(F, Call, Spec))))
      return true;
  return false;
}

bool Plan::allKept(const Stmt *S) {
  if (!S || isa<NullStmt, BreakStmt, ContinueStmt, GotoStmt>(S))
    return true;
  if (isa<Expr>(S))
    return Slice.keeps(S);
  if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D))
        if (Variable->isStaticLocal() || (Variable->getInit() && !Slice.keeps(S)))
          return false;
    return true;
  }
  if (const auto *Return = dyn_cast<ReturnStmt>(S))
    return !Return->getRetValue() || Slice.keeps(S);
  if (isa<AsmStmt>(S))
    return false;
  if (const auto *If = dyn_cast<IfStmt>(S))
    return Slice.keeps(S) && allKept(If->getThen()) && allKept(If->getElse());
  if (const auto *While = dyn_cast<WhileStmt>(S))
    return Slice.keeps(S) && allKept(While->getBody());
  if (const auto *Do = dyn_cast<DoStmt>(S))
    return Slice.keeps(S) && allKept(Do->getBody());
  if (const auto *For = dyn_cast<ForStmt>(S))
    return Slice.keeps(S) && allKept(For->getInit()) && allKept(For->getInc()) &&
           allKept(For->getBody());
  if (const auto *Switch = dyn_cast<SwitchStmt>(S))
    return Slice.keeps(S) && allKept(Switch->getBody());
  if (const auto *Case = dyn_cast<CaseStmt>(S))
    return allKept(Case->getSubStmt());
  for (const Stmt *Child : S->children())
    if (!allKept(Child))
      return false;
  return true;
}

bool Plan::computesOnly(const Function &F, llvm::DenseSet<const Function *> &Visited) {
  if (!Visited.insert(&F).second)
    return true;
  if (F.Decl->isVariadic() || !allKept(F.Decl->getBody()) || Slice.countsIn(F))
    return false;
  // Prefetch functions cannot call a private function; constructions are more than computations; a function that passes
  // functions to the library has to pass their prefetch versions.
  if (isPrivate(F.Decl) || !F.Makes.empty() || F.Gives)
    return false;
  for (const CallExpr *Call : F.Calls) {
    const CallSpec *Spec = P.spec(Call);
    if (Spec) {
      if ((Spec->Kind != CallKind::Private && Spec->Kind != CallKind::Query) ||
          !Slice.targets(Call).empty() || Slice.treatment(Call) == Treatment::Touch ||
          llvm::StringRef(Spec->Name) == "dup" || untouched(Call))
        return false;
      continue;
    }
    if (!directCallee(Call) || virtualCallee(Call))
      return false;
    if (const Function *Target = P.function(directCallee(Call))) {
      if (!Slice.translated(*Target) || !computesOnly(*Target, Visited))
        return false;
    } else if (Slice.treatment(Call) != Treatment::Keep) {
      return false;
    }
  }
  return true;
}

std::string Plan::nameOf(const Function &F) const {
  if (runsAsIs(F))
    return F.Name;
  std::string Name = Prefix + (F.Home->cxx() ? Names.lookup(&F) : F.Name);
  if (Exported.contains(&F))
    Name += "_" + std::to_string(F.Home->Index);
  return Name;
}

} // namespace foreread::slicer
