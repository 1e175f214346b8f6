//! The items that members score or continue.

use eggroll_train::Population;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A prompt and the completion to score, in tokens. In JSON: `{"prompt": [1, 2], "completion": [3]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ItemTokens", into = "ItemTokens")]
pub struct Item {
    tokens: Vec<u32>,
    prompt: usize,
    /// Number of its draws, if that is not its place in the list.
    draws: Option<u32>,
}

impl Item {
    /// A prompt and its completion, as token ids.
    pub fn new(prompt: &[u32], completion: &[u32]) -> Self {
        Self { tokens: [prompt, completion].concat(), prompt: prompt.len(), draws: None }
    }

    /// A prompt for a model to continue.
    pub fn prompt_only(prompt: &[u32]) -> Self {
        Self::new(prompt, &[])
    }

    /// With the draws of this number, in any place of a list.
    pub(crate) fn with_draws(self, number: u32) -> Self {
        Self { draws: Some(number), ..self }
    }

    /// Number of its draws, in this place of a list.
    pub(crate) fn draws(&self, place: usize) -> u32 {
        self.draws.unwrap_or(place as u32)
    }

    /// The prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.tokens[..self.prompt]
    }

    /// The completion.
    pub fn completion(&self) -> &[u32] {
        &self.tokens[self.prompt..]
    }

    /// Both.
    pub(crate) fn all(&self) -> &[u32] {
        &self.tokens
    }

    /// Number of tokens of prompt and completion.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }
}

/// An item as files have it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemTokens {
    prompt: Vec<u32>,
    completion: Vec<u32>,
}

impl From<ItemTokens> for Item {
    fn from(tokens: ItemTokens) -> Self {
        Self::new(&tokens.prompt, &tokens.completion)
    }
}

impl From<Item> for ItemTokens {
    fn from(item: Item) -> Self {
        Self { prompt: item.prompt().to_vec(), completion: item.completion().to_vec() }
    }
}

/// Limits of a model's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimits {
    /// Tokens that it knows.
    pub vocabulary: usize,
    /// The longest sequence, in tokens.
    pub context: usize,
}

/// The items of each member.
#[derive(Clone, Copy, Debug)]
pub enum Items<'a> {
    /// Every member gets all items: scores of members can be compared item by item.
    Shared(&'a [Item]),
    /// The members, in order, are divided into equal groups, one for each list; all members of a group get its list.
    Groups(&'a [Vec<Item>]),
    /// Every member of the population, or slice, gets its own list, for example in episodes that continue differently. It may be empty; a
    /// step gives such a member no score.
    Each(&'a [Vec<Item>]),
}

/// Why items are refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemsError {
    /// There are no items.
    #[error("no items: a list of items is empty")]
    Empty,
    /// An item lacks a part.
    #[error(
        "item {item}{} has an empty {part}: a prompt needs at least one token, and so does a completion to be scored",
        of_group(*.group)
    )]
    NoTokens {
        /// The list of the item, from 0, if there are groups.
        group: Option<usize>,
        /// The item, from 0.
        item: usize,
        /// `prompt` or `completion`.
        part: &'static str,
    },
    /// An item is too long.
    #[error(
        "item {item}{} needs {tokens} tokens, but the context of the model is {context} tokens: shorten it, or lower max_tokens",
        of_group(*.group)
    )]
    TooLong {
        /// The list of the item, from 0, if there are groups.
        group: Option<usize>,
        /// The item, from 0.
        item: usize,
        /// Its tokens, including the tokens to generate.
        tokens: usize,
        /// The longest sequence.
        context: usize,
    },
    /// A token is not in the vocabulary.
    #[error(
        "item {item}{} has token {token}, but the model knows {vocabulary} tokens: was it made by another tokenizer?",
        of_group(*.group)
    )]
    Token {
        /// The list of the item, from 0, if there are groups.
        group: Option<usize>,
        /// The item, from 0.
        item: usize,
        /// The token.
        token: u32,
        /// Tokens of the model.
        vocabulary: usize,
    },
    /// Groups do not fit the population.
    #[error(
        "{groups} groups of items for {members} members: the members must be a multiple of 2 × the groups, so that every group has whole pairs"
    )]
    Groups {
        /// Groups.
        groups: usize,
        /// Members.
        members: usize,
    },
    /// Not a list for every member.
    #[error("{lists} lists of items for {members} members: expected one for each")]
    Lists {
        /// Lists.
        lists: usize,
        /// Members.
        members: usize,
    },
    /// Groups for a part of a population, whose members are not compared with the others of their group.
    #[error(
        "{groups} groups of items were given for members {}..{} of a population, but comparing members of a group \
         needs all of them. Give all members the same items, or evaluate the population in one process",
        .range.start, .range.end
    )]
    Slice {
        /// Groups.
        groups: usize,
        /// The members.
        range: Range<usize>,
    },
}

eggroll_core::debug_is_message!(ItemsError);

impl ItemsError {
    /// The refused item, from 0, if it is a single one.
    pub fn item(&self) -> Option<usize> {
        match self {
            Self::NoTokens { item, .. } | Self::TooLong { item, .. } | Self::Token { item, .. } => Some(*item),
            Self::Empty | Self::Groups { .. } | Self::Lists { .. } | Self::Slice { .. } => None,
        }
    }
}

/// Names the list of an item.
fn of_group(group: Option<usize>) -> String {
    group.map_or_else(String::new, |group| format!(" of group {group}"))
}

impl<'a> Items<'a> {
    /// Members of the population with their items.
    pub(crate) fn of_members(&self, members: &Range<usize>, population: &Population) -> Vec<(usize, &'a [Item])> {
        let of = |member: usize| match self {
            Self::Shared(items) => *items,
            Self::Groups(groups) => &groups[member * groups.len() / population.count()],
            Self::Each(lists) => &lists[member - population.range().start],
        };
        members.clone().map(|member| (member, of(member))).collect()
    }

    /// Lists of items by member, for the members of a population or for one without noise.
    pub(crate) fn by_member(&self, population: Option<&Population>) -> Vec<&'a [Item]> {
        match population {
            Some(population) => {
                self.of_members(&population.range(), population).into_iter().map(|(_, items)| items).collect()
            }
            None => vec![self.shared()],
        }
    }

    /// Items of a model without noise.
    pub(crate) fn shared(&self) -> &'a [Item] {
        match self {
            Self::Shared(items) => items,
            Self::Groups(lists) | Self::Each(lists) => lists.first().map_or(&[], Vec::as_slice),
        }
    }

    /// Number of groups with the same items.
    pub(crate) fn groups(&self) -> usize {
        match self {
            Self::Shared(_) | Self::Each(_) => 1,
            Self::Groups(groups) => groups.len(),
        }
    }

    /// Refuses groups that do not fit the members.
    pub(crate) fn check_groups(&self, members: usize) -> Result<(), ItemsError> {
        self.lists(members).map(drop)
    }

    /// Refuses groups for a slice of a population: the members of a group are compared with each other.
    pub(crate) fn check_whole(&self, population: &Population) -> Result<(), ItemsError> {
        match self {
            Self::Groups(groups) if population.is_slice() => {
                Err(ItemsError::Slice { groups: groups.len(), range: population.range() })
            }
            _ => Ok(()),
        }
    }

    /// Items of a member.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Shared(items) => items.len(),
            Self::Groups(lists) | Self::Each(lists) => lists.iter().map(Vec::len).max().unwrap_or(0),
        }
    }

    /// About the rows of a member.
    pub(crate) fn rows(&self) -> usize {
        let rows = |items: &[Item]| items.iter().map(Item::tokens).sum();
        match self {
            Self::Shared(items) => rows(items),
            Self::Groups(lists) | Self::Each(lists) => lists.iter().map(|list| rows(list)).max().unwrap_or(0),
        }
    }

    /// Refuses items that cannot be scored.
    pub(crate) fn check_completions(&self, limits: TokenLimits, members: usize) -> Result<(), ItemsError> {
        self.check(members, limits, None)
    }

    /// Refuses prompts that cannot be continued by `more` tokens.
    pub(crate) fn check_prompts(&self, limits: TokenLimits, members: usize, more: usize) -> Result<(), ItemsError> {
        self.check(members, limits, Some(more))
    }

    fn check(&self, members: usize, limits: TokenLimits, more: Option<usize>) -> Result<(), ItemsError> {
        let grouped = matches!(self, Self::Groups(_));
        let mut lists = self.lists(members)?.into_iter().enumerate();
        lists.try_for_each(|(group, items)| check(items, limits, more, grouped.then_some(group)))
    }

    fn lists(&self, members: usize) -> Result<Vec<&'a [Item]>, ItemsError> {
        match self {
            Self::Shared(items) => Ok(vec![items]),
            Self::Groups(groups) => {
                let count = groups.len();
                if count == 0 || !members.is_multiple_of(2 * count) {
                    return Err(ItemsError::Groups { groups: count, members });
                }
                Ok(groups.iter().map(Vec::as_slice).collect())
            }
            Self::Each(lists) if lists.len() != members => Err(ItemsError::Lists { lists: lists.len(), members }),
            // Members without items have nothing to check.
            Self::Each(lists) => Ok(lists.iter().filter(|list| !list.is_empty()).map(Vec::as_slice).collect()),
        }
    }
}

/// Refuses items that cannot be scored, or continued by `more` tokens.
fn check(items: &[Item], limits: TokenLimits, more: Option<usize>, group: Option<usize>) -> Result<(), ItemsError> {
    if items.is_empty() {
        return Err(ItemsError::Empty);
    }
    let TokenLimits { context, vocabulary } = limits;
    for (index, item) in items.iter().enumerate() {
        let part = match (item.prompt(), item.completion()) {
            ([], _) => Some("prompt"),
            (_, []) if more.is_none() => Some("completion"),
            _ => None,
        };
        if let Some(part) = part {
            return Err(ItemsError::NoTokens { group, item: index, part });
        }
        let tokens = more.map_or(item.tokens(), |more| item.prompt().len().saturating_add(more));
        if tokens > context {
            return Err(ItemsError::TooLong { group, item: index, tokens, context });
        }
        if let Some(token) = item.all().iter().find(|token| **token as usize >= vocabulary) {
            return Err(ItemsError::Token { group, item: index, token: *token, vocabulary });
        }
    }
    Ok(())
}
