// The program's files: where each is opened, what the program may do to it, and whether it is read
// ahead.  One entry for each call that opens something, and for the three standard streams.
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
  bool Reads = true;          // the way it is opened allows reading
  bool Writes = false;        // … writing
  bool Creates = false;       // … creating or emptying it, or making it longer
  bool Written = false;       // the program writes to it
  bool Wanted = false;        // read, and to be prefetched
  bool MayChange = false;     // something the program writes may be this file
  bool MayAppear = false;     // … and creates or empties it
  bool Configuration = false; // all its reads steer the program: sent
};

// Where a program finds what it reads.
struct Paths {
  bool Arguments = false;             // main's arguments, or parts of them
  std::vector<std::string> Constants; // and these
};

class Files {
public:
  Files(Program &P, PointsTo &Pointers, const Options &Chosen);

  // The files a descriptor or stream may be.
  std::vector<File *> of(const clang::Expr *Descriptor);
  // The files a call on a descriptor or stream concerns.
  std::vector<File *> concerning(const clang::CallExpr *Call, const CallSpec &Spec);
  // Whether a call is on a file that is prefetched.
  bool wanted(const clang::CallExpr *Call, const CallSpec &Spec);
  File *opened(const clang::CallExpr *Site);
  bool onlyInput(const clang::CallExpr *Call, const CallSpec &Spec);

  // The paths of all files that are prefetched, if they can be told before anything is opened, and none is
  // made by the program.
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
