// Calls of one function told apart by whether the data it reads for them is looked at.
//
// get(fd, &header) decides where the program reads next, get(fd, block) does not, and both are one pread() in get().  A
// parameter that is only ever a place for data to be read to is a buffer: calls whose data nobody kept looks at are given
// none, and then the read in the prefetch version is announced, not made.
#pragma once

#include "Related.h"

namespace foreread::slicer {

class Buffers {
public:
  Buffers(Program &P, PointsTo &Pointers, const Related &Slice);

  // Whether a parameter is one.
  bool has(const clang::VarDecl *Parameter) const { return Known.contains(Parameter); }
  // The one that a read is made to, or null.
  const clang::VarDecl *of(const clang::CallExpr *Read, const CallSpec &Spec) const;
  // Whether an argument of a call of the program's functions is of no use there but for data that nobody looks at.
  bool needless(const clang::CallExpr *Call, unsigned Argument, const std::vector<Function *> &Targets);

private:
  bool onlyRead(const Function &F, unsigned Number);

  Program &P;
  PointsTo &Pointers;
  const Related &Slice;
  llvm::DenseSet<const clang::VarDecl *> Known;
};

} // namespace foreread::slicer
