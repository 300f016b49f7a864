//! The report of a run, as a browser shows it.

use std::fs;

use foreread_tests::suite::{ALL, Test};
use foreread_tests::{Lab, Need, finish, start, text};

pub const TESTS: &[Test] = &[(
    "a_report_opens_in_a_browser_without_scripts_or_network",
    ALL.one_at_a_time(),
    &[Need::Command("chromium"), Need::Command("python3")],
    opens,
)];

/// Reads a file in no order, in two processes.
const PROGRAM: &str = "import os
data = os.open('data', os.O_RDONLY)
os.fork()
for page in range(1000):
    os.pread(data, 4096, page * 37 % 1024 * 4096)
";

fn opens() {
    let lab = Lab::new();
    lab.data("data", 4);
    lab.write("program.py", PROGRAM);
    let command = ["python3", "program.py"];
    lab.cold(&["data"]);
    lab.run(&command);
    lab.cold(&["data"]);
    let second = lab.run(&command);
    let page = lab.path("page.html");
    let made = lab.foreread(&["report", "--last", "-o", "page.html"]);
    assert!(made.status.success(), "{made:?}");
    let line = text(&lab.foreread(&["explain", "--last"]).stdout);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = second.stderr();
    let told = told.trim().strip_prefix("foreread: ").unwrap_or_default();
    assert!(words(&line).starts_with(&words(told)), "{line}\n{told}");
    let dom = |size: &str| {
        let mut browser = lab.command("chromium");
        browser
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .arg(format!("--user-data-dir={}", lab.path("browser").display()))
            .args([size, "--dump-dom"])
            .arg(format!("file://{}", page.display()));
        let output = finish(start(&mut browser));
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    };
    for size in ["--window-size=390,800", "--window-size=1280,800"] {
        let dom = dom(size);
        for id in [
            "numbers",
            "ledger",
            "findings",
            "timeline",
            "distance",
            "device",
            "files",
            "names",
            "processes",
            "unseen",
        ] {
            assert!(dom.contains(&format!("id=\"{id}\"")), "{id}: {dom}");
        }
        // The browser has parsed the charts, and each of them is closed.
        let count = |what: &str| dom.matches(what).count();
        assert!(count("<svg class=\"chart\"") >= 2, "{dom}");
        assert_eq!(count("<svg"), count("</svg>"));
        assert_eq!(count("<script"), 0);
    }
    assert!(fs::metadata(&page).expect("a page").len() < 1 << 20);
}
