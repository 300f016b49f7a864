//! The driver with a slicer and a runtime that leave traces, and the compiler that it is compared with.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use foreread_tests::{Lab, finish, foreread, start, text};
use serde_json::Value;

/// Stand-in for the slicer. A unit with the comment `here` is changed so that it reports itself when it runs. After the comment `stands
/// here: NAME` the header NAME counts as part of the unit.
const SLICER: &str = r#"#!/usr/bin/env python3
import json, os, re, sys

arguments = sys.argv[1:]
assert arguments[0] == "--json", arguments
folder = arguments[arguments.index("--out-dir") + 1]
with open(arguments[arguments.index("--compile-commands") + 1]) as database:
    commands = json.load(database)
if "FAKE_FAILS" in os.environ:
    sys.exit("no luck today")
units = []
for index, command in enumerate(commands):
    with open(os.path.join(command["directory"], command["file"])) as source:
        text = source.read()
    unit = os.path.basename(command["file"])
    broken = unit == os.environ.get("FAKE_BREAKS")
    call = '{ void fake(const char *); fake("%s"); %s}' % (unit, "int if; " if broken else "")
    changed = text.replace("/*here*/", call)
    output = None
    if changed != text:
        output = os.path.join(folder, "%d.c" % index)
        with open(output, "w") as file:
            file.write(changed + "\n#include <foreread_preexec.h>\n")
    headers = re.findall(r"stands here: (.*?) \*/", text)
    units.append({"index": index, "output": output, "headers": headers})
    if "nonsense to me" in text:
        units[-1]["why"] = "it does not parse"
function = {"name": "main", "file": "main.c", "line": 1, "status": "sliced", "why": ""}
print(json.dumps({"units": units, "functions": [function], "files": [], "sync_points": 0}))
"#;

/// Stand-in for the runtime.
const RUNTIME: &str = r#"
#include <stdio.h>
#include <stdlib.h>
void fake(const char *unit) {
    FILE *log = fopen(getenv("FAKE_LOG"), "a");
    if (log) {
        fprintf(log, "%s\n", unit);
        fclose(log);
    }
}
/* The same function under the name that C++ gives it without `extern "C"`. */
void _Z4fakePKc(const char *unit) {
    fake(unit);
}
"#;

/// Stand-in for the runtime's header.
const HEADER: &str = "void fake(const char *unit);\n";

/// The start of a program that can be sliced: it reads a file.
pub const READS: &str = r#"#include <stdio.h>
static int first_byte(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int byte = fgetc(file);
    fclose(file);
    return byte;
}
"#;

/// A lab with a driver.
pub struct Driver {
    pub lab: Lab,
    folder: PathBuf,
}

impl Driver {
    /// A driver with the stand-ins for the slicer and the runtime.
    pub fn new() -> Self {
        let lab = Lab::new();
        let folder = lab.path("tools");
        fs::create_dir(&folder).expect("a folder");
        for program in ["foreread", "foreread-tools"] {
            let built = foreread().with_file_name(program);
            fs::hard_link(built, folder.join(program)).expect("the driver");
        }
        lab.script("tools/foreread-slice", SLICER);
        lab.write("tools/foreread_preexec.h", HEADER);
        lab.write("tools/runtime.c", RUNTIME);
        for command in [
            ["cc", "-c", "-o", "tools/runtime.o", "tools/runtime.c"].as_slice(),
            &["ar", "cr", "tools/libforeread_preexec.a", "tools/runtime.o"],
        ] {
            succeeded(&lab.plain(command));
        }
        Self { lab, folder }
    }

    /// The same driver without one tool.
    pub fn without(self, tool: &str) -> Self {
        fs::remove_file(self.folder.join(tool)).expect("a tool");
        self
    }

    /// Runs `foreread cc` with these arguments, split at blanks.
    pub fn cc(&self, args: &str) -> Output {
        self.cc_words(&args.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs `foreread cc` with these arguments.
    pub fn cc_words(&self, args: &[&str]) -> Output {
        finish(start(self.command().args(args)))
    }

    /// `foreread cc`, not started.
    pub fn command(&self) -> Command {
        self.command_for("cc")
    }

    /// Runs `foreread c++` with these arguments, which must succeed silently.
    #[track_caller]
    pub fn builds_cxx(&self, args: &str) {
        let output = finish(start(self.command_for("c++").args(args.split_whitespace())));
        succeeded(&output);
        assert_eq!(text(&output.stderr), "", "{args}");
    }

    fn command_for(&self, compiler: &str) -> Command {
        let mut command = self.lab.command(self.folder.join("foreread"));
        command
            .arg(compiler)
            .env("FAKE_LOG", self.lab.path("log"))
            .env("FOREREAD_CC_EXPLAIN", self.lab.path("explained.jsonl"))
            .env_remove("FOREREAD_CC")
            .env_remove("FOREREAD_CXX")
            .env_remove("FOREREAD_SLICE");
        command
    }

    /// The command by which a build system calls the driver.
    pub fn as_cc(&self) -> String {
        format!("{} cc", self.folder.join("foreread").display())
    }

    /// Compiles and links with these arguments, which must succeed silently.
    #[track_caller]
    pub fn builds(&self, args: &str) {
        let output = self.cc(args);
        succeeded(&output);
        assert_eq!(text(&output.stderr), "", "{args}");
    }

    /// Runs a command in the lab, split at blanks, which must succeed.
    #[track_caller]
    pub fn does(&self, command: &str) -> String {
        let words: Vec<_> = command.split_whitespace().collect();
        let output = self.lab.plain(&words);
        succeeded(&output);
        text(&output.stdout)
    }

    /// The changed units that report themselves when the program runs, in order.
    #[track_caller]
    pub fn units_of(&self, program: &str) -> Vec<String> {
        let log = self.lab.path("log");
        let _ = fs::remove_file(&log);
        let output = finish(start(
            self.lab
                .command(self.lab.path(program))
                .env("FAKE_LOG", &log),
        ));
        succeeded(&output);
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The last explanation.
    #[track_caller]
    pub fn explained(&self) -> Value {
        let text = fs::read_to_string(self.lab.path("explained.jsonl")).expect("an explanation");
        let last = text.lines().last().expect("an explanation");
        serde_json::from_str(last).expect("an explanation in JSON")
    }

    /// The reason why the last program has no prefetch thread.
    #[track_caller]
    pub fn why(&self) -> String {
        let explained = self.explained();
        assert_eq!(explained["sliced"], false, "{explained}");
        explained["why"].as_str().expect("a reason").to_owned()
    }

    /// The reason why a unit of the last program was left whole.
    #[track_caller]
    pub fn why_whole(&self, unit: &str) -> String {
        let explained = self.explained();
        let units = explained["units"].as_array().expect("units");
        let found = units
            .iter()
            .find(|one| one["name"].as_str().is_some_and(|name| name.contains(unit)));
        let found = found.unwrap_or_else(|| panic!("no {unit} in {explained}"));
        assert_eq!(found["state"], "left whole", "{explained}");
        found["why"].as_str().expect("a reason").to_owned()
    }

    /// True if a file of the lab has a record.
    pub fn has_record(&self, object: &str) -> bool {
        self.does(&format!("readelf -SW {object}"))
            .contains(".foreread.cc")
    }
}

#[track_caller]
pub fn succeeded(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}
