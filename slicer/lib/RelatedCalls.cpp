// What becomes of calls: of the program's own functions (paper, section 4.2), and of the library's
// by their line in the call table.
#include "Related.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// A program that leaves this way has failed; nothing after it matters.
bool fails(const CallExpr *Call, const CallSpec &Spec, ASTContext &Context) {
  if (llvm::StringRef(Spec.Parameters).starts_with("v") && Call->getNumArgs() > 0) {
    Expr::EvalResult Status;
    if (Call->getArg(0)->EvaluateAsInt(Status, Context))
      return Status.Val.getInt() != 0;
    return false;
  }
  return true;
}

bool isBuiltin(const CallExpr *Call) {
  const FunctionDecl *Callee = directCallee(Call);
  return Callee && Callee->getBuiltinID() != 0;
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

// A function that runs in the prefetch thread as it is: everything it looks at is needed, and so is
// what the functions it calls look at.
void Related::whole(Function &F) {
  if (!Wholes.test_and_set(F.Index))
    return;
  Changed = true;
  Function *Outer = Current;
  bool Was = AsItIs;
  Current = &F;
  AsItIs = true;
  needAll(F.Decl->getBody());
  Current = Outer;
  AsItIs = Was;
}

void Related::needAll(const Stmt *S) {
  if (!S)
    return;
  if (const auto *E = dyn_cast<Expr>(S))
    return value(E);
  if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
    for (const Decl *D : Declared->decls())
      if (const auto *Variable = dyn_cast<VarDecl>(D)) {
        typeSizes(Variable->getType());
        if (Variable->getInit())
          value(Variable->getInit());
      }
    return;
  }
  for (const Stmt *Child : S->children())
    needAll(Child);
}

// A call within such a function.
void Related::callAsItIs(const CallExpr *Call) {
  value(Call->getCallee());
  for (const Expr *Argument : Call->arguments()) {
    value(Argument);
    if (P.spec(Call))
      markPointees(Argument);
    else if (!P.function(directCallee(Call)))
      markReachable(Argument);
    for (Function *F : Pointers.functions(Argument))
      whole(*F);
  }
  for (Function *F : Pointers.callees(Call).Functions)
    whole(*F);
}

// A kept call of a library function: everything its line says it looks at.
void Related::keepCall(const CallExpr *Call, const CallSpec &Spec) {
  if (const Expr *Callee = Call->getCallee(); !directCallee(Call))
    value(Callee);
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    const Expr *Argument = Call->getArg(I);
    value(Argument);
    switch (Spec.parameter(I)) {
    case 'r':
    case 'b':
    case 'p':
      markPointees(Argument);
      break;
    case 'o':
      for (NodeId Object : Pointers.pointees(Argument))
        mark(Object);
      break;
    case 'c':
      for (Function *F : Pointers.functions(Argument))
        if (!hasEffects(*F))
          whole(*F);
      break;
    default:
      break;
    }
  }
  if (Spec.State)
    markAll(written(Call, Spec));
}

// Whether the program's reading of data decides where it reads next.
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
  if (!meets(Call)) {
    // It cannot be counted: the prefetch thread reads for itself, and says nothing of it.
    set(Call, Treatment::Keep);
    keepCall(Call, Spec);
    return effect({}, false);
  }
  llvm::StringRef Name = plainName(Spec.Name);
  // How far these move depends on what they find.
  bool ByContent = llvm::StringSwitch<bool>(Name)
                       .Cases("fgets", "fscanf", "getline", "getdelim", "scanf", true)
                       .Default(false);
  bool ResultIsData = llvm::StringSwitch<bool>(Name)
                          .Cases("getc", "fgetc", "getchar", "_IO_getc", true)
                          .Default(false);
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
    if (Letter == 'r' || (Vector && Letter == 'd'))
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

// A call that looks at part of a mapped file, for something the prefetch thread has no use for: it
// announces that part (paper, 4.3: "memory mapped I/O", which was left undone there).
bool Related::touches(const CallExpr *Call, const CallSpec &Spec) {
  Looked Bytes = looksAt(Call, Spec);
  if (!Bytes.Pointer || !meets(Call) ||
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
  bool Strings = Name == "readv" || Name == "preadv";
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
    refuse(*Current, "what " + std::string(Spec.Name) +
                         "() gets from a file that is not prefetched decides where it reads");
  effect({}, false);
}

// A library function calls one of the program's that reads files: it is given the prefetch version.
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
      refuse(*Current, std::string("one of several functions that read files is given to ") +
                           Spec.Name + "()");
  }
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
    if (fails(Call, Spec, Current->Home->context()))
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

bool Related::isPure(const CallExpr *Call) const {
  const FunctionDecl *Callee = directCallee(Call);
  return isBuiltin(Call) || (Callee && Callee->getIdentifier() &&
                             llvm::is_contained(Chosen.Pure, Callee->getNameAsString()));
}

// A function of which nothing is known is run in the prefetch thread as it is, with all it may look
// at.
void Related::runUnknown(const CallExpr *Call) {
  std::string Name = directCallee(Call)->getNameAsString();
  if (Chosen.RefuseUnknown)
    refuse(*Current, "what " + Name + "() does, which is not known, decides where it reads");
  set(Call, Treatment::Keep);
  Unknown.insert(Call);
  for (const Expr *Argument : Call->arguments()) {
    value(Argument);
    markReachable(Argument);
    for (Function *F : Pointers.functions(Argument))
      if (!hasEffects(*F))
        whole(*F);
  }
  effect({}, false);
}

bool Related::unknownEffects(const CallExpr *Call) {
  bool Any = false, Writes = false;
  for (const Expr *Argument : Call->arguments()) {
    Any |= effects(Argument);
    QualType Type = Argument->getType();
    if (isPure(Call) || !Type->isPointerType() || Type->getPointeeType().isConstQualified())
      continue;
    for (NodeId Object : Pointers.pointees(Argument))
      Writes |= relatedAny(Pointers.whole(Object));
  }
  if (!Writes)
    return Any;
  runUnknown(Call);
  if (Effects.insert(Call).second)
    Changed = true;
  return true;
}

void Related::callFunctions(const CallExpr *Call, const PointsTo::Callees &Callees) {
  set(Call, Treatment::Translate);
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
  for (unsigned I = 0; I < Call->getNumArgs(); ++I) {
    const Expr *Argument = Call->getArg(I);
    bool Effect = effects(Argument);
    if (Effect || passes(Call, I) || Callees.Others)
      value(Argument);
    if (Callees.Others)
      markReachable(Argument);
  }
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
  // A call of anything at all may read files, but nothing says that it does.
  if (!Any) {
    for (const Expr *Argument : Call->arguments())
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
      for (const Expr *Argument : Call->arguments()) {
        value(Argument);
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
