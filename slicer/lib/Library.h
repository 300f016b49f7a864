// The functions of the C++ library that have their text in its headers: what they call of the program.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// What is known of them beside what they call by name, which is in Program::LibraryCalls.
struct Library {
  // Those whose address is taken, or which are virtual; and in which function the address is taken.
  std::vector<const clang::FunctionDecl *> Escaping;
  llvm::DenseMap<const clang::FunctionDecl *, std::vector<const clang::FunctionDecl *>> Taken;
  // By the type of the pointer: what calls through one.
  llvm::StringMap<std::vector<const clang::FunctionDecl *>> Pointers;
  // By the signature of a std::function: what calls one, and by what one calls each kind of what it may hold.
  struct Holder {
    std::vector<const clang::FunctionDecl *> Calls, Invokes;
  };
  llvm::StringMap<Holder> Held;
};

// Reads the text of the library, and fills P.LibraryCalls.
Library readLibrary(Program &P);
// Says of each function of the program whether the library calls it: RunByLibrary and Through.
void followLibrary(Program &P, Library &Of);

} // namespace foreread::slicer
