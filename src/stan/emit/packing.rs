//! What routines give: one value, or several in one array.

use std::sync::Arc;

/// A part of what a routine gives.
pub(in crate::stan) struct Part {
    pub(in crate::stan) name: Arc<str>,
    pub(in crate::stan) int: bool,
    pub(in crate::stan) shape: Vec<usize>,
    /// Whether it is what a function of the program returns.
    pub(in crate::stan) is_result: bool,
}

/// What a routine gives: one value, or all of them in one array.
pub(in crate::stan) struct Packing {
    pub(in crate::stan) parts: Vec<Part>,
}

impl Packing {
    fn len(&self) -> usize {
        self.parts.iter().map(|p| p.shape.iter().product::<usize>()).sum()
    }
    pub(in crate::stan) fn is_int(&self) -> bool {
        self.parts.iter().all(|p| p.int)
    }
    pub(in crate::stan) fn shape(&self) -> Vec<usize> {
        match &self.parts[..] {
            [] => Vec::new(),
            [part] => part.shape.clone(),
            _ => vec![self.len()],
        }
    }
    /// Zeros.
    pub(in crate::stan) fn nothing(&self) -> String {
        zeros(self.is_int(), &self.shape())
    }
    pub(super) fn ty(&self) -> String {
        ty(self.is_int(), &self.shape())
    }
    /// The value, of these texts of its parts.
    pub(super) fn packed(&self, texts: &[String]) -> String {
        let all_int = self.is_int();
        let real = |p: &Part, text: &str| if p.int && !all_int { format!("real({text})") } else { text.to_owned() };
        match &self.parts[..] {
            [] => return "0".to_owned(),
            [_] => return texts[0].clone(),
            _ => {}
        }
        let mut pieces: Vec<String> = Vec::new();
        let mut scalars: Vec<String> = Vec::new();
        for (part, text) in self.parts.iter().zip(texts) {
            let text = real(part, text);
            if part.shape.is_empty() {
                scalars.push(text);
                continue;
            }
            if !scalars.is_empty() {
                pieces.push(format!("[{}]", std::mem::take(&mut scalars).join(", ")));
            }
            match part.shape.iter().product::<usize>() {
                0 => {}
                _ if part.shape.len() == 1 => pieces.push(text),
                n => pieces.push(format!("reshape({text}, {n})")),
            }
        }
        if !scalars.is_empty() {
            pieces.push(format!("[{}]", scalars.join(", ")));
        }
        match &pieces[..] {
            [] => self.nothing(),
            [one] => one.clone(),
            _ => format!("concat({})", pieces.join(", ")),
        }
    }
}

fn extents(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn ty(int: bool, shape: &[usize]) -> String {
    let base = if int { "int" } else { "real" };
    if shape.is_empty() { base.to_owned() } else { format!("{base}[{}]", extents(shape)) }
}

pub(super) fn zeros(int: bool, shape: &[usize]) -> String {
    let zero = if int { "0" } else { "0.0" };
    if shape.is_empty() { zero.to_owned() } else { format!("fill({zero}, {})", extents(shape)) }
}
