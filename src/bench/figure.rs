//! The figures of a report: for each group of rows one, drawn as its question asks.

use indexmap::IndexMap;

use super::bars::{Bar, Bars};
use super::chart::{Chart, Line};
use super::group::Group;
use super::report::{Rate, Report};
use super::row::ReportRow;
use super::study::Question;
use crate::picture::Axis;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What its file is called.
    pub file_name: String,
    /// The picture, an SVG document.
    pub svg: String,
}

/// How the bound of the machine is named.
const BOUND: &str = "bound: products, exp, log1p";
/// How bounds of utilization are named.
const BOUND_OF_MASKS: &str = "bound: mean ÷ most of a chain";
const BOUND_OF_LOCAL: &str = "bound of local: draw by draw";

/// Draws all figures of a report, in the order of its groups.
pub fn draw(report: &Report) -> Vec<Figure> {
    let figure = |(group, rows): (Group<'_>, Vec<&ReportRow>)| {
        let svg = match group.question {
            Question::Ablation => ablations(group, &rows).draw(),
            Question::Utilization => utilization(group, &rows).draw(),
            Question::Chains | Question::Threads | Question::LeafSteps => rates(report, group, &rows).draw(),
        };
        Figure { file_name: group.file_name(), svg }
    };
    report.groups().into_iter().map(figure).collect()
}

fn lanes_name(rows: &[&ReportRow]) -> &'static str {
    rows.first().map_or("chains", |row| row.lanes_name())
}

/// The points of each series, from left to right.
fn series(rows: &[&ReportRow], value: impl Fn(&ReportRow) -> Option<Rate>) -> Vec<Line> {
    let mut series: IndexMap<String, Vec<(f64, Rate)>> = IndexMap::new();
    for row in rows {
        if let Some(rate) = value(row) {
            series.entry(row.series()).or_default().push((row.place() as f64, rate));
        }
    }
    series.into_iter().map(|(name, points)| Line { name, points: sorted(points) }).collect()
}

fn sorted(mut points: Vec<(f64, Rate)>) -> Vec<(f64, Rate)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn places(rows: &[&ReportRow]) -> impl Iterator<Item = f64> {
    rows.iter().map(|row| row.place() as f64)
}

/// Useful work a second, on logarithmic axes, with the bound of the machine.
fn rates(report: &Report, group: Group<'_>, rows: &[&ReportRow]) -> Chart {
    let lanes = lanes_name(rows);
    let lines = series(rows, |row| Some(row.rate));
    let bound: Vec<(f64, Rate)> = match group.question {
        // One bound, whatever the steps of a leaf.
        Question::LeafSteps => {
            let rate = report.bounds(group).next().map(|bound| bound.gradients_per_second);
            rate.into_iter().flat_map(|rate| places(rows).map(move |x| (x, rate))).collect()
        }
        _ => report.bounds(group).map(|bound| (bound.place() as f64, bound.gradients_per_second)).collect(),
    };
    let name = match group.question {
        Question::Threads => "threads",
        Question::LeafSteps => "leapfrog steps between the states that NUTS considers",
        _ => lanes,
    };
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let all = lines.iter().flat_map(|line| &line.points).chain(&bound);
    let y = Axis::of_decades(&format!("{unit} / s"), all.flat_map(|(_, rate)| [rate.min, rate.max]));
    let bounds = (!bound.is_empty()).then(|| Line { name: BOUND.to_owned(), points: sorted(bound) });
    let void = rows.iter().filter(|row| row.is_void()).map(|row| (row.place() as f64, row.rate.median)).collect();
    let x = Axis::of_counts(name, places(rows));
    Chart { title: group.title(lanes), x, y, lines, bounds: bounds.into_iter().collect(), void }
}

/// Useful over computed work, with the bounds of what runs under a mask. Counts are the same whatever else the machine does.
fn utilization(group: Group<'_>, rows: &[&ReportRow]) -> Chart {
    let lanes = lanes_name(rows);
    let exactly = |x: f64| Rate { median: x, min: x, max: x };
    let local = |row: &ReportRow| row.schedule.is_none();
    let bound = |name: &str, of: &dyn Fn(&ReportRow) -> bool| {
        let mut points: IndexMap<usize, f64> = IndexMap::new();
        for row in rows.iter().filter(|row| of(row)) {
            if let Some(bound) = row.utilization_bound {
                points.entry(row.place()).or_insert(bound);
            }
        }
        let points: Vec<(f64, Rate)> = points.into_iter().map(|(x, bound)| (x as f64, exactly(bound))).collect();
        (!points.is_empty()).then(|| Line { name: name.to_owned(), points: sorted(points) })
    };
    let bounds = [bound(BOUND_OF_MASKS, &|row| !local(row)), bound(BOUND_OF_LOCAL, &local)];
    Chart {
        title: group.title(lanes),
        x: Axis::of_counts(lanes, places(rows)),
        y: Axis::from_zero("utilization: useful ÷ computed work", [1.0]),
        lines: series(rows, |row| row.utilization.map(exactly)),
        bounds: bounds.into_iter().flatten().collect(),
        void: Vec::new(),
    }
}

/// The time without each optimisation over that with all.
fn ablations(group: Group<'_>, rows: &[&ReportRow]) -> Bars {
    let lanes = lanes_name(rows);
    let several = rows.iter().any(|row| row.chains != rows[0].chains);
    let bar = |row: &&ReportRow| {
        let ablation = row.ablation.as_ref()?;
        let without = match &ablation.without[..] {
            [] => "all on".to_owned(),
            [one] => format!("without {one}"),
            all => format!("without all {}", all.len()),
        };
        let name = if several { format!("{} {lanes}, {without}", row.chains) } else { without };
        Some(Bar { name, length: ablation.ratio, void: row.is_void() })
    };
    let title = match rows.first() {
        Some(row) if !several => format!("{}, {} {lanes}", group.title(lanes), row.chains),
        _ => group.title(lanes),
    };
    let axis = "time of a run, in times of that with all on".to_owned();
    Bars { title, axis, bars: rows.iter().filter_map(bar).collect(), reference: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::chart::VOID;
    use crate::bench::machine::{ForeignLoad, Machine};
    use crate::bench::report::{BoundRow, Setup};
    use crate::bench::row::Ablation;
    use crate::bench::row::tests::row;

    fn drawn(rows: impl IntoIterator<Item = ReportRow>) -> Figure {
        let mut report = Report::new(Machine::read(), Setup::default());
        rows.into_iter().for_each(|row| report.add(row));
        let mut figures = draw(&report);
        assert_eq!(figures.len(), 1);
        figures.remove(0)
    }

    #[test]
    fn void_points_are_crossed() {
        let load = |void| Some(ForeignLoad { cores: 0.5, void });
        assert!(drawn([row("gradients", load(true))]).svg.contains(VOID));
        assert!(!drawn([row("gradients", load(false))]).svg.contains(VOID));
    }

    #[test]
    fn lanes_are_called_what_they_are() {
        assert!(drawn([row("gradients", None)]).svg.contains("chains"));
        let control = drawn([row("calls", None)]).svg;
        assert!(control.contains("lanes") && !control.contains("chains"));
    }

    #[test]
    fn the_utilization_of_policies_has_its_bounds() {
        let by = |schedule: Option<&str>, utilization, bound| ReportRow {
            question: Question::Utilization,
            engine: if schedule.is_some() { "pc" } else { "local" }.into(),
            schedule: schedule.map(str::to_owned),
            execution: Some("mask".into()),
            utilization: Some(utilization),
            utilization_bound: Some(bound),
            ..row("gradients", None)
        };
        let figure = drawn([by(Some("earliest"), 0.2, 0.7), by(Some("cost"), 0.6, 0.7), by(None, 0.4, 0.5)]);
        assert_eq!(figure.file_name, "some-f64-1-utilization.svg");
        for name in ["pc, mask, earliest", "pc, mask, cost", "local, mask", BOUND_OF_MASKS, BOUND_OF_LOCAL, "useful ÷"]
        {
            assert!(figure.svg.contains(name), "{name}: {}", figure.svg);
        }
    }

    #[test]
    fn an_optimisation_is_a_bar() {
        let without = |passes: &[&str], ratio: f64| ReportRow {
            question: Question::Ablation,
            ablation: Some(Ablation {
                without: passes.iter().map(|name| (*name).to_owned()).collect(),
                seconds: Rate::of(&[0.1]),
                ratio: Rate::of(&[ratio]),
            }),
            ..row("gradients", None)
        };
        let figure = drawn([without(&[], 1.0), without(&["save-live"], 2.5), without(&["save-live", "storage"], 3.0)]);
        assert_eq!(figure.file_name, "some-f64-1-ablation.svg");
        for name in ["all on", "without save-live", "without all 2", "2.50", "10 chains"] {
            assert!(figure.svg.contains(name), "{name}: {}", figure.svg);
        }
    }

    #[test]
    fn threads_and_leaf_steps_have_their_axes() {
        let of = |question, threads, leaf_steps| ReportRow {
            question,
            threads,
            leaf_steps: Some(leaf_steps),
            ..row("gradients", None)
        };
        let threads = drawn([of(Question::Threads, 1, 1), of(Question::Threads, 2, 1)]);
        assert_eq!(threads.file_name, "some-f64-10-chains-by-threads.svg");
        assert!(threads.svg.contains(">threads<") && threads.svg.contains(">2<"), "{}", threads.svg);
        let leaves = drawn([of(Question::LeafSteps, 1, 1), of(Question::LeafSteps, 1, 16)]);
        assert_eq!(leaves.file_name, "some-f64-1-10-chains-leaf-steps.svg");
        assert!(leaves.svg.contains("leapfrog steps") && leaves.svg.contains(">16<"), "{}", leaves.svg);
        assert_eq!(leaves.svg.matches(">autobatch pc<").count(), 1, "one series");
    }

    #[test]
    fn the_bound_is_drawn_where_it_was_measured() {
        let mut report = Report::new(Machine::read(), Setup::default());
        for question in [Question::Chains, Question::Threads] {
            report.add(ReportRow { question, ..row("gradients", None) });
        }
        report.bound.push(BoundRow {
            question: Question::Chains,
            model: "some".into(),
            chains: 10,
            threads: 1,
            precision: "f64".into(),
            gradients_per_second: Rate::of(&[9.0]),
            tiling: None,
        });
        let bounded: Vec<bool> = draw(&report).iter().map(|figure| figure.svg.contains(BOUND)).collect();
        assert_eq!(bounded, [true, false]);
    }
}
