//! Batches of members and items that run together.

use crate::items::Item;
use eggroll_core::PairRange;
use eggroll_train::Population;
use std::ops::Range;

/// Tokens that run through the layers together: enough for products to be bound by arithmetic.
pub(super) const TOKENS: usize = 1 << 15;

/// Some members with some of their items. All members have the same number of rows; members with fewer items have empty
/// rows.
pub(super) struct Batch<'a> {
    /// The members, by their place in the population.
    pub members: Range<usize>,
    /// Number of each member's first item.
    pub first: usize,
    /// Items of each member.
    pub items: Vec<&'a [Item]>,
    /// Rows of each member.
    pub each: usize,
}

/// All items of all members, `[members][items]`, in batches of at most `most` rows, but at least a pair and an item.
pub(super) fn batches<'a>(lists: &[&'a [Item]], most: usize) -> Vec<Batch<'a>> {
    let all = lists.iter().map(|items| items.len()).max().unwrap_or(0);
    let each = (most / lists.len().clamp(1, 2)).clamp(1, all.max(1));
    let together = (most / each / 2 * 2).max(2);
    let mut batches = Vec::new();
    for (number, lists) in lists.chunks(together).enumerate() {
        let start = number * together;
        for first in (0..all).step_by(each) {
            let part = |items: &&'a [Item]| &items[first.min(items.len())..(first + each).min(items.len())];
            let items: Vec<&[Item]> = lists.iter().map(part).collect();
            let each = items.iter().map(|items| items.len()).max().unwrap_or(0);
            if each > 0 {
                batches.push(Batch { members: start..start + lists.len(), first, items, each });
            }
        }
    }
    batches
}

impl<'a> Batch<'a> {
    /// The item of each row, member after member.
    pub fn rows(&self) -> Vec<Option<&'a Item>> {
        let of_member = |items: &&'a [Item]| {
            let items: &'a [Item] = items;
            (0..self.each).map(move |row| items.get(row))
        };
        self.items.iter().flat_map(of_member).collect()
    }

    /// Runs a forward of the rows as these members of the population, or without noise.
    #[track_caller]
    pub fn run<R>(&self, population: Option<&Population>, forward: impl FnOnce() -> R) -> R {
        let Some(population) = population else { return forward() };
        let (first, count) = (population.range().start + self.members.start, self.members.len());
        let pairs = PairRange::new((first / 2) as u32, (count / 2) as u32);
        let perturbation = population.perturbation();
        let (result, scope) = perturbation.run_members(pairs, Some(count * self.each), forward);
        let entries = perturbation.table.entries().iter().zip(&scope.uses);
        let used: Vec<_> = entries.filter(|(_, used)| used.is_used()).map(|(entry, _)| entry.id).collect();
        population.note_used(&used);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_one_batch() {
        let item = Item::prompt_only(&[1]);
        for (members, counts, most) in
            [(1, [5, 5], 2), (6, [3, 3], 4), (6, [0, 4], 100), (8, [1, 2], 1), (4, [0, 0], 9)]
        {
            let items: Vec<Vec<Item>> = (0..members).map(|member| vec![item.clone(); counts[member % 2]]).collect();
            let lists: Vec<&[Item]> = items.iter().map(Vec::as_slice).collect();
            let mut found = vec![0; members];
            for batch in batches(&lists, most) {
                assert_eq!(batch.rows().len(), batch.members.len() * batch.each);
                assert!(batch.rows().len() <= most.max(2), "{} rows, at most {most}", batch.rows().len());
                assert!(members == 1 || batch.members.len().is_multiple_of(2));
                for (member, items) in batch.members.clone().zip(&batch.items) {
                    assert!(items.is_empty() || found[member] == batch.first, "in order");
                    found[member] += items.len();
                }
            }
            assert_eq!(found, items.iter().map(Vec::len).collect::<Vec<_>>());
        }
    }
}
