use super::*;
use crate::noise::noiser::NoiserProperties;
use crate::noise::role::Role;

#[test]
fn names_are_those_of_the_registry() {
    for name in NoiserConfig::NAMES {
        let config: NoiserConfig = name.parse().expect("a name of the registry");
        assert!(serde_json::to_string(&config).expect("writes").contains(&format!("\"name\":\"{name}\"")));
        assert!(config.init().is_ok(), "{name}");
        assert_eq!(name.replace('_', "-").parse::<NoiserConfig>(), Ok(config));
    }
    let error = "eggrol".parse::<NoiserConfig>().unwrap_err().to_string();
    let all = NoiserConfig::NAMES.map(|name| format!("`{name}`")).join(", ");
    assert!(error.contains("`eggrol`") && error.contains(&all), "{error}");
    let error = serde_json::from_str::<NoiserConfig>(r#"{"name":"eggroll","rnk":2}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `rnk`"), "{error}");
    assert!("custom".parse::<NoiserConfig>().unwrap_err().to_string().contains("another crate"));
}

#[derive(Debug)]
struct Custom(NoiserProperties);

impl Noiser for Custom {
    fn role(&self, _shape: &[usize]) -> Role {
        Role::Dense
    }

    fn properties(&self) -> NoiserProperties {
        self.0.clone()
    }

    fn name(&self) -> String {
        "mine".to_owned()
    }
}

fn custom(properties: NoiserProperties) -> NoiserConfig {
    CustomNoiser::new(Custom(properties)).into()
}

#[test]
fn convolutions_are_matrices() {
    let eggroll = EggrollConfig::new().with_rank(2).with_freeze_non_matrix(true);
    let noisers: [NoiserConfig; 5] = [
        eggroll.clone().into(),
        NoiserConfig::SignEggroll(eggroll.clone()),
        BaselineSubtractionConfig::new(4).with_eggroll(eggroll).into(),
        OpenEsConfig::new().with_freeze_non_matrix(true).into(),
        SparseConfig::new().with_freeze_non_matrix(true).into(),
    ];
    for config in noisers {
        let noiser = config.init().expect("valid");
        let matrix = noiser.role(&[75, 64]);
        assert_ne!(matrix, Role::Frozen, "{config:?}");
        for convolution in [&[64, 3, 25][..], &[64, 3, 5, 5]] {
            assert_eq!(noiser.role(convolution), matrix, "{config:?}");
        }
        assert_eq!(noiser.role(&[64]), Role::Frozen, "{config:?}");
    }
}

#[test]
fn a_custom_noiser_answers_from_its_properties() {
    let rule = QEggrollConfig::new().rule().expect("a rule");
    let distribution = NoiseDistribution::Rademacher;
    let mine = custom(NoiserProperties { distribution, baselines: 4, integer: Some(rule), ..Default::default() });
    let read: NoiserConfig = serde_json::from_str(&serde_json::to_string(&mine).expect("writes")).expect("reads");
    for config in [&mine, &read] {
        assert_eq!((config.distribution(), config.baselines()), (distribution, Some(8)));
        assert_eq!(config.stream_version(), integer::STREAM_VERSION + distribution.stream_version());
    }
    assert_eq!(read, mine);
    assert_eq!(custom(NoiserProperties::default()).baselines(), None);
    let group = custom(NoiserProperties { baselines: 1, ..Default::default() });
    assert_eq!(group.init().map(drop), Err(NoiserError::BaselineGroup(2)));
}

#[test]
fn only_the_saved_noiser_continues() {
    let mine = custom(NoiserProperties::default());
    let saved: NoiserConfig = serde_json::from_str(&serde_json::to_string(&mine).expect("writes")).expect("reads");
    assert_eq!(saved.init().map(drop), Err(NoiserError::NotGiven("mine".to_owned())));
    assert_eq!(saved.restored(None), Err(NoiserError::NotGiven("mine".to_owned())));
    assert!(saved.restored(Some(&mine)).and_then(|noiser| noiser.init()).is_ok());

    let eggroll = NoiserConfig::from(EggrollConfig::new());
    let signs = custom(NoiserProperties { counts_signs: true, ..Default::default() });
    let other = NoiserConfig::from(OpenEsConfig::new());
    for (saved, given) in [(&saved, &eggroll), (&eggroll, &mine), (&saved, &signs), (&eggroll, &other)] {
        let error = saved.restored(Some(given)).unwrap_err().to_string();
        assert!(error.contains(&saved.described()) && error.contains(&given.described()), "{error}");
    }
    assert_eq!(eggroll.restored(None), Ok(eggroll));
}
