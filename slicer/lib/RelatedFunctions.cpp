// Calls of functions of the program (paper, section 4.2), and of unknown functions.
#include "Cxx.h"
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

// A library function calls a function of the program that reads files: the prefetch version is passed to it.
void Related::handOver(const CallExpr *Call, const CallSpec &Spec) {
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    if (Spec.parameter(I) != 'c')
      continue;
    std::vector<Function *> Given = Pointers.functions(Call->getArg(I));
    for (Function *F : Given) {
      if (Reached.test_and_set(F->Index))
        Changed = true;
      if (!F->WholeBecause.empty())
        whole(*F);
    }
    if (Given.size() > 1)
      refuse(*Current, std::string("one of several functions that read files is passed to ") +
                           Spec.Name + "()");
  }
}

// Built-in functions, and those that the user declares pure.
bool Related::isPure(const CallExpr *Call) const {
  const FunctionDecl *Callee = directCallee(Call);
  return Callee && Callee->getIdentifier() &&
         (Callee->getBuiltinID() != 0 ||
          llvm::is_contained(Chosen.Pure, Callee->getNameAsString()));
}

// The prefetch thread runs an unknown function unchanged, with all memory that it may read.
void Related::runUnknown(const CallExpr *Call) {
  std::string Name = directCallee(Call)->getNameAsString();
  if (Chosen.RefuseUnknown)
    refuse(*Current, "the unknown function " + Name + "() decides where it reads");
  set(Call, Treatment::Keep);
  Unknown.insert(Call);
  refuseUncarried(Call);
  for (const Expr *Argument : operandsOf(Call)) {
    if (startsThread(Call) && Argument != objectOf(Call)) {
      start(Call, Argument);
      continue;
    }
    operand(Argument);
    for (Function *F : Pointers.functions(Argument))
      if (!hasEffects(*F))
        whole(*F);
  }
  for (Function *F : P.runThrough(directCallee(Call)))
    runs(F->Decl);
  effect({}, false);
}

bool Related::readsThrough(const FunctionDecl *Library) {
  return llvm::any_of(P.runThrough(Library), [&](const Function *F) { return mayHaveEffects(*F); });
}

namespace {

// True for objects of the C++ library, and for memory of unknown type.
bool holdsAnything(const Node &Object) {
  if (Object.Type.isNull())
    return Object.Kind == NodeKind::Heap;
  const auto *Record = Object.Type.getNonReferenceType()->getAsCXXRecordDecl();
  return Record && Record->getDefinition() && isOpaque(Record->getDefinition());
}

} // namespace

// The memory that an unknown function may change through an operand: an object itself, and the objects that an iterator
// leads to, which may contain it. Computed once per operand, since points-to sets do not change any more.
const NodeSet &Related::mayChange(const Expr *Operand) {
  auto [Known, Fresh] = Changeable.try_emplace(Operand);
  if (!Fresh)
    return Known->second;
  bool Itself = Operand->isGLValue() || Operand->getType()->isRecordType();
  NodeSet Objects = Itself ? Pointers.locations(Operand) : Pointers.pointees(Operand);
  const auto *Ref = dyn_cast<DeclRefExpr>(Operand->IgnoreParenImpCasts());
  bool Named = Ref && Operand->isLValue() && !Ref->getDecl()->getType()->isReferenceType();
  std::vector<NodeId> Work;
  for (NodeId Object : Objects)
    Work.push_back(Object);
  while (Itself && !Named && !Work.empty()) {
    NodeId Object = Work.back();
    Work.pop_back();
    if (holdsAnything(P.Nodes[Object]))
      for (NodeId Next : Pointers.pointees(Object))
        if (Objects.test_and_set(Next))
          Work.push_back(Next);
  }
  NodeSet All;
  for (NodeId Object : Objects)
    // Constants do not change.
    if (P.Nodes[Object].Kind != NodeKind::Text)
      All |= Pointers.whole(Object);
  return Changeable[Operand] = std::move(All);
}

bool Related::unknownEffects(const CallExpr *Call) {
  bool Any = false, Writes = readsThrough(directCallee(Call)) || startsThread(Call);
  for (const Expr *Argument : operandsOf(Call)) {
    Any |= effects(Argument);
    // If the object of a thread is dropped, its destructor ends the program.
    Writes |= startsThread(Argument->IgnoreUnlessSpelledInSource());
    if (isPure(Call) || !mayWrite(Call, Argument))
      continue;
    Writes |= relatedAny(mayChange(Argument));
  }
  if (!Writes)
    return Any;
  runUnknown(Call);
  if (Effects.insert(Call).second)
    Changed = true;
  return true;
}

// The object decides which function is called. It must have been constructed for that.
void Related::callVirtual(const CallExpr *Call, const CXXMethodDecl *Named,
                          const PointsTo::Callees &Callees) {
  std::string Name = Named->getQualifiedNameAsString();
  for (const Function *F : seenBy(*Current->Home, Callees.Functions)) {
    const auto *Method = cast<CXXMethodDecl>(F->Decl);
    // Another unit's function is called by its prefetch version, and found by the class that declares it first.
    if (F->Home != Current->Home && (!F->WholeBecause.empty() || !firstOf(Method)))
      refuse(*Current, "it calls " + Name + "(), which is virtual, and may mean a function that another unit leaves whole");
    else if (Method->getParent()->isLocalClass())
      refuse(*Current, "it calls " + Name + "(), which is virtual, and may mean that of a class without a name");
  }
  const Expr *Object = objectOf(Call);
  for (NodeId Id : Object->isGLValue() ? Pointers.locations(Object) : Pointers.pointees(Object))
    mark(Id);
}

void Related::callFunctions(const CallExpr *Call, const PointsTo::Callees &Callees) {
  set(Call, Treatment::Translate);
  refuseUncarried(Call);
  if (const CXXMethodDecl *Named = virtualCallee(Call))
    callVirtual(Call, Named, Callees);
  if (!directCallee(Call))
    value(Call->getCallee());
  if (!Callees.Complete)
    refuse(*Current, "it calls through a pointer whose targets are not known");
  for (Function *F : Callees.Functions) {
    if (Reached.test_and_set(F->Index))
      Changed = true;
    if (!F->WholeBecause.empty())
      whole(*F);
    if (F->Name == "main")
      refuse(*Current, "it calls main()");
  }
  if (const Expr *Object = objectOf(Call)) {
    bool Effect = effects(Object);
    if (Effect || passesObject(Call))
      hand(Object);
  }
  for (unsigned I = firstArgument(Call); I < Call->getNumArgs(); ++I) {
    const Expr *Argument = Call->getArg(I);
    bool Effect = effects(Argument);
    if (Effect || passes(Call, I) || Callees.Others)
      hand(Argument);
    if (Callees.Others)
      markReachable(Pointers.pointees(Argument));
  }
}

} // namespace foreread::slicer
