//! `README.md` is true: every command and program in it is run, every answer in it is what the service gave.
//!
//! An answer stands in the block after what it answers. `UPDATE_README=1` writes answers and settings anew.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use context_recall::app::App;
use context_recall::config::Config;
use serde_json::Value;

use crate::support::help::settings;
use crate::support::peer::{found, skip};
use crate::support::process::Process;
use crate::support::{project, read};

/// The address that the examples use.
const ADDRESS: &str = "http://127.0.0.1:8080";

/// One at a time may write the file anew.
static FILE: Mutex<()> = Mutex::new(());

/// A fenced block.
#[derive(Debug, Clone)]
struct Block {
    language: String,
    text: String,
    /// Number of the line after the opening fence, counted from 0.
    line: usize,
}

fn blocks(readme: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in readme.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { language: language.to_owned(), text: String::new(), line: number + 1 });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is never closed");
    blocks
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE_README").is_some()
}

/// Holds what was given against what is shown, or shows what was given.
fn compare(shown: &Block, given: &str, is_same: impl Fn(&str, &str) -> bool) {
    if is_same(&shown.text, given) {
        return;
    }
    assert!(
        is_updating(),
        "README.md, line {}: shown\n{}\nbut given\n{given}\nUPDATE_README=1 writes it anew",
        shown.line + 1,
        shown.text
    );
    rewrite(&format!("```{}\n{}```", shown.language, shown.text), &format!("```{}\n{given}```", shown.language));
}

fn rewrite(old: &str, new: &str) {
    let _one = FILE.lock().unwrap();
    let readme = read("README.md");
    assert_eq!(readme.matches(old).count(), 1, "this stands there more than once:\n{old}");
    std::fs::write(project("README.md"), readme.replacen(old, new, 1)).unwrap();
}

#[track_caller]
fn succeeded(output: &Output, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}\nended with {:?}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

// ---- commands

/// `cargo run` and `docker` would do what other tests do. The first checks its settings here, the second is held against
/// the compose file elsewhere; `cargo test` is what runs this.
const STAND_INS: &str = r#"
set -euo pipefail
cargo() {
  if [ "$1" != run ]; then return; fi
  while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
  "$PROGRAM" openapi "${@:2}" > /dev/null
}
docker() { [ "$1" = compose ]; }
context-recall() { "$PROGRAM" "$@"; }
"#;

/// A line that every route scores, for the commands that read a file.
const SAMPLES: &str = r#"{"user_input":"?","reference":"Paris.","contexts":["Paris."],"expected_contexts":["Paris."],"expected_ids":[1],"retrieved_ids":[1]}"#;

#[test]
fn every_command_does_what_is_shown() {
    if found(&[(&["bash", "-c"], &["curl --version"])]).is_none() {
        return skip("every_command_does_what_is_shown", "bash and curl");
    }
    let service = Process::start(&[], &[]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("samples.jsonl"), SAMPLES).unwrap();
    let blocks = blocks(&read("README.md"));
    let (mut commands, mut answers) = (0, 0);
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "bash") {
        let script = format!("{STAND_INS}{}", block.text.replace(ADDRESS, &service.url));
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(&folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        bash.env("PROGRAM", env!("CARGO_BIN_EXE_context-recall"));
        let given = succeeded(&bash.output().unwrap(), &block.text);
        commands += 1;
        let shown = blocks.get(index + 1).filter(|next| next.language == "json");
        let calls = block.text.contains("curl ") && !block.text.contains("> results.jsonl");
        assert_eq!(shown.is_some(), calls, "an answer is shown for every call: {}", block.text);
        if let Some(shown) = shown {
            compare(shown, &lay_out(&given), is_same_json);
            answers += 1;
        }
    }
    assert!(commands > 4 && answers > 2, "{commands} commands and {answers} answers were found");
}

/// Equal as JSON, but for the request's id, which is new every time.
fn is_same_json(shown: &str, given: &str) -> bool {
    let read = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap_or_default();
        value.as_object_mut().and_then(|fields| fields.remove("request_id"));
        value
    };
    read(shown) == read(given)
}

#[test]
fn every_server_that_is_named_can_be_set() {
    let readme = read("README.md");
    let table = readme.split_once("| server | `--judge` | variables | |\n").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    for row in &rows {
        let cells: Vec<&str> = row.split('|').collect();
        let spans = |cell: usize| cells[cell].split('`').skip(1).step_by(2);
        let judge = spans(2).next().unwrap_or_else(|| panic!("{row}: no judge"));
        let variable = |span: &str| {
            let (name, value) = span.split_once('=').unwrap_or_else(|| panic!("{row}: {span} is no NAME=value"));
            // An ellipsis stands for the rest of a key.
            (name.to_owned(), value.replace('…', "x"))
        };
        let variables: Vec<(String, String)> = spans(3).map(variable).collect();
        let (_, config) = Config::from_parts(&["--judge", judge], &variables).unwrap();
        assert!(App::new(&config).is_ok(), "{row}");
    }
    assert!(rows.len() >= 9, "{rows:?}");
}

// ---- programs

fn program_gives_what_is_shown(language: &str, file: &str, command: &[String]) {
    let service = Process::start(&[], &[]);
    let blocks = blocks(&read("README.md"));
    let at = blocks.iter().position(|block| block.language == language);
    let at = at.unwrap_or_else(|| panic!("README.md shows no {language}"));
    // The programs print the same, so one block after the last of them shows it.
    let shown = blocks[at..].iter().find(|block| block.language == "text").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(file);
    std::fs::write(&source, blocks[at].text.replace(ADDRESS, &service.url)).unwrap();
    let output = run_in(folder.path(), command, &source);
    compare(shown, &succeeded(&output, &blocks[at].text), |shown, given| shown == given);
}

fn run_in(folder: &Path, command: &[String], source: &Path) -> Output {
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).arg(source).current_dir(folder);
    // What Go builds stays beside the tests, so that it is fast the second time and leaves nothing behind in a home.
    program
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .env("GOFLAGS", "")
        .env("GO111MODULE", "off");
    program.output().unwrap()
}

#[test]
fn the_python_program_prints_what_is_shown() {
    let trial: &[&str] = &["-c", "import requests"];
    match found(&[(&["python3"], trial), (&["/usr/bin/python3"], trial)]) {
        Some(python) => program_gives_what_is_shown("python", "call.py", &python),
        None => skip("the_python_program_prints_what_is_shown", "python3 with requests"),
    }
}

#[test]
fn the_javascript_program_prints_what_is_shown() {
    match found(&[(&["node"], &["-e", "fetch"])]) {
        Some(node) => program_gives_what_is_shown("javascript", "call.mjs", &node),
        None => skip("the_javascript_program_prints_what_is_shown", "node 18 or later"),
    }
}

#[test]
fn the_go_program_prints_what_is_shown() {
    match found(&[(&["go"], &["version"])]) {
        Some(go) => program_gives_what_is_shown("go", "call.go", &[go, vec!["run".to_owned()]].concat()),
        None => skip("the_go_program_prints_what_is_shown", "go"),
    }
}

// ---- settings

const SETTINGS: (&str, &str) = ("<!-- settings, as --help lists them -->\n", "<!-- end of settings -->\n");

#[test]
fn the_table_of_settings_is_what_help_says() {
    let mut table = "| flag | variable | default | |\n|---|---|---|---|\n".to_owned();
    for setting in settings() {
        let flag = setting.flag.map(|flag| format!("`{flag}`")).unwrap_or_default();
        let default = match setting.default.as_deref() {
            None => "–".to_owned(),
            // A default in words, not a value that could be typed.
            Some(words) if words == "none" || words.contains(' ') => words.to_owned(),
            Some(value) => format!("`{value}`"),
        };
        table.push_str(&format!("| {flag} | `{}` | {default} | {} |\n", setting.variable, setting.what));
    }
    holds(SETTINGS, &table);
}

/// README.md shows `given` between two lines that mark the place.
pub fn holds((from, to): (&str, &str), given: &str) {
    let readme = read("README.md");
    let shown = readme.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(shown, _)| shown);
    let shown = shown.unwrap_or_else(|| panic!("README.md has no place marked {from}"));
    if shown != given && is_updating() {
        return rewrite(&format!("{from}{shown}{to}"), &format!("{from}{given}{to}"));
    }
    assert_eq!(shown, given, "UPDATE_README=1 writes it anew");
}

// ---- laying out an answer

/// The columns that a shown answer may take.
const WIDTH: usize = 110;

/// JSON in its own order of fields, each value on one line where it fits.
fn lay_out(json: &str) -> String {
    serde_json::from_str::<Value>(json).unwrap_or_else(|error| panic!("{error} in {json}"));
    let mut laid = node(&mut json.trim()).broken(0);
    laid.push('\n');
    laid
}

enum Node<'a> {
    Leaf(&'a str),
    Field(&'a str, Box<Node<'a>>),
    Group(char, Vec<Node<'a>>, char),
}

/// Reads one value, or one field, off the front of valid JSON.
fn node<'a>(rest: &mut &'a str) -> Node<'a> {
    *rest = rest.trim_start();
    let close = match rest.as_bytes()[0] {
        b'{' => '}',
        b'[' => ']',
        _ => return leaf_or_field(rest),
    };
    let open = rest.chars().next().unwrap();
    let mut members = Vec::new();
    loop {
        *rest = rest[1..].trim_start();
        if rest.starts_with(close) {
            break;
        }
        members.push(node(rest));
        *rest = rest.trim_start();
        if rest.starts_with(close) {
            break;
        }
    }
    *rest = &rest[1..];
    Node::Group(open, members, close)
}

fn leaf_or_field<'a>(rest: &mut &'a str) -> Node<'a> {
    let mut is_escaped = false;
    let ends_string = |c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    let end = match rest.strip_prefix('"') {
        Some(string) => string.find(ends_string).unwrap() + 2,
        None => rest.find([',', '}', ']']).unwrap_or(rest.len()),
    };
    let (leaf, after) = rest.split_at(end);
    *rest = after.trim_start();
    if !rest.starts_with(':') {
        return Node::Leaf(leaf.trim_end());
    }
    *rest = &rest[1..];
    Node::Field(leaf, Box::new(node(rest)))
}

impl Node<'_> {
    fn flat(&self) -> String {
        match self {
            Self::Leaf(text) => (*text).to_owned(),
            Self::Field(name, value) => format!("{name}: {}", value.flat()),
            Self::Group(open, members, close) => {
                let members: Vec<String> = members.iter().map(Node::flat).collect();
                let space = if *open == '{' && !members.is_empty() { " " } else { "" };
                format!("{open}{space}{}{space}{close}", members.join(", "))
            }
        }
    }

    fn broken(&self, indent: usize) -> String {
        match self {
            Self::Leaf(text) => (*text).to_owned(),
            Self::Field(name, value) => format!("{name}: {}", value.fitted(indent, name.len() + 2)),
            Self::Group(open, members, close) => {
                let inner = " ".repeat(indent + 2);
                let members: Vec<String> =
                    members.iter().map(|member| format!("{inner}{}", member.fitted(indent + 2, 0))).collect();
                format!("{open}\n{}\n{}{close}", members.join(",\n"), " ".repeat(indent))
            }
        }
    }

    /// On one line where that fits behind `before` characters and a comma.
    fn fitted(&self, indent: usize, before: usize) -> String {
        let flat = self.flat();
        if indent + before + flat.chars().count() < WIDTH { flat } else { self.broken(indent) }
    }
}

#[test]
fn an_answer_is_laid_out_without_changing_it() {
    let long = "x".repeat(100);
    let json = format!(r#"{{"b":[],"a":{{"z":[1.0,-2e3],"t\"}}":"a, \\"}},"l":["{long}",{{}},true],"n":null}}"#);
    let laid = lay_out(&json);
    assert_eq!(
        laid,
        format!(
            "{{\n  \"b\": [],\n  \"a\": {{ \"z\": [1.0, -2e3], \"t\\\"}}\": \"a, \\\\\" }},\n  \"l\": [\n    \"{long}\",\n    {{}},\n    true\n  ],\n  \"n\": null\n}}\n"
        )
    );
    assert_eq!(serde_json::from_str::<Value>(&laid).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
}
