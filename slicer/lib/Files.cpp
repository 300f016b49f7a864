#include "Files.h"

#include <fcntl.h>

namespace foreread::slicer {

using namespace clang;

namespace {

// Indices of an opening call's path, flags and mode; -1 if there is none.
struct OpenShape {
  int Path, Flags, Mode;
};

OpenShape shape(llvm::StringRef Name) {
  if (Name == "open")
    return {0, 1, -1};
  if (Name == "openat")
    return {1, 2, -1};
  if (Name == "creat")
    return {0, -1, -1};
  return {0, -1, 1}; // fopen, freopen
}

const Expr *pathOf(const File &Of) {
  return Of.Site->getArg(shape(plainName(directCallee(Of.Site)->getName())).Path);
}

std::string constantString(const Expr *E) {
  const auto *Literal = dyn_cast<StringLiteral>(E->IgnoreParenCasts());
  return Literal && Literal->isOrdinary() ? Literal->getString().str() : std::string();
}

// Adds the access that the flags of open() allow.
void openedBy(File &New, int64_t Flags) {
  New.Reads |= (Flags & O_ACCMODE) != O_WRONLY;
  New.Writes |= (Flags & O_ACCMODE) != O_RDONLY;
  New.Creates |= (Flags & (O_CREAT | O_TRUNC | O_APPEND)) != 0;
}

// The same for the mode of fopen(); empty if unknown.
void openedBy(File &New, const std::string &Mode) {
  bool Both = Mode.find('+') != std::string::npos;
  New.Reads |= Mode.empty() || Mode[0] == 'r' || Both;
  New.Writes |= Mode.empty() || Mode[0] != 'r' || Both;
  New.Creates |= Mode.empty() || Mode[0] != 'r';
}

} // namespace

Files::Files(Program &P, PointsTo &Pointers, const Options &Wish)
    : P(P), Pointers(Pointers), Written(P) {
  for (llvm::StringRef Name : {"stdin", "stdout", "stderr"}) {
    auto Standard = std::make_unique<File>();
    Standard->Node = P.standardStream(Name);
    Standard->Path = Name.str();
    Standard->Reads = Name == "stdin";
    ByNode[Standard->Node] = Standard.get();
    All.push_back(std::move(Standard));
  }
  for (auto &F : P.Functions)
    for (const CallExpr *Call : F->Calls)
      if (const CallSpec *Spec = P.spec(Call))
        if (Spec->Kind == CallKind::Open || Spec->Kind == CallKind::Stream)
          add(*F, Call, *Spec);

  for (NodeId Id = 0; Id < P.Nodes.size(); ++Id) {
    const Node &Candidate = P.Nodes[Id];
    if (Candidate.Kind != NodeKind::Variable && Candidate.Kind != NodeKind::Field)
      continue;
    bool Annotated = llvm::is_contained(Wish.Prefetch, Candidate.Name);
    if (const auto *Note = Candidate.Decl->getAttr<AnnotateAttr>())
      Annotated |= Note->getAnnotation() == "foreread_prefetch";
    if (Annotated) {
      Choose = true;
      Chosen |= Pointers.pointees(Id);
    }
  }
  Choose |= !Wish.Prefetch.empty();

  for (auto &F : P.Functions) {
    if (!F->Reachable)
      continue;
    for (const CallExpr *Call : F->Calls) {
      const CallSpec *Spec = P.spec(Call);
      if (!Spec)
        continue;
      if (Spec->Kind == CallKind::Write)
        // A function that writes to one of several files does not write to those opened for reading only.
        for (File *Target : concerning(Call, *Spec))
          Target->Written |= Target->Writes || !Target->Regular;
      if (Spec->Kind == CallKind::Read || Spec->Kind == CallKind::Map)
        for (File *Source : concerning(Call, *Spec))
          Source->Wanted |= Source->Regular && Source->Reads && chosen(*Source);
    }
  }
  for (auto &Read : All)
    if (Read->Wanted)
      for (auto &Write : All)
        if ((Write->Writes || Write->Creates) && Write->Regular && Write->Opener->Reachable &&
            mayBeSame(*Read, *Write)) {
          Read->MayChange = true;
          Read->MayAppear |= Write->Creates;
        }
}

void Files::add(Function &F, const CallExpr *Call, const CallSpec &Spec) {
  auto New = std::make_unique<File>();
  New->Node = P.file(Call);
  New->Site = Call;
  New->Opener = &F;
  New->Regular = Spec.Kind == CallKind::Open && Spec.Result == 'F';
  if (New->Regular) {
    llvm::StringRef Name = plainName(directCallee(Call)->getName());
    OpenShape Is = shape(Name);
    int Count = Call->getNumArgs();
    if (Is.Path < Count)
      New->Path = constantString(Call->getArg(Is.Path));
    if (Name == "creat") {
      New->Reads = false;
      New->Writes = New->Creates = true;
    } else if (Is.Flags >= 0 && Is.Flags < Count) {
      auto Flags = Written.numbers(F, Call->getArg(Is.Flags));
      New->Reads = New->Writes = New->Creates = !Flags;
      for (int64_t Each : Flags.value_or(std::set<int64_t>()))
        openedBy(*New, Each);
    } else if (Is.Mode >= 0 && Is.Mode < Count) {
      New->Reads = false;
      for (const Values::Value &Each : Written.of(F, Call->getArg(Is.Mode)))
        openedBy(*New, constantString(Each.Written));
    }
  }
  ByNode[New->Node] = New.get();
  All.push_back(std::move(New));
}

bool Files::chosen(const File &Candidate) { return !Choose || Chosen.test(Candidate.Node); }

std::optional<Paths> Files::paths() {
  Paths Result;
  NodeSet Arguments;
  Arguments.set(P.state("arguments"));
  for (auto &Each : All) {
    if (!Each->Wanted)
      continue;
    // Paths relative to another directory are not supported.
    if (Each->MayAppear || plainName(directCallee(Each->Site)->getName()) == "openat")
      return std::nullopt;
    if (!Each->Path.empty())
      Result.Constants.push_back(Each->Path);
    else if (Pointers.pointees(pathOf(*Each)) == Arguments)
      Result.Arguments = true;
    else
      return std::nullopt;
  }
  llvm::sort(Result.Constants);
  Result.Constants.erase(llvm::unique(Result.Constants), Result.Constants.end());
  return Result;
}

// Two constant paths are the same file if they are equal. Two computed paths may be the same file if they are computed
// from the same memory.
bool Files::mayBeSame(const File &Read, const File &Write) {
  if (&Read == &Write)
    return true;
  if (!Read.Path.empty() && !Write.Path.empty())
    return Read.Path == Write.Path;
  if (!Read.Path.empty() || !Write.Path.empty())
    return false;
  const Expr *Left = pathOf(Read)->IgnoreParenImpCasts(),
             *Right = pathOf(Write)->IgnoreParenImpCasts();
  // argv[1] and argv[2] are different files.
  if (const auto *A = dyn_cast<ArraySubscriptExpr>(Left))
    if (const auto *B = dyn_cast<ArraySubscriptExpr>(Right)) {
      Expr::EvalResult I, J;
      if (A->getIdx()->EvaluateAsInt(I, Read.Opener->Home->context()) &&
          B->getIdx()->EvaluateAsInt(J, Write.Opener->Home->context()) &&
          I.Val.getInt().getExtValue() != J.Val.getInt().getExtValue())
        return false;
    }
  NodeSet Common = Pointers.pointees(Left);
  Common &= Pointers.pointees(Right);
  return !Common.empty();
}

std::vector<File *> Files::of(const Expr *Descriptor) {
  std::vector<File *> Result = among(Pointers.pointees(Descriptor));
  if (const auto *Number = dyn_cast<IntegerLiteral>(Descriptor->IgnoreParenImpCasts());
      Number && Number->getValue() == 0 && !llvm::is_contained(Result, All.front().get()))
    Result.push_back(All.front().get());
  return Result;
}

std::vector<File *> Files::among(const NodeSet &Objects) {
  std::vector<File *> Result;
  for (NodeId Id : Objects)
    if (File *Known = ByNode.lookup(Id))
      Result.push_back(Known);
  return Result;
}

std::vector<File *> Files::concerning(const CallExpr *Call, const CallSpec &Spec) {
  for (unsigned I = 0; I < Call->getNumArgs(); ++I)
    if (Spec.parameter(I) == 'f' || Spec.parameter(I) == 's')
      return of(Call->getArg(I));
  llvm::StringRef Name = Spec.Name;
  if (Name == "getchar" || Name == "scanf")
    return Pointers.numbered(0) ? among(Pointers.pointees(Pointers.numbered(0))) : std::vector{All.front().get()};
  return {};
}

bool Files::wanted(const CallExpr *Call, const CallSpec &Spec) {
  for (File *Each : concerning(Call, Spec))
    if (Each->Wanted && !Each->Configuration)
      return true;
  return false;
}

File *Files::opened(const CallExpr *Site) { return ByNode.lookup(P.file(Site)); }

} // namespace foreread::slicer
