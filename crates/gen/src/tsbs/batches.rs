//! How TSBS's trucks lose, delay and mutilate their rows, in batches of ten.

use std::collections::VecDeque;
use std::sync::Arc;

use super::block::{Block, Groups, NONE, ROWS_MAX, TruckRow, TruckTable};
use super::config::{Config, Settled};
use super::go_rand::GoRand;
use super::trucks::Trucks;
use super::{Catalog, CatalogKind};

const BATCH: usize = 10;
/// Fields of the wider table, and tags: what the empty one is drawn from.
const FIELDS: u64 = 7;
const TAGS: u64 = 8;

/// The trucks behind the layer that disturbs their rows.
#[derive(Clone, Debug)]
pub(super) struct Simulation {
    catalog: Arc<Catalog>,
    trucks: Trucks,
    groups: Groups,
    late_batches: VecDeque<Vec<TruckRow>>,
    late_rows: VecDeque<TruckRow>,
    /// The batch that is being made.
    batch: Vec<TruckRow>,
}

/// What happens to one batch: one bit, or one entry, for each row.
#[derive(Default)]
struct Plan {
    late: bool,
    insert_earlier: u16,
    missing: u16,
    late_rows: u16,
    empty_fields: [u8; BATCH],
    empty_tags: [u8; BATCH],
}

enum NextBatch {
    /// The whole batch is lost.
    Missing,
    /// A batch that was held back comes instead.
    Earlier,
    Batch(Plan),
}

impl Plan {
    /// Draws a plan. Every draw counts, even where an earlier batch takes its place.
    fn draw(late_batches: usize, late_rows: usize, rng: &mut GoRand) -> NextBatch {
        if rng.float64() < 0.01 {
            return NextBatch::Missing;
        }
        let mut plan = Self {
            late: rng.float64() < 0.05,
            empty_fields: [NONE; BATCH],
            empty_tags: [NONE; BATCH],
            ..Self::default()
        };
        let earlier = late_batches > 0 && rng.float64() < 0.5;
        let mut waiting = late_rows;
        for i in 0..BATCH {
            if waiting > 0 && rng.float64() < 0.5 {
                plan.insert_earlier |= 1 << i;
                waiting -= 1;
            }
            if rng.float64() < 0.1 {
                plan.missing |= 1 << i;
                continue;
            }
            if rng.float64() < 0.1 {
                plan.empty_fields[i] = small(rng.intn(FIELDS));
            }
            if rng.float64() < 0.01 {
                plan.empty_tags[i] = small(rng.intn(TAGS));
            }
            plan.late_rows |= u16::from(rng.float64() < 0.3) << i;
        }
        if earlier {
            NextBatch::Earlier
        } else {
            NextBatch::Batch(plan)
        }
    }
}

fn small(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(NONE)
}

/// Whether the bit of a row is set; there are none beyond the tenth.
#[inline]
fn bit(bits: u16, index: usize) -> bool {
    index < BATCH && bits >> index & 1 == 1
}

impl Simulation {
    pub(super) fn new(config: &Config, settled: &Settled, rng: GoRand) -> Self {
        let (trucks, tags) = Trucks::draw(config, settled, rng);
        Self {
            catalog: Arc::new(Catalog(CatalogKind::Trucks(tags))),
            trucks,
            groups: Groups::new(config.group, config.groups),
            late_batches: VecDeque::new(),
            late_rows: VecDeque::new(),
            batch: Vec::with_capacity(BATCH),
        }
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The next rows; false when there are none.
    pub(super) fn fill(&mut self, block: &mut Block) -> bool {
        block.clear();
        while block.trucks.len() < ROWS_MAX && self.next_batch() {
            for row in &self.batch {
                if self.groups.take() {
                    block.trucks.push(*row);
                }
            }
        }
        !block.trucks.is_empty()
    }

    /// Makes the next batch that is written; false at the end.
    fn next_batch(&mut self) -> bool {
        loop {
            if self.trucks.finished() {
                return self.next_pending();
            }
            let rng = &mut self.trucks.rng;
            match Plan::draw(self.late_batches.len(), self.late_rows.len(), rng) {
                NextBatch::Missing => self.lose_batch(),
                NextBatch::Earlier => {
                    self.batch = self.late_batches.pop_front().unwrap_or_default();
                    return true;
                }
                NextBatch::Batch(plan) => {
                    self.make_batch(&plan);
                    if self.batch.is_empty() {
                        continue;
                    }
                    if !plan.late {
                        return true;
                    }
                    self.late_batches.push_back(std::mem::take(&mut self.batch));
                }
            }
        }
    }

    /// After the trucks have finished: what was held back, batches first.
    fn next_pending(&mut self) -> bool {
        if let Some(batch) = self.late_batches.pop_front() {
            self.batch = batch;
            return true;
        }
        self.batch.clear();
        let count = self.late_rows.len().min(BATCH);
        self.batch.extend(self.late_rows.drain(..count));
        count > 0
    }

    fn lose_batch(&mut self) {
        for _ in 0..BATCH {
            if self.trucks.next().is_none() {
                break;
            }
        }
    }

    fn make_batch(&mut self, plan: &Plan) {
        self.batch.clear();
        let mut offset = 0;
        for i in 0..BATCH {
            if self.trucks.finished() {
                return;
            }
            let Some(mut row) = self.next_row(plan, i, &mut offset) else {
                return;
            };
            if plan.empty_fields[i] != NONE {
                let fields = if row.table == TruckTable::Readings {
                    7
                } else {
                    3
                };
                row.empty_field = plan.empty_fields[i] % fields; // of the wider table: wraps round
            }
            row.empty_tag = plan.empty_tags[i];
            self.batch.push(row);
        }
    }

    /// The next row that is neither lost nor late, from those held back or from the trucks; none if
    /// the truck does not report yet. Loss and delay count rows read, not rows written.
    #[inline]
    fn next_row(&mut self, plan: &Plan, i: usize, offset: &mut usize) -> Option<TruckRow> {
        loop {
            let index = i + *offset;
            let earlier = bit(plan.insert_earlier, index).then(|| self.late_rows.pop_front());
            let row = match earlier.flatten() {
                Some(row) => row,
                None => self.trucks.next()?,
            };
            if bit(plan.missing, index) {
                *offset += 1;
            } else if bit(plan.late_rows, index) {
                self.late_rows.push_back(row);
                *offset += 1;
            } else {
                return Some(row);
            }
        }
    }
}
