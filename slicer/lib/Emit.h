// A unit's new text: the original with the insertions the computation thread needs, then the
// prefetch functions.
#pragma once

#include "Plan.h"

namespace foreread::slicer {

// The text, or none if nothing of the unit changes.
std::optional<std::string> emit(const Unit &U, Program &P, PointsTo &Pointers, Related &Slice,
                                const Plan &Meetings);

} // namespace foreread::slicer
