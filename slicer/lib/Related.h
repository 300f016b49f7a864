// The statements that are related to I/O: the least set that contains the reads of prefetched files and is closed under
// "defines what is used" and "decides whether it is executed", over all functions (paper, sections 4.1 and 4.2).
// docs/io-related.md defines it in words.
//
// The set grows monotonically: nodes become related, statements that define related nodes are kept, and values used by
// kept statements become related, until nothing changes. An expression is needed either for its value, or only for kept
// effects inside it.
#pragma once

#include <set>

#include "Cxx.h"
#include "Failures.h"
#include "Files.h"
#include "Loads.h"

namespace foreread::slicer {

// Marks the functions that main may reach.
void findReachable(Program &P, PointsTo &Pointers);

// What the prefetch thread does at a call.
enum class Treatment {
  Drop,
  Keep,      // made unchanged
  Prefetch,  // prefetch_NAME
  Fetch,     // fetch_NAME: the data is needed
  Receive,   // the program makes the call and sends the result
  Assume,    // not made; a result is assumed
  Translate, // the prefetch version of a function of the program
  Exit,      // ends the prefetch thread
  Spawn,     // starts a prefetch thread
  Touch,     // announces the part of a mapped file that the call accesses
};

// The bytes that a call accesses: Length times Times of them at Pointer. Pointer is null if there are none that matter.
struct Looked {
  const clang::Expr *Pointer = nullptr, *Length = nullptr, *Times = nullptr;
};
Looked looksAt(const clang::CallExpr *Call, const CallSpec &Spec);

class Related {
public:
  Related(Program &P, PointsTo &Pointers, Files &Opened, Loads &Looks, const Options &Chosen)
      : P(P), Pointers(Pointers), Opened(Opened), Looks(Looks), Chosen(Chosen), Wrong(P) {}

  // Computes the fixpoint. Functions that prove untranslatable get a WholeBecause, and everything is computed again
  // without them.
  void run();

  bool related(NodeId Id) const { return Marked.test(Id); }
  bool relatedAny(const NodeSet &Set) const { return Marked.intersects(Set); }
  // True for kept statements, and for expressions that contain kept effects.
  bool keeps(const clang::Stmt *S) const { return Kept.contains(S); }
  // True for expressions that are kept effects themselves.
  bool isEffect(const clang::Expr *E) const { return Effects.contains(E); }
  Treatment treatment(const clang::CallExpr *Call) const;
  // The load that an expression makes, if it is announced there; the loads announced before a loop.
  const Load *loadMade(const clang::Expr *Cast) const;
  std::vector<const Load *> loadsBefore(const clang::Stmt *Loop) const {
    return Looks.before(Loop);
  }
  // True for bodies of loops and functions whose iterations and calls are counted for loads.
  bool counts(const clang::Stmt *Body) const { return Regions.contains(Body); }
  bool countsIn(const Function &F) const;
  // True if the prefetch thread passes this argument of a call of the program's functions.
  bool passes(const clang::CallExpr *Call, unsigned Argument);
  // The same for the object that a member function is called on.
  bool passesObject(const clang::CallExpr *Call);
  bool hasEffects(const Function &F) const { return Effectful.test(F.Index); }
  // True for functions with a prefetch version.
  bool translated(const Function &F) const {
    return Reached.test(F.Index) && F.WholeBecause.empty();
  }
  // The functions of the program that a library call may call, because they are passed to it.
  std::vector<Function *> targets(const clang::CallExpr *Call);
  bool threads() const { return Threads; }
  // True if the reads of a thread that starts with this function are counted.
  bool countsThread(const Function &Body) const {
    return Body.WholeBecause.empty() ? hasEffects(Body) : Body.CountsItself && Body.Reads;
  }
  // The functions that a function calls, and those that run without a call when it constructs objects.
  std::vector<Function *> runBy(const Function &F);
  bool defines(const clang::VarDecl *Variable);
  // True if the prefetch thread throws this exception, too. If nothing handles exceptions, it ends instead.
  bool throws(const clang::CXXThrowExpr *E) const { return Catches && canThrow(E); }
  bool catches() const { return Catches; }
  // Calls that are made although their callee is unknown; for the report.
  const llvm::DenseSet<const clang::CallExpr *> &unknown() const { return Unknown; }
  // Calls whose result is assumed; for the report.
  const llvm::DenseSet<const clang::CallExpr *> &assumed() const { return Assumed; }
  // True for failures that are assumed not to happen.
  bool assumesAway(const clang::IfStmt *If) const {
    return Ignored.contains(If) && !Decided.contains(If);
  }

private:
  bool statement(const clang::Stmt *S);
  bool declaration(const clang::VarDecl *Variable);
  bool conditional(const clang::Stmt *S, const clang::Expr *Condition, bool BodyKept);
  bool jump(const clang::Stmt *S);
  bool needsReturn(const clang::ReturnStmt *Return);
  bool keptBetween(unsigned From, unsigned To) const;
  const clang::Stmt *enclosingLoop(const clang::Stmt *S, bool OrSwitch) const;
  bool keptAfter(const clang::Stmt *S) const;
  bool paid(const clang::Stmt *S) const { return decided(S) && hasEffects(*Current); }
  bool decided(const clang::Stmt *S) const;

  bool settled(const clang::Expr *E);
  bool decideFailures();
  bool neededIn(const clang::Stmt *S, bool Reported);
  bool onlyCloses(const Function &F, llvm::DenseSet<const Function *> &Seen);
  bool isExit(const clang::LabelStmt *Label);
  void value(const clang::Expr *E);
  void address(const clang::Expr *Lvalue);
  bool effects(const clang::Expr *E);
  bool effectsInside(const clang::Expr *E);
  bool assignment(const clang::Expr *E, const clang::Expr *Target, const clang::Expr *From,
                  bool Reads);
  void typeSizes(clang::QualType Type);

  bool valueCxx(const clang::Expr *E);
  bool effectsCxx(const clang::Expr *E, bool &Any);
  void refuseUncarried(const clang::Expr *E);
  void operand(const clang::Expr *E);
  void hand(const clang::Expr *E);
  void make(const clang::CXXConstructExpr *Made);
  bool startsThread(const clang::Expr *E) const;
  void start(const clang::Expr *E, const clang::Expr *Argument);
  void runs(const clang::FunctionDecl *Unwritten);
  bool givenVersion(const Function &F) const;
  void object(const clang::VarDecl *Variable);
  void parts(const clang::VarDecl *Variable);
  void findCatching();
  bool tryBlock(const clang::CXXTryStmt *Try);
  bool initialisers(const Function &F);
  bool rangeFor(const clang::CXXForRangeStmt *For);

  bool callEffects(const clang::CallExpr *Call);
  bool libraryEffects(const clang::CallExpr *Call, const CallSpec &Spec);
  void handOver(const clang::CallExpr *Call, const CallSpec &Spec);
  bool readsThrough(const clang::FunctionDecl *Library);
  const NodeSet &mayChange(const clang::Expr *Operand);
  bool unknownEffects(const clang::CallExpr *Call);
  void runUnknown(const clang::CallExpr *Call);
  bool isPure(const clang::CallExpr *Call) const;
  void callValue(const clang::CallExpr *Call);
  void keepCall(const clang::CallExpr *Call, const CallSpec &Spec);
  void callVirtual(const clang::CallExpr *Call, const clang::CXXMethodDecl *Named,
                   const PointsTo::Callees &Callees);
  void callFunctions(const clang::CallExpr *Call, const PointsTo::Callees &Callees);
  void readCall(const clang::CallExpr *Call, const CallSpec &Spec, bool Value);
  void receiveCall(const clang::CallExpr *Call, const CallSpec &Spec);
  bool touches(const clang::CallExpr *Call, const CallSpec &Spec);
  void announce(const Load &Each);
  bool announceBefore(const clang::Stmt *Loop);
  bool steers(const clang::CallExpr *Call, const CallSpec &Spec);
  bool sameThere(const Function &F, const clang::CallExpr *Call, const CallSpec &Spec);
  bool makesSameReads(Function &F, llvm::DenseSet<const Function *> &Visited);
  struct Reading;
  bool meetsAt(const clang::CallExpr *Call, const CallSpec &Spec) const;
  bool mayPause(const Function &F);
  void findCounting();
  void refuseLeftWhole();
  void refuseUnlike();
  std::set<std::string> countedIn(const Function &F) const;
  void whole(Function &F);
  void needAll(const clang::Stmt *S);
  void callAsItIs(const clang::CallExpr *Call);
  bool mayHaveEffects(const Function &F) const {
    return F.WholeBecause.empty() ? hasEffects(F) : HadEffects.test(F.Index);
  }

  // The memory that an lvalue may refer to.
  const NodeSet &defined(const clang::Expr *Lvalue);
  NodeSet written(const clang::CallExpr *Call, const CallSpec &Spec);
  void mark(NodeId Id);
  void markAll(const NodeSet &Set);
  void markPointees(const clang::Expr *Pointer);
  void markReachable(const NodeSet &Roots);
  void set(const clang::CallExpr *Call, Treatment T);
  void effect(const NodeSet &Touched, bool Direct);
  bool meets(const clang::CallExpr *Call) const;
  bool countable(const clang::CallExpr *Call) const;
  void mustMeet(const clang::CallExpr *Call);
  void refuse(Function &F, const std::string &Why);
  void keep(const clang::Stmt *S);

  Program &P;
  PointsTo &Pointers;
  Files &Opened;
  Loads &Looks;
  const Options &Chosen;
  Failures Wrong;
  llvm::DenseSet<const clang::IfStmt *> Ignored, Decided;
  NodeSet Marked, Followed;
  // Cache of defined(): points-to sets do not change any more.
  llvm::DenseMap<const clang::Expr *, std::unique_ptr<NodeSet>> Defined;
  // Objects of which all bytes are marked.
  NodeSet Entire;
  llvm::DenseMap<const clang::Expr *, NodeSet> Changeable;
  llvm::DenseSet<const clang::Stmt *> Kept;
  llvm::DenseSet<const clang::Expr *> Effects;
  llvm::DenseSet<const clang::Stmt *> Regions;
  // Loads that are made in place, because their values are needed.
  llvm::DenseSet<const clang::Expr *> InPlace;
  // The index of a loop for which a load is announced for all iterations: its value is not needed.
  const clang::VarDecl *Replaced = nullptr;
  llvm::DenseMap<const clang::CallExpr *, Treatment> Treatments;
  llvm::DenseSet<const clang::CallExpr *> Assumed, Unknown;
  NodeSet Effectful, Reached, Wholes;
  // Functions left whole that had effects when they were still translated.
  NodeSet HadEffects;
  std::vector<bool> Skipped;
  bool AsItIs = false;
  bool Threads = false;
  bool Catches = false; // exceptions are handled somewhere
  bool Changed = false;
  bool Refused = false;
  Function *Current = nullptr;

  // Positions of statements in a function's text, and which of them are kept: for jumps.
  struct Layout {
    llvm::DenseMap<const clang::Stmt *, std::pair<unsigned, unsigned>> Range;
    std::vector<bool> Leaf;
  };
  std::vector<Layout> Layouts;
  void layOut(const clang::Stmt *S, Layout &Into, unsigned &Next);
};

} // namespace foreread::slicer
