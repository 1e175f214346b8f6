//! Carried rounding errors of integer moves.

use eggroll_core::rng::philox::philox4x32;
use eggroll_core::sync::locked;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// Separates these draws from draws of noise, whose fourth word is a parameter with few bits.
const DOMAIN: u32 = 0xca22_0000;

/// Carried rounding errors of all matrices, in 2⁻¹⁶ steps of their integers or units in the last place of bfloat16. They are in an unnamed file, which takes no
/// memory and leaves nothing behind.
///
/// For integers it begins with random numbers, uniform between half a step down and half a step up (dithering). So even a matrix with coarse integers learns from its first
/// step on, in expectation exactly like a matrix of floats.
#[derive(Debug)]
pub(super) struct Carried {
    file: Mutex<File>,
    /// Start of each matrix' numbers, then the end of the last.
    starts: Vec<u64>,
}

impl Carried {
    /// For matrices with these numbers of weights: zeros, or random by a seed.
    ///
    /// # Errors
    ///
    /// If the file of two bytes for each weight cannot be written.
    pub fn new(seed: Option<u64>, weights: &[usize]) -> io::Result<Self> {
        let mut starts = vec![0];
        for count in weights {
            starts.push(starts[starts.len() - 1] + 2 * *count as u64);
        }
        let carried = Self { file: Mutex::new(tempfile::tempfile()?), starts };
        // Writes all of it, to detect a disk that is too small before anything is moved.
        for (number, count) in weights.iter().enumerate() {
            let first = seed.map_or_else(|| vec![0; *count], |seed| dither(seed, number as u32, *count));
            carried.write(number, &first)?;
        }
        Ok(carried)
    }

    /// Reads the numbers of a matrix.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read(&self, number: usize) -> io::Result<Vec<i16>> {
        let mut bytes = vec![0; (self.starts[number + 1] - self.starts[number]) as usize];
        let mut file = locked(&self.file);
        file.seek(SeekFrom::Start(self.starts[number]))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect())
    }

    /// Writes the numbers of a matrix.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, number: usize, values: &[i16]) -> io::Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut file = locked(&self.file);
        file.seek(SeekFrom::Start(self.starts[number]))?;
        file.write_all(&bytes)
    }
}

/// Uniform numbers.
fn dither(seed: u64, number: u32, count: usize) -> Vec<i16> {
    let key = [seed as u32, (seed >> 32) as u32];
    let words = |block: u32| philox4x32([block, number, 0, DOMAIN], key);
    let halves = |word: u32| [word as i16, (word >> 16) as i16];
    let mut values: Vec<i16> = (0..count.div_ceil(8) as u32).flat_map(words).flat_map(halves).collect();
    values.truncate(count);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_read_as_they_were_written() {
        let carried = Carried::new(Some(7), &[5, 20_000]).expect("a file");
        let first = carried.read(0).expect("numbers");
        let mean = carried.read(1).expect("numbers").iter().map(|value| f64::from(*value)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 700.0 && first.len() == 5, "{mean}");
        carried.write(1, &[3; 20_000]).expect("a file");
        assert_eq!((carried.read(0).expect("numbers"), carried.read(1).expect("numbers")), (first, vec![3; 20_000]));
        assert_eq!(Carried::new(None, &[3]).and_then(|carried| carried.read(0)).expect("a file"), [0; 3]);
    }

    #[test]
    fn belong_to_seed_and_matrix() {
        let [a, b, c] = [(7, 0), (7, 1), (8, 0)].map(|(seed, number)| dither(seed, number, 9));
        assert!(a != b && a != c && b != c && a == dither(7, 0, 9));
    }
}
