//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw,
//! "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use crate::simd::Simd;

pub(crate) const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
pub(crate) const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
pub(crate) const ROUNDS: u32 = 10;

/// One block: four words for a 128-bit counter under a 64-bit key.
///
/// # Example
///
/// ```
/// use eggroll_core::rng::philox::philox4x32;
///
/// // Random123's known answer for the zero counter and the zero key.
/// let words = philox4x32([0; 4], [0; 2]);
/// assert_eq!(words, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    for round in 0..ROUNDS {
        let [k0, k1] = round_key(key, round);
        let p0 = u64::from(c0) * u64::from(MULTIPLIERS[0]);
        let p1 = u64::from(c2) * u64::from(MULTIPLIERS[1]);
        (c0, c1, c2, c3) = ((p1 >> 32) as u32 ^ c1 ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c3 ^ k1, p0 as u32);
    }
    [c0, c1, c2, c3]
}

#[inline(always)]
pub(crate) fn round_key(key: [u32; 2], round: u32) -> [u32; 2] {
    [key[0].wrapping_add(WEYL[0].wrapping_mul(round)), key[1].wrapping_add(WEYL[1].wrapping_mul(round))]
}

/// `S::LANES` consecutive blocks, word by word: lane `i` of word `w` is word `w` of block `counter[0] + i`.
///
/// Even and odd blocks run in separate registers of 64-bit lanes, where a product's high half is already in place.
///
/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
pub(crate) unsafe fn philox_blocks<S: Simd>(counter: [u32; 4], key: [u32; 2]) -> [S::U; 4] {
    // SAFETY: by this function's contract.
    unsafe {
        let [c0, c1, c2, c3] = counter;
        let [c1, c2, c3] = [S::wsplat(c1), S::wsplat(c2), S::wsplat(c3)];
        let mut even = [S::wcount(c0), c1, c2, c3];
        let mut odd = [S::wcount(c0.wrapping_add(1)), c1, c2, c3];
        let multipliers = [S::wsplat(MULTIPLIERS[0]), S::wsplat(MULTIPLIERS[1])];
        let mut round = 0;
        while round < ROUNDS {
            let [k0, k1] = round_key(key, round);
            let keys = [S::wsplat(k0), S::wsplat(k1)];
            even = one_round::<S>(even, multipliers, keys);
            odd = one_round::<S>(odd, multipliers, keys);
            round += 1;
        }
        [
            S::interleave(even[0], odd[0]),
            S::interleave(even[1], odd[1]),
            S::interleave(even[2], odd[2]),
            S::interleave(even[3], odd[3]),
        ]
    }
}

/// # Safety
///
/// The processor must have the instruction set `S`.
#[inline(always)]
unsafe fn one_round<S: Simd>(c: [S::W; 4], m: [S::W; 2], k: [S::W; 2]) -> [S::W; 4] {
    // SAFETY: by this function's contract. High halves of the lanes hold garbage that no product reads.
    unsafe {
        let p0 = S::wmul(c[0], m[0]);
        let p1 = S::wmul(c[2], m[1]);
        [S::wxor3(S::whigh(p1), c[1], k[0]), p1, S::wxor3(S::whigh(p0), c[3], k[1]), p0]
    }
}
