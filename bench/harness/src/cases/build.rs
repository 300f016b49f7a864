//! Trees of many files: a static link, the sources of a make, texts for grep.

use super::data::{Random, text, write};
use crate::case::Data;
use crate::tools::shell;

const LLVM: &str = "/usr/lib/llvm-14";
pub(super) const LLVM_CONFIG: &str = "/usr/lib/llvm-14/bin/llvm-config";

/// References every target, so that the link uses nearly every library.
const LINK_SOURCE: &str = "\
#include \"llvm/IR/LLVMContext.h\"
#include \"llvm/Support/TargetSelect.h\"
int main() {
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();
  llvm::LLVMContext context;
  return 0;
}
";

/// `main.o`, the libraries for its link, and in `libs` the linker's arguments.
pub(super) static LINK: Data = Data {
    name: "link",
    make: |dir, _, _| {
        write(dir, "main.cpp", LINK_SOURCE)?;
        // The libraries are copied to the disk under test. Polly's are not packaged, though llvm-config names them.
        shell(
            dir,
            &format!(
                "g++ -O0 -std=c++17 $({LLVM_CONFIG} --cxxflags) -c main.cpp -o main.o; mkdir lib; \
                 echo $({LLVM_CONFIG} --link-static --libs all | sed 's/-lPolly[A-Za-z]*//g') \
                      $({LLVM_CONFIG} --link-static --system-libs) > libs; \
                 for word in $(cat libs); do f={LLVM}/lib/lib${{word#-l}}.a; \
                   if test -f $f; then cp $f lib/; fi; done"
            ),
        )
    },
};

const SOURCES: u64 = 200;
const HEADERS: u64 = 300;

/// A project with a Makefile that builds in the folder `O`.
pub(super) static MAKE: Data = Data {
    name: "make",
    make: |dir, _, _| {
        let mut random = Random(13);
        // Half of a header is comment, as is usual.
        for h in 0..HEADERS {
            let comment = text(&mut random, 3000 + random_size(h));
            let mut body = format!("#ifndef H{h}\n#define H{h}\n/* {comment} */\n");
            for f in 0..20 {
                body += &format!(
                    "struct s{h}_{f} {{ int a, b; double c[{}]; }};\n\
                     static inline int get{h}_{f}(const struct s{h}_{f} *s) {{ return s->a * {f} + s->b; }}\n",
                    f + 1
                );
            }
            write(
                dir,
                &format!("include/part{:02}/h{h}.h", h % 20),
                body + "#endif\n",
            )?;
        }
        for c in 0..SOURCES {
            let mut body = String::from("#include <stdio.h>\n#include <string.h>\n");
            let mut chosen: Vec<u64> = (0..25).map(|_| random.below(HEADERS)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            for h in &chosen {
                body += &format!("#include \"part{:02}/h{h}.h\"\n", h % 20);
            }
            body += &format!(
                "/* {} */\nint unit{c}(int x)\n{{\n\tint sum = x;\n",
                text(&mut random, 4000)
            );
            for h in &chosen {
                body += &format!(
                    "\tstruct s{h}_3 v{h} = {{ x, {h}, {{ 0 }} }};\n\tsum += get{h}_3(&v{h});\n"
                );
            }
            write(
                dir,
                &format!("src/m{:02}/unit{c}.c", c % 10),
                body + "\treturn sum;\n}\n",
            )?;
        }
        let calls: String = (0..SOURCES)
            .map(|c| format!("\tsum += unit{c}(sum);\n"))
            .collect();
        let declared: String = (0..SOURCES)
            .map(|c| format!("int unit{c}(int);\n"))
            .collect();
        write(
            dir,
            "src/m00/main.c",
            format!(
                "#include <stdio.h>\n{declared}int main(void)\n{{\n\tint sum = 1;\n{calls}\tprintf(\"%d\\n\", sum);\n\treturn 0;\n}}\n"
            ),
        )?;
        write(
            dir,
            "Makefile",
            "O ?= build\nSOURCES := $(sort $(wildcard src/*/*.c))\n\
             OBJECTS := $(patsubst src/%.c,$(O)/%.o,$(SOURCES))\n\
             $(O)/program: $(OBJECTS)\n\t@$(CC) -o $@ $^\n\
             $(O)/%.o: src/%.c\n\t@mkdir -p $(@D)\n\t@$(CC) -O0 -Iinclude -c -o $@ $<\n",
        )
    },
};

/// Sizes between 0 and 12 KB that differ from file to file.
fn random_size(index: u64) -> usize {
    (Random(index).next() % 12_000) as usize
}

const TREE_FILES: u64 = 8_000;

/// A tree like that of a used system: written in shuffled order, mostly small files, a few large: 1 KiB to 64 KiB.
pub(super) static TREE: Data = Data {
    name: "tree",
    make: |dir, _, _| {
        let mut random = Random(14);
        let mut order: Vec<u64> = (0..TREE_FILES).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        for file in order {
            let bytes = 1024usize << random.below(7).min(random.below(7));
            let mut content = text(&mut random, bytes);
            if file % 400 == 0 {
                content.push_str("the needle\n");
            }
            let folder = format!("d{:02}/e{:02}", file % 40, file / 40 % 10);
            write(dir, &format!("{folder}/f{file}.txt"), content)?;
        }
        Ok(())
    },
};
