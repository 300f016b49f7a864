// Threads of the C++ library, which the program and the prefetch thread start by the same text.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// Fills P.Threads and P.ThreadBodies, after followLibrary(): a lambda expression that only a thread runs is not
// RunByLibrary.
void findThreads(Program &P);

} // namespace foreread::slicer
