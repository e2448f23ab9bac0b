//! Pictures as SVG: what figures are made of.

use std::fmt::Write as _;

/// A picture that grows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Picture {
    width: f64,
    height: f64,
    body: String,
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pen {
    /// Such as `#0072b2`.
    pub(crate) color: &'static str,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps; empty for a line without gaps.
    pub(crate) dashes: &'static str,
}

/// What stands at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
    /// What is void is crossed out.
    Cross,
}

/// On which side of its place a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// A white sheet of so many pixels.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{element}");
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), pen: Pen) {
        self.polyline(&[from, to], pen);
    }

    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], pen: Pen) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes =
            if pen.dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{}""#, pen.dashes) };
        let (points, Pen { color, width, .. }) = (points.join(" "), pen);
        self.add(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>"#
        ));
    }

    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), color: &str) {
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        ));
    }

    pub(crate) fn marker(&mut self, (x, y): (f64, f64), marker: Marker, color: &str) {
        let path = match marker {
            Marker::Circle => "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
            Marker::Square => "m-3.5,-3.5h7v7h-7z",
            Marker::Triangle => "m0,-5l4.6,8h-9.2z",
            Marker::Diamond => "m0,-5.2l5.2,5.2l-5.2,5.2l-5.2,-5.2z",
            Marker::Wedge => "m0,5l4.6,-8h-9.2z",
            Marker::Cross => "m-7,-7l14,14m0,-14l-14,14",
        };
        let paint = if marker == Marker::Cross { r#"fill="none" stroke-width="1.5" stroke"# } else { "fill" };
        self.add(format_args!(r#"<path d="M{x:.1},{y:.1}{path}" {paint}="{color}"/>"#));
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: u32, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{text}</text>"#
        ));
    }

    /// A text that is read from below.
    pub(crate) fn upright(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            r#"<text transform="translate({x:.1},{y:.1}) rotate(-90)" text-anchor="middle" font-size="{size}">{text}</text>"#
        ));
    }

    /// A path, with the attributes that say how it looks.
    pub(crate) fn path(&mut self, path: &str, look: &str) {
        self.add(format_args!(r#"<path d="{path}" {look}/>"#));
    }

    /// An element as it stands.
    pub(crate) fn element(&mut self, element: &str) {
        self.add(format_args!("{element}"));
    }

    /// As a part of a page, which decides on paper and ink: what it shows in a few words, and what is to be seen in it, for
    /// those who do not see it. `id` is its own in the page.
    pub(crate) fn inline(self, id: &str, title: &str, about: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg id=\"{id}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{body}</svg>\n",
            escaped(title),
            escaped(about)
        )
    }

    /// The document, which calls itself so.
    pub(crate) fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" fill=\"#222222\" role=\"img\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n",
            escaped(title)
        )
    }
}

/// A text as it stands in a document.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_tags() {
        let mut picture = Picture::new(10.0, 10.0);
        picture.text((1.0, 1.0), Anchor::Start, 12, "a < b & \"c\"");
        let text = picture.finish("<script>");
        assert!(
            text.contains("a &lt; b &amp; &quot;c&quot;") && text.contains("<title>&lt;script&gt;</title>"),
            "{text}"
        );
    }
}
