#include "Load.h"

#include "clang/Frontend/TextDiagnosticBuffer.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

namespace foreread::slicer {

using namespace clang;

namespace {

// The first error of a parse, as a sentence.
class FirstError : public DiagnosticConsumer {
public:
  std::string Text;

  void HandleDiagnostic(DiagnosticsEngine::Level Level, const Diagnostic &Info) override {
    DiagnosticConsumer::HandleDiagnostic(Level, Info);
    if (Level < DiagnosticsEngine::Error || !Text.empty())
      return;
    llvm::SmallString<128> Message;
    Info.FormatDiagnostic(Message);
    Text = Message.str().str();
    if (Info.hasSourceManager() && Info.getLocation().isValid())
      Text = Info.getLocation().printToString(Info.getSourceManager()) + ": " + Text;
  }
};

bool takesValue(llvm::StringRef Option) {
  return llvm::StringSwitch<bool>(Option)
      .Cases("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-x",
             true)
      .Cases("-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot", true)
      .Default(false);
}

bool matters(llvm::StringRef Option) {
  for (llvm::StringRef Prefix : {"-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include",
                                 "-imacros", "-std=", "-isysroot", "-m", "--sysroot="})
    if (Option.starts_with(Prefix))
      return !Option.starts_with("-mtune") && !Option.starts_with("-march") &&
             Option != "-imultiarch";
  return llvm::StringSwitch<bool>(Option)
      .Cases("-ansi", "-nostdinc", "-pthread", "-funsigned-char", "-fsigned-char", "-fshort-enums",
             true)
      .Cases("-nostdinc++", "-fno-exceptions", "-fno-rtti", "-fchar8_t", "-fno-char8_t", true)
      .Cases("-fms-extensions", "-fplan9-extensions", "-fshort-wchar", "-undef", true)
      .Default(false);
}

std::unique_ptr<ASTUnit> parse(const tooling::CompileCommand &Command, FirstError &Errors) {
  struct Database : tooling::CompilationDatabase {
    tooling::CompileCommand Only;
    std::vector<tooling::CompileCommand> getCompileCommands(llvm::StringRef) const override {
      return {Only};
    }
  };
  Database One;
  One.Only = Command;
  One.Only.CommandLine = parsingArguments(Command.CommandLine, Command.Filename);
  tooling::ClangTool Tool(One, {Command.Filename});
  Tool.clearArgumentsAdjusters();
  Tool.setPrintErrorMessage(false);
  Tool.setDiagnosticConsumer(&Errors);
  std::vector<std::unique_ptr<ASTUnit>> Units;
  Tool.buildASTs(Units);
  return Units.size() == 1 ? std::move(Units.front()) : nullptr;
}

bool isCxx(llvm::StringRef Source) {
  return llvm::StringSwitch<bool>(llvm::sys::path::extension(Source))
      .Cases(".cc", ".cp", ".cxx", ".cpp", ".c++", ".C", ".CPP", true)
      .Default(false);
}

// Why the source cannot be read; empty if it can.
std::string unreadable(llvm::StringRef Path) {
  llvm::sys::fs::file_status Status;
  std::error_code Error = llvm::sys::fs::status(Path, Status);
  if (!Error && llvm::sys::fs::is_directory(Status))
    Error = std::make_error_code(std::errc::is_a_directory);
  // A pipe can be opened only once.
  if (int File; !Error && llvm::sys::fs::is_regular_file(Status)) {
    Error = llvm::sys::fs::openFileForRead(Path, File);
    if (!Error)
      llvm::sys::Process::SafelyCloseFileDescriptor(File);
  }
  return Error ? Error.message() : "";
}

} // namespace

std::vector<std::string> parsingArguments(const std::vector<std::string> &Arguments,
                                          llvm::StringRef Source) {
  std::vector<std::string> Kept{
      "clang",           "-fsyntax-only",      "-resource-dir",  FOREREAD_CLANG_RESOURCE_DIR,
      "-Wno-everything", "-Qunused-arguments", "-ferror-limit=1"};
  bool Language = false;
  for (size_t I = 1; I < Arguments.size(); ++I) {
    llvm::StringRef Option = Arguments[I];
    if (takesValue(Option) && I + 1 < Arguments.size()) {
      Language |= Option == "-x";
      Kept.push_back(Option.str());
      Kept.push_back(Arguments[++I]);
    } else if (matters(Option)) {
      Kept.push_back(Option.str());
    } else if (Option.starts_with("-x")) {
      Language = true;
      Kept.push_back(Option.str());
    }
  }
  // Without the checked variants of library functions.
  Kept.push_back("-U_FORTIFY_SOURCE");
  // A C++ compiler compiles every source as C++.
  bool Cxx = isCxx(Source) || llvm::StringRef(Arguments.front()).ends_with("++");
  if (!Language)
    Kept.insert(Kept.end(), {"-x", Cxx ? "c++" : "c"});
  Kept.push_back("--");
  Kept.push_back(Source.str());
  return Kept;
}

void load(Program &P, const std::vector<tooling::CompileCommand> &Commands) {
  for (const tooling::CompileCommand &Command : Commands) {
    auto U = std::make_unique<Unit>();
    U->Index = P.Units.size();
    U->File = Command.Filename;
    U->Directory = Command.Directory;
    llvm::SmallString<256> Path(Command.Filename);
    if (!llvm::sys::path::is_absolute(Path)) {
      Path = Command.Directory;
      llvm::sys::path::append(Path, Command.Filename);
    }
    U->Path = Path.str().str();
    FirstError Errors;
    llvm::StringRef Extension = llvm::sys::path::extension(U->File);
    U->WholeBecause = unreadable(U->Path);
    if (!U->WholeBecause.empty()) {
      // Nothing to parse.
    } else if (Extension == ".s" || Extension == ".S") {
      U->WholeBecause = Assembler;
    } else {
      // A crash of Clang must not end the translator.
      llvm::CrashRecoveryContext Guard;
      if (!Guard.RunSafelyOnThread([&] { U->AST = parse(Command, Errors); }, 64u << 20)) {
        U->AST.reset();
        U->WholeBecause = "the parser failed on it";
      } else if (!U->AST || !Errors.Text.empty()) {
        U->AST.reset();
        U->WholeBecause = Errors.Text.empty() ? "it cannot be parsed" : Errors.Text;
      }
    }
    P.Units.push_back(std::move(U));
  }
}

} // namespace foreread::slicer
