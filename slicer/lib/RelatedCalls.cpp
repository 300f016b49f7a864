// Treatment of calls: of the program's functions (paper, section 4.2), and of library functions by their line in the
// call table.
#include "Cxx.h"
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// True if the program exits with an error: nothing after such a call matters.
bool fails(const CallExpr *Call, const CallSpec &Spec, ASTContext &Context) {
  if (llvm::StringRef(Spec.Parameters).starts_with("v") && Call->getNumArgs() > 0) {
    Expr::EvalResult Status;
    if (Call->getArg(0)->EvaluateAsInt(Status, Context))
      return Status.Val.getInt() != 0;
    return false;
  }
  return true;
}

} // namespace

std::vector<Function *> Related::targets(const CallExpr *Call) {
  std::vector<Function *> All;
  if (const CallSpec *Spec = P.spec(Call))
    for (unsigned I = 0; I < Call->getNumArgs(); ++I)
      if (Spec->parameter(I) == 'c')
        for (Function *F : Pointers.functions(Call->getArg(I)))
          All.push_back(F);
  return All;
}

NodeSet Related::written(const CallExpr *Call, const CallSpec &Spec) {
  NodeSet All;
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    char Letter = Spec.parameter(I);
    if (Letter == 'w' || Letter == 'b' || Letter == 'd' || Letter == 'o' || Letter == 'e')
      for (NodeId Object : Pointers.pointees(Call->getArg(I)))
        All |= Pointers.whole(Object);
    if (Letter == 'o')
      All.set(P.heap(Call));
  }
  if (Spec.Result == 'h' || Spec.Result == 'R')
    All.set(P.heap(Call));
  if (Spec.State) {
    All.set(P.state(Spec.State));
    if (llvm::StringRef(Spec.State) == "getopt")
      for (auto &U : P.Units)
        if (U->AST)
          for (const char *Name : {"optarg", "optind", "opterr", "optopt"})
            for (const NamedDecl *Found :
                 U->context().getTranslationUnitDecl()->lookup(&U->context().Idents.get(Name)))
              if (const auto *Variable = dyn_cast<VarDecl>(Found))
                All.set(P.variable(Variable));
  }
  return All;
}

// A kept call of a library function: everything that it reads by its line in the table is needed.
void Related::keepCall(const CallExpr *Call, const CallSpec &Spec) {
  if (const Expr *Callee = Call->getCallee(); !directCallee(Call))
    value(Callee);
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    const Expr *Argument = Call->getArg(I);
    value(Argument);
    switch (Spec.parameter(I)) {
    case 'r':
    case 'b':
      markPointees(Argument);
      break;
    case 'o':
      for (NodeId Object : Pointers.pointees(Argument))
        mark(Object);
      break;
    case 'c':
      for (Function *F : Pointers.functions(Argument)) {
        if (!hasEffects(*F))
          whole(*F);
        // The function's result decides how often the library calls it.
        else if (Spec.Kind != CallKind::Thread)
          mark(P.result(*F));
      }
      break;
    default:
      break;
    }
  }
  if (Spec.State)
    markAll(written(Call, Spec));
}

bool Related::libraryEffects(const CallExpr *Call, const CallSpec &Spec) {
  auto Inside = [&] {
    if (touches(Call, Spec))
      return true;
    bool Any = false;
    for (const Expr *Argument : Call->arguments())
      Any |= effects(Argument);
    return Any;
  };
  auto Own = [&](Treatment T) {
    set(Call, T);
    if (Effects.insert(Call).second)
      Changed = true;
    return true;
  };
  NodeSet Writes = written(Call, Spec);
  switch (Spec.Kind) {
  case CallKind::Read:
    if (Opened.wanted(Call, Spec)) {
      readCall(Call, Spec, false);
      return Own(treatment(Call));
    }
    if (relatedAny(Writes)) {
      receiveCall(Call, Spec);
      return Own(Treatment::Receive);
    }
    return Inside();
  case CallKind::Seek:
  case CallKind::Close:
    if (!Opened.wanted(Call, Spec))
      return Inside();
    keepCall(Call, Spec);
    effect({}, false);
    return Own(Treatment::Prefetch);
  case CallKind::Tell:
    if (!relatedAny(Writes) && Spec.Result != '-')
      return Inside();
    if (!Opened.wanted(Call, Spec))
      return Inside();
    keepCall(Call, Spec);
    effect({}, false);
    return Own(Treatment::Prefetch);
  case CallKind::Write:
    if (!Opened.wanted(Call, Spec))
      return Inside();
    for (unsigned I = 0; I < Call->getNumArgs(); ++I)
      if (Spec.parameter(I) != '.')
        value(Call->getArg(I));
    effect({}, false);
    return Own(Treatment::Assume);
  case CallKind::Open:
    if (plainName(Spec.Name) != "freopen" || !Opened.wanted(Call, Spec))
      return Inside();
    keepCall(Call, Spec);
    effect({}, false);
    return Own(Treatment::Prefetch);
  case CallKind::Exit:
    if (fails(Call, Spec, Current->Home->context()) && !paid(Call))
      return Inside();
    for (const Expr *Argument : Call->arguments())
      effects(Argument);
    effect({}, false);
    return Own(Treatment::Exit);
  case CallKind::Thread: {
    bool Starts = llvm::StringRef(Spec.Name) == "pthread_create";
    if (Starts) {
      bool Any = false;
      for (Function *F : targets(Call))
        Any |= mayHaveEffects(*F);
      if (!Any)
        return Inside();
      for (Function *F : targets(Call)) {
        if (Reached.test_and_set(F->Index))
          Changed = true;
        if (!F->WholeBecause.empty())
          whole(*F);
      }
      if (!Threads)
        Threads = Changed = true;
    } else if (!Threads) {
      return Inside();
    }
    if (Starts)
      mustMeet(Call);
    keepCall(Call, Spec);
    effect({}, false);
    return Own(Starts ? Treatment::Spawn : Treatment::Keep);
  }
  case CallKind::Varies:
    if (!relatedAny(Writes))
      return Inside();
    receiveCall(Call, Spec);
    return Own(Treatment::Receive);
  case CallKind::Unmap:
    return Inside();
  case CallKind::Map:
    if (!Opened.wanted(Call, Spec) || !relatedAny(Writes))
      return Inside();
    keepCall(Call, Spec);
    return Own(Treatment::Prefetch);
  case CallKind::Private:
  case CallKind::Query: {
    llvm::StringRef Name = Spec.Name;
    bool Frees = (Name == "free" || Name == "cfree") && Call->getNumArgs() == 1 &&
                 relatedAny(defined(Call->getArg(0)->IgnoreParenCasts()));
    bool Callbacks = false;
    for (Function *F : targets(Call))
      Callbacks |= mayHaveEffects(*F);
    if (Callbacks)
      handOver(Call, Spec);
    if (!Frees && !Callbacks && !relatedAny(Writes))
      return Inside();
    keepCall(Call, Spec);
    effect(Callbacks ? NodeSet() : Writes, false);
    return Own(Treatment::Keep);
  }
  case CallKind::Handler:
  case CallKind::Jump:
  case CallKind::Stream:
  case CallKind::Effect:
    return Inside();
  }
  return Inside();
}

bool Related::callEffects(const CallExpr *Call) {
  if (const CallSpec *Spec = P.spec(Call))
    return libraryEffects(Call, *Spec);
  PointsTo::Callees Callees = Pointers.callees(Call);
  if (directCallee(Call) && Callees.Functions.empty())
    return unknownEffects(Call);
  bool Any = false;
  for (Function *F : Callees.Functions)
    Any |= mayHaveEffects(*F);
  // A call with unknown targets might read files, but nothing indicates that it does.
  if (!Any) {
    for (const Expr *Argument : operandsOf(Call))
      Any |= effects(Argument);
    return Any;
  }
  callFunctions(Call, Callees);
  effect({}, false);
  if (Effects.insert(Call).second)
    Changed = true;
  return true;
}

void Related::callValue(const CallExpr *Call) {
  if (AsItIs)
    return callAsItIs(Call);
  const CallSpec *Spec = P.spec(Call);
  if (!Spec) {
    PointsTo::Callees Callees = Pointers.callees(Call);
    if (directCallee(Call) && Callees.Functions.empty()) {
      if (!isPure(Call))
        return runUnknown(Call);
      set(Call, Treatment::Keep);
      for (const Expr *Argument : operandsOf(Call)) {
        hand(Argument);
        markAll(Argument->isGLValue() ? defined(Argument) : NodeSet());
        markPointees(Argument);
      }
      return;
    }
    for (Function *F : Callees.Functions) {
      mark(P.result(*F));
      markAll(P.fields(F->Decl->getReturnType()));
      if (hasEffects(*F))
        effect({}, false);
    }
    return callFunctions(Call, Callees);
  }
  switch (Spec->Kind) {
  case CallKind::Read:
    if (Opened.wanted(Call, *Spec)) {
      readCall(Call, *Spec, true);
      Effects.insert(Call);
      return;
    }
    return receiveCall(Call, *Spec);
  case CallKind::Varies:
    return receiveCall(Call, *Spec);
  case CallKind::Open: {
    File *Of = Opened.opened(Call);
    if (Spec->Result == 'F' && Of && !Of->Reads) {
      set(Call, Treatment::Assume);
      for (const Expr *Argument : Call->arguments())
        effects(Argument);
      return;
    }
    if (Of && Chosen.Open != OpenMode::Self)
      mustMeet(Call);
    set(Call, Treatment::Prefetch);
    keepCall(Call, *Spec);
    return effect({}, false);
  }
  case CallKind::Seek:
  case CallKind::Close:
  case CallKind::Tell:
    // A descriptor that nothing reads from is not open in the prefetch thread.
    if (bool Names = renumbers(Spec->Name);
        (Names || Spec->Kind == CallKind::Close) && !Opened.wanted(Call, *Spec)) {
      set(Call, Treatment::Assume);
      Assumed.insert(Call);
      effects(Call->getArg(0));
      if (Names)
        value(Call->getArg(1));
      return;
    }
    set(Call, Treatment::Prefetch);
    keepCall(Call, *Spec);
    if (Spec->Kind != CallKind::Tell)
      effect({}, false);
    return;
  case CallKind::Map:
    set(Call, Treatment::Prefetch);
    return keepCall(Call, *Spec);
  case CallKind::Unmap:
  case CallKind::Stream:
  case CallKind::Write:
  case CallKind::Effect:
  case CallKind::Jump:
  case CallKind::Handler: {
    set(Call, Treatment::Assume);
    Assumed.insert(Call);
    llvm::StringRef Answer = Spec->Assumed ? Spec->Assumed : "0";
    bool Synchronised = Spec->Kind == CallKind::Write && Opened.wanted(Call, *Spec);
    for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
      bool Inside = effects(Call->getArg(I));
      if (Inside || Answer == "#" + std::to_string(I) ||
          (Synchronised && Spec->parameter(I) != '.'))
        value(Call->getArg(I));
    }
    if (Synchronised)
      effect({}, false);
    return;
  }
  case CallKind::Exit:
    set(Call, Treatment::Exit);
    return;
  case CallKind::Thread:
    if (libraryEffects(Call, *Spec))
      return;
    set(Call, Treatment::Assume);
    return;
  case CallKind::Private:
  case CallKind::Query:
    set(Call, Treatment::Keep);
    keepCall(Call, *Spec);
    if (NodeSet Writes = written(Call, *Spec); !Writes.empty())
      effect(Writes, false);
    return;
  }
}

} // namespace foreread::slicer
