//! The house is as drawn: which room may import which.

use std::path::{Path, PathBuf};

use crate::support::project;

/// Rooms and root files with what each may import of ours. `crate::recall` beside a room that is not listed for it fails.
const ARROWS: &[(&str, &[&str])] = &[
    ("recall", &["deadline", "flights"]),
    ("providers", &["deadline"]),
    ("memory", &["recall"]),
    ("deadline.rs", &[]),
    ("flights.rs", &["deadline"]),
    ("slots.rs", &["deadline"]),
    ("spool.rs", &[]),
    ("compute.rs", &["recall", "slots"]),
    // A setting may be a secret, and a misspelt one is compared with the known ones.
    ("config.rs", &["providers", "recall", "memory"]),
    ("config", &["providers", "recall", "memory"]),
    ("standing.rs", &["recall", "deadline"]),
    ("score.rs", &["app", "config", "http"]),
    ("telemetry.rs", &["config"]),
    ("judge", &["recall", "providers", "slots", "compute", "deadline"]),
    ("http", &["recall", "compute", "app", "spool"]),
    ("app.rs", &["config", "http", "judge", "memory", "providers", "recall", "slots", "standing", "compute"]),
    ("main.rs", &[]),
    ("lib.rs", &[]),
];

#[test]
fn rooms_import_only_what_the_plan_allows() {
    let src = project("src");
    let mut entries: Vec<_> = std::fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    for entry in entries {
        let room = entry.to_str().unwrap();
        let (_, allowed) =
            ARROWS.iter().find(|(name, _)| *name == room).unwrap_or_else(|| panic!("{room} is in no plan"));
        for file in files(&src.join(room)) {
            let text = std::fs::read_to_string(&file).unwrap();
            for imported in imports(&text) {
                let itself = room.trim_end_matches(".rs");
                let is_allowed = imported == itself || allowed.contains(&imported.as_str());
                assert!(is_allowed, "{} imports {imported}", file.display());
            }
        }
    }
}

#[test]
fn only_the_front_desk_knows_axum_and_only_the_outside_knows_reqwest() {
    for file in files(&project("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let room = file.strip_prefix(project("src")).unwrap().components().next().unwrap().as_os_str().to_owned();
        let names = |word: &str| text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
        assert!(!names("axum::") || room == "http", "{}", file.display());
        assert!(!names("utoipa") || room == "http", "{}", file.display());
        assert!(!names("reqwest::") || room == "providers" || room == "main.rs", "{}", file.display());
        assert!(!names("std::env::") || room == "config.rs", "{}", file.display());
    }
}

/// The rooms that a file names by `crate::ROOM`, comments left out.
fn imports(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let rooms = code.split("crate::").skip(1);
    let mut named: Vec<String> = rooms
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap().split(',').map(|part| first_name(part.trim())).collect(),
            None => vec![first_name(rest)],
        })
        .filter(|name| !name.is_empty())
        .collect();
    named.sort();
    named.dedup();
    named
}

fn first_name(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(path).unwrap().flat_map(|entry| files(&entry.unwrap().path())).collect();
    found.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    found
}
