#include "Elements.h"

#include <map>
#include <set>

#include "Progressions.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// An array with more pieces than that is left in one.
constexpr size_t Most = 64;

struct Range {
  int64_t First, Last;
};

struct Access {
  const ArraySubscriptExpr *Element;
  std::optional<Range> Of; // none: any element
};

struct Array {
  uint64_t Size = 0; // elements of the first dimension; 0 if not known
  std::vector<Access> Accesses;
};

class Collector {
public:
  Collector(Program &P, std::map<NodeId, Array> &Into) : P(P), Into(Into) {}

  void function(const Function &Each) {
    F = &Each;
    AddressTaken.clear();
    pointedTo(F->Decl->getBody());
    collect(F->Decl->getBody());
  }

private:
  void pointedTo(const Stmt *S) {
    if (const auto *Unary = dyn_cast<UnaryOperator>(S); Unary && Unary->getOpcode() == UO_AddrOf)
      if (const auto *Ref = dyn_cast<DeclRefExpr>(Unary->getSubExpr()->IgnoreParens()))
        AddressTaken.insert(Ref->getDecl());
    for (const Stmt *Child : S->children())
      if (Child)
        pointedTo(Child);
  }

  void collect(const Stmt *S) {
    if (const auto *Element = dyn_cast<ArraySubscriptExpr>(S))
      enter(Element);
    for (const Stmt *Child : S->children())
      if (Child)
        collect(Child);
  }

  // Of a[i][j], too, what counts is i.
  void enter(const ArraySubscriptExpr *Element) {
    for (const ArraySubscriptExpr *At = Element;;) {
      const auto *Decay = dyn_cast<CastExpr>(At->getBase()->IgnoreParens());
      if (!Decay || Decay->getCastKind() != CK_ArrayToPointerDecay)
        return;
      const Expr *Of = Decay->getSubExpr()->IgnoreParens();
      if (const auto *Outer = dyn_cast<ArraySubscriptExpr>(Of)) {
        At = Outer;
        continue;
      }
      const auto *Ref = dyn_cast<DeclRefExpr>(Of);
      const auto *Variable = Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
      if (!Variable)
        return;
      Array &Here = Into[P.variable(Variable)];
      if (const auto *Type = F->Home->context().getAsConstantArrayType(Variable->getType()))
        Here.Size = Type->getSize().getZExtValue();
      Here.Accesses.push_back({Element, range(At->getIdx(), At)});
      return;
    }
  }

  std::optional<Range> range(const Expr *Index, const Stmt *At) {
    Index = strip(Index);
    Expr::EvalResult Value;
    if (Index->EvaluateAsInt(Value, F->Home->context()))
      return Range{Value.Val.getInt().getExtValue(), Value.Val.getInt().getExtValue()};
    if (const auto *Ref = dyn_cast<DeclRefExpr>(Index))
      return AddressTaken.contains(Ref->getDecl()) ? std::nullopt : loop(Ref->getDecl(), At);
    const auto *Binary = dyn_cast<BinaryOperator>(Index);
    if (!Binary || !Binary->isAdditiveOp())
      return std::nullopt;
    std::optional<Range> Left = range(Binary->getLHS(), At), Right = range(Binary->getRHS(), At);
    if (!Left || !Right)
      return std::nullopt;
    if (Binary->getOpcode() == BO_Add)
      return Range{Left->First + Right->First, Left->Last + Right->Last};
    return Range{Left->First - Right->Last, Left->Last - Right->First};
  }

  // What the index of a loop with constant bounds may be in its body.
  std::optional<Range> loop(const ValueDecl *Index, const Stmt *At) {
    const Stmt *Part = At;
    for (const Stmt *Up = F->Parents.lookup(At); Up; Part = Up, Up = F->Parents.lookup(Up)) {
      const auto *For = dyn_cast<ForStmt>(Up);
      if (!For || For->getBody() != Part)
        continue;
      Turns Here(For);
      if (!Here.Over || Here.Over->Index != Index)
        continue;
      const ASTContext &Context = F->Home->context();
      Expr::EvalResult First;
      std::optional<uint64_t> Times = Here.Over->turns(Context);
      if (!Times || *Times == 0 || !Here.Over->First->EvaluateAsInt(First, Context))
        return std::nullopt;
      int64_t From = First.Val.getInt().getExtValue(),
              To = From + Here.Over->Step * static_cast<int64_t>(*Times - 1);
      return Range{std::min(From, To), std::max(From, To)};
    }
    return std::nullopt;
  }

  Program &P;
  std::map<NodeId, Array> &Into;
  const Function *F = nullptr;
  llvm::DenseSet<const ValueDecl *> AddressTaken;
};

void split(Program &P, NodeId Id, const Array &Of) {
  int64_t Size = Of.Size;
  auto Known = [&](const Access &Each) {
    return Each.Of && Each.Of->First >= 0 && Each.Of->Last < Size;
  };
  std::set<int64_t> Starts{0};
  for (const Access &Each : Of.Accesses)
    if (Known(Each)) {
      Starts.insert(Each.Of->First);
      if (Each.Of->Last + 1 < Size)
        Starts.insert(Each.Of->Last + 1);
    }
  if (Starts.size() < 2 || Starts.size() > Most)
    return;
  // The first piece is the variable's own node.
  std::vector<std::pair<uint64_t, NodeId>> Pieces;
  NodeSet All;
  for (int64_t Start : Starts) {
    NodeId Piece = Start == 0 ? Id : P.add(Node(P.Nodes[Id]));
    Pieces.push_back({Start, Piece});
    All.set(Piece);
  }
  for (auto &[Start, Piece] : Pieces)
    P.Pieces[Piece] = All;
  P.Arrays[Id] = Pieces;
  for (const Access &Each : Of.Accesses) {
    NodeSet &Meant = P.Elements[Each.Element];
    for (auto &[Start, Piece] : Pieces)
      if (!Known(Each) || (static_cast<int64_t>(Start) >= Each.Of->First &&
                           static_cast<int64_t>(Start) <= Each.Of->Last))
        Meant.set(Piece);
  }
}

} // namespace

void splitArrays(Program &P) {
  std::map<NodeId, Array> Arrays;
  Collector Collect(P, Arrays);
  for (auto &F : P.Functions)
    Collect.function(*F);
  for (auto &[Id, Each] : Arrays)
    split(P, Id, Each);
}

} // namespace foreread::slicer
