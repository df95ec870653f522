//! The stores behind the memory's port: the same test for every one, and what is particular to each.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use context_recall::memory::file::{FileMemory, Unusable};
use context_recall::memory::local::LocalMemory;
use context_recall::memory::redis::RedisMemory;
use context_recall::recall::Units;
use context_recall::recall::judge::{JudgeInfo, Question, Votes};
use context_recall::recall::memory::{Key, Memory, Settings};
use futures_util::future::join_all;
use tokio::net::TcpListener;

use crate::support::redis::Redis;

const MIB: u64 = 1024 * 1024;

async fn key(number: usize) -> Key {
    let claims = Units::new(vec!["claim".to_owned()]).unwrap();
    let question = Question { user_input: number.to_string(), contexts: vec![], claims };
    let info = JudgeInfo { provider: "openai", model: "m".to_owned(), prompt: None, prompt_sha256: None, seed: None };
    let settings = Settings {
        provider: "openai",
        model: "m".to_owned(),
        address: String::new(),
        seed: 0,
        window: None,
        output_ceiling: None,
        repairs: 0,
    };
    Key::of_verdicts(&question, Votes::ONE, &info, &settings).await
}

async fn held(memory: &dyn Memory, number: usize) -> Option<Vec<u8>> {
    memory.get(key(number).await).await.map(|entry| entry.to_vec())
}

/// What every store does.
async fn keeps_what_it_is_given(memory: Arc<dyn Memory>) {
    let memory = memory.as_ref();
    let kind = memory.kind();
    assert_eq!(held(memory, 0).await, None, "{kind}");
    for entry in [&b"first"[..], b"\0\xff\r\n$-1\r\n", b"", b"last"] {
        memory.put(key(0).await, entry.to_vec()).await;
        assert_eq!(held(memory, 0).await.as_deref(), Some(entry), "{kind}");
    }
    assert_eq!(held(memory, 1).await, None, "{kind}");
    let large = vec![b'x'; 300_000];
    memory.put(key(1).await, large.clone()).await;
    assert_eq!(held(memory, 1).await, Some(large), "{kind}");

    // Many at once, each of them read as soon as it is written, and one key written by all.
    let shared = key(1000).await;
    join_all((2..102).map(|number| async move {
        memory.put(key(number).await, number.to_le_bytes().to_vec()).await;
        assert_eq!(held(memory, number).await, Some(number.to_le_bytes().to_vec()), "{kind}");
        memory.put(shared, number.to_le_bytes().to_vec()).await;
        assert!(held(memory, 1000).await.is_some());
    }))
    .await;
    assert_eq!(held(memory, 0).await.as_deref(), Some(&b"last"[..]), "{kind}");

    // Who leaves before the entry is safe takes nothing back.
    drop(memory.put(key(103).await, b"paid for".to_vec()));
    let until = Instant::now() + Duration::from_secs(10);
    while held(memory, 103).await.is_none() {
        assert!(Instant::now() < until, "{kind}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    memory.close().await;
    memory.close().await;
    memory.put(key(104).await, b"too late".to_vec()).await;
}

fn file(path: &Path) -> FileMemory {
    FileMemory::open(path, 4 * 1024 * 1024, None).unwrap()
}

#[tokio::test]
async fn every_store_keeps_what_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    keeps_what_it_is_given(Arc::new(LocalMemory::new(64 * MIB, None))).await;
    keeps_what_it_is_given(Arc::new(file(&folder.path().join("memory")))).await;
    if let Some(redis) = Redis::start("every_store_keeps_what_it_is_given", None) {
        keeps_what_it_is_given(Arc::new(RedisMemory::new(&redis.url(), None).unwrap())).await;
    }
}

#[tokio::test]
async fn every_store_forgets_what_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let age = Some(Duration::from_secs(2));
    let redis = Redis::start("every_store_forgets_what_is_too_old", None);
    let mut stores: Vec<Box<dyn Memory>> = vec![
        Box::new(LocalMemory::new(64 * MIB, age)),
        Box::new(FileMemory::open(&folder.path().join("memory"), 4 * 1024 * 1024, age).unwrap()),
    ];
    if let Some(redis) = &redis {
        stores.push(Box::new(RedisMemory::new(&redis.url(), age).unwrap()));
    }
    for store in &stores {
        store.put(key(0).await, b"entry".to_vec()).await;
    }
    let written = Instant::now();
    for store in &stores {
        // Unless the machine was busy for so long that it may be gone already.
        let entry = held(store.as_ref(), 0).await;
        assert!(entry.is_some() || written.elapsed() > Duration::from_secs(1), "{}", store.kind());
    }
    tokio::time::sleep(Duration::from_millis(3100)).await;
    for store in &stores {
        assert_eq!(held(store.as_ref(), 0).await, None, "{}", store.kind());
    }
}

#[tokio::test]
async fn memory_in_the_process_is_bounded_by_bytes() {
    let memory = LocalMemory::new(MIB, None);
    for number in 0..2000 {
        memory.put(key(number).await, vec![0; 4000]).await;
    }
    let mut kept = 0;
    for number in 0..2000 {
        kept += usize::from(held(&memory, number).await.is_some());
    }
    assert!((100..=262).contains(&kept), "{kept} entries of 4,000 bytes in 1 MiB");
}

#[tokio::test]
async fn a_file_outlives_its_process_and_serves_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let first = file(&path);
    first.put(key(0).await, b"kept".to_vec()).await;
    let second = FileMemory::open(&path, 1024, None);
    assert!(matches!(second, Err(Unusable::InUse(_))), "{second:?}");
    first.close().await;
    let second = file(&path);
    assert_eq!(held(&second, 0).await.as_deref(), Some(&b"kept"[..]));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "it holds quotes: nobody else reads it");
}

#[tokio::test]
async fn what_is_no_memory_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let notes = "not a memory at all\n".repeat(1000);
    std::fs::write(&path, &notes).unwrap();
    let error = FileMemory::open(&path, 1024, None).unwrap_err().to_string();
    assert!(error.contains("notes.txt cannot be used as a memory"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
    for nowhere in [folder.path().join("none").join("memory"), folder.path().to_owned()] {
        assert!(matches!(FileMemory::open(&nowhere, 1024, None), Err(Unusable::Broken(..))), "{nowhere:?}");
    }
}

/// Whatever a damaged disk makes of the file: an entry is either as it was written, or not there.
#[tokio::test]
async fn a_damaged_file_gives_misses_and_never_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let whole = file(&path);
    let entry = |number: usize| format!("entry {number} ").repeat(50).into_bytes();
    for number in 0..200 {
        whole.put(key(number).await, entry(number)).await;
    }
    whole.close().await;
    let bytes = std::fs::read(&path).unwrap();
    let (mut opened, mut missed) = (0, 0);
    for turn in 0..24 {
        let mut damaged = bytes.clone();
        // Beyond the header, which tells damage by itself.
        let at = 4096 + (damaged.len() - 4096) / 24 * turn;
        damaged[at..at + 512].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, damaged).unwrap();
        // Refused with words, or opened.
        let Ok(memory) = FileMemory::open(&path, 1024 * 1024, None) else { continue };
        opened += 1;
        for number in 0..200 {
            match held(&memory, number).await {
                // Flipped bits inside an entry are seen by whoever reads it: it has a checksum.
                Some(found) => assert_eq!(found.len(), entry(number).len(), "entry {number}, turn {turn}"),
                None => missed += 1,
            }
        }
        memory.put(key(1).await, b"new".to_vec()).await;
        memory.close().await;
    }
    assert!(opened > 0 && missed < opened * 200, "opened {opened} times, missed {missed}");
}

#[tokio::test]
async fn a_redis_that_is_stopped_costs_misses_and_is_found_again() {
    let Some(mut redis) = Redis::start("a_redis_that_is_stopped_costs_misses_and_is_found_again", Some("swordfish"))
    else {
        return;
    };
    let memory = RedisMemory::new(&redis.url(), None).unwrap();
    memory.put(key(0).await, b"kept".to_vec()).await;
    // Restarted between two commands: the dead connection costs nothing.
    redis.stop();
    redis.start_again();
    assert_eq!(held(&memory, 0).await.as_deref(), Some(&b"kept"[..]));

    redis.stop();
    assert_eq!(held(&memory, 0).await, None);
    let began = Instant::now();
    for _ in 0..1000 {
        assert_eq!(held(&memory, 0).await, None);
        memory.put(key(0).await, b"lost".to_vec()).await;
    }
    assert!(began.elapsed() < Duration::from_secs(3), "nothing waits for a Redis that has just failed");
    redis.start_again();
    let until = Instant::now() + Duration::from_secs(20);
    while held(&memory, 0).await.as_deref() != Some(b"kept") {
        assert!(Instant::now() < until, "it is not found again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_redis_that_never_answers_costs_a_bounded_wait_once() {
    // Accepts, reads nothing, says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let accepting = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = listener.accept().await {
            open.push(connection);
        }
    });
    let memory = RedisMemory::new(&url, None).unwrap();
    let began = Instant::now();
    let many = join_all((0..50).map(|number| {
        let memory = &memory;
        async move { held(memory, number).await }
    }));
    assert!(many.await.iter().all(Option::is_none));
    for number in 0..50 {
        memory.put(key(number).await, vec![]).await;
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    accepting.abort();
}

#[tokio::test]
async fn a_redis_that_refuses_costs_a_miss() {
    let Some(redis) = Redis::start("a_redis_that_refuses_costs_a_miss", Some("swordfish")) else { return };
    let wrong = redis.url().replace("swordfish", "marlin");
    let memory = RedisMemory::new(&wrong, None).unwrap();
    memory.put(key(0).await, b"x".to_vec()).await;
    assert_eq!(held(&memory, 0).await, None);
    // A full one still answers.
    let memory = RedisMemory::new(&redis.url(), None).unwrap();
    memory.put(key(0).await, b"kept".to_vec()).await;
    redis.say(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
    memory.put(key(1).await, b"refused".to_vec()).await;
    assert_eq!((held(&memory, 0).await.as_deref(), held(&memory, 1).await), (Some(&b"kept"[..]), None));
    // Something else under the key.
    redis.say(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
    let name = format!("context-recall:{}", key(2).await);
    redis.say(&[b"LPUSH", name.as_bytes(), b"a"]);
    assert_eq!(held(&memory, 2).await, None);
    assert_eq!(held(&memory, 0).await.as_deref(), Some(&b"kept"[..]));
}

#[test]
fn no_url_and_no_password_is_ever_shown() {
    let memory = RedisMemory::new("redis://user:swordfish@127.0.0.1:1/0", None).unwrap();
    assert!(!format!("{memory:?}").contains("swordfish"), "{memory:?}");
    let error = RedisMemory::new("redis://user:swordfish@:99999/x", None).unwrap_err();
    assert!(!error.contains("swordfish"), "{error}");
}
