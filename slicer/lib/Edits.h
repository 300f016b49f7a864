// Insertions into a unit's text, that of its headers included.  The text itself is never touched, and no line is added:
// what the program prints of its own line numbers stays as it was.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Program.h"

namespace foreread::slicer {

// The characters of a file at hand that an expression or statement is written as, or none: a part
// of a macro's definition, or text that stands for several expressions.
struct TextRange {
  clang::FileID File;
  unsigned Begin = 0, End = 0;
  bool Valid = false;
};
TextRange textOf(const Unit &U, const clang::Stmt *S);

// The same of a statement, with the semicolon that ends it.
TextRange statementText(const Unit &U, const clang::Stmt *S);

// Where the text of a block begins, after its brace or the macro that ends with it; none where the brace is in the
// midst of a macro or in a file that is not at hand.  A range without length.
std::optional<TextRange> afterBrace(const Unit &U, const clang::CompoundStmt *Block);

// Whether text can be put around a call, once for each time it is executed.
bool editable(const Function &F, const clang::CallExpr *Call);

// What a call can be counted with that stands inside a macro: the innermost expression or statement
// around it that is the whole of what a macro became, and that makes the call exactly once; or the
// call itself, where it is written once for all arguments of a pack.  Null if there is none.
const clang::Stmt *expansionAround(const Function &F, const clang::CallExpr *Call);

class Edits {
public:
  explicit Edits(const Unit &U) : U(U) {}

  // Whether what follows is of a function that other units have, too.
  void beginFunction(bool Shared) { InShared = Shared; }
  void before(TextRange Place, std::string Text);
  void after(TextRange Place, std::string Text);
  // Around a range; of two ranges that begin together the longer is outside.
  void around(TextRange Range, std::string Before, std::string After);
  void replace(TextRange Range, std::string Text);
  // What another unit's functions of headers that both have come to.  Whether there is any.
  bool take(const Edits &Other);
  bool empty() const { return Into.empty(); }
  std::string apply() const { return U.Texts->text(Into); }
  // The headers whose text that has in it.
  std::vector<std::string> headers() const { return U.Texts->takenIn(Into); }

private:
  void add(clang::FileID File, Insertion Each);

  const Unit &U;
  bool InShared = false;
  std::map<clang::FileID, std::vector<Insertion>> Into;
  // Of functions that other units have, too: by the header's path.
  std::map<std::string, std::vector<Insertion>> Shared;
};

} // namespace foreread::slicer
