//! Packed dot products on a device that may not have tensors of int8: the same bits as plain products.

use super::geometry::{GateNoise, GruTile, ProductTile, UpdateTile};
use super::launch;
use crate::backend::cube::eligibility::{Demand, runs};
use crate::integer::Votes;
use crate::key::PairRange;
use crate::ops::integer::{IntegerMembers, IntegerNoisePrimitive};
use crate::rng::philox::philox4x32;
use burn::backend::ops::IntTensorOps;
use burn::tensor::{TensorData, try_read_sync};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};

/// All values of int8, ±127 and −128 among them.
fn int8(shape: [usize; 2], salt: u32) -> CubeTensor {
    let value = |i| i32::from(philox4x32([i, salt, 2, u32::MAX], [0; 2])[0] as i8);
    let values: Vec<i32> = (0..(shape[0] * shape[1]) as u32).map(value).collect();
    CubeBackend::int_from_data(TensorData::new(values, shape), &CubeDevice::default())
}

fn read(tensor: CubeTensor) -> Vec<i32> {
    let data = try_read_sync(CubeBackend::int_into_data(tensor)).expect("a device that is read at once");
    data.expect("the kernel runs").try_to_vec().expect("an I32 tensor")
}

fn linear(shape: [usize; 2], rank: usize, packed: bool, salt: u32) -> Vec<i32> {
    let [d_input, d_output] = shape;
    let (pairs, rows) = (2, 4 * 5);
    let x = int8([rows, d_input], 1);
    let members = IntegerMembers { skip: 1, rank, shift: 4, pairs: PairRange::new(3, pairs) };
    let noise = int8([4, rank * (d_input + d_output)], 2);
    let tile = ProductTile::new(&x.client, x.dtype, [rows, d_output], rank);
    assert!(!tile.packed, "values of I32 are not packed by themselves");
    let noise = IntegerNoisePrimitive::Held(noise, members);
    read(launch::linear(x, int8(shape, salt), noise, ProductTile { packed, ..tile }))
}

#[test]
fn packed_linear_equals_plain() {
    for (shape, rank) in [([1, 1], 1), ([3, 17], 4), ([65, 64], 1), ([255, 33], 3), ([256, 70], 4)] {
        let plain = linear(shape, rank, false, 3);
        assert!(linear(shape, rank, true, 3) == plain, "{shape:?}");
        assert!(linear(shape, rank, true, 4) != plain, "canary: {shape:?}");
    }
}

fn update(shape: [usize; 2], rank: usize, packed: bool, salt: u32) -> Vec<i32> {
    let pairs = 37;
    let scores: Vec<i32> = (0..pairs).map(|pair| (pair * 7 + 3) % 3 - 1).collect();
    let scores = CubeBackend::int_from_data(TensorData::new(scores, [pairs as usize]), &CubeDevice::default());
    let parameter = int8(shape, 5);
    let tile = ProductTile::new(&parameter.client, parameter.dtype, shape, 0).halved();
    // Noise is saturated: a score may negate it.
    let noise = int8([pairs as usize, rank * (shape[0] + shape[1])], salt);
    let noise = CubeBackend::int_clamp(noise, (-127).into(), 127.into());
    let tile = UpdateTile::Matrix(ProductTile { packed, ..tile });
    read(launch::update(parameter, noise, scores, rank, Votes::Values, 9000, tile))
}

#[test]
fn packed_update_equals_plain() {
    for (shape, rank) in [([3, 17], 1), ([65, 64], 1), ([33, 20], 3)] {
        let plain = update(shape, rank, false, 6);
        assert!(update(shape, rank, true, 6) == plain, "{shape:?}");
        assert!(update(shape, rank, true, 7) != plain, "canary: {shape:?}");
    }
}

/// A recurrence whose state no cube can hold is left to the portable operations, and one whose loops a software driver would end.
#[test]
fn wide_and_long_recurrences_do_not_run() {
    let state = int8([1, 1], 1);
    let noise = [GateNoise { weight: true, bias: true }; 2];
    let demand = |steps, width| GruTile::new(&state.client, width, 4, noise).demand([steps, width], 4, steps * width);
    assert!(runs(&state, &demand(7, 256)));
    assert!(!runs(&state, &demand(1, state.client.properties().hardware.max_shared_memory_size / 12)));
    assert!(!runs(&state, &demand(1 << 16, 256)));
    let software = state.client.properties().identity.name.contains("llvmpipe");
    assert_eq!(runs(&state, &demand(160, 256)), !software);
    assert!(!runs(&state, &Demand { tensors: u32::MAX / 2, ..demand(7, 256) }), "canary: too many buffers");
}
