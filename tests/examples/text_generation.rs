//! Burn's text example, learned in two ways.

/// Lines of `a` that are not in the longest common subsequence with `b`.
fn own_lines<'a>(a: &'a str, b: &str) -> Vec<&'a str> {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let mut common = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, line) in a.iter().enumerate().rev() {
        for (j, other) in b.iter().enumerate().rev() {
            common[i][j] =
                if line == other { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut own) = (0, 0, Vec::new());
    while i < a.len() {
        if j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j < b.len() && common[i][j + 1] > common[i + 1][j] {
            j += 1;
        } else {
            own.push(a[i]);
            i += 1;
        }
    }
    own
}

#[test]
fn evolution_differs_from_backpropagation_in_five_lines() {
    let evolution = include_str!("../../examples/text_generation/evolution.rs");
    let backpropagation = include_str!("../../examples/text_generation/backpropagation.rs");
    for (a, b) in [(evolution, backpropagation), (backpropagation, evolution)] {
        let own = own_lines(a, b);
        assert!((3..=5).contains(&own.len()), "{own:#?}");
    }
    assert_eq!(own_lines("a\nb\nc\nd", "a\nx\nc\n"), ["b", "d"], "canary");
}
