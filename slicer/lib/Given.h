// Functions of the program that are passed to the C++ library, which calls them through a pointer.
#pragma once

#include "Library.h"

namespace foreread::slicer {

// Fills P.GivenNames and P.GivenPointers, records for each function which functions pass it, and adds the passed
// functions to the library's calls.
void findGiven(Program &P, const Library &Of);
// Finds those of them that the library runs, unseen, when one of its objects is destroyed. The calls of the library
// must be known.
void findEnding(Program &P);

} // namespace foreread::slicer
