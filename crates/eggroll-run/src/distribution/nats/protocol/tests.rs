//! Bytes are a message only if the message is written as these bytes.

use super::*;
use crate::replay::check;
use proptest::prelude::*;
use proptest::sample::Index;

const RUN: RunId = RunId(*b"the run!");
const OTHER: RunId = RunId(*b"another!");

fn digest() -> impl Strategy<Value = Option<String>> {
    prop_oneof![Just(None), "[0-9a-f]{64}".prop_map(Some)]
}

fn work() -> impl Strategy<Value = Work> {
    (any::<u64>(), any::<[u32; 4]>(), digest()).prop_map(|(generation, [slice, first, members, attempt], digest)| {
        Work { generation, slice, first, members, attempt, digest }
    })
}

/// NaN with any payload among them.
fn scores() -> impl Strategy<Value = Recorded> {
    let floats = proptest::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..40);
    prop_oneof![
        floats.prop_map(Recorded::Floats),
        proptest::collection::vec(any::<i32>(), 0..40).prop_map(Recorded::Integers),
        proptest::collection::vec(-1i8..=1, 0..40).prop_map(Recorded::Signs),
    ]
}

/// All messages, of whatever kind.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let result = (work(), digest(), scores())
        .prop_map(|(work, digest, scores)| SliceResult::of_scores(&work, digest, scores).encode(&RUN));
    let told = (any::<u64>(), any::<[u32; 2]>(), scores()).prop_map(|(generation, [part, parts], scores)| {
        Told::Part(ToldPart { generation, part, parts, scores }).encode(&RUN, origin(generation ^ 5))
    });
    let end = any::<u64>().prop_map(|life| Told::End { generation: life ^ 1 }.encode(&RUN, origin(life)));
    let held = any::<(u64, u32, u32)>().prop_map(|(generation, slice, attempt)| Held { generation, slice, attempt });
    let status = (any::<bool>(), proptest::collection::vec(held.clone(), 0..17))
        .prop_map(|(leaving, held)| Status { leaving, held }.encode(&RUN));
    let failed = (held, "[a-zé ]{0,40}").prop_map(|(held, error)| Failed::new(held, &error).encode(&RUN));
    let files = proptest::collection::vec(("[a-z][a-z.]{0,20}", any::<u64>()), 0..5);
    let manifest = (any::<[u64; 3]>(), any::<u32>(), any::<[u8; 32]>(), files).prop_map(
        |([generation, draft, first], parts, sum, files)| {
            Manifest { generation, draft, first, parts, sum, files }.encode(&RUN)
        },
    );
    prop_oneof![work().prop_map(|work| work.encode(&RUN)), result, told, end, status, failed, manifest]
}

fn origin(life: u64) -> Origin {
    Origin { life, number: life / 3 }
}

/// The message that bytes are read as, written again.
fn again(bytes: &[u8]) -> Option<Vec<u8>> {
    let all = [
        Work::decode(bytes, &RUN).ok().map(|work| work.encode(&RUN)),
        SliceResult::decode(bytes, &RUN).ok().map(|result| result.encode(&RUN)),
        Told::decode(bytes, &RUN).ok().map(|(told, origin)| told.encode(&RUN, origin)),
        Status::decode(bytes, &RUN).ok().map(|status| status.encode(&RUN)),
        Failed::decode(bytes, &RUN).ok().map(|failed| failed.encode(&RUN)),
        Manifest::decode(bytes, &RUN).ok().map(|manifest| manifest.encode(&RUN)),
    ];
    let mut read = all.into_iter().flatten();
    let first = read.next();
    assert!(read.next().is_none(), "read as two kinds of messages");
    first
}

proptest! {
    #[test]
    fn messages_come_back(bytes in messages()) {
        prop_assert_eq!(again(&bytes), Some(bytes));
    }

    #[test]
    fn messages_of_another_run_are_told_apart(bytes in messages()) {
        let all = [
            Work::decode(&bytes, &OTHER).err(),
            SliceResult::decode(&bytes, &OTHER).err(),
            Told::decode(&bytes, &OTHER).err(),
            Status::decode(&bytes, &OTHER).err(),
            Failed::decode(&bytes, &OTHER).err(),
            Manifest::decode(&bytes, &OTHER).err(),
        ];
        prop_assert!(all.iter().all(|error| error.is_some()));
        prop_assert_eq!(all.iter().filter(|error| **error == Some(Undecodable::OtherRun)).count(), 1);
    }

    #[test]
    fn any_bytes_are_refused_or_read_as_what_they_are(bytes: Vec<u8>) {
        prop_assert_eq!(again(&bytes).unwrap_or_else(|| bytes.clone()), bytes);
    }

    /// As above, of bytes that begin as messages do.
    #[test]
    fn bytes_after_a_head_are_refused(kind in 0u8..8, bytes: Vec<u8>) {
        prop_assert_eq!(again(&[head(kind, &RUN), bytes].concat()), None);
    }

    #[test]
    fn damage_is_noticed(bytes in messages(), at: Index, bit in 0..8u8, cut: Index) {
        let mut flipped = bytes.clone();
        flipped[at.index(bytes.len())] ^= 1 << bit;
        prop_assert_eq!(again(&flipped), None);
        prop_assert_eq!(again(&bytes[..cut.index(bytes.len())]), None);
        prop_assert_eq!(again(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn signs_are_five_to_a_byte(signs in proptest::collection::vec(-1i8..=1, 0..200)) {
        let work = Work { generation: 1, slice: 2, first: 0, members: 4, attempt: 0, digest: None };
        let bytes = |signs: Vec<i8>| SliceResult::of_scores(&work, None, Recorded::Signs(signs)).encode(&RUN);
        let packed = bytes(signs.clone());
        prop_assert_eq!(packed.len() - bytes(Vec::new()).len(), signs.len().div_ceil(5));
        prop_assert_eq!(SliceResult::decode(&packed, &RUN).expect("reads").scores, Recorded::Signs(signs));
    }
}

/// A byte of five trits is one of 243, and what is left of the last is zero: everything else is not what anybody writes.
#[test]
fn trits_that_nobody_writes_are_refused() {
    let work = Work { generation: 1, slice: 0, first: 0, members: 4, attempt: 0, digest: None };
    let result = SliceResult::of_scores(&work, None, Recorded::Signs(vec![1, -1]));
    let bytes = result.encode(&RUN);
    let before = bytes.len() - (1 + 4 + 8) - 1 - 8;
    let forged = |byte: u8| {
        let mut forged = bytes[..bytes.len() - 9].to_vec();
        forged.push(byte);
        let key = check(&[&bytes[..before]]);
        let sum = check(&[&key, &forged[before..]]);
        forged.extend(sum);
        forged
    };
    assert_eq!(forged(bytes[bytes.len() - 9]), bytes, "canary: what is written is forged well");
    assert!(SliceResult::decode(&forged(bytes[bytes.len() - 9]), &RUN).is_ok());
    for byte in [243, 255, bytes[bytes.len() - 9] + 9] {
        assert_eq!(SliceResult::decode(&forged(byte), &RUN).err(), Some(Undecodable::Garbage), "{byte}");
    }
}

#[test]
fn errors_are_cut_and_cannot_move_a_cursor() {
    let held = Held { generation: 1, slice: 2, attempt: 3 };
    let failed = Failed::new(held, &"é\x1b[2J\n".repeat(1000));
    assert!(failed.error.len() <= 1024 && !failed.error.contains(char::is_control));
    assert_eq!(Failed::decode(&failed.encode(&RUN), &RUN), Ok(failed));
}
