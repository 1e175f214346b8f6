//! The memory that is available to a process on Linux.
//!
//! Lines that cannot be read are skipped: an unknown limit does not hide the known ones.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that this process may still allocate. It is the minimum of the system's available memory, the room in every control
/// group around the process, and the room in its address space. `None` if nothing is known.
pub(super) fn left() -> Option<u64> {
    left_below(Path::new("/"))
}

/// The same with all files below `root`, for tests.
fn left_below(root: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let available = named(&read("proc/meminfo"), "MemAvailable:");
    let (limits, status) = (read("proc/self/limits"), read("proc/self/status"));
    let address_space = address_space(&limits).map(|most| most.saturating_sub(named(&status, "VmSize:").unwrap_or(0)));
    let groups = groups(&read("proc/self/mountinfo"), &read("proc/self/cgroup"));
    let of_groups = groups.iter().filter_map(|group| group.left(root));
    of_groups.chain(available).chain(address_space).min()
}

/// Bytes in a line `name   123 kB`.
fn named(text: &str, name: &str) -> Option<u64> {
    let number = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    Some(number.parse::<u64>().ok()?.saturating_mul(1024))
}

/// The soft limit of the address space (`RLIMIT_AS`), in bytes.
fn address_space(limits: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    limit.split_whitespace().next()?.parse().ok()
}

/// The files that hold the limits of a control group.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CgroupVersion {
    One,
    Two,
}

/// A control group that this process is in, or one around it.
#[derive(Debug, PartialEq)]
struct Group {
    version: CgroupVersion,
    folder: PathBuf,
}

impl Group {
    /// Bytes left below the group's limit, if it has one. Cached files count as used memory in a group, but not here: they are dropped
    /// when memory is needed.
    fn left(&self, root: &Path) -> Option<u64> {
        let folder = root.join(self.folder.strip_prefix("/").unwrap_or(&self.folder));
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let statistics = read("memory.stat").unwrap_or_default();
        let statistic = |name: &str| {
            let lines = statistics.lines().filter_map(|line| line.split_once(' '));
            lines.filter(|(found, _)| *found == name).find_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
        };
        let (limit, used, cached) = match self.version {
            CgroupVersion::One => {
                // Also the limits of groups that a container does not see.
                let limits = [number("memory.limit_in_bytes"), statistic("hierarchical_memory_limit")];
                let limit = limits.into_iter().flatten().min();
                (limit, number("memory.usage_in_bytes"), ["total_inactive_file", "total_active_file"])
            }
            CgroupVersion::Two => (number("memory.max"), number("memory.current"), ["inactive_file", "active_file"]),
        };
        let cached = cached.into_iter().filter_map(statistic).fold(0, u64::saturating_add);
        Some(limit?.saturating_sub(used.unwrap_or(0).saturating_sub(cached)))
    }
}

/// The groups of the process and those around it, as far as they can be seen, in every hierarchy that limits memory.
fn groups(mounts: &str, process: &str) -> Vec<Group> {
    let hierarchies = mounts.lines().filter_map(Hierarchy::read);
    hierarchies.flat_map(|hierarchy| hierarchy.groups(process)).collect()
}

/// A hierarchy of control groups where it is mounted.
struct Hierarchy {
    version: CgroupVersion,
    /// The group that the mounted folder shows.
    root: PathBuf,
    folder: PathBuf,
}

impl Hierarchy {
    /// Of a line `id parent device root folder options [fields …] - type source options` of `mountinfo`.
    fn read(line: &str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3).map(unescaped);
        let (root, folder) = (mount.next()?, mount.next()?);
        let mut kind = kind.split(' ');
        let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let version = match kind {
            "cgroup2" => CgroupVersion::Two,
            "cgroup" if options.split(',').any(|option| option == "memory") => CgroupVersion::One,
            _ => return None,
        };
        Some(Self { version, root: root.into(), folder: folder.into() })
    }

    /// The group of the process and those around it, from lines `hierarchy:controllers:path` of `cgroup`.
    fn groups(&self, process: &str) -> Vec<Group> {
        let path = process.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (hierarchy, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let own = match self.version {
                CgroupVersion::One => controllers.split(',').any(|controller| controller == "memory"),
                CgroupVersion::Two => hierarchy == "0" && controllers.is_empty(),
            };
            own.then(|| Path::new(path))
        });
        let Some(path) = path else { return Vec::new() };
        // Where a container is shown its own group as the root, and paths of the host, the root is the group.
        let below = path.strip_prefix(&self.root).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        let below: PathBuf =
            below.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
        below.ancestors().map(|group| Group { version: self.version, folder: self.folder.join(group) }).collect()
    }
}

/// A path with escapes such as `\040` decoded.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => plain.extend([char::from(code).to_string().as_str(), &part[3..]]),
            None => plain.extend(["\\", part]),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
