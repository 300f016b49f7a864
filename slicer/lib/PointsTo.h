// What pointers may point to: Andersen's analysis (inclusion constraints, insensitive to flow and
// context), by fields.  Descriptors and streams are traced as pointers to the file they were
// opened for, so that one analysis answers "which object" and "which file".
//
// A node stands for a piece of memory and for what is stored in it.  Functions that only allocate
// are seen through: each call of one is an allocation of its own.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "Program.h"

namespace foreread::slicer {

class PointsTo {
public:
  explicit PointsTo(Program &P) : P(P) {}

  // Generates the constraints of the whole program and solves them.
  void run();

  // The nodes an lvalue may stand for.
  NodeSet locations(const clang::Expr *Lvalue);
  // The nodes a pointer (descriptor, stream) may point to.
  NodeSet pointees(const clang::Expr *Pointer);
  const NodeSet &pointees(NodeId Cell) { return cell(Cell).Points; }
  // The functions a call may call, if all of them are known.
  struct Callees {
    std::vector<Function *> Functions;
    bool Complete = true; // there is something to call
    bool Others = false;  // there may be functions that are not known
  };
  Callees callees(const clang::CallExpr *Call);
  // The functions of the program that an argument may be.
  std::vector<Function *> functions(const clang::Expr *Pointer);

  // What descriptors are known by a number, where dup2() or dup3() give it to one, or 0.
  NodeId numbered(uint64_t Number) const {
    auto Known = Numbers.find(Number);
    return Known == Numbers.end() ? 0 : Known->second;
  }

  // The record types that memory has been used as, by node: what "all of it" comprises.
  NodeSet whole(NodeId Object);
  // The same, and what else an access through a pointer to a type may mean.
  NodeSet bytes(NodeId Object, clang::QualType As);
  // The fields that share bytes with a field or a variable.
  const NodeSet &overlapping(NodeId Field);

private:
  struct Place {
    NodeId Direct = 0;
    NodeId Pointer = 0;
  };
  struct Cell {
    NodeSet Points, Done;
    std::vector<NodeId> Copies, Loads, Stores;
    std::vector<const clang::CallExpr *> Calls;
    bool Queued = false;
  };

  void cover(const clang::Stmt *S);
  void declare(const clang::VarDecl *Variable);
  void initialise(NodeId Into, clang::QualType Type, const clang::Expr *Value);
  void initialiseObject(NodeId Into, clang::QualType Type, const clang::Expr *Value);
  NodeId value(const clang::Expr *E);
  NodeId generate(const clang::Expr *E);
  Place place(const clang::Expr *E);
  NodeId load(Place From);
  NodeId address(Place Of);
  void store(Place Into, NodeId From);
  NodeId bound(const clang::Expr *E, bool ByReference);
  std::optional<NodeId> generateCxx(const clang::Expr *E);
  std::optional<Place> placeCxx(const clang::Expr *E);
  std::optional<NodeSet> locationsCxx(const clang::Expr *Lvalue);
  void construct(NodeId Object, const clang::CXXConstructExpr *Made);
  void initialisers(const Function &F);
  void part(const Function &F, const clang::Expr *Init);
  NodeId call(const clang::CallExpr *Call);
  NodeId libraryCall(const clang::CallExpr *Call, const CallSpec &Spec);
  NodeId unknownCall(const clang::CallExpr *Call);
  // Something that may give back anything it is given, and store it in what it may write to.
  NodeId anything(NodeId Result, llvm::ArrayRef<NodeId> Given, llvm::ArrayRef<NodeId> Written);
  void connect(const clang::CallExpr *Call, Function &F);
  void runThread(Function &Body, llvm::ArrayRef<NodeId> Given);
  void connectThrough(const clang::FunctionDecl *Library, NodeId Given);
  void connectCallback(const clang::CallExpr *Call, Function &F);
  void findAllocators();
  void findNumbers();
  std::optional<uint64_t> numberOf(const clang::Expr *Descriptor) const;

  NodeId fresh();
  void points(NodeId At, NodeId Object);
  void copy(NodeId From, NodeId To);
  void solve();
  void touch(NodeId At);
  Cell &cell(NodeId Id);
  bool overlap();
  void link(NodeId One, NodeId Other);
  void lay(const clang::RecordDecl *Record, const clang::RecordDecl *Over, uint64_t At);
  void layUnion(NodeId Whole, const llvm::DenseSet<const clang::FieldDecl *> &Members);
  void layObject(NodeId Object, const clang::RecordDecl *As, llvm::SmallVectorImpl<const clang::RecordDecl *> &Others);

  Program &P;
  std::deque<Cell> Cells;
  // The copies that there are already.
  llvm::DenseSet<std::pair<NodeId, NodeId>> Edges;
  // First in, first out: what a cell is given meanwhile goes on from it at once.
  std::deque<NodeId> Work;
  llvm::DenseMap<const clang::Expr *, NodeId> Values;
  llvm::DenseMap<NodeId, NodeId> Addresses;
  // Any number may be asked for: a DenseMap keeps two for itself.
  std::map<uint64_t, NodeId> Numbers;
  llvm::DenseSet<std::pair<const clang::CallExpr *, unsigned>> Connected;
  std::vector<std::pair<NodeId, clang::QualType>> UsedAs;
  llvm::DenseMap<NodeId, NodeSet> Contents;
  // Where pointers are reached through pointers, which may be to bytes of a structure.
  std::vector<std::pair<NodeId, clang::QualType>> Raw;
  // The members of unions that are named anywhere, by the node of the union.
  std::map<NodeId, llvm::DenseSet<const clang::FieldDecl *>> UnionMembers;
  llvm::DenseMap<NodeId, NodeSet> Overlaps;
  std::set<std::tuple<NodeId, NodeId, uint64_t>> Laid;
  const Function *Current = nullptr;
  clang::ASTContext *Context = nullptr;
};

} // namespace foreread::slicer
