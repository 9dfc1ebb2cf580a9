//! How fast a chain is verified.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use chain::link::{ChainWriter, Head, Linked};
use chain::verify::{Options, RecordLine, Verifier, verify_lines};

use super::Extent;
use crate::error::{During as _, Result, unexpected};
use crate::records::Source;
use crate::report::{Report, spread};

/// Verifies the same chain from memory and from a file.
///
/// # Errors
/// When the file cannot be written, or the chain does not verify.
pub fn run(folder: &Path, extent: Extent, report: &mut Report) -> Result<()> {
    let mut source = Source::new("5e4e9d0c1b7a4b0f9d8c7b6a59483726", 1)?;
    let mut writer = ChainWriter::new(Head::GENESIS, None);
    let mut records = Vec::with_capacity(extent.records);
    for _ in 0..extent.records {
        let (_, text, payload) = source.seal_next()?;
        records.push((writer.append(&text).map_err(unexpected)?, payload));
    }
    let file = folder.join("export.jsonl");
    let mut out = BufWriter::new(File::create(&file).during("make an export")?);
    for (linked, payload) in &records {
        let line = line(linked, Some(payload)).to_line().map_err(unexpected)?;
        out.write_all(line.as_bytes()).during("write an export")?;
    }
    out.flush().during("write an export")?;
    drop(out);
    let count = extent.records as f64;
    let (mut memory, mut bare, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..extent.rounds {
        memory.push(count / from_memory(&records, true)?);
        bare.push(count / from_memory(&records, false)?);
        read.push(count / from_file(&file)?);
    }
    let conditions = format!(
        "{} records with sources' links, one core, {} rounds",
        extent.records, extent.rounds
    );
    let target = ">= 1,000,000/s";
    report.add(
        "verification from memory, headers and links",
        target,
        spread(&bare, "records/s"),
        &conditions,
    );
    report.add(
        "verification from memory, payload digests too",
        target,
        spread(&memory, "records/s"),
        &conditions,
    );
    let conditions = format!("{conditions}; payloads included, JSON lines in the page cache");
    report.add(
        "verification from a file",
        ">= 500,000/s",
        spread(&read, "records/s"),
        &conditions,
    );
    Ok(())
}

fn line<'a>(linked: &'a Linked, payload: Option<&'a str>) -> RecordLine<'a> {
    RecordLine {
        header: &linked.header,
        payload,
        hash: linked.hash,
        mac: None,
        key_id: None,
    }
}

/// Seconds of one pass.
fn from_memory(records: &[(Linked, String)], with_payloads: bool) -> Result<f64> {
    let begun = Instant::now();
    let mut verifier = Verifier::new(Options::default());
    for (linked, payload) in records {
        verifier.record(&line(linked, with_payloads.then_some(payload.as_str())));
    }
    intact(verifier.finish().is_intact())?;
    Ok(begun.elapsed().as_secs_f64())
}

fn from_file(file: &Path) -> Result<f64> {
    let begun = Instant::now();
    let reader = BufReader::with_capacity(1 << 20, File::open(file).during("open an export")?);
    let report = verify_lines(reader, Verifier::new(Options::default()), |_| {}).map_err(unexpected)?;
    intact(report.is_intact())?;
    Ok(begun.elapsed().as_secs_f64())
}

fn intact(is_intact: bool) -> Result<()> {
    if is_intact {
        Ok(())
    } else {
        Err(unexpected("the chain of the benchmark does not verify"))
    }
}
