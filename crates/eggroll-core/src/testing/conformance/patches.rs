//! Patches of images.

use super::{implementations, inputs, values};
use crate::ops::{InputRows, Window};
use crate::testing::reference;

/// Images, and how the kernel moves over them.
fn cases() -> Vec<([usize; 4], Window)> {
    let plain = |kernel| Window { kernel, stride: [1, 1], dilation: [1, 1], padding: [(0, 0); 2] };
    vec![
        ([1, 1, 1, 1], plain([1, 1])),
        ([2, 3, 5, 7], plain([3, 2])),
        ([3, 1, 28, 28], Window { stride: [2, 2], ..plain([5, 5]) }),
        ([2, 2, 6, 5], Window { dilation: [2, 3], ..plain([2, 2]) }),
        ([1, 4, 4, 4], Window { padding: [(1, 1), (1, 1)], ..plain([3, 3]) }),
        ([2, 2, 5, 6], Window { padding: [(0, 2), (3, 1)], stride: [2, 3], dilation: [1, 2], ..plain([2, 4]) }),
        ([2, 1, 1, 9], Window { padding: [(0, 0), (4, 4)], ..plain([1, 3]) }),
        ([1, 2, 2, 2], Window { padding: [(5, 0), (0, 5)], ..plain([2, 2]) }),
        ([1, 1, 3, 3], Window { padding: [(4, 4), (4, 4)], stride: [4, 4], dilation: [3, 3], ..plain([3, 3]) }),
    ]
}

#[test]
fn equals_oracle() {
    for (case, (shape, window)) in cases().into_iter().enumerate() {
        let images = inputs(shape.iter().product(), 3);
        let expected: Vec<f32> =
            reference::patches(&images, shape, &window).into_iter().map(|value| value as f32).collect();
        for on in implementations() {
            for input in [InputRows::PerMember, InputRows::Shared] {
                let found = values(on.patches(on.tensor(&images, shape), window, input));
                assert!(found == expected, "{}, case {case}, {input:?}", on.name);
            }
            // A permuted view of the same images.
            let permuted = on.tensor(&images, shape).permute([0, 2, 3, 1]) * 1.0;
            let found = values(on.patches(permuted.permute([0, 3, 1, 2]), window, InputRows::Shared));
            assert!(found == expected, "{}, case {case}, permuted", on.name);
            let other = values(on.patches(on.tensor(&images, shape) + 1.0, window, InputRows::Shared));
            assert!(other != expected, "canary: {}, case {case}", on.name);
        }
    }
}

/// A backend may remember the patches of shared images, but not for other images or another window.
#[test]
fn remembered_patches_are_never_stale() {
    let (shape, window) = ([2, 3, 5, 7], cases()[1].1);
    for on in implementations() {
        let mut images = on.tensor(&inputs(shape.iter().product(), 3), shape);
        let run =
            |images: &burn::tensor::Tensor<4>, window| values(on.patches(images.clone(), window, InputRows::Shared));
        let first = run(&images, window);
        assert_eq!(run(&images, window), first, "{}", on.name);
        assert_ne!(run(&images, Window { padding: [(1, 0), (0, 0)], ..window }), first, "{}", on.name);
        images = images + 1.0;
        let shifted: Vec<f32> = first.iter().map(|value| value + 1.0).collect();
        assert_eq!(run(&images, window), shifted, "{}", on.name);
    }
}

#[test]
#[should_panic(expected = "does not fit an image of [2, 2]")]
fn refuses_small_images() {
    let on = &implementations()[0];
    let window = cases()[1].1;
    on.patches(on.tensor(&[0.0; 4], [1, 1, 2, 2]), window, InputRows::PerMember);
}
