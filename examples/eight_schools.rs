//! Eight schools from Rust: a model and data that ship, 64 chains of NUTS, posterior means and what they are worth.
//!
//! `cargo run --release --example eight_schools`
#![allow(clippy::print_stdout, reason = "an example shows what comes out")]

use std::path::Path;

use autobatch::Sampler;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nuts = Path::new(env!("CARGO_MANIFEST_DIR")).join("nuts");
    let samples = Sampler::of_file(nuts.join("models/eight_schools.ab"))
        .data_file(nuts.join("data/eight_schools.json"))
        .chains(64)
        .warmup(200)
        .draws(100)
        .seed(1)
        .set("target_accept", 0.95)
        .on_progress(|progress| {
            if progress.draws == progress.all_draws {
                println!("{} draws", progress.draws);
            }
        })
        .run()?;

    // Chain × draw × school.
    let theta = samples.real("theta")?;
    let divergent = samples.statistics().bool("divergent")?.iter().filter(|d| **d).count();
    println!("theta: {:?}, {divergent} divergent transitions", theta.shape());
    println!("parameter    mean     sd  R-hat  effective draws");
    for row in &samples.summary().rows {
        println!("{:<9} {:>7.2} {:>6.2} {:>6.3} {:>16.0}", row.name, row.mean, row.sd, row.rhat, row.ess_bulk);
    }
    for warning in samples.warnings() {
        println!("warning: {warning}");
    }
    Ok(())
}
