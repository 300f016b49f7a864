// Splits local scalar variables by what reaches what.
//
// A variable that a function uses twice for two purposes, as the counter of two loops, is two
// nodes: the definitions that reach a common use are one web, and webs are related to I/O each for
// itself. Without this, every loop over i would be kept for the sake of one.
#pragma once

#include "Program.h"

namespace foreread::slicer {

// Gives each reference to a local scalar, whose address nobody takes, the node of its web.
void splitVariables(Program &P);

} // namespace foreread::slicer
