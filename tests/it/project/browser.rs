//! Pages in a browser: all has room, and nothing is told on its console. `AUTOBATCH_CHROMIUM=chromium cargo test --test it
//! in_a_browser`; the package is `chromium` of Debian and others. Skipped where the variable names none.

use std::process::Command;

use indexmap::IndexMap;

use super::cli::Folder;
use crate::samplers::page::{drawn, page, statistics};

/// What finds what does not fit, by the places that the browser gives to things.
const MEASURE: &str = include_str!("browser.js");

/// What the browser makes of a page, in a window of this width.
fn shown(chromium: &str, folder: &Folder, file: &str, width: u32, more: &[&str]) -> (String, String) {
    let done = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
        .arg(format!("--window-size={width},2000"))
        .args(more)
        .arg(format!("file://{file}"))
        .output()
        .unwrap_or_else(|error| panic!("{chromium}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr))
}

#[test]
fn reports_have_room_in_a_browser() {
    let Ok(chromium) = std::env::var("AUTOBATCH_CHROMIUM") else {
        eprintln!("skipped: AUTOBATCH_CHROMIUM names no browser");
        return;
    };
    let folder = Folder::new("browser");
    let of = |chains: usize, draws: usize, scale: f64| {
        let scaled = |event: &[usize], seed: u64| {
            let array = drawn(chains, draws, event, seed);
            let values = array.as_real().unwrap().iter().map(|x| scale * (x + 0.1)).collect();
            autobatch::Array::real(array.shape.iter().copied(), values)
        };
        let parameters = IndexMap::from([
            ("mu".to_owned(), scaled(&[], 1)),
            ("a_parameter_with_a_very_long_name".to_owned(), scaled(&[12], 2)),
            ("m".to_owned(), scaled(&[2, 3], 3)),
        ]);
        page(&parameters, &statistics(chains, draws)).0
    };
    let pages = [
        ("few", of(4, 200, 1.0)),
        ("one", of(1, 120, 1e-7)),
        ("many", of(500, 40, 12_345.6)),
        ("huge", of(30, 60, 1e12)),
    ];
    for (name, page) in pages {
        let measured = page.replace("</body>", &format!("<script>{MEASURE}</script></body>"));
        let (plain, with) = (folder.file(&format!("{name}.html"), &page), folder.file("measured.html", measured));
        for width in [1280, 900, 420] {
            let (dom, log) = shown(&chromium, &folder, &with, width, &[]);
            let found = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
            assert_eq!(found, "found []", "{name}, {width} pixels wide");
            assert!(!log.contains("CONSOLE"), "{name}: {log}");
        }
        // As it is, in both colours: the whole page is there before any script could run, and none does.
        for dark in [&["--force-dark-mode"][..], &[]] {
            let (dom, log) = shown(&chromium, &folder, &plain, 1000, dark);
            assert!(!log.contains("CONSOLE"), "{name}: {log}");
            assert_eq!(dom.matches("<svg id=").count(), page.matches("<svg id=").count());
            assert!(dom.contains("needs no other file, no network and no script"));
        }
    }
}
