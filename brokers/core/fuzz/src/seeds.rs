//! Writes the inputs that fuzzing begins with: the corpora and the samples of the tests, a good
//! token of each mechanism, and a good preamble. `seeds FOLDER` makes `FOLDER/<target>/<name>`.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use freshet_fuzz::{is_control, version_bytes};
use freshet_wire::protocol::versions::ADVERTISED;
use freshet_wire::text::decode_hex;
use kafka_protocol::messages::ApiKey;

const WIRE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/corpus");
const STORAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/storage/tests/samples");

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::other("usage: seeds FOLDER"))?;
    for (words, bytes) in entries(&format!("{WIRE}/batches.txt"))? {
        write(&folder, "produce_batches", &words[0], &bytes)?;
    }
    for (words, bytes) in entries(&format!("{WIRE}/requests.txt"))? {
        write_request(&folder, &words, &bytes)?;
    }
    for (name, bytes) in files_below(Path::new(STORAGE))? {
        let target = if name.contains("manifests") { "manifests" } else { "lane_blocks" };
        if bytes.starts_with(b"FRMF") || bytes.starts_with(b"FRLB") {
            write(&folder, target, &name, &bytes)?;
        }
    }
    for (name, token) in [
        ("plain", &b"\x00\0user\0password"[..]),
        ("scram_256", b"\x01n,,n=user,r=nonce\xffc=biws,r=nonce,p=AAAA"),
        ("scram_512", b"\x02n,,n=user,r=nonce\xffc=biws,r=nonce,p=AAAA"),
    ] {
        write(&folder, "sasl", name, token)?;
    }
    let preamble = concat!(
        r#"{"v":1,"principal":"User:app","listener":"public","client_address":"10.0.0.1:1","#,
        r#""advertised":["127.0.0.1:9092"],"connection":"c1","gateway_nonce":""#,
    );
    let preamble = format!("{preamble}{}\"}}", "07".repeat(32));
    write(&folder, "link_preamble", "good", preamble.as_bytes())
}

/// A request's body goes to the target of its API, behind the bytes that choose the version.
fn write_request(folder: &Path, words: &[String], bytes: &[u8]) -> Result<()> {
    let wrong = || Error::other(format!("not an entry: {words:?}"));
    let [name, api, version, _] = words else { return Err(wrong()) };
    if api == "Header" {
        let length = u32::try_from(bytes.len()).map_err(Error::other)?;
        return write(folder, "frames", name, &[&length.to_be_bytes()[..], bytes].concat());
    }
    let known = ADVERTISED.iter().find(|(known, _, _)| format!("{known:?}") == *api);
    let (api, version) = (known.ok_or_else(wrong)?.0, version.parse().map_err(Error::other)?);
    let (target, chosen) = match api {
        ApiKey::Produce => {
            ("produce_requests", version_bytes(api, version, |one| one == ApiKey::Produce))
        }
        ApiKey::Fetch => {
            ("fetch_requests", version_bytes(api, version, |one| one == ApiKey::Fetch))
        }
        _ => ("control_apis", version_bytes(api, version, is_control)),
    };
    write(folder, target, name, &[&chosen.ok_or_else(wrong)?[..], bytes].concat())
}

/// The entries of a corpus file: comments, a line of words, bytes in hexadecimal, an empty line.
fn entries(path: &str) -> Result<Vec<(Vec<String>, Vec<u8>)>> {
    let text = fs::read_to_string(path)?;
    let entry = |block: &str| {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let words = lines.next()?.split(' ').map(str::to_owned).collect();
        Some((words, decode_hex(&lines.collect::<String>())?))
    };
    let blocks = text.trim_end().split("\n\n");
    blocks.map(|block| entry(block).ok_or_else(|| Error::other(block.to_owned()))).collect()
}

/// All files below a folder, with their paths from it in one word.
fn files_below(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).map_err(Error::other)?;
                files.push((name.to_string_lossy().replace('/', "-"), fs::read(&path)?));
            }
        }
    }
    Ok(files)
}

fn write(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}
