//! Ctrl-C: the first ends the run after its generation, the second at once.

use eggroll_run::Interrupter;

/// An interrupter that Ctrl-C stops; if there is no handler to be had, a warning that the run ends without `lost`. A second Ctrl-C
/// calls `at_once`.
pub fn on_ctrl_c(lost: &str, at_once: fn()) -> Interrupter {
    let interrupter = Interrupter::new();
    let handler = interrupter.clone();
    let installed = ctrlc::set_handler(move || {
        // A second Ctrl-C does not wait for the generation to end.
        if handler.should_stop() {
            at_once();
        }
        handler.stop(Some("Ctrl-C"));
    });
    if let Err(error) = installed {
        eprintln!("warning: Ctrl-C will end the run without {lost}: {error}");
    }
    interrupter
}
