// Threads of the C++ library, which the program and the prefetch thread start by the same text.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// Fills P.Threads and P.ThreadBodies.  The library is followed: what only a thread runs is not run by the library.
void findThreads(Program &P);

} // namespace foreread::slicer
