//! Reads `library.txt`. What stands there is ours, so that a slip in it is a panic, which every test meets.

use std::collections::HashMap;
use std::sync::Arc;

use crate::stan::check::types::{FunctionType, Parameter, Suffix, Type, wound};
use crate::stan::syntax::ast::UnsizedType;

use super::Library;
use super::family::{Argument, Family, Outcome, Over};

/// The table.
pub(super) fn library(text: &str) -> Library {
    let mut reader = Reader { sets: HashMap::new() };
    let mut library = Library { functions: HashMap::new(), families: Vec::new() };
    let mut names: Vec<String> = Vec::new();
    let mut complete = true;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if let Some((name, set)) = line.strip_prefix("let ").and_then(|rest| rest.split_once(" = ")) {
            let set = reader.set(set);
            reader.sets.insert(name.to_owned(), set);
        } else if line.starts_with(' ') {
            let at = library.families.len();
            library.families.push(reader.family(line.trim()));
            for name in &names {
                library.functions.entry(name.clone()).or_default().push(at);
            }
        } else {
            if complete {
                names.clear();
            }
            complete = line.ends_with(':');
            split(line.trim_end_matches(':'), ' ').into_iter().for_each(|part| expand(part, &mut names));
        }
    }
    library
}

/// `{a b}_{c d}`: four names.
fn expand(part: &str, into: &mut Vec<String>) {
    let Some((before, rest)) = part.split_once('{') else {
        into.push(part.to_owned());
        return;
    };
    let (choices, after) = rest.split_once('}').expect("a brace is closed");
    for choice in choices.split(' ') {
        expand(&format!("{before}{choice}{after}"), into);
    }
}

/// The parts of a text between separators that stand in no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

struct Reader {
    sets: HashMap<String, Vec<Type>>,
}

impl Reader {
    fn set(&self, text: &str) -> Vec<Type> {
        if text.starts_with('(') {
            return vec![Type::Function(Arc::new(self.function_type(text)))];
        }
        split(text, ',').into_iter().flat_map(|part| self.alternative(part)).collect()
    }

    /// `(args) => result`, a function's type.
    fn function_type(&self, text: &str) -> FunctionType {
        let (params, result) = text.rsplit_once(" => ").expect("a signature has a result");
        let params = params.trim().strip_prefix('(').and_then(|p| p.strip_suffix(')')).expect("in parentheses");
        let param = |part: &str| match self.argument(part) {
            Argument::OneOf(mut options) if options.len() == 1 => options.remove(0),
            _ => panic!("`{part}` is no type"),
        };
        let params = split(params, ',').into_iter().map(param).collect();
        FunctionType { params, result: Some(self.one(result)), suffix: Suffix::Plain }
    }

    /// `(args) => result`, a line of the table.
    fn family(&self, text: &str) -> Family {
        let (arguments, outcome) = text.rsplit_once(" => ").expect("a signature has a result");
        let arguments = arguments.strip_prefix('(').and_then(|a| a.strip_suffix(')')).expect("in parentheses");
        let arguments = split(arguments, ',').into_iter().map(|part| self.argument(part)).collect();
        let outcome = match (outcome.strip_prefix("draws "), self.over(outcome)) {
            (Some(ty), _) => Outcome::Draws(self.one(ty)),
            (None, Some((over, of))) => Outcome::Like(over, of),
            (None, None) => Outcome::Fixed(self.one(outcome)),
        };
        Family { arguments, outcome }
    }

    fn argument(&self, text: &str) -> Argument {
        if let Some((over, of)) = self.over(text) {
            return Argument::Like(over, of);
        }
        let (data_only, text) = text.strip_prefix("data ").map_or((false, text), |text| (true, text));
        let types = split(text, '|').into_iter().flat_map(|part| self.alternative(part));
        Argument::OneOf(types.map(|ty| Parameter { data_only, ty }).collect())
    }

    /// `T $2`: what is made of the type of an argument.
    fn over(&self, text: &str) -> Option<(Over, usize)> {
        let (word, of) = text.split_once('$')?;
        let of = of.parse::<usize>().expect("the number of an argument") - 1;
        let over = match word.trim() {
            "" => Over::Same,
            "real" => Over::WithReal,
            "complex" => Over::WithComplex,
            "parts" => Over::RealPart,
            "ints" => Over::Ints,
            word => match word.strip_suffix(" in") {
                Some(element) => Over::Around(self.one(element)),
                None => Over::ArrayOf(word.matches(',').count() + 1),
            },
        };
        Some((over, of))
    }

    /// A type or the name of a set, `a..b` levels of array around it.
    fn alternative(&self, text: &str) -> Vec<Type> {
        let (text, levels) = match text.rsplit_once(' ').and_then(|(text, range)| Some((text, range.split_once("..")?)))
        {
            Some((text, (from, to))) => (text, from.parse().expect("a number")..=to.parse().expect("a number")),
            None => (text, 0..=0),
        };
        let types = self.sets.get(text).cloned().unwrap_or_else(|| vec![Type::Value(self.one(text))]);
        let wrapped = |ty: &Type, levels: usize| match ty {
            Type::Value(ty) => Type::Value(wound(ty.clone(), levels)),
            function => function.clone(),
        };
        types.iter().flat_map(|ty| levels.clone().map(move |levels| wrapped(ty, levels))).collect()
    }

    fn one(&self, text: &str) -> UnsizedType {
        if let Some(rest) = text.strip_prefix("array[") {
            let (commas, element) = rest.split_once("] ").expect("a bracket is closed");
            return wound(self.one(element), commas.len() + 1);
        }
        if let Some(parts) = text.strip_prefix("tuple(").and_then(|t| t.strip_suffix(')')) {
            return UnsizedType::Tuple(split(parts, ',').into_iter().map(|part| self.one(part)).collect());
        }
        match text {
            "int" => UnsizedType::Int,
            "real" => UnsizedType::Real,
            "complex" => UnsizedType::Complex,
            "vector" => UnsizedType::Vector,
            "row_vector" => UnsizedType::RowVector,
            "matrix" => UnsizedType::Matrix,
            "complex_vector" => UnsizedType::ComplexVector,
            "complex_row_vector" => UnsizedType::ComplexRowVector,
            "complex_matrix" => UnsizedType::ComplexMatrix,
            name => match self.sets.get(name).map(Vec::as_slice) {
                Some([Type::Value(ty)]) => ty.clone(),
                _ => panic!("`{name}` is no type"),
            },
        }
    }
}
