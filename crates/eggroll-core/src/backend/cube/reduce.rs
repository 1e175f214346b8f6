//! Sums and maxima over runs of units: by plane (warp, subgroup) operations where the device has planes, else by a tree in
//! shared memory.

use cubecl::prelude::*;

/// Runs of neighbouring units that reduce together, and what they use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lanes {
    /// Units of a run: a power of two that divides the units of the cube.
    pub count: usize,
    /// Units of a plane, a power of two; 0 uses no plane operations. Units of a plane must have neighbouring positions, as
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
    let mut half = (comptime!(lanes.count / 2)).runtime();
    while half > 0usize {
        if unit % lanes.count < half {
            shared[unit] = fold_two(shared[unit], shared[unit + half], fold);
        }
        sync_cube();
        half /= 2usize;
    }
    let folded = shared[unit / lanes.count * lanes.count];
    sync_cube();
    folded
}

/// Runs that a plane holds whole.
#[cube]
fn fold_plane(value: f32, #[comptime] lanes: Lanes, #[comptime] fold: Fold) -> f32 {
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
    if unit % lanes.plane == 0usize {
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
