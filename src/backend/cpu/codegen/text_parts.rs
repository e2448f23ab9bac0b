//! A text as texts that are compiled apart, beside one another.

use super::RARELY;

/// What is shorter is not compiled in parts, since each takes the headers anew: 40 to 100 ms, as much as 4 to 8 kB of
/// functions.
const LEAST_PART: usize = 32 << 10;
/// What functions that lanes come to rarely take of the time that others take, with GCC 12.
const RARELY_TAKES: f64 = 0.4;
/// Such functions are compiled apart from so many bytes on, where they spare what the headers take.
const LEAST_RARELY: usize = 24 << 10;
/// Each is a process with its memory.
const MOST_PARTS: usize = 4;

/// Where functions are that lanes come to rarely.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Rarely {
    Apart,
    AsAll,
}

/// A text that is compiled apart from the others.
pub(super) struct Part {
    pub(super) text: String,
    /// Whether it has functions that lanes come to rarely.
    pub(super) rarely: bool,
}

impl Part {
    /// The bytes of a text of others that takes as long.
    pub(super) fn weight(&self) -> usize {
        if self.rarely { (self.text.len() as f64 * RARELY_TAKES) as usize } else { self.text.len() }
    }
}

/// Of this machine.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A text as texts that are compiled apart, about equally long: each begins as it does, with all that comes before its
/// first function, and has some of the functions, which call nothing of one another. A function begins where a line
/// begins with `void`, or with [`RARELY`] before that: those are in texts of their own.
pub(super) fn parts(text: &str, rarely: Rarely) -> Vec<Part> {
    let begins = |at: usize| text[at..].strip_prefix(RARELY).unwrap_or(&text[at..]).starts_with("void ");
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| begins(*at)).collect();
    let Some(first) = starts.first() else { return vec![] };
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let functions = starts.iter().copied().zip(ends).map(|(start, end)| &text[start..end]);
    let bytes = |functions: &[&str]| functions.iter().map(|f| f.len()).sum::<usize>();
    let (mut rarely, mut often): (Vec<&str>, Vec<&str>) =
        functions.partition(|f| rarely == Rarely::Apart && f.starts_with(RARELY));
    if bytes(&rarely) < LEAST_RARELY {
        often.append(&mut rarely);
    }
    let weights = [bytes(&often) as f64, bytes(&rarely) as f64 * RARELY_TAKES];
    let each = weights.iter().sum::<f64>() / cores().min(MOST_PARTS) as f64;
    let mut parts = vec![];
    for (mut functions, weight, rarely) in [(often, weights[0], false), (rarely, weights[1], true)] {
        // As many as there are cores, but for what is rounded.
        let most = (weight / each).round().min(weight / LEAST_PART as f64) as usize;
        let mut texts = vec![text[..*first].to_owned(); most.max(1).min(functions.len())];
        // The longest first, each to where there is least.
        functions.sort_by_key(|f| std::cmp::Reverse(f.len()));
        for function in functions {
            let shortest = texts.iter_mut().min_by_key(|text| text.len()).expect("there are some");
            shortest.push_str(function);
        }
        parts.extend(texts.into_iter().map(|text| Part { text, rarely }));
    }
    if parts.len() < 2 { vec![] } else { parts }
}
