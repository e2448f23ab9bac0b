//! Files of Stan CSV, CmdStan's or ours, read back.

use std::fmt;

use indexmap::IndexMap;

use crate::report::StoredChains;
use crate::types::{Array, ComplexPart};

/// Columns of which files of draws have one: the log density, as sampling and optimizing, or laplace, call it.
const OF_DENSITY: [&str; 2] = ["lp__", "log_p__"];

/// Why files are no chains of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct CsvError(String);

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CsvError {}

/// One file.
struct File {
    config: IndexMap<String, String>,
    columns: Vec<String>,
    /// Draw after draw.
    values: Vec<f64>,
    stepsize: Option<f64>,
    seconds: (f64, f64),
}

impl File {
    fn draws(&self) -> usize {
        self.values.len() / self.columns.len().max(1)
    }

    fn read(name: &str, text: &str) -> Result<Self, CsvError> {
        let wrong = |what: String| Err(CsvError(format!("{name}: {what}")));
        let mut file =
            Self { config: IndexMap::new(), columns: vec![], values: vec![], stepsize: None, seconds: (0.0, 0.0) };
        // Rows of warmup are those before the comment that tells its end.
        let mut adapted = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if let Some(comment) = line.strip_prefix('#') {
                let comment = comment.trim();
                if comment == "Adaptation terminated" {
                    adapted = Some(file.values.len());
                }
                file.comment(comment);
            } else if file.columns.is_empty() {
                // An empty line makes no columns.
                file.columns = line.split(',').filter(|_| !line.is_empty()).map(str::to_owned).collect();
            } else if !line.is_empty() {
                let before = file.values.len();
                for cell in line.split(',') {
                    match cell.trim().parse() {
                        Ok(value) => file.values.push(value),
                        Err(_) => return wrong(format!("line {}: `{cell}` is no number", number + 1)),
                    }
                }
                let (found, wanted) = (file.values.len() - before, file.columns.len());
                if found != wanted {
                    return wrong(format!("line {}: {found} values for {wanted} columns", number + 1));
                }
            }
        }
        // Files of quantities have the model's columns alone.
        let of_quantities = file.config.get("method").is_some_and(|method| method == "generate_quantities");
        if file.columns.is_empty()
            || !of_quantities && !file.columns.iter().any(|column| OF_DENSITY.contains(&&**column))
        {
            return wrong("this is no Stan CSV of draws: there is no line of names with lp__".to_owned());
        }
        let saved = matches!(file.config.get("save_warmup").map(String::as_str), Some("1" | "true"));
        let of_warmup = adapted.unwrap_or_else(|| if saved { file.states_of_warmup() } else { 0 });
        file.values.drain(..of_warmup.min(file.values.len()));
        Ok(file)
    }

    /// Values of the states of warmup that the configuration tells.
    fn states_of_warmup(&self) -> usize {
        let number = |key: &str| self.config.get(key).and_then(|value| value.parse::<usize>().ok());
        number("num_warmup").unwrap_or(0).div_ceil(number("thin").unwrap_or(1).max(1)) * self.columns.len()
    }

    fn comment(&mut self, comment: &str) {
        let seconds = |line: &str| line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        if comment.ends_with("seconds (Warm-up)") {
            self.seconds.0 = seconds(comment);
        } else if comment.ends_with("seconds (Sampling)") {
            self.seconds.1 = seconds(comment);
        } else if let Some((key, value)) = comment.split_once(" =") {
            let (key, value) = (key.trim(), value.trim().trim_end_matches("(Default)").trim());
            if key == "Step size" {
                self.stepsize = value.parse().ok();
            } else {
                self.config.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }
}

impl StoredChains {
    /// Reads the chains of a run: names and texts of their files.
    ///
    /// # Errors
    /// For what is no Stan CSV of draws, for files with other columns than the first, and where there is no draw.
    pub fn of_csv<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, CsvError> {
        let mut chains: Vec<File> = vec![];
        for (name, text) in files {
            let file = File::read(name, text)?;
            if let Some(first) = chains.first().filter(|first| first.columns != file.columns) {
                let differ = first.columns.iter().zip(&file.columns).find(|(a, b)| a != b);
                let why = match differ {
                    Some((a, b)) => format!("`{b}` where the first file has `{a}`"),
                    None => format!("{} columns where the first file has {}", file.columns.len(), first.columns.len()),
                };
                return Err(CsvError(format!("{name}: not a chain of the same run: {why}")));
            }
            chains.push(file);
        }
        let draws = chains.iter().map(File::draws).min().unwrap_or(0);
        let Some(first) = chains.first().filter(|_| draws > 0) else {
            return Err(CsvError("there are no draws".to_owned()));
        };
        let (of_sampler, of_model): (Vec<usize>, Vec<usize>) =
            (0..first.columns.len()).partition(|column| first.columns[*column].ends_with("__"));
        let scalar = |column: usize| of_columns(&chains, draws, &[column], &[]);
        let statistics = of_sampler.into_iter().map(|column| {
            let name = first.columns[column].trim_end_matches("__").to_owned();
            (name, scalar(column))
        });
        let parameters = variables(&first.columns, &of_model);
        Ok(Self {
            config: first.config.clone(),
            statistics: statistics.collect(),
            parameters: parameters
                .into_iter()
                .map(|(name, shape, columns)| (name, of_columns(&chains, draws, &columns, &shape)))
                .collect(),
            stepsizes: chains.iter().filter_map(|chain| chain.stepsize).collect(),
            seconds: chains.iter().map(|chain| chain.seconds).collect(),
            draws,
            uneven: chains.iter().any(|chain| chain.draws() != draws),
            numbers: (1..=chains.len()).collect(),
            ..Self::default()
        })
    }
}

/// These columns as an array chain × draw × event shape.
fn of_columns(chains: &[File], draws: usize, columns: &[usize], shape: &[usize]) -> Array {
    let width = chains.first().map_or(1, |chain| chain.columns.len().max(1));
    let mut values = Vec::with_capacity(chains.len() * draws * columns.len());
    for chain in chains {
        for row in chain.values.chunks(width).take(draws) {
            values.extend(columns.iter().map(|column| row[*column]));
        }
    }
    Array::real([chains.len(), draws].into_iter().chain(shape.iter().copied()), values)
}

/// Variables with their shapes, and the column of each element in row-major order.
fn variables(columns: &[String], of_model: &[usize]) -> Vec<(String, Vec<usize>, Vec<usize>)> {
    let indexed = |column: &usize| -> (String, Vec<usize>) {
        // `a.2:1.3` is an element of the part `a.2:1` of an array of tuples.
        // `z.1.real` is one of the part `z.real` of a complex variable.
        let complex = ComplexPart::named(&columns[*column]);
        let (column_name, end_of_name) = complex.map_or((&*columns[*column], ""), |(name, part)| (name, part.suffix()));
        let part = column_name.rfind(':').unwrap_or(0);
        let end = column_name[part..].find('.').map_or(column_name.len(), |dot| part + dot);
        let name = column_name[..end].to_owned() + end_of_name;
        let indices: Option<Vec<usize>> =
            column_name[end..].split('.').skip(1).map(|part| part.parse().ok().filter(|i| *i > 0)).collect();
        indices.map_or_else(|| (columns[*column].clone(), vec![]), |indices| (name, indices))
    };
    let mut all: IndexMap<String, Vec<(Vec<usize>, usize)>> = IndexMap::new();
    for column in of_model {
        let (name, index) = indexed(column);
        all.entry(name).or_default().push((index, *column));
    }
    let mut variables = vec![];
    for (name, mut elements) in all {
        let rank = elements[0].0.len();
        let shape: Vec<usize> = (0..rank)
            .map(|axis| elements.iter().filter_map(|(i, _)| i.get(axis)).copied().max().unwrap_or(0))
            .collect();
        elements.sort();
        let whole = elements.iter().all(|(index, _)| index.len() == rank)
            && elements.len() == shape.iter().product::<usize>()
            && elements.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if whole {
            variables.push((name, shape, elements.into_iter().map(|(_, column)| column).collect()));
        } else {
            variables.extend(elements.into_iter().map(|(_, column)| (columns[column].clone(), vec![], vec![column])));
        }
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::super::write::Columns;
    use super::*;

    const TEXT: &str = "# stan_version_major = 2\n# method = sample (Default)\n#     save_warmup = true\n#     thin = 2\n\
        lp__,stepsize__,m.1.1,m.2.1,m.1.2,m.2.2,t:1.1\n-9,2,0,0,0,0,0\n\
        # Adaptation terminated\n# Step size = 0.5\n# Diagonal elements of inverse mass matrix:\n# 1, 2\n\
        -1,0.5,11,21,12,22,5\n-inf,0.5,11,21,12,nan,5\n# \n#  Elapsed Time: 0.25 seconds (Warm-up)\n\
        #                1.5 seconds (Sampling)\n#                1.75 seconds (Total)\n# \n";

    #[test]
    fn parts_of_arrays_of_tuples_are_variables() {
        let text = "lp__,a.1:1,a.1:2.1,a.1:2.2,a.2:1\n0,1,2,3,4\n";
        let chains = StoredChains::of_csv([("a.csv", text)].into_iter()).expect("it is right");
        assert_eq!(chains.parameters.keys().collect::<Vec<_>>(), ["a.1:1", "a.1:2", "a.2:1"]);
        assert_eq!(chains.parameters["a.1:2"].as_real().unwrap(), [2.0, 3.0]);
    }

    #[test]
    fn the_parts_of_complex_numbers_are_variables() {
        let text = "lp__,z.real,z.imag,v.1.real,v.1.imag,v.2.real,v.2.imag,t:1.1.real,t:1.1.imag\n0,1,2,3,4,5,6,7,8\n";
        let chains = StoredChains::of_csv([("a.csv", text)].into_iter()).expect("it is right");
        let names: Vec<&str> = chains.parameters.keys().map(String::as_str).collect();
        assert_eq!(names, ["z.real", "z.imag", "v.real", "v.imag", "t:1.real", "t:1.imag"]);
        assert_eq!(chains.parameters["v.imag"].as_real().unwrap(), [4.0, 6.0]);
        let columns = Columns::in_order(std::iter::empty(), &chains.parameters);
        assert_eq!(format!("lp__,{}", columns.names().join(",")), text.lines().next().unwrap());
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let chains = StoredChains::of_csv([("a.csv", TEXT), ("b.csv", TEXT)].into_iter()).expect("it is right");
        assert_eq!((chains.draws, chains.config["thin"].as_str(), chains.number("thin")), (2, "2", Some(2.0)));
        assert_eq!(chains.statistics["lp"].as_real().unwrap(), [-1.0, f64::NEG_INFINITY, -1.0, f64::NEG_INFINITY]);
        let m = &chains.parameters["m"];
        assert_eq!((&m.shape[..], &m.as_real().unwrap()[..4]), (&[2, 2, 2, 2][..], &[11.0, 12.0, 21.0, 22.0][..]));
        assert!(m.as_real().unwrap()[7].is_nan());
        assert_eq!(chains.parameters["t:1"].shape[..], [2, 2, 1]);
        assert_eq!((chains.stepsizes, chains.seconds), (vec![0.5, 0.5], vec![(0.25, 1.5); 2]));
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let refused = |texts: &[&str]| {
            StoredChains::of_csv(texts.iter().map(|text| ("x.csv", *text))).expect_err("it is none").to_string()
        };
        assert!(refused(&["a,b\n1,2\n"]).contains("no Stan CSV of draws"));
        assert!(refused(&["lp__,a\n1\n"]).contains("line 2: 1 values for 2 columns"));
        assert!(refused(&["lp__,a\n1,x\n"]).contains("line 2: `x` is no number"));
        assert!(refused(&["lp__,a\n"]).contains("there are no draws"));
        assert!(refused(&["lp__,a\n1,2\n", "lp__,b\n1,2\n"]).contains("`b` where the first file has `a`"));
    }
}
