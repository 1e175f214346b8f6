//! Calls that reach every kernel, in every type and geometry that launchers choose.

use crate::recorder::Recorded;
use crate::tensors::Tensors;
use crate::{floats, integers, rollouts};
use burn::tensor::DType;
use cubecl::client::Client;
use std::collections::BTreeSet;
use std::path::Path;

/// Launches all operations on the device of `client`, and waits until their kernels are compiled.
///
/// # Panics
///
/// Panics if an operation does.
pub fn launch_all(client: &Client) {
    let tensors = Tensors { client: client.clone() };
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        if tensors.supports(dtype) {
            floats::launch(&tensors, dtype);
        }
    }
    // As `integer_type` chooses.
    let int8 = if tensors.supports(DType::I8) { DType::I8 } else { DType::I32 };
    integers::launch(&tensors, int8);
    rollouts::launch(client);
    client.flush().expect("a recorder has nothing to flush");
}

/// Kernels that the crates in the folder `crates` define for launches and that are not `recorded`, by their paths. Tests' kernels do not count.
///
/// # Errors
///
/// Fails where a source cannot be read.
pub fn missing(crates: &Path, recorded: &[Recorded]) -> std::io::Result<Vec<String>> {
    let mut defined = BTreeSet::new();
    for folder in std::fs::read_dir(crates)? {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().replace('-', "_");
        collect(&folder.path().join("src"), &name, &mut defined)?;
    }
    let reached: BTreeSet<&str> = recorded.iter().filter_map(|kernel| function(kernel.path)).collect();
    Ok(defined.into_iter().filter(|kernel| !reached.contains(kernel.as_str())).collect())
}

/// The function of a kernel's type, `a::linear::linear_kernel` of `a::linear::linear_kernel::LinearKernel<F>`.
fn function(path: &str) -> Option<&str> {
    Some(path.split('<').next()?.rsplit_once("::")?.0)
}

fn collect(folder: &Path, module: &str, defined: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let inner = if ["mod", "lib"].contains(&&*stem) { module.to_owned() } else { format!("{module}::{stem}") };
        if path.is_dir() {
            collect(&path, &inner, defined)?;
        } else if path.extension().is_some_and(|suffix| suffix == "rs") && stem != "tests" {
            let text = std::fs::read_to_string(&path)?;
            defined.extend(kernels(&text).into_iter().map(|kernel| format!("{inner}::{kernel}")));
        }
    }
    Ok(())
}

/// Names of the functions with an attribute `cube` for launches, above the tests.
fn kernels(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let (mut found, mut launched) = (Vec::new(), false);
    for line in code.lines().map(str::trim_start) {
        launched |= line.starts_with("#[cube(") && line.contains("launch");
        if let Some((_, name)) = line.split_once("fn ").filter(|_| launched) {
            let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
            found.push(&name[..end]);
            launched = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{function, kernels};

    #[test]
    fn kernels_of_a_source() {
        let text = "#[cube(launch)]\npub(crate) fn one<F: Float>(x: &[F]) {}\n#[cube]\nfn part() {}\n\
            #[cube(launch_unchecked, address_type = \"dynamic\")]\nfn two() {}\n#[cfg(test)]\nmod tests {\n\
            #[cube(launch)]\nfn three() {}";
        assert_eq!(kernels(text), ["one", "two"]);
    }

    #[test]
    fn function_of_a_kernel() {
        assert_eq!(function("a::b::add_kernel::AddKernel<half::bf16>"), Some("a::b::add_kernel"));
        assert_eq!(function("AddKernel"), None);
    }
}
