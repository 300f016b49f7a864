#include "Webs.h"

#include "clang/Analysis/CFG.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// Definitions are numbered across the function; a web is a class of definitions.
class Splitter {
public:
  Splitter(Program &P, Function &F) : P(P), F(F) {}

  void run() {
    collect(F.Decl->getBody());
    if (Variables.empty())
      return;
    CFG::BuildOptions How;
    How.setAllAlwaysAdd();
    How.PruneTriviallyFalseEdges = false;
    Flow = CFG::buildCFG(F.Decl, const_cast<Stmt *>(F.Decl->getBody()), &F.Home->context(), How);
    if (!Flow)
      return;
    number();
    propagate();
    join();
    assign();
  }

private:
  struct Event {
    const VarDecl *Variable;
    const DeclRefExpr *Ref; // null: the declaration
    bool Uses, Defines;
    unsigned Definition = 0;
  };

  static bool scalar(const VarDecl *Variable) {
    return Variable->hasLocalStorage() && Variable->getType()->isScalarType() &&
           !Variable->getType().isVolatileQualified() && !Variable->hasAttr<CleanupAttr>();
  }

  // Whether a reference uses the variable, and whether it defines the variable; neither for other references.
  std::pair<bool, bool> role(const DeclRefExpr *Ref) const {
    const Stmt *At = Ref, *Up = F.Parents.lookup(Ref);
    while (isa_and_nonnull<ParenExpr>(Up)) {
      At = Up;
      Up = F.Parents.lookup(Up);
    }
    if (const auto *Cast = dyn_cast_or_null<ImplicitCastExpr>(Up))
      return {Cast->getCastKind() == CK_LValueToRValue, false};
    if (const auto *Binary = dyn_cast_or_null<BinaryOperator>(Up);
        Binary && Binary->isAssignmentOp() && Binary->getLHS() == At)
      return {Binary->isCompoundAssignmentOp(), true};
    if (const auto *Unary = dyn_cast_or_null<UnaryOperator>(Up);
        Unary && Unary->isIncrementDecrementOp())
      return {true, true};
    return {false, false};
  }

  // Excludes variables named in a try statement or its handlers: the flow graph lacks the paths of exceptions.
  void exclude(const Stmt *S) {
    if (const auto *Ref = dyn_cast<DeclRefExpr>(S))
      if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl()))
        Excluded.insert(Variable);
    for (const Stmt *Child : S->children())
      if (Child)
        exclude(Child);
  }

  void collect(const Stmt *S) {
    if (!S)
      return;
    if (isa<CXXTryStmt>(S))
      exclude(S);
    if (const auto *Lambda = dyn_cast<LambdaExpr>(S)) {
      for (const LambdaCapture &Captured : Lambda->captures())
        if (Captured.capturesVariable())
          if (const auto *Variable = dyn_cast<VarDecl>(Captured.getCapturedVar()))
            Excluded.insert(Variable);
      return;
    }
    if (const auto *Ref = dyn_cast<DeclRefExpr>(S))
      if (const auto *Variable = dyn_cast<VarDecl>(Ref->getDecl()); Variable && scalar(Variable)) {
        auto [Uses, Defines] = role(Ref);
        // Captured variables of a lambda expression are defined elsewhere, too.
        if ((!Uses && !Defines) || Variable->getDeclContext() != F.Decl)
          Excluded.insert(Variable);
        else
          Variables.insert(Variable);
      }
    for (const Stmt *Child : S->children())
      collect(Child);
  }

  bool split(const VarDecl *Variable) const {
    return Variables.contains(Variable) && !Excluded.contains(Variable);
  }

  void event(std::vector<Event> &Into, const Expr *Target, bool Uses, bool Defines) {
    const auto *Ref = dyn_cast<DeclRefExpr>(Target->IgnoreParens());
    const auto *Variable = Ref ? dyn_cast<VarDecl>(Ref->getDecl()) : nullptr;
    if (Variable && split(Variable))
      Into.push_back({Variable, Ref, Uses, Defines});
  }

  void number() {
    Events.resize(Flow->getNumBlockIDs());
    // A parameter is defined at the beginning of the function.
    for (const ParmVarDecl *Parameter : F.Decl->parameters())
      if (split(Parameter))
        Events[Flow->getEntry().getBlockID()].push_back({Parameter, nullptr, false, true});
    for (const CFGBlock *Block : *Flow)
      for (const CFGElement &Element : *Block) {
        auto Part = Element.getAs<CFGStmt>();
        if (!Part)
          continue;
        std::vector<Event> &Into = Events[Block->getBlockID()];
        const Stmt *S = Part->getStmt();
        if (const auto *Cast = dyn_cast<ImplicitCastExpr>(S)) {
          if (Cast->getCastKind() == CK_LValueToRValue)
            event(Into, Cast->getSubExpr(), true, false);
        } else if (const auto *Binary = dyn_cast<BinaryOperator>(S)) {
          if (Binary->isAssignmentOp())
            event(Into, Binary->getLHS(), Binary->isCompoundAssignmentOp(), true);
        } else if (const auto *Unary = dyn_cast<UnaryOperator>(S)) {
          if (Unary->isIncrementDecrementOp())
            event(Into, Unary->getSubExpr(), true, true);
        } else if (const auto *Declared = dyn_cast<DeclStmt>(S)) {
          for (const Decl *D : Declared->decls())
            if (const auto *Variable = dyn_cast<VarDecl>(D); Variable && split(Variable))
              Into.push_back({Variable, nullptr, false, true});
        }
      }
    for (auto &Block : Events)
      for (Event &Each : Block)
        if (Each.Defines) {
          Each.Definition = Definitions.size();
          Definitions.push_back(&Each);
          Of[Each.Variable].set(Each.Definition);
        }
    Class.resize(Definitions.size());
    for (unsigned I = 0; I < Class.size(); ++I)
      Class[I] = I;
  }

  // Reaching definitions, to the fixpoint.
  void propagate() {
    Reaching.resize(Events.size());
    bool Changed = true;
    while (Changed) {
      Changed = false;
      for (const CFGBlock *Block : llvm::reverse(*Flow)) {
        NodeSet In = Reaching[Block->getBlockID()];
        for (const Event &Each : Events[Block->getBlockID()])
          if (Each.Defines) {
            In.intersectWithComplement(Of[Each.Variable]);
            In.set(Each.Definition);
          }
        for (const CFGBlock::AdjacentBlock &Next : Block->succs())
          if (const CFGBlock *To = Next.getReachableBlock() ? Next.getReachableBlock()
                                                            : Next.getPossiblyUnreachableBlock())
            Changed |= Reaching[To->getBlockID()] |= In;
      }
    }
  }

  unsigned find(unsigned I) {
    while (Class[I] != I)
      I = Class[I] = Class[Class[I]];
    return I;
  }

  void join() {
    for (const CFGBlock *Block : *Flow) {
      NodeSet In = Reaching[Block->getBlockID()];
      for (Event &Each : Events[Block->getBlockID()]) {
        NodeSet Here = In;
        Here &= Of[Each.Variable];
        if (Each.Uses && !Here.empty()) {
          unsigned First = Here.find_first();
          for (unsigned Other : Here)
            Class[find(Other)] = find(First);
          UsedFrom.push_back({&Each, First});
        }
        if (Each.Defines) {
          In.intersectWithComplement(Of[Each.Variable]);
          In.set(Each.Definition);
        }
      }
    }
  }

  // The web with the declaration keeps the variable's own node; every other web gets a new one.
  void assign() {
    llvm::DenseMap<unsigned, NodeId> Nodes;
    for (const Event *Each : Definitions)
      if (!Each->Ref)
        Nodes[find(Each->Definition)] = P.variable(Each->Variable);
    auto NodeOf = [&](unsigned Definition, const VarDecl *Variable) {
      auto [At, Fresh] = Nodes.try_emplace(find(Definition), 0);
      if (Fresh) {
        Node New = P.Nodes[P.variable(Variable)];
        NodeId Id = P.add(New);
        Nodes[find(Definition)] = Id;
        return Id;
      }
      return At->second;
    };
    for (const Event *Each : Definitions)
      if (Each->Ref)
        P.Webs[Each->Ref] = NodeOf(Each->Definition, Each->Variable);
    for (auto &[Use, Definition] : UsedFrom)
      (Use->Defines ? P.WebsRead : P.Webs)[Use->Ref] = NodeOf(Definition, Use->Variable);
  }

  Program &P;
  Function &F;
  std::unique_ptr<CFG> Flow;
  llvm::DenseSet<const VarDecl *> Variables, Excluded;
  std::vector<std::vector<Event>> Events;
  std::vector<Event *> Definitions;
  llvm::DenseMap<const VarDecl *, NodeSet> Of;
  std::vector<NodeSet> Reaching;
  std::vector<unsigned> Class;
  std::vector<std::pair<const Event *, unsigned>> UsedFrom;
};

} // namespace

void splitVariables(Program &P) {
  P.add(Node{NodeKind::Value, "", {}}); // node 0 is "nothing"
  for (auto &F : P.Functions) {
    bool Jumps = false;
    for (const CallExpr *Call : F->Calls)
      if (const CallSpec *Spec = P.spec(Call))
        Jumps |= Spec->Kind == CallKind::Jump;
    // The flow graph lacks the return to setjmp.
    if (!Jumps)
      Splitter(P, *F).run();
  }
}

} // namespace foreread::slicer
