// Distinguishes calls of one function by whether the data read for them is used.
//
// get(fd, &header) decides where the program reads next, get(fd, block) does not, and both end in one pread() in get().
// A parameter that only serves as the destination of reads is a buffer. A call whose data is used by nothing in the
// slice passes null for the buffer; the prefetch version then announces the read instead of making it.
#pragma once

#include "Related.h"

namespace foreread::slicer {

class Buffers {
public:
  Buffers(Program &P, PointsTo &Pointers, const Related &Slice);

  // True if the parameter is a buffer.
  bool has(const clang::VarDecl *Parameter) const { return Known.contains(Parameter); }
  // The buffer that a read stores its data in, or null.
  const clang::VarDecl *of(const clang::CallExpr *Read, const CallSpec &Spec) const;
  // True if an argument of a call of the program's functions only serves, in all of them, to store data that nothing in
  // the slice uses.
  bool needless(const clang::CallExpr *Call, unsigned Argument, const std::vector<Function *> &Targets);

private:
  bool onlyRead(const Function &F, unsigned Number);

  Program &P;
  PointsTo &Pointers;
  const Related &Slice;
  llvm::DenseSet<const clang::VarDecl *> Known;
};

} // namespace foreread::slicer
