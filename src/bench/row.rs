//! A series in a cell: what was measured of it.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Map, Value};

use super::machine::ForeignLoad;
use super::model::WorkUnit;
use super::report::Rate;
use super::study::Question;
use super::way::{DEFAULT_EXECUTION, DEFAULT_SCHEDULE};

/// A series in a cell.
///
/// In JSON the unit stands in the key of the rate: `gradients_per_second`, `iterations_per_second`, `calls_per_second`, or
/// `runs_per_second`.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(remote = "Self")]
pub struct ReportRow {
    /// What is asked with it.
    #[serde(default)]
    pub question: Question,
    /// `autobatch` or the name of a peer.
    pub system: String,
    /// Which of its ways of running.
    pub engine: String,
    /// Of our batching engines, whether steps are fused.
    pub fusion: Option<bool>,
    /// Of our engine `pc`, which waiting block runs next, as `--schedule` has it.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Of our batching engines without generated code, how a block runs whose lanes are not all active, as `--exec` has it.
    #[serde(default)]
    pub execution: Option<String>,
    /// Of our engines on a posterior, leapfrog steps between the states that NUTS considers.
    #[serde(default)]
    pub leaf_steps: Option<usize>,
    /// The model.
    pub model: String,
    /// Chains, or lanes.
    pub chains: usize,
    /// Those that it ran: fewer where it runs one after the other.
    pub chains_run: usize,
    /// Threads.
    pub threads: usize,
    /// `f64` or `f32`.
    pub precision: String,
    /// Measured runs: fewer than asked for where the comparison was ended early.
    pub repetitions: usize,
    /// What is counted.
    pub unit: String,
    /// Useful work a second.
    pub rate: Rate,
    /// Bulk effective sample size of the worst parameter a second, where draws are kept.
    pub effective_samples_per_second: Option<Rate>,
    /// Draws of each chain in a run, or runs over all lanes.
    pub draws: usize,
    /// Useful work of all runs.
    pub useful: u64,
    /// All work of all runs, where it is known; of our engines as many times the useful work as in one run of the same draws that
    /// counts both.
    pub issued: Option<f64>,
    /// Useful over issued work.
    pub utilization: Option<f64>,
    /// What utilization cannot be above of under a mask: mean over largest work of a lane; of `local` draw by draw, since all
    /// lanes wait for the last one of a draw.
    pub utilization_bound: Option<f64>,
    /// Supersteps of one run.
    pub supersteps: Option<u64>,
    /// Bytes pushed on stacks for each unit of useful work.
    pub bytes_pushed: Option<f64>,
    /// Median of the bound of the same cell, in the unit of the rate.
    pub bound: Option<f64>,
    /// What is switched off and what that costs, where that is the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
    /// What other processes did during the repetitions, where the system tells.
    pub foreign_load: Option<ForeignLoad>,
}

/// What a run takes without some of the paper's optimisations, beside one with all.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Ablation {
    /// The passes that are off.
    pub without: Vec<String>,
    /// Seconds of a run.
    pub seconds: Rate,
    /// Seconds over those of the run with everything on of the same repetition, which has the same draws.
    pub ratio: Rate,
}

/// Behind the unit in the key of a rate.
const PER_SECOND: &str = "_per_second";

impl Serialize for ReportRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = ReportRow::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        let Value::Object(fields) = value else { return Err(S::Error::custom("a row is an object")) };
        serializer.collect_map(fields.into_iter().filter(|(key, _)| key != "unit").map(|(key, value)| match &*key {
            "rate" => (format!("{}{PER_SECOND}", self.unit), value),
            _ => (key, value),
        }))
    }
}

impl<'de> Deserialize<'de> for ReportRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let key = |unit: &WorkUnit| format!("{}{PER_SECOND}", unit.name());
        let Some(unit) = WorkUnit::ALL.iter().find(|unit| fields.contains_key(&key(unit))) else {
            return Err(D::Error::custom("a row without a rate, such as gradients_per_second"));
        };
        fields.insert("unit".to_owned(), unit.name().into());
        let rate = fields.remove(&key(unit)).unwrap_or_default();
        fields.insert("rate".to_owned(), rate);
        ReportRow::deserialize(Value::Object(fields)).map_err(D::Error::custom)
    }
}

impl ReportRow {
    /// Whether the load of others makes its figures void.
    pub fn is_void(&self) -> bool {
        self.foreign_load.is_some_and(|load| load.void)
    }

    /// What its chains are called.
    pub(super) fn lanes_name(&self) -> &'static str {
        if self.unit == WorkUnit::Gradients.name() { "chains" } else { "lanes" }
    }

    /// `1000`, or `1000 (4 run)`.
    pub(super) fn chains_shown(&self) -> String {
        match self.chains_run {
            n if n == self.chains => n.to_string(),
            n => format!("{} ({n} run)", self.chains),
        }
    }

    pub(super) fn with_utilization(self) -> Self {
        let utilization = self.issued.map(|issued| self.useful as f64 / issued);
        Self { utilization, ..self }
    }

    /// The series that it belongs to: `autobatch pc`, `autobatch pc, no fusion`, `stan glm native`.
    pub fn series(&self) -> String {
        let mut name = format!("{} {}", self.system, self.engine);
        if self.fusion == Some(false) {
            name += ", no fusion";
        }
        if let Some(execution) = self.execution.as_deref().filter(|e| *e != DEFAULT_EXECUTION) {
            name += &format!(", {execution}");
        }
        // Where policies are compared each is named.
        let named = |schedule: &&str| self.question == Question::Utilization || *schedule != DEFAULT_SCHEDULE;
        if let Some(schedule) = self.schedule.as_deref().filter(named) {
            name += &format!(", {schedule}");
        }
        if let Some(n) = self.leaf_steps.filter(|n| self.question != Question::LeafSteps && *n != 1) {
            name += &format!(", {n} leaf steps");
        }
        match self.ablation.as_ref().filter(|a| !a.without.is_empty()) {
            Some(ablation) => format!("{name}, no {}", ablation.without.join(", ")),
            None => name,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of nothing in particular.
    pub(in crate::bench) fn row(unit: &str, load: Option<ForeignLoad>) -> ReportRow {
        ReportRow {
            question: Question::Chains,
            system: "autobatch".into(),
            engine: "pc".into(),
            fusion: Some(true),
            schedule: Some(DEFAULT_SCHEDULE.into()),
            execution: Some(DEFAULT_EXECUTION.into()),
            leaf_steps: Some(1),
            model: "some".into(),
            chains: 10,
            chains_run: 10,
            threads: 1,
            precision: "f64".into(),
            repetitions: 5,
            unit: unit.into(),
            rate: Rate { median: 2.0, min: 1.0, max: 3.0 },
            effective_samples_per_second: None,
            draws: 1,
            useful: 1,
            issued: None,
            utilization: None,
            utilization_bound: None,
            supersteps: None,
            bytes_pushed: None,
            bound: None,
            ablation: None,
            foreign_load: load,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut row = row("calls", Some(ForeignLoad { cores: 0.5, void: true }));
        let rate = Rate { median: 1.0, min: 1.0, max: 1.0 };
        row.ablation = Some(Ablation { without: vec!["storage".into()], seconds: rate, ratio: rate });
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""calls_per_second":{"median":2.0"#) && !text.contains("unit"), "{text}");
        assert_eq!(serde_json::from_str::<ReportRow>(&text).unwrap(), row);
        let error = serde_json::from_str::<ReportRow>("{}").unwrap_err().to_string();
        assert!(error.contains("without a rate"), "{error}");
    }

    #[test]
    fn a_series_is_named_by_what_is_not_usual() {
        let usual = row("gradients", None);
        assert_eq!(usual.series(), "autobatch pc");
        let other = ReportRow { schedule: Some("earliest".into()), execution: Some("mask".into()), ..usual.clone() };
        assert_eq!(other.series(), "autobatch pc, mask, earliest");
        let leaves = ReportRow { fusion: Some(false), leaf_steps: Some(4), ..usual.clone() };
        assert_eq!(leaves.series(), "autobatch pc, no fusion, 4 leaf steps");
        assert_eq!(ReportRow { question: Question::Utilization, ..usual }.series(), "autobatch pc, cost");
    }
}
