// Constraints of calls: functions of the program, library functions by their line in the call table, and unknown
// functions, which may do anything with their arguments.
#include "Cxx.h"
#include "PointsTo.h"

namespace foreread::slicer {

using namespace clang;

NodeId PointsTo::call(const CallExpr *Call) {
  if (const CXXMethodDecl *Virtual = virtualCallee(Call)) {
    NodeId Result = Values[Call] = fresh();
    for (Function *F : P.overriders(Virtual))
      connect(Call, *F);
    return Result;
  }
  if (assignsPlainly(Call)) {
    value(Call->getArg(0));
    copy(bound(Call->getArg(1), false), load(place(Call->getArg(0))));
    return address(place(Call->getArg(0)));
  }
  for (const Expr *Argument : operandsOf(Call))
    value(Argument);
  if (const FunctionDecl *Callee = directCallee(Call)) {
    if (Function *F = P.function(Callee)) {
      connect(Call, *F);
      if (F->Allocates) {
        NodeId Result = fresh();
        points(Result, P.heap(Call));
        return Result;
      }
      return P.result(*F);
    }
    if (const CallSpec *Spec = P.spec(Call))
      return libraryCall(Call, *Spec);
    return unknownCall(Call);
  }
  // The result of a call through a pointer: one node, to which the results of all targets are copied.
  NodeId Result = fresh();
  Values[Call] = Result;
  if (NodeId Pointer = value(Call->getCallee())) {
    cell(Pointer).Calls.push_back(Call);
    cell(Pointer).Done.clear();
    touch(Pointer);
  }
  return Result;
}

void PointsTo::connect(const CallExpr *Call, Function &F) {
  if (!Connected.insert({Call, F.Index}).second)
    return;
  unsigned Parameters = F.Decl->getNumParams();
  if (const Expr *Object = objectOf(Call); Object && F.method())
    copy(bound(Object, !Object->getType()->isPointerType()), P.self(F));
  for (unsigned I = 0; I + firstArgument(Call) < Call->getNumArgs(); ++I) {
    NodeId Argument = bound(Call->getArg(I + firstArgument(Call)), boundByReference(F.Decl, I));
    if (I < Parameters)
      copy(Argument, P.parameter(F, I));
    else
      copy(Argument, P.varargs(F));
  }
  if (!directCallee(Call) || virtualCallee(Call))
    copy(P.result(F), Values.lookup(Call));
}

// A library function may call a function of the program with any of its arguments.
void PointsTo::connectCallback(const CallExpr *Call, Function &F) {
  if (!Connected.insert({Call, F.Index}).second)
    return;
  for (unsigned I = 0; I < F.Decl->getNumParams(); ++I) {
    for (const Expr *Argument : Call->arguments())
      copy(value(Argument), P.parameter(F, I));
    if (F.Decl->getParamDecl(I)->getType()->isPointerType())
      points(P.parameter(F, I), P.state("library memory"));
  }
}

// A function of the C++ library calls functions of the program by name, with its arguments and the memory that these
// point to. It may return their results.
void PointsTo::connectThrough(const FunctionDecl *Library, NodeId Given) {
  for (Function *F : P.runThrough(Library)) {
    NodeId Inner = load({0, Given});
    auto Hand = [&](NodeId To) {
      copy(Given, To);
      copy(Inner, To);
    };
    if (F->method())
      Hand(P.self(*F));
    for (unsigned I = 0; I < F->Decl->getNumParams(); ++I)
      Hand(P.parameter(*F, I));
    copy(P.result(*F), Given);
  }
}

NodeId PointsTo::libraryCall(const CallExpr *Call, const CallSpec &Spec) {
  llvm::StringRef Name = plainName(directCallee(Call)->getName());
  unsigned Count = Call->getNumArgs();
  auto Argument = [&](unsigned I) { return I < Count ? value(Call->getArg(I)) : 0; };

  if (Name == "va_start" && Current) {
    NodeId Arguments = P.varargs(*Current);
    NodeId Pointer = fresh();
    points(Pointer, Arguments);
    store({0, Argument(0)}, Pointer);
    return 0;
  }
  for (unsigned I = 0; I < Count; ++I) {
    char Letter = Spec.parameter(I);
    if (Letter == 'w' || Letter == 'b' || Letter == 'd') {
      for (unsigned J = 0; J < Count; ++J)
        if (I != J && (Spec.parameter(J) == 'r' || Spec.parameter(J) == 'b') && Argument(J))
          store({0, Argument(I)}, load({0, Argument(J)}));
      if (Spec.Kind == CallKind::Stream && Spec.Result != 'F') {
        NodeId Ends = fresh();
        points(Ends, P.file(Call));
        store({0, Argument(I)}, Ends);
      }
    } else if (Letter == 'o') {
      NodeId Memory = fresh();
      points(Memory, P.heap(Call));
      store({0, Argument(I)}, Memory);
    } else if (Letter == 'e') {
      store({0, Argument(I)}, Argument(0));
    } else if (Letter == 'c' && Argument(I)) {
      cell(Argument(I)).Calls.push_back(Call);
      cell(Argument(I)).Done.clear();
      touch(Argument(I));
    }
  }
  if (renumbers(Spec.Name) && Count > 1) {
    // A number that is not a constant is known by the variable that holds it.
    if (std::optional<uint64_t> Number = numberOf(Call->getArg(1)))
      copy(Argument(0), numbered(*Number));
    else if (const Expr *Holder = Call->getArg(1)->IgnoreParenImpCasts(); Holder->isLValue())
      store(place(Holder), Argument(0));
  }
  NodeId Result = fresh();
  switch (Spec.Result) {
  case 'h':
    points(Result, P.heap(Call));
    return Result;
  case 'g':
    points(Result, P.state(std::string("library memory of ") + Spec.Name));
    return Result;
  case 'R': { // realloc: the new memory has the old one's content
    NodeId Memory = P.heap(Call);
    points(Result, Memory);
    copy(Argument(0), Result);
    store({0, Result}, load({0, Argument(0)}));
    return Result;
  }
  case 'P':
    return load({0, Argument(0)});
  case 'F':
    points(Result, P.file(Call));
    return Result;
  default:
    if (Spec.Result >= '0' && Spec.Result <= '9')
      return Argument(Spec.Result - '0');
    return 0;
  }
}

NodeId PointsTo::unknownCall(const CallExpr *Call) {
  llvm::StringRef Name;
  if (const FunctionDecl *Callee = directCallee(Call); Callee && Callee->getIdentifier())
    Name = Callee->getName();
  // Built-in functions of numbers.
  if (Name == "__builtin_expect" && Call->getNumArgs() > 0)
    return value(Call->getArg(0));
  if (Name.starts_with("__builtin_") && !Call->getType()->isPointerType())
    return 0;
  std::vector<NodeId> Given, Written;
  for (const Expr *Argument : operandsOf(Call))
    if (NodeId Value = bound(Argument, Argument->isGLValue())) {
      Given.push_back(Value);
      if (Argument->getType()->isPointerType() || mayWrite(Call, Argument))
        Written.push_back(Value);
      if (Argument->getType()->isPointerType()) {
        cell(Value).Calls.push_back(Call);
        cell(Value).Done.clear();
        touch(Value);
      }
    }
  if (Function *Body = P.thread(Call).Target) {
    // Nobody uses the content of a container of threads.
    std::vector<NodeId> Arguments;
    for (const Expr *Argument : Call->arguments())
      Arguments.push_back(bound(Argument, Argument->isGLValue()));
    runThread(*Body, llvm::ArrayRef(Arguments).drop_front(startsAnswering(Call) ? 2 : 1));
    if (startsAnswering(Call)) {
      Given = {P.result(*Body)};
      Written.clear();
    } else {
      Given = Written = {bound(objectOf(Call), !objectOf(Call)->getType()->isPointerType())};
    }
  }
  NodeId All = anything(P.heap(Call), Given, Written);
  connectThrough(directCallee(Call), All);
  if (const Expr *Back = givenBack(Call))
    return bound(Back, !Back->getType()->isPointerType());
  return All;
}

NodeId PointsTo::anything(NodeId Result, llvm::ArrayRef<NodeId> Given,
                          llvm::ArrayRef<NodeId> Written) {
  NodeId All = fresh(), Into = fresh();
  points(All, Result);
  points(Into, Result);
  for (NodeId Each : Given)
    copy(Each, All);
  for (NodeId Each : Written)
    copy(Each, Into);
  store({0, Into}, All);
  return All;
}

// The number of a descriptor, if it is known: a constant, or standard input's.
std::optional<uint64_t> PointsTo::numberOf(const Expr *Descriptor) const {
  if (const auto *Call = dyn_cast<CallExpr>(Descriptor->IgnoreParenImpCasts())) {
    const CallSpec *Spec = P.spec(Call);
    const auto *Of = Spec && plainName(Spec->Name) == "fileno" && Call->getNumArgs() == 1
                         ? dyn_cast<DeclRefExpr>(Call->getArg(0)->IgnoreParenImpCasts())
                         : nullptr;
    return Of && Of->getDecl()->getName() == "stdin" ? std::optional<uint64_t>(0) : std::nullopt;
  }
  Expr::EvalResult Value;
  if (Descriptor->isValueDependent() || !Descriptor->EvaluateAsInt(Value, *Context) || Value.Val.getInt().isNegative())
    return std::nullopt;
  return Value.Val.getInt().getLimitedValue();
}

void PointsTo::findNumbers() {
  for (auto &F : P.Functions) {
    Context = &F->Home->context();
    // If the function executes another program, that program reads from the number.
    if (llvm::any_of(F->Calls, [&](const CallExpr *Call) {
          const CallSpec *Spec = P.spec(Call);
          return Spec && llvm::StringRef(Spec->Name).starts_with("exec");
        }))
      continue;
    for (const CallExpr *Call : F->Calls)
      if (const CallSpec *Spec = P.spec(Call); Spec && renumbers(Spec->Name) && Call->getNumArgs() > 1)
        if (std::optional<uint64_t> Number = numberOf(Call->getArg(1)))
          Numbers[*Number] = P.state("descriptor " + std::to_string(*Number));
  }
  if (NodeId Input = numbered(0))
    points(Input, P.standardStream("stdin"));
}

namespace {

// A function that only returns memory that it allocates: its result is an allocation, or a local variable to which only
// allocations are assigned.
class AllocatorShape {
public:
  AllocatorShape(const Program &P) : P(P) {}

  bool matches(const Function &F) {
    QualType Type = F.Decl->getReturnType();
    if (!Type->isPointerType())
      return false;
    Returned = false;
    return walk(F.Decl->getBody()) && Returned && variablesHold(F);
  }

private:
  bool fromAllocation(const Expr *E) {
    E = E->IgnoreParenCasts();
    if (isa<CXXNewExpr>(E))
      return true;
    if (const auto *Call = dyn_cast<CallExpr>(E)) {
      if (const Function *F = P.function(directCallee(Call)))
        return F->Allocates;
      const CallSpec *Spec = P.spec(Call);
      return Spec && Spec->Result == 'h' && Spec->Kind == CallKind::Private;
    }
    if (const auto *Choice = dyn_cast<ConditionalOperator>(E))
      return fromAllocation(Choice->getTrueExpr()) && fromAllocation(Choice->getFalseExpr());
    return E->isIntegerConstantExpr(*Context);
  }

  bool walk(const Stmt *S) {
    if (!S)
      return true;
    if (const auto *Return = dyn_cast<ReturnStmt>(S); Return && Return->getRetValue()) {
      const Expr *Value = Return->getRetValue()->IgnoreParenCasts();
      if (const auto *Ref = dyn_cast<DeclRefExpr>(Value)) {
        const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl());
        if (!Variable || !Variable->isLocalVarDecl() || Variable->isStaticLocal())
          return false;
        Variables.insert(Variable);
        Returned = true;
      } else if (fromAllocation(Value)) {
        Returned |= isa<CallExpr, CXXNewExpr>(Value);
      } else {
        return false;
      }
    }
    for (const Stmt *Child : S->children())
      if (!walk(Child))
        return false;
    return true;
  }

  // True if only allocations are assigned to each returned variable, and it is stored nowhere else.
  bool variablesHold(const Function &F) {
    for (const VarDecl *Variable : Variables) {
      if (Variable->getInit() && !fromAllocation(Variable->getInit()))
        return false;
      if (!uses(F.Decl->getBody(), Variable))
        return false;
    }
    return true;
  }

  bool uses(const Stmt *S, const VarDecl *Variable) {
    if (!S)
      return true;
    if (const auto *Binary = dyn_cast<BinaryOperator>(S); Binary && Binary->isAssignmentOp()) {
      if (names(Binary->getLHS(), Variable)) {
        if (!fromAllocation(Binary->getRHS()))
          return false;
      } else if (names(Binary->getRHS(), Variable)) {
        return false;
      }
    }
    if (const auto *Unary = dyn_cast<UnaryOperator>(S);
        Unary && Unary->getOpcode() == UO_AddrOf && names(Unary->getSubExpr(), Variable))
      return false;
    for (const Stmt *Child : S->children())
      if (!uses(Child, Variable))
        return false;
    return true;
  }

  static bool names(const Expr *E, const VarDecl *Variable) {
    const auto *Ref = dyn_cast<DeclRefExpr>(E->IgnoreParenCasts());
    return Ref && Ref->getDecl() == Variable;
  }

  const Program &P;
  ASTContext *Context = nullptr;
  llvm::DenseSet<const VarDecl *> Variables;
  bool Returned = false;

public:
  void in(ASTContext &C) { Context = &C; }
};

} // namespace

void PointsTo::findAllocators() {
  bool Changed = true;
  while (Changed) {
    Changed = false;
    for (auto &F : P.Functions) {
      if (F->Allocates)
        continue;
      AllocatorShape Shape(P);
      Shape.in(F->Home->context());
      if (Shape.matches(*F))
        F->Allocates = Changed = true;
    }
  }
}

} // namespace foreread::slicer
