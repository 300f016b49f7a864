#include "Untouched.h"

namespace foreread::slicer {

using namespace clang;

namespace {

bool allocates(const CallSpec &Spec) {
  llvm::StringRef Name = Spec.Name;
  return Name == "malloc" || Name == "calloc";
}

bool releases(const CallSpec &Spec) {
  llvm::StringRef Name = Spec.Name;
  return Name == "free" || Name == "cfree";
}

} // namespace

Untouched::Untouched(Program &P, PointsTo &Pointers, Related &Slice) : P(P), Pointers(Pointers), Slice(Slice) {
  for (auto &F : P.Functions)
    excludeReleased(*F);
  std::vector<const CallExpr *> Releasing;
  for (auto &F : P.Functions)
    for (const CallExpr *Call : F->Calls) {
      const CallSpec *Spec = P.spec(Call);
      if (!Slice.translated(*F) || !Spec || Slice.treatment(Call) != Treatment::Keep)
        continue;
      if (releases(*Spec))
        Releasing.push_back(Call);
      if (!allocates(*Spec))
        continue;
      NodeSet Objects = Pointers.pointees(Call);
      bool Free = !Objects.empty() && !Objects.intersects(Excluded);
      for (NodeId Object : Objects)
        Free &= !Slice.relatedAny(Pointers.whole(Object));
      if (Free)
        Calls.insert(Call);
    }
  if (!Calls.empty())
    Calls.insert(Releasing.begin(), Releasing.end());
}

void Untouched::exclude(const NodeSet &Objects) {
  for (NodeId Object : Objects) {
    if (!Excluded.test_and_set(Object))
      continue;
    // The memory that an allocating function returns belongs to its callers.
    const auto *Call = dyn_cast_or_null<CallExpr>(P.Nodes[Object].Site);
    if (const Function *F = Call ? P.function(directCallee(Call)) : nullptr; F && F->Allocates)
      exclude(Pointers.pointees(P.result(*F)));
  }
}

// Excludes memory passed to calls that may move it, or, in functions that run unchanged, to calls that release it.
void Untouched::excludeReleased(const Function &F) {
  for (const CallExpr *Call : F.Calls) {
    const CallSpec *Spec = P.spec(Call);
    for (unsigned I = 0; Spec && I < Call->getNumArgs(); ++I)
      if (Spec->parameter(I) == 'o') {
        for (NodeId Place : Pointers.pointees(Call->getArg(I)))
          exclude(Pointers.pointees(Place));
      } else if (Spec->Result == 'R' || (releases(*Spec) && !F.WholeBecause.empty())) {
        exclude(Pointers.pointees(Call->getArg(I)));
      }
  }
}

} // namespace foreread::slicer
