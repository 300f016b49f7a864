// Where the two threads meet: which calls are counted, which are synchronization points, and what
// is sent over which channel (paper, 3.2 and 3.3); and what the prefetch versions are called.
#pragma once

#include "Buffers.h"
#include "Ranges.h"
#include "Related.h"
#include "Untouched.h"

namespace foreread::slicer {

struct Meeting {
  bool Counted = false;
  int Point = 0;   // synchronization point, or 0
  int Channel = 0; // channel, or 0
};

class Plan {
public:
  Plan(Program &P, PointsTo &Pointers, Files &Opened, Related &Slice, const Options &Chosen);

  Meeting at(const clang::CallExpr *Call) const { return Meetings.lookup(Call); }
  // What the prefetch thread calls in place of a function of the program.
  std::string nameOf(const Function &F) const;
  // Functions that only compute, all of which is needed, run as they are.
  bool runsAsIs(const Function &F) const { return AsIs.contains(&F) || !F.WholeBecause.empty(); }
  // Whether a function that runs as it is reads where a descriptor or a stream stands, itself or by what it calls.
  bool readsInPlace(const Function &F) const { return InPlace.contains(&F); }
  // The same of a function of the library that calls the program's.
  bool readsInPlace(const clang::FunctionDecl *Library) const;
  // Private functions whose prefetch version another unit's prefetch functions call.
  bool exported(const Function &F) const { return Exported.contains(&F); }
  // Whether the unit that calls a function through a pointer cannot name it there.
  static bool elsewhere(const Function &Target, const Function &Caller) {
    return Target.Home != Caller.Home &&
           (Target.Private || Target.Home->cxx() || Caller.Home->cxx());
  }
  // Descriptors come from the program (paper: inform_open, inform_close).
  bool sendsDescriptors() const { return Chosen.Open == OpenMode::Send; }
  // Calls of one function are told apart by them.
  Buffers &buffers() const { return *Told; }
  // Whether memory is allocated, or released, by the prefetch library.
  bool untouched(const clang::CallExpr *Call) const { return Allocated->has(Call); }
  bool anything() const { return Anything; }
  // Where all that is prefetched is found, if that can be told at main's beginning.
  std::optional<Paths> paths() const { return Opened.paths(); }
  unsigned points() const { return Points; }
  unsigned channels() const { return Channels; }

private:
  bool needsWait(const Function &F, const clang::CallExpr *Call, const CallSpec &Spec);
  bool dataNeeded(const File &Of, std::optional<Range> Written);
  const clang::Expr *soughtBefore(const Function &F, const clang::CallExpr *Call) const;
  std::optional<Range> bytes(const Function &F, const clang::CallExpr *Call, const CallSpec &Spec);
  void findRemote(const Function &Caller, PointsTo &Pointers);
  void countWhole(const Function &F);
  void findInPlace();
  void exportTargets(const Function &Caller, PointsTo &Pointers);
  bool computesOnly(const Function &F, llvm::DenseSet<const Function *> &Visited);
  bool allKept(const clang::Stmt *S);
  void nameFunctions();

  Program &P;
  Files &Opened;
  Related &Slice;
  const Options &Chosen;
  llvm::DenseMap<const clang::CallExpr *, Meeting> Meetings;
  llvm::DenseSet<const Function *> AsIs, Exported, InPlace;
  // Virtual functions that another unit's prefetch functions call.
  llvm::DenseSet<const Function *> Remote;
  llvm::DenseMap<const Function *, std::string> Names; // of C++ functions, without the prefix
  std::unique_ptr<Buffers> Told;
  std::unique_ptr<Untouched> Allocated;
  std::string Prefix = "pf_";
  unsigned Points = 0, Channels = 0;
  bool Anything = false;
};

} // namespace foreread::slicer
