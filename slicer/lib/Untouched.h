// Memory that the prefetch thread allocates and never looks at: what the program reads into.
//
// malloc() writes a few bytes beside each block, and so touches pages of which nothing else is used: the kernel fills each with
// zeros, which costs more than all the rest of a slice that steps through a volume.  Such calls become prefetch_malloc(),
// which gives addresses of no memory.  What it gave no free() of the C library may see.
#pragma once

#include "Related.h"

namespace foreread::slicer {

class Untouched {
public:
  Untouched(Program &P, PointsTo &Pointers, Related &Slice);

  // Whether a call, or what releases such memory, is made by the prefetch library.
  bool has(const clang::CallExpr *Call) const { return Calls.contains(Call); }

private:
  void exclude(const NodeSet &Objects);
  void excludeReleased(const Function &F);

  Program &P;
  PointsTo &Pointers;
  Related &Slice;
  // Memory that the C library is given back, or that it may move.
  NodeSet Excluded;
  llvm::DenseSet<const clang::CallExpr *> Calls;
};

} // namespace foreread::slicer
