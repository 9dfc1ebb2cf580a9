//! The table of figures.

use std::fmt::Write as _;

/// One figure beside its target.
#[derive(Debug, Clone)]
struct Row {
    what: String,
    target: String,
    measured: String,
    conditions: String,
}

/// All figures of a run, in the order in which they were measured.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a figure and prints it at once, so that a run that breaks off has said what it knew.
    pub fn add(&mut self, what: &str, target: &str, measured: String, conditions: &str) {
        say(&format!("{what}: {measured} (target {target})"));
        self.rows.push(Row {
            what: what.to_owned(),
            target: target.to_owned(),
            measured,
            conditions: conditions.to_owned(),
        });
    }

    /// The table, in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = "| what | target | measured | conditions |\n|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                row.what, row.target, row.measured, row.conditions
            );
        }
        text
    }
}

/// Prints a line.
pub fn say(line: &str) {
    use std::io::Write as _;
    // Nobody may be reading.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The middle value; 0 of none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The median, and the lowest and highest value.
#[must_use]
pub fn spread(values: &[f64], unit: &str) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{} {unit} ({} to {})",
        short(median(values.to_vec())),
        short(low),
        short(high)
    )
}

/// A number with as many decimals as it deserves.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes as MiB.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", short(bytes as f64 / f64::from(1 << 20)))
}
