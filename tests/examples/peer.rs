//! The peer of `throughput`: absent, out of memory, wrong. Shell scripts stand for it.

use eggroll_examples::throughput::{Column, Peer, PeerResult, Size};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a script.
fn script(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("peer.sh");
    fs::write(&path, text).expect("writes");
    (folder, path)
}

fn peer(script: &Path) -> Peer {
    Peer::new(Path::new("sh"), script, ["--sizes", "large"])
}

fn measure(text: &str) -> Result<PeerResult, String> {
    let (_folder, path) = script(text);
    peer(&path).measure().map_err(|error| error.to_string())
}

/// Three cells, the second of which ends the process in a given way.
fn three_cells(end: &str) -> String {
    format!(
        r#"
echo '{{"jax": "0"}}'
cell() {{ echo "{{\"size\": \"large\", \"population\": 2048, \"rank\": $1, \"column\": \"$2\", $3}}"; }}
[ "$1 $2" = "--sizes large" ] || {{ echo "options: $*" >&2; exit 1; }}
if [ "$3" = "" ]; then
    cell null inference '"median_ms": 2.0, "q1_ms": 1.0, "q3_ms": 3.0'
    {end}
fi
[ "$3 $4" = "--died-at 1" ] || {{ echo "options: $*" >&2; exit 1; }}
cell null open_es_fly '"failed": "out of memory"'
cell 1 fly '"median_ms": 5.0'
cell 4 cached '"skipped": "too many bytes"'
"#
    )
}

/// The cell becomes "out of memory", the others stand.
#[test]
fn a_cell_without_memory() {
    let killed = "kill -9 $$";
    let said = "echo 'jaxlib: RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.' >&2; exit 1";
    let cut_off = "printf '{\"size\": \"lar'; kill -9 $$";
    for end in [killed, said, cut_off] {
        let measured = measure(&three_cells(end)).expect(end);
        assert_eq!(measured.header, r#"{"jax": "0"}"#);
        let found: Vec<_> = measured.cells.iter().map(|cell| (cell.place.column, cell.median_ms, cell.ratio)).collect();
        assert_eq!(found, [(Column::Inference, 2.0, None), (Column::Fly, 5.0, Some(2.5))]);
        let place = measured.out_of_memory[0];
        assert_eq!(measured.out_of_memory.len(), 1);
        assert_eq!((place.size, place.population, place.rank), (Size::LARGE, 2048, None));
        assert_eq!(place.column, Column::OpenEsFly);
    }
}

#[test]
fn other_failures_are_errors() {
    let broken = three_cells("echo Traceback >&2; echo 'TypeError: no such thing' >&2; exit 1");
    let error = measure(&broken).expect_err("fails");
    assert!(error.ends_with("peer.sh: TypeError: no such thing"), "{error}");
    // No cell was begun, or none gets farther: nobody tries again for ever.
    let error = measure("kill -9 $$").expect_err("fails");
    assert!(error.contains("signal: 9"), "{error}");
    let error = measure("echo '{}'; kill -9 $$").expect_err("fails");
    assert!(error.contains("signal: 9"), "{error}");
    let error = measure("echo '{}'; echo nonsense").expect_err("fails");
    assert!(error.contains("the peer's line \"nonsense\""), "{error}");
}

/// One line, and nothing is measured for it.
#[test]
fn a_peer_that_is_not_installed() {
    let (_folder, path) = script(
        "[ \"$1\" = --help ] || exit 0\nprintf 'Traceback:\\n  import jax\\nModuleNotFoundError: No module named jax\\n' >&2\nexit 1",
    );
    let check = |peer: Peer| peer.check().map_err(|error| error.to_string());
    assert_eq!(
        check(peer(&path)).expect_err("refused"),
        "the peer is not installed: sh: ModuleNotFoundError: No module named jax (benches/peers/README.md says how)"
    );
    let absent = Peer::new(Path::new("/no/such/python"), &path, [""; 0]);
    let error = check(absent).expect_err("refused");
    assert!(error.starts_with("the peer is not installed: /no/such/python: No such file"), "{error}");
    assert_eq!(error.lines().count(), 1);
    let (_folder, path) = script("echo usage");
    check(peer(&path)).expect("canary: it is there");
}
