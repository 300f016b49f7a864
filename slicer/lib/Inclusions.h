// The texts of a unit: its own file, and the headers of the program that it includes. A header cannot be changed for
// one program. An insertion into a header therefore replaces its #include by the header's text, with #line directives
// before and after, so that the compiler reports the same files and lines as before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "Clang.h"

namespace foreread::slicer {

// Text inserted into a file.
struct Insertion {
  unsigned Offset = 0;
  long Rank = 0; // order among insertions at one offset
  unsigned Remove = 0;
  std::string Text;
};

class Inclusions {
public:
  Inclusions(const clang::SourceManager &Sources, const clang::LangOptions &Language);

  // True if text can be inserted: the unit's own file, or a header whose text can replace its #include.
  bool atHand(clang::FileID File) const;
  // The file's path, the same in all units; empty if it is no file.
  std::string path(clang::FileID File) const;
  // The header with this path, if text can be inserted; else an invalid one.
  clang::FileID header(const std::string &Path) const;
  // The unit's text with insertions into its files.
  std::string text(const std::map<clang::FileID, std::vector<Insertion>> &Into) const;
  // The headers whose text it then contains.
  std::vector<std::string> takenIn(const std::map<clang::FileID, std::vector<Insertion>> &Into) const;

private:
  // #include or #import with the name; without the rest of its line.
  struct Directive {
    unsigned Begin = 0, End = 0, NameAt = 0;
    std::string Name; // empty: given by a macro
    bool Quoted = false;
    clang::FileID Entered; // the included file; invalid if it was skipped
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
  // The program's files, the unit's own among them.
  std::map<clang::FileID, Header> Own;
};

// A text with its insertions.
std::string applied(llvm::StringRef Text, const std::vector<Insertion> &Into);

} // namespace foreread::slicer
