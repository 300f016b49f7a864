// Knowledge of library calls: one line per function in Calls.cpp.
//
// A call is either private to the process (kept as it is), a call on a file (replaced by a call of the prefetch
// library), or an effect that is visible outside the process (never kept). Functions that the program defines are never
// looked up here. A function that neither the program nor this table defines is "unknown".
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace foreread::slicer {

enum class CallKind {
  Private, // changes nothing but the process's own memory
  Query,   // asks the system without changing anything (stat, access, readdir)
  Varies,  // private, but the answer differs from process to process (time, getpid): sent
  Open,    // returns a descriptor or stream of a file
  Stream,  // makes descriptors that are not of a regular file (socket, pipe, popen), or of a temporary file: its result,
           // or, if that is a number, the content of the memory that it writes
  Close,   // closes a descriptor or stream
  Read,    // moves file data into memory: these calls are counted
  Seek,    // moves the file position
  Tell,    // asks for a property of a stream or descriptor
  Map,     // mmap
  Unmap,   // munmap
  Write,   // moves data into a file
  Effect,  // any other effect that is visible outside the process
  Exit,    // does not return
  Thread,  // starts a thread
  Jump,    // setjmp, longjmp
  Handler, // installs a signal handler
};

// One letter per parameter; the last one repeats for variadic arguments.
//   v  its value is used             r  the memory that it points to is read
//   w  that memory is written        b  read and written
//   f  a descriptor or stream        d  buffer for file data (written; unused when prefetching)
//   c  a function that is called     s  stream or descriptor that is written to (outside effect)
//   o  where a pointer to new memory is stored (getline)
//   e  where a pointer into the first parameter's memory is stored (strtol)
//   .  no effect on memory
//
// The result:
//   v  a number, or a pointer to memory that is none of the program's
//   0..9  a pointer into the memory that this parameter points to
//   h  new memory                    g  memory of the C library
//   F  a new file                    -  none
//   R  the first parameter's memory, or new memory with its content (realloc)
//   P  the pointer that the first parameter points to (strsep)
struct CallSpec {
  const char *Name;
  CallKind Kind;
  const char *Parameters;
  char Result;
  // Name of the hidden state that the call reads and changes (rand, getopt, strtok), or null.
  const char *State;
  // Assumed result of a call that is not made: a number, or "#n" for the value of parameter n.
  const char *Assumed;

  char parameter(unsigned Index) const;
};

// The table's line for a library function, or null.
const CallSpec *findCall(llvm::StringRef Name);

// Name of the call without the C library's prefixes and suffixes: __isoc99_fscanf, fread_unlocked, open64 and the like
// are fscanf, fread and open.
llvm::StringRef plainName(llvm::StringRef Name);

// True if the call gives a descriptor the number in its second argument (dup2, dup3).
bool renumbers(llvm::StringRef Name);

// True if the call reads one character and returns it.
bool readsCharacter(llvm::StringRef Name);

} // namespace foreread::slicer
