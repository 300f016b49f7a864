// The constraint graph: construction, solution and queries.
#include "Cxx.h"
#include "PointsTo.h"

namespace foreread::slicer {

using namespace clang;

PointsTo::Cell &PointsTo::cell(NodeId Id) {
  while (Cells.size() <= Id)
    Cells.emplace_back();
  return Cells[Id];
}

NodeId PointsTo::fresh() {
  NodeId Id = P.add(Node{NodeKind::Value, "", {}});
  cell(Id);
  return Id;
}

void PointsTo::touch(NodeId At) {
  if (!cell(At).Queued) {
    cell(At).Queued = true;
    Work.push_back(At);
  }
}

void PointsTo::points(NodeId At, NodeId Object) {
  cell(Object);
  if (cell(At).Points.test_and_set(Object))
    touch(At);
}

void PointsTo::copy(NodeId From, NodeId To) {
  if (!From || !To || From == To)
    return;
  // Nothing is stored in constants.
  if (P.Nodes[To].Kind == NodeKind::Text || !Edges.insert({From, To}).second)
    return;
  cell(From).Copies.push_back(To);
  if ((cell(To).Points |= cell(From).Points))
    touch(To);
}

NodeId PointsTo::load(Place From) {
  if (From.Direct)
    return From.Direct;
  if (!From.Pointer)
    return 0;
  NodeId Result = fresh();
  cell(From.Pointer).Loads.push_back(Result);
  cell(From.Pointer).Done.clear();
  touch(From.Pointer);
  return Result;
}

void PointsTo::store(Place Into, NodeId From) {
  if (!From)
    return;
  if (Into.Direct)
    return copy(From, Into.Direct);
  if (!Into.Pointer)
    return;
  cell(Into.Pointer).Stores.push_back(From);
  cell(Into.Pointer).Done.clear();
  touch(Into.Pointer);
}

NodeId PointsTo::address(Place Of) {
  if (!Of.Direct)
    return Of.Pointer;
  auto [At, Fresh] = Addresses.try_emplace(Of.Direct, 0);
  if (Fresh) {
    NodeId Result = fresh();
    Addresses[Of.Direct] = Result;
    P.Nodes[Of.Direct].AddressTaken = true;
    for (NodeId Piece : P.pieces(Of.Direct))
      points(Result, Piece);
    return Result;
  }
  return At->second;
}

void PointsTo::solve() {
  while (!Work.empty()) {
    NodeId At = Work.front();
    Work.pop_front();
    Cell &Here = Cells[At];
    Here.Queued = false;
    NodeSet New = Here.Points;
    New.intersectWithComplement(Here.Done);
    if (New.empty())
      continue;
    Here.Done = Here.Points;
    for (size_t I = 0; I < Here.Copies.size(); ++I)
      if ((cell(Here.Copies[I]).Points |= New))
        touch(Here.Copies[I]);
    for (NodeId Object : New) {
      for (size_t I = 0; I < Here.Loads.size(); ++I)
        copy(Object, Here.Loads[I]);
      for (size_t I = 0; I < Here.Stores.size(); ++I)
        copy(Here.Stores[I], Object);
      if (P.Nodes[Object].Kind == NodeKind::Function)
        for (size_t I = 0; I < Here.Calls.size(); ++I) {
          Function &F = *P.Functions[P.Nodes[Object].Owner];
          if (P.spec(Here.Calls[I]) ||
              (directCallee(Here.Calls[I]) && !P.function(directCallee(Here.Calls[I]))))
            connectCallback(Here.Calls[I], F);
          else
            connect(Here.Calls[I], F);
        }
    }
  }
}

void PointsTo::run() {
  for (llvm::StringRef Name : {"stdin", "stdout", "stderr"})
    P.standardStream(Name);
  findAllocators();
  findNumbers();
  for (auto &U : P.Units)
    if (U->AST) {
      Context = &U->context();
      for (const VarDecl *Variable : P.globals(*U)) {
        declare(Variable);
        llvm::StringRef Name = Variable->getName();
        if ((Name == "stdin" || Name == "stdout" || Name == "stderr") &&
            Variable->hasExternalStorage())
          points(P.variable(Variable), P.standardStream(Name));
        if (Name == "stdin" && Variable->hasExternalStorage())
          copy(numbered(0), P.variable(Variable));
        if (Name == "optarg" && Variable->hasExternalStorage())
          points(P.variable(Variable), P.state("arguments"));
      }
    }
  for (auto &F : P.Functions) {
    Current = F.get();
    Context = &F->Home->context();
    if (F->Name == "main" && F->Decl->getNumParams() > 1) {
      NodeId Strings = P.state("argv"), Characters = P.state("arguments");
      points(P.parameter(*F, 1), Strings);
      points(Strings, Characters);
    }
    initialisers(*F);
    cover(F->Decl->getBody());
    // In instantiations of one template in one class, this is the same expression.
    for (Function *Other : P.sameText(*F))
      if (const CXXMethodDecl *Method = F->method(); Method && Other->method()->getParent() == Method->getParent())
        copy(P.self(*F), P.self(*Other));
  }
  Current = nullptr;
  cell(P.Nodes.size());
  do {
    solve();
    for (auto &[Pointer, Type] : UsedAs)
      for (NodeId Object : Cells[Pointer].Points)
        if (P.Nodes[Object].Kind != NodeKind::Field)
          Contents[Object] |= P.fields(Type);
    cell(P.Nodes.size());
  } while (overlap());
  cell(P.Nodes.size());
}

NodeSet PointsTo::whole(NodeId Object) {
  NodeSet All = P.fields(P.Nodes[Object].Type);
  All.set(Object);
  auto Used = Contents.find(Object);
  if (Used != Contents.end())
    All |= Used->second;
  return All;
}

NodeSet PointsTo::pointees(const Expr *Pointer) {
  auto Known = Values.find(Pointer);
  if (Known == Values.end()) {
    const Expr *Inner = strip(Pointer);
    if (Inner != Pointer)
      return pointees(Inner);
    // A variable that is named, not loaded: its content.
    NodeSet All;
    for (NodeId At : locations(Pointer))
      All |= cell(At).Points;
    return All;
  }
  return Known->second ? cell(Known->second).Points : NodeSet();
}

NodeSet PointsTo::locations(const Expr *E) {
  NodeSet All;
  E = E->IgnoreParens();
  if (std::optional<NodeSet> Known = locationsCxx(E))
    return *Known;
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    if (isa<VarDecl>(Ref->getDecl()))
      All.set(P.reference(Ref));
  } else if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    if (const auto *Field = dyn_cast<FieldDecl>(Member->getMemberDecl()))
      All.set(P.field(Field));
  } else if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E); Element && Element->getBase()->getType()->isVectorType()) {
    return locations(Element->getBase());
  } else if (Element) {
    auto Meant = P.Elements.find(Element);
    All = Meant == P.Elements.end() ? pointees(Element->getBase()) : Meant->second;
  } else if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    All = Unary->getOpcode() == UO_Deref ? pointees(Unary->getSubExpr())
                                         : locations(Unary->getSubExpr());
  } else if (const auto *Cast = dyn_cast<CastExpr>(E)) {
    return locations(Cast->getSubExpr());
  } else if (const auto *Literal = dyn_cast<CompoundLiteralExpr>(E)) {
    All.set(P.heap(Literal));
  }
  return All;
}

PointsTo::Callees PointsTo::callees(const CallExpr *Call) {
  Callees Result;
  if (const CXXMethodDecl *Virtual = virtualCallee(Call)) {
    Result.Functions = P.overriders(Virtual);
    // A class of a library has objects of its own, or of other derived classes.
    Result.Others = !P.function(Virtual) && !Virtual->isPureVirtual();
    return Result;
  }
  if (const FunctionDecl *Direct = directCallee(Call)) {
    if (Function *F = P.function(Direct))
      Result.Functions.push_back(F);
    return Result;
  }
  Result.Functions = functions(Call->getCallee());
  // A pointer that nothing is assigned to is never called.
  NodeSet Targets = pointees(Call->getCallee());
  for (NodeId Target : Targets)
    Result.Others |= P.Nodes[Target].Kind != NodeKind::Function;
  Result.Complete = !Result.Others || !Result.Functions.empty();
  return Result;
}

std::vector<Function *> PointsTo::functions(const Expr *Pointer) {
  std::vector<Function *> All;
  for (NodeId Target : pointees(Pointer))
    if (P.Nodes[Target].Kind == NodeKind::Function)
      All.push_back(P.Functions[P.Nodes[Target].Owner].get());
  return All;
}

} // namespace foreread::slicer
