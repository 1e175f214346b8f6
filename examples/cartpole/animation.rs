//! An episode as an animated SVG: SMIL, which browsers play without a script.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use eggroll::nn::Mlp;
use eggroll::rl::{CartPole, EpisodeKey, TensorEnvironment};
use std::fmt::Write;

/// Seconds of a step.
const STEP: f32 = 0.02;
/// Steps from one drawn frame to the next: 25 frames per second.
const STRIDE: usize = 2;
/// Pixels of a metre.
const SCALE: f32 = 150.0;
/// Length of the pole in metres.
const POLE: f32 = 1.0;

/// Position of the cart in metres and angle of the pole in radians.
pub type Pose = (f32, f32);

/// The poses of one episode of the mean policy.
pub fn episode(environment: &CartPole, network: &Mlp) -> Vec<Pose> {
    let device = network.devices().remove(0);
    let mut state = vec![0.0; environment.state_size()];
    let mut observation = vec![0.0; environment.observation_size()];
    environment.reset_host(EpisodeKey::new(0, u32::MAX, 0), &mut state);
    let mut poses = Vec::new();
    for _ in 0..environment.time_limit() {
        poses.push((state[0], state[2]));
        environment.observe_host(&state, &mut observation);
        let data = TensorData::new(observation.clone(), [1, observation.len()]);
        let scores = network.forward(Tensor::<2>::from_data(data, &device));
        let action: i64 = scores.argmax(1).into_scalar();
        if environment.step_host(&mut state, &[action as f32]).terminated {
            break;
        }
    }
    poses
}

/// The cart slides and the pole turns, over and over.
pub fn svg(poses: &[Pose]) -> String {
    let seconds = poses.len() as f32 * STEP;
    let (mut slides, mut turns) = (String::new(), String::new());
    for (position, angle) in poses.iter().step_by(STRIDE) {
        write!(slides, "{:.1} 0;", position * SCALE).expect("strings take everything");
        write!(turns, "{:.2};", angle.to_degrees()).expect("strings take everything");
    }
    let animate = |kind: &str, values: &str| {
        let values = values.trim_end_matches(';');
        format!(
            r#"<animateTransform attributeName="transform" type="{kind}" values="{values}" dur="{seconds:.2}s" repeatCount="indefinite"/>"#
        )
    };
    // The environment ends an episode at 2.4 m on either side.
    let (edge, pole) = (2.4 * SCALE, POLE * SCALE);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-400 -200 800 260" width="800" height="260">
<rect x="-400" y="-200" width="800" height="260" fill="#fff"/>
<text x="-390" y="-178" font-family="sans-serif" font-size="16">CartPole-v1, the mean policy: {steps} steps</text>
<path d="M-{edge} 20H{edge}M-{edge} 5v30M{edge} 5v30" stroke="#999" stroke-width="2" fill="none"/>
<g>{slide}
<rect x="-30" y="0" width="60" height="30" rx="4" fill="#345"/>
<g>{turn}<path d="M0 0V-{pole}" stroke="#c84" stroke-width="9" stroke-linecap="round"/></g>
<circle r="5" fill="#88a"/>
</g>
</svg>
"##,
        steps = poses.len(),
        slide = animate("translate", &slides),
        turn = animate("rotate", &turns),
    )
}
