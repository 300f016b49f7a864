// Reads: announced, really made, or made by the program, which sends the data.
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

// True if the data that is read decides where the program reads next.
bool Related::steers(const CallExpr *Call, const CallSpec &Spec) {
  NodeSet Data;
  for (unsigned I = 0; I < Call->getNumArgs(); ++I)
    if (char Letter = Spec.parameter(I); Letter == 'd' || Letter == 'o' || Letter == 'w')
      for (NodeId Object : Pointers.pointees(Call->getArg(I)))
        Data |= Pointers.whole(Object);
  llvm::StringRef Name = plainName(Spec.Name);
  if ((Name == "readv" || Name == "preadv") && Call->getNumArgs() > 1)
    for (NodeId Vector : Pointers.pointees(Call->getArg(1)))
      for (NodeId Field : Pointers.whole(Vector))
        for (NodeId Object : Pointers.pointees(Field))
          Data |= Pointers.whole(Object);
  return relatedAny(Data);
}

void Related::readCall(const CallExpr *Call, const CallSpec &Spec, bool Value) {
  if (!countable(Call)) {
    // The call cannot be counted: the prefetch thread reads for itself, unannounced.
    set(Call, Treatment::Keep);
    keepCall(Call, Spec);
    return effect({}, false);
  }
  llvm::StringRef Name = plainName(Spec.Name);
  // The data decides how far these calls move the position.
  bool ByContent = llvm::StringSwitch<bool>(Name)
                       .Cases("fgets", "fscanf", "vfscanf", "getline", "getdelim", "scanf", true)
                       .Default(false);
  bool ResultIsData = readsCharacter(Name);
  bool Fetch = ByContent || (ResultIsData && Value) || steers(Call, Spec);
  set(Call, Fetch ? Treatment::Fetch : Treatment::Prefetch);
  Fetch = treatment(Call) == Treatment::Fetch;
  bool Vector = Name == "readv" || Name == "preadv";
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    char Letter = Spec.parameter(I);
    const Expr *Argument = Call->getArg(I);
    if (Letter == 'd' && !Fetch && !Vector) {
      if (effects(Argument))
        value(Argument);
      continue;
    }
    value(Argument);
    if (Letter == 'r' || Letter == 'b' || (Vector && Letter == 'd'))
      markPointees(Argument);
    if (Letter == 'o' || (Letter == 'w' && ByContent))
      for (NodeId Object : Pointers.pointees(Argument))
        mark(Object);
  }
  effect({}, false);
}

Looked looksAt(const CallExpr *Call, const CallSpec &Spec) {
  auto At = [&](unsigned Pointer, unsigned Length) {
    return Length < Call->getNumArgs()
               ? Looked{Call->getArg(Pointer), Call->getArg(Length), nullptr}
               : Looked{};
  };
  llvm::StringRef Name = plainName(Spec.Name);
  if (Name == "memcpy" || Name == "memmove" || Name == "mempcpy" || Name == "write" ||
      Name == "pwrite" || Name == "send")
    return At(1, 2);
  if (Name == "memchr")
    return At(0, 2);
  if (Name == "fwrite") {
    Looked All = At(0, 1);
    All.Times = Call->getNumArgs() > 2 ? Call->getArg(2) : nullptr;
    return All;
  }
  return {};
}

// A call that reads part of a mapped file only for a purpose that the prefetch thread does not need: the thread
// announces that part (paper, 4.3: "memory mapped I/O", left undone there).
bool Related::touches(const CallExpr *Call, const CallSpec &Spec) {
  Looked Bytes = looksAt(Call, Spec);
  if (!Bytes.Pointer || !countable(Call) ||
      (Treatments.count(Call) && treatment(Call) != Treatment::Touch))
    return false;
  bool Mapped = false;
  for (NodeId Object : Pointers.pointees(Bytes.Pointer))
    if (const Expr *Site = P.Nodes[Object].Site)
      if (const auto *Map = dyn_cast<CallExpr>(Site))
        if (const CallSpec *Of = P.spec(Map))
          Mapped |= Of->Kind == CallKind::Map && Opened.wanted(Map, *Of);
  if (!Mapped)
    return false;
  set(Call, Treatment::Touch);
  for (const Expr *Needed : {Bytes.Pointer, Bytes.Length, Bytes.Times})
    if (Needed)
      value(Needed);
  effect({}, false);
  if (Effects.insert(Call).second)
    Changed = true;
  return true;
}

const Load *Related::loadMade(const Expr *Cast) const {
  const Load *Made = Looks.madeBy(Cast);
  return Made && !Made->Before ? Made : nullptr;
}

bool Related::countsIn(const Function &F) const {
  if (counts(F.Decl->getBody()))
    return true;
  for (const auto &[Part, Outer] : F.Parents)
    if (counts(Part))
      return true;
  return false;
}

// Keeps the computation of a load's address; for all iterations of a loop, that of its first and last index.
void Related::announce(const Load &Each) {
  if (Each.Over) {
    value(Each.Over->First);
    value(Each.Over->Bound);
    Replaced = Each.Over->Index;
  }
  address(Each.Place);
  Replaced = nullptr;
  Regions.insert(Each.Region);
  effect({}, false);
}

bool Related::announceBefore(const Stmt *Loop) {
  std::vector<const Load *> All = Looks.before(Loop);
  for (const Load *Each : All)
    announce(*Each);
  if (!All.empty())
    keep(Loop);
  return !All.empty();
}

void Related::receiveCall(const CallExpr *Call, const CallSpec &Spec) {
  mustMeet(Call);
  set(Call, Treatment::Receive);
  for (unsigned I = 0; I < Call->getNumArgs(); ++I)
    if (char Letter = Spec.parameter(I); Letter == 'd' || Letter == 'w' || Letter == 'o') {
      value(Call->getArg(I));
      if (Letter == 'o' || (Letter == 'w' && Spec.parameter(0) == 'o'))
        for (NodeId Object : Pointers.pointees(Call->getArg(I)))
          mark(Object);
    }
  llvm::StringRef Name = plainName(Spec.Name);
  bool Strings = Name == "readv" || Name == "preadv" || Name == "vfscanf";
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    char Letter = Spec.parameter(I);
    bool Sent = Letter == 'd' || Letter == 'w' || Letter == 'o';
    if (Sent && hasSideEffects(Call->getArg(I)))
      Strings = true;
    if (Sent && (Name == "fscanf" || Name == "scanf") &&
        Call->getArg(I)->IgnoreParenImpCasts()->getType()->isPointerType() &&
        Call->getArg(I)->IgnoreParenImpCasts()->getType()->getPointeeType()->isAnyCharacterType())
      Strings = true;
  }
  if (Strings)
    refuse(*Current, "the data of " + std::string(Spec.Name) +
                         "() from a file that is not prefetched decides where it reads");
  effect({}, false);
}

} // namespace foreread::slicer
