// Where the two threads meet: counted calls, synchronization points, and channels with their data (paper, 3.2 and 3.3);
// and the names of the prefetch versions.
#pragma once

#include "Buffers.h"
#include "Ranges.h"
#include "Related.h"
#include "Untouched.h"

namespace foreread::slicer {

struct Meeting {
  bool Counted = false;
  int Point = 0;   // number of the synchronization point, or 0
  int Channel = 0; // number of the channel, or 0
};

class Plan {
public:
  Plan(Program &P, PointsTo &Pointers, Files &Opened, Related &Slice, const Options &Chosen);

  Meeting at(const clang::CallExpr *Call) const { return Meetings.lookup(Call); }
  // The name that the prefetch thread calls in place of a function of the program.
  std::string nameOf(const Function &F) const;
  // True for functions that run unchanged in the prefetch thread: they only compute, and all of the computation is
  // needed; or they are left whole.
  bool runsAsIs(const Function &F) const { return AsIs.contains(&F) || !F.WholeBecause.empty(); }
  // True if a function that runs unchanged reads at the current position of a descriptor or stream, itself or in its
  // callees.
  bool readsInPlace(const Function &F) const { return InPlace.contains(&F); }
  // The same for a library function that calls functions of the program.
  bool readsInPlace(const clang::FunctionDecl *Library) const;
  // Functions whose prefetch version is called by another unit's prefetch functions, which cannot name the function
  // itself.
  bool exported(const Function &F) const { return Exported.contains(&F); }
  // True if the caller's unit cannot name a function that it calls through a pointer.
  static bool elsewhere(const Function &Target, const Function &Caller) {
    return Target.Home != Caller.Home &&
           (Target.Private || Target.Home->cxx() || Caller.Home->cxx());
  }
  // True if the program sends its descriptors (paper: inform_open, inform_close).
  bool sendsDescriptors() const { return Chosen.Open == OpenMode::Send; }
  // Calls of one function are distinguished by their buffers.
  Buffers &buffers() const { return *Told; }
  // True if the prefetch library allocates or releases this memory.
  bool untouched(const clang::CallExpr *Call) const { return Allocated->has(Call); }
  bool anything() const { return Anything; }
  // The paths of all prefetched files, if they are known at the beginning of main.
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
