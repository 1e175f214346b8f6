//! The parameter table of a model of several layers.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, NoiserConfig, OpenEsConfig, ParameterTable, Role, TableError};
use eggroll_nn::loss::cross_entropy;
use eggroll_nn::{Linear, LinearConfig};

#[derive(Module, Debug)]
struct TiedHeadNet {
    blocks: Vec<Linear>,
    head: Linear,
    tied: Option<Linear>,
}

fn net() -> TiedHeadNet {
    let device = Device::flex();
    let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).init(&device);
    let head = layer(4, 2);
    TiedHeadNet { blocks: vec![layer(3, 4), layer(4, 4)], tied: Some(head.clone()), head }
}

fn table(noiser: impl Into<NoiserConfig>, frozen: &[&str]) -> Result<ParameterTable, TableError> {
    let frozen: Vec<String> = frozen.iter().map(|name| name.to_string()).collect();
    ParameterTable::new(&net(), noiser.into().init().expect("valid").as_ref(), &frozen)
}

#[test]
fn traversal_order_paths_and_roles() {
    let table = table(EggrollConfig::new().with_rank(3), &["blocks.1", "head.bias"]).expect("valid");
    let found: Vec<_> = table.entries().iter().map(|entry| (entry.path.as_str(), entry.role)).collect();
    let (low_rank, dense) = (Role::LowRank { rank: 3 }, Role::Dense);
    let expected = [
        ("blocks.0.weight", low_rank),
        ("blocks.0.bias", dense),
        ("blocks.1.weight", Role::Frozen),
        ("blocks.1.bias", Role::Frozen),
        ("head.weight", low_rank),
        ("head.bias", Role::Frozen),
    ];
    // The tied layer is the head: one parameter, one noise.
    assert_eq!(found, expected);
    assert!(table.to_string().contains("blocks.1.weight") && table.to_string().contains("[4, 4]"));
}

#[test]
fn freezing_what_is_not_a_matrix() {
    for noiser in [
        NoiserConfig::from(EggrollConfig::new().with_freeze_non_matrix(true)),
        OpenEsConfig::new().with_freeze_non_matrix(true).into(),
    ] {
        let table = table(noiser, &[]).expect("valid");
        assert!(table.entries().iter().all(|entry| (entry.role == Role::Frozen) == (entry.shape.len() != 2)));
    }
}

#[test]
fn names_that_match_nothing_are_refused() {
    // A prefix of a name is not a module.
    let error = table(OpenEsConfig::new(), &["blocks.1", "hea"]).expect_err("refused");
    assert!(
        matches!(&error, TableError::Unmatched { setting: "frozen", name, known } if name == "hea" && known.len() == 6),
        "{error}"
    );
    let error = table(OpenEsConfig::new(), &["blocks", "head"]).expect_err("refused");
    assert_eq!(error, TableError::NothingToTrain(6));
}

#[test]
fn configurations_are_strict_and_round_trip() {
    let parse = serde_json::from_str::<NoiserConfig>;
    assert_eq!(parse(r#"{"name":"open_es"}"#).expect("valid"), OpenEsConfig::new().into());
    assert!(
        parse(r#"{"name":"eggrol"}"#)
            .expect_err("refused")
            .to_string()
            .contains("expected one of `eggroll`, `open_es`, `q_eggroll`")
    );
    assert!(parse(r#"{"name":"eggroll","rnak":2}"#).expect_err("refused").to_string().contains("rnak"));
}

#[test]
fn cross_entropy_of_rows() {
    let device = Device::flex();
    let logits = Tensor::<2>::from_floats([[0.0, 0.0], [3.0f32.ln(), 0.0]], &device);
    let losses = cross_entropy(logits, Tensor::from_ints([1, 0], &device)).into_data();
    let losses: Vec<f32> = losses.try_to_vec().expect("f32");
    assert!((losses[0] - 2f32.ln()).abs() < 1e-6 && (losses[1] - (4.0f32 / 3.0).ln()).abs() < 1e-6, "{losses:?}");
}

#[test]
#[should_panic(expected = "logits [2, 3] do not fit targets [4]")]
fn cross_entropy_refuses_other_rows() {
    let device = Device::flex();
    cross_entropy(Tensor::zeros([2, 3], &device), Tensor::from_ints([0, 0, 0, 0], &device));
}
