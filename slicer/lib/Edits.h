// Insertions into the text of a unit and its headers. The original text is never changed and no line is added, so that
// line numbers printed by the program remain the same.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "Program.h"

namespace foreread::slicer {

// The characters of an editable file that are the text of an expression or statement. Invalid if they are part of a
// macro's definition, or stand for several expressions.
struct TextRange {
  clang::FileID File;
  unsigned Begin = 0, End = 0;
  bool Valid = false;
};
TextRange textOf(const Unit &U, const clang::Stmt *S);

// The same for a statement, with the semicolon that ends it.
TextRange statementText(const Unit &U, const clang::Stmt *S);

// Beginning of a block's text, after its brace or after the macro that ends with the brace; none if the brace is inside
// a macro or in a file that cannot be edited. A range without length.
std::optional<TextRange> afterBrace(const Unit &U, const clang::CompoundStmt *Block);

// True if text can be put around a call and is then executed once per execution of the call.
bool editable(const Function &F, const clang::CallExpr *Call);

// Where to count a call that stands inside a macro: the innermost expression or statement around it that is the whole
// expansion of a macro and makes the call exactly once. A call written once for all arguments of a pack is counted
// itself. Null if there is no such place.
const clang::Stmt *expansionAround(const Function &F, const clang::CallExpr *Call);

class Edits {
public:
  explicit Edits(const Unit &U) : U(U) {}

  // Says whether the following insertions are in a function that other units have, too.
  void beginFunction(bool Shared) { InShared = Shared; }
  void before(TextRange Place, std::string Text);
  void after(TextRange Place, std::string Text);
  // Around a range; if two ranges begin at one place, the longer one is outside.
  void around(TextRange Range, std::string Before, std::string After);
  void replace(TextRange Range, std::string Text);
  // Adds another unit's insertions into functions of headers that both units have. True if there were any.
  bool take(const Edits &Other);
  bool empty() const { return Into.empty(); }
  std::string apply() const { return U.Texts->text(Into); }
  // Headers that are copied into the new text.
  std::vector<std::string> headers() const { return U.Texts->takenIn(Into); }

private:
  void add(clang::FileID File, Insertion Each);

  const Unit &U;
  bool InShared = false;
  std::map<clang::FileID, std::vector<Insertion>> Into;
  // Insertions into functions that other units have, too, by the header's path.
  std::map<std::string, std::vector<Insertion>> Shared;
};

} // namespace foreread::slicer
