// The stages in order, and their account.
#include "Translator.h"

#include <set>

#include "Elements.h"
#include "Emit.h"
#include "Given.h"
#include "Load.h"
#include "Threads.h"
#include "Webs.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// True if the function reads prefetched files in calls that the program cannot count.
bool readsUncounted(Program &P, Related &Slice, const Function &F) {
  return llvm::any_of(F.Calls, [&](const CallExpr *Call) {
    const CallSpec *Spec = P.spec(Call);
    return Spec && Spec->Kind == CallKind::Read && Slice.treatment(Call) == Treatment::Keep;
  });
}

void accountFunctions(Program &P, Related &Slice, const Plan &Meetings, Translation &Into) {
  for (auto &F : P.Functions) {
    FunctionAccount Row;
    Row.Name = F->Name;
    PresumedLoc At = F->Home->sources().getPresumedLoc(F->Decl->getLocation());
    Row.File = At.isValid() ? At.getFilename() : F->Home->File;
    Row.Line = At.isValid() ? At.getLine() : 0;
    if (F->Decl->isImplicit())
      continue;
    if (F->CountsItself && F->Reads && Meetings.anything()) {
      Row.Status = "whole";
      Row.Why = "both threads run it as it is, and its reads are counted: " + F->WholeBecause;
    } else if (!F->WholeBecause.empty()) {
      Row.Status = "refused";
      Row.Why = F->WholeBecause;
    } else if (!Meetings.anything()) {
      Row.Status = "whole";
      Row.Why = !F->Reachable ? "not reached from main"
                : readsUncounted(P, Slice, *F)
                    ? std::string("its reads cannot be counted in a ") +
                          (F->AtHand ? "macro" : "header")
                    : "the program reads nothing that can be prefetched";
    } else if (!Slice.translated(*F)) {
      Row.Status = "whole";
      Row.Why = F->Reachable ? "no part in any read" : "not reached from main";
    } else if (Meetings.runsAsIs(*F)) {
      Row.Status = "pure";
      Row.Why = "all of it decides about reads, and it only computes";
    } else {
      Row.Status = "sliced";
    }
    Into.Functions.push_back(std::move(Row));
  }
}

void accountFiles(Files &Opened, Translation &Into) {
  for (auto &Each : Opened.All) {
    if (!Each->Site)
      continue;
    FileAccount Row;
    Row.Path = Each->Path.empty() ? "(computed)" : Each->Path;
    Row.Place = Program::place(*Each->Opener->Home, Each->Site->getBeginLoc());
    if (Each->Configuration) {
      Row.Kind = "configuration";
      Row.Why = "all data that is read from it decides where the program reads";
    } else if (Each->Wanted) {
      Row.Kind = "data";
      if (Each->MayAppear)
        Row.Why = "the program may create it: the prefetch thread waits for that";
      else if (Each->MayChange)
        Row.Why = "the program may write it: the prefetch thread waits where it needs its data";
    } else if (!Each->Regular) {
      Row.Kind = "input";
      Row.Why = "not a regular file";
    } else if (!Each->Reads) {
      Row.Kind = "output";
    } else {
      Row.Kind = "unused";
      Row.Why = "nothing reached from main reads it";
    }
    Into.Files.push_back(std::move(Row));
  }
}

void accountAssumptions(Program &P, Related &Slice, Translation &Into) {
  for (auto &F : P.Functions) {
    if (!Slice.translated(*F))
      continue;
    std::set<std::string> Lines;
    for (const CallExpr *Call : F->Calls)
      if (const CallSpec *Spec = P.spec(Call); Spec && Spec->Kind == CallKind::Handler)
        Lines.insert(Program::place(*F->Home, Call->getBeginLoc()) + ": no signal is handled here");
    for (const CallExpr *Call : F->Calls)
      if (Slice.assumed().contains(Call))
        Lines.insert(Program::place(*F->Home, Call->getBeginLoc()) + ": " + P.spec(Call)->Name +
                     "() succeeds");
      else if (Slice.unknown().contains(Call))
        Lines.insert(Program::place(*F->Home, Call->getBeginLoc()) + ": " +
                     directCallee(Call)->getNameAsString() +
                     "() may be run in the prefetch thread");
    for (auto &[Part, Outer] : F->Parents)
      if (const auto *If = dyn_cast<IfStmt>(Part); If && Slice.assumesAway(If))
        Lines.insert(Program::place(*F->Home, If->getBeginLoc()) +
                     ": this failure does not happen");
    Into.Assumptions.insert(Into.Assumptions.end(), Lines.begin(), Lines.end());
  }
}

// Finds configuration files: the data of all their reads decides where the program reads (paper, section 3).
bool findConfiguration(Program &P, Files &Opened, Related &Slice) {
  llvm::DenseSet<const File *> Fetched, Prefetched;
  for (auto &F : P.Functions)
    for (const CallExpr *Call : F->Calls)
      if (const CallSpec *Spec = P.spec(Call); Spec && Spec->Kind == CallKind::Read)
        for (File *Of : Opened.concerning(Call, *Spec))
          (Slice.treatment(Call) == Treatment::Fetch ? Fetched : Prefetched).insert(Of);
  bool Any = false;
  for (auto &Each : Opened.All)
    if (Each->Wanted && Fetched.contains(Each.get()) && !Prefetched.contains(Each.get()))
      Each->Configuration = Any = true;
  return Any;
}

} // namespace

Translation translate(const std::vector<tooling::CompileCommand> &Commands, const Options &Chosen) {
  Translation Result;
  Program P;
  load(P, Commands);
  Result.Units.resize(P.Units.size());
  for (auto &U : P.Units) {
    // Clang's errors begin with the name of the file.
    bool Named = llvm::StringRef(U->WholeBecause).starts_with(U->File + ":");
    bool Whole = !U->WholeBecause.empty();
    Result.UnitNotes.push_back((Whole && !Named ? U->File + ": " : "") + U->WholeBecause);
    Result.Failed.push_back(Whole && U->WholeBecause != Assembler);
    Result.Cxx.push_back(U->AST && U->cxx());
  }
  P.AllKnown = !Chosen.Others;
  P.index();
  Library Called = readLibrary(P);
  findGiven(P, Called);
  followLibrary(P, Called);
  findEnding(P);
  findThreads(P);
  splitVariables(P);
  splitArrays(P);
  PointsTo Pointers(P);
  Pointers.run();
  findReachable(P, Pointers);
  Files Opened(P, Pointers, Chosen);
  auto Looks = std::make_unique<Loads>(P, Pointers, Opened);
  auto Slice = std::make_unique<Related>(P, Pointers, Opened, *Looks, Chosen);
  Slice->run();
  if (Chosen.SendConfiguration && findConfiguration(P, Opened, *Slice)) {
    for (auto &F : P.Functions)
      F->WholeBecause.clear();
    // The first run has withdrawn loads that led to these files.
    auto Anew = std::make_unique<Loads>(P, Pointers, Opened);
    Slice = std::make_unique<Related>(P, Pointers, Opened, *Anew, Chosen);
    Looks = std::move(Anew);
    Slice->run();
  }
  Plan Meetings(P, Pointers, Opened, *Slice, Chosen);
  if (Meetings.anything())
    Result.Units = emit(P, Pointers, *Slice, Meetings);
  accountFunctions(P, *Slice, Meetings, Result);
  accountFiles(Opened, Result);
  if (Meetings.anything()) {
    accountAssumptions(P, *Slice, Result);
    Result.Unannounced = Looks->unannounced();
    Result.SyncPoints = Meetings.points();
    Result.Channels = Meetings.channels();
  }
  return Result;
}

} // namespace foreread::slicer
