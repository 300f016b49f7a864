// What the user may decide.
#pragma once

#include <string>
#include <vector>

namespace foreread::slicer {

// How the prefetch thread comes by a file (paper, 3.2: "file open").
enum class OpenMode {
  Self, // opens it itself; waits for the program only where the program may write the file
  Wait, // opens it once the program has opened it
  Send, // is sent the program's descriptor
};

struct Options {
  OpenMode Open = OpenMode::Self;
  // Configuration files: read by the prefetch thread itself, or by the program, which sends.
  bool SendConfiguration = false;
  // The variables whose files are prefetched; all files if empty.
  std::vector<std::string> Prefetch;
  // Functions that neither the program nor the call table has, and whose result decides about
  // reads: run in the prefetch thread as they are (its process is private and filtered), or
  // refused.
  bool RefuseUnknown = false;
  // External functions that compute from their arguments alone.
  std::vector<std::string> Pure;
  // The program has more units than these: they may have copies of what headers define.
  bool Others = false;
};

} // namespace foreread::slicer
