// Memory that the prefetch thread allocates and never uses: destinations of the program's reads.
//
// malloc() writes a few bytes beside each block, and thereby touches pages that are otherwise unused. The kernel fills
// each with zeros, which costs more than the rest of a slice that steps through a volume. Such calls become
// prefetch_malloc(), which returns addresses without memory. The C library's free() must never receive them.
#pragma once

#include "Related.h"

namespace foreread::slicer {

class Untouched {
public:
  Untouched(Program &P, PointsTo &Pointers, Related &Slice);

  // True if the prefetch library makes this call, which allocates or releases such memory.
  bool has(const clang::CallExpr *Call) const { return Calls.contains(Call); }

private:
  void exclude(const NodeSet &Objects);
  void excludeReleased(const Function &F);

  Program &P;
  PointsTo &Pointers;
  Related &Slice;
  // Memory that the C library releases or may move.
  NodeSet Excluded;
  llvm::DenseSet<const clang::CallExpr *> Calls;
};

} // namespace foreread::slicer
