//! Image and compose file, as far as they can be checked without an engine: that they agree with the tree, with the
//! settings and with each other.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::help::settings;
use crate::support::peer::{found, skip};
use crate::support::process::run;
use crate::support::{project, read};

// ---- the image

/// One instruction of the Dockerfile, its continued lines joined.
struct Instruction {
    name: String,
    text: String,
}

impl Instruction {
    fn words(&self) -> Vec<&str> {
        self.text.split_whitespace().filter(|word| !word.starts_with("--")).collect()
    }

    fn option(&self, name: &str) -> Option<&str> {
        let start = format!("--{name}=");
        self.text.split_whitespace().find_map(|word| word.strip_prefix(start.as_str()))
    }

    /// The words of an exec form.
    fn exec(&self) -> Vec<String> {
        let list = self.text.find('[').map(|start| &self.text[start..]).unwrap_or_default();
        serde_json::from_str(list).unwrap_or_else(|_| panic!("{} {} is not in exec form", self.name, self.text))
    }
}

/// The stages of the Dockerfile, each from its FROM on.
fn stages() -> Vec<Vec<Instruction>> {
    let file = read("Dockerfile");
    let lines: Vec<&str> = file.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let mut stages: Vec<Vec<Instruction>> = Vec::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let (name, text) = line.trim().split_once(' ').unwrap();
        if name == "FROM" {
            stages.push(Vec::new());
        }
        let instruction = Instruction { name: name.to_owned(), text: text.trim().to_owned() };
        stages.last_mut().unwrap_or_else(|| panic!("{name} before any FROM")).push(instruction);
    }
    assert!(stages.len() >= 2, "one stage builds, another runs");
    stages
}

fn all<'a>(stage: &'a [Instruction], name: &str) -> Vec<&'a Instruction> {
    stage.iter().filter(|instruction| instruction.name == name).collect()
}

#[track_caller]
fn only<'a>(stage: &'a [Instruction], name: &str) -> &'a Instruction {
    let found = all(stage, name);
    assert_eq!(found.len(), 1, "instructions named {name}");
    found[0]
}

fn runtime() -> Vec<Instruction> {
    stages().pop().unwrap()
}

/// The first build step runs against empty sources: Cargo must take them for the whole package, benches and all.
#[test]
fn the_dependency_layer_has_every_source_that_cargo_asks_for() {
    let stages = stages();
    let folder = tempfile::tempdir().unwrap();
    let copy = all(&stages[0], "COPY")[0];
    let words = copy.words();
    let (_, sources) = words.split_last().unwrap();
    for source in sources {
        std::fs::copy(project(source), folder.path().join(source)).unwrap();
    }
    let step = all(&stages[0], "RUN")[0];
    let (before, build) = step.text.split_once("&& cargo build").unwrap();
    assert!(build.contains("--locked"));
    let script = format!("set -e; {before} && cargo metadata --offline --locked --no-deps --format-version 1");
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_the_image_copies_exists_and_is_not_kept_out() {
    let stages = stages();
    let mut copied = 0;
    for copy in stages.iter().flat_map(|stage| all(stage, "COPY")) {
        let words = copy.words();
        let (_, sources) = words.split_last().unwrap();
        copied += sources.len();
        for source in sources {
            match copy.option("from") {
                Some(name) => {
                    let is_named = |stage: &&Vec<Instruction>| stage[0].text.ends_with(&format!(" AS {name}"));
                    let from = stages.iter().find(is_named).unwrap_or_else(|| panic!("no stage is named {name}"));
                    let is_made = all(from, "RUN").iter().any(|run| run.text.contains(source));
                    assert!(is_made, "nothing in stage {name} makes {source}");
                }
                None => {
                    assert!(project(source).exists(), "{source} is copied and does not exist");
                    assert!(!is_kept_out(source), "{source} is copied and kept out by .dockerignore");
                }
            }
        }
    }
    assert!(copied >= 4);
    for secret_or_large in ["target", ".git", ".env"] {
        assert!(is_kept_out(secret_or_large), "{secret_or_large} would be sent to the engine");
    }
}

/// By the rules of .dockerignore as far as this project uses them: whole names at the root, `*`, and exceptions.
fn is_kept_out(path: &str) -> bool {
    let root = Path::new(path).components().next().unwrap().as_os_str().to_str().unwrap();
    let ignore = read(".dockerignore");
    let rules = ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rules.fold(false, |is_out, rule| match rule.strip_prefix('!') {
        Some(name) if name == root => false,
        None if rule == "*" || rule == root => true,
        _ => is_out,
    })
}

/// What is read at compile time must be in the builder, whose tree is no more than what was copied.
#[test]
fn the_source_includes_nothing_that_the_image_leaves_out() {
    let mut folders = vec![project("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // What only tests read is not compiled into the image.
            let text = text.split("#[cfg(test)]").next().unwrap();
            for macro_name in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
                for rest in text.split(macro_name).skip(1) {
                    let included = path.parent().unwrap().join(rest.split('"').next().unwrap());
                    let included = included.canonicalize().unwrap();
                    let inside = included.strip_prefix(project("").canonicalize().unwrap()).unwrap();
                    assert!(inside.starts_with("src"), "{} includes {}", path.display(), inside.display());
                }
            }
        }
    }
}

#[test]
fn the_builder_is_new_enough_and_its_library_is_the_runtimes() {
    let stages = stages();
    let image = stages[0][0].text.split_whitespace().next().unwrap();
    let tag = image.strip_prefix("rust:").unwrap_or_else(|| panic!("{image} is no Rust"));
    let manifest = read("Cargo.toml");
    let least = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(version(tag) >= version(least), "{image} is older than the {least} that Cargo.toml asks for");

    let runtime = stages.last().unwrap()[0].text.as_str();
    let releases = [("bookworm", "debian12"), ("trixie", "debian13")];
    let is_of = |image: &str, (name, number): &(&str, &str)| image.contains(name) || image.contains(number);
    let builders = releases.iter().find(|release| is_of(image, release));
    assert!(builders.is_some_and(|release| is_of(runtime, release)), "{image} builds for another C library: {runtime}");
}

fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split(['.', '-']).map(|part| part.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn the_image_can_check_certificates() {
    let runtime = runtime();
    // The cc image is documented to hold libc, libgcc and the CA certificates.
    let has_them = runtime[0].text.starts_with("gcr.io/distroless/cc-");
    let gets_them = runtime.iter().any(|instruction| {
        matches!(instruction.name.as_str(), "RUN" | "COPY") && instruction.text.contains("ca-certificates")
    });
    assert!(has_them || gets_them, "calls to a judge over TLS would fail: {}", runtime[0].text);
}

#[test]
fn the_image_runs_as_nobody_in_particular_and_checks_itself() {
    let runtime = runtime();
    let user: Vec<u32> = only(&runtime, "USER").text.split(':').map(|id| id.parse().unwrap()).collect();
    assert!(user.iter().all(|&id| id > 0), "{user:?}");
    let entry = only(&runtime, "ENTRYPOINT").exec();
    let program = only(&runtime, "COPY").words()[1].to_owned();
    assert_eq!(entry, std::slice::from_ref(&program));
    assert_eq!(only(&runtime, "HEALTHCHECK").exec(), [program, "healthcheck".to_owned()]);
    let help = run(&["healthcheck", "--help"], &[]);
    assert!(help.status.success(), "the program has no such task");
    let built = all(&stages()[0], "RUN").iter().any(|run| run.text.contains("--locked"));
    assert!(built, "the image is built from the versions in Cargo.lock");
}

// ---- the compose file

/// The lines of the compose file that are no comment.
fn compose() -> Vec<String> {
    let file = read("docker-compose.yml");
    file.lines().filter(|line| !line.trim_start().starts_with('#')).map(str::to_owned).collect()
}

/// The part of the compose file below a key, by indentation.
fn below(key: &str) -> Vec<String> {
    let lines = compose();
    let at = lines.iter().position(|line| line.trim_start().starts_with(&format!("{key}:")));
    let at = at.unwrap_or_else(|| panic!("no {key} in docker-compose.yml"));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let outer = indent(&lines[at]);
    lines[at + 1..].iter().take_while(|line| line.is_empty() || indent(line) > outer).cloned().collect()
}

/// Names such as `RECALL_QUEUE` that stand as keys.
fn variables(lines: &[String]) -> BTreeSet<String> {
    let key = |line: &String| line.trim_start().split_once(':').map(|(key, _)| key.to_owned());
    let is_variable = |key: &String| key.starts_with(|c: char| c.is_ascii_uppercase());
    lines.iter().filter_map(key).filter(is_variable).collect()
}

/// The services in the compose file that are this program.
const OURS: [&str; 2] = ["context-recall", "context-recall-ollama"];

#[test]
fn every_variable_is_a_setting_and_every_setting_can_be_passed() {
    let settings = settings();
    let known: BTreeSet<&str> = settings.iter().map(|setting| setting.variable.as_str()).collect();
    let alone = settings.iter().filter(|setting| setting.flag.is_none()).map(|setting| setting.variable.as_str());
    let of_other_judges: BTreeSet<&str> = alone.filter(|name| !["RUST_LOG", "OLLAMA_HOST"].contains(name)).collect();
    let image = only(&runtime(), "ENV").text.clone();
    let in_image: BTreeSet<String> =
        image.split_whitespace().map(|pair| pair.split('=').next().unwrap().to_owned()).collect();
    let shared = variables(&below("x-settings"));
    for service in OURS {
        let passed: BTreeSet<String> = variables(&below(service)).union(&shared).cloned().collect();
        for name in passed.union(&in_image) {
            assert!(known.contains(name.as_str()), "{service} is given {name}, which is no setting");
        }
        let reached: BTreeSet<&str> = passed.union(&in_image).map(String::as_str).collect();
        // What other judges need would be given to a service with a judge of its own for nothing.
        let is_needed = |name: &&&str| service == OURS[0] || !of_other_judges.contains(**name);
        let missed: Vec<_> = known.difference(&reached).filter(is_needed).collect();
        assert!(missed.is_empty(), "{service} cannot be given {missed:?}");
    }
    // What is taken from the shell goes to the variable of the same name, and its absence is no fault.
    for line in compose().iter().filter(|line| line.contains("${")) {
        assert_eq!(line.matches("${").count(), line.matches(":-").count(), "{line}");
        let (key, value) = line.trim_start().split_once(": ").unwrap();
        let taken = value.split("${").nth(1).unwrap().split(":-").next().unwrap();
        assert!(taken == key || taken == "OLLAMA_MODEL", "{line}");
    }
}

#[test]
fn ports_agree() {
    let settings = settings();
    let default = settings.iter().find(|setting| setting.variable == "PORT").and_then(|port| port.default.clone());
    let default = default.unwrap();
    let runtime = runtime();
    let env = &only(&runtime, "ENV").text;
    assert!(env.split_whitespace().any(|pair| pair == format!("PORT={default}")), "{env}");
    assert!(env.split_whitespace().any(|pair| pair == "RECALL_HOST=0.0.0.0"), "{env}");
    assert_eq!(only(&runtime, "EXPOSE").text, default);
    let mut outside = BTreeSet::new();
    for service in OURS {
        let lines = below(service);
        let ports = lines.iter().find(|line| line.trim_start().starts_with("ports:")).unwrap();
        let port: Vec<&str> = ports.split('"').nth(1).unwrap().split(':').collect();
        assert_eq!((port[0], port[2]), ("127.0.0.1", default.as_str()), "{service}");
        assert!(outside.insert(port[1].to_owned()), "two services on {}", port[1]);
        assert!(read("README.md").contains(&format!("127.0.0.1:{}", port[1])), "{} is not told", port[1]);
    }
    assert!(outside.contains(&default));
    let published = compose().iter().filter(|line| line.trim_start().starts_with("ports:")).count();
    assert_eq!(published, OURS.len(), "nothing else is published");
}

#[test]
fn our_containers_may_do_little() {
    let shared = below("x-service").join("\n");
    for wanted in ["read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "stop_grace_period:"] {
        assert!(shared.contains(wanted), "{wanted}");
    }
    for service in OURS {
        let lines = below(service);
        assert!(lines.iter().any(|line| line.trim() == "<<: *service"), "{service}");
        assert!(!lines.iter().any(|line| line.contains("privileged") || line.contains("cap_add")), "{service}");
    }
}

fn profiles() -> BTreeSet<String> {
    let named =
        |line: &String| line.trim().strip_prefix("profiles: [").map(|rest| rest.trim_end_matches(']').to_owned());
    compose().iter().filter_map(named).collect()
}

#[test]
fn the_service_alone_is_in_no_profile_and_readme_tells_the_others() {
    assert!(!below(OURS[0]).iter().any(|line| line.contains("profiles:")));
    let readme = read("README.md");
    let told: BTreeSet<String> =
        readme.split("--profile ").skip(1).map(|rest| rest.split_whitespace().next().unwrap().to_owned()).collect();
    assert_eq!(told, profiles());
}

#[test]
fn compose_reads_its_files() {
    let trial: &[&str] = &["version"];
    let compose = found(&[(&["docker", "compose"], trial), (&["docker-compose"], trial)]);
    let Some(compose) = compose else { return skip("compose_reads_its_files", "docker compose") };
    let check = |folder: &Path, arguments: &[&str]| {
        let mut command = Command::new(&compose[0]);
        command.args(&compose[1..]).args(arguments).args(["config", "--quiet"]).current_dir(folder);
        let output = command.env_remove("COMPOSE_PROFILES").env_remove("COMPOSE_FILE").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    check(&project(""), &[]);
    for profile in profiles() {
        check(&project(""), &["--profile", &profile]);
    }
    // The sidecar in README, beside a folder that stands for this one.
    let readme = read("README.md");
    let sidecar = readme.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("app")).unwrap();
    std::fs::create_dir_all(folder.path().join("context-recall")).unwrap();
    std::fs::write(folder.path().join("app/docker-compose.yml"), sidecar).unwrap();
    check(&folder.path().join("app"), &[]);
}
