// The program's files: where each is opened, how the program may change it, and whether it is prefetched. One entry per
// opening call, and one for each of the three standard streams.
#pragma once

#include "Options.h"
#include "PointsTo.h"
#include "Values.h"

namespace foreread::slicer {

struct File {
  NodeId Node = 0;
  const clang::CallExpr *Site = nullptr; // null: a standard stream
  Function *Opener = nullptr;
  std::string Path;           // if it is a constant
  bool Regular = false;       // opened by path
  bool Reads = true;          // opened for reading
  bool Writes = false;        // opened for writing
  bool Creates = false;       // may be created, emptied or extended by the opening call
  bool Written = false;       // the program writes to it
  bool Wanted = false;        // read, and to be prefetched
  bool MayChange = false;     // the program may write to this file, maybe by another name
  bool MayAppear = false;     // the program may create, empty or extend this file
  bool Configuration = false; // the program reads it and sends the data
};

// Where the paths of the files come from.
struct Paths {
  bool Arguments = false;             // main's arguments, or parts of them
  std::vector<std::string> Constants; // constants
};

class Files {
public:
  Files(Program &P, PointsTo &Pointers, const Options &Chosen);

  // The files that a descriptor or stream may refer to.
  std::vector<File *> of(const clang::Expr *Descriptor);
  // The files that a call on a descriptor or stream may access.
  std::vector<File *> concerning(const clang::CallExpr *Call, const CallSpec &Spec);
  // True if a call may access a file that is prefetched.
  bool wanted(const clang::CallExpr *Call, const CallSpec &Spec);
  File *opened(const clang::CallExpr *Site);

  // The paths of all prefetched files, if they are known before any file is opened and the program creates none of
  // them.
  std::optional<Paths> paths();

  std::vector<std::unique_ptr<File>> All;

private:
  std::vector<File *> among(const NodeSet &Objects);
  void add(Function &F, const clang::CallExpr *Call, const CallSpec &Spec);
  bool chosen(const File &Candidate);
  bool mayBeSame(const File &Read, const File &Write);

  Program &P;
  PointsTo &Pointers;
  Values Written;
  NodeSet Chosen;
  bool Choose = false;
  llvm::DenseMap<NodeId, File *> ByNode;
};

} // namespace foreread::slicer
