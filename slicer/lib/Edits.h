// Insertions into a unit's text.  The text itself is never touched, and no line is added: what the
// program prints of its own line numbers stays as it was.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Program.h"

namespace foreread::slicer {

// The characters of the unit's file that an expression or statement is written as, or none: a part
// of a macro's definition, or text that stands for several expressions.
struct TextRange {
  unsigned Begin = 0, End = 0;
  bool Valid = false;
};
TextRange textOf(const Unit &U, const clang::Stmt *S);

// The same of a statement, with the semicolon that ends it.
TextRange statementText(const Unit &U, const clang::Stmt *S);

// Where the text of a block begins, after its brace or the macro that ends with it; none where the brace is in the
// midst of a macro or in a header.
std::optional<unsigned> afterBrace(const Unit &U, const clang::CompoundStmt *Block);

// Whether text can be put around a call, once for each time it is executed.
bool editable(const Function &F, const clang::CallExpr *Call);

// What a call can be counted with that stands inside a macro: the innermost expression or statement
// around it that is the whole of what a macro became, and that makes the call exactly once.  Null
// if there is none.
const clang::Stmt *expansionAround(const Function &F, const clang::CallExpr *Call);

class Edits {
public:
  explicit Edits(const Unit &U) : U(U) {}

  void before(unsigned Offset, std::string Text);
  void after(unsigned Offset, std::string Text);
  // Around a range; of two ranges that begin together the longer is outside.
  void around(TextRange Range, std::string Before, std::string After);
  void replace(TextRange Range, std::string Text);
  bool empty() const { return Insertions.empty(); }
  std::string apply() const;

private:
  struct Insertion {
    unsigned Offset;
    long Rank; // order among insertions at one place
    unsigned Remove;
    std::string Text;
  };
  const Unit &U;
  std::vector<Insertion> Insertions;
};

} // namespace foreread::slicer
