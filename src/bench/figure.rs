//! The first figure of the paper: useful work a second against the number of chains, on logarithmic axes, one series for each
//! system and engine, and the bound of the machine.

use indexmap::IndexMap;
use plotters::prelude::*;

use super::report::{Rate, Report, ReportRow, counted};
use crate::program::{Error, ErrorKind};

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The model.
    pub model: String,
    /// `f64` or `f32`.
    pub precision: String,
    /// Threads.
    pub threads: usize,
    /// The picture, an SVG document.
    pub svg: String,
}

impl Figure {
    /// What a file of it is called.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.svg", self.model, self.precision, self.threads)
    }
    /// What stands above it.
    pub fn title(&self) -> String {
        format!("{}, {}, {}", self.model, self.precision, counted(self.threads, "thread"))
    }
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (1040, 600);
/// Of them the chart's; the rest is for the names of the series.
const CHART_WIDTH: u32 = 760;
/// How the bound is named.
const BOUND: &str = "bound: products, exp, log1p";
/// What a cross over a point means.
const VOID: &str = "× void: other load";
/// Colours that people who see few colours can tell apart (Okabe and Ito), then others.
const COLORS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(148, 128, 0),
    RGBColor(120, 120, 120),
    RGBColor(90, 40, 140),
    RGBColor(140, 70, 20),
    RGBColor(20, 80, 50),
    RGBColor(170, 0, 60),
];

/// Draws all figures of a report.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn draw(report: &Report) -> Result<Vec<Figure>, Error> {
    let figure = |(key, rows): ((&str, &str, usize), Vec<&ReportRow>)| {
        let (model, precision, threads) = (key.0.to_owned(), key.1.to_owned(), key.2);
        let mut figure = Figure { model, precision, threads, svg: String::new() };
        figure.svg = svg(&figure.title(), &rows, &report.bounds(key))
            .map_err(|e| Error::new(ErrorKind::Io, format!("the figure of {} cannot be drawn: {e}", figure.model)))?;
        Ok(figure)
    };
    report.figures().into_iter().map(figure).collect()
}

type Points = Vec<(f64, Rate)>;

fn svg(title: &str, rows: &[&ReportRow], bounds: &[(usize, Rate)]) -> Result<String, Box<dyn std::error::Error>> {
    let mut series: IndexMap<String, Points> = IndexMap::new();
    for row in rows {
        series.entry(row.series()).or_default().push((row.chains as f64, row.rate));
    }
    let bound: Points = bounds.iter().map(|(chains, rate)| (*chains as f64, *rate)).collect();
    let all = || series.values().flatten().chain(&bound);
    let decades = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        // A little room on both sides, at least one decade.
        (low / 1.3)..(high * 1.3).max(low * 10.0)
    };
    let (x, y) = (decades(&mut all().map(|p| p.0)), decades(&mut all().flat_map(|p| [p.1.min, p.1.max])));
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.split_horizontally(CHART_WIDTH);
        let mut chart = ChartBuilder::on(&left)
            .caption(title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        let label = |v: &f64| super::report::short(*v).trim_end_matches(".00").replace(".00 ", " ");
        let lanes = rows.first().map_or("chains", |row| row.lanes_name());
        (chart.configure_mesh().x_desc(lanes).y_desc(format!("{unit} / s")))
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .max_light_lines(1)
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        // What stands beside the chart, in the order of the series.
        let mut legend: Vec<(&str, ShapeStyle)> = Vec::new();
        for (i, (name, points)) in series.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            let style = ShapeStyle::from(color).stroke_width(2);
            let line = points.iter().map(|(x, rate)| (*x, rate.median));
            chart.draw_series(LineSeries::new(line, style.filled()).point_size(3))?;
            chart.draw_series(points.iter().map(|(x, r)| PathElement::new(vec![(*x, r.min), (*x, r.max)], color)))?;
            legend.push((name, style));
        }
        let void: Vec<(f64, f64)> =
            rows.iter().filter(|row| row.is_void()).map(|row| (row.chains as f64, row.rate.median)).collect();
        if !void.is_empty() {
            let style = ShapeStyle::from(RED).stroke_width(2);
            chart.draw_series(void.into_iter().map(|point| Cross::new(point, 6, style)))?;
            legend.push((VOID, style));
        }
        if !bound.is_empty() {
            let style = ShapeStyle::from(BLACK).stroke_width(2);
            let line = bound.iter().map(|(x, rate)| (*x, rate.median));
            chart.draw_series(DashedLineSeries::new(line, 8, 5, style))?;
            legend.push((BOUND, style));
        }
        for (i, (name, style)) in legend.into_iter().enumerate() {
            let y = 60 + 22 * i as i32;
            right.draw(&PathElement::new(vec![(4, y), (26, y)], style))?;
            right.draw(&Text::new(name.to_owned(), (34, y - 7), ("sans-serif", 14)))?;
        }
        area.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::machine::{ForeignLoad, Machine};
    use crate::bench::report::Setup;

    fn row(unit: &str, load: Option<ForeignLoad>) -> ReportRow {
        let rate = Rate { median: 2.0, min: 1.0, max: 3.0 };
        ReportRow {
            system: "autobatch".into(),
            engine: "pc".into(),
            fusion: Some(true),
            model: "some".into(),
            chains: 10,
            chains_run: 10,
            threads: 1,
            precision: "f64".into(),
            repetitions: 5,
            unit: unit.into(),
            rate,
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

    fn drawn(row: ReportRow) -> String {
        let mut report = Report::new(Machine::read(), Setup::default());
        report.add(row);
        draw(&report).unwrap().remove(0).svg
    }

    #[test]
    fn void_points_are_crossed() {
        let load = |void| Some(ForeignLoad { cores: 0.5, void });
        assert!(drawn(row("gradients", load(true))).contains(VOID));
        assert!(!drawn(row("gradients", load(false))).contains(VOID));
    }

    #[test]
    fn lanes_are_called_what_they_are() {
        assert!(drawn(row("gradients", None)).contains("chains"));
        let control = drawn(row("calls", None));
        assert!(control.contains("lanes") && !control.contains("chains"));
    }
}
