// Splits arrays, variables and fields alike, into pieces: elements named by constants, and ranges that loops with
// constant bounds run through, are separate nodes. An access by any other index may be of all pieces, and a pointer
// into an array points to all of them.
#pragma once

#include "Program.h"

namespace foreread::slicer {

void splitArrays(Program &P);

} // namespace foreread::slicer
