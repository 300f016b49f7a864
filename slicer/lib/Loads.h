// Loads from mapped files: x = map[i], sum += p->field (paper, section 4.3: "memory mapped I/O",
// which was left undone there).
//
// A load takes about a nanosecond, and so does counting it in the program.  So announcing and
// counting are two things.  A load is announced in the prefetch thread where it is made, or, where
// a loop makes it at even distances, once for all turns where that loop begins.  What is counted is
// the turns of a loop around that, or the calls of the function: of the innermost one in which a
// hundred times more is done than counting takes.  If there is none, the load is not announced.
#pragma once

#include "Files.h"
#include "Progressions.h"

namespace foreread::slicer {

struct Load {
  const clang::Expr *Place = nullptr;  // what is looked at
  const clang::Stmt *Before = nullptr; // the loop before which it is announced, or null
  std::optional<Progression> Over;     // … for all turns of it
  const clang::Stmt *Region = nullptr; // counted: the body of a loop or function
};

class Loads {
public:
  Loads(Program &P, PointsTo &Pointers, Files &Opened);

  // The load that an expression makes, if it is announced.
  const Load *madeBy(const clang::Expr *Cast) const;
  // Those that are announced before a loop.
  std::vector<const Load *> before(const clang::Stmt *Loop) const;
  // What is not announced after all: the prefetch thread looks there itself.
  bool withdraw(const clang::Expr *Cast) { return Made.erase(Cast); }
  // Places at which loads are not announced, and why.
  const std::vector<std::string> &unannounced() const { return Unannounced; }

private:
  // What a statement stands in.
  struct Surroundings {
    const clang::Stmt *Loop = nullptr; // the innermost
    bool Certain = true;               // executed in each turn of it
    bool Decided = false;              // whether it is executed depends on other loads
    bool InCondition = false;          // of that loop
  };

  void walk(const clang::Stmt *S, Surroundings In);
  void walkLoop(const clang::Stmt *Loop, Surroundings In);
  void enter(const clang::CastExpr *Cast, const Surroundings &In);
  bool mapped(const clang::Expr *Place);
  bool dependsOnLoads(const clang::Expr *E);
  bool varies(const clang::Expr *Place, const clang::Stmt *At);
  const clang::Stmt *region(const clang::Stmt *Innermost);
  const clang::Stmt *loopAround(const Function &F, const clang::Stmt *S) const;
  const Turns &turns(const clang::Stmt *Loop);
  uint64_t work(const clang::Stmt *S, const clang::ASTContext &Context);
  uint64_t turnWork(const clang::Stmt *Loop, const clang::ASTContext &Context);
  uint64_t callWork(const Function &F);
  bool repeated(const Function &F);

  Program &P;
  PointsTo &Pointers;
  NodeSet Maps; // the memory of wanted files
  llvm::DenseSet<const Function *> Callbacks, Busy;
  llvm::DenseMap<const clang::Stmt *, std::unique_ptr<Turns>> Known;
  llvm::DenseMap<const clang::Stmt *, uint64_t> Works;
  llvm::DenseMap<const Function *,
                 std::vector<std::pair<const Function *, const clang::CallExpr *>>>
      Callers;
  llvm::DenseMap<const clang::Expr *, std::unique_ptr<Load>> Made;
  llvm::DenseMap<const clang::Stmt *, std::vector<const clang::Expr *>> Befores;
  NodeSet FromLoads; // variables of the current function that loads decide
  std::vector<std::string> Unannounced;
  const Function *Current = nullptr;
};

} // namespace foreread::slicer
