// The new text of a unit: the original with insertions for the computation thread, followed by the prefetch functions.
#pragma once

#include "Plan.h"
#include "Translator.h"

namespace foreread::slicer {

// The text of each unit, or none if the unit is unchanged.
std::vector<std::optional<UnitText>> emit(Program &P, PointsTo &Pointers, Related &Slice, const Plan &Meetings);

} // namespace foreread::slicer
