//! The newest records in memory, so that delivery does not read what was just written.

use std::collections::VecDeque;

use super::entry::Statement;

const MAX_RECORDS: usize = 8_192;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A bounded queue of the newest records, in the order of writing. The oldest fall out; they are still in their file.
#[derive(Debug, Default)]
pub(super) struct Tail {
    records: VecDeque<(u64, u64, Statement)>,
    bytes: usize,
}

impl Tail {
    pub(super) fn push(&mut self, epoch: u64, n: u64, statement: Statement) {
        self.bytes += statement.len();
        self.records.push_back((epoch, n, statement));
        while self.records.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            self.pop();
        }
    }

    /// Drops what need not be sent again.
    pub(super) fn forget(&mut self, settled: impl Fn(u64, u64) -> bool) {
        while self
            .records
            .front()
            .is_some_and(|(epoch, n, _)| settled(*epoch, *n))
        {
            self.pop();
        }
        if self.records.is_empty() {
            self.records.shrink_to(64);
        }
    }

    fn pop(&mut self) {
        if let Some((_, _, statement)) = self.records.pop_front() {
            self.bytes -= statement.len();
        }
    }

    /// Records of `epoch` from number `from` on, when that one is here.
    pub(super) fn read(
        &self,
        epoch: u64,
        from: u64,
        max_records: usize,
        max_bytes: usize,
    ) -> Option<Vec<(u64, Statement)>> {
        let (first_epoch, first, _) = self.records.front()?;
        // Numbers of an epoch are contiguous in the order of writing, so a binary search over (epoch, n) finds it.
        if (*first_epoch, *first) > (epoch, from) {
            return None;
        }
        let start = self.records.partition_point(|(e, n, _)| (*e, *n) < (epoch, from));
        let mut bytes = 0;
        let mut out = Vec::new();
        for (e, n, statement) in self.records.range(start..) {
            if *e != epoch
                || out.len() >= max_records
                || (!out.is_empty() && bytes + statement.len() > max_bytes)
            {
                break;
            }
            bytes += statement.len();
            out.push((*n, statement.clone()));
        }
        (!out.is_empty()).then_some(out)
    }
}
