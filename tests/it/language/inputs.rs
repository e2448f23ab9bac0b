//! Inputs of the host: what an array tells of its shape where it has no elements.

use autobatch::program::io::{Data, read_npy, write_npy};
use autobatch::program::{Engine, Inputs, Options, Program};
use autobatch::types::Array;

const PROGRAM: &str = "pub fn f[n](x: real[n, 2]) -> real[n] { [x[i, 0] + x[i, 1] for i in 0..n] }
pub fn g(x: real[3]) -> real { x[2] }";

#[test]
fn arrays_without_lanes_keep_their_event_shape() {
    let program = Program::compile(PROGRAM).unwrap();
    let path = std::env::temp_dir().join(format!("autobatch-no-lanes-{}.npy", std::process::id()));
    write_npy(&path, &Array::real([0, 5, 2], vec![])).unwrap();
    let read = read_npy(&path);
    std::fs::remove_file(&path).unwrap();
    let read = read.unwrap();
    assert_eq!(read, Array::real([0, 5, 2], vec![]));
    for engine in [Engine::Scalar, Engine::Local, Engine::Pc] {
        let options = Options::default().engine(engine);
        let f = program.function("f").unwrap();
        let results = f.run(&Inputs::new().lane("x", read.clone()), &options).unwrap();
        assert_eq!(results.output("result"), Some(&Array::real([0, 5], vec![])));
        let mut inputs = Inputs::new();
        inputs.add_data(f.signature(), "x", &Data::Array(read.clone()), false).unwrap();
        assert_eq!(f.run(&inputs, &options).unwrap().output("result").unwrap().shape[..], [0, 5]);
        // What an array tells is not guessed at: this one has the wrong shape, lanes or not.
        let wrong = Inputs::new().lane("x", Array::real([0, 2], vec![]));
        let error = program.function("g").unwrap().run(&wrong, &options).unwrap_err().to_string();
        assert!(error.contains("`x` is real[2] where real[3] is expected"), "{error}");
    }
}
