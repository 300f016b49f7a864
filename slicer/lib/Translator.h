// The translator: from a program's compile commands to the new text of its units, and an account of what was done and
// why.
//
// Data flows one way: Load -> Program -> PointsTo -> Files -> Loads -> Related -> Plan -> Emit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "Options.h"

namespace clang::tooling {
struct CompileCommand;
}

namespace foreread::slicer {

struct UnitText {
  std::string Text;
  std::vector<std::string> Headers; // headers whose text it contains
  bool NamesPrivate = false;        // needs a compiler that does not check access (-fno-access-control)
};

struct FunctionAccount {
  std::string Name, File;
  unsigned Line = 0;
  std::string Status; // sliced, whole, pure, refused
  std::string Why;
};

struct FileAccount {
  std::string Path;  // a constant path, or "(computed)"
  std::string Place; // where it is opened
  std::string Kind;  // data, configuration, output, input, unused
  std::string Why;
};

struct Translation {
  std::vector<std::optional<UnitText>> Units;    // the new text of each unit that changed
  std::vector<bool> Cxx;                         // true: the unit is C++
  std::vector<std::string> UnitNotes;            // why the unit is left whole; empty if it is not
  std::vector<bool> Failed;                      // true: because of an error of the unit or of the translator
  std::vector<FunctionAccount> Functions;
  std::vector<FileAccount> Files;
  std::vector<std::string> Assumptions;
  std::vector<std::string> Unannounced; // loads from mapped files, with reasons
  unsigned SyncPoints = 0, Channels = 0;
};

Translation translate(const std::vector<clang::tooling::CompileCommand> &Commands,
                      const Options &Chosen);

} // namespace foreread::slicer
