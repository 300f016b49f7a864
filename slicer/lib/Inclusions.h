// The texts a unit consists of: its own file, and the headers of the program that it includes.  A header cannot be
// changed for one program, so where something has to be put into one, its text stands in place of its #include, with
// #line directives before and after: the compiler names files and lines as it did.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "Clang.h"

namespace foreread::slicer {

// Text that comes into a file.
struct Insertion {
  unsigned Offset = 0;
  long Rank = 0; // order among insertions at one place
  unsigned Remove = 0;
  std::string Text;
};

class Inclusions {
public:
  Inclusions(const clang::SourceManager &Sources, const clang::LangOptions &Language);

  // Whether text can be put there: the unit's own file, or a header whose text can stand in place of its #include.
  bool atHand(clang::FileID File) const;
  // The file's path, the same in all units; empty for what is no file.
  std::string path(clang::FileID File) const;
  // The header at hand that has this path, or an invalid one.
  clang::FileID header(const std::string &Path) const;
  // The unit's text with what is put into its files.
  std::string text(const std::map<clang::FileID, std::vector<Insertion>> &Into) const;
  // The headers whose text is in that.
  std::vector<std::string> takenIn(const std::map<clang::FileID, std::vector<Insertion>> &Into) const;

private:
  // #include, #import, #include_next, with what it names; without the rest of its line.
  struct Directive {
    unsigned Begin = 0, End = 0, NameAt = 0;
    std::string Name; // empty: a macro's
    bool Quoted = false;
    clang::FileID Entered; // the file that it led into; invalid if it was skipped
  };
  struct Header {
    clang::FileID Parent;
    std::vector<Directive> Directives;
    bool Once = false; // #pragma once
    bool Movable = true;
  };
  using Files = std::vector<clang::FileID>;

  void read(clang::FileID File, Header &Into) const;
  bool namesOnce(const Directive &Each, clang::FileID Header) const;
  Files neededBy(clang::FileID Moved) const;
  Files closure(const std::map<clang::FileID, std::vector<Insertion>> &Into) const;
  std::string presumed(clang::FileID File) const;
  std::string nameOf(clang::FileID File) const;
  std::string line(clang::FileID File, unsigned Offset) const;
  std::string print(clang::FileID File, const Files &Moved,
                    const std::map<clang::FileID, std::vector<Insertion>> &Into) const;
  std::string skipped(clang::FileID File, const Directive &Each, const Files &Moved) const;

  const clang::SourceManager &Sources;
  const clang::LangOptions &Language;
  // The program's own files, the unit's among them.
  std::map<clang::FileID, Header> Own;
};

// A text with what is put into it.
std::string applied(llvm::StringRef Text, const std::vector<Insertion> &Into);

} // namespace foreread::slicer
