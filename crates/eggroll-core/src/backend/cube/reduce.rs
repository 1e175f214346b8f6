//! Sums and maxima over runs of units: by plane (warp, subgroup) operations where the device has planes, else by a tree in
//! shared memory.

use cubecl::prelude::*;

/// Runs of neighboring units that reduce together, and what they use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lanes {
    /// Units of a run: a power of two that divides the units of the cube.
    pub count: usize,
    /// Units of a plane, a power of two; 0 uses no plane operations. Units of a plane must have neighboring positions, as
    /// they have in cubes of one dimension.
    pub plane: usize,
}

impl Lanes {
    /// `f32` values of shared memory that cubes of `units` units reduce through, at least one.
    pub(crate) fn shared_len(&self, units: u32) -> usize {
        match self.plane {
            0 => units as usize,
            plane => (units as usize / plane).max(1),
        }
    }
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Max,
}

/// The sum or the maximum over each run; every unit gets that of its own run. All units of the cube must call it.
///
/// `shared` holds [`Lanes::shared_len`] values and is free again afterwards. It says nothing about other shared memory: there
/// may be no barrier in it.
#[cube]
pub(crate) fn fold_lanes(
    shared: &mut Shared<[f32]>,
    value: f32,
    #[comptime] lanes: Lanes,
    #[comptime] fold: Fold,
) -> f32 {
    if comptime!(lanes.count == 1) {
        value
    } else if comptime!(lanes.plane == 0) {
        fold_shared(shared, value, lanes, fold)
    } else if comptime!(lanes.count <= lanes.plane) {
        fold_plane(value, lanes, fold)
    } else {
        fold_planes(shared, value, lanes, fold)
    }
}

/// A tree of pairs in shared memory.
#[cube]
fn fold_shared(shared: &mut Shared<[f32]>, value: f32, #[comptime] lanes: Lanes, #[comptime] fold: Fold) -> f32 {
    let unit = UNIT_POS as usize;
    shared[unit] = value;
    sync_cube();
    #[unroll]
    for step in 0..comptime!(lanes.count.ilog2()) {
        let half = comptime!(lanes.count >> (step + 1));
        if unit % lanes.count < half {
            shared[unit] = fold_two(shared[unit], shared[unit + half], fold);
        }
        sync_cube();
    }
    let folded = shared[unit / lanes.count * lanes.count];
    sync_cube();
    folded
}

/// Runs that a plane holds whole.
#[cube]
fn fold_plane(value: f32, #[comptime] lanes: Lanes, #[comptime] fold: Fold) -> f32 {
    // Units that come from loops of unequal turns need not have met again, and plane operations take only units that
    // have met.
    sync_plane();
    if comptime!(lanes.count == lanes.plane) {
        if comptime!(fold == Fold::Sum) { plane_sum(value) } else { plane_max(value) }
    } else {
        let mut folded = value;
        #[unroll]
        for step in 0..comptime!(lanes.count.ilog2()) {
            let mask = comptime!(1u32 << step);
            folded = fold_two(folded, plane_shuffle_xor(folded, mask), fold);
        }
        folded
    }
}

/// Runs of several planes: each plane by itself, then the planes of a run through shared memory.
#[cube]
fn fold_planes(shared: &mut Shared<[f32]>, value: f32, #[comptime] lanes: Lanes, #[comptime] fold: Fold) -> f32 {
    let unit = UNIT_POS as usize;
    let planes = comptime!(lanes.count / lanes.plane);
    let of_plane = fold_plane(value, comptime!(Lanes { count: lanes.plane, ..lanes }), fold);
    let of_its_plane = unit % lanes.plane;
    if of_its_plane == 0usize {
        shared[unit / lanes.plane] = of_plane;
    }
    sync_cube();
    let first = unit / lanes.count * planes;
    let mut folded = shared[first];
    #[unroll]
    for i in 1..planes {
        folded = fold_two(folded, shared[first + i], fold);
    }
    sync_cube();
    folded
}

#[cube]
fn fold_two(a: f32, b: f32, #[comptime] fold: Fold) -> f32 {
    if comptime!(fold == Fold::Sum) { a + b } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::super::device::fixed_plane_size;
    use super::*;
    use cubecl::client::Client;
    use cubecl::{CubeCount, CubeDim};

    #[cube(launch)]
    fn fold_kernel(
        values: &[f32],
        folded: &mut [f32],
        #[comptime] units: u32,
        #[comptime] lanes: Lanes,
        #[comptime] fold: Fold,
    ) {
        let mut shared = Shared::<[f32]>::new_slice(comptime!(lanes.shared_len(units)));
        let value = values[UNIT_POS as usize];
        let first = fold_lanes(&mut shared, value, lanes, fold);
        // A second use straight after the first must not disturb it.
        let second = fold_lanes(&mut shared, value + 1.0f32, lanes, fold);
        folded[UNIT_POS as usize] = first + 1000.0f32 * second;
    }

    fn found(client: &Client, values: &[f32], lanes: Lanes, fold: Fold) -> Vec<f32> {
        let units = values.len();
        let (from, to) = (client.create_from_slice(f32::as_bytes(values)), client.empty(4 * units));
        // SAFETY: both buffers have one element for each unit.
        let arguments =
            unsafe { (BufferArg::from_raw_parts(from, units), BufferArg::from_raw_parts(to.clone(), units)) };
        let (count, dim) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(units as u32));
        fold_kernel::launch(client, count, dim, arguments.0, arguments.1, units as u32, lanes, fold);
        f32::from_bytes(&client.read_one(to).expect("the result")).to_vec()
    }

    fn expected(values: &[f32], count: usize, fold: Fold) -> Vec<f32> {
        let of_run = |run: &[f32]| match fold {
            Fold::Sum => run.iter().sum::<f32>() + 1000.0 * run.iter().map(|v| v + 1.0).sum::<f32>(),
            Fold::Max => run.iter().copied().fold(f32::MIN, f32::max) * 1001.0 + 1000.0,
        };
        values.chunks(count).flat_map(|run| vec![of_run(run); run.len()]).collect()
    }

    /// Both forms, on small integers, so that every order of the sums gives the same.
    #[test]
    fn folds_runs_of_units() {
        let client = cubecl::Device::default().client();
        let fixed = fixed_plane_size(&client.properties().hardware);
        for plane in [0, fixed] {
            for units in [32, 64] {
                let values: Vec<f32> = (0..units).map(|unit| (unit * 37 % 64) as f32).collect();
                for count in (0..).map(|power| 1 << power).take_while(|count| *count <= units) {
                    for fold in [Fold::Sum, Fold::Max] {
                        let folded = found(&client, &values, Lanes { count, plane }, fold);
                        assert_eq!(folded, expected(&values, count, fold), "{count} of {units}, planes of {plane}");
                        let other = expected(&values, if count == 1 { 2 } else { count / 2 }, fold);
                        assert_ne!(folded, other, "canary: {count} of {units}, planes of {plane}");
                    }
                }
            }
        }
    }
}
