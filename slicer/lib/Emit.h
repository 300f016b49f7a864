// A unit's new text: the original with the insertions the computation thread needs, then the
// prefetch functions.
#pragma once

#include "Plan.h"
#include "Translator.h"

namespace foreread::slicer {

// The text of each unit, or none if nothing of it changes.
std::vector<std::optional<UnitText>> emit(Program &P, PointsTo &Pointers, Related &Slice, const Plan &Meetings);

} // namespace foreread::slicer
