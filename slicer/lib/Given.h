// Functions of the program that are given to the C++ library, to be called through a pointer.
#pragma once

#include "Library.h"

namespace foreread::slicer {

// Fills P.GivenNames and P.GivenPointers, says of each function by whom it is given, and adds those that are to what the
// library calls.
void findGiven(Program &P, const Library &Of);
// Says which of them the library runs, unseen, when an object of it ends.  The library is followed.
void findEnding(Program &P);

} // namespace foreread::slicer
