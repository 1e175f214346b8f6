//! Roles by pattern, and the table that shows them.

use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use eggroll_core::{EggrollConfig, OpenEsConfig, QEggrollConfig, Role};
use eggroll_nn::integer::{EggModelConfig, LinearConfig as IntegerLinearConfig};
use eggroll_nn::{Linear, LinearConfig};
use eggroll_run::*;
use eggroll_train::*;

#[derive(Module, Debug)]
struct RolesNet {
    encoder: Vec<Linear>,
    head: Linear,
    gain: Param<Tensor<1>>,
}

fn net() -> RolesNet {
    let device = Device::flex();
    let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).init(&device);
    let gain = Param::from_tensor(Tensor::ones([2], &device));
    RolesNet { encoder: vec![layer(3, 4), layer(4, 4)], head: layer(4, 2), gain }
}

fn config() -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new()).with_population_size(10)
}

const LOW_RANK: Role = Role::LowRank { rank: 4 };

#[test]
fn the_first_pattern_decides() {
    let roles = [("encoder.0.*", Role::Frozen), ("*.bias", Role::Dense), ("encoder.?.weight", LOW_RANK)];
    let strategy = config().with_roles(roles).init(&net());
    let found: Vec<_> = strategy.parameters().entries().iter().map(|entry| entry.role).collect();
    let noisers = Role::LowRank { rank: 1 };
    assert_eq!(
        found,
        [Role::Frozen, Role::Frozen, LOW_RANK, Role::Dense, noisers, Role::Dense, Role::Dense],
        "the head's weight and the gain keep the noiser's roles"
    );
    // Frozen names win; roles may also thaw what the noiser freezes.
    let noiser = EggrollConfig::new().with_freeze_non_matrix(true);
    let config = EvolutionStrategyConfig::new(noiser, AdamConfig::new());
    let strategy = config.with_roles([("gain", Role::Dense), ("*weight", LOW_RANK)]).with_frozen(["head"]).init(&net());
    let found: Vec<_> = strategy.parameters().entries().iter().map(|entry| entry.role).collect();
    let frozen = Role::Frozen;
    assert_eq!(found, [LOW_RANK, frozen, LOW_RANK, frozen, frozen, frozen, Role::Dense]);
}

#[test]
fn roles_are_what_happens() {
    let net = net();
    let roles = [("encoder.*", Role::Frozen), ("head.weight", Role::Dense)];
    let mut strategy = config().with_roles(roles).init(&net);
    let population = strategy.ask();
    let x = Tensor::<2>::ones([2, 3], &Device::flex());
    let fitness = population.evaluate_each(&net, |member| {
        let hidden = member.encoder.iter().fold(x.clone(), |x, layer| layer.forward(x));
        (member.head.forward(hidden) * member.gain.val().unsqueeze::<2>()).mean()
    });
    let mut moved = net.clone();
    strategy.tell(&mut moved, population, fitness).expect("a generation");
    let same = |a: &Linear, b: &Linear| a.weight.val().into_data() == b.weight.val().into_data();
    assert!(same(&moved.encoder[0], &net.encoder[0]) && same(&moved.encoder[1], &net.encoder[1]));
    assert!(!same(&moved.head, &net.head));
    // As OpenES's: dense noise of a matrix.
    let dense = EvolutionStrategyConfig::new(OpenEsConfig::new(), AdamConfig::new()).with_population_size(10);
    let frozen = dense.with_frozen(["encoder"]).init(&net).ask();
    let again = config().with_roles(roles).init(&net).ask();
    let score = |member: RolesNet| member.head.weight.val().sum();
    assert_eq!(frozen.evaluate_each(&net, score), again.evaluate_each(&net, score));
}

#[test]
fn refusals_name_pattern_path_and_shape() {
    let refuse = |roles: &[(&str, Role)], expected: &[&str]| {
        let message = config().with_roles(roles.to_vec()).try_init(&net()).err().expect("refused").to_string();
        assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    };
    refuse(
        &[("decoder.*", Role::Frozen)],
        &["roles: \"decoder.*\" matches no parameter: expected a path", "\"encoder.0.weight\""],
    );
    refuse(
        &[("*.weight", LOW_RANK), ("*", LOW_RANK)],
        &[
            "the pattern \"*\" gives LowRank { rank: 4 } to \"encoder.0.bias\" of shape [4]: low-rank noise needs a matrix",
        ],
    );
    refuse(
        &[("*weight", Role::LowRank { rank: 0 })],
        &["\"encoder.0.weight\" of shape [3, 4]: the rank must be at least 1"],
    );
    refuse(&[("*", Role::Frozen)], &["no parameter to train"]);
    let integers = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_roles([("*", Role::Dense)]);
    let message = integers.try_init(&IntegerLinearConfig::new(4, 3).init(&Device::flex())).err().expect("refused");
    assert!(message.to_string().contains("an integer matrix has low-rank noise or none"), "{message}");
}

/// Roles, frozen parameters and scales: a path, the path of a module, or a pattern.
#[test]
fn names_mean_the_same_in_every_setting() {
    let net = net();
    let encoder = ["encoder.0.weight", "encoder.0.bias", "encoder.1.weight", "encoder.1.bias"];
    let settings = |name: &str| {
        let name = [name];
        [
            ("roles", config().with_roles(name.map(|name| (name, Role::Frozen)))),
            ("frozen", config().with_frozen(name)),
            ("scales", config().with_scales(name.map(|name| (name, 2.0)))),
        ]
    };
    for (name, expected) in [
        ("encoder.1.bias", &encoder[3..]),
        ("encoder.0", &encoder[..2]),
        ("encoder", &encoder),
        ("encoder.*", &encoder),
        ("*d.?eight", &["head.weight"]),
    ] {
        for (setting, config) in settings(name) {
            let strategy = config.init(&net);
            let table = strategy.parameters();
            let is_meant = |position: &usize| {
                table.entries()[*position].role == Role::Frozen || table.sigma_of(*position, 1.0) == 2.0
            };
            let meant = (0..table.entries().len()).filter(is_meant).map(|position| &table.entries()[position].path);
            assert!(meant.eq(expected), "{setting}: {name}");
        }
    }
    for name in ["", "encode", "encoder.", "encoder.?", "haed.weight"] {
        for (setting, config) in settings(name) {
            let message = config.try_init(&net).err().expect("refused").to_string();
            assert!(message.starts_with(&format!("{setting}: {name:?} matches no parameter")), "{message}");
            assert!(
                name != "haed.weight" || message.contains("among [\"head.weight\""),
                "the nearest first: {message}"
            );
        }
    }
}

/// Roles are part of the configuration: saved with it, and left out where there are none.
#[test]
fn configurations_round_trip() {
    let roles = [("encoder.*", Role::Frozen), ("*.bias", Role::Dense), ("head.weight", LOW_RANK)];
    let json = serde_json::to_string(&config().with_roles(roles)).expect("json");
    assert!(
        json.contains(r#""roles":[["encoder.*","frozen"],["*.bias","dense"],["head.weight",{"low_rank":{"rank":4}}]]"#)
    );
    let read: EvolutionStrategyConfig = serde_json::from_str(&json).expect("read");
    let read = read.init(&net());
    assert_eq!(read.parameters().entries()[0].role, Role::Frozen);
    assert!(!serde_json::to_string(&config()).expect("json").contains("roles"));
}

#[test]
fn a_resumed_strategy_keeps_its_roles() {
    let net = net();
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let strategy = config().with_roles([("encoder.*", Role::Frozen)]).init(&net);
    checkpoints.save(&strategy, &net).expect("saved");
    let (loaded, _) = checkpoints.load_latest(net.clone()).expect("loaded").expect("a checkpoint");
    let roles = |strategy: &EvolutionStrategy| -> Vec<Role> {
        strategy.parameters().entries().iter().map(|entry| entry.role).collect()
    };
    assert_eq!(roles(&loaded), roles(&strategy));
    assert_eq!(roles(&loaded)[0], Role::Frozen);
}

#[test]
fn the_table_shows_roles_and_bytes() {
    let roles = [("encoder.0.*", Role::Frozen), ("encoder.1.weight", LOW_RANK)];
    let strategy = config().with_roles(roles).init(&net());
    let expected = "\
#  parameter              shape   role        bytes/pair  bytes/gen
0  encoder.0.weight       [3, 4]  frozen               0          0
1  encoder.0.bias         [4]     frozen               0          0
2  encoder.1.weight       [4, 4]  low rank 4         128        640
3  encoder.1.bias         [4]     dense               16         80
4  head.weight            [4, 2]  low rank 1          24        120
5  head.bias              [2]     dense                8         40
6  gain                   [2]     dense                8         40
   48 values, 32 trained          all                184        920
";
    assert_eq!(strategy.parameter_summary().to_string(), expected);
    let narrow = strategy.parameters().to_string();
    assert!(narrow.lines().zip(expected.lines()).all(|(narrow, wide)| wide.starts_with(narrow)), "{narrow}");
    assert!(!narrow.contains("bytes/gen"));

    // Integers: one byte each, two draws for a vector.
    let model = EggModelConfig::new().with_layers(1).with_width(16).init(&Device::flex());
    let strategy = EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(4).init(&model);
    let entries = strategy.parameters().entries();
    let bytes: u64 = (0..entries.len()).map(|position| strategy.parameters().noise_bytes(position)).sum();
    assert_eq!(bytes, entries.iter().map(|entry| entry.noise_elements() as u64).sum::<u64>());
    assert!(
        strategy.parameter_summary().to_string().lines().last().expect("totals").ends_with(&format!("{}", 2 * bytes))
    );
}
