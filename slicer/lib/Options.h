// Choices of the user.
#pragma once

#include <string>
#include <vector>

namespace foreread::slicer {

// How the prefetch thread gets a file's descriptor (paper, 3.2: "file open").
enum class OpenMode {
  Self, // opens it; waits for the program only if the program may write the file
  Wait, // opens it once the program has opened it
  Send, // receives the program's descriptor
};

struct Options {
  OpenMode Open = OpenMode::Self;
  // Configuration files: the program reads them and sends the data. If false, the prefetch thread reads them itself.
  bool SendConfiguration = false;
  // The variables whose files are prefetched; all files if empty.
  std::vector<std::string> Prefetch;
  // Functions that are neither in the program nor in the call table, and whose result decides about reads: refused. If
  // false, the prefetch thread runs them as they are (its process is private and filtered).
  bool RefuseUnknown = false;
  // External functions whose result depends on their arguments alone.
  std::vector<std::string> Pure;
  // The program has units besides these. They may have copies of functions that headers define.
  bool Others = false;
};

} // namespace foreread::slicer
