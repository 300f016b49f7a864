// Splits local scalar variables by reaching definitions.
//
// A variable that a function uses for two purposes, such as the counter of two loops, becomes two nodes: definitions
// that reach a common use are one web, and each web is related to I/O or not by itself. Without the split, every loop
// over i would be kept because of one.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// Assigns to each reference to a local scalar whose address is not taken the node of its web.
void splitVariables(Program &P);

} // namespace foreread::slicer
