//! Folders that imitate `/proc` and `/sys/fs/cgroup`, and the machine itself.

use super::*;
use tempfile::TempDir;

const MEMINFO: &str = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    900 kB\n";
const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
/// Of a system with both: the second version's has no controllers.
const HYBRID: &str = "\
    32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
    35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
    41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
const KB: u64 = 1024;

/// A machine of these files.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("writes");
    }
    folder
}

fn left_of(files: &[(&str, &str)]) -> Option<u64> {
    left_below(machine(files).path())
}

#[test]
fn what_is_available() {
    assert_eq!(left_of(&[]), None);
    assert_eq!(left_of(&[("proc/meminfo", MEMINFO)]), Some(900 * KB));
    assert_eq!(left_of(&[("proc/meminfo", "MemAvailable: many kB\n")]), None);
}

#[test]
fn the_second_version() {
    let group = "sys/fs/cgroup/user.slice/job.scope";
    let files = |outer: &'static str, inner: &'static str| {
        [
            ("proc/meminfo", MEMINFO),
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/user.slice/job.scope\n"),
            ("sys/fs/cgroup/user.slice/memory.max", outer),
            ("sys/fs/cgroup/user.slice/memory.current", "300000\n"),
            ("sys/fs/cgroup/user.slice/job.scope/memory.max", inner),
            ("sys/fs/cgroup/user.slice/job.scope/memory.current", "150000\n"),
            ("sys/fs/cgroup/user.slice/job.scope/memory.stat", "anon 100\ninactive_file 40000\nactive_file 10000\n"),
        ]
    };
    assert!(files("", "")[5].0.starts_with(group));
    assert_eq!(left_of(&files("max\n", "max\n")), Some(900 * KB), "no limit");
    assert_eq!(left_of(&files("max\n", "200000\n")), Some(100_000), "cached files are not counted");
    assert_eq!(left_of(&files("350000\n", "max\n")), Some(50_000), "of the group around");
    assert_eq!(left_of(&files("350000\n", "200000\n")), Some(50_000), "the least");
    assert_eq!(left_of(&files("max\n", "120000\n")), Some(20_000));
    assert_eq!(left_of(&files("100\n", "200000\n")), Some(0), "over its limit");
    assert_eq!(left_of(&files("99999999999\n", "max\n")), Some(900 * KB), "more than there is");
}

#[test]
fn the_first_version() {
    let files = |outer: &'static str, inner: &'static str, statistics: &'static str| {
        [
            ("proc/meminfo", MEMINFO),
            ("proc/self/mountinfo", V1),
            ("proc/self/cgroup", "5:devices:/\n4:memory:/slurm/job_7\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "800000\n"),
            ("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", outer),
            ("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "300000\n"),
            ("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", inner),
            ("sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "100000\n"),
            ("sys/fs/cgroup/memory/slurm/job_7/memory.stat", statistics),
        ]
    };
    let none = "9223372036854771712\n";
    assert_eq!(left_of(&files(none, none, "")), Some(900 * KB));
    assert_eq!(left_of(&files(none, "200000\n", "")), Some(100_000));
    assert_eq!(left_of(&files("310000\n", "200000\n", "")), Some(10_000), "of the group around");
    let cached = "cache 90000\ntotal_inactive_file 30000\ntotal_active_file 20000\n";
    assert_eq!(left_of(&files(none, "200000\n", cached)), Some(150_000));
    assert_eq!(left_of(&files(none, none, "hierarchical_memory_limit 160000\n")), Some(60_000), "of a group unseen");
}

#[test]
fn both_versions() {
    let files = [
        ("proc/meminfo", MEMINFO),
        ("proc/self/mountinfo", HYBRID),
        ("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/other\n0::/init.scope\n"),
        ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n"),
        ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100000\n"),
        ("sys/fs/cgroup/memory/init.scope/memory.limit_in_bytes", "1\n"),
        ("sys/fs/cgroup/unified/init.scope/cgroup.procs", "1\n"),
    ];
    assert_eq!(left_of(&files), Some(200_000));
}

/// A container sees its own group as the root of its hierarchy: by a namespace, or because only that part is mounted.
#[test]
fn containers() {
    let limit =
        [("sys/fs/cgroup/memory.max", "400000\n"), ("sys/fs/cgroup/memory.current", "100000\n")].map(|file| file);
    let second = |mount: &'static str, process: &'static str| {
        let [max, current] = limit;
        [("proc/meminfo", MEMINFO), ("proc/self/mountinfo", mount), ("proc/self/cgroup", process), max, current]
    };
    assert_eq!(left_of(&second(V2, "0::/\n")), Some(300_000), "a namespace");
    assert_eq!(left_of(&second(V2, "0::/../../system.slice/docker.service\n")), Some(300_000), "one beside it");
    let part = "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    assert_eq!(left_of(&second(part, "0::/docker/abc\n")), Some(300_000), "a part");

    let first = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime master:11 - cgroup cgroup rw,memory\n";
    let files = [
        ("proc/meminfo", MEMINFO),
        ("proc/self/mountinfo", first),
        ("proc/self/cgroup", "11:memory:/docker/abc\n0::/\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "419430\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "19430\n"),
    ];
    assert_eq!(left_of(&files), Some(400_000));
}

#[test]
fn address_space() {
    let limits = |soft: &str| {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max cpu time              unlimited            unlimited            seconds   \n\
             Max address space         {soft}               unlimited            bytes     \n"
        )
    };
    let left = |soft: &str, status: &str| {
        left_of(&[("proc/meminfo", MEMINFO), ("proc/self/limits", &limits(soft)), ("proc/self/status", status)])
    };
    let status = "Name:\teggroll\nVmPeak:\t     300 kB\nVmSize:\t     200 kB\n";
    assert_eq!(left("unlimited", status), Some(900 * KB));
    assert_eq!(left("512000", status), Some(512_000 - 200 * KB));
    assert_eq!(left("1000", status), Some(0));
    assert_eq!(left("512000", ""), Some(512_000));
}

#[test]
fn lines_that_mean_nothing() {
    let junk =
        ["", "\n\n", ":::", "0::", "- - -", "41 31 - cgroup2", " - cgroup2 ", "\\", "a b c d\\04 e\\777 - cgroup2 x y"];
    for mounts in junk {
        for process in junk {
            for limits in ["", "Max address space", "Max address space x"] {
                let files = [
                    ("proc/meminfo", MEMINFO),
                    ("proc/self/mountinfo", mounts),
                    ("proc/self/cgroup", process),
                    ("proc/self/limits", limits),
                ];
                assert_eq!(left_of(&files), Some(900 * KB), "{mounts:?} {process:?} {limits:?}");
            }
        }
    }
    assert_eq!(unescaped(r"/a\040b\134c\x"), r"/a b\c\x");
}

/// Not more than the machine has.
#[test]
fn this_machine() {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let total = named(&meminfo, "MemTotal:").expect("a total");
    assert!((1 << 20..total).contains(&left().expect("known")));
}
