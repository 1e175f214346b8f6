//! Sums of entries by position, in the entries' order on every device.

use crate::work::device::is_on_host;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

/// Largest number of entries of a group in one scatter: a device without atomic sums adds them one after the other.
const SCATTER: usize = 32 * 1024;

/// The sum of the entries at every place, in the entries' order: `[groups, rows, width]`.
///
/// Entry `j` of a group is added at `places[group·entries + j]`, of `0..width`, in every row of its group. A GPU with atomic sums
/// does not fix the order of sums in one scatter. On devices, entries are therefore added in rounds without equal places: the last
/// bits of a sum are the same in every run.
///
/// # Shapes
///
/// - values: `[groups, rows, entries]`; places: `[groups, entries]`
pub(super) fn sum_entries(values: Tensor<3>, places: &[i32], width: usize) -> Tensor<3> {
    match is_on_host(&values.device()) {
        true => at_once(values, places, width),
        false => in_rounds(values, places, width),
    }
}

fn at_once(values: Tensor<3>, places: &[i32], width: usize) -> Tensor<3> {
    let [groups, rows, _] = values.dims();
    let (device, dtype) = (values.device(), values.dtype());
    let places = index(places.to_vec(), [groups, rows], &device);
    Tensor::zeros([groups, rows, width], (&device, dtype)).scatter(2, places, values, IndexingUpdateOp::Add)
}

fn in_rounds(values: Tensor<3>, places: &[i32], width: usize) -> Tensor<3> {
    let [groups, rows, entries] = values.dims();
    let (device, dtype) = (values.device(), values.dtype());
    let sum = Tensor::zeros([groups, rows, width], (&device, dtype));
    // Rounds are padded with 0, which changes no sum.
    let values = Tensor::cat(vec![values, Tensor::zeros([groups, rows, 1], (&device, dtype))], 2);
    let place =
        |group: usize, entry: i32| places[group * entries..][..entries].get(entry as usize).copied().unwrap_or(0);
    rounds(places, groups, width).iter().flat_map(|round| parts(round, entries)).fold(sum, |sum, part| {
        let groups_of_part = part.iter().enumerate();
        let places =
            groups_of_part.flat_map(|(group, part)| part.iter().map(move |entry| place(group, *entry))).collect();
        let places = index(places, [groups, rows], &device);
        let part = index(part.concat(), [groups, rows], &device);
        sum.scatter(2, places, values.clone().gather(2, part), IndexingUpdateOp::Add)
    })
}

/// The entries of every group that are the `r`-th at their place, for `r = 0, 1, …`: `[rounds][groups]`.
fn rounds(places: &[i32], groups: usize, width: usize) -> Vec<Vec<Vec<i32>>> {
    let mut rounds = Vec::new();
    let mut met = vec![0; width];
    for (group, places) in places.chunks((places.len() / groups).max(1)).enumerate() {
        met.fill(0);
        for (entry, place) in places.iter().enumerate() {
            let met = &mut met[*place as usize];
            if rounds.len() == *met {
                rounds.push(vec![Vec::new(); groups]);
            }
            rounds[*met][group].push(entry as i32);
            *met += 1;
        }
    }
    rounds
}

/// Parts of a round that one scatter adds, its groups filled up to one length with entry `entries`: `[parts][groups]`.
fn parts(round: &[Vec<i32>], entries: usize) -> impl Iterator<Item = Vec<Vec<i32>>> {
    let longest = round.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).step_by(SCATTER).map(move |start| {
        let entry = |group: &Vec<i32>, i| group.get(i).copied().unwrap_or(entries as i32);
        let of_group = |group| (start..longest.min(start + SCATTER)).map(|i| entry(group, i)).collect();
        round.iter().map(of_group).collect()
    })
}

/// Indices `[groups, entries]` for every row of a group: `[groups, rows, entries]`.
fn index(indices: Vec<i32>, [groups, rows]: [usize; 2], device: &Device) -> Tensor<3, Int> {
    let entries = indices.len() / groups;
    Tensor::<3, Int>::from_data(TensorData::new(indices, [groups, 1, entries]), device).expand([groups, rows, entries])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In rounds and at once: sums whose bits depend on the order.
    #[cfg(feature = "flex")]
    #[test]
    fn rounds_keep_the_order() {
        let (device, groups, rows, entries, width) = (Device::flex(), 3, 2, 40, 5);
        let places: Vec<i32> = (0..groups * entries).map(|i| (i * i % 7 % width) as i32).collect();
        let values = Tensor::<1, Int>::arange(0..(groups * rows * entries) as i64, &device).float().add_scalar(0.1);
        let values = values.square().exp().recip().reshape([groups, rows, entries]);
        let bits = |sum: Tensor<3>| sum.into_data();
        let at_once = bits(at_once(values.clone(), &places, width));
        assert_eq!(bits(in_rounds(values.clone(), &places, width)), at_once);
        assert_ne!(bits(in_rounds(values.flip([2]), &places, width)), at_once, "canary");
    }

    #[test]
    fn no_round_meets_a_place_twice() {
        let places = [0, 1, 0, 0, 2, 2, 1, 2];
        assert_eq!(rounds(&places, 2, 3), [[vec![0, 1], vec![0, 2]], [vec![2], vec![1]], [vec![3], vec![3]]]);
        assert_eq!(parts(&rounds(&places[..4], 1, 2)[0], 4).collect::<Vec<_>>(), [[[0, 1]]]);
        assert_eq!(parts(&[vec![0], vec![1, 2]], 4).collect::<Vec<_>>(), [[[0, 4], [1, 2]]]);
    }
}
