// foreread-slice: the translator's command line.
//
//   foreread-slice prog.c… [-o OUT | --out-dir DIR] [-p BUILD_DIR] [-- compiler arguments]
//   foreread-slice --json --out-dir DIR --compile-commands FILE
//
// Exit status: 0, whether or not there was anything to translate; 1 if a source could not be read or parsed, if the
// translator failed, or if the translation could not be written; 2 for an invalid command line. With --json the account
// lists the units that failed, with reasons, and the status is 0: the driver has compiled the program already and
// continues with the other units.
#include "Translator.h"

#include "clang/Tooling/JSONCompilationDatabase.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <fstream>
#include <new>
#include <set>
#include <sys/resource.h>
#include <unistd.h>

namespace cl = llvm::cl;
using namespace foreread::slicer;
using clang::tooling::CompileCommand;

namespace {

cl::OptionCategory Category("foreread-slice");
cl::list<std::string> Sources(cl::Positional, cl::desc("SOURCE…"), cl::cat(Category));
cl::opt<std::string> Output("o", cl::desc("Write the translated unit to FILE"),
                            cl::value_desc("FILE"), cl::cat(Category));
cl::opt<std::string> OutputDirectory("out-dir",
                                     cl::desc("Write each translated unit N to DIR, as N.c or N.cpp"),
                                     cl::value_desc("DIR"), cl::cat(Category));
cl::opt<std::string> BuildDirectory("p", cl::desc("Folder of compile_commands.json"),
                                    cl::value_desc("DIR"), cl::cat(Category));
cl::opt<std::string> Commands("compile-commands",
                              cl::desc("compile_commands.json of exactly the program's units"),
                              cl::value_desc("FILE"), cl::cat(Category));
cl::opt<bool> Others("others", cl::desc("The program has more units than the named ones"),
                     cl::cat(Category));
cl::opt<bool> Json("json", cl::desc("Print the explanation as JSON"), cl::cat(Category));
cl::opt<bool> Explain("explain", cl::desc("Explain what was sliced, and each refusal"), cl::cat(Category));
cl::list<std::string> Prefetch("prefetch", cl::desc("Prefetch only the files of this variable"),
                               cl::value_desc("NAME"), cl::cat(Category));
cl::list<std::string> Pure("pure", cl::desc("Treat this external function as pure"),
                           cl::value_desc("NAME"), cl::cat(Category));
cl::opt<OpenMode>
    Open("open", cl::desc("How the prefetch thread gets a file"), cl::init(OpenMode::Self),
         cl::values(clEnumValN(OpenMode::Self, "self", "open it itself (default)"),
                    clEnumValN(OpenMode::Wait, "wait", "open it after the program did"),
                    clEnumValN(OpenMode::Send, "send", "receive the program's descriptor")),
         cl::cat(Category));
enum class Configuration { Self, Send };
cl::opt<Configuration> Config(
    "config", cl::desc("Who reads configuration files"), cl::init(Configuration::Self),
    cl::values(clEnumValN(Configuration::Self, "self", "the prefetch thread (default)"),
               clEnumValN(Configuration::Send, "send", "the program, which sends their contents")),
    cl::cat(Category));

enum class Unknown { Run, Refuse };
cl::opt<Unknown> External(
    "unknown", cl::desc("External functions that reads depend on"), cl::init(Unknown::Run),
    cl::values(clEnumValN(Unknown::Run, "run", "run them in the prefetch thread, too (default)"),
               clEnumValN(Unknown::Refuse, "refuse", "do not slice code that needs them")),
    cl::cat(Category));

cl::opt<unsigned> Limit("limit", cl::desc("Give up slicing after this time (default 300)"),
                        cl::value_desc("SECONDS"), cl::init(300), cl::cat(Category));

cl::opt<unsigned> Memory("memory", cl::desc("Give up slicing beyond this memory (default half of the machine's)"),
                         cl::value_desc("MIB"), cl::cat(Category));

int complain(const llvm::Twine &What) {
  llvm::errs() << "foreread-slice: " << What << '\n';
  return 1;
}

std::string here() {
  llvm::SmallString<256> Path;
  llvm::sys::fs::current_path(Path);
  return Path.str().str();
}

bool commands(const std::vector<std::string> &Arguments, std::vector<CompileCommand> &Result,
              std::string &Error) {
  std::string File = Commands;
  if (File.empty() && !BuildDirectory.empty()) {
    llvm::SmallString<256> Path(BuildDirectory);
    llvm::sys::path::append(Path, "compile_commands.json");
    File = Path.str().str();
  }
  if (!File.empty()) {
    auto Database = clang::tooling::JSONCompilationDatabase::loadFromFile(
        File, Error, clang::tooling::JSONCommandLineSyntax::Gnu);
    if (!Database)
      return false;
    std::set<std::string> Missing(Sources.begin(), Sources.end());
    for (CompileCommand &Each : Database->getAllCompileCommands()) {
      bool Named = Sources.empty();
      for (const std::string &Source : Sources) {
        llvm::SmallString<256> Wanted(Source), Has(Each.Filename);
        llvm::sys::fs::make_absolute(here(), Wanted);
        llvm::sys::fs::make_absolute(Each.Directory, Has);
        llvm::sys::path::remove_dots(Wanted, true);
        llvm::sys::path::remove_dots(Has, true);
        if (Wanted == Has) {
          Named = true;
          Missing.erase(Source);
        }
      }
      if (Named)
        Result.push_back(Each);
    }
    if (!Missing.empty())
      Error = *Missing.begin() + ": no command in " + File + " compiles this source";
    return Missing.empty();
  }
  for (const std::string &Source : Sources) {
    std::vector<std::string> Line{"cc"};
    Line.insert(Line.end(), Arguments.begin(), Arguments.end());
    Result.emplace_back(here(), Source, Line, "");
  }
  return true;
}

llvm::json::Object account(const Translation &T, const std::vector<std::string> &Paths) {
  llvm::json::Array Units, Functions, Files, Assumptions, Unannounced;
  for (size_t I = 0; I < T.Units.size(); ++I) {
    llvm::json::Object Unit{{"index", static_cast<int64_t>(I)}, {"output", nullptr}};
    if (!Paths[I].empty())
      Unit["output"] = Paths[I];
    if (T.Units[I]) {
      Unit["headers"] = llvm::json::Array(T.Units[I]->Headers);
      Unit["names_private"] = T.Units[I]->NamesPrivate;
    }
    if (!T.UnitNotes[I].empty())
      Unit["why"] = T.UnitNotes[I];
    Units.push_back(std::move(Unit));
  }
  for (const FunctionAccount &F : T.Functions)
    Functions.push_back(llvm::json::Object{{"name", F.Name},
                                           {"file", F.File},
                                           {"line", F.Line},
                                           {"status", F.Status},
                                           {"why", F.Why}});
  for (const FileAccount &F : T.Files)
    Files.push_back(
        llvm::json::Object{{"path", F.Path}, {"place", F.Place}, {"kind", F.Kind}, {"why", F.Why}});
  for (const std::string &Text : T.Assumptions)
    Assumptions.push_back(Text);
  for (const std::string &Text : T.Unannounced)
    Unannounced.push_back(Text);
  return llvm::json::Object{{"units", std::move(Units)},
                            {"functions", std::move(Functions)},
                            {"files", std::move(Files)},
                            {"assumed", std::move(Assumptions)},
                            {"unannounced", std::move(Unannounced)},
                            {"sync_points", T.SyncPoints},
                            {"channels", T.Channels}};
}

void explain(const Translation &T, llvm::raw_ostream &Out) {
  for (const std::string &Note : T.UnitNotes)
    if (!Note.empty())
      Out << "unit left whole: " << Note << '\n';
  for (const FunctionAccount &F : T.Functions)
    Out << F.File << ':' << F.Line << ": " << F.Name << ": " << F.Status
        << (F.Why.empty() ? "" : ": " + F.Why) << '\n';
  for (const FileAccount &F : T.Files)
    Out << F.Place << ": file " << F.Path << ": " << F.Kind << (F.Why.empty() ? "" : ": " + F.Why)
        << '\n';
  for (const std::string &Text : T.Assumptions)
    Out << "assumed: " << Text << '\n';
  for (const std::string &Text : T.Unannounced)
    Out << "not announced: " << Text << '\n';
  Out << T.SyncPoints << " synchronization points, " << T.Channels << " channels\n";
}

bool save(llvm::StringRef Path, llvm::StringRef Text) {
  std::error_code Error;
  llvm::raw_fd_ostream Out(Path, Error);
  if (!Error)
    Out << Text;
  Out.close();
  if (Error || Out.has_error()) {
    complain(Path + ": " + (Error ? Error : Out.error()).message());
    Out.clear_error();
    return false;
  }
  return true;
}

int deliver(const Translation &T) {
  std::vector<std::string> Paths(T.Units.size());
  unsigned Changed = 0;
  for (const auto &Text : T.Units)
    Changed += Text.has_value();
  if (!Output.empty() && T.Units.size() > 1)
    return complain("-o is for one unit; several need --out-dir");
  for (size_t I = 0; I < T.Units.size(); ++I) {
    if (!T.Units[I])
      continue;
    if (!OutputDirectory.empty()) {
      llvm::SmallString<256> Path(OutputDirectory);
      llvm::sys::fs::create_directories(Path);
      llvm::sys::path::append(Path, std::to_string(I) + (T.Cxx[I] ? ".cpp" : ".c"));
      Paths[I] = Path.str().str();
    } else if (!Output.empty()) {
      Paths[I] = Output;
    } else {
      if (!Json)
        llvm::outs() << T.Units[I]->Text;
      continue;
    }
    if (!save(Paths[I], T.Units[I]->Text))
      return 1;
  }
  if (Json)
    llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(account(T, Paths)));
  // A failure of the translator is the same for all units and is printed once.
  std::set<std::string> Errors;
  for (size_t I = 0; I < T.Units.size() && !Json; ++I)
    if (T.Failed[I])
      Errors.insert(T.UnitNotes[I]);
  if (Explain || (!Json && !Changed && Errors.empty()))
    explain(T, llvm::errs());
  int Status = 0;
  for (const std::string &Each : Errors)
    Status = complain(Each);
  llvm::outs().flush();
  if (llvm::outs().has_error())
    Status = complain("standard output: " + llvm::outs().error().message());
  return Status;
}

// Stack of the translating thread, in bytes.
constexpr unsigned Stack = 1u << 30;

// Accounts of a program that is left whole, prepared in advance: handlers may do little.
std::string TooLong, TooLarge;

[[noreturn]] void leave(const std::string &Whole) {
  int Stream = Json ? STDOUT_FILENO : STDERR_FILENO;
  _exit(write(Stream, Whole.data(), Whole.size()) < 0 || !Json);
}

void outOfTime(int) { leave(TooLong); }
void outOfMemory() { leave(TooLarge); }
void outOfMemory(void *, const char *, bool) { leave(TooLarge); }

Translation leftWhole(size_t Units, const std::string &Why) {
  Translation Result;
  Result.Units.resize(Units);
  Result.UnitNotes.assign(Units, Why);
  Result.Failed.assign(Units, true);
  return Result;
}

std::string told(size_t Units, const std::string &Why) {
  Translation Nothing = leftWhole(Units, Why);
  std::string Text;
  llvm::raw_string_ostream Out(Text);
  if (Json)
    Out << llvm::formatv("{0:2}\n",
                         llvm::json::Value(account(Nothing, std::vector<std::string>(Units))));
  else
    Out << "foreread-slice: " << Why << '\n';
  return Text;
}

void watchTime(size_t Units) {
  TooLong = told(Units, "the program takes too long to translate");
  signal(SIGALRM, outOfTime);
  alarm(Limit);
}

// Protects the machine from programs that are too large, and from faults of the translator.
void watchMemory(size_t Units) {
  TooLarge = told(Units, "the program takes too much memory to translate");
  std::set_new_handler(outOfMemory);
  llvm::install_bad_alloc_error_handler(outOfMemory);
  rlim_t Most = rlim_t(Memory) << 20;
  if (Most == 0)
    Most = rlim_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
  // Pages of the process: total, resident, shared, code, libraries (0), data.
  rlim_t Page = sysconf(_SC_PAGESIZE), Pages[6] = {};
  std::ifstream Used("/proc/self/statm");
  for (rlim_t &Each : Pages)
    Used >> Each;
  rlimit Data;
  getrlimit(RLIMIT_DATA, &Data);
  Data.rlim_cur = std::min(Data.rlim_max, Pages[5] * Page + Most + Stack);
  setrlimit(RLIMIT_DATA, &Data);
}

} // namespace

int main(int Count, char **Values) {
  std::vector<const char *> Own;
  std::vector<std::string> Compiler;
  int I = 0;
  for (; I < Count && llvm::StringRef(Values[I]) != "--"; ++I)
    Own.push_back(Values[I]);
  for (++I; I < Count; ++I)
    Compiler.push_back(Values[I]);
  cl::HideUnrelatedOptions(Category);
  if (!cl::ParseCommandLineOptions(
          Own.size(), Own.data(),
          "Translate a C or C++ program into the program and its prefetch thread\n",
          &llvm::errs()))
    return 2;
  std::vector<CompileCommand> Units;
  std::string Error;
  if (!commands(Compiler, Units, Error)) {
    complain(Error);
    return 2;
  }
  if (Units.empty()) {
    complain("no source given");
    return 2;
  }
  Options Chosen;
  Chosen.Open = Open;
  Chosen.SendConfiguration = Config == Configuration::Send;
  Chosen.Others = Others;
  Chosen.RefuseUnknown = External == Unknown::Refuse;
  Chosen.Prefetch.assign(Prefetch.begin(), Prefetch.end());
  Chosen.Pure.assign(Pure.begin(), Pure.end());

  // Deeply nested programs need a deep stack. A program that makes the translator fail is left whole.
  Translation Result;
  watchTime(Units.size());
  watchMemory(Units.size());
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext Guard;
  if (!Guard.RunSafelyOnThread([&] { Result = translate(Units, Chosen); }, Stack)) {
    Result = leftWhole(Units.size(), "the translator failed on the program");
  }
  alarm(0);
  int Status = deliver(Result);
  llvm::errs().flush();
  // Without cleaning up, which a fault may have made impossible.
  _exit(Status);
}
