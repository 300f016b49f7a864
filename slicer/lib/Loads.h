// Loads from mapped files: x = map[i], sum += p->field (paper, section 4.3: "memory mapped I/O", left undone there).
//
// A load takes about a nanosecond, and so does counting it in the program. Announcing and counting are therefore
// separate. A load is announced by the prefetch thread where it is made; or, if a loop makes it at even distances, once
// for all iterations before the loop. The program counts the iterations of a loop around that place, or the calls of
// the function: the innermost of these with a hundred times more work than counting takes. If there is none, the load
// is not announced.
#pragma once

#include "Files.h"
#include "Progressions.h"

namespace foreread::slicer {

struct Load {
  const clang::Expr *Place = nullptr;  // the lvalue that is loaded
  const clang::Stmt *Before = nullptr; // the loop before which it is announced, or null
  std::optional<Progression> Over;     // … for all its iterations
  const clang::Stmt *Region = nullptr; // counted: the body of a loop or function
};

class Loads {
public:
  Loads(Program &P, PointsTo &Pointers, Files &Opened);

  // The load that an expression makes, if it is announced.
  const Load *madeBy(const clang::Expr *Cast) const;
  // The loads that are announced before a loop.
  std::vector<const Load *> before(const clang::Stmt *Loop) const;
  // Stops announcing a load, because the prefetch thread makes it itself.
  bool withdraw(const clang::Expr *Cast) { return Made.erase(Cast); }
  // Locations of loads that are not announced, with the reason.
  const std::vector<std::string> &unannounced() const { return Unannounced; }

private:
  // The context of a statement.
  struct Surroundings {
    const clang::Stmt *Loop = nullptr; // the innermost loop
    bool Certain = true;               // executed in each iteration
    bool Decided = false;              // other loads decide whether it is executed
    bool InCondition = false;          // part of the loop's condition
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
  NodeSet FromLoads; // variables of the current function whose values depend on loads
  std::vector<std::string> Unannounced;
  const Function *Current = nullptr;
};

} // namespace foreread::slicer
