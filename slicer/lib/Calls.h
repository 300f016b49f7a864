// What the translator knows of library calls: one line a function in Calls.cpp.
//
// A call is either private to the process (kept as it is), a call on a file (replaced by a call of
// the prefetch library), or an effect the outside can see (never kept).  Functions that the program
// defines itself are never looked up here; functions that are in neither are "unknown".
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace foreread::slicer {

enum class CallKind {
  Private, // changes nothing but the process's own memory
  Query,   // asks the outside without changing it (stat, access, readdir)
  Varies,  // private, but its answer differs from process to process (time, getpid): sent
  Open,    // gives a descriptor or stream of a file
  Stream,  // gives a descriptor that is not a regular file (socket, pipe, popen)
  Close,   // of a descriptor or stream
  Read,    // moves file data into memory: the calls that are counted
  Seek,    // moves the file position
  Tell,    // asks something of a stream or descriptor
  Map,     // mmap
  Unmap,   // munmap
  Write,   // moves data into a file
  Effect,  // any other effect the outside can see
  Exit,    // does not return
  Thread,  // starts a thread
  Jump,    // setjmp, longjmp
  Handler, // installs a signal handler
};

// One letter a parameter; the last one repeats for variable arguments.
//   v  its value is used            r  what it points to is read
//   w  what it points to is written b  read and written
//   f  a descriptor or stream       d  buffer for file data (written; unused when prefetching)
//   c  a function that is called    s  stream or descriptor written to (outside effect)
//   o  where a pointer to new memory is stored (getline)
//   .  of no consequence to memory
//
// The result:
//   v  a number, or a pointer into nothing the program owns
//   0..9  a pointer to what that parameter points to
//   h  new memory                   g  memory of the C library's own
//   F  a new file                   -  none
struct CallSpec {
  const char *Name;
  CallKind Kind;
  const char *Parameters;
  char Result;
  // Hidden state that the call reads and changes (rand, getopt, strtok), or null.
  const char *State;
  // What an effect is assumed to answer: "0", "1", or "#n" for the value of parameter n.
  const char *Assumed;

  char parameter(unsigned Index) const;
};

// The line for a library function, or null.
const CallSpec *findCall(llvm::StringRef Name);

// The name of the call without what the C library adds to it: __isoc99_fscanf, fread_unlocked,
// open64 and the like are fscanf, fread and open.
llvm::StringRef plainName(llvm::StringRef Name);

// Whether this gives a descriptor a number that its second argument says.
bool renumbers(llvm::StringRef Name);

// Whether this reads one character, which is its result.
bool readsCharacter(llvm::StringRef Name);

} // namespace foreread::slicer
