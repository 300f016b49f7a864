// Arrays, variables and fields, cut into pieces: elements that the program names by constants, and
// ranges that its loops with constant bounds go through, are nodes of their own.  An access by any
// other index may be of all pieces, and a pointer into an array points to all of them.
#pragma once

#include "Program.h"

namespace foreread::slicer {

void splitArrays(Program &P);

} // namespace foreread::slicer
