//! The settings as `--help` lists them: what the documents and the images are held against.

use super::process::run;

#[derive(Debug)]
pub struct Setting {
    /// The flag with its dashes; `None` for what is read from the environment alone.
    pub flag: Option<String>,
    pub variable: String,
    pub default: Option<String>,
    pub what: String,
}

/// Every setting, in the order of `--help`.
pub fn settings() -> Vec<Setting> {
    let help = run(&["--help"], &[]);
    let help = String::from_utf8(help.stdout).unwrap();
    let options = between(&help, "Options:\n", "  -h, --help");
    let alone = between(&help, "Read from the environment alone:\n", "\n\n");
    let flags = entries(options, |line| line.trim_start().starts_with("--"));
    let variables = entries(alone, |line| line.trim_start().starts_with(|c: char| c.is_ascii_uppercase()));
    assert!(flags.len() > 5 && variables.len() > 1, "{help}");
    flags.iter().map(|entry| flag(entry)).chain(variables.iter().map(|entry| variable(entry))).collect()
}

fn flag(entry: &str) -> Setting {
    let mut entry = entry.to_owned();
    let variable = take(&mut entry, "[env: ").unwrap();
    let default = take(&mut entry, "[default: ");
    let (flag, rest) = entry.split_once(' ').unwrap();
    let (_, what) = rest.split_once('>').unwrap();
    let variable = variable.trim_end_matches('=').to_owned();
    Setting { flag: Some(flag.to_owned()), variable, default, what: what.trim().to_owned() }
}

fn variable(entry: &str) -> Setting {
    let mut entry = entry.to_owned();
    let default = take(&mut entry, "[default: ");
    let (variable, what) = entry.split_once(' ').unwrap();
    Setting { flag: None, variable: variable.to_owned(), default, what: what.trim().to_owned() }
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from:?} in {text}"));
    rest.split_once(to).map_or(rest, |(part, _)| part)
}

/// The entries of a list whose lines are wrapped: each as one line.
fn entries(text: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match entries.last_mut() {
            Some(entry) if !begins(line) => {
                entry.push(' ');
                entry.push_str(line.trim());
            }
            _ => entries.push(line.trim().to_owned()),
        }
    }
    entries
}

/// Takes `[name: value]` out of an entry.
fn take(entry: &mut String, name: &str) -> Option<String> {
    let start = entry.find(name)?;
    let end = start + entry[start..].find(']')?;
    let value = entry[start + name.len()..end].trim().to_owned();
    entry.replace_range(start..=end, "");
    Some(value)
}
