//! What turns use: tokens and money, as reported and as reserved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swarmc_plan::Price;

/// Tokens of one turn, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of the tokens read, those from the cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Of the tokens read, those put into the cache.
    #[serde(default)]
    pub cache_write: u64,
    /// The price in dollars, as the provider says it, or else by its `price`; unknown is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Whether it is more, since the provider tells of some of its requests only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// What an attempt may use at most; what is not known is not there, and counts when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reserved {
    /// Turns of agents.
    pub calls: u64,
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// Two usages as one; a price that is unknown in part is unknown.
pub(crate) fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
        cost: one.cost.zip(other.cost).map(|(one, other)| one + other).filter(|cost| cost.is_finite()),
        at_least: one.at_least || other.at_least,
    }
}

/// What a turn cost, in millionths of a dollar: as the provider says, else by the price of its tokens.
pub(crate) fn compute_cost(usage: &Usage, price: Option<Price>) -> Option<u64> {
    if let Some(cost) = usage.cost {
        // What is no whole number only because it was one of dollars before is not rounded up.
        return Some((cost.max(0.0) * 1e6 - 1e-4).ceil() as u64);
    }
    let price = price?;
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    let parts = [
        (usage.input.saturating_sub(cached), price.input),
        (usage.cache_read, price.cache_read.unwrap_or(price.input)),
        (usage.cache_write, price.cache_write.unwrap_or(price.input)),
        (usage.output, price.output),
    ];
    Some(parts.into_iter().map(|(tokens, price)| compute_price(tokens, price)).fold(0, u64::saturating_add))
}

/// The price of so many tokens, rounded up.
pub(crate) fn compute_price(tokens: u64, price: u64) -> u64 {
    u64::try_from((u128::from(tokens) * u128::from(price)).div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
