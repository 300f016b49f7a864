// The functions of the C++ library that headers define: the functions of the program that they call.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// Knowledge besides the calls by name, which are in Program::LibraryCalls.
struct Library {
  // Functions whose address a library function takes, and virtual functions of the library. Taken: the former, by the
  // function that takes the address.
  std::vector<const clang::FunctionDecl *> Escaping;
  llvm::DenseMap<const clang::FunctionDecl *, std::vector<const clang::FunctionDecl *>> Taken;
  // The functions that call through a pointer, by the pointer's type.
  llvm::StringMap<std::vector<const clang::FunctionDecl *>> Pointers;
  // By the signature of a std::function: its call operators, and the functions by which it calls each kind of target.
  struct Holder {
    std::vector<const clang::FunctionDecl *> Calls, Invokes;
  };
  llvm::StringMap<Holder> Held;
};

// Reads the library's text and fills P.LibraryCalls.
Library readLibrary(Program &P);
// Sets RunByLibrary and Through in each function of the program.
void followLibrary(Program &P, Library &Of);

} // namespace foreread::slicer
