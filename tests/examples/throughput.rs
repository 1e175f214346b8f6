//! Sizes and the model of cost of `throughput`.

use eggroll_examples::throughput::{Column, Rates, Size, Work};

#[test]
fn sizes_by_name_and_by_widths() {
    for (name, size) in Size::NAMED {
        assert_eq!(name.parse(), Ok(size));
        assert_eq!(size.to_string(), name);
        assert_eq!(size.widths().map(|width| width.to_string()).join("-").parse(), Ok(size));
    }
    let wide: Size = "64-8192-64".parse().expect("three widths");
    assert_eq!((wide.widths(), wide.to_string().as_str()), ([64, 8192, 64], "64-8192-64"));
    assert_eq!(serde_json::from_str::<Size>(&serde_json::to_string(&wide).unwrap()).unwrap(), wide);
    for wrong in ["huge", "", "64", "64-64", "64-64-64-64", "64-0-64", "64--64", "64-65537-64", "64-x-64"] {
        let error = wrong.parse::<Size>().expect_err(wrong);
        assert!(error.ends_with(&format!("not {wrong}")), "{error}");
    }
}

/// By hand, for 8 members of 4-256-2.
#[test]
fn work_of_a_pass() {
    let work = |column, rank| Work::new(column, Size::SMALL, 8, rank);
    let weights = 256 * (4 + 2);
    let factors = (4 + 256) + (256 + 2);
    assert_eq!(work(Column::Inference, None), Work { products: 8 * weights, draws: 0 });
    assert_eq!(work(Column::Cached, Some(2)), Work { products: 8 * (weights + 2 * factors), draws: 0 });
    assert_eq!(work(Column::Fly, Some(2)), Work { products: 8 * (weights + 2 * factors), draws: 4 * 2 * factors });
    assert_eq!(work(Column::Estimate, Some(4)), Work { products: 2 * 8 * weights, draws: 4 * 4 * factors });
    assert_eq!(work(Column::OpenEsFly, None), Work { products: 16 * weights, draws: 4 * weights });
    let rates = Rates { products: 2e9, draws: 1e9 };
    assert_eq!(rates.milliseconds(Work { products: 4_000_000, draws: 3_000_000 }), 5.0);
}
